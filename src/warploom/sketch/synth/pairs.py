"""The reference engine: the paper's depth-first search with its viability tests.

A problem comes in, every fill comes out, one hole after another in program order. A candidate is
the state of all live values; `viability.py` says which states can still reach the goal. What a
state leads to is remembered, so no state is searched twice. The matrices need (live slots)² ×
(goal cells)² bits, which is why this engine is for small problems and for checking the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from warploom.errors import SearchError
from warploom.search.budget import STOPS, Budget
from warploom.search.statistics import Tally
from warploom.sketch.synth.flow import (
    Amounts,
    Flags,
    Index,
    Segment,
    copies_before,
    join,
    pairs_at_goal,
    pairs_before,
    run_fixed,
    segments_of,
    single_before,
    split,
    universe,
)
from warploom.sketch.synth.problem import Given, Move, Problem, pack, source_rows
from warploom.sketch.synth.rows import Origin, Rows
from warploom.sketch.synth.subterms import Bits, Ids
from warploom.sketch.synth.viability import Viability

DEFAULT_MEGABYTES = 2048
MAX_HOLES = 200
STATES_AT_ONCE = 1 << 22  # slots of the states tested together
ROWS_AT_ONCE = 1 << 10
CHECK_EVERY = 1 << 6  # fills

Suffix = tuple[int, ...]  # a choice for each of the holes that remain
Advice = "use the default engine, which needs no such matrices"


@dataclass(slots=True, eq=False)
class PairsEngine:
    """`fuel` limits the pairs tested for each term; `single` tests single locations instead."""

    problem: Problem
    budget: Budget
    on_progress: Callable[[int, int], None] | None = None
    fuel: int | None = None
    single: bool = False
    tallies: dict[int, Tally] = field(default_factory=dict)
    shared: dict[int, Rows] = field(default_factory=dict)
    _prefix: tuple[Given | Move, ...] = ()
    _segments: list[Segment] = field(default_factory=list)
    _tests: list[Viability] = field(default_factory=list)  # after each segment but the last
    _known: list[dict[bytes, tuple[Suffix, ...]]] = field(default_factory=list)

    def prepare(self) -> bool:
        """Computes the matrices. The search itself finds out whether there is a fill."""
        self._prefix, self._segments = segments_of(self.problem)
        self._known = [{} for _ in self._segments]
        for segment in self._segments:
            options = len(segment.hole.tables)
            self.tallies[segment.hole.position] = Tally(options=options)
        self._check_size()
        self._tests = self._viability()
        return True

    def solutions(self) -> Iterator[Rows]:
        """The fills in lexicographic order, in batches that grow."""
        found: list[Suffix] = []
        wanted = 1
        try:
            for fill in self._search(0, self._first_state()):
                found.append(fill)
                if len(found) % CHECK_EVERY == 0:  # remembered fills come without any search
                    self.budget.check()
                if len(found) >= wanted:
                    yield self._rows(found)
                    found, wanted = [], min(2 * wanted, ROWS_AT_ONCE)
        except STOPS:
            if found:
                yield self._rows(found)
            raise
        if found:
            yield self._rows(found)

    def _rows(self, fills: list[Suffix]) -> Rows:
        holes = [segment.hole.position for segment in self._segments]
        columns = np.array(fills, dtype=np.int64).reshape(len(fills), len(holes))
        choices = {hole: columns[:, n] for n, hole in enumerate(holes)}
        origin = Origin(len(fills), np.arange(len(fills) + 1), (), choices)
        return Rows(np.tile(self.problem.goal, (len(fills), 1)), {}, origin)

    # -- matrices --------------------------------------------------------------------------------

    def _check_size(self) -> None:
        """Refuses problems whose matrices do not fit, before anything is built."""
        cells = len(self.problem.goal)
        columns = cells * 8 * ((cells + 63) // 64)
        tested = [s.after.slots for s in self._segments[:-1]]
        passing = [s.middle.slots for s in self._segments[1:]]
        if self.single:
            nbytes = sum(8 * n * cells for n in tested)
            nbytes += max((8 * s.middle.slots * s.after.slots for s in self._segments), default=0)
        else:
            nbytes = sum(n * n * columns for n in tested)
            nbytes += 2 * max((n * n * columns for n in passing), default=0)
        limit = (self.budget.megabytes or DEFAULT_MEGABYTES) * 2**20
        if nbytes > limit:
            raise SearchError(
                f"the pairs engine needs {nbytes / 2**20:.0f} MiB for its matrices, "
                f"{limit / 2**20:.0f} are allowed",
                advice=Advice,
            )
        if len(self._segments) > MAX_HOLES:
            raise SearchError(
                f"the pairs engine takes at most {MAX_HOLES} holes, not {len(self._segments)}",
                advice=Advice,
            )

    def _viability(self) -> list[Viability]:
        """Backward from the goal: the tests after each segment but the last."""
        problem, found = self.problem, list[Viability]()
        cells = len(problem.goal)
        copies: tuple[Amounts, Amounts] = (np.ones(cells), np.ones(cells))
        single: Flags | None = np.eye(cells, dtype=np.bool_) if self.single else None
        several = len(self._segments) > 1
        pairs: Bits | None = pairs_at_goal(cells) if several and not self.single else None
        for segment in reversed(self._segments[1:]):
            self.budget.check()
            copies = copies_before(problem, segment, copies, self.budget.check)
            if single is not None:
                single = single_before(problem, segment, single)
            if pairs is not None:
                pairs = pairs_before(problem, segment, pairs, self.budget.check)
            terms = universe(problem, (segment.hole, *segment.fixed, *segment.later))
            test = Viability(
                problem.domain, problem.goal, terms, *copies, single, pairs, self.fuel
            )  # fmt: skip
            found.append(test)
        return found[::-1]

    # -- search ----------------------------------------------------------------------------------

    def _first_state(self) -> Ids:
        values: dict[int, Ids] = {}
        run_fixed(self._prefix, values)
        if not self._segments:
            return values[self.problem.last].reshape(-1)
        return join(self._segments[0].before, values, 1).reshape(-1)

    def _search(self, depth: int, state: Ids) -> Iterator[Suffix]:
        """Every way to fill the holes from `depth` on, in order."""
        if depth == len(self._segments):
            if np.array_equal(state, self.problem.goal):
                yield ()
            return
        key = state.tobytes()
        known = self._known[depth].get(key)
        if known is not None:
            yield from known
            return
        found: list[Suffix] = []
        for choice, after in self._candidates(depth, state):
            for rest in self._search(depth + 1, after):
                found.append((choice, *rest))
                yield found[-1]
        self._known[depth][key] = tuple(found)

    def _candidates(self, depth: int, state: Ids) -> Iterator[tuple[int, Ids]]:
        """The choices that pass the tests, in order, with the state after each."""
        segment = self._segments[depth]
        tally = self.tallies[segment.hole.position]
        width = max(segment.hole.cells, segment.middle.slots, segment.after.slots, 1)
        step = max(1, STATES_AT_ONCE // width)
        for start in range(0, len(segment.hole.tables), step):
            states = self._try(segment, state, segment.hole.tables[start : start + step])
            tally.visited += len(states)
            self.budget.check()
            if self.on_progress is not None:
                visited = sum(t.visited for t in self.tallies.values())
                self.on_progress(segment.hole.position, visited)
            first, which = _distinct(states)
            keep = self._passes(depth, states[first], np.bincount(which))[which]
            for choice in np.flatnonzero(keep):
                if self._fails(depth + 1, states[choice]):
                    tally.prune("cache", 1)
                else:
                    tally.kept += 1
                    yield start + int(choice), states[choice]

    def _try(self, segment: Segment, state: Ids, tables: Ids) -> Ids:
        """The states after the segment for each of the given choices."""
        problem, hole = self.problem, segment.hole
        values = split(problem, segment.before, state)
        source = source_rows(hole, values)
        values[hole.position] = pack(hole, source[0, tables])
        run_fixed(segment.fixed, values)
        return join(segment.after, values, len(tables))

    def _passes(self, depth: int, states: Ids, times: Index) -> Flags:
        """The tests on distinct states, of which each stands for `times` candidates."""
        tally = self.tallies[self._segments[depth].hole.position]
        if depth == len(self._tests):
            right = (states == self.problem.goal).all(axis=1)
            tally.prune("goal", int(times[~right].sum()))
            return np.asarray(right)
        test = self._tests[depth]
        keep = test.counts(states)
        tally.prune("count", int(times[~keep].sum()))
        left = np.flatnonzero(keep)
        good = test.reachable(states[left])
        tally.prune("pairs", int(times[left[~good]].sum()))
        keep[left[~good]] = False
        return keep

    def _fails(self, depth: int, state: Ids) -> bool:
        return depth < len(self._known) and self._known[depth].get(state.tobytes()) == ()


def _distinct(states: Ids) -> tuple[Index, Index]:
    """(first row of each kind, kind of each row)."""
    kinds: dict[bytes, int] = {}
    which = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in states], np.int64)
    return np.unique(which, return_index=True)[1], which
