"""All classes of one problem side by side, and those answers that no other beats in everything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from warploom.errors import UnsupportedError
from warploom.layout import family
from warploom.layout.access import Problem
from warploom.layout.ir import Layout
from warploom.layout.quality import REVERSING, Quality, quality_of
from warploom.layout.solve import CLASSES, Solved, solve
from warploom.layout.task import Answer, Task
from warploom.search.budget import STOPS, Budget
from warploom.search.engine import OnProgress

MOST_ROTATIONS = 64  # that are looked at beside the answer
SMALLER = ("none", "pad", "swizzle")  # looked at beside the class that was asked for
# Where answers of a class may come from; mixed and any hold all of them.
HOLDS = {
    "none": {"none"},
    "pad": {"none", "pad"},
    "swizzle": {"none", "swizzle"},
    "xor": {"none", "swizzle", "xor", "reversal"},
    "tma": {"tma"},
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
    """The answer to what was asked, the other classes, and the candidates that none beats."""

    task: Task
    asked: Solved
    others: tuple[Solved, ...]
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Answer | None:
        """Of what the asked class holds, the fewest wavefronts; of those what costs least else."""
        held = HOLDS.get(self.asked.klass)
        fitting = [c for c in self.candidates if held is None or c.klass in held]
        return fitting[0].answer if fitting else self.asked.best

    @property
    def solved(self) -> Solved:
        """What was asked, with that answer."""
        return replace(self.asked, best=self.best)

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
    """The class that was asked for first, with the whole budget; then the smaller ones."""
    asked = solve(task, klass, budget, on_progress)
    if task.torn is not None:
        return Front(task, asked, (), ())
    order = list(CLASSES)
    smaller = [name for name in SMALLER if order.index(name) < order.index(klass)]
    if task.problem.copies:
        smaller = []
    others = [solve(task, name, budget, on_progress) for name in smaller]
    found = [(each.klass, each.best) for each in (*others, asked) if each.best is not None]
    least = min((answer.cost for _, answer in found), default=None)
    if klass not in (*SMALLER, "tma") and least is not None:
        found += _alternatives(task, klass, least, budget or Budget())
    candidates = [Candidate(name, answer, quality_of(task, answer)) for name, answer in found]
    return Front(task, asked, tuple(others), _unbeaten(candidates))


def _alternatives(
    task: Task, klass: str, least: Fraction, budget: Budget
) -> list[tuple[str, Answer]]:
    """Of families that may be cheaper to compute, the first that costs no more wavefronts: bit
    reversals where a machine has an instruction for that, exchanges in blocks, rotations. Those
    that were found in time."""
    families: dict[str, Iterable[Layout]] = {}
    if task.problem.serving.name in REVERSING:
        families["reversal"] = family.reversals(task.problem)
    if klass != "xor":
        families["exchange"] = family.exchanges(task.problem)
        families["rotation"] = islice(family.rotations(task.problem), MOST_ROTATIONS)
    found = []
    with contextlib.suppress(*STOPS):
        for name, layouts in families.items():
            for layout in layouts:
                budget.check()
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
    return "tma" if problem.copies else "mixed"


def known_class(name: str | None) -> None:
    """Raises if there is a name, and no class has it."""
    if name is not None and name not in CLASSES:
        raise UnsupportedError(
            f"no class of layouts is called '{name[:40]}'", advice=f"known are {', '.join(CLASSES)}"
        )
