"""What sizes are at least, if those of one axis are known and all others are open.

    axis kgs, sk | K        K // kgs of each row of that axis; K // kgs of any row, elsewhere

Every size of a buffer or loop is bounded by itself, so products of them are bounded too, though no
candidate may have all of these at once. What has no room even so is in no candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.array.joint.axes import Axis
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables

Ints = npt.NDArray[np.int64]
MOST_TRIED = 1 << 20  # rows of several axes together


@dataclass(frozen=True, slots=True)
class Least:
    """The rows of `axis` beside all rows of the `others`."""

    axis: Axis
    others: Sequence[Axis]
    given: Mapping[str, int]
    _known: dict[Expr, Ints] = field(default_factory=dict)

    def of(self, expr: Expr) -> Ints:
        """For each row of the axis, or one number for all."""
        if expr not in self._known:
            self._known[expr] = self._least(expr)
        return self._known[expr]

    def _least(self, expr: Expr) -> Ints:
        names = variables(expr)
        own = np.unique(self._columns(self.axis, names), axis=0, return_inverse=True)
        tables = [own[0]] if names & set(self.axis.names) else []
        used = [self.axis] if tables else []
        for each in self.others:
            if names & set(each.names):
                used.append(each)
                tables.append(np.unique(self._columns(each, names), axis=0))
        counts = [len(each) for each in tables]
        if np.prod([float(each) for each in counts]) > MOST_TRIED:
            return np.ones(1, np.int64)
        places = np.indices(counts).reshape(len(counts), -1) if counts else np.zeros((0, 1), int)
        env: dict[str, Ints] = {name: np.asarray(value) for name, value in self.given.items()}
        for axis, table, at in zip(used, tables, places, strict=True):
            held = [name for name in axis.names if name in names]
            env |= {name: table[at, k] for k, name in enumerate(held)}
        found = np.broadcast_to(np.asarray(evaluate(expr, env), np.int64), places.shape[1:])
        if not (names & set(self.axis.names)):
            lowest: Ints = found.min(keepdims=True)
            return lowest
        by_row: Ints = found.reshape(counts[0], -1).min(1)[own[1].reshape(-1)]
        return by_row

    @staticmethod
    def _columns(axis: Axis, names: frozenset[str]) -> Ints:
        found: Ints = axis.rows[:, [k for k, name in enumerate(axis.names) if name in names]]
        return found
