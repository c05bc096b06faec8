"""Between which numbers an index of a sketch lies, over all its lanes and iterations; and which
register arrays are read before every register of them is set."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import HIGHEST, LOWEST, evaluate
from warploom.index.ir import Const, Expr, variables
from warploom.index.ir import walk as walk_parts
from warploom.index.ranges import Ranges, range_of
from warploom.index.show import show
from warploom.sketch.simt.ir import Read, Stmt, Traced, Write, walk
from warploom.sketch.term.gather import strides
from warploom.sketch.term.ir import size

_EXACT = 1 << 18  # combinations of lanes and iterations that are all tried


def reach(expr: Expr, extents: Mapping[str, int]) -> tuple[int, int]:
    """The least and the greatest value, both included; bounds of them where there are too many."""
    over = {name: extents[name] for name in sorted(variables(expr))}
    if math.prod(over.values()) > _EXACT:
        return range_of(expr, {name: (0, count - 1) for name, count in over.items()})
    values = _values(expr, over)
    return int(values.min()), int(values.max())


def check_width(expr: Expr, extents: Mapping[str, int]) -> None:
    """Refuses an index of which some part may overflow 64 bits: nobody says what it is then."""
    ranges = Ranges({name: (0, count - 1) for name, count in extents.items()})
    for part in walk_parts(expr):
        low, high = ranges.of(part)
        if low < LOWEST or high > HIGHEST:
            raise CheckError(f"{show(part)[:80]} may overflow 64 bits")


def partly_set(traced: Traced, body: tuple[Stmt, ...]) -> frozenset[str]:
    """The register arrays of which something is read while a part has not been written.

    A loop either reads or writes an array, so it is enough to look at one outermost statement after
    the other.
    """
    kept = {a.name: a.shape for a in traced.arrays.values() if a.space == "register"}
    written: dict[str, set[int]] = {name: set() for name in kept}
    partly: set[str] = set()
    for outer in body:
        inside = [stmt for stmt in walk((outer,)) if isinstance(stmt, Read | Write)]
        for stmt in inside:
            own = kept.get(stmt.array) if isinstance(stmt, Read) else None
            if own is not None and len(written[stmt.array]) < size(own):
                partly.add(stmt.array)
        for stmt in inside:
            if isinstance(stmt, Write) and stmt.array in kept:
                place: Expr = Const(0)
                for expr, stride in zip(stmt.index, strides(kept[stmt.array]), strict=True):
                    place = place + expr * stride
                written[stmt.array] |= set(_values(place, traced.extents).ravel().tolist())
    return frozenset(partly)


def _values(expr: Expr, extents: Mapping[str, int]) -> npt.NDArray[np.int64]:
    over = {name: extents[name] for name in sorted(variables(expr))}
    axes = np.indices(tuple(over.values()), sparse=True)
    return np.asarray(evaluate(expr, dict(zip(over, axes, strict=True))))
