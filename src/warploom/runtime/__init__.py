"""Compile, launch and measure kernels: on a GPU, through OpenCL, as C, or emulated."""

from warploom.runtime.callable import Callable, load
from warploom.runtime.compile import Compiled, Usage, compile_cuda, usage

__all__ = ["Callable", "Compiled", "Usage", "compile_cuda", "load", "usage"]
