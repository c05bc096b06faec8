"""What a SIMT sketch must compute: a plain function of symbols comes in, a goal comes out.

`total` of a specification stands for the outer operator of an accumulator and `product` for the
inner one, whatever they are in the kernel: both are multisets. An accumulator that starts elsewhere
than at its neutral element, or is finalised, is told apart by `started` and `finalized`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.sketch.simt.ir import Array
from warploom.sketch.term.ir import Goal, Symbol, Term, size
from warploom.sketch.term.limits import show_shape
from warploom.sketch.term.spec import Sym, fold, symbols, terms_of, total

# Symbols that stand for a name rather than an input's element.
_MARKS = 1 << 32


def mark(name: str) -> Symbol:
    """The symbol that stands for this name in terms."""
    return Symbol(_MARKS + zlib.crc32(name.encode()))


def _mark(name: str) -> Sym:
    return Sym("", (), mark(name))


def finalized(name: str, value: Any) -> Sym:
    """What an accumulator with `finalize=name` gives for this value."""
    return fold([value, _mark(f"finalize {name}")])


def started(init: float, items: Any) -> Sym:
    """The sum of items in an accumulator that starts at `init`."""
    return total([*items, _mark(start_name(init))])


def start_name(init: float) -> str:
    return f"init {float(init)}"


def goal_of(
    specification: Callable[..., Any],
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    sizes: Mapping[str, int],
) -> Goal:
    """Runs the specification on symbols; several outputs are laid end to end."""
    arrays, start = [], 0
    for array in inputs:
        arrays.append(symbols(array.shape, start))
        start += size(array.shape)
    result = specification(*arrays, **sizes)
    parts = (result,) if len(outputs) == 1 else tuple(result)
    if len(parts) != len(outputs):
        raise CheckError(
            f"the specification returns {len(parts)} arrays for {len(outputs)} outputs"
        )
    values: list[Term] = []
    for part, array in zip(parts, outputs, strict=True):
        shape, terms = terms_of(np.asarray(part, object))
        if shape != array.shape:
            raise CheckError(
                f"the specification gives '{array.name}' the shape {show_shape(shape)}, "
                f"the sketch {show_shape(array.shape)}"
            )
        values += terms
    own = outputs[0].shape if len(outputs) == 1 else (len(values),)
    return Goal(own, tuple(values), getattr(specification, "__name__", ""))
