"""What engines note while they run: candidates looked at, dropped and kept, and where time went."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from warploom.search.budget import peak_megabytes

K = TypeVar("K")


@dataclass(slots=True)
class Tally:
    """What happened at one place of a search: a hole, a kind of node.

    Of `options` there were, `visited` candidates were looked at and `kept` went on; `pruned` says
    what stopped the others.
    """

    options: int = 0
    visited: int = 0
    kept: int = 0
    pruned: dict[str, int] = field(default_factory=dict)

    def prune(self, test: str, count: int) -> None:
        if count:
            self.pruned[test] = self.pruned.get(test, 0) + count


def add_tallies(to: dict[K, Tally], more: Mapping[K, Tally]) -> None:
    """What was done elsewhere, by place."""
    for key, each in more.items():
        tally = to.setdefault(key, Tally())
        tally.visited += each.visited
        tally.kept += each.kept
        for test, count in each.pruned.items():
            tally.prune(test, count)


@dataclass(slots=True)
class Clock:
    """CPU seconds by phase."""

    phases: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def lap(self, phase: str) -> None:
        now = time.process_time()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True, slots=True)
class Statistics:
    """`seconds` are of the wall, `cpu_seconds` and `phases` of the processor."""

    tallies: Mapping[str, Tally]
    phases: Mapping[str, float]
    seconds: float
    cpu_seconds: float
    peak_mb: float

    @property
    def states(self) -> int:
        """Candidates that were looked at."""
        return sum(tally.visited for tally in self.tallies.values())

    @property
    def pruned(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for tally in self.tallies.values():
            for test, count in tally.pruned.items():
                total[test] = total.get(test, 0) + count
        return total


@dataclass(slots=True)
class Stopwatch:
    """Wall and CPU time since it was made."""

    _wall: float = field(default_factory=time.monotonic)
    _cpu: float = field(default_factory=time.process_time)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._wall

    def statistics(self, tallies: Mapping[str, Tally], clock: Clock) -> Statistics:
        # A clock made before this one saw a little more: the whole is no less than its parts.
        cpu = max(time.process_time() - self._cpu, sum(clock.phases.values()))
        return Statistics(tallies, clock.phases, self.seconds, cpu, peak_megabytes())
