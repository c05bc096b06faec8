"""The paper's viability tests: can the live values of a state still reach the goal?

States come in as rows of all live values (see `flow.py`), flags come out. A state that fails is in
no solution: a term of the goal that no later step can bring in must flow to each of its cells from
a live slot that holds it, and any two of them must do so under the same choices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.sketch.synth.flow import Amounts, Flags, Index, packed
from warploom.sketch.synth.subterms import COUNTED_EXACTLY, ZERO_ID, Bits, Ids, Subterms

WORDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Viability:
    """The tests after one segment: `keep` of the paper's Algorithms 2, 3 and 4."""

    domain: Subterms
    goal: Ids
    terms: Index  # the universe
    least: Amounts
    most: Amounts
    single: Flags | None = None
    pairs: Bits | None = None
    fuel: int | None = None

    def reachable(self, states: Ids) -> Flags:
        """Which states pass the test on pairs, or on single locations."""
        left = np.arange(len(states))
        goal = self.domain.unpack(self.domain.contains[self.goal])[:, self.terms].T
        held = self.domain.unpack(self.domain.contains)[:, self.terms]
        for number in range(len(self.terms)):
            if len(left) == 0:
                break
            if self.single is not None:
                good = self._reaches(held[:, number][states[left]], goal[number])
            else:
                good = self._pairs_reach(states[left], number, held, goal)
            left = left[good]
        keep = np.zeros(len(states), dtype=np.bool_)
        keep[left] = True
        return keep

    def _reaches(self, holders: Flags, wanted: Flags) -> Flags:
        assert self.single is not None
        reached = holders.astype(np.float32) @ self.single[:, wanted].astype(np.float32)
        return np.asarray((reached > 0).all(axis=1))

    def _pairs_reach(self, states: Ids, number: int, held: Flags, goal: Flags) -> Flags:
        """Term `number` with each later term, then with itself; `fuel` of them at most."""
        assert self.pairs is not None
        others = np.r_[number + 1 : len(self.terms), number][: self.fuel]
        cells = np.flatnonzero(goal[number])
        wanted = packed(goal[others])
        first = held[:, number][states]
        good = np.zeros(len(states), dtype=np.bool_)
        slots = states.shape[1]
        each = slots * (len(cells) * wanted.shape[1] * (1 + int(first.sum(axis=1).max(initial=0))))
        step = max(1, WORDS_AT_ONCE // (each + slots * len(others)))
        for start in range(0, len(states), step):
            part = slice(start, start + step)
            second = held[:, others][states[part]]
            good[part] = _all_reach(self.pairs, cells, first[part], second, wanted)
        return good

    def counts(self, states: Ids) -> Flags:
        """Which states copy no term too often for the goal, nor too seldom."""
        size = len(self.domain)
        copies = self.domain.copies
        wanted = copies[self.goal].sum(axis=0)
        tested = wanted < COUNTED_EXACTLY
        terms = self.terms[tested[self.terms]]
        tested[ZERO_ID] = False  # zeros vanish in folds: they do not count
        good = np.ones(len(states), dtype=np.bool_)
        step = max(1, WORDS_AT_ONCE // max(size, states.shape[1]))
        for start in range(0, len(states), step):
            part = states[start : start + step]
            keys = (part + np.arange(len(part))[:, None] * size).ravel()
            low, high = (
                np.bincount(keys, np.tile(amounts, len(part)), size * len(part)).reshape(-1, size)
                @ copies
                for amounts in np.minimum((self.least, self.most), COUNTED_EXACTLY)
            )
            # Whatever later steps bring in only adds, so the lower bound holds for every term.
            wrong = (low > wanted)[:, tested].any(axis=1) | (high < wanted)[:, terms].any(axis=1)
            good[start : start + step] = ~wrong
        return good


def _all_reach(pairs: Bits, cells: Index, first: Flags, second: Flags, wanted: Bits) -> Flags:
    """For each state: does every pair of goal cells have a pair of holders behind it?

    `first[s, slot]` says which slots hold the first term, which must reach all `cells`;
    `second[s, slot, b]` which hold the b-th other term, which must reach `wanted[b]`.
    """
    states, others = len(first), len(wanted)
    size = (len(cells), wanted.shape[1])
    row, slot = np.nonzero(first)
    rows = pairs[slot[:, None, None], np.arange(len(pairs))[:, None], cells]
    joined = np.zeros((states, len(pairs), *size), dtype=np.uint64)
    _unite(row, rows, joined)
    row, other, slot = np.nonzero(second.transpose(0, 2, 1))
    found = np.zeros((states * others, *size), dtype=np.uint64)
    _unite(row * others + other, joined[row, slot], found)
    met = (found.reshape(states, others, *size) & wanted[:, None]) == wanted[:, None]
    return np.asarray(met.all(axis=(1, 2, 3)))


def _unite(group: Index, rows: Bits, out: Bits) -> None:
    """Puts the union of the rows of each group, which lie together, into `out`."""
    if len(group):
        starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        out[group[starts]] = np.bitwise_or.reduceat(rows, starts, axis=0)
