"""Copies that end later than they are issued: groups of cp.async, and who has waited for them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.async_completion import Completion
from warploom.machine.race import RaceDetector
from warploom.machine.semantics import Semantics

Array = npt.NDArray[Any]


@dataclass(slots=True)
class _Copy:
    """Accesses of one instruction that are under way; arrays go over its threads."""

    region: Any
    threads: Array
    start: Array
    width: int
    semantics: Semantics
    label: Any
    group: Array

    def part(self, chosen: Array) -> list[_Copy]:
        """These of its threads; nothing if there are none."""
        if chosen.all() or not chosen.any():
            return [self] if chosen.any() else []
        threads, start, group = self.threads[chosen], self.start[chosen], self.group[chosen]
        return [replace(self, threads=threads, start=start, group=group)]


@dataclass(slots=True)
class _Tracked:
    """Copies of one thread that an mbarrier tells of, which it may wait for itself all the same."""

    thread: int
    group: int
    completion: Completion


@dataclass(slots=True)
class Copies:
    """Groups of cp.async: what each thread has begun, and what it has waited for."""

    threads: int
    group: Array = field(init=False)  # how many groups each thread has closed
    under_way: list[_Copy] = field(default_factory=list)
    tracked: list[_Tracked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = np.zeros(self.threads, np.int64)

    def add(
        self, region: Any, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Any,
    ) -> None:  # fmt: skip
        group = self.group[threads]
        self.under_way.append(_Copy(region, threads, start, width, semantics, label, group))

    def wait(self, races: RaceDetector, threads: Array, newest: Array) -> None:
        """Each of these threads waits for all but so many of its newest groups."""
        limit = np.full(self.threads, -1, np.int64)
        limit[threads] = self.group[threads] - newest
        for one in self._take(limit):
            races.complete(
                one.region, one.threads, one.start, one.width, one.semantics, one.label
            )  # fmt: skip
        for copy in [each for each in self.tracked if each.group < limit[each.thread]]:
            self.tracked.remove(copy)
            known = copy.completion.known_of_one(races.layout.block_threads)
            races.vector.learn(np.array([copy.thread]), known)

    def track(self, races: RaceDetector, thread: int, completion: Completion) -> None:
        """An mbarrier will tell of all that a thread has begun and not waited for."""
        limit = np.full(self.threads, -1, np.int64)
        limit[thread] = self.group[thread] + 1
        for one in self._take(limit):
            races.land(
                one.region, one.threads, one.start, one.width, one.semantics, one.label, completion
            )  # fmt: skip
            self.tracked += [_Tracked(thread, group, completion) for group in one.group.tolist()]

    def _take(self, limit: Array) -> list[_Copy]:
        """Those whose groups are below the limit of their thread; they are under way no more."""
        taken: list[_Copy] = []
        rest: list[_Copy] = []
        for one in self.under_way:
            done = one.group < limit[one.threads]
            taken += one.part(done)
            rest += one.part(~done)
        self.under_way = rest
        return taken
