"""Warp-level sketches in Python: recorded, lowered to terms, filled, and turned into kernels.

`sketch` decorates a function over lanes, `solve` fills its holes, `reinstantiate` takes a fill to
another size, `to_kernel` makes it a kernel.
"""

from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.solve import solve

__all__ = ["SketchFunction", "sketch", "solve", "to_kernel"]
