"""What a loop nest is: instructions over dimensions, and nothing yet about their order.

An *axis* is a loop of the computation. It is cut into tiles, and every instruction has dimensions
of its own for them: whether two of these become one loop, which is inside which, what runs on
threads, all that is decided later (`space.py`). What a decision may add to the program, the store
and the load of a temporary array, is part of it from the start. `build.py` writes programs,
`evaluate.py` says what they mean.

An instruction computes one value of kernels (`kernel/ir.py`), whose leaves are results of other
instructions, elements of arrays, parameters, numbers and indices along axes. In the published
system it is one operator: `pieces` has it so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, TypeAlias

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify, total
from warploom.index.ranges import range_of
from warploom.kernel import ir as kernel
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    Cast,
    Cell,
    Choose,
    FromIndex,
    Number,
    Operator,
    Value,
    operands,
    walk_value,
)
from warploom.loopnest.fold import Fold

Operation: TypeAlias = Operator | Literal["move", "cast", "choose"]


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


@dataclass(frozen=True, slots=True, eq=False)
class Axis(Linear):
    """A loop of the computation, of `size` iterations, and the sizes that its tiles may have, the
    outermost tile first.

    A *dynamic* axis has one more dimension outside its tiles, which counts tiles: it is shared by
    all instructions, because values travel along it only within one loop. Without it the tiles
    alone make up the whole. With a `tail` the last tile may be partial, else tiles divide the size.
    """

    name: str
    size: int
    tiles: tuple[tuple[int, ...], ...] = ()
    dynamic: bool = True
    tail: bool = False

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


# -- instructions ----------------------------------------------------------------------------------


class Scope(Enum):
    """How far a value may travel from one dimension to the one that it is paired with: within a
    thread and one nest of thread dimensions, within a thread, or through a temporary array."""

    LOCAL = "local"
    THREAD = "thread"
    MEMORY = "memory"


Constant = Number


class Named(Cell):
    """A leaf that stands for much: what it is of is not written out with it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({self.name})"


class Own(Named):
    """A leaf that is like no other, whatever another nest calls its own."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class Parameter(Own):
    """A number that is an argument of the kernel."""

    __match_args__ = ("name", "dtype")

    def __str__(self) -> str:
        return self.name


def parameter(name: str, dtype: DType) -> Parameter:
    return Parameter(name, None, dtype)


@dataclass(frozen=True, slots=True)
class IndexOf(FromIndex):
    """An expression over the names of axes, as a number."""

    axes: tuple[Axis, ...]

    __match_args__ = ("axes",)


def index_of(axis: Axis, dtype: DType) -> IndexOf:
    return IndexOf(Var(axis.name), dtype, (axis,))


@dataclass(frozen=True, slots=True)
class Element(Cell):
    """An element of an array, loaded where it is used."""

    access: Access

    __match_args__ = ("access",)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Named):
    """What another instruction computed at the same place of each pair (its dimension, mine); where
    it folds, what it had at the end."""

    instruction: Instruction
    pairs: Pairs
    scope: Scope

    __match_args__ = ("instruction", "pairs", "scope")


def result(instruction: Instruction, pairs: Pairs, scope: Scope) -> Result:
    return Result(instruction.name, None, instruction.dtype, instruction, pairs, scope)


@dataclass(frozen=True, slots=True, repr=False)
class Running(Named):
    """What this instruction itself had in the iteration before along the dimensions `over`, and at
    first what `start` computed."""

    start: Instruction
    pairs: Pairs
    over: tuple[Dim, ...]

    __match_args__ = ("start", "pairs", "over")


def running(start: Instruction, pairs: Pairs, over: tuple[Dim, ...]) -> Running:
    return Running(start.name, None, start.dtype, start, pairs, over)


Operand: TypeAlias = Value  # a leaf, where an instruction is of one operator


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    value: Value

    __match_args__ = ("op", "operands")

    @property
    def op(self) -> Operation:
        """The outermost operator."""
        match self.value:
            case kernel.Operation(op):
                return op
            case Choose():
                return "choose"
            case Cast():
                return "cast"
            case _:
                return "move"

    @property
    def operands(self) -> tuple[Value, ...]:
        """What that one is of."""
        return operands(self.value) or (self.value,)


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """At each place along the dimensions `over`, all of one axis, what an operator makes of the
    values as far as there; `exclusive`: of those before it."""

    op: Fold
    value: Value
    over: tuple[Dim, ...]
    exclusive: bool = False

    @property
    def axis(self) -> Axis:
        return self.over[0].axis


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    access: Access


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    access: Access
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """Stores to a temporary array."""

    value: Result


@dataclass(frozen=True, slots=True, eq=False)
class Get:
    """Loads from a temporary array."""


Action: TypeAlias = Compute | Scan | Load | Store | Put | Get


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """A value that is computed, loaded or stored for every index of its dimensions."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    action: Action

    @property
    def value(self) -> Value | None:
        """What it computes, or stores."""
        match self.action:
            case Compute() | Scan():
                return self.action.value
            case Store(_, value) | Put(value):
                return value
            case _:
                return None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The leaves of its value, and those that subscripts are made of."""
        if isinstance(self.action, Load):
            return tuple(_naming(self.action.access))
        return () if self.value is None else tuple(leaves(self.value))

    @property
    def running(self) -> Running | None:
        """The fold that it is, if it is one."""
        return next((each for each in self.operands if isinstance(each, Running)), None)

    @property
    def over(self) -> tuple[Dim, ...]:
        """The dimensions that it folds over."""
        return self.running.over if self.running is not None else ()

    @property
    def scanned(self) -> tuple[Dim, ...]:
        """The dimensions along which it scans."""
        return self.action.over if isinstance(self.action, Scan) else ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(dict.fromkeys(dim.axis for dim in self.dims))

    def __str__(self) -> str:
        return self.name


# -- communication and programs --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Temporary:
    """What becomes of a communication where registers cannot do it: an array that `put` fills and
    `get` reads. `pairs` are (dimension of put, dimension of get), which may be dimensions of the
    array."""

    name: str
    put: Instruction
    get: Instruction
    pairs: Pairs

    @property
    def dtype(self) -> DType:
        return self.put.dtype

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions that are there only if the temporary is."""
        return tuple(dim for pair in self.pairs for dim in pair)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Communication:
    """A value that goes from one instruction to another, point to point along pairs of tiles."""

    name: str
    producer: Instruction
    consumer: Instruction
    pairs: Pairs
    scope: Scope
    temporary: Temporary | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Instructions after those whose results they use."""

    name: str
    axes: tuple[Axis, ...]
    tiles: tuple[Tile, ...]
    arrays: tuple[Array, ...]
    parameters: tuple[Parameter, ...]
    instructions: tuple[Instruction, ...]
    communications: tuple[Communication, ...]
    source: object = None  # the computation that it was made of

    @property
    def temporaries(self) -> tuple[Temporary, ...]:
        found = (each.temporary for each in self.communications)
        return tuple(each for each in found if each is not None)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Those that are always there."""
        return tuple(dict.fromkeys(dim for each in self.instructions for dim in each.dims))


def leaves(value: Value) -> Iterator[Value]:
    """Those of subscripts after the element that they belong to."""
    for each in walk_value(value):
        if not operands(each):
            yield each
            if isinstance(each, Element):
                yield from _naming(each.access)


def _naming(access: Access) -> Iterator[Value]:
    return (leaf for each in access.named for leaf in leaves(each.value))


def results(instruction: Instruction) -> Iterator[Result]:
    """The values of other instructions that it uses."""
    return (each for each in instruction.operands if isinstance(each, Result))
