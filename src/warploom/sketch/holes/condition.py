"""Conditionals: which of several sources a cell reads, decided by comparing output coordinates.

A condition is `x[a] OP (c ± x[b])`. It is evaluated over the grid of the dimensions it may name,
never over all cells, and only conditions that differ somewhere go further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from warploom.index.ir import Binary, BinaryOp, Const, Expr, select
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import (
    Candidates,
    Cost,
    Integers,
    Positions,
    distinct,
    expression_cost,
    grid,
    replace_coordinate,
)
from warploom.sketch.holes.expressions import (
    coordinate,
    flat,
    only,
    own_coordinates,
    replaced,
    total,
)
from warploom.sketch.term.ir import ZERO, GatherExpr

Masks = npt.NDArray[np.bool_]

_FEWER = "name fewer dimensions with dims=[…], give fewer consts=[…], or use the _no_consts set"
_MOST_CONDITIONS = 30
_COMPARISONS: tuple[tuple[str, BinaryOp], ...] = (
    ("=", "=="), ("!=", "!="), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">="),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    constant: int
    sign: int
    left: int  # the axis a
    right: int  # the axis b
    comparison: int  # position in _COMPARISONS

    def __str__(self) -> str:
        sign = "+" if self.sign > 0 else "-"
        value = f"{self.constant} {sign} d{self.right}" if self.constant else f"{sign}d{self.right}"
        return f"d{self.left} {_COMPARISONS[self.comparison][0]} {value}"

    def expression(self) -> Expr:
        if self.left == self.right and self.sign < 0:
            # x < c − x says 2x < c: compare with half of c, rounded so that nothing changes.
            up = _COMPARISONS[self.comparison][1] in ("<", ">=")
            half = -(-self.constant // 2) if up else self.constant // 2
            return Binary(_COMPARISONS[self.comparison][1], coordinate(self.left), Const(half))
        right = total([(self.sign, coordinate(self.right))], self.constant)
        return Binary(_COMPARISONS[self.comparison][1], coordinate(self.left), right)


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """All conditions over some dimensions, as masks over the grid of those dimensions.

    `masks` holds the distinct ones in order of first occurrence; condition `i` has
    `masks[kind[i]]`.
    """

    dims: tuple[int, ...]
    axes: tuple[int, ...]  # the dimensions in order: the axes of the grid
    consts: tuple[int, ...]
    masks: Masks
    kind: Positions

    def condition(self, number: int) -> Condition:
        count = len(self.dims)
        shape = (len(self.consts), 2, count, count, len(_COMPARISONS))
        c, sign, a, b, comparison = (int(n) for n in np.unravel_index(number, shape))
        return Condition(self.consts[c], 1 - 2 * sign, self.dims[a], self.dims[b], comparison)

    def simplest(self, mask: int) -> Condition:
        """The condition with the fewest operations that has this mask."""
        members = map(self.condition, np.flatnonzero(self.kind == mask).tolist())
        return min(members, key=lambda c: expression_cost(only(c.expression())))

    def expression(self, mask: int) -> Expr:
        """The simplest condition, or a constant where it never or always holds."""
        holds = self.masks[mask]
        if holds.all() or not holds.any():
            return Const(int(holds[0]))
        return self.simplest(mask).expression()


def reg_select(call: Call) -> Candidates:
    """Reads element 0 of the argument's last axis where a condition holds, else element 1."""
    shape, last = call.in_shape, len(call.in_shape) - 1
    if shape[last] != 2:
        call.mismatch("the last dimension of the argument", 2, shape[last], "use general_select")
    call.agree_but_for(last)
    found = _conditions(call, range(len(shape)), call.out_shape[0])
    tables = replace_coordinate(call, last, found.axes, (~found.masks).astype(np.uint8))

    def expression(mask: int) -> GatherExpr:
        value = _choose(found.expression(mask), Const(0), Const(1))
        return replaced(shape, call.out_shape, last, value, beyond=False)

    owner = np.arange(len(tables))
    return Candidates(tables, owner, lambda i: f"first_if[{found.simplest(i)}]", expression)


def cond_keep(call: Call) -> Candidates:
    """Keeps a cell where a condition holds, else zero; cells outside `restrict` are always kept."""
    call.same_shape()
    shape = call.out_shape
    restrict = [
        (call.below(axis, len(shape), "option restrict: axis"), value)
        for axis, value in call.pairs("restrict")
    ]
    for axis, value in restrict:
        call.below(value, shape[axis], f"option restrict: on axis {axis}, position")
    fixed = dict(restrict)
    found = _conditions(call, [a for a in range(len(shape)) if a not in fixed], shape[0])
    always = np.array([[True], [False]])
    masks = np.concatenate([np.broadcast_to(always, (2, found.masks.shape[1])), found.masks])
    call.afford(len(masks), 5 * call.cells, _FEWER)
    keep = masks.reshape([len(masks), *(1 if a in fixed else n for a, n in enumerate(shape))])
    elsewhere = np.zeros([1] * len(shape), bool)
    for axis, value in restrict:
        beside = np.arange(shape[axis]) != value
        elsewhere = elsewhere | beside.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    own = np.arange(call.cells, dtype=np.int32).reshape(shape)
    tables = np.where(keep | elsewhere, own, np.int32(ZERO)).reshape(len(masks), -1)

    def name(number: int) -> str:
        inside = ("true", "false")[number] if number < 2 else str(found.simplest(number - 2))
        return f"keep_if({inside})"

    def expression(number: int) -> GatherExpr:
        kept: Expr = Const(1 - number) if number < 2 else found.expression(number - 2)
        if kept != Const(1):
            for axis, value in restrict:
                if shape[axis] > 1:
                    outside = coordinate(axis).ne(value)
                    kept = outside if kept == Const(0) else outside.or_(kept)
        offset = flat(shape, own_coordinates(shape))
        return GatherExpr(_choose(kept, Const(0), Const(1)), offset)

    return Candidates(tables, np.arange(len(masks)), name, expression)


def general_select(call: Call) -> Candidates:
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
        call.below(dim, rank, "option dims: axis")
    found = _conditions(call, dims, call.out_shape[axis])
    picks = _tuples(call, found, needed)
    values = _first_true(found.masks, picks)
    first, owner = distinct(values)
    tables = replace_coordinate(call, axis, found.axes, values[first])
    # Thousands of tuples are made of a few dozen masks.
    simplest, part = cache(found.simplest), cache(found.expression)

    def value(number: int) -> Expr:
        result: Expr = Const(needed)
        for position, mask in enumerate(picks[number].tolist()):
            result = _choose(part(mask), Const(needed - 1 - position), result)
        return result

    def cost(number: int) -> Cost:
        return expression_cost(only(value(number)))

    def name(number: int) -> str:
        return f"select[{'; '.join(str(simplest(m)) for m in picks[number][::-1].tolist())}]"

    def expression(number: int) -> GatherExpr:
        return replaced(shape, call.out_shape, axis, value(number), beyond=False)

    return Candidates(tables, owner, name, expression, cost)


def _choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    if isinstance(condition, Const):
        return then if condition.value else otherwise
    return select(condition, then, otherwise)


def _conditions(call: Call, dims: Sequence[int], scale: int) -> Conditions:
    """Every condition over `dims`, in order: constant, sign, a, b, comparison (innermost)."""
    if len(set(dims)) != len(dims):
        call.fail(f"{call.function}: option dims names a dimension twice", "name each once")
    consts = call.maybe_numbers("consts")
    if call.function.endswith("_no_consts"):
        consts = (0,)
    elif consts is None:
        consts = (0, 1, -1, scale, -scale)
    for constant in consts:
        if abs(constant) >= 1 << 31:
            call.fail(
                f"{call.function}: the constant {constant} is too large", "use 32-bit numbers"
            )
    axes = tuple(sorted(dims))
    points = math.prod(call.out_shape[a] for a in axes)
    count = len(consts) * 2 * len(dims) ** 2 * len(_COMPARISONS)
    call.afford(count + 2, points, _FEWER)
    call.afford(len(consts) * 2 * len(dims) + 2 * len(axes), 8 * points, _FEWER)
    masks = _all_masks(grid(call.out_shape, axes), dims, consts, points)
    first, kind = distinct(masks)
    return Conditions(tuple(dims), axes, consts, masks[first], kind)


def _all_masks(
    at: dict[int, Integers], dims: Sequence[int], consts: Sequence[int], points: int
) -> Masks:
    count = len(dims)
    masks = np.empty((len(consts), 2, count, count, len(_COMPARISONS), points), bool)
    if masks.size:
        x = np.stack([at[d] for d in dims])
        left = x[:, None]
        for c, constant in enumerate(consts):
            for s, right in enumerate((constant + x, constant - x)):
                block = masks[c, s]
                for slot, compare in ((0, np.equal), (2, np.less), (4, np.greater)):
                    compare(left, right[None], out=block[:, :, slot])
                np.logical_not(block[:, :, 0], out=block[:, :, 1])
                np.logical_not(block[:, :, 4], out=block[:, :, 3])
                np.logical_not(block[:, :, 2], out=block[:, :, 5])
    return masks.reshape(-1, points)


def _tuples(call: Call, found: Conditions, needed: int) -> Positions:
    """All ordered tuples of different conditions, as distinct masks, in enumeration order.

    Column 0 is the last condition, which varies slowest. Tuples with equal masks give equal
    gathers, so one per tuple of masks is enough: the first. It takes a mask's conditions in order,
    and a mask can be in it as often as there are conditions with that mask.
    """
    if needed > _MOST_CONDITIONS:
        call.fail(
            f"{call.function}: {needed} conditions are too many", f"use at most {_MOST_CONDITIONS}"
        )
    kinds, total_count = len(found.masks), len(found.kind)
    if total_count < needed:
        call.fail(
            f"{call.function} needs {needed} different conditions, only {total_count} exist",
            "name more dimensions with dims=[…] or more constants with consts=[…]",
        )
    points = found.masks.shape[1]
    call.afford(kinds**needed, 2 * points + 32 * needed, _FEWER)
    picks = np.indices([kinds] * needed).reshape(needed, -1)
    occurrences = _occurrences(found.kind, kinds, needed)
    numbers = np.stack(
        [occurrences[pick, (picks[:i] == pick).sum(axis=0)] for i, pick in enumerate(picks)]
    )
    valid = (numbers >= 0).all(axis=0)
    picks, numbers = picks[:, valid], numbers[:, valid]
    return np.ascontiguousarray(picks[:, np.lexsort(numbers[::-1])].T)


def _occurrences(kind: Positions, kinds: int, needed: int) -> Positions:
    """`[mask, n]`: the number of the nth condition with that mask, or −1."""
    order = np.argsort(kind, kind="stable")
    start = np.searchsorted(kind[order], np.arange(kinds + 1))
    slot = start[:-1, None] + np.arange(needed)
    inside = slot < start[1:, None]
    return np.where(inside, order[np.where(inside, slot, 0)], -1)


def _first_true(masks: Masks, picks: Positions) -> Integers:
    """For each tuple and grid point the position of the first true condition."""
    needed = picks.shape[1]
    kind = np.min_scalar_type(needed)
    values = np.full((len(picks), masks.shape[1]), needed, kind)
    for position in range(needed):
        values[masks[picks[:, position]]] = needed - 1 - position
    return values
