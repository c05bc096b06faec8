"""`numba.cuda.jit` functions through Numba's own compiler, which needs no GPU.

This is the only module that imports Numba. An array is passed as Numba passes it: two addresses
that nobody reads, elements, bytes of one, data, and the sides and strides of each axis.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np

from warploom.errors import DeviceError, UnsupportedError
from warploom.ptx.launch import Kernel, load
from warploom.without_gpu.arrays import Passed, memory_of
from warploom.without_gpu.prepared import Prepared, bracket, byte_count, no_names, python_files

_BRACKET = ("grid", "block", "stream", "shared bytes")


def is_numba(kernel: Any) -> bool:
    return type(kernel).__module__.startswith(("numba.cuda", "numba_cuda"))


class NumbaKernel:
    def __init__(self, function: Any, arch: str) -> None:
        options = getattr(function, "targetoptions", {})
        if options.get("link"):
            raise UnsupportedError("the kernel is linked with other files, which are not read")
        if options.get("device"):
            raise DeviceError("a device function is no kernel")
        self.function = function.py_func
        self.options = {name: bool(options.get(name)) for name in ("fastmath", "debug")}
        found = re.fullmatch(r"sm_(\d+)(\d)a?", arch)
        if found is None:
            raise DeviceError(f"'{arch}' is no GPU architecture", advice="use sm_80, sm_90, …")
        self.capability = int(found[1]), int(found[2])
        self._compiled: dict[Any, Kernel] = {}

    def prepare(self, launch: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Prepared:
        no_names(named)
        grid, block, *more = bracket(launch, _BRACKET)
        numba = import_module("numba")
        types: list[Any] = []
        passed: list[Any] = []
        for number, arg in enumerate(args):
            memory = memory_of(arg, f"argument {number}")
            if memory is None and not isinstance(arg, int | float | np.generic):
                raise DeviceError(f"argument {number}: a {type(arg).__name__} cannot be passed")
            types.append(numba.typeof(arg if memory is None else memory.array))
            passed += [_number(arg)] if memory is None else _flattened(memory)
        kernel = self._compile(tuple(types))
        return Prepared(kernel, grid, block, passed, byte_count(more[1] if len(more) > 1 else 0))

    def _compile(self, types: tuple[Any, ...]) -> Kernel:
        if types not in self._compiled:
            cuda = import_module("numba.cuda")
            try:
                text, _ = cuda.compile_ptx(
                    self.function, types, cc=self.capability, lineinfo=True, **self.options
                )
            except TypeError as error:
                raise DeviceError(f"{self.function.__name__}: {error}") from None
            shown_as = f"{self.function.__name__}, as PTX"
            module = load(text, shown_as, named=python_files(self.function))
            self._compiled[types] = module.kernel()
        return self._compiled[types]


def _number(arg: Any) -> Any:
    """A Python number in the type that Numba gives it."""
    if isinstance(arg, bool | np.generic):
        return arg
    return np.int64(arg) if isinstance(arg, int) else np.float64(arg)


def _flattened(memory: Passed) -> list[Any]:
    array = memory.array
    return [None, None, array.size, array.itemsize, memory.raw, *array.shape, *array.strides]
