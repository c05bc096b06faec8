"""Launches of PTX that run on the emulator and, the same text and bytes, on a GPU by CuPy."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from warploom import ptx
from warploom.ptx.emulate.launch import Kernel
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
    if isinstance(arg, ptx.TensorMap):
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
    there: list[Any] = []
    moved: list[Any] = []
    for parameter, arg in zip(kernel.function.parameters, job.fresh(), strict=True):
        if isinstance(arg, ptx.TensorMap):
            array = cupy.asarray(arg.array.reshape(-1).view(np.uint8))
            there.append(_by_value(for_gpu(arg, array.data.ptr)))
        elif parameter.sizes:
            raw = arg.tobytes() if isinstance(arg, np.ndarray | np.generic) else bytes(arg)
            array, there = None, [*there, _by_value(raw)]
        elif isinstance(arg, np.ndarray):
            array = cupy.asarray(arg.reshape(-1).view(np.uint8))
            there.append(array)
        else:
            array, there = None, [*there, _number(parameter.type, arg)]
        moved.append(array)
    function(full(job.grid), full(job.block), tuple(there), shared_mem=job.shared)
    cupy.cuda.runtime.deviceSynchronize()
    return [
        arg if array is None else array.get().view(_array(arg).dtype).reshape(_array(arg).shape)
        for arg, array in zip(job.args, moved, strict=True)
    ]


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


def _array(arg: Any) -> Any:
    return arg.array if isinstance(arg, ptx.TensorMap) else arg


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
