"""What a loop nest is: scalar instructions over dimensions, and nothing yet about their order.

An *axis* is a loop of the computation. It is cut into tiles, and every instruction has dimensions
of its own for them: whether two of these become one loop, which is inside which, what runs on
threads, all that is decided later (`space.py`). What a decision may add to the program, the store
and the load of a temporary array, is part of it from the start. `build.py` writes programs,
`evaluate.py` says what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from warploom.errors import CheckError
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Operator

Operation: TypeAlias = Operator | Literal["move", "cast"]
Fold: TypeAlias = Literal["+", "min", "max"]


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
class Access:
    """An element of an array: one subscript for each of its dimensions."""

    array: Array
    subscripts: tuple[Affine, ...]

    @property
    def place(self) -> Affine:
        """The element's place in the array, in elements."""
        place = Affine(0)
        for subscript, stride in zip(self.subscripts, self.array.strides, strict=True):
            place = place + subscript * stride
        return Affine(place.offset, tuple(place.factors.items()))


# -- instructions ----------------------------------------------------------------------------------


class Scope(Enum):
    """How far a value may travel from one dimension to the one that it is paired with: within a
    thread and one nest of thread dimensions, within a thread, or through a temporary array."""

    LOCAL = "local"
    THREAD = "thread"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A number that is an argument of the kernel."""

    name: str
    dtype: DType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class IndexOf:
    """The index along an axis, as a number."""

    axis: Axis


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What another instruction computed at the same place of each pair (its dimension, mine); where
    it folds, what it had at the end."""

    instruction: Instruction
    pairs: Pairs
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """What this instruction itself had in the iteration before along the dimensions `over`, and at
    first what `start` computed."""

    start: Instruction
    pairs: Pairs
    over: tuple[Dim, ...]


Operand: TypeAlias = Constant | Parameter | IndexOf | Result | Running


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    op: Operation
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    access: Access


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    access: Access
    value: Operand


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """Stores to a temporary array."""

    value: Result


@dataclass(frozen=True, slots=True, eq=False)
class Get:
    """Loads from a temporary array."""


Action: TypeAlias = Compute | Load | Store | Put | Get


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One scalar operation, done for every index of its dimensions."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    action: Action

    @property
    def operands(self) -> tuple[Operand, ...]:
        match self.action:
            case Compute(_, operands):
                return operands
            case Store(_, value) | Put(value):
                return (value,)
            case _:
                return ()

    @property
    def running(self) -> Running | None:
        """The fold that it is, if it is one."""
        return next((each for each in self.operands if isinstance(each, Running)), None)

    @property
    def over(self) -> tuple[Dim, ...]:
        """The dimensions that it folds over."""
        return self.running.over if self.running is not None else ()

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

    @property
    def temporaries(self) -> tuple[Temporary, ...]:
        found = (each.temporary for each in self.communications)
        return tuple(each for each in found if each is not None)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Those that are always there."""
        return tuple(dict.fromkeys(dim for each in self.instructions for dim in each.dims))


def results(instruction: Instruction) -> Iterator[Result]:
    """The values of other instructions that it uses."""
    return (each for each in instruction.operands if isinstance(each, Result))
