"""All fills of the final states at once: a graph that is counted and searched, not written out.

The final states come in with how they came about (`rows.Origin`). Out come the exact number of
their fills, the first ones in lexicographic order, and those of least cost. Nothing here grows with
the number of fills, which may be astronomical: equal states are one row of the graph.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from warploom.search.budget import STOPS, Budget
from warploom.sketch.synth.problem import Problem
from warploom.sketch.synth.rows import Columns, Index, Origin, Rows, spread, trimmed
from warploom.sketch.term.ir import Apply

Choices = npt.NDArray[np.int64]  # [fills, holes]
Fill = tuple[int, ...]
Price = Callable[[int, int], int]  # of a hole and its choice

EXACT = 2**62  # below this, products and sums of counts fit a machine word
CHECK_EVERY = 64  # fills


@dataclass(frozen=True, slots=True, eq=False)
class Derivations:
    """`tops` have one row each, with one alternative for each final state of a batch."""

    holes: tuple[int, ...]
    tops: tuple[Origin, ...]

    def count(self) -> int:
        """How many fills there are, exactly."""
        ways: dict[int, npt.NDArray[np.generic]] = {}
        for origin in self._parents_first():
            each: npt.NDArray[np.generic] = np.ones(origin.alternatives, np.int64)
            for parent, at in origin.parents:
                each = _times(each, ways[id(parent)][at])
            ways[id(origin)] = _sums(each, origin.starts)
        return sum(int(ways[id(top)][0]) for top in self.tops)

    def first(self, limit: int, budget: Budget) -> Choices:
        """The first fills in lexicographic order; fewer if the budget is spent on the way."""
        if self.count() <= limit:
            return self._all()
        found: list[Fill] = []
        try:
            with budget.enforced():
                for fill in islice(self._in_order(budget), limit):
                    found.append(fill)
                    if len(found) % CHECK_EVERY == 0:
                        budget.check()
        except STOPS:
            found = found or [_any_fill(self.tops[0], self.holes)]
        return np.array(found, np.int64).reshape(len(found), len(self.holes))

    def cheapest(self, price: Price) -> Derivations:
        """Only those fills whose prices, summed over the holes, are least."""
        least: dict[int, Index] = {}
        kept: dict[int, Origin] = {}
        for origin in self._parents_first():
            cost = sum(
                (_priced(hole, choices, price) for hole, choices in origin.choices.items()),
                start=np.zeros(origin.alternatives, np.int64),
            )
            for parent, at in origin.parents:
                cost += least[id(parent)][at]
            least[id(origin)], tight = _least(cost, origin.starts)
            kept[id(origin)] = _with_alternatives(origin, tight, kept)
        best = min((int(least[id(top)][0]) for top in self.tops), default=0)
        tops = [kept[id(top)] for top in self.tops if least[id(top)][0] == best]
        # What only dearer fills went through is gone with them.
        return Derivations(self.holes, tuple(trimmed(top, np.zeros(1, np.int64)) for top in tops))

    def _all(self) -> Choices:
        tables = [_written_out(top, self.holes) for top in self.tops]
        table = np.concatenate([np.zeros((0, len(self.holes)), np.int64), *tables])
        return table[np.lexsort(table.T[::-1])] if len(self.holes) else table

    def _in_order(self, budget: Budget) -> Iterator[Fill]:
        ranked = _ranks(self._parents_first(), budget)
        graph = _Graph(ranked)
        return heapq.merge(*(graph.fills(top) for top in self.tops))

    def _parents_first(self) -> list[Origin]:
        """Every origin once."""
        found: dict[int, Origin] = {}
        stack: list[tuple[Origin, bool]] = [(top, False) for top in reversed(self.tops)]
        while stack:
            origin, ready = stack.pop()
            if ready:
                found[id(origin)] = origin
            elif id(origin) not in found:
                stack.append((origin, True))
                stack.extend((parent, False) for parent, _ in origin.parents)
        return list(found.values())


def derivations(problem: Problem, finals: Sequence[Rows], shared: dict[int, Rows]) -> Derivations:
    """Final states carry keys of the shared values they use, whose own fills are part of theirs;
    holes that nothing depends on take every choice."""
    free = [_any_choice(problem, hole) for hole in problem.free_holes]
    tops = []
    for rows in finals:
        n = len(rows)
        parents = [(rows.origin, np.arange(n))]
        for key, column in rows.keys.items():
            used, now = np.unique(column, return_inverse=True)
            parents.append((trimmed(shared[key].origin, used), now.ravel()))
        parents += [(origin, np.zeros(n, np.int64)) for origin in free]
        tops.append(Origin(1, np.array([0, n]), tuple(parents)))
    return Derivations(problem.program.holes, tuple(tops))


def _any_choice(problem: Problem, hole: int) -> Origin:
    step = problem.program.steps[hole]
    assert isinstance(step, Apply)
    options = len(step.gathers)
    return Origin(1, np.array([0, options]), (), {hole: np.arange(options)})


# -- counting --------------------------------------------------------------------------------------


def _times(one: npt.NDArray[np.generic], two: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    if len(one) and int(one.max()) * int(two.max()) >= EXACT:
        one = one.astype(object)
    return np.asarray(np.multiply(one, two))


def _sums(each: npt.NDArray[np.generic], starts: Index) -> npt.NDArray[np.generic]:
    if len(starts) == 1:
        return each[:0]
    if int(each.max()) * len(each) >= EXACT:
        each = each.astype(object)
    return np.add.reduceat(each, starts[:-1])


# -- least cost ------------------------------------------------------------------------------------


def _priced(hole: int, choices: Index, price: Price) -> Index:
    kinds, which = np.unique(choices, return_inverse=True)
    return np.array([price(hole, int(choice)) for choice in kinds], np.int64)[which.ravel()]


def _least(cost: Index, starts: Index) -> tuple[Index, npt.NDArray[np.bool_]]:
    """The least cost of each row, and which alternatives have it."""
    if len(starts) == 1:
        return cost[:0], np.zeros(0, np.bool_)
    least = np.minimum.reduceat(cost, starts[:-1])
    return least, cost == np.repeat(least, np.diff(starts))


def _with_alternatives(
    origin: Origin, kept: npt.NDArray[np.bool_], parents: dict[int, Origin]
) -> Origin:
    """Only these alternatives, and parents replaced."""
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return Origin(
        origin.rows,
        counts[origin.starts],
        tuple((parents[id(parent)], at[kept]) for parent, at in origin.parents),
        {hole: choices[kept] for hole, choices in origin.choices.items()},
    )


# -- all of them -----------------------------------------------------------------------------------


def _written_out(top: Origin, holes: tuple[int, ...]) -> Choices:
    which, columns = _fills(top, np.zeros(1, np.int64))
    table = np.zeros((len(which), len(holes)), np.int64)
    for number, hole in enumerate(holes):
        table[:, number] = columns[hole]
    return table


def _fills(origin: Origin, rows: Index) -> tuple[Index, Columns]:
    """All fills of the given rows: which of `rows` each belongs to, and its choices."""
    which, alternative = spread(origin.starts, rows)
    columns = {hole: choice[alternative] for hole, choice in origin.choices.items()}
    for parent, at in origin.parents:
        again, more = _fills(parent, at[alternative])
        which, alternative = which[again], alternative[again]
        columns = {hole: choices[again] for hole, choices in columns.items()} | more
    return which, columns


def _any_fill(top: Origin, holes: tuple[int, ...]) -> Fill:
    """Some fill, with next to no work."""
    taken: dict[int, int] = {}
    stack = [(top, 0)]
    while stack:
        origin, row = stack.pop()
        if origin.choices or origin.parents:
            alternative = int(origin.starts[row])
            taken |= {hole: int(choices[alternative]) for hole, choices in origin.choices.items()}
            stack += [(parent, int(at[alternative])) for parent, at in origin.parents]
    return tuple(taken[hole] for hole in holes)


# -- the first of them, in order -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """An origin whose alternatives and rows are ordered by the first fill of each: the smaller the
    key or rank, the smaller the fill; equal ones have equal fills (rows that differ in keys)."""

    origin: Origin
    holes: tuple[int, ...]
    keys: Index
    rank: Index
    first: Index  # by row, the alternative with the smallest key


def _ranks(origins: list[Origin], budget: Budget) -> dict[int, _Ranked]:
    found: dict[int, _Ranked] = {}
    for origin in origins:
        budget.room_for(48 * origin.alternatives)
        holes = {hole for parent, _ in origin.parents for hole in found[id(parent)].holes}
        cone = tuple(sorted(holes | set(origin.choices)))
        keys = _radix_keys(origin, found)
        if keys is None:
            keys = _sorted_keys(origin, cone, found)
        first = _first_alternatives(keys, origin.starts)
        rank = np.unique(keys[first], return_inverse=True)[1].ravel()
        found[id(origin)] = _Ranked(origin, cone, keys, rank, first)
    return found


def _radix_keys(origin: Origin, found: dict[int, _Ranked]) -> Index | None:
    """Where the holes of one parent all come before those of the next, and its own last, a fill is
    a number with a digit for each of them. None: they are mixed, or the number is too long."""
    parts = [(found[id(parent)].holes, found[id(parent)].rank[at]) for parent, at in origin.parents]
    parts += [((hole,), choices) for hole, choices in origin.choices.items()]
    parts = sorted((part for part in parts if part[0]), key=lambda part: part[0])
    keys = np.zeros(origin.alternatives, np.int64)
    size = 1
    for number, (holes, digits) in enumerate(parts):
        if number and parts[number - 1][0][-1] > holes[0]:
            return None
        base = int(digits.max(initial=0)) + 1
        size *= base
        if size >= EXACT:
            return None
        keys = keys * base + digits
    return keys


def _sorted_keys(origin: Origin, holes: tuple[int, ...], found: dict[int, _Ranked]) -> Index:
    alternatives = np.arange(origin.alternatives)
    columns = _first_fills(origin, alternatives, found)
    table = np.stack([columns[hole] for hole in holes], axis=1)
    order = np.lexsort(table.T[::-1])
    new = (table[order][1:] != table[order][:-1]).any(axis=1)
    keys = np.zeros(len(order), np.int64)
    keys[order[1:]] = np.cumsum(new)
    return keys


def _first_fills(origin: Origin, alternatives: Index, found: dict[int, _Ranked]) -> Columns:
    """The first fill of each of these alternatives."""
    columns = {hole: choices[alternatives] for hole, choices in origin.choices.items()}
    for parent, at in origin.parents:
        columns |= _first_fills(parent, found[id(parent)].first[at[alternatives]], found)
    return columns


def _first_alternatives(keys: Index, starts: Index) -> Index:
    """For each row the first of its alternatives with the smallest key."""
    if len(starts) == 1:
        return keys[:0]
    at = np.flatnonzero(_least(keys, starts)[1])
    row = np.searchsorted(starts, at, "right") - 1
    return at[np.unique(row, return_index=True)[1]]


class _Graph:
    """Lists of fills by row, each grown only as far as someone asks."""

    def __init__(self, ranked: dict[int, _Ranked]) -> None:
        self._ranked = ranked
        self._rows: dict[tuple[int, int], _Row] = {}

    def fills(self, top: Origin) -> Iterator[Fill]:
        row = self.row(top, 0)
        number = 0
        while (fill := row.fill(number)) is not None:
            yield fill
            number += 1

    def row(self, origin: Origin, row: int) -> _Row:
        key = id(origin), row
        if key not in self._rows:
            self._rows[key] = _Row(self, self._ranked[id(origin)], row)
        return self._rows[key]

    def holes(self, origin: Origin) -> tuple[int, ...]:
        return self._ranked[id(origin)].holes


class _Row:
    """The fills of one row in order. A candidate is an alternative with the number of a fill of
    each of its parents' rows; the next one is either a parent's next fill or the next alternative.
    """

    def __init__(self, graph: _Graph, ranked: _Ranked, row: int) -> None:
        origin = ranked.origin
        start, end = origin.starts[row : row + 2].tolist()
        self._graph = graph
        self._origin = origin
        self._alternatives = start + np.argsort(ranked.keys[start:end], kind="stable")
        self._tried = 0
        self._found: list[Fill] = []
        self._heap: list[tuple[Fill, int, tuple[int, ...]]] = []
        given = [*origin.choices, *(h for p, _ in origin.parents for h in graph.holes(p))]
        self._order = [given.index(hole) for hole in ranked.holes]
        self._next_alternative()

    def fill(self, number: int) -> Fill | None:
        while len(self._found) <= number and self._heap:
            fill, tried, ranks = heapq.heappop(self._heap)
            self._found.append(fill)
            if not any(ranks):
                self._next_alternative()
            self._push_after(tried, ranks)
        return self._found[number] if number < len(self._found) else None

    def _next_alternative(self) -> None:
        if self._tried < len(self._alternatives):
            self._tried += 1
            self._push(self._tried - 1, (0,) * len(self._origin.parents))

    def _push_after(self, tried: int, ranks: tuple[int, ...]) -> None:
        """Each vector of numbers is reached once: from the one whose last number that is not zero
        is smaller by one."""
        last = max((i for i, rank in enumerate(ranks) if rank), default=0)
        for i in range(last, len(ranks)):
            self._push(tried, (*ranks[:i], ranks[i] + 1, *ranks[i + 1 :]))

    def _push(self, tried: int, ranks: tuple[int, ...]) -> None:
        alternative = self._alternatives[tried]
        given = [int(choices[alternative]) for choices in self._origin.choices.values()]
        for (parent, at), rank in zip(self._origin.parents, ranks, strict=True):
            fill = self._graph.row(parent, int(at[alternative])).fill(rank)
            if fill is None:
                return
            given += fill
        heapq.heappush(self._heap, (tuple(given[i] for i in self._order), tried, ranks))
