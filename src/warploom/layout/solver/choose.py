"""The best of several ways to do the accesses of a problem, each with the best layout for it.

What counts are all wavefronts of the tile, weighted as the accesses are, and of equal ones the
fewest instructions: ways differ in their number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from warploom.layout.patterns.access import Problem
from warploom.layout.patterns.ways import Way, ways_of
from warploom.layout.solver.front import Front, front_of
from warploom.layout.solver.task import Task
from warploom.search.budget import STOPS, Budget, governing_budget
from warploom.search.engine import OnProgress
from warploom.search.outcome import Undecided


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A way and the answer for it."""

    way: Way
    front: Front

    @property
    def wavefronts(self) -> Fraction | None:
        """Weighted wavefronts of the whole tile; None where nothing was found."""
        best = self.front.best
        return None if best is None else best.cost

    @property
    def least(self) -> Fraction:
        """What this way takes at least, whatever the layout."""
        task = self.front.task
        return Fraction(0) if task.torn is not None else task.least

    @property
    def instructions(self) -> int:
        return sum(access.steps for access in self.way.problem.accesses)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """All ways that were tried, the best first; those without a layout last. `left`: how many were
    not begun when the budget was spent."""

    tried: tuple[Tried, ...]
    left: int = 0

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
    """Every way solved, within one budget for all of them. Raises BudgetSpentError if it is spent
    before there is anything to tell."""
    limit = budget or governing_budget()
    tried: list[Tried] = []
    with limit.governing():
        ways = ways_of(problem, what)
        for way in ways:
            try:
                if tried:
                    limit.check()
                task = Task(way.problem, worst, waste)
            except STOPS:
                if not tried:
                    raise
                break
            tried.append(Tried(way, front_of(task, klass, limit, on_progress)))

    def key(each: Tried) -> tuple[bool, Fraction, int]:
        none = each.wavefronts is None
        return none, each.wavefronts or Fraction(0), each.instructions

    return Chosen(tuple(sorted(tried, key=key)), len(ways) - len(tried))
