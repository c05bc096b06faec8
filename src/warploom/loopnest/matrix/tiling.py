"""How a product of matrices is cut up and moved: what is decided, with nothing left open."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.kernel.dtype import DType
from warploom.kernel.warpgroup import GROUP, QUAD, Major

ROWS = 64  # of one product
LINE = 128  # bytes of a row in shared memory, which one swizzle goes over
LINES = (128, 64, 32)  # the swizzles that there are
STEP = 32  # bytes of the sum in one product
BARRIERS = 16  # bytes of the two barriers of a stage
SLACK = 1024  # bytes that the beginning of shared memory may lose to alignment
OUT = 64  # neighbours of a box through which results leave
REGISTERS = {1: (56, 240), 2: (40, 232), 3: (32, 160)}  # of filling and of adding threads
SUM = 4  # bytes
OWN = 40  # registers of a thread for what is no sum


def line_bytes(side: int, dense: Major) -> int:
    """Bytes of a row in shared memory: those of the widest swizzle that divides a side which is
    dense, of so many bytes."""
    return LINE if dense == "k" else next((each for each in LINES if side % each == 0), 0)


@dataclass(frozen=True, slots=True)
class Tiling:
    """A block makes `rows` × `columns` results, from stages of `deep` terms of the sum. Blocks of a
    `cluster` lie below each other and share what they read of columns; `beside` each other (1) they
    share rows. Tiles of `band` rows are made together. Results leave through `boxes` in shared
    memory, or straight from registers. With `ping_pong` each warp group makes tiles of its own, in
    turn, else all make parts of one.

    `split` blocks of a cluster make one tile: each adds a part of the sum, then each gets a part of
    the results from all, and stores it."""

    rows: int
    columns: int
    deep: int
    stages: int
    consumers: int
    cluster: int
    band: int
    boxes: int
    beside: int = 0
    ping_pong: int = 0
    split: int = 1

    @property
    def blocks(self) -> int:
        """How many blocks a cluster has."""
        return self.cluster * self.split

    @property
    def down(self) -> int:
        """Blocks of a cluster below each other."""
        return 1 if self.beside else self.cluster

    @property
    def across(self) -> int:
        return self.cluster if self.beside else 1

    @property
    def shared_side(self) -> int:
        """Rows or columns that blocks of a cluster bring to each other."""
        return self.rows if self.beside else self.columns

    def box(self, turned: bool) -> tuple[int, int]:
        """The results of a box, dense along the second side: `turned`, along rows of the tile."""
        return (self.columns if turned else self.own, OUT)

    def shared_bytes(self, factor: DType, out: DType, turned: bool = False) -> int:
        each = (self.rows + self.columns) * self.deep * factor.bytes
        long, wide = self.box(turned)
        sent = self.boxes * self.consumers * long * wide * out.bytes
        sent += (self.split - 1) * self.share * SUM * GROUP * self.consumers
        return self.stages * (each + BARRIERS) + sent + BARRIERS * (self.consumers + 1) + SLACK

    @property
    def own(self) -> int:
        """Rows of a tile that a warp group has."""
        return self.rows if self.ping_pong else self.rows // self.consumers

    @property
    def sums(self) -> int:
        """Registers of sums that a thread has."""
        return self.own * self.columns // GROUP

    @property
    def share(self) -> int:
        """Registers of results that a thread has, once all parts are added."""
        if self.split == 1:
            return self.sums
        return -(-self.sums // (QUAD * self.split)) * QUAD

    @property
    def reads(self) -> int:
        """Rows and columns of factors that products read in each step of a tile."""
        return self.rows // ROWS * (ROWS + self.columns)

    def has_boxes(self, turned: bool) -> bool:
        """Whether results are cut into boxes, as many as there are at least."""
        if turned:
            return self.columns % 16 == 0 and self.boxes <= self.own // OUT
        return self.columns % OUT == 0 and self.boxes <= self.columns // OUT

    def is_possible(
        self, factor: DType, out: DType, shared_most: int, turned: bool = False
    ) -> bool:
        return (
            self.rows % (ROWS if self.ping_pong else ROWS * self.consumers) == 0
            and (self.consumers > 1 or not self.ping_pong)
            and self.sums + (self.split > 1) * self.share + OWN <= REGISTERS[self.consumers][1]
            and (self.split == 1 or (not (self.boxes or self.ping_pong) and self.cluster == 1))
            and self.shared_side % (8 * self.cluster) == 0
            and (self.cluster > 1 or not self.beside)
            and (not self.boxes or self.has_boxes(turned))
            and self.shared_bytes(factor, out, turned) <= shared_most
        )
