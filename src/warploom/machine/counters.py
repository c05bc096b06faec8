"""Running totals of a launch, and the layout in which accesses are counted: one row per warp."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.machine.banks import BankUse, bank_use
from warploom.machine.coalesce import Traffic, traffic

Ints = npt.NDArray[np.int64]
WARP = 32


@dataclass(slots=True)
class Counters:
    """Totals over a launch. A request is one memory instruction of one warp."""

    global_loads: Traffic = field(default_factory=Traffic)
    global_stores: Traffic = field(default_factory=Traffic)
    shared: BankUse = field(default_factory=BankUse)
    shuffles: int = 0  # by warps
    divergent_branches: int = 0  # by warps
    barriers: int = 0  # by blocks
    atomics: int = 0  # by threads

    def count_global(self, warp: Ints, lane: Ints, address: Ints, width: int, write: bool) -> None:
        rows, active = by_warp(warp, lane, address)
        if write:
            self.global_stores += traffic(rows, width, active)
        else:
            self.global_loads += traffic(rows, width, active)

    def count_shared(self, warp: Ints, lane: Ints, address: Ints, width: int) -> None:
        rows, active = by_warp(warp, lane, address)
        self.shared += bank_use(rows, width, active)


def by_warp(warp: Ints, lane: Ints, address: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Addresses of single lanes as rows of 32, and which lanes take part; idle warps are left out.

    >>> rows, active = by_warp(np.array([7, 7]), np.array([0, 3]), np.array([64, 96]))
    >>> rows.shape, np.flatnonzero(active[0]).tolist()
    ((1, 32), [0, 3])
    """
    fresh = np.ones(warp.size, bool)
    fresh[1:] = warp[1:] != warp[:-1]
    row = np.cumsum(fresh) - 1
    count = int(row[-1]) + 1 if row.size else 0
    rows = np.zeros((count, WARP), np.int64)
    active = np.zeros((count, WARP), bool)
    rows[row, lane] = address
    active[row, lane] = True
    return rows, active
