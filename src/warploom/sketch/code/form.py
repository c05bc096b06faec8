"""The cheapest of a few forms of an expression over lanes and registers: equal on a whole tile.

A tile is small and both its coordinates are bounded, so equality is decided by evaluating both
everywhere; what comes back is never merely similar.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warploom.index.ir import (
    TRUTHS,
    Binary,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    fold_up,
    operations,
    rebuild,
    select,
)
from warploom.index.laws import simplify
from warploom.index.table import Ints, Mask, affine, compared
from warploom.index.table import tabulated as tabulated_over
from warploom.sketch.holes.expressions import total

LANE, REGISTER = Var("x0"), Var("x1")
ALWAYS = Const(1)

Bounds = dict[str, tuple[int, int]]


def bounds_of(lanes: int, registers: int) -> Bounds:
    return {LANE.name: (0, lanes - 1), REGISTER.name: (0, registers - 1)}


def sizes_of(lanes: int, registers: int) -> dict[str, int]:
    return {LANE.name: lanes, REGISTER.name: registers}


def tabulated(expr: Expr, lanes: int, registers: int) -> Ints:
    """[lanes, registers]: the expression everywhere."""
    return tabulated_over(expr, sizes_of(lanes, registers))


def cheapest(expr: Expr, lanes: int, registers: int, where: Mask | None = None) -> Expr:
    """The form with the fewest operations; `where` says which cells matter.

    >>> from warploom.index.show import show
    >>> show(cheapest(((LANE + REGISTER) % 32).ge(REGISTER), 32, 5))
    'x0 < 32 - x1'
    """
    wanted = tabulated(expr, lanes, registers)
    matters = np.ones(wanted.shape, np.bool_) if where is None else where
    forms = [simplify(expr, bounds_of(lanes, registers)), *written(wanted, matters)]
    return min(forms, key=operations)


def with_selects(expr: Expr) -> Expr:
    """The expression with each truth in arithmetic written as a select: `2 + (a < b)` becomes
    `2 + (1 if a < b else 0)`, so that registers are selected, not computed.
    """

    def counted(part: Expr) -> Expr:
        is_truth = isinstance(part, Binary | Unary) and part.op in TRUTHS
        return select(part, 1, 0) if is_truth else part

    def visit(part: Expr, parts: tuple[Expr, ...]) -> Expr:
        match part:
            case Binary(op, _, _) if op not in TRUTHS:
                return Binary(op, counted(parts[0]), counted(parts[1]))
            case Select():
                return Select(parts[0], counted(parts[1]), counted(parts[2]))
            case _:
                return rebuild(part, parts)

    return counted(fold_up(expr, visit))


def written(table: Ints, matters: Mask) -> Iterator[Expr]:
    """Forms that hold what the table holds on the cells that matter: constants, sums of multiples,
    and one of two such by a condition."""
    if not matters.any():
        yield Const(0)
        return
    plain = _affine(table, matters)
    if plain is not None:
        yield plain
        return
    values = np.unique(table[matters]).tolist()
    if len(values) == 2:
        high = table == values[1]
        condition = condition_of(high, matters)
        if condition is not None:
            both = select(condition, values[1], values[0])
            yield condition if values == [0, 1] else both


def subtracting_last(expr: Expr) -> Expr:
    """A sum with what is taken away at its end: `a + (b - c) + d` becomes `a + b + d - c`, so that
    an unrolled loop over c computes the rest once."""
    added: list[Expr] = []
    taken: list[Expr] = []
    stack = [(expr, True)]
    while stack:
        part, positive = stack.pop()
        match part:
            case Binary("+" | "-" as op, left, right):
                stack += [(right, positive == (op == "+")), (left, positive)]
            case _:
                (added if positive else taken).append(part)
    return total([*((1, part) for part in added), *((-1, part) for part in taken)])


def split(table: Ints, condition: Expr) -> Expr | None:
    """`condition ? f : g` with f and g sums of multiples, if the table is that."""
    holds = tabulated(condition, *table.shape) != 0
    sides = [_affine(table, side) for side in (holds, ~holds)]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0] if sides[0] is sides[1] else Select(condition, sides[0], sides[1])


def condition_of(mask: Mask, matters: Mask) -> Expr | None:
    """A condition `x0 < c ± x1`, or with another comparison or one variable, that holds where the
    mask does."""
    lanes, registers = mask.shape
    lane, register = np.ogrid[:lanes, :registers]
    ways: tuple[tuple[Expr, Ints, int], ...] = (
        (LANE, lane, 0), (REGISTER, register, 0), (LANE, lane - register, 1),
        (LANE, lane + register, -1),
    )  # fmt: skip
    for variable, along, sign in ways:
        # variable ⋈ c + sign·x1   ⇔   along ⋈ c
        found = compared(np.broadcast_to(along, mask.shape)[matters], mask[matters])
        if found is not None:
            operator, constant = found
            return Binary(operator, variable, total([(sign, REGISTER)], constant))
    return None


def _affine(table: Ints, matters: Mask) -> Expr | None:
    """`a·x0 + b·x1 + c` that holds what the table does on these cells."""
    found = affine(table, matters)
    if found is None:
        return None
    factors, constant = found
    # The constant last: the rest is the same in both cases of a split, and computed once.
    rest = total(zip(factors, (LANE, REGISTER), strict=True))
    if isinstance(rest, Const):
        return Const(rest.value + constant)
    return rest if not constant else rest + constant if constant > 0 else rest - -constant
