"""How a product of packed weights is cut up: what is decided, with nothing left open."""

from __future__ import annotations

from dataclasses import dataclass

COLUMNS = 8  # of one product of a warp
ROWS = 16
LANES = 32
QUAD = 4  # results that a thread has together
PAD = 8  # numbers between rows of sums in shared memory
MOST_WARPS, MOST_REGISTERS = 16, 1 << 16
BARRIERS = 256  # bytes of shared memory for what is no data, and its alignment
OWN = 40  # registers of a thread for what is no sum and no factor
DEEP = 32  # terms of a sum for each eight that a lane loads at once


@dataclass(frozen=True, slots=True)
class WeightTiling:
    """A block makes `rows` × (8 · `wide` · `beside`) results by warps, `beside` of them next to
    each other and `parts` along the sum; each has `wide` tiles of eight columns, and loads `ahead`
    pieces of its part at once. Blocks of a `cluster` have parts of the sum, too."""

    rows: int
    wide: int
    beside: int
    parts: int
    cluster: int
    ahead: int

    @property
    def warps(self) -> int:
        return self.beside * self.parts

    @property
    def columns(self) -> int:
        return COLUMNS * self.wide * self.beside

    def span(self, deep: int) -> int:
        """Terms of the sum that a block has at once, where a warp takes so many."""
        return self.parts * self.ahead * deep

    @property
    def units(self) -> int:
        """Fours of results that a thread has, after all parts of its block are added up."""
        return -(-self.rows * self.columns // (QUAD * LANES * self.warps))

    @property
    def arriving(self) -> int:
        """Numbers that other blocks of the cluster send to a block."""
        share = -(-self.units // self.cluster)
        return (self.cluster - 1) * share * QUAD * LANES * self.warps

    def shared_bytes(self, deep: int) -> int:
        """The first factor in two bytes; sums of all parts, and what other blocks send, in four."""
        sums = self.parts * self.rows * (self.columns + PAD) if self.parts > 1 else 0
        return 2 * self.rows * self.span(deep) + 4 * (sums + self.arriving) + BARRIERS

    def registers(self, deep: int, bits: int) -> int:
        """Estimated registers of a thread."""
        sums = 2 * self.wide * self.rows // 4
        words = self.ahead * self.wide * deep // DEEP * bits // 4
        return sums + words + self.ahead * self.wide + self.rows // 2 + OWN

    def is_possible(self, deep: int, bits: int, shared_most: int) -> bool:
        threads = LANES * self.warps
        return (
            threads % 128 == 0
            and self.warps <= MOST_WARPS
            and self.registers(deep, bits) * threads <= MOST_REGISTERS
            and self.registers(deep, bits) <= 255
            and self.shared_bytes(deep) <= shared_most
        )
