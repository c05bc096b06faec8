"""Warp-level sketches in Python: traced, lowered to terms, filled, and turned into kernels."""
