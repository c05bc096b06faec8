"""What an engine is, and how one is run: budget, progress, interruption, outcome, statistics.

An engine streams answers for a problem and asks `Watch` now and then whether to go on. `run` turns
the stream into an outcome: a spent budget, Ctrl-C or lack of memory keeps what was found, and is
never "no".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided
from warploom.search.statistics import Clock, Statistics, Stopwatch, Tally

P_contra = TypeVar("P_contra", contravariant=True)
P = TypeVar("P")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is; `best` is the least cost so far, where there is one; `pruned` counts
    what was dropped, by test."""

    phase: str
    states: int
    found: int
    best: float | None
    seconds: float
    pruned: Mapping[str, int] = field(default_factory=dict)


OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class Watch:
    """What an engine reports to: tallies by place, answers, phases. It carries the budget along."""

    budget: Budget = field(default_factory=Budget)
    on_progress: OnProgress | None = None
    tallies: dict[str, Tally] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    found: int = 0
    best: float | None = None
    _stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def tally(self, place: str) -> Tally:
        return self.tallies.setdefault(place, Tally())

    def pause(self, phase: str) -> None:
        """Called often: shows progress, and ends the search if its budget is spent."""
        self.budget.check()
        if self.on_progress is not None:
            seen = self._stopwatch.statistics(self.tallies, self.clock)
            self.on_progress(
                Progress(phase, seen.states, self.found, self.best, seen.seconds, seen.pruned)
            )

    def statistics(self) -> Statistics:
        return self._stopwatch.statistics(self.tallies, self.clock)


class Engine(Protocol[P_contra, A_co]):
    """Answers to a problem, one after another; when the stream ends there are no others."""

    def __call__(self, problem: P_contra, watch: Watch) -> Iterator[A_co]: ...


@dataclass(frozen=True, slots=True)
class Gathered(Generic[A]):
    """`exhausted`: the stream came to its end; otherwise `stopped` says why it did not (None: no
    more was asked for)."""

    answers: list[A]
    exhausted: bool
    stopped: Reason | None = None


def gather(
    answers: Iterator[A], most: int | None = None, budget: Budget | None = None
) -> Gathered[A]:
    """The answers of a stream, up to `most`; whatever ends it early keeps what was found. A budget
    that is given is enforced."""
    found: list[A] = []
    try:
        with budget.enforced() if budget is not None else nullcontext():
            for answer in answers:
                found.append(answer)
                if len(found) == most:
                    return Gathered(found, False)
    except STOPS as stop:
        return Gathered(found, False, reason_of(stop))
    return Gathered(found, True)


def outcome_of(gathered: Gathered[A], answer: Callable[[list[A]], B]) -> Outcome[B]:
    """`answer` puts the answers together; without any it is "impossible" only at the end."""
    if gathered.answers:
        return Found(answer(gathered.answers), gathered.exhausted, gathered.stopped)
    if gathered.exhausted:
        return Impossible()
    assert gathered.stopped is not None, "nothing was asked for"
    return Undecided(gathered.stopped)


@dataclass(frozen=True, slots=True)
class Result(Generic[A]):
    """What a run gives back."""

    outcome: Outcome[A]
    statistics: Statistics


def run(
    engine: Engine[P, A],
    problem: P,
    budget: Budget | None = None,
    *,
    most: int | None = None,
    on_progress: OnProgress | None = None,
) -> Result[tuple[A, ...]]:
    """All answers of an engine, or the first `most`."""
    watch = Watch(budget or Budget(), on_progress)
    gathered = gather(engine(problem, watch), most, watch.budget)
    watch.clock.lap("search")
    return Result(outcome_of(gathered, tuple), watch.statistics())
