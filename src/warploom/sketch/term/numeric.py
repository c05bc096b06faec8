"""What a sketch means on numbers: symbols become random numbers and every fold computes.

    gather   as on symbols
    fold     each run of cells is added up, multiplied, … by the step's operator; a zero is the
             neutral element of the fold that consumes it, and 0 where none does

The program is run with its operators and the goal with its own. Where there are only sums and
products, numbers are residues modulo a prime, otherwise exact. A `fold` of which nobody says what
it is adds in the outermost folds of the goal, multiplies in those inside, and so on by turns.
"""

from __future__ import annotations

import math
import operator as python
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, Span
from warploom.sketch.term import ir
from warploom.sketch.term.evaluate import Fill, choices
from warploom.sketch.term.limits import height, heights
from warploom.sketch.term.operator import NEUTRAL, WORD, function, is_function, says
from warploom.sketch.term.read import Reading

PRIME = (1 << 31) - 1  # products of two residues fit in 64 bits
EXACT_BITS = 24  # of the symbols, where numbers are exact
CLOSE = 1e-9  # how far two functions may be apart that round differently

TRIALS = 3
FUNCTION_TRIALS = 24  # for all cells together

NUMBER, ZERO_STATE, UNDEFINED_STATE = 0, 1, 2
_TAIL_STATE = np.array([UNDEFINED_STATE, ZERO_STATE], np.int8)
_TAIL_DEPTH = np.zeros(2, np.int8)

Values: TypeAlias = npt.NDArray[Any]  # [trials, cells]

MEAN = function("mean")  # the one function that has a meaning of its own

_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": python.add, "*": python.mul, "min": min, "max": max,
    "&": python.and_, "|": python.or_, "^": python.xor,
}  # fmt: skip
_NUMPY: dict[str, np.ufunc] = {
    "+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip


# -- one number at a time ------------------------------------------------------------------------


def apply(operator: str, numbers: Sequence[Any]) -> Any:
    """The exact sum, product, … of some numbers."""
    if operator not in _PYTHON:
        raise CheckError(f"'{operator}' does not say how to compute", advice="write an operator")
    try:
        return reduce(_PYTHON[operator], map(exact, numbers))
    except TypeError:  # such as the exclusive or of fractions
        raise CheckError(f"'{operator}' of numbers that it does not take") from None


def exact(number: Any) -> Any:
    """A Python number; a finite one of floating point as the fraction that it is."""
    if isinstance(number, np.integer):
        return int(number)
    is_finite = isinstance(number, float) and math.isfinite(number)
    return Fraction(number) if is_finite else number


def plain(number: Any) -> Any:
    """A number as functions of Python and NumPy take it: no fraction that is a float."""
    if not isinstance(number, Fraction) or abs(number) > 1 << 53:
        return number
    return float(number) if Fraction(float(number)) == number else number


def opaque(name: str, number: Any) -> Any:
    """A function of which nothing is known but its name: some quadratic polynomial of its own."""
    a, b, c = random.Random(name).sample(range(2, 1 << 20), 3)
    return (a * number + b) * number + c


# -- arrays of numbers ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """An array of numbers, several at once: `values[trial, cell]`.

    `state[cell]` is NUMBER, ZERO_STATE (nothing there: 0 unless a fold consumes it) or
    UNDEFINED_STATE; `depth[cell]` is how deep folds nest in the cell.
    """

    values: Values
    state: npt.NDArray[np.int8]
    depth: npt.NDArray[np.int8]

    def same(self, other: Numbers) -> npt.NDArray[np.bool_]:
        """[trial, cell]: where both hold the same; undefined cells never do."""
        same = self.values == other.values
        if "O" in (self.values.dtype.kind, other.values.dtype.kind):
            with np.errstate(all="ignore"):  # NaN is compared, too
                same = _same(self.values, other.values).astype(np.bool_)
        undefined = (self.state == UNDEFINED_STATE) | (other.state == UNDEFINED_STATE)
        return np.asarray(same & ~undefined)

    def differs(self, other: Numbers) -> npt.NDArray[np.bool_]:
        """Which cells do not hold the same."""
        return np.asarray(~self.same(other).all(axis=0))


def _same_number(one: Any, other: Any) -> bool:
    if one == other or (one != one and other != other):  # both are no number
        return True
    rounded = isinstance(one, float) or isinstance(other, float)
    return rounded and math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE**2)


_same = np.frompyfunc(_same_number, 2, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """What everything stands for. `symbols[number]` has a number for each trial.

    `dtype` is uint64 for residues, otherwise numbers are exact, in 64 bits or as Python objects.
    `known` are the functions that steps compute; all others are opaque. `given` are functions that
    terms compute.
    """

    symbols: dict[int, list[Any]]
    dtype: np.dtype[Any]
    words: tuple[str, ...]
    top: int  # the depth of the goal
    known: frozenset[str]
    trials: int
    given: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def residues(self) -> bool:
        return self.dtype == np.uint64

    def reduced(self, number: Any) -> Any:
        return number % PRIME if self.residues else number

    def word(self, depth: int) -> str:
        """What a `fold` of this depth computes."""
        said = self.words[depth] if depth < len(self.words) else WORD
        return said if said != WORD else "+*"[(self.top - depth) % 2]


@dataclass(frozen=True, slots=True)
class Draw:
    """Random numbers of one kind: whole ones, or halves, from 1 to `most`, or of both signs."""

    most: int
    signed: bool = False
    halves: bool = False
    trials: int = TRIALS

    def numbers(self, shape: tuple[int, int], seed: int) -> list[list[Any]]:
        """Random numbers that depend on the draw and the seed alone: runs can be repeated."""
        generator = np.random.default_rng((seed, self.most, self.signed, self.halves))
        least = -self.most if self.signed else min(1, self.most)
        drawn = generator.integers(least, self.most, shape, np.int64, endpoint=True)
        return (drawn / 2 if self.halves else drawn).tolist()  # type: ignore[no-any-return]

    @property
    def probes(self) -> list[float]:
        """On these a function must run that is to be tried on such numbers."""
        whole = {min(1, self.most), min(3, self.most), self.most}
        both = sorted(whole | {-number for number in whole} if self.signed else whole)
        return [number / 2 for number in both] if self.halves else list(both)

    def __str__(self) -> str:
        bits = self.most.bit_length() - 1
        most = f"2^{bits}" if bits > 9 else f"{self.most // 2 if self.halves else self.most}"
        what = "halves" if self.halves else "whole numbers"
        return f"{what} up to {'±' if self.signed else ''}{most}" if self.most else "0"


def function_draws(goal: ir.Goal) -> list[tuple[Draw, ...]]:
    """On what functions are tried: of each the first on which they run."""
    # So often that a cell has numbers of both signs, and halves that do not add up to whole ones.
    trials = max(TRIALS, FUNCTION_TRIALS // len(goal.values))
    # Halves are few bits long: sums and products of some are exact in floating point, too.
    kinds = [(4, False), (8, True), (1 << EXACT_BITS, False), (1 << _symbol_bits(goal, 60), False)]
    signs = [tuple(Draw(most, sign, h, trials) for sign in (True, False)) for most, h in kinds]
    return [(Draw(0, trials=1),), *signs]


def assign(
    reading: Reading,
    seed: int = 0,
    trials: int = TRIALS,
    known: frozenset[str] = frozenset(),
    draws: Sequence[Draw] = (),
) -> Assignment:
    """Random numbers for all symbols, of a kind that all operators can compute with, or these."""
    program, goal = reading.program, reading.goal
    literals = [step.values for step in program.steps if isinstance(step, ir.Literal)]
    leaves = list(ir.leaves_of([value for values in (*literals, goal.values) for value in values]))
    dtype = _dtype(program, goal, leaves, known)
    most = PRIME - 1 if dtype == np.uint64 else 1 << EXACT_BITS
    if goal.specification is not None:
        most = min(most, 1 << _symbol_bits(goal))
    draws = draws or (Draw(most, signed=dtype != np.uint64, trials=trials),)
    numbers = sorted({leaf.number for leaf in leaves if isinstance(leaf, ir.Symbol)})
    parts = [draw.numbers((len(numbers), draw.trials), seed) for draw in draws]
    symbols = {n: [v for part in parts for v in part[at]] for at, n in enumerate(numbers)}
    count = sum(draw.trials for draw in draws)
    return Assignment(symbols, dtype, reading.words, height(goal.values), known, count)


def _symbol_bits(goal: ir.Goal, most: int = 30) -> int:
    """How long symbols may be so that a goal's function does not overflow in NumPy's integers."""
    known = heights(goal.values)
    folds = sorted(known, key=known.__getitem__)  # what is inside comes first
    for bits in range(most, 8, -1):
        longest: dict[ir.Term, int] = {}
        for fold in folds:
            items = [longest.get(item, bits) for item in fold.items]
            together = sum(items) if fold.operator == "*" else max(items)
            longest[fold] = together + len(items).bit_length()
        if max(longest.values(), default=0) < 62:
            return bits
    return 8


def _dtype(
    program: ir.Program, goal: ir.Goal, leaves: list[ir.Symbol | ir.Constant], known: frozenset[str]
) -> np.dtype[Any]:
    folds = [step for step in program.steps if isinstance(step, ir.Apply) and step.fold is not None]
    used = {step.operator for step in folds}
    for step in program.steps:
        used |= (
            {f.operator for f in heights(step.values)} if isinstance(step, ir.Literal) else set()
        )
    used |= {fold.operator for fold in heights(goal.values)}
    numbers = [leaf.value for leaf in leaves if isinstance(leaf, ir.Constant)]
    functions = {operator for operator in used if is_function(operator)}
    if all(isinstance(number, int) for number in numbers):
        if used - functions <= {"+", "*", WORD} and functions.isdisjoint(map(function, known)):
            return np.dtype(np.uint64)
        largest = max(EXACT_BITS, *(int(number).bit_length() for number in numbers), 0)
        if not functions and _bits(program, largest) < 62:
            return np.dtype(np.int64)
    return np.dtype(object)


def _bits(program: ir.Program, leaves: int) -> int:
    """How long the numbers of the program may become, in bits."""
    bits: list[int] = []
    for step in program.steps:
        if isinstance(step, ir.Literal):
            folds = heights(step.values)
            longest = max((len(fold.items) for fold in folds), default=1)
            bits.append(leaves * longest ** max(folds.values(), default=0))
            continue
        inner, run = max((bits[arg] for arg in step.args), default=0), step.fold or 1
        wider = {"+": inner + run.bit_length(), "*": inner * run, WORD: inner * run}
        bits.append(wider.get(step.operator, inner))
    return max(bits)


# -- programs ------------------------------------------------------------------------------------


def evaluate_numbers(program: ir.Program, fill: Fill, assignment: Assignment) -> list[Numbers]:
    """The numbers of every step."""
    arrays: list[Numbers] = []
    for step, choice in zip(program.steps, choices(program, fill), strict=True):
        arrays.append(evaluate_numbers_step(step, arrays, choice, assignment))
    return arrays


def evaluate_numbers_step(
    step: ir.Step, arrays: list[Numbers], choice: int, assignment: Assignment
) -> Numbers:
    if isinstance(step, ir.Literal):
        return term_numbers(step.values, assignment)
    args = [arrays[arg] for arg in step.args]
    tail = np.zeros((assignment.trials, 2), assignment.dtype)
    table = step.gathers.table(choice)
    gathered = Numbers(
        np.concatenate([*(arg.values for arg in args), tail], axis=1)[:, table],
        np.concatenate([*(arg.state for arg in args), _TAIL_STATE])[table],
        np.concatenate([*(arg.depth for arg in args), _TAIL_DEPTH])[table],
    )
    if step.fold is None:
        return gathered
    if is_function(step.operator):
        return _called(gathered, step, assignment)
    return _folded(gathered, step, step.fold, assignment)


def _folded(cells: Numbers, step: ir.Apply, run: int, assignment: Assignment) -> Numbers:
    values = cells.values.reshape(assignment.trials, -1, run)
    state = cells.state.reshape(-1, run)
    missing = state == ZERO_STATE
    empty = missing.all(axis=1)
    depth = np.where(missing, 0, cells.depth.reshape(-1, run)).max(axis=1) + 1
    result = np.zeros(values.shape[:2], assignment.dtype)
    try:
        for operator, runs in _operators(step, depth, assignment):
            part = _reduced(operator, values[:, runs], missing[runs], assignment)
            result[:, runs] = part
    except TypeError:
        raise CheckError(
            f"'{step.name}' {says(step.operator)} of numbers that it does not take", step.span
        ) from None
    depth[empty] = 0
    undefined = (state == UNDEFINED_STATE).any(axis=1)
    result[:, undefined | empty] = 0
    new_state = np.where(undefined, UNDEFINED_STATE, np.where(empty, ZERO_STATE, NUMBER))
    return Numbers(result, new_state.astype(np.int8), depth.astype(np.int8))


def _operators(
    step: ir.Apply, depth: npt.NDArray[Any], assignment: Assignment
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Which runs the step packs with which operator: one, unless it is written `fold`."""
    if step.operator != WORD:
        yield step.operator, np.ones(len(depth), np.bool_)
        return
    for found in np.unique(depth).tolist():
        yield assignment.word(found), depth == found


def _reduced(
    operator: str, values: Values, missing: npt.NDArray[np.bool_], assignment: Assignment
) -> Values:
    """The fold of each run, the last axis; a missing cell is the operator's neutral element."""
    filled = np.where(missing, _neutral(operator, assignment.dtype), values)
    if not assignment.residues:
        exactly: Values = _NUMPY[operator].reduce(filled, axis=2)
        return exactly
    if operator == "+":
        return np.asarray(filled.sum(axis=2) % PRIME)
    product = np.ones(filled.shape[:2], np.uint64)
    for column in range(filled.shape[2]):
        product = product * filled[:, :, column] % PRIME
    return product


def _neutral(operator: str, dtype: np.dtype[Any]) -> Any:
    number = NEUTRAL[operator]
    if math.isinf(number) and dtype == np.int64:  # no number of the program is as large
        return np.iinfo(np.int64).max if number > 0 else np.iinfo(np.int64).min
    return np.array(number).astype(dtype)


def _called(cells: Numbers, step: ir.Apply, assignment: Assignment) -> Numbers:
    """A function of each cell; a zero that it consumes is 0."""
    name = step.operator.removesuffix("()")
    compute = step.function if name in assignment.known else None
    values = np.where(cells.state == NUMBER, cells.values, np.zeros(1, assignment.dtype))
    result = np.empty(values.shape, assignment.dtype)
    for at, number in np.ndenumerate(values.astype(object)):
        if compute is None:
            computed = opaque(name, number)
        else:
            computed = _computed(name, compute, number, step.span)
        result[at] = assignment.reduced(computed)
    undefined = cells.state == UNDEFINED_STATE
    result[:, undefined] = 0
    state = np.where(undefined, UNDEFINED_STATE, NUMBER).astype(np.int8)
    return Numbers(result, state, cells.depth + np.int8(1))


def _computed(
    name: str, compute: Callable[[Any], Any], number: Any, span: Span | None = None
) -> Any:
    try:
        with np.errstate(all="ignore"):
            return compute(plain(number))
    except Exception as error:  # noqa: BLE001  # it is the user's code
        what = f"{type(error).__name__}: {error}"
        failed = f"the function of '{name}' fails on {number}: {what}"[:200]
        raise CheckError(failed, span) from None


# -- terms ---------------------------------------------------------------------------------------


def goal_numbers(goal: ir.Goal, assignment: Assignment) -> Numbers:
    """The numbers the goal asks for, by its terms: they may be longer than the program's."""
    try:
        return term_numbers(goal.values, assignment, unbounded=not assignment.residues)
    except CheckError as error:
        if error.span is not None:
            raise
        raise CheckError(f"in the goal: {error.message}", goal.span, error.advice) from None


def given_numbers(cells: list[list[Any]], assignment: Assignment) -> Numbers:
    """Numbers that a goal's own function computed: a row of cells for each trial."""
    values = np.empty((len(cells), len(cells[0])), object)
    for at, row in enumerate(cells):
        values[at] = [assignment.reduced(exact(number)) for number in row]
    count = values.shape[1]
    if assignment.residues:
        if not all(isinstance(number, int) for number in values.flat):
            raise CheckError("sums and products of integers are integers")
        values = values.astype(np.uint64)
    return Numbers(values, np.zeros(count, np.int8), np.zeros(count, np.int8))


def term_numbers(
    terms: tuple[ir.Term, ...], assignment: Assignment, unbounded: bool = False
) -> Numbers:
    """Terms as numbers, one by one: shares nothing with how steps are run."""
    kind = np.dtype(object) if unbounded else assignment.dtype
    values = np.zeros((assignment.trials, len(terms)), kind)
    state = np.zeros(len(terms), np.int8)
    depth = np.zeros(len(terms), np.int8)
    memo: dict[ir.Term, tuple[list[Any], int]] = {}
    for cell, term in enumerate(terms):
        if isinstance(term, ir.Zero):
            state[cell] = ZERO_STATE
        elif isinstance(term, ir.Undefined):
            state[cell] = UNDEFINED_STATE
        else:
            values[:, cell], depth[cell] = _of_term(term, assignment, memo)
    return Numbers(values, state, depth)


def _of_term(
    term: ir.Term, assignment: Assignment, memo: dict[ir.Term, tuple[list[Any], int]]
) -> tuple[list[Any], int]:
    """The value of a term in every trial, and its depth, in plain Python numbers."""
    match term:
        case ir.Symbol(number):
            return assignment.symbols[number], 0
        case ir.Constant(value):
            return [assignment.reduced(exact(value))] * assignment.trials, 0
        case ir.Zero():  # only a function has one inside
            return [0] * assignment.trials, 0
    assert isinstance(term, ir.Fold)
    if term not in memo:
        items = [_of_term(item, assignment, memo) for item in term.items]
        depth = 1 + max(depth for _, depth in items)
        trials = zip(*(values for values, _ in items), strict=True)
        computed = [_compute(term, depth, list(row), assignment) for row in trials]
        memo[term] = [assignment.reduced(number) for number in computed], depth
    return memo[term]


def _compute(term: ir.Fold, depth: int, numbers: list[Any], assignment: Assignment) -> Any:
    operator = assignment.word(depth) if term.operator == WORD else term.operator
    if not is_function(operator):
        return apply(operator, numbers)
    name = operator.removesuffix("()")
    if name in assignment.given:
        return _computed(name, assignment.given[name], numbers[0])
    if operator == MEAN and "mean" in assignment.known:
        return Fraction(numbers[0]) / _summands(term.items[0])
    return opaque(name, numbers[0])


def _summands(term: ir.Term) -> int:
    """How many items a sum has, what it starts with aside."""
    items = term.items if isinstance(term, ir.Fold) and term.operator == "+" else (term,)
    return max(1, sum(not isinstance(item, ir.Constant) for item in items))
