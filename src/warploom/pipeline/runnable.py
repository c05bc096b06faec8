"""What `warploom.compile` makes of results that are no sketches: functions on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from warploom.catalogue.conversion import DTYPES
from warploom.catalogue.matrix_text import matrix_text
from warploom.emit.dialect import Language
from warploom.errors import DeviceError, UnsupportedError, located
from warploom.kernel.ir import Kernel
from warploom.layout.conversion.convert import Conversion
from warploom.layout.language.expression import names_of
from warploom.pictured import PublicResult
from warploom.pipeline.converted import ConvertedResult
from warploom.pipeline.layouts import LayoutResult
from warploom.pipeline.mapping import MappedResult
from warploom.pipeline.nest import Explored
from warploom.ptx import load as load_ptx
from warploom.runtime.callable import Device, check_device, load
from warploom.runtime.compile import compile_cuda
from warploom.runtime.rig import on_gpu, on_host


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runnable(PublicResult):
    """A result as a function on arrays; `result` is what it was compiled from."""

    result: PublicResult
    name: str
    arguments: tuple[str, ...]
    device: Device
    call: Callable[..., Any]

    def __repr__(self) -> str:
        return f"<warploom function {self.name}({', '.join(self.arguments)})>"

    @located
    def __call__(self, *arrays: Any, **numbers: float) -> Any:
        """What is computed of these arrays; numbers that are parameters go by name."""
        return self.call(*arrays, **numbers)

    @property
    def kernel(self) -> Kernel:
        found: Kernel = self.result.kernel
        return found

    @located
    def text(self, language: Language = "cuda", name: str | None = None) -> str:
        """The text of what was compiled."""
        return self.result.text(language, name)

    def record(self) -> dict[str, Any]:
        """The record of what was compiled."""
        return self.result.record()


OfNoSketch: TypeAlias = Explored | MappedResult | ConvertedResult | LayoutResult | Runnable


def runnable(result: PublicResult, device: Device) -> Runnable | None:
    """None for what is compiled otherwise."""
    check_device(device)
    match result:
        case Explored():
            return _nest(result, device)
        case MappedResult():
            return _mapped(result, device)
        case ConvertedResult():
            return _converted(result, device)
        case LayoutResult():
            return _layout(result)
    return None


def _nest(result: Explored, device: Device) -> Runnable:
    """The kernel of a loop nest; arrays have the shapes that the nest says."""
    if len(result.kernels) > 1:
        return _several(result, device)
    program, kernel = result.program, result.kernel
    stored = {each.name for each in kernel.arrays if not each.const}
    shapes = {each.name: each.shape for each in program.arrays if each.name in stored}
    whole = all(_is_row_major(each.shape, each.strides) for each in program.arrays)
    function = load(kernel, device, shapes=(lambda _: shapes) if whole else None)
    names = tuple(each.name for each in kernel.arrays if each.const)
    numbers = tuple(each.name for each in program.parameters)

    def call(*arrays: Any, **named: float) -> Any:
        for name in numbers:
            if name not in named and len(arrays) <= len(kernel.arrays):
                raise DeviceError(f"'{name}' is missing", advice=f"give it by name: {name}=2.0")
        return function(*arrays, **named)

    return Runnable(result, program.name, (*names, *numbers), device, call)


def _several(result: Explored, device: Device) -> Runnable:
    """All kernels of a loop nest, one after the other; what is between them is made for each call,
    and so are outputs that are not given."""
    program, kernels = result.program, result.kernels
    stored = {each.name for each in kernels[-1].arrays if not each.const}
    inputs = [each.name for each in program.arrays if each.name not in stored]
    shapes = {each.name: each.shape for each in program.arrays if each.name in stored}
    whole = all(_is_row_major(each.shape, each.strides) for each in program.arrays)
    functions = [load(each, device, shapes=(lambda _: shapes) if whole and each is kernels[-1]
                      else None) for each in kernels]  # fmt: skip
    numbers = [each.name for each in program.parameters]

    def call(*arrays: Any, **named: float) -> Any:
        missing = [name for name in numbers if name not in named]
        if missing:
            raise DeviceError(f"'{missing[0]}' is missing", advice=f"by name: {missing[0]}=2.0")
        every = [each.name for each in program.arrays]
        names = every if len(arrays) == len(every) else inputs
        if len(arrays) != len(names):
            raise DeviceError(
                f"'{program.name}' takes ({', '.join(names)}), not {len(arrays)} arrays"
            )
        given: dict[str, Any] = dict(zip(names, arrays, strict=True))
        made: Any = None
        for kernel, function in zip(kernels, functions, strict=True):
            taken = [each.name for each in kernel.arrays if each.name in given]
            scalars = {each.name: named[each.name] for each in kernel.scalars}
            made = function(*(given[name] for name in taken), **scalars)
            if kernel is not kernels[-1]:
                stored = [each.name for each in kernel.arrays if not each.const]
                given |= dict(zip(stored, made if len(stored) > 1 else (made,), strict=True))
        return made

    return Runnable(result, program.name, (*inputs, *numbers), device, call)


def _is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return list(strides) == [int(np.prod(shape[at + 1 :])) for at in range(len(shape))]


def _mapped(result: MappedResult, device: Device) -> Runnable:
    """All kernels of a mapping, one after another, on arrays of the host."""
    compiled = result.compiled()
    functions = {kernel: load(kernel, device) for kernel in compiled.kernels}
    names = tuple(each.name for each in compiled.plan.program.inputs)

    def launch(kernel: Kernel, arguments: list[Any]) -> None:
        if device != "cuda":
            functions[kernel](*arguments)
            return
        moved = [on_gpu(each) if isinstance(each, np.ndarray) else each for each in arguments]
        functions[kernel](*moved)
        for here, there in zip(arguments, moved, strict=True):
            if isinstance(here, np.ndarray):
                here[...] = on_host(there)

    def call(*arrays: Any) -> Any:
        if len(arrays) != len(names):
            raise DeviceError(
                f"'{result.name}' takes ({', '.join(names)}), not {len(arrays)} arrays"
            )
        return compiled(launch, *arrays)

    return Runnable(result, result.name, names, device, call)


def _converted(result: ConvertedResult, device: Device) -> Runnable:
    """What the threads of blocks hold, before and after: (blocks, registers, threads)."""
    conversion = result.conversion
    function: Callable[..., object] = (
        _matrices(conversion, device) if result.way == "matrices" else load(result.kernel, device)
    )
    parts = conversion.unit_bytes // conversion.element_bytes
    threads = conversion.source.lanes * conversion.source.warps
    held, wanted = (each.registers * parts for each in (conversion.source, conversion.target))
    dtype = DTYPES[conversion.unit_bytes].numpy

    def call(x: Any) -> Any:
        given = np.asarray(x)
        if given.shape[-2:] != (held, threads) or given.dtype.itemsize != conversion.element_bytes:
            raise DeviceError(
                f"x has the shape {given.shape} of {given.dtype}, but it is what threads hold",
                advice=f"give (blocks, {held} registers, {threads} threads) of "
                f"{conversion.element_bytes} bytes each",
            )
        front = given.shape[:-2]
        blocks = int(np.prod(front))
        packed = np.ascontiguousarray(
            given.reshape(blocks, held // parts, parts, threads).swapaxes(2, 3)
        )
        made = np.zeros(blocks * wanted // parts * threads, dtype)
        function(blocks, packed.view(dtype).reshape(-1), made)
        unpacked = made.view(given.dtype).reshape(blocks, wanted // parts, threads, parts)
        return unpacked.swapaxes(2, 3).reshape(*front, wanted, threads)

    return Runnable(result, "convert", ("x",), device, call)


def _matrices(conversion: Conversion, device: Device) -> Callable[..., object]:
    """ldmatrix and stmatrix are in CUDA text alone: it is compiled and run on the emulator."""
    if device not in ("auto", "ptx"):
        raise UnsupportedError(
            f"ldmatrix and stmatrix do not run on '{device}' from here",
            advice="device='ptx' is the emulator; .text('cuda') is the kernel for a GPU",
        )
    kernel = load_ptx(compile_cuda(matrix_text(conversion)).text).kernel("convert")
    threads = conversion.source.lanes * conversion.source.warps

    def call(blocks: int, x: Any, y: Any) -> None:
        kernel.launch(blocks, threads, [np.int32(blocks), x, y])

    return call


def _layout(result: LayoutResult) -> Runnable:
    """Coordinates of elements to their places."""
    places = result.places
    names = names_of(places.ndim)

    def call(*coordinates: Any) -> Any:
        if len(coordinates) != places.ndim:
            raise DeviceError(f"'place' takes ({', '.join(names)}), not {len(coordinates)} arrays")
        at = [np.asarray(each) for each in coordinates]
        for name, each, size in zip(names, at, places.shape, strict=True):
            inside = not each.size or 0 <= each.min() <= each.max() < size
            if each.dtype.kind not in "iu" or not inside:
                raise DeviceError(f"each {name} is a whole number from 0 to {size - 1}")
        return places[tuple(at)]

    return Runnable(result, "place", names, "auto", call)
