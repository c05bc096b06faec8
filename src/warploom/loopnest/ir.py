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

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from warploom.index.ir import Var
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
from warploom.loopnest.access import (
    Access,
    Affine,
    Array,
    Axis,
    ByData,
    Crooked,
    Dim,
    Linear,
    Pairs,
    Skew,
    Subscript,
    Tile,
    Where,
    affine,
    crooked,
)
from warploom.loopnest.fold import Fold

# What is of this language, and stands in `access.py`.
__all__ = [
    "Access", "Affine", "Array", "Axis", "ByData", "Crooked", "Dim", "Linear", "Pairs",
    "Skew", "Subscript", "Tile", "Where", "affine", "crooked",
]  # fmt: skip

Operation: TypeAlias = Operator | Literal["move", "cast", "choose"]


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
