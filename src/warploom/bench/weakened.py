"""What the search is worth: the paper's two ablations, under a budget.

`naive` replaces the swizzle template by a plain grammar of index arithmetic; `by_numbers` does
without canonical multisets: a fill can then only be judged when it is complete, by running it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import InternalError
from warploom.index.ir import Binary, BinaryOp, Const, Expr, Var
from warploom.index.show import show
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided
from warploom.sketch.holes.common import distinct
from warploom.sketch.simt.ir import Hole, Traced
from warploom.sketch.simt.lower import Lowered, lower
from warploom.sketch.simt.solve import expressions
from warploom.sketch.simt.space import HoleChoices, candidates
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply
from warploom.sketch.term.numeric import assign, evaluate_numbers, goal_numbers
from warploom.sketch.term.read import read

_MOST_BYTES = 1 << 29
_OPERATIONS: dict[BinaryOp, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
}
HoleExprs = dict[str, Expr]


@dataclass(frozen=True, slots=True, eq=False)
class NaiveChoices(HoleChoices):
    """Functions with an expression of their own instead of parameters."""

    expressions: tuple[Expr, ...] = ()

    def expression(self, choice: int) -> Expr:
        return self.expressions[choice]

    def to_json(self, choice: int) -> dict[str, Any]:
        return {"expression": show(self.expressions[choice])}


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    values: npt.NDArray[np.int32]
    expressions: tuple[Expr, ...]


def naive_candidates(hole: Hole, depth: int, budget: Budget) -> NaiveChoices:
    """`e mod size` for the expressions e of a depth: constants, variables, e ± e, e ⋈ constant."""
    level = _leaves(hole)
    for _ in range(depth):
        budget.check()
        level = _deeper(hole, level, budget)
    values = level.values % hole.size
    first = distinct(values)[0]
    expressions = tuple(level.expressions[n] % hole.size for n in first.tolist())
    rows = np.zeros((len(first), 0), np.int64)
    return NaiveChoices(hole, rows, values[first].astype(np.uint16), expressions)


def _leaves(hole: Hole) -> _Level:
    grid = np.indices(hole.extents).reshape(len(hole.extents), -1)
    numbers = np.arange(max(hole.size, *hole.extents) + 1)
    constant = np.broadcast_to(numbers[:, None], (len(numbers), grid.shape[1]))
    names = tuple(Var(name) for name in hole.variables)
    values = np.concatenate([grid, constant]).astype(np.int32)
    return _Level(values, (*names, *(Const(n) for n in numbers.tolist())))


def _deeper(hole: Hole, level: _Level, budget: Budget) -> _Level:
    values, cells = level.values, level.values.shape[1]
    count = 2 * len(values) ** 2 + 3 * len(values) * (hole.size + 1)
    if count * cells * 4 > _MOST_BYTES:
        raise BudgetSpentError(Reason.MEMORY)
    blocks: list[npt.NDArray[np.int32]] = [values]
    made: list[tuple[BinaryOp, tuple[Expr, ...]]] = []
    numbers = np.arange(1, hole.size + 1, dtype=np.int32)
    constants = tuple(Const(n) for n in numbers.tolist())
    for op, function in _OPERATIONS.items():
        linear = op in ("+", "-")
        right = values if linear else numbers[:, None]
        blocks.append(function(values[:, None], right[None]).reshape(-1, cells))
        made.append((op, level.expressions if linear else constants))
        budget.check()
    whole = np.concatenate(blocks)
    kept = distinct(whole)[0]
    return _Level(whole[kept], tuple(_nth(level.expressions, made, n) for n in kept.tolist()))


def _nth(
    left: tuple[Expr, ...], made: list[tuple[BinaryOp, tuple[Expr, ...]]], number: int
) -> Expr:
    """The expression behind a row: one of the level before, or of a block of pairs."""
    if number < len(left):
        return left[number]
    number -= len(left)
    for op, right in made:
        if number < len(left) * len(right):
            return Binary(op, left[number // len(right)], right[number % len(right)])
        number -= len(left) * len(right)
    raise InternalError("a row of no expression")


def solve_naive(traced: Traced, depth: int, budget: Budget) -> Outcome[HoleExprs]:
    """The first fill with naive swizzles; conditions as in Space 1."""
    try:
        offered: dict[str, HoleChoices] = {
            hole.name: naive_candidates(hole, depth, budget)
            if hole.kind == "swizzle"
            else candidates(hole, 1)
            for hole in traced.holes.values()
        }
        lowered = lower(traced, offered)
    except BudgetSpentError as spent:
        return Undecided(spent.reason)
    result = synthesize(lowered.program, mode="first", budget=budget)
    match result.outcome:
        case Found():
            return Found(_expressions(lowered, result.fills.as_dict(0)), complete=False)
        case Impossible() | Undecided() as other:
            return other


def by_numbers(traced: Traced, space: int, budget: Budget) -> Outcome[HoleExprs]:
    """The first fill that is right on random numbers; every fill is tried, one after the other."""
    lowered = lower(traced, {h.name: candidates(h, space) for h in traced.holes.values()})
    reading = read(lowered.program, lowered.program.goals[0])
    program, assignment = reading.program, assign(reading)
    wanted = goal_numbers(reading.goal, assignment)
    steps = [program.steps[hole] for hole in program.holes]
    ranges = [range(len(step.gathers)) for step in steps if isinstance(step, Apply)]
    try:
        for choice in itertools.product(*ranges):
            budget.check()
            got = evaluate_numbers(program, choice, assignment)[-1]
            if not got.differs(wanted).any():
                fill = dict(zip(program.holes, choice, strict=True))
                return Found(_expressions(lowered, fill), complete=False)
    except BudgetSpentError as spent:
        return Undecided(spent.reason)
    return Impossible()


def _expressions(lowered: Lowered, fill: dict[int, int]) -> HoleExprs:
    return expressions(lowered, lowered.choices(fill))
