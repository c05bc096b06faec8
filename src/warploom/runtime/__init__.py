"""Compile, launch and measure kernels: on a GPU, through OpenCL, as C, or emulated."""
