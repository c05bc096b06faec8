"""How a product of matrices is cut up and moved: what is decided, with nothing left open."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.kernel.dtype import DType

ROWS = 64  # of one product
LINE = 128  # bytes of a row in shared memory, which one swizzle goes over
STEP = 32  # bytes of the sum in one product
BARRIERS = 16  # bytes of the two barriers of a stage
SLACK = 1024  # bytes that the beginning of shared memory may lose to alignment
OUT = 64  # columns of a box through which results leave
REGISTERS = {1: (56, 240), 2: (40, 232), 3: (32, 160)}  # of filling and of adding threads
OWN = 40  # registers of a thread for what is no sum


@dataclass(frozen=True, slots=True)
class Tiling:
    """A block makes `rows` × `columns` results, from stages of `deep` terms of the sum. Blocks of a
    `cluster` lie below each other and share what they read of columns; `beside` each other (1) they
    share rows. Tiles of `band` rows are made together. Results leave through `boxes` in shared
    memory, or straight from registers."""

    rows: int
    columns: int
    deep: int
    stages: int
    consumers: int
    cluster: int
    band: int
    boxes: int
    beside: int = 0

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

    def shared_bytes(self, factor: DType, out: DType) -> int:
        each = (self.rows + self.columns) * self.deep * factor.bytes
        return self.stages * (each + BARRIERS) + self.boxes * self.rows * OUT * out.bytes + SLACK

    @property
    def sums(self) -> int:
        """Registers of sums that a thread has."""
        return self.rows * self.columns // (128 * self.consumers)

    def is_possible(self, factor: DType, out: DType, shared_most: int) -> bool:
        return (
            self.rows % (ROWS * self.consumers) == 0
            and self.sums + OWN <= REGISTERS[self.consumers][1]
            and self.shared_side % (8 * self.cluster) == 0
            and (self.cluster > 1 or not self.beside)
            and (not self.boxes or self.columns % OUT == 0)
            and self.boxes <= max(self.columns // OUT, 1)
            and self.shared_bytes(factor, out) <= shared_most
        )
