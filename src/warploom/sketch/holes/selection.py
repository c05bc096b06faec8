"""Swizzleflow's conditionals: which of several sources a cell reads, or whether it keeps its value.

Conditions are evaluated over the grid of the dimensions they may name, never over all cells, and of
those that agree everywhere only the cheapest goes into a choice of several sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warploom.index.ir import Const, Expr
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, Positions, distinct, distinct_parts, grid
from warploom.sketch.holes.condition import (
    ALWAYS,
    COMPARISONS,
    NEVER,
    WIDTH,
    Conditions,
    Partitions,
    first_of,
    first_true,
)
from warploom.sketch.holes.expressions import coordinate, flat, only, own_coordinates
from warploom.sketch.holes.moving import Cost, Moving, OfFunctions, expression_cost, gather_set
from warploom.sketch.term.gather import (
    GatherExpr,
    GatherSet,
    Moves,
    Setting,
    Settings,
    moves,
)

_FEWER = "name fewer dimensions with dims=[…], give fewer consts=[…], or use the _no_consts set"
_MOST_CONDITIONS = 30


@dataclass(frozen=True, slots=True)
class _Selecting(Moving):
    """Reads along the axis where the first of some conditions says."""

    functions: Partitions

    def may_leave(self, _row: Setting) -> bool:
        return False

    def conditions(self, row: Setting) -> list[str]:
        return [self.functions.conditions.text(each) for each in self.functions.split(row)]


class FirstIf(_Selecting):
    """Element 0 where a condition holds, else element 1."""

    __slots__ = ()
    name = "first_if"

    def text(self, row: Setting) -> str:
        return f"first_if[{self.conditions(row)[0]}]"

    def cheapest(self, rows: Settings) -> int:
        return int(np.argmin(self.functions.conditions.costs(rows)))


class Selections(_Selecting):
    """The element whose condition is the first to hold."""

    __slots__ = ()
    name = "select"

    def text(self, row: Setting) -> str:
        return f"select[{'; '.join(self.conditions(row))}]"

    def cheapest(self, rows: Settings) -> int:
        """Thousands of rows are made of a few dozen conditions."""
        names = [coordinate(axis) for axis in range(len(self.call.out_shape))]
        known: dict[bytes, Expr] = {}

        def asked(condition: Setting) -> Expr:
            key = condition.tobytes()
            if key not in known:
                known[key] = self.functions.asked(condition, names)
            return known[key]

        def cost(row: Setting) -> Cost:
            parts = [asked(each) for each in self.functions.split(row)]
            numbers: list[Expr] = [Const(n) for n in range(len(parts) + 1)]
            return expression_cost(only(first_of(parts, numbers)))

        costs = [cost(row) for row in rows]
        return costs.index(min(costs))


@dataclass(frozen=True, slots=True)
class Keeping(OfFunctions):
    """Keeps a cell where a condition holds, else zero; cells outside `restrict` are always kept."""

    name = "keep_if"

    functions: Conditions
    restrict: tuple[tuple[int, int], ...]

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(sorted({0, *self.functions.over, *(axis for axis, _ in self.restrict)}))

    def reads(self, rows: Settings) -> Moves:
        shape, at = self.call.out_shape, grid(self.call.out_shape, self.axes)
        kept = self.functions.masks(rows, at)
        for axis, value in self.restrict:
            kept |= at[axis] != value
        kind = np.min_scalar_type(shape[0] + 1)
        values = np.where(kept, at[0].astype(kind), kind.type(shape[0] + 1))
        return moves(shape, shape, 0, self.axes, values)

    def text(self, row: Setting) -> str:
        return f"keep_if({self.functions.text(row)})"

    def expression(self, row: Setting) -> GatherExpr:
        shape = self.call.out_shape
        names = [coordinate(axis) for axis in range(len(shape))]
        known = self.functions.constancy(row)
        kept = Const(int(known)) if known is not None else self.functions.expression(row, names)
        if kept != Const(1):
            for axis, value in self.restrict:
                if shape[axis] > 1:
                    outside = coordinate(axis).ne(value)
                    kept = outside if kept == Const(0) else outside.or_(kept)
        argument = first_of([kept], [Const(0), Const(1)])
        return GatherExpr(argument, flat(shape, own_coordinates(shape)))

    def cheapest(self, rows: Settings) -> int:
        return int(np.argmin(self.functions.costs(rows)))


# -- the sets ------------------------------------------------------------------------------------


def reg_select(call: Call, constants: bool) -> GatherSet:
    """Reads element 0 of the argument's last axis where a condition holds, else element 1."""
    shape, last = call.in_shape, len(call.in_shape) - 1
    if shape[last] != 2:
        call.mismatch("the last dimension of the argument", 2, shape[last], "use general_select")
    call.agree_but_for(last)
    found = _conditions(call, range(len(shape)), call.out_shape[0], constants)
    family = FirstIf(call, Partitions(found, 2), last)
    rows = found.rows(len(found.constants))
    return gather_set(call, family, rows)


def cond_keep(call: Call, constants: bool) -> GatherSet:
    """Keeps a cell where a condition holds, else zero."""
    call.same_shape()
    shape = call.out_shape
    restrict = tuple(
        (call.below(axis, len(shape), "option restrict: axis", "restrict"), value)
        for axis, value in call.pairs("restrict")
    )
    for axis, value in restrict:
        call.below(value, shape[axis], f"option restrict: on axis {axis}, position", "restrict")
    open_axes = [a for a in range(len(shape)) if a not in dict(restrict)]
    found = _conditions(call, open_axes, shape[0], constants)
    family = Keeping(call, found, restrict)
    always = np.zeros((2, WIDTH), np.int64)
    always[:, 0] = (ALWAYS, NEVER)
    rows = np.concatenate([always, found.rows(len(found.constants))])
    cells = math.prod(shape[axis] for axis in family.axes)
    call.afford(len(rows), 2 * cells * np.min_scalar_type(shape[0] + 1).itemsize, _FEWER)
    return gather_set(call, family, rows)


def general_select(call: Call, constants: bool) -> GatherSet:
    """Reads, along one axis, the position of the first condition that holds, else the last."""
    shape = call.in_shape
    axis = call.axis("axis", len(shape))
    call.agree_but_for(axis)
    needed = shape[axis] - 1
    if needed < 1:
        call.fail(
            f"{call.function}: axis {axis} of the argument has length 1, so there is no choice",
            "use broadcast instead",
        )
    rank = len(call.out_shape)
    dims = call.maybe_numbers("dims")
    dims = tuple(range(rank)) if dims is None else dims
    for dim in dims:
        call.below(dim, rank, "option dims: axis", "dims")
    found = _conditions(call, dims, call.out_shape[axis], constants)
    every = found.rows(len(found.constants))
    masks = found.masks(every, grid(call.out_shape, found.depends))
    first, kind = distinct(masks)
    picks = _tuples(call, kind, needed)
    shown = every[_cheapest_of_each(found.costs(every), kind)]
    smallest = np.min_scalar_type(-max(len(found.constants), rank, len(COMPARISONS)))
    rows = shown.astype(smallest)[picks].reshape(len(picks), -1)
    kept, points = masks[first], masks.shape[1]

    def values(some: slice) -> Integers:
        chosen = [(kept, picks[some, part]) for part in range(needed)]
        return first_true(chosen, (some.stop - some.start, points))

    _, owner, heads = distinct_parts(len(picks), points, values)
    family = Selections(call, Partitions(found, needed + 1), axis)
    reads = moves(shape, call.out_shape, axis, found.depends, heads)
    return gather_set(call, family, rows, reads, owner)


def _conditions(call: Call, dims: Sequence[int], scale: int, constants: bool) -> Conditions:
    """Every condition over `dims`, affordable."""
    if len(set(dims)) != len(dims):
        call.fail(f"{call.function}: option dims names a dimension twice", "name each once", "dims")
    consts = call.maybe_numbers("consts")
    if not constants:
        consts = (0,)
    elif consts is None:
        consts = (0, 1, -1, scale, -scale)
    for constant in consts:
        if abs(constant) >= 1 << 31:
            call.fail(
                f"{call.function}: the constant {constant} is too large",
                "use 32-bit numbers",
                "consts",
            )
    points = math.prod(call.out_shape[a] for a in dims)
    count = len(consts) * 2 * len(dims) ** 2 * len(COMPARISONS)
    call.afford(count + 2, points, _FEWER)
    call.afford(len(consts) * 2 * len(dims) + 2 * len(dims), 8 * points, _FEWER)
    return Conditions(call.out_shape, consts, tuple(dims))


def _cheapest_of_each(costs: Integers, kind: Positions) -> Positions:
    """For each kind the first of its cheapest members."""
    order = np.lexsort((costs, kind))
    start = np.searchsorted(kind[order], np.arange(kind.max(initial=-1) + 1))
    cheapest: Positions = order[start]
    return cheapest


def _tuples(call: Call, kind: Positions, needed: int) -> Positions:
    """All ordered tuples of different conditions, as distinct masks, in enumeration order.

    The last condition varies slowest. Tuples with equal masks give equal gathers, so one per tuple
    of masks is enough: the first. It takes a mask's conditions in order, and a mask can be in it as
    often as there are conditions with that mask.
    """
    if needed > _MOST_CONDITIONS:
        call.fail(
            f"{call.function}: {needed} conditions are too many", f"use at most {_MOST_CONDITIONS}"
        )
    kinds, total_count = int(kind.max(initial=-1)) + 1, len(kind)
    if total_count < needed:
        call.fail(
            f"{call.function} needs {needed} different conditions, only {total_count} exist",
            "name more dimensions with dims=[…] or more constants with consts=[…]",
        )
    small = np.min_scalar_type(-total_count - 1)
    each = needed * (2 * small.itemsize + WIDTH) + 40  # twice a tuple, its row, keys and orders
    call.afford(kinds**needed, each, _FEWER)
    picks = np.indices([kinds] * needed, small).reshape(needed, -1)
    occurrences = _occurrences(kind, kinds, needed).astype(small)
    numbers = np.empty_like(picks)
    for i, pick in enumerate(picks):
        before = np.zeros(len(pick), np.int8)
        for other in picks[:i]:
            before += other == pick
        numbers[i] = occurrences[pick, before]
    valid = (numbers >= 0).all(axis=0)
    if not valid.all():
        picks, numbers = picks[:, valid], numbers[:, valid]
    return np.ascontiguousarray(picks[::-1, _lexical(numbers, total_count)].T)


def _lexical(numbers: Positions, limit: int) -> Positions:
    """The order of columns of numbers below `limit`, the first row the most significant."""
    if limit ** len(numbers) >= 1 << 62:
        return np.lexsort(numbers[::-1])
    key = np.zeros(numbers.shape[1], np.int64)
    for row in numbers:
        key *= limit
        key += row
    return np.argsort(key, kind="stable")  # nearly in order already, which this sort makes use of


def _occurrences(kind: Positions, kinds: int, needed: int) -> Positions:
    """`[mask, n]`: the number of the nth condition with that mask, or −1."""
    order = np.argsort(kind, kind="stable")
    start = np.searchsorted(kind[order], np.arange(kinds + 1))
    slot = start[:-1, None] + np.arange(needed)
    inside = slot < start[1:, None]
    return np.where(inside, order[np.where(inside, slot, 0)], -1)
