"""Decided schedules: loops with what runs them, buffers, writes; their lowering to kernels."""
