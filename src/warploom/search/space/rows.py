"""Rows of integers, told apart: `np.unique` along an axis, several times faster."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


def distinct_rows(rows: Ids) -> tuple[Ids, Ids]:
    """Where each different row first is, in ascending order of the rows, and which of these each
    row is."""
    count, width = rows.shape
    if not count or not width:  # no columns: all rows are equal
        return np.zeros(min(count, 1), np.int64), np.zeros(count, np.int64)
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    fresh = np.ones(count, np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(count, np.int64)
    which[order] = np.cumsum(fresh) - 1
    return order[fresh], which
