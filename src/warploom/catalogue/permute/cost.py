"""What a launch is expected to take, where a copy of as many bytes takes 1.

Beside the bytes themselves, these cost: ends of runs, whose sectors of 32 bytes are moved for their
neighbours too; lines that warps ask for; instructions; registers that wait for memory; few blocks.
`COSTS` are fitted to times of many kernels on an H200: `python -m bench.catalogue.permute_fit`
prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from warploom.catalogue.permute.fitted import COSTS

SECTOR = 32
HIDDEN = 8.0  # instructions for a byte that the memory's time hides
OF_A_LINE = 9.0  # bytes that a copy moves while a multiprocessor serves a line of a request
HIDDEN_LINES = 0.3  # of that time, which the memory's hides
FEW, MANY = 10, 20  # registers of a thread that wait for memory
MULTIPROCESSORS = 132
NEW = {"rows": 0.09, "fields": 0.07}  # kernels of which few were measured
USUAL = {  # by the end of a feature's name
    " instructions": 0.07, " lines": 0.2, " digits": 0.05, "ends read": 0.3, "short reads": 0.3,
    "ends written": 2.0, "again": 0.3, " few held": 0.003, " many held": 0.01, "tail": 0.3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does: its `kernel` and the bytes of an element; bytes in all and in each block;
    bytes that lie side by side where it reads, and from one sector that it writes in part to the
    next; instructions of a block's threads; registers of a thread that wait for memory; `digits`:
    sides of several axes; bytes of x that are read twice, as a part of all; lines of 128 bytes that
    a block's warps ask for."""

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
    lines: float = 0.0

    @property
    def features(self) -> dict[str, float]:
        """What the costs are multiplied with."""
        kind = f"{self.kernel}{self.size}"
        return {
            kind: 1.0,
            f"{kind} instructions": max(0.0, self.instructions / self.block - HIDDEN),
            f"{self.kernel} lines": max(0.0, OF_A_LINE * self.lines / self.block - HIDDEN_LINES),
            f"{kind} digits": float(self.digits),
            f"{self.kernel} ends read": SECTOR / self.read,
            f"{self.kernel} short reads": max(0.0, SECTOR / self.read - 0.25),
            "ends written": SECTOR / self.written,
            "again": self.again,
            f"{kind} few held": float(max(0, self.held - FEW)),
            f"{kind} many held": float(max(0, self.held - MANY)),
            "tail": self.block * MULTIPROCESSORS / max(1, self.total),
        }

    @property
    def cost(self) -> float:
        return expected(self.features, COSTS)


def expected(features: Mapping[str, float], costs: Mapping[str, float]) -> float:
    """The time of a launch by its features; what was never measured costs the usual."""
    return 1.0 + sum(
        value * (costs[name] if name in costs else usually(name))
        for name, value in features.items()
        if value
    )


@cache
def usually(name: str) -> float:
    kind = NEW.get(name.rstrip("0123456789"), 0.05)
    return next((cost for words, cost in USUAL.items() if name.endswith(words)), kind)
