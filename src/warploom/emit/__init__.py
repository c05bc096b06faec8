"""Kernels as text: CUDA C++, OpenCL C and C."""

from collections.abc import Callable

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.emit.dialect import Language
from warploom.emit.opencl import opencl
from warploom.errors import EmitError
from warploom.kernel.ir import Kernel

TEXTS: dict[Language, Callable[[Kernel], str]] = {"cuda": cuda, "opencl": opencl, "c": c}


def emit(kernel: Kernel, language: Language) -> str:
    """The kernel in the language `cuda`, `opencl` or `c`."""
    if language not in TEXTS:
        raise EmitError(f"there is no language '{language}'", advice="use " + ", ".join(TEXTS))
    return TEXTS[language](kernel)


__all__ = ["TEXTS", "Language", "c", "cuda", "emit", "opencl"]
