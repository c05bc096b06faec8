"""How a product of matrices is cut up for warps that multiply by themselves: what is decided."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.kernel.dtype import DType

DOWN, ACROSS = 16, 16  # rows and columns of what a warp does at once: two products of eight columns
DEPTH = 32  # bytes of the sum in one product
UNIT = 16  # bytes of one asynchronous copy
LANES = 32
OWN = 48  # registers of a thread for what is neither sum nor factor
MOST_REGISTERS, REGISTER_FILE = 248, 1 << 16  # of a thread, and of all threads of a block
MOST_THREADS, MOST_UNITS = 512, 16  # of a block; copies that a thread begins for one factor


@dataclass(frozen=True, slots=True)
class WarpTiling:
    """A block makes `rows` × `columns` results, from stages of `deep` terms of the sum. Its warps
    lie `high` below each other and `wide` beside each other. Tiles of `band` rows are neighbours in
    time. Blocks are in no cluster, and split no sum."""

    rows: int
    columns: int
    deep: int
    stages: int
    high: int
    wide: int
    band: int
    cluster: int = 1
    beside: int = 0
    split: int = 1

    @property
    def down(self) -> int:
        """Blocks of a cluster below each other."""
        return self.cluster

    @property
    def across(self) -> int:
        return self.cluster

    @property
    def blocks(self) -> int:
        """How many blocks a cluster has."""
        return self.cluster * self.split

    @property
    def boxes(self) -> int:
        """Results leave straight from registers."""
        return 0

    @property
    def threads(self) -> int:
        return LANES * self.high * self.wide

    @property
    def own_rows(self) -> int:
        """Rows that a warp has."""
        return self.rows // self.high

    @property
    def own_columns(self) -> int:
        return self.columns // self.wide

    @property
    def sums(self) -> int:
        """Registers of sums that a thread has."""
        return self.own_rows * self.own_columns // LANES

    @property
    def share(self) -> int:
        """Registers of results that a thread has: nothing is added up by others."""
        return self.sums

    @property
    def reads(self) -> int:
        """Rows and columns of factors that products read in each step of a tile."""
        return self.high * self.wide * (self.own_rows + self.own_columns)

    def shared_bytes(self, factor: DType) -> int:
        return self.stages * (self.rows + self.columns) * self.deep * factor.bytes

    def is_possible(self, factor: DType, shared_most: int) -> bool:
        size = UNIT // factor.bytes
        copies = [side * self.deep // size for side in (self.rows, self.columns)]
        factors = (self.own_rows + self.own_columns) * DEPTH // LANES // 4
        return (
            self.rows % (DOWN * self.high) == 0
            and self.columns % (ACROSS * self.wide) == 0
            and self.threads <= MOST_THREADS
            and self.sums + factors + OWN <= min(MOST_REGISTERS, REGISTER_FILE // self.threads)
            and all(n % self.threads == 0 and n // self.threads <= MOST_UNITS for n in copies)
            and self.shared_bytes(factor) <= shared_most
        )
