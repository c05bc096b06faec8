"""Between which numbers an index of a sketch lies, over all its lanes and iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables
from warploom.index.ranges import range_of

_EXACT = 1 << 18  # combinations of lanes and iterations that are all tried


def reach(expr: Expr, extents: Mapping[str, int]) -> tuple[int, int]:
    """The least and the greatest value, both included; bounds of them where there are too many."""
    over = {name: extents[name] for name in sorted(variables(expr))}
    if math.prod(over.values()) > _EXACT:
        return range_of(expr, {name: (0, count - 1) for name, count in over.items()})
    axes = np.indices(tuple(over.values()), sparse=True)
    values = np.asarray(evaluate(expr, dict(zip(over, axes, strict=True))))
    return int(values.min()), int(values.max())
