"""The best of several ways to do the accesses of a problem, each with the best layout for it.

Ways differ in their number of steps; so what counts is not wavefronts for a request but all those
of the tile, weighted as the accesses are, and of equal ones the fewest instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from warploom.layout.access import Problem
from warploom.layout.front import Front, front_of
from warploom.layout.task import Task
from warploom.layout.ways import Way, ways_of
from warploom.search.budget import Budget
from warploom.search.engine import OnProgress
from warploom.search.outcome import Undecided


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A way and the answer for it."""

    way: Way
    front: Front

    @property
    def wavefronts(self) -> Fraction | None:
        """Of the whole tile, weighted; None where nothing was found."""
        best = self.front.best
        return None if best is None else _total(self.front.task, best.score.wavefronts)

    @property
    def least(self) -> Fraction:
        """What this way takes at least, whatever the layout."""
        task = self.front.task
        return Fraction(0) if task.torn is not None else _total(task, task.bound.wavefronts)

    @property
    def instructions(self) -> int:
        return sum(access.steps for access in self.way.problem.accesses)


def _total(task: Task, wavefronts: Sequence[int]) -> Fraction:
    each = [w * n for w, n in zip(task.problem.weights, wavefronts, strict=True)]
    return max(each) if task.worst else sum(each, Fraction(0))


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """All ways, the best first; those without a layout last."""

    tried: tuple[Tried, ...]

    @property
    def best(self) -> Tried:
        return self.tried[0]

    @property
    def open(self) -> tuple[Tried, ...]:
        """Ways that were not solved to the end and might still be better."""
        best = self.best
        return tuple(
            each
            for each in self.tried
            if isinstance(each.front.asked.outcome, Undecided)
            and (
                best.wavefronts is None
                or (each.least, each.instructions) < (best.wavefronts, best.instructions)
            )
        )


def best_way(
    problem: Problem,
    what: tuple[str, ...],
    klass: str = "mixed",
    *,
    worst: bool = False,
    waste: bool = True,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
) -> Chosen:
    """Every way solved, within one budget for all of them."""
    limit = budget or Budget()
    tried = []
    for way in ways_of(problem, what):
        task = Task(way.problem, worst, waste)
        tried.append(Tried(way, front_of(task, klass, limit, on_progress)))

    def key(each: Tried) -> tuple[bool, Fraction, int]:
        none = each.wavefronts is None
        return none, each.wavefronts or Fraction(0), each.instructions

    return Chosen(tuple(sorted(tried, key=key)))
