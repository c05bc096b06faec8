"""Permutations along one axis by column-major linearisation, units, splits and turns.

With x = x[main] below L and y = x[second] below S, and c = gcd(L, S), a = L/c, b = S/c, u = 1/b
modulo a, x[out] (out = main) is replaced by a *form*, which is built from

    turn      (z ± s) % L               s one of y, y//b, y//c
    split     z//c*w % a + z%c*a        read by columns what lies in rows of c (column-major)
    fan       (z*c*w + z//a) % L        its inverse; w in both one of 1, b, u
    unit      z//c*w % a * c + z%c      c neighbours move as one; w is b or u
    group     z//a*a + z*w % a          every a neighbours alike
    mirror    L-1 - z
    linear    (±S*x + r) % L            both coordinates as one number; r is y or (y ± x//d) % S
    unlinear  (x-r)//c*u % a + t*a      its inverse: t = ±(y-x) % c, r = (y∓t) % S

alone or as a turn before or after another one. The forms do not depend on any size, so a form that
fills a hole at one size names its counterpart at every other; b and u are units modulo a at any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np

from warploom.index.evaluate import Value, apply
from warploom.index.ir import (
    Binary,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    children,
    operations,
    substitute,
    variables,
    walk,
)
from warploom.index.laws import simplify
from warploom.index.show import show
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import (
    Candidates,
    Integers,
    Positions,
    coordinates,
    distinct,
    replace_coordinate,
)
from warploom.sketch.holes.expressions import coordinate, replaced
from warploom.sketch.holes.swizzle import Axes, axes_of
from warploom.sketch.term.ir import GatherExpr, Shape

Operation: TypeAlias = Const | Unary | Binary | Select

x, y = Var("x"), Var("y")
L, S = Var("L"), Var("S")
c, a, b, u = Var("c"), Var("a"), Var("b"), Var("u")


def linear(call: Call) -> Candidates:
    call.same_shape()
    axes = axes_of(call)
    if axes.out != axes.main:
        call.fail(
            f"{call.function} moves along its main axis {axes.main}, not along {axes.out}",
            f"write {{main={axes.out},second={axes.second},out={axes.out}}}",
        )
    shape = call.in_shape
    used = tuple(sorted({axes.main, axes.second}))
    field = tuple(shape[axis] for axis in used)
    call.afford(len(_parts()), 8 * math.prod(field), "use a smaller array")
    own = coordinates(field)
    at = {"x": own[used.index(axes.main)], "y": own[used.index(axes.second)]}
    rows = _tabulate({**at, **_sizes(shape, axes)}, field)
    kept = _permutations(rows, used.index(axes.main))
    values = rows[kept].reshape(len(kept), -1)
    first, owner = distinct(values)
    tables = replace_coordinate(call, axes.out, used, values[first])

    def name(number: int) -> str:
        return _name(forms()[kept[number]], axes)

    def expression(number: int) -> GatherExpr:
        value = _sized(forms()[kept[number]], shape, axes)
        return replaced(shape, shape, axes.out, value, beyond=False)

    # Forms are in order of cost, and to simplify every one that means the same would take longer
    # than the search.
    return Candidates(tables, owner, name, expression, cost=lambda number: (number, 0))


@cache
def forms() -> tuple[Expr, ...]:
    """All forms over x, y and the sizes, the identity first, then by the number of operations."""
    found = dict.fromkeys([x, *_shapes()])
    return tuple(sorted(found, key=lambda form: (operations(form), len(variables(form)))))


@cache
def _parts() -> tuple[Operation, ...]:
    """The distinct operations of all forms, operands first."""
    found: dict[Expr, None] = {}
    for form in forms():
        found.update(dict.fromkeys(walk(form, skip=found)))
    return tuple(part for part in found if not isinstance(part, Var))


def _shapes() -> Iterator[Expr]:
    """One step, or a turn and another step."""
    for first in _turns(x):
        yield first
        yield from _turns(first)
        yield from _steps(first)
    for first in _steps(x):
        yield first
        yield from _turns(first)
    yield from _linears()


def _turns(z: Expr) -> Iterator[Expr]:
    for shift in (y, y // b, y // c):
        yield (z + shift) % L
        yield (z - shift) % L


def _steps(z: Expr) -> Iterator[Expr]:
    """Permutations of one coordinate."""
    yield L - 1 - z
    yield z // c + z % c * a
    yield (z * c + z // a) % L
    for unit in (b, u):
        yield z // c * unit % a + z % c * a
        yield z // c * unit % a * c + z % c
        yield z // a * a + z * unit % a
    yield (z * S + z // a) % L
    yield (z * (c * u) + z // a) % L


def _linears() -> Iterator[Expr]:
    """Both coordinates as one number, and the way back."""
    lows: list[Expr] = [y]
    for step in (x // a, x // c):
        lows += [(y + step) % S, (y - step) % S]
    for low in lows:
        yield (x * S + low) % L
        yield (low - x * S) % L
    ahead, behind = (y - x) % c, (x - y) % c
    yield (x - (y - ahead) % S) // c * u % a + ahead * a
    yield (x - (y + behind) % S) // c * u % a + behind * a


@lru_cache(maxsize=4096)
def _name(form: Expr, axes: Axes) -> str:
    return f"linear[{show(substitute(form, _own(axes)))}]"


def _own(axes: Axes) -> dict[str, Expr | int]:
    return {"x": coordinate(axes.main), "y": coordinate(axes.second)}


def _sizes(shape: Shape, axes: Axes) -> Mapping[str, int]:
    length, other = shape[axes.main], shape[axes.second]
    common = math.gcd(length, other)
    inner, outer = length // common, other // common
    inverse = pow(outer, -1, inner)
    return {"L": length, "S": other, "c": common, "a": inner, "b": outer, "u": inverse}


def _tabulate(env: Mapping[str, Value], field: Shape) -> Integers:
    """The value of each form at every cell of the field; a part that several share is done once."""
    known: dict[Expr, Value] = {Var(name): value for name, value in env.items()}
    for part in _parts():
        known[part] = apply(part, tuple([known[child] for child in children(part)]))
    rows = np.empty((len(forms()), *field), np.min_scalar_type(max(field)))
    for number, form in enumerate(forms()):
        rows[number] = known[form]
    return rows


def _permutations(rows: Integers, axis: int) -> Positions:
    """Which forms, along the axis, take every value once wherever they stand on the others."""
    ordered = np.sort(np.moveaxis(rows, axis + 1, -1), axis=-1)
    right: Integers = (ordered == np.arange(rows.shape[axis + 1])).reshape(len(rows), -1)
    return np.flatnonzero(right.all(axis=1))


def _sized(form: Expr, shape: Shape, axes: Axes) -> Expr:
    """The form with numbers for the sizes, less what its ranges make idle."""
    ranges = {f"x{axis}": (0, shape[axis] - 1) for axis in (axes.main, axes.second)}
    return simplify(substitute(form, {**_own(axes), **_sizes(shape, axes)}), ranges)
