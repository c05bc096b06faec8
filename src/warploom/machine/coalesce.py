"""Global memory traffic: how many sectors the accesses of whole warps touch.

In come byte addresses, one row per warp and one column per lane; out go counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.machine.record import CUDA
from warploom.machine.serving import Active, Addresses

SECTOR_BYTES = CUDA.sector_bytes


@dataclass(frozen=True, slots=True)
class Traffic:
    """Warp-wide requests, the sectors they moved and the distinct bytes they asked for.

    `least_sectors` hold those bytes of each request, were they side by side.
    """

    requests: int = 0
    sectors: int = 0
    useful_bytes: int = 0
    least_sectors: int = 0

    @property
    def moved_bytes(self) -> int:
        return self.sectors * SECTOR_BYTES

    @property
    def efficiency(self) -> float:
        """Useful bytes per moved byte; 1.0 is perfectly coalesced, also when nothing moved."""
        return self.useful_bytes / self.moved_bytes if self.sectors else 1.0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.requests + other.requests,
            self.sectors + other.sectors,
            self.useful_bytes + other.useful_bytes,
            self.least_sectors + other.least_sectors,
        )


def traffic(addresses: Addresses, width: int, active: Active) -> Traffic:
    """The traffic of one instruction: each active lane accesses `width` bytes, aligned to them.

    >>> lanes = np.arange(32)[None]
    >>> traffic(lanes * 8, 4, np.ones((1, 32), bool))
    Traffic(requests=1, sectors=8, useful_bytes=128, least_sectors=4)
    """
    requests = int(active.any(axis=1).sum())
    if width <= SECTOR_BYTES:  # an aligned access lies in one sector
        sectors = distinct_per_row(addresses // SECTOR_BYTES, active)
    else:
        steps = np.arange(0, width, SECTOR_BYTES)
        spread = ((addresses[:, :, None] + steps) // SECTOR_BYTES).reshape(len(addresses), -1)
        sectors = distinct_per_row(spread, np.repeat(active, len(steps), axis=1))
    useful = distinct_per_row(addresses, active) * width
    least = -(-useful // SECTOR_BYTES)
    return Traffic(requests, int(sectors.sum()), int(useful.sum()), int(least.sum()))


def distinct_per_row(values: Addresses, active: Active) -> npt.NDArray[np.int64]:
    """How many different values each row has, inactive columns left out."""
    if values.shape[1] == 0:
        return np.zeros(len(values), dtype=np.int64)
    low = np.iinfo(np.int64).min
    ordered = np.sort(np.where(active, values, low), axis=1)
    changes = (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    # Inactive lanes form one group in front, if there are any.
    return np.asarray(changes + (ordered[:, 0] != low), dtype=np.int64)
