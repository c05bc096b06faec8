"""Costs of columns for sets that are no subspaces, and where words may be shared as one likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice

import numpy as np

from warploom.layout.language.evaluate import Numbers, distinct
from warploom.layout.solver.demand import Demand, Demands
from warploom.layout.solver.subspace import Span, elements
from warploom.search.budget import governing_budget

Shared = tuple[int, ...]  # directions that share a word
BATCH = 1 << 12  # choices that are weighed at once


def scattered_least(demand: Demand, columns: Sequence[int], depth: int, loose: int) -> int:
    """The wavefronts that a set takes at least when the columns of `depth` coordinates are known:
    points that differ in those alone and have one bank are in one bank whatever comes."""
    points = np.array(demand.points, dtype=np.int64)
    bank = np.zeros_like(points)
    for place in range(depth):
        bank ^= (points >> place & 1) * columns[place]
    together = (points >> depth << 16) | bank
    _, counts = np.unique(together, return_counts=True)
    return -(-int(counts.max()) // (1 << loose))


class Sharing:
    """The best choice of directions that share a word, for columns of all coordinates.

    Up to two directions are free: elements have at least one byte, and a word four.
    """

    def __init__(self, demands: Demands, worst: bool) -> None:
        self._demands, self._worst = demands, worst
        self._loose = demands.frame.loose_bits
        self._accesses = 1 + max(demand.access for demand in demands.demands)

    def best(self, columns: tuple[int, ...]) -> tuple[int, Shared]:
        """The least cost, and directions that give it; they stay in one bank."""
        if not self._loose:
            return self._exact(columns, ()), ()
        kernel = elements(kernel_basis(columns))
        if any(demand.basis is None for demand in self._demands.demands):
            found = ((self._exact(columns, s), s) for s in _choices(kernel, self._loose))
            return min(found, key=lambda pair: pair[0])
        inside = self._members[:, kernel]
        batches = batched(_choices(kernel, self._loose), BATCH)
        return min(
            (self._of_subspaces(kernel, inside, some) for some in batches), key=lambda pair: pair[0]
        )

    def _exact(self, columns: tuple[int, ...], shared: Shared) -> int:
        costs = [0] * self._accesses
        for demand in self._demands.demands:
            taken = wavefronts(demand, columns, shared)
            costs[demand.access] += demand.weight * max(demand.least, taken)
        return max(costs) if self._worst else sum(costs)

    @cached_property
    def _members(self) -> Numbers:
        """[demand, point]: 1 where a point is in the demand."""
        size = 1 << (self._demands.frame.place_bits + len(self._demands.frame.free))
        found = np.zeros((len(self._demands.demands), size), dtype=np.int64)
        for row, demand in zip(found, self._demands.demands, strict=True):
            row[list(demand.points)] = 1
        return found

    def _of_subspaces(
        self, kernel: Numbers, inside: Numbers, choices: list[Shared]
    ) -> tuple[int, Shared]:
        """U takes 2^(dim(U∩K) − dim(U∩T)), and dim(U∩T) is told by which of T's points U has."""
        lost = np.log2(inside.sum(axis=1)).astype(np.int64)
        place = {int(vector): number for number, vector in enumerate(kernel)}
        spans = [[place[int(x)] for x in elements(shared)] for shared in choices]
        met = np.log2(inside[:, np.array(spans)].sum(axis=2)).astype(np.int64)
        weight = np.array([d.weight for d in self._demands.demands], dtype=object)[:, None]
        least = np.array([demand.least for demand in self._demands.demands])[:, None]
        costs = weight * np.maximum(least, 1 << (lost[:, None] - met))
        by_access = np.zeros((self._accesses, len(choices)), dtype=object)  # of any size: exact
        np.add.at(by_access, [demand.access for demand in self._demands.demands], costs)
        total = by_access.max(axis=0) if self._worst else by_access.sum(axis=0)
        chosen = int(np.argmin(total))
        return int(total[chosen]), choices[chosen]


def _choices(kernel: Numbers, loose: int) -> Iterator[Shared]:
    """Independent directions within one bank, as many as can share a word."""
    count = min(loose, len(kernel).bit_length() - 1)
    seen = set()
    budget = governing_budget()
    for some in combinations(kernel[1:].tolist(), count):
        budget.check()
        span = tuple(sorted(elements(some).tolist()))
        if len(Span(some)) == count and span not in seen:
            seen.add(span)
            yield some


def batched(choices: Iterator[Shared], size: int) -> Iterator[list[Shared]]:
    while some := list(islice(choices, size)):
        yield some


def wavefronts(demand: Demand, columns: Sequence[int], shared: Sequence[int] = ()) -> int:
    """What a set of points takes: the most different words in one bank."""
    points = np.array(demand.points, dtype=np.int64)
    # Of all points that share a word the least stands for them.
    words = distinct((points[:, None] ^ elements(shared)).min(axis=1))
    bank = np.zeros_like(words)
    for place, column in enumerate(columns):
        bank ^= (words >> place & 1) * column
    return int(np.bincount(bank).max())


def kernel_basis(columns: Sequence[int]) -> list[int]:
    """Vectors that span what all columns send to bank 0.

    >>> kernel_basis([1, 1, 2])
    [3]
    """
    rows: list[tuple[int, int]] = []
    kernel = []
    for place, column in enumerate(columns):
        source = 1 << place
        for image, other in rows:
            if column ^ image < column:
                column, source = column ^ image, source ^ other
        if column:
            rows.append((column, source))
            rows.sort(reverse=True)
        else:
            kernel.append(source)
    return kernel
