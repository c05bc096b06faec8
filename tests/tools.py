"""What this machine can run a kernel on; tests ask for a device and are skipped without it."""

from __future__ import annotations

import pytest

from warploom.native import c_compiler
from warploom.runtime.compile import can_compile


def is_here(device: str) -> bool:
    """Whether `simulator`, `c` or `ptx` can be used here."""
    return {"c": c_compiler() is not None, "ptx": can_compile()}.get(device, True)


def require(device: str) -> None:
    """Skips the test, naming what is missing, unless `device` can be used here."""
    if device == "c" and c_compiler() is None:
        pytest.skip("no C compiler")
    if device == "opencl" and not _opencl_devices():
        pytest.skip("no OpenCL device (apt-get install pocl-opencl-icd)")
    if device == "ptx" and not can_compile():
        pytest.skip("no CUDA compiler")


def _opencl_devices() -> int:
    cl = pytest.importorskip("pyopencl")
    try:
        return sum(len(platform.get_devices()) for platform in cl.get_platforms())
    except cl.Error:  # the loader finds no platform at all
        return 0
