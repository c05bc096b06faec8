"""Kernels of Triton, Numba, CuPy and CUDA text run without a GPU, with all checks."""

from warploom.options import emulates_scripts
from warploom.without_gpu.front import Emulated, emulate
from warploom.without_gpu.triton_script import emulate_scripts

if emulates_scripts():  # WARPLOOM_EMULATE=1
    emulate_scripts()

__all__ = ["Emulated", "emulate"]
