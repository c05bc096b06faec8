"""Whether a filled sketch does what its goal asks: a fill comes in, a verdict comes out.

It runs the program as `evaluate.py` and `numeric.py` define it and knows nothing of any search. The
goal is run on numbers as the function that it was given as, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.search.outcome import Verdict
from warploom.sketch.term import spec
from warploom.sketch.term.evaluate import Fill, Ids, TermStore, choices, evaluate_step
from warploom.sketch.term.ir import Apply, Constant, Fold, Goal, Literal, Program, Step
from warploom.sketch.term.laws import REASSOCIATED, laws_named, uses
from warploom.sketch.term.limits import heights, show_shape
from warploom.sketch.term.numeric import (
    MEAN,
    TRIALS,
    Assignment,
    Draw,
    Numbers,
    assign,
    evaluate_numbers_step,
    function_draws,
    given_numbers,
    goal_numbers,
)
from warploom.sketch.term.operator import WORD, is_function
from warploom.sketch.term.read import Reading, live_steps, read
from warploom.sketch.term.show import show_term

T = TypeVar("T")

WRONG_ON_NUMBERS = "fills that are right on symbols are wrong on numbers"
_EVERY_TYPE_HOLDS = 127  # the integers up to here
_WIDE = 8  # bytes of integers that hold what symbols are drawn for
_SHOWN = 200  # characters of a term in a message
_MORE_TRIALS = 13  # of a goal's function against its terms
_MORE_NUMBERS = 1 << 14  # cells computed for that at most


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The verdict; if refuted, the first cell that is wrong, what it holds and what it should.

    `covers` says what was run, of that `tried` on which numbers functions were compared, `laws` up
    to which laws it agrees, `not_covered` what a kernel may still do differently. `on_numbers`: on
    symbols nothing is wrong, but functions compute another number than the goal's.
    """

    verdict: Verdict
    wrong_cells: int = 0
    cell: tuple[int, ...] | None = None
    holds: str = ""
    should_hold: str = ""
    covers: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    laws: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    on_numbers: bool = False

    def __bool__(self) -> bool:
        return self.verdict is Verdict.PROVED

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        if self.cell is None:
            return "; ".join([self.verdict.value, *self.notes])
        place = ", ".join(map(str, self.cell))
        return (
            f"{self.verdict.value}: cell ({place}) holds {self.holds}, should hold "
            f"{self.should_hold} ({self.wrong_cells} cells are wrong)"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the verdict rests on, and what it does not cover."""
        rest = (f"not covered: {', '.join(self.not_covered)}",) if self.not_covered else ()
        return (*self.laws, *self.tried, *rest)


def verify(
    program: Program, goal: Goal, fill: Fill = (), seed: int = 0, laws: str | None = None
) -> Verification:
    """Runs the filled program on symbols and on random numbers and compares with the goal.

    `laws`, "flatten" or "none", says which rewrites count as equal; by default the goal says.
    """
    goal = goal if laws is None else replace(goal, laws=laws_named(laws))
    return Verifier(program, goal, seed).verify(fill)


class Verifier:
    """Prepared once, verifies many fills; choices shared with the fill before are not run again."""

    def __init__(self, program: Program, goal: Goal, seed: int = 0, trials: int = TRIALS) -> None:
        self._seed, self._trials = seed, trials
        last = program.steps[-1]
        if goal.shape != last.shape:
            raise CheckError(
                f"the goal has shape {show_shape(goal.shape)}, "
                f"the last step {show_shape(last.shape)}"
            )
        self._reading = reading = read(program, goal)
        self.program, self.goal = reading.program, reading.goal
        self._goal_laws = uses(goal.values, goal.laws)
        self._store = TermStore(reading.words, goal.laws)
        self._goal_ids = self._store.numbers(self.goal.values)
        self._ids = _Rerun[Ids](self.program)
        self._numbers = _Rerun[Numbers](self.program)

    @cached_property
    def _on_numbers(self) -> _OnNumbers:
        return _prepared(self._reading, self._seed, self._trials)

    def verify(self, fill: Fill = ()) -> Verification:
        taken = choices(self.program, fill)
        ids = self._ids(taken, self._run_ids)
        wrong = ids != self._goal_ids
        wrong |= ids == 0  # an undefined cell satisfies nothing
        if wrong.any():
            first = int(np.argmax(wrong))
            holds = show_term(self._store.term(int(ids[first])), _SHOWN)
            return self._refuted(wrong, holds, show_term(self.goal.values[first], _SHOWN))
        run = self._numbers(taken, self._run_numbers), self._on_numbers.goal
        for numbers, goal in (run, *self._on_numbers.more):
            wrong = numbers.differs(goal)
            if wrong.any():
                first = int(np.argmax(wrong))
                trial = int(np.argmin(numbers.same(goal)[:, first]))
                holds = f"{numbers.values[trial, first]} on numbers"
                refuted = self._refuted(wrong, holds, f"{goal.values[trial, first]}")
                return replace(refuted, on_numbers=True)
        used = self._goal_laws | self._store.used
        return Verification(
            Verdict.PROVED,
            covers=("symbols", *self._on_numbers.covers, *self._on_numbers.tried),
            tried=self._on_numbers.tried,
            laws=tuple(_law(*use) for use in sorted(used, reverse=True)),
            not_covered=self._on_numbers.not_covered,
        )

    def agrees_on_numbers(self, fill: Fill = ()) -> bool:
        """Whether it holds what the goal asks for on the numbers tried, equal as a term or not."""
        numbers = self._numbers(choices(self.program, fill), self._run_numbers)
        return not numbers.differs(self._on_numbers.goal).any()

    def _refuted(self, wrong: npt.NDArray[np.bool_], holds: str, should: str) -> Verification:
        first = int(np.argmax(wrong))
        cell = tuple(int(i) for i in np.unravel_index(first, self.goal.shape))
        return Verification(Verdict.REFUTED, int(np.count_nonzero(wrong)), cell, holds, should)

    def _run_ids(self, step: Step, arrays: list[Ids], choice: int) -> Ids:
        return evaluate_step(self._store, step, arrays, choice)

    def _run_numbers(self, step: Step, arrays: list[Numbers], choice: int) -> Numbers:
        return evaluate_numbers_step(step, arrays, choice, self._on_numbers.assignment)


# -- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _OnNumbers:
    """What is wanted on numbers, and how far comparing with it goes.

    `more` has what the goal's terms, which the program was seen to hold, and its function make of
    further numbers.
    """

    assignment: Assignment
    goal: Numbers
    covers: tuple[str, ...]
    tried: tuple[str, ...]
    not_covered: tuple[str, ...]
    more: tuple[tuple[Numbers, Numbers], ...] = ()


def _prepared(reading: Reading, seed: int, trials: int) -> _OnNumbers:
    functions = _functions(reading)
    draws = _draws(reading, functions, seed)
    if functions.known and not draws:
        functions = replace(functions, known=frozenset(), opened=_failing(reading, functions))
    assignment = assign(reading, seed, trials, functions.known, draws)
    goal, how, failed = _goal_numbers(reading.goal, assignment, functions.by_function)
    on = ", ".join(map(str, draws))
    tried = tuple(f"finish '{name}' (tried on {on})" for name in sorted(functions.known))
    opened = (*_exact_only(reading), *functions.opened, *failed)
    compared = functions.by_function and not failed and not _calls(reading.goal)
    more = tuple(_more(reading, seed + 1)) if compared else ()
    return _OnNumbers(assignment, goal, (how,), tried, opened, more)


def _more(reading: Reading, seed: int) -> Iterator[tuple[Numbers, Numbers]]:
    """A goal's terms and its function on numbers of their own: they differ if the function decides
    by what its inputs are, by some way that symbols do not refuse."""
    trials = min(_MORE_TRIALS, _MORE_NUMBERS // len(reading.goal.values))
    if trials:
        drawn = assign(reading, seed, trials)
        goal, how, failed = _goal_numbers(reading.goal, drawn, runs=True)
        if failed:
            raise CheckError(f"the goal runs on some numbers only: {how}", reading.goal.span)
        yield goal_numbers(reading.goal, drawn), goal


def _calls(goal: Goal) -> bool:
    """Whether there are functions in a goal: its terms do not say what they compute."""
    return any(is_function(fold.operator) for fold in heights(goal.values))


def _exact_only(reading: Reading) -> Iterator[str]:
    """What a kernel may do differently because its numbers are not exact, and its zeros numbers."""
    program = reading.program
    steps = [program.steps[position] for position in sorted(live_steps(program))]
    folds = {s.operator for s in steps if isinstance(s, Apply) and s.fold is not None}
    if WORD in folds:
        yield "what 'fold' computes"
    if reading.zeros:
        yield f"zeros in what is written 'fold', which takes them for nothing ({reading.zeros})"
    computed = any(isinstance(s, Apply) and s.function is not None for s in steps)
    if folds & {"+", "*", WORD} or computed:
        yield "rounding and overflow"
    if folds & {"min", "max"}:
        yield "what is no number (NaN)"
    values = [value for step in steps if isinstance(step, Literal) for value in step.values]
    numbers = {value.value for value in values if isinstance(value, Constant)}
    for number in sorted(numbers):
        if not isinstance(number, int) or abs(number) > _EVERY_TYPE_HOLDS:
            yield f"how the element type holds {number}"


def _law(what: str, operator: str) -> str:
    if what == REASSOCIATED and operator in ("+", "*"):
        return f"{what}: {operator} (in floating point the result may round differently)"
    return f"{what}: {operator}"


def _goal_numbers(
    goal: Goal, assignment: Assignment, runs: bool
) -> tuple[Numbers, str, tuple[str, ...]]:
    """What the goal asks for on numbers, how that was computed, and what failed on the way."""
    terms = "numbers, by the goal's terms"
    if not runs:
        return goal_numbers(goal, assignment), terms, ()
    try:
        return _by_function(goal, assignment), "numbers, by the goal's function", ()
    except Exception as error:  # noqa: BLE001  # it is the user's code
        how = f"{terms} (its function does not run on them: {_why(error)})"
        return goal_numbers(goal, assignment), how, ("the goal's function on numbers",)


def _by_function(goal: Goal, assignment: Assignment) -> Numbers:
    """The goal's own function on the numbers of every trial; what it raises goes through."""
    assert goal.specification is not None
    trials = range(assignment.trials)
    drawn = [{n: values[t] for n, values in assignment.symbols.items()} for t in trials]
    cells = [spec.run(goal.specification, numbers) for numbers in drawn]
    if any(len(row) != len(goal.values) for row in cells):
        raise CheckError("it returns another shape")
    for cell in (cell for row in cells for cell in row):
        # It is the numbers tried that do not fit: nothing is wrong with the program for that.
        if isinstance(cell, np.integer) and cell.dtype.itemsize < _WIDE:
            raise CheckError(f"it computes in {cell.dtype}, which these numbers overflow")
    return given_numbers(cells, assignment)


def _why(error: Exception) -> str:
    return str(error).splitlines()[0][:80] if str(error) else type(error).__name__


def _draws(reading: Reading, functions: NumericFunctions, seed: int) -> tuple[Draw, ...]:
    """The numbers on which the functions of both sides run."""
    if not functions.known:
        return ()
    called = {
        _name(step.operator): step.function
        for step in reading.program.steps
        if isinstance(step, Apply) and _name(step.operator) in functions.known and step.function
    }

    def runs(draw: Draw) -> bool:
        if not all(_runs_on(function, draw.probes) for function in called.values()):
            return False
        assignment = assign(reading, seed, known=functions.known, draws=(draw,))
        try:
            # What the program will hold, which was seen on symbols, with its own functions.
            goal_numbers(reading.goal, replace(assignment, given=called))
            compute = _by_function if functions.by_function else goal_numbers
            compute(reading.goal, assignment)
        except Exception:  # noqa: BLE001  # it is the user's code
            return False
        return True

    firsts = [next(filter(runs, kinds), None) for kinds in function_draws(reading.goal)]
    return tuple(draw for draw in firsts if draw is not None)


def _failing(reading: Reading, functions: NumericFunctions) -> tuple[str, ...]:
    """Why functions that both sides give are named only: there are no numbers for both."""
    names = ", ".join(f"finish '{name}'" for name in sorted(functions.known))
    why = "no numbers on which both sides run"
    if functions.by_function:
        _, how, failed = _goal_numbers(reading.goal, assign(reading), runs=True)
        why = f"the goal's function fails: {how.partition(': ')[2][:-1]}" if failed else why
    return (*functions.opened, f"{names} ({why})")


@dataclass(frozen=True, slots=True)
class NumericFunctions:
    """Functions such as `mean` in a program and its goal, and what becomes of them on numbers.

    `known` are computed on both sides, `opened` says of the others why they are only named. The
    goal is run as its own function unless that would compute what the program does not.
    """

    by_function: bool
    known: frozenset[str]
    opened: tuple[str, ...]


def _functions(reading: Reading) -> NumericFunctions:
    goal = reading.goal
    said = goal.specification.known if goal.specification else frozenset[str]()
    folds = [fold.operator for fold in heights(goal.values)]
    meant = {_name(operator) for operator in folds if is_function(operator)} - said
    why: dict[str, str] = {}
    for step in reading.program.steps:
        if isinstance(step, Apply) and is_function(step.operator):
            why[_name(step.operator)] = why.get(_name(step.operator)) or _cannot_run(step)
    computed = frozenset(name for name, reason in why.items() if not reason)
    means = computed & meant & _means(goal)
    by_function = goal.specification is not None and said <= computed and not means
    known = said if by_function else means
    opened = [
        f"finish '{name}' ({reason or 'no function given'})"
        for name, reason in sorted(why.items())
        if name not in known
    ]
    return NumericFunctions(by_function, known, tuple(opened))


def _means(goal: Goal) -> frozenset[str]:
    """The mean of a sum needs no function: its terms say of how many items it is. Of a product, or
    anything else, nobody says what is meant."""
    items = [fold.items[0] for fold in heights(goal.values) if fold.operator == MEAN]
    sums = all(not isinstance(item, Fold) or item.operator == "+" for item in items)
    return frozenset({_name(MEAN)}) if sums else frozenset()


def _name(operator: str) -> str:
    return operator.removesuffix("()")


def _cannot_run(step: Apply) -> str:
    """Why a step's function cannot be compared on numbers; nothing if it can."""
    if step.function is None:
        return "the step gives no function"
    kinds = [draw.probes for draw in (Draw(0), Draw(4), Draw(8, halves=True))]
    runs = any(_runs_on(step.function, probes) for probes in kinds)
    return "" if runs else "its function does not run on numbers"


def _runs_on(function: Callable[[Any], Any], numbers: Sequence[float]) -> bool:
    try:
        with np.errstate(all="ignore"):
            return all(isinstance(function(number), Real) for number in numbers)
    except Exception:  # noqa: BLE001  # it is the user's code
        return False


class _Rerun(Generic[T]):
    """Runs a program again, but only the steps that the changed choices reach: what comes out the
    same, because nobody reads what changed, goes no further."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._taken: tuple[int, ...] = ()
        self._arrays: list[T] = []
        self._needed = live_steps(program)

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


def _same(one: object, two: object) -> bool:
    """Arrays, or records of arrays, that are equal."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    names = [field.name for field in fields(one)]  # type: ignore[arg-type]  # a record
    return all(_same(getattr(one, name), getattr(two, name)) for name in names)
