"""Axes, and which elements of arrays instructions load and store: subscripts and conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify, total
from warploom.index.ranges import range_of
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Value

# -- axes and dimensions ---------------------------------------------------------------------------


class Linear:
    """Sums and multiples of axes, as subscripts have them."""

    __slots__ = ()

    def __add__(self, other: Linear | int) -> Affine:
        left, right = affine(self), affine(other)
        return Affine(left.offset + right.offset, left.terms + right.terms)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Affine:
        own = affine(self)
        return Affine(own.offset * factor, tuple((a, f * factor) for a, f in own.terms))

    __rmul__ = __mul__

    def __sub__(self, other: Linear | int) -> Affine:
        return self + other * -1

    def __rsub__(self, other: Linear | int) -> Affine:
        return self * -1 + other

    def __floordiv__(self, by: int) -> Crooked:
        return crooked(self, lambda expr: expr // by)

    def __mod__(self, by: int) -> Crooked:
        return crooked(self, lambda expr: expr % by)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(affine(self).factors)

    @property
    def expr(self) -> Expr:
        """Over the names of axes."""
        own, found = affine(self), list[Expr]()
        for axis, factor in own.factors.items():
            found.append(Var(axis.name) * factor)
        return total([*found, Const(own.offset)])


@dataclass(frozen=True, slots=True)
class Skew:
    """How many iterations there are before the first index of an axis: as many elements as a row
    begins behind a multiple of `width`. So pieces of `width` iterations are aligned in memory,
    wherever rows begin. `factors` are how far rows of other axes, by name, lie apart."""

    factors: tuple[tuple[str, int], ...]
    offset: int
    width: int

    @property
    def most(self) -> int:
        return self.width - 1

    @property
    def expr(self) -> Expr:
        """Over the names of axes."""
        terms = [Var(name) * factor for name, factor in self.factors]
        return total([*terms, Const(self.offset)]) % self.width


@dataclass(frozen=True, slots=True, eq=False)
class Axis(Linear):
    """A loop of the computation, of `size` iterations, and the sizes that its tiles may have, the
    outermost tile first.

    A *dynamic* axis has one more dimension outside its tiles, which counts tiles: it is shared by
    all instructions, because values travel along it only within one loop. Without it the tiles
    alone make up the whole. With a `tail` the last tile may be partial, else tiles divide the size.
    With a `skew` the first one may be, too. Of an axis that is not `guarded`, loads say themselves
    where they are inside: what iterations beyond its ends compute changes nothing.
    """

    name: str
    size: int
    tiles: tuple[tuple[int, ...], ...] = ()
    dynamic: bool = True
    tail: bool = False
    skew: Skew | None = None
    guarded: bool = True

    @property
    def span(self) -> int:
        """Iterations that tiles have to cover: the indices, and what may be before the first."""
        return self.size + (self.skew.most if self.skew is not None and self.guarded else 0)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """One level of an axis; its size is the same for all dimensions made of it."""

    axis: Axis
    level: int

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.axis.tiles[self.level]

    def __str__(self) -> str:
        return f"{self.axis}{self.level + 1}"


@dataclass(frozen=True, slots=True, eq=False)
class Dim:
    """A loop around instructions: along a tile, or (without one) over the tiles of an axis."""

    name: str
    axis: Axis
    tile: Tile | None

    def __str__(self) -> str:
        return self.name


Pairs: TypeAlias = tuple[tuple[Dim, Dim], ...]


# -- memory ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """An argument of the kernel; strides are in elements."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> int:
        """From the first element to the last, both included."""
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Affine(Linear):
    """A number that is linear in the indices of axes."""

    offset: int
    terms: tuple[tuple[Axis, int], ...] = ()

    @property
    def factors(self) -> dict[Axis, int]:
        found: dict[Axis, int] = {}
        for axis, factor in self.terms:
            found[axis] = found.get(axis, 0) + factor
        return {axis: factor for axis, factor in found.items() if factor}

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest that it is."""
        ends = [factor * (axis.size - 1) for axis, factor in self.factors.items()]
        return (
            self.offset + sum(end for end in ends if end < 0),
            self.offset + sum(end for end in ends if end > 0),
        )


def affine(value: Linear | int) -> Affine:
    match value:
        case Affine():
            return value
        case Axis():
            return Affine(0, ((value, 1),))
        case int():
            return Affine(value)
        case _:
            raise CheckError(
                f"{value!r} is no subscript", advice="use axes, integers, their sums and multiples"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Crooked:
    """A subscript that is not linear: an expression over the names of axes."""

    expr: Expr
    axes: tuple[Axis, ...]

    @property
    def range(self) -> tuple[int, int]:
        return range_of(self.expr, {axis.name: (0, axis.size - 1) for axis in self.axes})


@dataclass(frozen=True, slots=True, eq=False)
class ByData:
    """A subscript that is a value: an integer that is loaded or computed. Where it lies outside the
    array there is no element, and nothing is loaded. `axes` are those along which it varies."""

    value: Value
    axes: tuple[Axis, ...]


Subscript: TypeAlias = Affine | Crooked | ByData


def crooked(value: Linear, made: Callable[[Expr], Expr]) -> Crooked:
    own = affine(value)
    return Crooked(simplify(made(own.expr)), tuple(own.factors))


@dataclass(frozen=True, slots=True, eq=False)
class Where:
    """A condition over the names of axes."""

    condition: Expr
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An element of an array: one subscript for each of its dimensions. Where a condition fails it
    is the number `other` instead, and nothing is loaded."""

    array: Array
    subscripts: tuple[Subscript, ...]
    where: Where | None = None
    other: float = 0

    @property
    def is_linear(self) -> bool:
        return all(isinstance(each, Affine) for each in self.subscripts)

    @property
    def named(self) -> tuple[ByData, ...]:
        """The subscripts that data decide."""
        return tuple(each for each in self.subscripts if isinstance(each, ByData))

    @property
    def place(self) -> Affine:
        """The element's place in the array, in elements, as far as it is known: without axes and at
        the beginning where a subscript is not linear."""
        return Affine(0) if self.named else self.near

    @property
    def near(self) -> Affine:
        """The same beside what data decide: in the row that they name."""
        place = Affine(0)
        for subscript, stride in zip(self.subscripts, self.array.strides, strict=True):
            if isinstance(subscript, Crooked):
                return Affine(0)
            if isinstance(subscript, Affine):
                place = place + subscript * stride
        return Affine(place.offset, tuple(place.factors.items()))

    @property
    def steps(self) -> dict[Axis, int]:
        """How far apart the first two elements along each axis are: all neighbours where it is
        linear, and most of them where it is not."""
        if self.is_linear or self.named:
            return self.near.factors
        first = self._at(dict.fromkeys((axis.name for axis in self.axes), 0))
        return {axis: self._at({each.name: int(each is axis) for each in self.axes}) - first
                for axis in self.axes if axis.size > 1}  # fmt: skip

    def _at(self, index: dict[str, int]) -> int:
        """Its place where axes have these indices."""
        total = 0
        for each, stride in zip(self.subscripts, self.array.strides, strict=True):
            assert not isinstance(each, ByData)
            total += int(evaluate(each.expr, index)) * stride
        return total

    @property
    def multiples(self) -> list[int]:
        """What the place is moved by multiples of, however data decide."""
        pairs = zip(self.subscripts, self.array.strides, strict=True)
        return [stride for each, stride in pairs if isinstance(each, ByData)]

    def naming(self, named: Callable[[Value], Value]) -> Access:
        """Returns the same with other values for subscripts."""
        if not self.named:
            return self
        found = (replace(each, value=named(each.value)) if isinstance(each, ByData) else each
                 for each in self.subscripts)  # fmt: skip
        return replace(self, subscripts=tuple(found))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Those that it depends on."""
        found: list[Axis] = []
        for each in self.subscripts:
            found += each.factors if isinstance(each, Affine) else each.axes
        found += self.where.axes if self.where is not None else ()
        if self.is_linear:
            kept = self.place.factors
            own = self.where.axes if self.where is not None else ()
            found = [axis for axis in found if axis in kept or axis in own]
        return tuple(dict.fromkeys(found))
