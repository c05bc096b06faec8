"""Implementations drawn on all cores and timed on one GPU, one after the other.

In come variants of a loop nest (strategies first, then the nest itself), a GPU and a budget; out
goes the fastest implementation that was met, with all that was measured. Every core draws, below
the best time so far and near what was good; lowers, checks and compiles. This process measures. It
never waits long: a budget that is spent or Ctrl-C ends the race, and what was found is kept.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.errors import WarploomError
from warploom.pipeline.drawn import Asked, Drawn, Made, drawn
from warploom.runtime.quick import Quick
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.outcome import Reason
from warploom.search.workers.farm import Farm

DRAWN = 3  # implementations of one piece of work
ELITE = 12  # of which new ones are drawn near
NEAR = 0.6  # of what is drawn, near something good
FREE = 0.5  # of what is drawn anew in the second half, in the nest itself
BEHIND = 1.5  # times the best: a variant whose best takes longer is left to itself
FAIR = 24  # measured of a variant before that is said
AHEAD = 2  # pieces of work that a worker has
CONTENDERS, ROUNDS = 4, 5  # timed again at the end, side by side
FAILURES = 20  # in a row: the GPU does nothing any more
FRUITLESS = 60  # pieces of work in a row that gave nothing new
_LOOK_EVERY = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Entry:
    """A variant in the race: its name, the nest as it is made, and a digest of that."""

    name: str
    recipe: Any
    digest: str


@dataclass(frozen=True, slots=True)
class Measured:
    """An implementation that ran: of which variant, and its time in nanoseconds, after a first look
    or of many launches."""

    entry: str
    key: str
    leaf: bytes
    bound: float
    nanoseconds: float
    is_sure: bool


@dataclass(slots=True, eq=False)
class Found:
    """What a race has met. `good` are the best, the fastest first, with what is launched."""

    measured: dict[str, Measured] = field(default_factory=dict)
    good: list[tuple[float, int, Made]] = field(default_factory=list)
    fresh: int = 0  # measured in this run
    drawn: int = 0
    wrong: int = 0
    failed: int = 0
    complaint: str = ""  # the first of what was wrong
    refused: list[tuple[str, bytes]] = field(default_factory=list)  # what was wrong, by variant
    device_seconds: float = 0.0
    least: float = math.inf  # the least bound of all variants that were made
    stopped: Reason | None = None

    @property
    def best(self) -> float:
        return self.good[0][0] if self.good else math.inf

    @property
    def violations(self) -> int:
        """Faster than their bound."""
        return sum(each.nanoseconds < each.bound for each in self.measured.values())


@dataclass(slots=True, eq=False)
class _Worker:
    crew: Farm
    known: list[int] = field(default_factory=list)  # variants whose space it has


OnFound = Callable[[Found], None]


class TimedRace:
    """`keep` is told of every implementation that was measured; `before` are (variant, leaf) of
    earlier runs, which are measured again first, and `known` the texts that need no time any more.
    The last entry is the nest itself if `has_free`."""

    def __init__(
        self,
        entries: Sequence[Entry],
        quick: Quick,
        budget: Budget,
        *,
        has_free: bool = True,
        seed: int = 0,
        workers: int | None = None,
        evaluations: int | None = None,
        before: Sequence[tuple[int, bytes]] = (),
        known: Sequence[Measured] = (),
        keep: Callable[[Measured], None] = lambda _: None,
        on_found: OnFound = lambda _: None,
    ) -> None:
        self.entries, self.quick, self.budget = list(entries), quick, budget
        self.has_free, self.evaluations = has_free, evaluations
        self.keep, self.on_found = keep, on_found
        self.found = Found()
        self.random = np.random.default_rng(seed)
        self.seed, self.pieces = seed, 0
        self.first = list(before)
        self.found.measured |= {each.key: each for each in known}
        self.dead: set[int] = set()  # variants that have no implementation
        self.best_of = [math.inf] * len(self.entries)
        self.count_of = [0] * len(self.entries)
        self.built = [0.0] * len(self.entries)
        self.since = time.monotonic()
        count = workers or max(1, (os.cpu_count() or 2) - 1)
        self.workers = [_Worker(Farm(1)) for _ in range(count)]
        self.shared: dict[tuple[int, int], Any] = {}
        self.pending: dict[Future[Drawn], tuple[_Worker, int, bool]] = {}
        self.fruitless = self.failures = 0

    def run(self, reserve: float) -> Found:
        """Until the budget has so many seconds left."""
        try:
            self._draw_and_measure(reserve)
        except STOPS as stop:
            self.found.stopped = reason_of(stop)
        finally:
            for worker in self.workers:
                worker.crew.shutdown(wait=False, cancel_futures=True)
        return self.found

    def contended(self) -> list[tuple[float, int, Made]]:
        """The best again, side by side; the fastest first."""
        best = self.found.good[:CONTENDERS]
        try:
            times = self.quick.again([made for _, _, made in best], ROUNDS)
        except (WarploomError, RuntimeError):
            return best
        return sorted(((t, at, made) for t, (_, at, made) in zip(times, best, strict=True)),
                      key=lambda each: each[0])  # fmt: skip

    # -- the loop ----------------------------------------------------------------------------------

    def _draw_and_measure(self, reserve: float) -> None:
        for _ in range(AHEAD):
            for number, worker in enumerate(self.workers):
                self._submit(worker, number)
        while self.pending and not self._is_over(reserve):
            self.budget.check()
            done = wait(self.pending, timeout=_LOOK_EVERY, return_when=FIRST_COMPLETED).done
            # What was good in an earlier run comes first, whatever else is ready.
            for future in sorted(done, key=lambda each: not self.pending[each][2]):
                worker, entry, contends = self.pending.pop(future)
                self._submit(worker)
                self._take(entry, future, contends)
                self.budget.check()
                if self._is_over(reserve):
                    return
            self.on_found(self.found)

    def _is_over(self, reserve: float) -> bool:
        left = self.budget.seconds_left
        if left is not None and left < reserve + 1.3 * max(self.built, default=0.0):
            self.found.stopped = Reason.SECONDS
            return True
        enough = self.evaluations is not None and self.found.fresh >= self.evaluations
        enough = enough and not self._contends()
        return enough or self.fruitless >= FRUITLESS or self.failures >= FAILURES

    def _contends(self) -> bool:
        """Whether something of an earlier run is not measured yet."""
        return bool(self.first) or any(contends for _, _, contends in self.pending.values())

    def _take(self, entry: int, future: Future[Drawn], contends: bool) -> None:
        """What a worker made; what was good in an earlier run is measured again."""
        try:
            result = future.result()
        except WarploomError as error:  # decisions that leave nothing of a variant
            self.dead.add(entry)
            self.found.complaint = self.found.complaint or str(error)
            self.fruitless += 1
            return
        self.found.drawn += result.reached
        self.found.failed += result.failed
        self.found.least = min(self.found.least, result.least)
        self.built[entry] = max(self.built[entry], result.built)
        known = () if contends else self.found.measured
        fresh = [each for each in result.made if each.key not in known]
        self.fruitless = 0 if fresh else self.fruitless + 1
        for made in fresh:
            if not self._is_over(0.0):
                self._measure(entry, made)

    def _measure(self, entry: int, made: Made) -> None:
        start = time.monotonic()
        try:
            taken, is_sure = self.quick.time(made, self.found.best)
            self.failures = 0
        except WarploomError as error:
            self.found.refused.append((self.entries[entry].name, made.leaf))
            self.found.wrong += 1
            self.failures += 1
            self.found.complaint = self.found.complaint or str(error)
            return
        finally:
            self.found.device_seconds += time.monotonic() - start
        self.found.fresh += made.key not in self.found.measured
        each = Measured(self.entries[entry].name, made.key, made.leaf, made.bound, taken, is_sure)
        self.found.measured[made.key] = each
        self.count_of[entry] += 1
        self.best_of[entry] = min(self.best_of[entry], taken)
        if is_sure:
            good = sorted([*self.found.good, (taken, entry, made)], key=lambda one: one[0])
            self.found.good = good[:ELITE]
        self.keep(each)

    # -- what is drawn next ------------------------------------------------------------------------

    def _submit(self, worker: _Worker, number: int | None = None) -> None:
        self.pieces += 1
        seed, contends = (self.seed, self.pieces), bool(self.first)
        if contends:
            entry, leaf = self.first.pop(0)
            asked = Asked(0, seed, near=leaf)
        else:
            entry, near = self._chosen(worker, number)
            asked = Asked(DRAWN, seed, self.found.best, near)
        if entry not in worker.known:
            worker.known.append(entry)
        each = self.entries[entry]
        place = id(worker), entry
        if place not in self.shared:
            self.shared[place] = worker.crew.share(each.recipe)
        future = worker.crew.submit(drawn, self.shared[place], each.digest, self.quick.arch, asked)
        self.pending[future] = worker, entry, contends

    @property
    def _strategies(self) -> list[int]:
        every = range(len(self.entries) - self.has_free)
        return [at for at in every if at not in self.dead]

    def _chosen(self, worker: _Worker, number: int | None) -> tuple[int, bytes | None]:
        """A variant, and what to stay near."""
        strategies = self._strategies
        if number is not None and strategies:  # at first each worker has one of its own
            apart = len(worker.known) if len(strategies) > len(self.workers) else 0
            return strategies[(number + apart * len(self.workers)) % len(strategies)], None
        if self.found.good and self.random.random() < NEAR:
            _, entry, made = self.found.good[int(self.random.integers(len(self.found.good)))]
            if entry in worker.known or self._may_switch(entry):
                return entry, made.leaf
        is_free = not strategies or (self._is_late() and self.random.random() < FREE)
        if self.has_free and is_free:
            return len(self.entries) - 1, None
        return self._fresh(worker, strategies), None

    def _fresh(self, worker: _Worker, strategies: list[int]) -> int:
        """A strategy that may still win: one that nobody has tried, or one that this worker has."""
        untried = [at for at in strategies if not self._given(at)]
        if untried:
            return untried[0]
        hopeful = [at for at in strategies if not self._is_behind(at)]
        own = [at for at in hopeful if at in worker.known]
        some = own or hopeful or list(range(len(self.entries)))
        return some[int(self.random.integers(len(some)))]

    def _given(self, entry: int) -> bool:
        return any(entry in worker.known for worker in self.workers)

    def _is_behind(self, entry: int) -> bool:
        late = self.count_of[entry] >= FAIR
        return late and self.best_of[entry] > BEHIND * self.found.best

    def _may_switch(self, entry: int) -> bool:
        """Whether the time that is left is worth a space more."""
        left = self.budget.seconds_left
        return left is None or left > 5 * self.built[entry]

    def _is_late(self) -> bool:
        """Whether half of the time is over."""
        if self.budget.seconds is None:
            half = (self.evaluations or 0) / 2
            return self.found.fresh > half
        return (self.budget.seconds_left or 0.0) < self.budget.seconds / 2
