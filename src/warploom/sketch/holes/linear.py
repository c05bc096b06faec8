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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np

from warploom.errors import CheckError
from warploom.index.evaluate import Value, apply, evaluate
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
from warploom.sketch.holes.axes import Axes, axes_along_main
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, Positions, coordinates
from warploom.sketch.holes.expressions import coordinate
from warploom.sketch.holes.function import IndexFunctions, check_names, none_of
from warploom.sketch.holes.moving import Moving, gather_set
from warploom.sketch.term.gather import GatherSet, Sense, Setting, Settings, Shape, moves

Operation: TypeAlias = Const | Unary | Binary | Select

x, y = Var("x"), Var("y")
L, S = Var("L"), Var("S")
c, a, b, u = Var("c"), Var("a"), Var("b"), Var("u")


def linear(call: Call, usual: Axes | None) -> GatherSet:
    call.same_shape()
    axes = axes_along_main(call, usual)
    shape = call.in_shape
    family = Linear(call, LinearForms(shape, axes.main, axes.second), axes.out)
    call.afford(len(_parts()), 8 * family.field, "use a smaller array")
    field = tuple(shape[axis] for axis in family.axes)
    open_grid = dict(zip(family.axes, coordinates(field), strict=True))
    every = _tabulate(family.functions.known(open_grid), field)
    kept = _permutations(every, family.axes.index(axes.main))
    reads = moves(shape, shape, axes.out, family.axes, every[kept].reshape(len(kept), -1))
    return gather_set(call, family, kept[:, None], reads)


@dataclass(frozen=True, slots=True)
class LinearForms(IndexFunctions):
    """A row is the number of a form, which is the same at every size."""

    extents: tuple[int, ...]
    main: int
    second: int

    @property
    def columns(self) -> tuple[str, ...]:
        return ("form",)

    @property
    def depends(self) -> tuple[int, ...]:
        return tuple(sorted({self.main, self.second}))

    @property
    def sizes(self) -> dict[str, int]:
        length, other = self.extents[self.main], self.extents[self.second]
        common = math.gcd(length, other)
        inner, outer = length // common, other // common
        inverse = pow(outer, -1, inner)
        return {"L": length, "S": other, "c": common, "a": inner, "b": outer, "u": inverse}

    def known(self, at: Mapping[int, Integers]) -> dict[str, Value]:
        """The value of every name in a form."""
        return {"x": at[self.main], "y": at[self.second], **self.sizes}

    def values(self, rows: Settings, at: Mapping[int, Integers]) -> Integers:
        out = np.empty((len(rows), len(at[self.main])), np.min_scalar_type(self.extents[self.main]))
        for number, form in enumerate(rows[:, 0].tolist()):
            out[number] = evaluate(forms()[form], self.known(at))
        return out

    def expression(self, row: Setting, variables: Sequence[Expr]) -> Expr:
        """The form with numbers for the sizes, less what its ranges make idle."""
        own = {"x": variables[self.main], "y": variables[self.second]}
        ranges = {
            part.name: (0, self.extents[axis] - 1)
            for axis, part in ((self.main, own["x"]), (self.second, own["y"]))
            if isinstance(part, Var)
        }
        return simplify(substitute(forms()[row[0]], {**own, **self.sizes}), ranges)

    def counterparts(self, rows: Settings, large: IndexFunctions, _reading: Sense) -> Settings:
        return rows if isinstance(large, LinearForms) else none_of(self)

    def forms(self, rows: Settings) -> Settings:
        return rows

    def to_json(self, row: Setting) -> dict[str, Any]:
        return {"form": show(forms()[row[0]])}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        check_names(parameters, self.columns)
        form = parameters["form"]
        if not isinstance(form, str) or form not in _numbers():
            raise CheckError(f"there is no linear form {form!r:.80}")
        return np.array([_numbers()[form]])


@dataclass(frozen=True, slots=True)
class Linear(Moving):
    name = "linear"

    functions: LinearForms

    def text(self, row: Setting) -> str:
        return _name(int(row[0]), self.functions.main, self.functions.second)

    def may_leave(self, _row: Setting) -> bool:
        return False

    def cheapest(self, rows: Settings) -> int:
        """Forms are in order of cost, and to simplify every one that means the same would take
        longer than the search."""
        return int(np.argmin(rows[:, 0]))


@lru_cache(maxsize=4096)
def _name(form: int, main: int, second: int) -> str:
    own = {"x": coordinate(main), "y": coordinate(second)}
    return f"linear[{show(substitute(forms()[form], own))}]"


@cache
def _numbers() -> dict[str, int]:
    """The number of each form by its text."""
    return {show(form): number for number, form in enumerate(forms())}


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
