"""Swizzles: one coordinate fanned, rotated and wrapped as a function of two others.

`xform(cf, cr, dr, g, wrap)` with i = x[main], k = x[second] replaces x[out] by
`((cf*(i%g) + (i%g)//df + rot) % g) + (i//g)*g`, where `df = g / gcd(g, |cf|)` and
`rot = cr*k + k//dr`, taken modulo that gcd if `wrap`. `rot(c, g)` replaces it by
`((c + i) % g) + (i//g)*g`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from warploom.index.ir import Expr
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import (
    Candidates,
    Integers,
    distinct,
    grid,
    replace_coordinate,
)
from warploom.sketch.holes.expressions import coordinate, quotient, remainder, replaced, total
from warploom.sketch.term.ir import UNDEFINED, GatherExpr

_TOO_LARGE = "take the _no_group set, which has fewer gathers, or a smaller array"


@dataclass(frozen=True, slots=True)
class Axes:
    main: int
    second: int
    out: int


@dataclass(frozen=True, slots=True)
class Xform:
    """One choice of parameters: see the top of this file."""

    group: int
    wrap: bool
    dr: int
    cr: int
    cf: int


@dataclass(frozen=True, slots=True)
class Rotation:
    group: int
    shift: int


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Where the replaced coordinate is computed: over the axes it depends on, not all cells."""

    axes: tuple[int, ...]
    at: dict[int, Integers]  # each axis' coordinate, flat
    cells: int
    identity: bool  # whether row 0 is the identity
    rows: Integers  # the replaced coordinate by choice and cell, in the smallest unsigned type


def xforms(call: Call) -> Candidates:
    axes = axes_of(call)
    length = call.in_shape[axes.main]
    grouped = not call.function.endswith("_no_group")
    rates = divisors(call.in_shape[axes.second])
    groups = (divisors(length) if grouped else [length]) if rates else []
    wraps = 2 if grouped else 1
    counts = [wraps * len(rates) * (g + 1) ** 2 for g in groups]
    field = _field(call, axes, {axes.main, axes.second}, sum(counts))
    # Kept apart from `field`, whose rows should not outlive this function.
    leading = start = int(field.identity)
    for group, count in zip(groups, counts, strict=True):
        shape = (wraps, len(rates), group + 1, group + 1, field.cells)
        block = field.rows[start : start + count].reshape(shape)
        _fill_xforms(block, group, rates, field.at[axes.main], field.at[axes.second])
        start += count

    def choice(number: int) -> Xform | None:
        number -= leading
        for group, count in zip(groups, counts, strict=True):
            if 0 <= number < count:
                shape = (wraps, len(rates), group + 1, group + 1)
                wrap, dr, cr, cf = (int(n) for n in np.unravel_index(number, shape))
                factors = _factors(group)
                return Xform(group, bool(wrap), rates[dr], factors[cr], factors[cf])
            number -= count
        return None

    def name(number: int) -> str:
        found = choice(number)
        return "id" if found is None else _show_xform(found, length)

    def value(number: int) -> Expr:
        found = choice(number)
        return coordinate(axes.out) if found is None else _xform_value(call, axes, found)

    return _candidates(call, axes, field, name, value)


def rots(call: Call) -> Candidates:
    axes = axes_of(call)
    length = call.in_shape[axes.main]
    groups = [length] if call.function.endswith("_no_group") else divisors(length)
    count = sum(2 * g - 1 for g in groups)
    field = _field(call, axes, {axes.main}, count)
    call.afford(count, 24 * field.cells, _TOO_LARGE)  # three 64-bit numbers a cell
    leading = int(field.identity)
    # 0 … g−1, then −g+1 … −1. Only the parameters are listed here; the cells are done at once.
    choices = [Rotation(g, c) for g in groups for c in (*range(g), *range(1 - g, 0))]
    if choices:
        group = np.array([c.group for c in choices])[:, None]
        shift = np.array([c.shift for c in choices])[:, None]
        i = field.at[axes.main]
        field.rows[leading:] = (shift + i) % group + i // group * group

    def choice(number: int) -> Rotation | None:
        number -= leading
        return choices[number] if number >= 0 else None

    def name(number: int) -> str:
        found = choice(number)
        if found is None:
            return "id"
        group = "" if found.group == length else f"group={found.group},"
        return f"rot[{group}shift={found.shift}]"

    def value(number: int) -> Expr:
        found = choice(number)
        if found is None:
            return coordinate(axes.out)
        i, bound = coordinate(axes.main), call.out_shape[axes.main]
        if not found.shift or found.group == 1:
            return i
        inner = total([(1, i)], found.shift) % found.group
        return total([(1, inner), (found.group, quotient(i, found.group, bound))])

    return _candidates(call, axes, field, name, value)


def divisors(number: int) -> list[int]:
    """The divisors that are at least 2, largest first."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({d for s in small for d in (s, number // s) if d >= 2}, reverse=True)


def axes_of(call: Call) -> Axes:
    names = ("main", "second", "out")
    rank = len(call.in_shape)
    if any(name in call.options for name in names):
        axes = Axes(*(call.axis(name, rank) for name in names))
    elif call.function.startswith(("row_", "col_")):
        if rank < 2:
            call.fail(
                f"{call.function} needs an array of two or more dimensions, got {rank}",
                "name the axes: {main=0,second=0,out=0}",
            )
        axes = Axes(1, 0, 1) if call.function.startswith("row_") else Axes(0, 1, 0)
    else:
        call.fail(
            f"{call.function} needs the options main, second and out",
            f"write {call.function}{{main=0,second=1,out=0}}, or use col_{call.function}",
        )
    call.agree_but_for(axes.out)
    return axes


def _field(call: Call, axes: Axes, needed: set[int], choices: int) -> Field:
    """The grid for so many choices besides the identity; refused if they do not fit."""
    identity = call.in_shape == call.out_shape
    # Without choices only the identity is left, which depends on its own axis alone.
    used = (needed if choices else set()) | ({axes.out} if identity else set())
    ordered = tuple(sorted(used))
    cells = math.prod(call.out_shape[a] for a in ordered)
    # Sums of two numbers below the length, or a cell beyond the argument, must fit.
    largest = 2 * max(call.in_shape[axes.main], call.in_shape[axes.out], call.out_shape[axes.main])
    kind = np.min_scalar_type(largest)
    call.afford(choices + 1, cells * kind.itemsize, _TOO_LARGE)
    rows = np.empty((choices + int(identity), cells), kind)
    at = grid(call.out_shape, ordered)
    if identity:
        rows[0] = at[axes.out]
    return Field(ordered, at, cells, identity, rows)


def _factors(group: int) -> list[int]:
    return [*range(group), -1]


def _fill_xforms(
    block: Integers, group: int, rates: Sequence[int], i: Integers, k: Integers
) -> None:
    """`block[wrap, dr, cr, cf]` becomes the values of all xforms of one group size."""
    factors = np.array(_factors(group))
    common = np.gcd(group, np.abs(factors))
    inner = i % group
    fan = factors[:, None] * inner + inner // (group // common)[:, None]
    rot = factors[:, None] * k + (k // np.array(rates)[:, None])[:, None]
    fan_part = (fan % group).astype(block.dtype)
    block[0] = fan_part + (rot % group).astype(block.dtype)[:, :, None]
    if len(block) == 2:
        for divisor in np.unique(common):
            same = np.flatnonzero(common == divisor)
            wrapped = (rot % divisor).astype(block.dtype)[:, :, None]
            block[1][:, :, same] = fan_part[same] + wrapped
    # Both summands are below `group`; below zero wraps to a huge number, which the minimum avoids.
    np.minimum(block, block - block.dtype.type(group), out=block)
    if i.max() >= group:
        block += (i // group * group).astype(block.dtype)


def _candidates(
    call: Call,
    axes: Axes,
    field: Field,
    name: Callable[[int], str],
    value: Callable[[int], Expr],
) -> Candidates:
    values = field.rows
    np.minimum(values, values.dtype.type(call.in_shape[axes.out]), out=values)
    first, owner = distinct(values)
    tables = replace_coordinate(call, axes.out, field.axes, values[first])

    def expression(number: int) -> GatherExpr:
        beyond = bool((tables[owner[number]] == UNDEFINED).any())
        return replaced(call.in_shape, call.out_shape, axes.out, value(number), beyond)

    return Candidates(tables, owner, name, expression)


def _show_xform(x: Xform, length: int) -> str:
    group = "" if x.group == length else f"group={x.group},"
    wrap = "wrap," if x.wrap else ""
    return f"xform[{group}{wrap}cf={x.cf},cr={x.cr},dr={x.dr}]"


def _xform_value(call: Call, axes: Axes, x: Xform) -> Expr:
    """The formula at the top of this file, less what its ranges make idle."""
    i, k = coordinate(axes.main), coordinate(axes.second)
    i_bound, k_bound = call.out_shape[axes.main], call.out_shape[axes.second]
    common = math.gcd(x.group, abs(x.cf))
    inner = remainder(i, x.group, i_bound)
    fan = _stepped(x.cf, inner, x.group // common, min(i_bound, x.group))
    rot = _stepped(x.cr, k, x.dr, k_bound)
    if x.wrap and common == 1:
        rot = []
    elif x.wrap and common < x.group and not _within(rot, common):
        rot = [(1, _sum(rot) % common, common)]
    terms = [*fan, *rot]
    if _within(terms, x.group):
        body = _sum(terms)
    else:
        # Under the remainder a multiple of the group is nothing, and i % group is i.
        terms = [(f, i if part == inner else part, b) for f, part, b in terms if f % x.group]
        body = _sum(terms) % x.group
    if [(factor, part) for factor, part, _ in terms] in ([(1, i)], [(1, inner)]):
        return i
    return total([(1, body), (x.group, quotient(i, x.group, i_bound))])


# Factor, expression, and a number that the expression (at least 0) stays below.
_Term: TypeAlias = tuple[int, Expr, int]


def _stepped(factor: int, value: Expr, step: int, bound: int) -> list[_Term]:
    """`factor*value + value//step`."""
    if bound == 1:
        return []
    if step == 1:
        return [(factor + 1, value, bound)] if factor != -1 else []
    steps = quotient(value, step, bound)
    terms = [(factor, value, bound), (1, steps, (bound - 1) // step + 1)]
    return [term for term in terms if term[0] and term[2] > 1]


def _sum(terms: list[_Term]) -> Expr:
    return total((factor, part) for factor, part, _ in terms)


def _within(terms: list[_Term], limit: int) -> bool:
    """Whether the sum is surely at least 0 and below `limit`."""
    reach = [factor * (bound - 1) for factor, _, bound in terms]
    return all(r >= 0 for r in reach) and sum(reach) < limit
