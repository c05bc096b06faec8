"""Small tables: the domains of a few choices, packed into one word, are looked up at once.

All clauses on the same few choices are one table of allowed tuples of values. For any sets of
values (packed side by side into a word) the table says what is left of them: every value that is in
an allowed tuple within the sets. So one look-up does all that these clauses can do together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.search.branching.candidate import Flags, Index
from warploom.search.propagate.state import State

Words = npt.NDArray[np.uint32]


def closure(allowed: Flags) -> Words:
    """For each packed tuple of sets, the sets without values that no allowed tuple supports.

    `allowed` has an axis for each choice. A tuple of single values is kept whole or lost. What is
    left of larger sets is the union of what is left of the parts, so they are built up bit by bit:

        left[… 1 …] |= left[… 0 …]      for each bit in turn
    """
    widths = allowed.shape
    shifts = np.cumsum((0, *widths))[:-1]
    left = np.zeros(1 << sum(widths), np.uint32)
    single = (1 << (np.argwhere(allowed) + shifts)).sum(axis=1)
    left[single] = single
    for bit in range(sum(widths)):
        halves = left.reshape(-1, 2, 1 << bit)
        halves[:, 1] |= halves[:, 0]
    return left


@dataclass(frozen=True, slots=True, eq=False)
class PackedGroup:
    """Tables over equally many choices. For choice j of instance i: `scope[j, i]` is its position,
    `shift[j, i]` where its domain lies in the packed word, `mask[j, i]` as many ones as it has
    values. `table[i]` is where the table of instance i starts in `tables`."""

    name: str
    scope: Index
    shift: Index
    mask: Index
    table: Index
    tables: Words

    @property
    def count(self) -> int:
        return len(self.table)

    def reads(self) -> tuple[Index, Index]:
        """(instance, variable) pairs: what makes an instance worth looking at again."""
        width, count = self.scope.shape
        return np.tile(np.arange(count), width), self.scope.reshape(-1)

    def filter(self, state: State, row: Index, instance: Index) -> None:
        domains = state.domains.view(np.int64)
        start = row * state.choices
        packed = np.zeros(len(row), np.int64)
        for position, shift in zip(self.scope, self.shift, strict=True):
            packed |= domains.take(start + position.take(instance)) << shift.take(instance)
        left = self.tables.take(self.table.take(instance) + packed)
        smaller = np.flatnonzero(left != packed)
        if len(smaller):
            self._store(state, row[smaller], instance[smaller], left[smaller].astype(np.int64))

    def _store(self, state: State, row: Index, instance: Index, left: Index) -> None:
        for position, shift, mask in zip(self.scope, self.shift, self.mask, strict=True):
            allowed = left >> shift.take(instance) & mask.take(instance)
            state.restrict(row, position.take(instance), allowed.view(np.uint64))
