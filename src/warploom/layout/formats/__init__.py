"""Layouts as others write them: CuTe, Triton, TMA, CUDA, OpenCL and C."""
