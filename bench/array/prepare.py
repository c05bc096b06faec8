"""Kernels of convolutions, compiled: what `curves.py` runs in processes of its own."""

from __future__ import annotations

from dataclasses import dataclass

from bench.array.tasks import planned

from warploom.array.code.program import Candidate, Compiled, compile_candidate
from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.index.evaluate import evaluate
from warploom.kernel.ir import Kernel
from warploom.runtime.compile import compile_cuda, parse_usage

ARCH = "sm_90"


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


def prepare_candidate(text: str, candidate: Candidate) -> Prepared:
    """Of the convolution in tiles, whose mapping was searched."""
    return _prepared(text, compile_candidate(planned("convolution")[1], candidate))


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
