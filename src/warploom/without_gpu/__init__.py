"""Kernels of Triton, Numba, CuPy and CUDA text run without a GPU, with all checks."""

from warploom.without_gpu.front import Emulated, emulate

__all__ = ["Emulated", "emulate"]
