"""Whether a filled sketch does what its goal asks: a fill comes in, a verdict comes out.

It runs the program as `evaluate.py` and `numeric.py` define it and knows nothing of any search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import numpy as np

from warploom.errors import CheckError, InternalError
from warploom.search.outcome import Verdict
from warploom.sketch.term.evaluate import Fill, Ids, TermStore, choices, evaluate_step
from warploom.sketch.term.ir import Goal, Literal, Program, Step
from warploom.sketch.term.limits import show_shape
from warploom.sketch.term.numeric import Numbers, assign, evaluate_numbers_step, goal_numbers
from warploom.sketch.term.show import show_term

T = TypeVar("T")

_SHOWN = 200  # characters of a term in a message


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict; if refuted, the first cell that is wrong, what it holds and what it should."""

    verdict: Verdict
    wrong_cells: int = 0
    cell: tuple[int, ...] | None = None
    holds: str = ""
    should_hold: str = ""

    def __bool__(self) -> bool:
        return self.verdict is Verdict.PROVED

    def __str__(self) -> str:
        if self.cell is None:
            return self.verdict.value
        place = ", ".join(map(str, self.cell))
        return (
            f"{self.verdict.value}: cell ({place}) holds {self.holds}, should hold "
            f"{self.should_hold} ({self.wrong_cells} cells are wrong)"
        )


def verify(program: Program, goal: Goal, fill: Fill = (), seed: int = 0) -> Verification:
    """Runs the filled program on symbols and on random numbers and compares with the goal."""
    return Verifier(program, goal, seed).verify(fill)


class Verifier:
    """Prepared once, verifies many fills; choices shared with the fill before are not run again."""

    def __init__(self, program: Program, goal: Goal, seed: int = 0) -> None:
        last = program.steps[-1]
        if goal.shape != last.shape:
            raise CheckError(
                f"the goal has shape {show_shape(goal.shape)}, "
                f"the last step {show_shape(last.shape)}"
            )
        self.program = program
        self.goal = goal
        self._assignment = assign(program, goal, seed)
        self._store = TermStore()
        self._goal_ids = self._store.numbers(goal.values)
        self._goal_numbers = goal_numbers(goal, self._assignment)
        self._ids = _Rerun[Ids](program)
        self._numbers = _Rerun[Numbers](program)

    def verify(self, fill: Fill = ()) -> Verification:
        taken = choices(self.program, fill)
        ids = self._ids(taken, self._run_ids)
        wrong = ids != self._goal_ids
        wrong |= ids == 0  # an undefined cell satisfies nothing
        numbers = self._numbers(taken, self._run_numbers)
        if not wrong.any():
            if numbers.differs(self._goal_numbers).any():
                raise InternalError("a fill is right on symbols but wrong on numbers")
            return Verification(Verdict.PROVED)
        first = int(np.argmax(wrong))
        cell = tuple(int(i) for i in np.unravel_index(first, self.goal.shape))
        return Verification(
            Verdict.REFUTED,
            int(np.count_nonzero(wrong)),
            cell,
            show_term(self._store.term(int(ids[first])), _SHOWN),
            show_term(self.goal.values[first], _SHOWN),
        )

    def _run_ids(self, step: Step, arrays: list[Ids], choice: int) -> Ids:
        return evaluate_step(self._store, step, arrays, choice)

    def _run_numbers(self, step: Step, arrays: list[Numbers], choice: int) -> Numbers:
        return evaluate_numbers_step(step, arrays, choice, self._assignment)


class _Rerun(Generic[T]):
    """Runs a program again, but only the steps that the changed choices reach: what comes out the
    same, because nobody reads what changed, goes no further."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._taken: tuple[int, ...] = ()
        self._arrays: list[T] = []
        self._needed = _needed(program)

    def __call__(self, taken: tuple[int, ...], run: Callable[[Step, list[T], int], T]) -> T:
        before, arrays = self._taken, self._arrays
        # Forget the last run first: an interrupted one must not be built upon.
        self._taken, self._arrays = (), []
        now: list[T] = []
        fresh: list[bool] = []
        for position, step in enumerate(self._program.steps):
            args = () if isinstance(step, Literal) else step.args
            again = not before or before[position] != taken[position]
            again = again or any(fresh[arg] for arg in args)
            if position not in self._needed and now:
                now.append(now[0])  # nobody reads it
                fresh.append(False)
                continue
            now.append(run(step, now, taken[position]) if again else arrays[position])
            fresh.append(again and not (before and _same(now[position], arrays[position])))
        self._taken, self._arrays = taken, now
        return now[-1]


def _needed(program: Program) -> set[int]:
    """The steps that the last one depends on."""
    needed = {len(program.steps) - 1}
    for position in reversed(range(len(program.steps))):
        step = program.steps[position]
        if position in needed and not isinstance(step, Literal):
            needed.update(step.args)
    return needed


def _same(one: object, two: object) -> bool:
    """Arrays, or records of arrays, that are equal."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    names = [field.name for field in fields(one)]  # type: ignore[arg-type]  # a record
    return all(_same(getattr(one, name), getattr(two, name)) for name in names)
