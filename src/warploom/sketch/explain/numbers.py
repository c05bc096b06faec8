"""Programs that differ from their goal as terms but agree on numbers: what the laws do not know.

An impossible program comes in; a fill that agrees with the goal on random numbers comes out.
"""

from __future__ import annotations

from itertools import islice, product

from warploom.errors import CheckError
from warploom.search.budget import Budget, BudgetSpentError
from warploom.sketch.term.ir import Apply, Goal, Literal, Program, size
from warploom.sketch.term.limits import heights
from warploom.sketch.term.numeric import TRIALS
from warploom.sketch.term.operator import OPERATORS
from warploom.sketch.term.verify import Verifier

MOST_FILLS = 256  # the first of them are tried
MOST_TRIALS = 64  # a maximum hides a wrong item in most of them
_WORK = 1 << 18  # numbers in all trials together; there are always as many trials as in a proof


def has_operators(program: Program, goal: Goal) -> bool:
    """Whether laws could matter: something is folded with an operator that has some."""
    said = {step.operator for step in program.steps if isinstance(step, Apply) and step.fold}
    literals = [step.values for step in program.steps if isinstance(step, Literal)]
    for values in (*literals, goal.values):
        said |= {fold.operator for fold in heights(values)}
    return not said.isdisjoint(OPERATORS)


def agreeing_fill(program: Program, goal: Goal, budget: Budget) -> dict[int, int] | None:
    """One that is right on the numbers tried; None: none was seen."""
    if not has_operators(program, goal):
        return None  # then terms that differ are different on numbers
    try:
        verifier = Verifier(program, goal, trials=_trials(program, goal))
        for taken in islice(product(*_choices(program)), MOST_FILLS):
            fill = dict(zip(program.holes, taken, strict=True))
            if verifier.agrees_on_numbers(fill):
                return fill
            budget.check()
    except (BudgetSpentError, CheckError):
        return None
    return None


def _trials(program: Program, goal: Goal) -> int:
    numbers = sum(len(fold.items) for fold in heights(goal.values))
    numbers += sum(size(step.shape) for step in program.steps)
    return max(TRIALS, min(MOST_TRIALS, _WORK // numbers))


def _choices(program: Program) -> list[range]:
    steps = [program.steps[hole] for hole in program.holes]
    return [range(len(step.gathers)) for step in steps if isinstance(step, Apply)]
