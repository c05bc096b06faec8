"""Warp-level sketches in Python: recorded, lowered to terms, filled, and turned into kernels.

`sketch` decorates a function over lanes, `solve` fills its holes, `reinstantiate` takes a fill to
another size, `to_kernel` makes it a kernel.
"""

from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.evaluate import interpret
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.lower import Lowered, lower
from warploom.sketch.simt.solve import Filled, reinstantiate, solve
from warploom.sketch.simt.spec import finalized, started

__all__ = [
    "Filled",
    "Lowered",
    "SketchFunction",
    "finalized",
    "interpret",
    "lower",
    "reinstantiate",
    "sketch",
    "solve",
    "started",
    "to_kernel",
]
