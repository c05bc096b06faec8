"""Warploom: finds the index arithmetic of GPU and SIMD kernels by search, and proves it."""

__version__ = "0.1.0"
