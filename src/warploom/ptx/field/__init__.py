"""Floats as elements of a prime field: what a kernel computes, as a function over the reals."""
