"""Kernels of convolutions, compiled: what `map_device.py` runs in processes of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bench.array.tasks import planned
from bench.common.array.blocked import LANES, Blocks, compiled_convolution
from bench.common.array.fixed import compile_fixed

from warploom.array import build as al
from warploom.array.code.program import Candidate, Compiled, compile_candidate
from warploom.array.language.ir import Program, Term
from warploom.array.types import Scalar, array
from warploom.array.workload import Convolution
from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.index.evaluate import evaluate
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Kernel
from warploom.runtime.compile import compile_cuda, parse_usage
from warploom.runtime.emulated import EmulatedFunction

ARCH = "sm_90"
NAIVE_THREADS = 256


def text_of(blocks: Blocks) -> str:
    text = f"{blocks.bm}x{blocks.bn}x{blocks.bk} {blocks.rm}x{blocks.rn} /{blocks.parts}"
    return text if blocks.slices == 1 else f"{text} :{blocks.slices}"


def blocks_of(layer: Convolution, text: str) -> Blocks:
    """Those that `text_of` wrote."""
    bm, bn, bk, rm, rn, parts, *more = (int(each) for each in re.split(r"[^0-9]+", text))
    lanes = LANES if layer.channels % LANES == 0 else 1
    return Blocks(bm, bn, bk, rm, rn, parts, lanes=lanes, slices=more[0] if more else 1)


@dataclass(frozen=True, slots=True)
class MachineCode:
    name: str
    code: bytes
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    params: tuple[str, ...]
    registers: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The kernels of one candidate; `text` says which it is."""

    text: str
    kernels: tuple[MachineCode, ...]
    temporaries: dict[str, int]
    temporary_bytes: int


def naive(layer: Convolution) -> Program:
    """One thread for each output, neighbours for neighbours: channels are planes here, as a plain
    kernel wants them, so that a warp reads neighbouring pixels and one number of a kernel."""
    p = layer.padding

    def body(image: Term, kernels: Term) -> Term:
        size = (layer.kernel_height, layer.stride), (layer.kernel_width, layer.stride)
        windows = al.slide_2d(*size, al.pad_2d((p, p), (p, p), _planes_inside(image)))

        def one(window: Term, kernel: Term) -> Term:
            return _summed(al.filled(0.0, Scalar(f32)), window, _planes_inside(kernel), 3)

        return al.map_global(
            2,
            lambda kernel: al.map_global(
                1,
                lambda row: al.map_global(0, lambda window: al.copy(one(window, kernel)), row),
                windows,
            ),
            kernels,
        )

    return al.program(
        "naive_convolution",
        body,
        image=array(f32, layer.channels, layer.height, layer.width),
        kernels=array(f32, layer.kernels, layer.channels, layer.kernel_height, layer.kernel_width),
    )


def _summed(start: Term, window: Term, kernel: Term, loops: int) -> Term:
    """A number and all products, added up in so many loops inside each other."""
    if not loops:
        return start + window * kernel
    return al.fold(
        lambda s, pair: _summed(s, pair.get(0), pair.get(1), loops - 1),
        start,
        al.zip_(window, kernel),
    )


def _planes_inside(planes: Term) -> Term:
    """[C][H][W] read as [H][W][C]."""
    return al.map_(al.transpose, al.transpose(planes))


def compiled_naive(layer: Convolution) -> Compiled:
    across = 32 if layer.columns > 16 else 16
    return compile_fixed(naive(layer), lambda *_: (across, NAIVE_THREADS // across, 1))


def prepare(layer: Convolution, blocks: Blocks) -> Prepared:
    return _prepared(text_of(blocks), compiled_convolution(layer, blocks))


def prepare_candidate(text: str, candidate: Candidate) -> Prepared:
    """Of the convolution in tiles, whose mapping was searched."""
    return _prepared(text, compile_candidate(planned("convolution")[1], candidate))


def prepare_naive(layer: Convolution) -> Prepared:
    return _prepared("naive", compiled_naive(layer))


def _prepared(text: str, made: Compiled) -> Prepared:
    between = {each.name for each in made.memories if each.role == "temporary"}
    sizes = {
        each.name: int(evaluate(each.size, {}))
        for kernel in made.kernels
        for each in kernel.arrays
        if each.name in between
    }
    kernels = tuple(_machine_code(kernel) for kernel in made.kernels)
    return Prepared(text, kernels, sizes, made.temporary_bytes)


def _machine_code(kernel: Kernel) -> MachineCode:
    name = function_name(kernel, "cuda")
    made = compile_cuda(cuda(kernel), ARCH, kind="cubin", options=("--ptxas-options=-v",))
    used = parse_usage(made.log).get(name)
    x, y, z = (int(evaluate(each, {})) for each in kernel.grid)
    params = tuple(each.name for each in kernel.params)
    return MachineCode(
        name, made.code, (x, y, z), kernel.block, params, used.registers if used else 0
    )


def on_ptx(kernel: Kernel, arguments: list[Any]) -> None:
    """A launch on the compiler's own PTX, emulated."""
    x, y, z = (int(evaluate(each, {})) for each in kernel.grid)
    EmulatedFunction(kernel)(arguments, (x, y, z))
