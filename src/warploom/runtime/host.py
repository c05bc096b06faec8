"""C text compiled by the system's C compiler and called in this process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warploom.emit.c import c
from warploom.errors import DeviceError
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.runtime.view import View

# Wrapping integers and no reordering of floats: the meaning of the kernel, and still vectors.
FLAGS = ("-O3", "-march=native", "-std=c11", "-fwrapv", "-ffp-contract=off", "-fPIC", "-shared")
COMPILERS = ("cc", "gcc", "clang")
_TIMEOUT_S = 120

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
}


def c_compiler() -> str | None:
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


class HostFunction:
    """A kernel as a C function; a call runs the whole grid."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.text = c(kernel)
        self._library = _build(self.text)
        self._function = getattr(self._library, kernel.name)
        self._function.restype = None

    def __call__(self, arguments: Sequence[View | int | float]) -> None:
        """Arguments in the order of the parameters, already checked."""
        self._function(
            *[
                ctypes.c_void_p(given.pointer)
                if isinstance(given, View)
                else _SCALAR[param.dtype](given)
                for param, given in zip(self.kernel.params, arguments, strict=True)
            ]
        )


def _build(text: str) -> ctypes.CDLL:
    compiler = c_compiler()
    if compiler is None:
        raise DeviceError("no C compiler was found", advice="install gcc or clang")
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        source, target = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        source.write_text(text)
        command = [compiler, *FLAGS, "-o", str(target), str(source), "-lm"]
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise DeviceError(f"the C compiler could not be run: {failure}") from None
        if ran.returncode:
            said = ran.stderr.replace(folder, "").strip()
            raise DeviceError(f"the C text does not compile:\n{said}")
        return ctypes.CDLL(str(target))  # stays loaded after the file is gone
