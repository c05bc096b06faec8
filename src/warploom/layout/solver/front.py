"""All classes of one problem side by side, and those answers that no other beats in everything.

Small classes come first: they are quick, and their best is the limit for the large ones. A class
that was not begun when the budget was spent is told as such.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, tee

from warploom.errors import UnsupportedError
from warploom.layout.language import family
from warploom.layout.language.ir import Layout
from warploom.layout.patterns.access import Problem
from warploom.layout.solver.solve import CLASSES, Solved, not_begun, solve
from warploom.layout.solver.task import Answer, Task
from warploom.layout.wavefronts.quality import Quality, quality_of
from warploom.search.budget import STOPS, Budget, governing_budget, reason_of
from warploom.search.engine import OnProgress
from warploom.search.outcome import Found

MOST_ROTATIONS = 64  # that are looked at beside the answer
SMALL = 1 << 14  # elements: answers of so few are weighed though the budget is spent
SMALLER = ("none", "pad", "swizzle")  # looked at beside the class that was asked for
# Where answers of a class may come from; mixed and any hold all of them.
HOLDS = {
    "none": {"none"},
    "pad": {"none", "pad"},
    "swizzle": {"none", "swizzle"},
    "xor": {"none", "swizzle", "xor", "reversal"},
    "tma": {"tma"},
    "wgmma": {"wgmma"},
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer with all that it costs, and where it comes from."""

    klass: str
    answer: Answer
    quality: Quality

    @property
    def costs(self) -> tuple[Fraction | int, ...]:
        """Less is better in each."""
        quality = self.quality
        registers = max(quality.registers)
        return (self.answer.cost, quality.wasted_bytes, registers, quality.operations)


@dataclass(frozen=True, slots=True)
class Front:
    """The answer to what was asked, the other classes that were begun, and the candidates that none
    beats; of those only what was weighed in time."""

    task: Task
    asked: Solved
    others: tuple[Solved, ...]
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Answer | None:
        """The answer of the asked class with the fewest wavefronts, then the least other cost."""
        return next(iter(self.answers), None)

    @property
    def answers(self) -> list[Answer]:
        """All that was found of what the asked class holds, the best first."""
        found = [c.answer for c in self.candidates if _holds(self.asked.klass, c.klass)]
        solved = (s for s in (self.asked, *self.others) if _holds(self.asked.klass, s.klass))
        found += [each.best for each in solved if each.best is not None]
        return sorted(found, key=lambda answer: answer.cost)

    @property
    def solved(self) -> Solved:
        """What was asked, with that answer."""
        return replace(self.asked, best=self.best)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The classes of which nothing was looked at."""
        begun = {each.klass for each in (*self.others, self.asked) if each.begun}
        return tuple(k for k in (*smaller_than(self.task, self.asked.klass), self.asked.klass)
                     if k not in begun)  # fmt: skip

    @property
    def kept(self) -> bool:
        """Whether rows as they are already meet the bound: nothing is to be gained."""
        return any(c.klass == "none" and c.answer.cost == self.task.least for c in self.candidates)


def front_of(
    task: Task,
    klass: str,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
) -> Front:
    """The smaller classes first, then the one that was asked for, all within one budget."""
    limit = budget or governing_budget()
    others: list[Solved] = []
    for name in smaller_than(task, klass) if task.torn is None else ():
        if others and limit.is_spent():
            break
        others.append(solve(task, name, limit, on_progress))
    asked = _asked(task, klass, others, limit, on_progress)
    if task.torn is not None:
        return Front(task, asked, (), ())
    begun = tuple(each for each in others if each.begun)
    found = [(each.klass, each.best) for each in (*begun, asked) if each.best is not None]
    least = min((answer.cost for _, answer in found), default=None)
    with limit.governing():
        if klass not in (*SMALLER, "tma", "wgmma") and least is not None:
            found += _alternatives(task, klass, least, limit)
        return Front(task, asked, begun, _unbeaten(_weighed(task, found, limit)))


def smaller_than(task: Task, klass: str) -> tuple[str, ...]:
    """The classes that are looked at beside one."""
    order = list(CLASSES)
    if task.problem.copies or task.problem.operands:
        return ()
    return tuple(name for name in SMALLER if order.index(name) < order.index(klass))


def _holds(klass: str, other: str) -> bool:
    return klass not in HOLDS or other in HOLDS[klass]


def _asked(
    task: Task, klass: str, others: list[Solved], limit: Budget, on_progress: OnProgress | None
) -> Solved:
    """The class that was asked for; not begun where the smaller ones took the whole budget."""
    try:
        if others:
            limit.check()
    except STOPS as stop:
        counted = any(each.begun for each in others)
        found = not_begun(klass, reason_of(stop), task.least if counted else Fraction(0))
        held = [each.outcome.answer for each in others
                if isinstance(each.outcome, Found) and _holds(klass, each.klass)]  # fmt: skip
        best = min(held, key=lambda answer: answer.rank, default=None)
        return found if best is None else replace(found, outcome=Found(best, True), best=best)
    return solve(task, klass, limit, on_progress)


def _weighed(task: Task, found: list[tuple[str, Answer]], limit: Budget) -> list[Candidate]:
    """With all that each costs; none if not all were weighed in time. Few elements always are."""
    with contextlib.suppress(*STOPS):
        weighed = []
        for name, answer in found:
            if task.problem.size > SMALL:
                limit.check()
            weighed.append(Candidate(name, answer, quality_of(task, answer)))
        return weighed
    return []


def _alternatives(
    task: Task, klass: str, least: Fraction, budget: Budget
) -> list[tuple[str, Answer]]:
    """The first layout of each family that may be cheaper to compute and costs no more wavefronts:
    bit reversals where a machine has an instruction for that, exchanges in blocks, rotations. Those
    that were found in time."""
    families: dict[str, Iterable[Layout]] = {}
    if task.problem.serving.reverses_bits:
        families["reversal"] = family.reversals(task.problem)
    if klass != "xor":
        families["exchange"] = family.exchanges(task.problem)
        families["rotation"] = islice(family.rotations(task.problem), MOST_ROTATIONS)
    found = []
    with contextlib.suppress(*STOPS):
        for name, layouts in families.items():
            known, counted = tee(layouts)
            for layout, promise in zip(known, task.promises(counted), strict=True):
                budget.check()
                if promise.least > least:
                    continue
                answer = task.answer(layout)
                if answer is not None and answer.cost <= least:
                    found.append((name, answer))
                    break
    return found


def _unbeaten(candidates: list[Candidate]) -> tuple[Candidate, ...]:
    """Those that no other is as good as in everything and better than in something; of equal ones
    the first, which is the simplest."""
    kept: list[Candidate] = []
    for place, one in enumerate(candidates):
        beaten = any(
            all(a <= b for a, b in zip(two.costs, one.costs, strict=True))
            and (two.costs != one.costs or other < place)
            for other, two in enumerate(candidates)
            if other != place
        )
        if not beaten:
            kept.append(one)
    return tuple(sorted(kept, key=lambda each: each.costs))


def usual_class(problem: Problem) -> str:
    """What is asked for where nobody says."""
    if problem.operands:
        return "wgmma"
    return "tma" if problem.copies else "mixed"


def known_class(name: str | None) -> None:
    """Raises if there is a name, and no class has it."""
    if name is not None and name not in CLASSES:
        raise UnsupportedError(
            f"no class of layouts is called '{name[:40]}'", advice=f"known are {', '.join(CLASSES)}"
        )
