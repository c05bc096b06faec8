"""Kernels as text: CUDA C++, HIP, OpenCL C and C."""

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.emit.dialect import Language
from warploom.emit.language import BACKENDS, emit
from warploom.emit.opencl import opencl

__all__ = ["BACKENDS", "Language", "c", "cuda", "emit", "opencl"]
