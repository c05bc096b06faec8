"""What a sketch means on numbers: symbols become random numbers modulo a prime, folds become sums
and products, and the program is run as its kernel would be.

Terms do not say which operator a fold stands for, so the operator goes with how deep folds nest:
what the text says (`+`, `*`) where all folds of one depth agree, otherwise sum for the outermost
folds of the goal, product for those inside, and so on by turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.sketch.term.evaluate import Fill, choices
from warploom.sketch.term.ir import (
    Apply,
    Fold,
    Goal,
    Literal,
    Program,
    Step,
    Symbol,
    Term,
    Undefined,
    Zero,
)
from warploom.sketch.term.limits import height

PRIME = (1 << 31) - 1  # products of two residues fit in 64 bits

NUMBER, ZERO_STATE, UNDEFINED_STATE = 0, 1, 2
_TAIL_STATE = np.array([UNDEFINED_STATE, ZERO_STATE], np.int8)
_TAIL_DEPTH = np.zeros(2, np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """An array of numbers, several at once: `values[trial, cell]`.

    `state[cell]` is NUMBER, ZERO_STATE (nothing there: the identity of whatever folds it) or
    UNDEFINED_STATE; `depth[cell]` is how deep folds nest in the cell.
    """

    values: npt.NDArray[np.uint64]
    state: npt.NDArray[np.int8]
    depth: npt.NDArray[np.int8]

    def differs(self, other: Numbers) -> npt.NDArray[np.bool_]:
        """Which cells do not hold the same; undefined cells never do."""
        wrong: npt.NDArray[np.bool_] = (self.values != other.values).any(axis=0)
        wrong &= self.state == NUMBER
        wrong |= (self.state != other.state) | (self.state == UNDEFINED_STATE)
        return wrong


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """What symbols and folds stand for: `values[symbol][trial]`, and `products[depth]`."""

    values: dict[int, npt.NDArray[np.uint64]]
    products: npt.NDArray[np.bool_]
    trials: int


def assign(program: Program, goal: Goal, seed: int = 0, trials: int = 3) -> Assignment:
    """Random numbers for all symbols of the program and the goal, and operators for its folds."""
    literals = [step.values for step in program.steps if isinstance(step, Literal)]
    symbols = sorted({number for values in (*literals, goal.values) for number in _symbols(values)})
    drawn = np.random.default_rng(seed).integers(2, PRIME, (len(symbols), trials), np.uint64)
    return Assignment(dict(zip(symbols, drawn, strict=True)), _products(program, goal), trials)


def _symbols(values: tuple[Term, ...]) -> Iterator[int]:
    stack: list[Term] = list(values)
    seen: set[Fold] = set()
    while stack:
        term = stack.pop()
        if isinstance(term, Symbol):
            yield term.number
        elif isinstance(term, Fold) and term not in seen:
            seen.add(term)
            stack += term.items


def _products(program: Program, goal: Goal) -> npt.NDArray[np.bool_]:
    """For each nesting depth, whether folds of that depth multiply."""
    depths: list[int] = []
    written: dict[int, set[str]] = {}
    for step in program.steps:
        if isinstance(step, Literal):
            depths.append(height(step.values))
            continue
        depth = max((depths[arg] for arg in step.args), default=0) + (step.fold is not None)
        depths.append(depth)
        if step.fold is not None and step.operator != "fold":
            written.setdefault(depth, set()).add(step.operator)
    top = height(goal.values)
    products = np.array([(top - d) % 2 == 1 for d in range(max(*depths, top) + 1)])
    for depth, operators in written.items():
        if len(operators) == 1:
            products[depth] = operators == {"*"}
    return products


def evaluate_numbers(program: Program, fill: Fill, assignment: Assignment) -> list[Numbers]:
    """The numbers of every step."""
    arrays: list[Numbers] = []
    for step, choice in zip(program.steps, choices(program, fill), strict=True):
        arrays.append(evaluate_numbers_step(step, arrays, choice, assignment))
    return arrays


def goal_numbers(goal: Goal, assignment: Assignment) -> Numbers:
    """The numbers the goal asks for."""
    return _of_terms(goal.values, assignment)


def evaluate_numbers_step(
    step: Step, arrays: list[Numbers], choice: int, assignment: Assignment
) -> Numbers:
    if isinstance(step, Literal):
        return _of_terms(step.values, assignment)
    args = [arrays[arg] for arg in step.args]
    tail = np.zeros((assignment.trials, 2), np.uint64)
    table = step.gathers.table(choice)
    gathered = Numbers(
        np.concatenate([*(arg.values for arg in args), tail], axis=1)[:, table],
        np.concatenate([*(arg.state for arg in args), _TAIL_STATE])[table],
        np.concatenate([*(arg.depth for arg in args), _TAIL_DEPTH])[table],
    )
    return gathered if step.fold is None else _fold(gathered, step, assignment)


def _fold(cells: Numbers, step: Apply, assignment: Assignment) -> Numbers:
    """Sums or multiplies each run of cells; a missing cell is 0 in a sum and 1 in a product."""
    assert step.fold is not None
    values = cells.values.reshape(assignment.trials, -1, step.fold)
    state = cells.state.reshape(-1, step.fold)
    missing = state == ZERO_STATE
    empty = missing.all(axis=1)
    depth = np.where(missing, 0, cells.depth.reshape(-1, step.fold)).max(axis=1) + 1
    depth[empty] = 0
    multiply = assignment.products[depth]
    result = np.where(missing, np.uint64(0), values).sum(axis=2) % PRIME
    if multiply.any():
        product = np.ones_like(result)
        for column in range(step.fold):
            factor = np.where(missing[:, column], np.uint64(1), values[:, :, column])
            product = product * factor % PRIME
        result = np.where(multiply, product, result)
    undefined = (state == UNDEFINED_STATE).any(axis=1)
    result[:, undefined | empty] = 0
    new_state = np.where(undefined, UNDEFINED_STATE, np.where(empty, ZERO_STATE, NUMBER))
    return Numbers(result, new_state.astype(np.int8), depth.astype(np.int8))


def _of_terms(terms: tuple[Term, ...], assignment: Assignment) -> Numbers:
    """Terms as numbers, one by one: shares nothing with how steps are run."""
    values = np.zeros((assignment.trials, len(terms)), np.uint64)
    state = np.zeros(len(terms), np.int8)
    depth = np.zeros(len(terms), np.int8)
    memo: dict[Term, tuple[list[int], int]] = {}
    for cell, term in enumerate(terms):
        if isinstance(term, Zero):
            state[cell] = ZERO_STATE
        elif isinstance(term, Undefined):
            state[cell] = UNDEFINED_STATE
        else:
            values[:, cell], depth[cell] = _of_term(term, assignment, memo)
    return Numbers(values, state, depth)


def _of_term(
    term: Term, assignment: Assignment, memo: dict[Term, tuple[list[int], int]]
) -> tuple[list[int], int]:
    """A symbol's or fold's value in every trial, and its depth, in plain Python integers."""
    if isinstance(term, Symbol):
        return assignment.values[term.number].tolist(), 0
    known = memo.get(term)
    if known is not None:
        return known
    assert isinstance(term, Fold)
    items = [_of_term(item, assignment, memo) for item in term.items]
    depth = 1 + max(depth for _, depth in items)
    multiply = bool(assignment.products[depth])
    total = [1 if multiply else 0] * assignment.trials
    for values, _ in items:
        for trial, value in enumerate(values):
            total[trial] = (total[trial] * value if multiply else total[trial] + value) % PRIME
    memo[term] = total, depth
    return memo[term]
