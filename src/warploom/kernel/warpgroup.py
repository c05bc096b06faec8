"""What a kernel of Hopper says beside `ir.py`: boxes of arrays that come through tensor maps, rings
of stages that a warp group of its own fills, products of whole warp groups, matrices of a warp.

Their meaning is in order: an iteration of a ring fills its tiles, then its body runs. What
overlaps, and the phases, barriers and counts of bytes that it takes, a printer makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from warploom.index.ir import Expr

if TYPE_CHECKING:
    from warploom.kernel.ir import Cell, Stmt, TensorKind

GROUP = 128  # threads of a warp group
Swizzle: TypeAlias = Literal[0, 32, 64, 128]
Major: TypeAlias = Literal["k", "mn"]


@dataclass(frozen=True, slots=True)
class MapParam:
    """A view of an array parameter, and the box of it that one copy takes: outermost axis first, as
    NumPy has shapes, the last one dense. `strides`, in elements, are those of the other axes.

    A launch makes the map of the array that it is given. Elements outside the view are read as
    zero, and not written."""

    name: str
    array: str
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    @property
    def elements(self) -> int:
        count = 1
        for side in self.box:
            count *= side
        return count


@dataclass(frozen=True, slots=True)
class Roles:
    """The threads of the kernel consume; beside them one more warp group fills rings. Registers of
    a thread of either, of which a block has 65,536."""

    producer_registers: int = 40
    consumer_registers: int = 232


@dataclass(frozen=True, slots=True)
class Fill:
    """The box of a map that begins at these coordinates goes to a shared array, from an element on,
    as the map swizzles it. Only at the beginning of a ring's body.

    A fill that is `split` is of as many boxes as a cluster has blocks, one after another along that
    axis of the map: each block brings one of them to all."""

    map: str
    at: tuple[Expr, ...]
    array: str
    index: Expr
    split: int | None = None


@dataclass(frozen=True, slots=True)
class Ring:
    """A loop over `var` from 0 to before `count`: its fills, then the rest of the body, which may
    read what they brought. `stage` counts on over all iterations, modulo `stages`. Registers that
    `sums` names are zero when the loop begins."""

    var: str
    count: Expr
    stage: str
    stages: int
    body: tuple[Stmt, ...]
    sums: tuple[str, ...] = ()

    @property
    def fills(self) -> tuple[Fill, ...]:
        return tuple(each for each in self.body if isinstance(each, Fill))

    @property
    def rest(self) -> tuple[Stmt, ...]:
        return tuple(each for each in self.body if not isinstance(each, Fill))


@dataclass(frozen=True, slots=True)
class PingPong:
    """The body is for the threads of one warp group alone, its rings too: of the first of the
    block, the next time of the next, and round again. Each then has tiles of its own, and one
    stores while another multiplies."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class OrderedBarrier:
    """From one of these to the next in a list of statements, the last of which `ends` it, the warp
    groups of a block go one after another, each time from the first. It means nothing: where
    products stand there, those of one warp group are under way while others do what comes after."""

    ends: bool = False


@dataclass(frozen=True, slots=True)
class Tile:
    """A factor in shared memory, as a descriptor says it: the element at which it begins, its
    swizzle, which axis is dense, and bytes: `stride` from eight rows to the next eight, `leading`
    from one width of the swizzle to the next along rows or columns, if those are dense."""

    array: str
    index: Expr
    swizzle: int
    major: Major = "k"
    stride: int = 1024
    leading: int = 16


@dataclass(frozen=True, slots=True)
class WarpgroupProduct:
    """`target` += a·b as the tensor cores of a warp group do it: 64 × k by k × `columns`, where k
    is 32 bytes of factors. Each thread holds columns / 2 neighbouring registers of the target."""

    target: Cell
    a: Tile | Cell
    b: Tile
    columns: int
    kind: TensorKind = "bf16"

    @property
    def tiles(self) -> Iterator[Tile]:
        if isinstance(self.a, Tile):
            yield self.a
        yield self.b


@dataclass(frozen=True, slots=True)
class LoadMatrix:
    """`count` matrices of 8 × 8 elements of 16 bits from shared memory to the registers of a warp:
    lane 8j + r says where row r of matrix j begins. Lane 4g + t gets the elements 2t and 2t + 1 of
    row g of each, or of column g if `transposed`. Of elements of 8 or 32 bits a row has as many as
    16 bytes do, and a lane as many neighbours as a word."""

    target: Cell
    array: str
    index: Expr
    count: int = 4
    transposed: bool = False

    @property
    def row(self) -> int:
        """Elements of a row."""
        return 16 // self.target.dtype.bytes

    @property
    def own(self) -> int:
        """Elements of a matrix that a lane gets."""
        return self.row // 4


@dataclass(frozen=True, slots=True)
class StoreMatrix:
    """The reverse of `LoadMatrix`."""

    array: str
    index: Expr
    value: Cell
    count: int = 4
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class BulkStore:
    """A box from a shared array to where a map says. All threads of the block, or of each warp
    group, which then has a box of its own, meet at it, before; and again before the next store to
    that array."""

    map: str
    at: tuple[Expr, ...]
    array: str
    index: Expr
    scope: Literal["block", "group"] = "block"


QUAD = 4  # registers that a block of a cluster sends at once


@dataclass(frozen=True, slots=True)
class ClusterSum:
    """`count` neighbouring registers of each thread, added over the blocks of a cluster, which
    share the results: of the units of four registers, block r gets those from r·share on, and zeros
    where there are none left. To its own it adds those of the others, in their order.

    What others send arrives in a shared array, which nothing else uses. All threads come here, and
    once in a launch."""

    target: Cell
    value: Cell
    count: int
    array: str
    blocks: int

    @property
    def units(self) -> int:
        return self.count // QUAD

    @property
    def share(self) -> int:
        """Units that a block gets at most."""
        return -(-self.units // self.blocks)

    @property
    def registers(self) -> int:
        """How many registers a block gets, of each thread."""
        return QUAD * self.share

    def elements(self, threads: int) -> int:
        """Room for what the other blocks send."""
        return (self.blocks - 1) * self.registers * threads


@dataclass(frozen=True, slots=True)
class Unpack:
    """Integers of four or eight bits that a word holds, less `zero`, as numbers of sixteen bits,
    all of which are exact. The source is a register of 32 bits, or the first of four of eight; its
    lowest bits are the first integer. With `signed` the highest bit of each counts as negative.

    Neighbours of the target are integers j and j + half of all: a pair lies 16 bits apart in the
    word, so that one operation unpacks both."""

    target: Cell
    source: Cell
    bits: int
    zero: int = 0
    signed: bool = False

    @property
    def count(self) -> int:
        return 32 // self.bits

    @property
    def order(self) -> tuple[int, ...]:
        """Which integer of the word each register of the target holds."""
        return halves_in_turn(self.count)


def halves_in_turn(count: int) -> tuple[int, ...]:
    """The first and the second half of so many, one of each in turn."""
    return tuple(each for j in range(count // 2) for each in (j, j + count // 2))


@dataclass(frozen=True, slots=True)
class Interleave:
    """Neighbouring registers of sixteen bits, one of the first half and one of the second in turn:
    what stands beside integers that were unpacked has their order."""

    target: Cell
    source: Cell
    count: int

    @property
    def order(self) -> tuple[int, ...]:
        """Which register of the source each of the target is."""
        return halves_in_turn(self.count)


@dataclass(frozen=True, slots=True)
class SharedSum:
    """All threads of a cluster meet. Then block r has, in its part of the first `count` elements of
    a shared array, the sums of those of all blocks, from that of block 0 on, and its threads meet
    again. Its part begins at r · count / blocks. Nothing is stored to the array any more."""

    array: str
    count: int


MatrixMove: TypeAlias = LoadMatrix | StoreMatrix
Hopper: TypeAlias = (
    Fill | Ring | PingPong | OrderedBarrier | WarpgroupProduct | LoadMatrix | StoreMatrix
    | BulkStore | ClusterSum | Unpack | Interleave | SharedSum
)  # fmt: skip
HOPPER = (
    Fill, Ring, PingPong, OrderedBarrier, WarpgroupProduct, LoadMatrix, StoreMatrix, BulkStore,
    ClusterSum, Unpack, Interleave, SharedSum,
)  # fmt: skip
