"""C text compiled by the system's C compiler and called in this process, or in one of its own.

Unless it is loaded for speed, the text checks every index: an access outside its array is an error
that names array, index, block and thread, and the process lives.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.emit.c import FAULT_HEAD, c, checked_arrays
from warploom.emit.c import FLAGS as C_FLAGS
from warploom.emit.language import calling_text
from warploom.emit.spell import function_name
from warploom.errors import DeviceError
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel, Shared
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.process import run_command
from warploom.runtime import isolated

# Wrapping integers and no reordering of floats: the meaning of the kernel, and still vectors.
FLAGS = ("-march=native", *C_FLAGS, "-frounding-math", "-fPIC", "-shared")

Argument = npt.NDArray[Any] | int | float

_SCALAR: dict[DType, Callable[[Any], Any]] = {
    DType.F32: ctypes.c_float,
    DType.F64: ctypes.c_double,
    DType.I32: ctypes.c_int32,
    DType.U32: ctypes.c_uint32,
    DType.I64: ctypes.c_int64,
    DType.U64: ctypes.c_uint64,
    DType.I16: ctypes.c_int16,
    DType.U16: ctypes.c_uint16,
    DType.I8: ctypes.c_int8,
    DType.U8: ctypes.c_uint8,
    DType.F16: ctypes.c_uint16,
    DType.BF16: ctypes.c_uint16,
    DType.E4M3: ctypes.c_uint8,
    DType.E5M2: ctypes.c_uint8,
}


class HostFunction:
    """A kernel as a C function; a call runs the whole grid."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        checked: bool = True,
        isolate: bool = False,
        contract: bool = False,
        calls: bool = False,
    ) -> None:
        self.kernel = kernel
        self.checked = checked and not calls  # a function has no room for what went wrong
        self.isolate = isolate
        self.text = calling_text(kernel, "c") if calls else c(kernel, checked=checked)
        self.name = function_name(kernel, "c")
        # Checks keep loops from becoming vectors anyway, and less is compiled sooner.
        options = ("-O1" if checked else "-O3", f"-ffp-contract={'fast' if contract else 'off'}")
        self._code = kept_library(self.text, (*options, *FLAGS), cache_folder())
        self._function = None if isolate else _load(self._code, self.name)

    def __call__(self, arguments: Sequence[Argument]) -> None:
        """NumPy arrays and numbers in the order of the parameters, already checked."""
        arrays = {
            param.name: given
            for param, given in zip(self.kernel.params, arguments, strict=True)
            if isinstance(given, np.ndarray)
        }
        fault = self._fault(arrays)
        given = [*arguments, fault] if self.checked else list(arguments)
        kinds = [param.dtype for param in self.kernel.params] + [DType.I64] * self.checked
        if self._function is None:
            _call_apart(self._code, self.name, self.kernel.name, given, kinds)
        else:
            self._function(*map(_passed, given, kinds))
        if fault[0]:
            raise self._error(fault)

    def _fault(self, arrays: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """What a checked text is given besides: the sizes of the arrays, and room for an error."""
        sizes = {name: each.size for name, each in arrays.items()}
        sizes |= {each.name: each.size for each in self.kernel.body if isinstance(each, Shared)}
        known = [sizes[name] for name in checked_arrays(self.kernel)]
        return np.array([0] * FAULT_HEAD + known, dtype=np.int64)

    def _error(self, fault: npt.NDArray[np.int64]) -> DeviceError:
        _, number, index, x, y, z, thread = (int(each) for each in fault[:7])
        block = str(x) if y == z == 0 else f"({x}, {y}, {z})"
        name, size = checked_arrays(self.kernel)[number], int(fault[FAULT_HEAD + number])
        return DeviceError(
            f"'{self.kernel.name}': '{name}' has {size} elements, but is used at [{index}] "
            f"(block {block}, thread {thread})"
        )


def _passed(given: Argument, dtype: DType) -> Any:
    """An argument as ctypes passes it."""
    if isinstance(given, np.ndarray):
        return ctypes.c_void_p(given.ctypes.data)
    return _SCALAR[dtype](given)


def _load(code: bytes, name: str) -> Any:
    function = getattr(load_library(code), name)
    function.restype = None
    return function


def _call_apart(
    code: bytes, name: str, kernel: str, arguments: Sequence[Argument], kinds: Sequence[DType]
) -> None:
    """The call in a child process, so that even a crash is an error."""
    with tempfile.TemporaryDirectory(prefix="warploom-") as path:
        folder = Path(path)
        (folder / "kernel.so").write_bytes(code)
        files: dict[tuple[int, int], str] = {}  # an array that is given twice is one file
        listed: list[dict[str, Any]] = []
        for given, dtype in zip(arguments, kinds, strict=True):
            if not isinstance(given, np.ndarray):
                listed.append({"type": _SCALAR[dtype].__name__, "value": given})
                continue
            file = files.setdefault(_span(given), f"array{len(files)}")
            given.tofile(folder / file)
            listed.append({"file": file})
        (folder / "call.json").write_text(json.dumps({"function": name, "arguments": listed}))
        _run_apart(folder, kernel)
        for given in arguments:
            if isinstance(given, np.ndarray) and given.flags.writeable:
                kept = np.fromfile(folder / files[_span(given)], dtype=given.dtype)
                np.copyto(given, kept.reshape(given.shape))


def _span(array: npt.NDArray[Any]) -> tuple[int, int]:
    """Address and length: inputs may begin at one address and differ in length."""
    return array.ctypes.data, array.nbytes


def _run_apart(folder: Path, name: str) -> None:
    command = [sys.executable, "-I", str(isolated.__file__), str(folder)]
    ran = run_command(command, f"'{name}' did not end in a process of its own")
    if ran.returncode < 0:
        raise DeviceError(f"'{name}' crashed: {signal.Signals(-ran.returncode).name}")
    if ran.returncode:
        raise DeviceError(f"'{name}' could not be called: {ran.stderr.strip()}")
