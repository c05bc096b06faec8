"""What a SIMT sketch must compute: a plain function of symbols comes in, a goal comes out.

Its folds have operators, as accumulators do: `total` is `+`, `product` is `*`, `bit_xor` is `^`, …
(`term/spec.py`). An accumulator that starts elsewhere than at its neutral element is `started`, one
that is finalised `finalized`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warploom.errors import CheckError, defining_line
from warploom.sketch.simt.ir import Array
from warploom.sketch.term.ir import Goal, Term, size
from warploom.sketch.term.laws import default_laws
from warploom.sketch.term.limits import show_shape
from warploom.sketch.term.spec import finalized as finalized
from warploom.sketch.term.spec import specify
from warploom.sketch.term.spec import started as started


def goal_of(
    specification: Callable[..., Any],
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    sizes: Mapping[str, int],
) -> Goal:
    """Runs the specification on symbols; several outputs are laid end to end."""
    arrays, start = [], 0
    for array in inputs:
        count = size(array.shape)
        arrays.append(np.arange(start, start + count).reshape(array.shape))
        start += count
    parts, kept = specify(specification, arrays, sizes, len(outputs))
    values: list[Term] = []
    for (shape, terms), array in zip(parts, outputs, strict=True):
        if shape != array.shape:
            raise CheckError(
                f"the specification gives '{array.name}' the shape {show_shape(shape)}, "
                f"the sketch {show_shape(array.shape)}"
            )
        values += terms
    own = outputs[0].shape if len(outputs) == 1 else (len(values),)
    text, span = getattr(specification, "__name__", ""), defining_line(specification)
    return Goal(own, tuple(values), text, span, default_laws(values), kept)
