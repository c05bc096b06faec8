"""What a launch is expected to take, where a copy of as many bytes takes 1.

Beside the bytes themselves, these cost: ends of runs, whose sectors of 32 bytes are moved for their
neighbours too; instructions; registers that wait for memory; few blocks. `COSTS` are fitted to
times of many kernels on an H200: `python -m bench.catalogue.permute_fit` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.catalogue.permute.fitted import COSTS

SECTOR = 32
HIDDEN = 3.0  # instructions for a byte that the memory's time hides
FEW, MANY = 10, 20  # registers of a thread that wait for memory
MULTIPROCESSORS = 132


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does: its `kernel` and the bytes of an element; bytes in all and in each block;
    bytes that lie side by side where it reads, and from one sector that it writes in part to the
    next; instructions of a block's threads; registers of a thread that wait for memory; `digits`:
    sides of several axes; bytes of x that are read twice, as a part of all."""

    kernel: str
    size: int
    total: int
    block: float
    read: float
    written: float
    instructions: float
    held: int = 0
    digits: int = 0
    again: float = 0.0

    @property
    def features(self) -> dict[str, float]:
        """What the costs are multiplied with."""
        kind = f"{self.kernel}{self.size}"
        return {
            kind: 1.0,
            f"{kind} instructions": max(0.0, self.instructions / self.block - HIDDEN),
            f"{kind} digits": float(self.digits),
            "ends read": SECTOR / self.read,
            "ends written": SECTOR / self.written,
            "again": self.again,
            f"{self.kernel} few held": float(max(0, self.held - FEW)),
            f"{self.kernel} many held": float(max(0, self.held - MANY)),
            "tail": self.block * MULTIPROCESSORS / max(1, self.total),
        }

    @property
    def cost(self) -> float:
        return expected(self.features, COSTS)


def expected(features: Mapping[str, float], costs: Mapping[str, float]) -> float:
    return 1.0 + sum(value * costs.get(name, 0.0) for name, value in features.items())
