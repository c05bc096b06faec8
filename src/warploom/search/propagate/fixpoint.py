"""Runs filters on a batch of candidates until nothing changes: only what a change touches.

Every filter is monotone (smaller domains never leave more) and only removes, so the largest domains
that no filter can shrink are reached in whatever order they run: decisions commute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from warploom.search.branching.candidate import Flags, Index
from warploom.search.propagate.state import State

# Marking in a table of all (instance, candidate) pairs beats sorting if it is not too large.
MARKED_PER_ITEM = 128


class Group(Protocol):
    """Constraints of one shape: `filter` removes what they rule out, for pairs of a candidate and
    an instance; `reads` says which variables make it worth looking again."""

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    def reads(self) -> tuple[Index, Index]: ...
    def filter(self, state: State, row: Index, instance: Index) -> None: ...


class Fixpoint:
    """The groups of a space. Instances are numbered through, group after group."""

    def __init__(self, groups: Sequence[Group], variables: int) -> None:
        self.groups = tuple(groups)
        self.starts: Index = np.cumsum([0, *(group.count for group in groups)])
        self.instances = int(self.starts[-1])
        found = [group.reads() for group in groups]
        nothing = np.zeros(0, np.int64)
        numbered = [i + start for (i, _), start in zip(found, self.starts[:-1], strict=True)]
        instance = np.concatenate([nothing, *numbered])
        variable = np.concatenate([nothing, *(v for _, v in found)])
        order = np.argsort(variable, kind="stable")
        self._readers: Index = instance[order]
        self._first: Index = np.searchsorted(variable[order], np.arange(variables + 1))
        self.rounds = 0

    def run_all(self, state: State) -> Flags:
        """Every filter at least once."""
        items = np.arange(self.instances * state.rows)
        self._filter(state, items)
        return self.run(state)

    def run(self, state: State) -> Flags:
        """Filters what the noted changes touch; says which candidates are alive."""
        while len(items := self._touched(state)):
            self._filter(state, items)
        return state.alive

    def _touched(self, state: State) -> Index:
        """Instances that read a changed variable of a candidate, as instance * rows + candidate."""
        pending = np.flatnonzero(state.changed)
        state.changed[pending] = False
        row, variable = np.divmod(pending, state.variables)
        alive = state.alive[row]
        if not alive.all():
            row, variable = row[alive], variable[alive]
        first = self._first[variable]
        sizes = self._first[variable + 1] - first
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        if not total:
            return pending[:0]
        which = np.repeat(np.arange(len(row)), sizes)
        reader = self._readers[np.arange(total) + (first - ends + sizes)[which]]
        items: Index = reader * state.rows + row[which]
        return self._distinct(items, self.instances * state.rows)

    def _distinct(self, items: Index, size: int) -> Index:
        """Sorted, each once."""
        if size > MARKED_PER_ITEM * len(items):
            ordered = np.sort(items)  # several times faster than np.unique
            return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
        marked = np.zeros(size, np.bool_)
        marked[items] = True
        return np.flatnonzero(marked)

    def _filter(self, state: State, items: Index) -> None:
        self.rounds += 1
        cuts = np.searchsorted(items, self.starts * state.rows)
        for number, group in enumerate(self.groups):
            own = items[cuts[number] : cuts[number + 1]]
            if not len(own):
                continue
            instance, row = np.divmod(own, state.rows)
            alive = state.alive[row]
            if not alive.all():
                row, instance = row[alive], instance[alive]
            if len(row):
                group.filter(state, row, instance - self.starts[number])
