"""Launches of PTX that run on the emulator and, the same text and bytes, on a GPU by CuPy."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from bench.ptx.texture_objects import LINEAR, image_on_device

from warploom import ptx
from warploom.ptx.ir import Instruction, Variable
from warploom.ptx.launch import Kernel
from warploom.ptx.types import DTYPES
from warploom.runtime.tensor import for_gpu

Sides = tuple[int, ...]


@dataclass
class Job:
    """`kernel` is a name in `text` (empty: its only one); arguments are copied for each run."""

    name: str
    text: str
    kernel: str
    grid: Sides
    block: Sides
    args: list[Any]
    shared: int = 0
    products: tuple[str, int] | None = None  # which dot products it has, and how many

    def fresh(self) -> list[Any]:
        return [_copy(arg) for arg in self.args]

    def loaded(self) -> Kernel:
        return ptx.load(self.text, f"{self.name}.ptx").kernel(self.kernel or None)


def _copy(arg: Any) -> Any:
    if isinstance(arg, ptx.TensorMap | ptx.Surface):
        return replace(arg, array=arg.array.copy())
    return arg.copy() if isinstance(arg, np.ndarray) else arg


def full(sides: Sides) -> Sides:
    return (*sides, *[1] * (3 - len(sides)))


def on_emulator(job: Job, **options: Any) -> tuple[Kernel, ptx.Report, list[Any]]:
    kernel, args = job.loaded(), job.fresh()
    report = kernel.launch(job.grid, job.block, args, shared_bytes=job.shared, **options)
    return kernel, report, args


def on_device(job: Job) -> list[Any]:
    """The arguments after a launch; its errors are CuPy's."""
    import cupy  # only on a machine with a GPU

    kernel = job.loaded()
    function = _module(job.text).get_function(kernel.name)
    if job.shared > 48 << 10:
        function.max_dynamic_shared_size_bytes = job.shared
    uses = {word for step in kernel.function.instructions() for word in _geometry(step)}
    parameters = zip(kernel.function.parameters, job.fresh(), strict=True)
    moved = [_moved(parameter, arg, uses) for parameter, arg in parameters]
    there = tuple(each for each, _ in moved)
    function(full(job.grid), full(job.block), there, shared_mem=job.shared)
    cupy.cuda.runtime.deviceSynchronize()
    return [back() for _, back in moved]


def _geometry(step: Instruction) -> tuple[str, ...]:
    """What of an instruction decides how a texture must lie on a GPU."""
    if step.opcode == "tex" and step.modifiers[-1] == "s32" and "1d" in step.modifiers:
        return (LINEAR,)
    return (step.opcode,)


def _moved(parameter: Variable, arg: Any, uses: set[str]) -> tuple[Any, Callable[[], Any]]:
    """An argument as CuPy passes it, and how it is fetched after the launch."""
    import cupy

    if isinstance(arg, ptx.Surface):
        return image_on_device(arg, uses)
    if isinstance(arg, ptx.TensorMap):
        array = cupy.asarray(arg.array.reshape(-1).view(np.uint8))
        return _by_value(for_gpu(arg, array.data.ptr)), partial(_fetched, array, arg.array)
    if parameter.sizes:
        raw = arg.tobytes() if isinstance(arg, np.ndarray | np.generic) else bytes(arg)
        return _by_value(raw), lambda: arg
    if isinstance(arg, np.ndarray):
        array = cupy.asarray(arg.reshape(-1).view(np.uint8))
        return array, partial(_fetched, array, arg)
    return _number(parameter.type, arg), lambda: arg


def _fetched(there: Any, here: Any) -> Any:
    return there.get().view(here.dtype).reshape(here.shape)


def for_driver(text: str) -> str:
    """Drivers refuse texts of newer compilers than they know; these use nothing that is new.

    Lines of the source go too: kept texts have no names of inlined functions.
    """
    text = re.sub(r"(?m)^\.version 9\.[1-9]", ".version 9.0", text)
    return re.sub(r"(?m)^\s*\.loc\s.*$", "", text)


@lru_cache
def _module(text: str) -> Any:
    import cupy

    # cupy knows a module by its path, and loads it when it is asked for a function.
    file = Path(_folder().name) / f"{_module.cache_info().misses}.ptx"
    file.write_text(for_driver(text))
    return cupy.RawModule(path=str(file))


@lru_cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Goes with the process."""
    return tempfile.TemporaryDirectory()


def array_of(arg: Any) -> Any:
    return arg.array if isinstance(arg, ptx.TensorMap | ptx.Surface) else arg


def _by_value(raw: bytes) -> Any:
    return np.frombuffer(raw, np.dtype(f"V{len(raw)}"))[0]


def _number(kind: str, arg: Any) -> Any:
    """A NumPy number of the parameter's size; None is a null pointer."""
    dtype = DTYPES[kind]
    if isinstance(arg, np.generic) and arg.dtype.itemsize == dtype.itemsize:
        return arg
    if isinstance(arg, float) and dtype.kind != "f":
        return np.dtype(f"f{dtype.itemsize}").type(arg)
    return np.array([arg or 0]).astype(dtype)[0]
