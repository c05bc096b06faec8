"""A batch of candidates while it is propagated: domains only shrink, and every change is noted."""

from __future__ import annotations

import numpy as np

from warploom.search.branching.candidate import Bits, Candidates, Flags, Index, Numbers


class State:
    """`changed[r * variables + v]`: variable v (a choice, or behind those a counter) of candidate r
    has changed since it was last looked at. Rows that are not `alive` have no solution."""

    def __init__(self, candidates: Candidates) -> None:
        self.rows, self.choices = candidates.domains.shape
        self.counters = candidates.low.shape[1]
        self.variables = self.choices + self.counters
        self.domains: Bits = candidates.domains.reshape(-1)
        self.low: Numbers = candidates.low.reshape(-1)
        self.high: Numbers = candidates.high.reshape(-1)
        self.changed: Flags = np.zeros(self.rows * self.variables, np.bool_)
        self.alive: Flags = np.ones(self.rows, np.bool_)

    def domain(self, row: Index, position: Index) -> Bits:
        found: Bits = self.domains.take(row * self.choices + position)
        return found

    def range(self, row: Index, counter: Index) -> tuple[Numbers, Numbers]:
        place = row * self.counters + counter
        return self.low.take(place), self.high.take(place)

    def restrict(self, row: Index, position: Index, allowed: Bits) -> None:
        """Keeps the allowed values; the same instance may come several times."""
        place = row * self.choices + position
        smaller = (self.domains.take(place) & ~allowed) != 0
        if not smaller.any():
            return
        row, position, place = row[smaller], position[smaller], place[smaller]
        np.bitwise_and.at(self.domains, place, allowed[smaller])
        self.changed[row * self.variables + position] = True
        self.alive[row[self.domains.take(place) == 0]] = False

    def at_least(self, row: Index, counter: Index, low: Numbers) -> None:
        self._bound(np.maximum, self.low, row, counter, low)

    def at_most(self, row: Index, counter: Index, high: Numbers) -> None:
        self._bound(np.minimum, self.high, row, counter, high)

    def _bound(
        self, keep: np.ufunc, side: Numbers, row: Index, counter: Index, bound: Numbers
    ) -> None:
        place = row * self.counters + counter
        old = side.take(place)
        closer = keep(old, bound) != old
        if not closer.any():
            return
        row, counter, place = row[closer], counter[closer], place[closer]
        keep.at(side, place, bound[closer])
        self.changed[row * self.variables + self.choices + counter] = True
        self.alive[row[self.low.take(place) > self.high.take(place)]] = False

    def fail(self, row: Index) -> None:
        self.alive[row] = False
