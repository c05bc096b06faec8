"""Listed tuples: the domains of several choices against a table of allowed rows of values.

Rows of the table are bits: the rows that are still possible are those that every choice supports,
and a value stays if one of them has it (compact tables, Demeulenaere et al. 2016, without the
history).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.search.branching.candidate import Bits, Index
from warploom.search.propagate.state import State

# Words of supports looked at in one go.
AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class TupleGroup:
    """`supports[i, j, v]` are the rows (as bits) in which choice j of instance i has value v."""

    name: str
    scope: Index
    supports: Bits

    @property
    def count(self) -> int:
        return len(self.scope)

    def reads(self) -> tuple[Index, Index]:
        count, width = self.scope.shape
        return np.repeat(np.arange(count), width), self.scope.reshape(-1)

    def filter(self, state: State, row: Index, instance: Index) -> None:
        step = max(1, AT_ONCE // self.supports[0].size)
        for start in range(0, len(row), step):
            self._filter(state, row[start : start + step], instance[start : start + step])

    def _filter(self, state: State, row: Index, instance: Index) -> None:
        scope, supports = self.scope[instance], self.supports[instance]
        domain = state.domain(row[:, None], scope)
        bits = np.arange(self.supports.shape[2], dtype=np.uint64)
        held = (domain[:, :, None] >> bits & np.uint64(1)).astype(bool)
        ruled_in = np.where(held[..., None], supports, np.uint64(0))
        rows = np.bitwise_and.reduce(np.bitwise_or.reduce(ruled_in, axis=2), axis=1)
        left = held & ((supports & rows[:, None, None, :]) != 0).any(axis=3)
        allowed = (left * (np.uint64(1) << bits)).sum(axis=2, dtype=np.uint64)
        width = scope.shape[1]
        state.restrict(np.repeat(row, width), scope.reshape(-1), allowed.reshape(-1))


def supports_of(rows: Index, values: int, room: int) -> Bits:
    """`rows[t, j]` is the value of choice j in row t of a table: [choices, values, words], with
    room for that many rows."""
    count, width = rows.shape
    found = np.zeros((width, values, max(1, -(-room // 64))), np.uint64)
    number = np.arange(count)
    bit = np.uint64(1) << (number % 64).astype(np.uint64)
    for column in range(width):
        np.bitwise_or.at(found[column], (rows[:, column], number // 64), bit)
    return found
