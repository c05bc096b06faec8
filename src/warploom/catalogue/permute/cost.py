"""What a launch is expected to take, where a copy of as many bytes takes 1.

Two things cost beside the bytes themselves: ends of runs, whose sectors of 32 bytes are moved for
their neighbours too, and instructions. The constants are fitted to an H200 (`permute_device.json`):
of 280 rows, those whose runs are long in both arrays differ from a copy by their instructions, and
the others by 12 bytes for each run that is read and 64 for each that is written.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR = 32
READ_END, WRITE_END = 12.0, 64.0  # bytes that a run costs, read and written
LEAST = 1.035  # what the best of all kernels take
INSTRUCTION = 0.011  # each instruction of a thread, for a byte that it moves
HIDDEN = 3.0  # instructions for a byte that the memory's time hides
MULTIPROCESSORS = 132
TAIL = 0.15  # the part of a block's time that the last blocks do not share


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does: bytes in all and in each block; bytes that lie side by side where it
    reads, and from one sector that it writes in part to the next; instructions of a block's
    threads; bytes of x that are read twice, as a part of all."""

    total: int
    block: float
    read: float
    written: float
    instructions: float
    again: float = 0.0

    @property
    def cost(self) -> float:
        each = self.instructions / self.block
        return (
            LEAST
            + READ_END / self.read
            + WRITE_END / self.written
            + INSTRUCTION * max(0.0, each - HIDDEN)
            + self.again * SECTOR / 256
            + TAIL * self.block * MULTIPROCESSORS / max(1, self.total)
        )
