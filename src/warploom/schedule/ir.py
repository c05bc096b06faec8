"""What a kernel does, with nothing left to decide: loops with what runs them, buffers, and writes.

Loop nests and array expressions both become this, and `lower.py` makes a kernel of it. The values
are those of kernels (`kernel/ir.py`), whose cells may here name any buffer: an element of global or
shared memory is loaded where it is read. Indices are expressions over counters. A value of which a
part stands under a condition over indices, `Choose(condition, x[i], 0)`, does not touch `x[i]`
where the condition fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from warploom.index.ir import Expr
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell, Number, Operator, Param, TensorKind, Value, walk_value
from warploom.kernel.traverse import exprs_in
from warploom.layout.language.ir import Swizzle
from warploom.machine.record import CUDA

Space: TypeAlias = Literal["number", "registers", "shared", "global"]
# How a copy that is ahead of its use goes: by way of registers, or as an asynchronous copy.
Way: TypeAlias = Literal["registers", "copy"]
# A loop of each thread, the same unrolled or if it is short, one wide access, or shared out among
# all threads.
Kind: TypeAlias = Literal["loop", "unrolled", "short", "vector", "copy"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory, or a number that is an argument. Without a size it is one register. Of a shared one
    there may be several `stages`, one of which is used while others are filled."""

    name: str
    dtype: DType
    space: Space
    size: int | None = None
    swizzle: Swizzle | None = None
    stages: int = 1
    way: Way = "registers"

    @property
    def is_memory(self) -> bool:
        return self.space in ("shared", "global")


@dataclass(frozen=True, slots=True)
class Write:
    """`target = value`, where the condition holds. `streaming`: what is accessed in global memory
    is not used again soon."""

    target: Cell
    value: Value
    where: Expr | None = None
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A counter that data decide: the value where that is from 0 to before `size`, else -1."""

    counter: str
    value: Value
    size: int


@dataclass(frozen=True, slots=True)
class Gathered(Cell):
    """An element whose index is over names, too. Who reads it asks that none of them is -1."""

    names: tuple[Name, ...] = ()


def cells_of(value: Value) -> Iterator[Cell]:
    """All of a value, those among them that names are of."""
    for each in walk_value(value):
        if isinstance(each, Cell):
            yield each
        if isinstance(each, Gathered):
            for name in each.names:
                yield from cells_of(name.value)


def exprs_of(value: Value) -> Iterator[Expr]:
    """Index expressions in a value, and in what names are of."""
    for each in walk_value(value):
        yield from exprs_in(each)
        if isinstance(each, Gathered):
            for name in each.names:
                yield from exprs_of(name.value)


@dataclass(frozen=True, slots=True)
class Loop:
    """A counter from 0 to before `size`. In a loop of the kind "copy" are loops of that kind alone,
    the last of them over neighbours in memory, and in that one writes to shared memory."""

    counter: str
    size: int
    body: tuple[Node, ...]
    kind: Kind = "loop"


@dataclass(frozen=True, slots=True)
class Indexed:
    """A counter that no loop counts: an index of a thread or block, or made of other counters.
    Where `where` fails there is nothing to do: memory is not touched, and what is computed in
    registers is used nowhere."""

    counter: str
    size: int
    index: Expr
    body: tuple[Node, ...]
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Only:
    """The body, where a condition holds on which all threads of a block agree."""

    condition: Expr
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of two, as each thread finds a condition to hold or not: writes, where nobody waits."""

    condition: Expr
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...]

    @property
    def body(self) -> tuple[Node, ...]:
        return (*self.then, *self.otherwise)


@dataclass(frozen=True, slots=True)
class Side:
    """The sums of a thread along the rows or the columns of a product: counters with their sizes,
    the last of them in pairs."""

    counters: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Product:
    """`sums` += `left`·`right` over a tile of `deep`, for all rows and columns, by tensor cores.
    `thread` counts the threads along the columns."""

    kind: TensorKind
    deep: str
    rows: Side
    columns: Side
    thread: str
    sums: Cell
    left: Cell
    right: Cell


@dataclass(frozen=True, slots=True)
class Combine:
    """`target` becomes, in every thread, what an operator makes of the targets of all threads that
    differ on these levels alone; of each register `along` counters that have no loop here."""

    target: Cell
    along: tuple[tuple[str, int], ...]
    op: Operator
    levels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Each register of `target` becomes what an operator makes of those as far as it, or before it.

    The order is that of `outer` counters, then of the threads on a `level`, then of `inner`
    counters, none of which has a loop here. `nothing` is what the operator begins with. A `carry`
    comes before all, and has all of them afterwards.
    """

    target: Cell
    outer: tuple[tuple[str, int], ...]
    inner: tuple[tuple[str, int], ...]
    op: Operator
    nothing: Number
    level: int | None = None
    exclusive: bool = False
    carry: Cell | None = None


Node: TypeAlias = Loop | Indexed | Only | Either | Write | Product | Combine | Prefix


@dataclass(frozen=True, slots=True)
class Schedule:
    """All of a kernel. `names` are indices of threads, with how many values they have; `levels` the
    sizes of levels of threads, where these are folded over, the innermost first."""

    name: str
    params: tuple[Param, ...]
    buffers: tuple[Buffer, ...]
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    body: tuple[Node, ...]
    names: tuple[tuple[str, int, Expr], ...] = ()
    levels: tuple[int, ...] = ()
    index: DType = DType.I32
    lanes: int = CUDA.lanes
    shared_most: int = CUDA.shared_bytes

    @property
    def threads(self) -> int:
        x, y, z = self.block
        return x * y * z


def inside(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """Every node, each before what is in it."""
    for node in nodes:
        yield node
        if not isinstance(node, Write | Product | Combine | Prefix):
            yield from inside(node.body)


def writes(nodes: tuple[Node, ...]) -> Iterator[Write]:
    return (node for node in inside(nodes) if isinstance(node, Write))
