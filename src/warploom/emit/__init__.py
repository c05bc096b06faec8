"""Kernels as text: CUDA C++, OpenCL C and C."""
