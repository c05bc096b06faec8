"""Trying every value of a small box: where is a condition false?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables

# Boxes of up to this many values are tried whole.
MAX_TRIED = 1 << 20


def box_size(box: Mapping[str, tuple[int, int]]) -> int:
    return math.prod(high - low + 1 for low, high in box.values())


def box_axes(box: Mapping[str, tuple[int, int]]) -> dict[str, npt.NDArray[np.int64]]:
    """Every value of a box, one axis for each variable."""
    axes = np.ix_(*[np.arange(low, high + 1) for low, high in box.values()])
    return dict(zip(box, axes, strict=True))


def first_where(condition: Expr, box: Mapping[str, tuple[int, int]]) -> dict[str, int] | None:
    """The first values in a box for which a condition is true, if there are any."""
    sizes = tuple(high - low + 1 for low, high in box.values())
    result = evaluate(condition, box_axes(box))
    places = np.flatnonzero(np.broadcast_to(np.asarray(result), sizes))
    if not len(places):
        return None
    where = np.unravel_index(places[0], sizes)
    return {name: low + int(at) for (name, (low, _)), at in zip(box.items(), where, strict=True)}


def holds_in_box(
    goal: Expr, hypotheses: Iterable[Expr], box: Mapping[str, tuple[int, int]]
) -> bool | None:
    """Whether a goal holds wherever those hypotheses do that are about the box alone.

    None if that cannot be said: something is undefined somewhere.
    """
    failing: Expr = goal.not_()
    for each in hypotheses:
        names = variables(each)
        if names and names <= box.keys():
            failing = failing.and_(each)
    try:
        return first_where(failing, box) is None
    except CheckError:
        return None
