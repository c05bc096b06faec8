"""What a memory access costs a machine: sectors of 32 bytes, bank conflicts; and running totals.

Both evaluators (kernels and PTX) give the warp and the byte address of every active lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SECTOR = 32
BANKS = 32
BANK_BYTES = 4


@dataclass(slots=True)
class Counters:
    """Totals over a launch. A request is one instruction of one warp."""

    global_load_requests: int = 0
    global_load_sectors: int = 0
    global_store_requests: int = 0
    global_store_sectors: int = 0
    shared_requests: int = 0
    bank_conflicts: int = 0
    shuffles: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    atomics: int = 0


def sectors(warp: Array, address: Array, width: int) -> int:
    """Different 32-byte pieces touched, summed over warps.

    >>> lane = np.arange(32)
    >>> sectors(lane * 0, lane * 4, 4), sectors(lane * 0, lane * 8, 4)
    (4, 8)
    """
    first = address.astype(np.int64) // SECTOR
    last = (address.astype(np.int64) + width - 1) // SECTOR
    total = 0
    pairs = [np.stack([warp, first])]
    if not np.array_equal(first, last):  # an access that is not aligned to its size
        pairs.append(np.stack([warp, last]))
    keys = np.concatenate(pairs, axis=1)
    total += _count_pairs(keys[0], keys[1])
    return total


def _count_pairs(first: Array, second: Array) -> int:
    if first.size == 0:
        return 0
    order = np.lexsort((second, first))
    a, b = first[order], second[order]
    return 1 + int(np.count_nonzero((a[1:] != a[:-1]) | (b[1:] != b[:-1])))


def requests(warp: Array) -> int:
    """How many warps take part in an access."""
    return int(np.unique(warp).size)


def bank_conflicts(warp: Array, lane: Array, address: Array, width: int) -> int:
    """Extra rounds through 32 banks of 4 bytes; lanes that read the same word share it.

    8-byte accesses go in two half warps, 16-byte accesses in four quarters.

    >>> lane = np.arange(32)
    >>> bank_conflicts(lane * 0, lane, lane * 4, 4), bank_conflicts(lane * 0, lane, lane * 128, 4)
    (0, 31)
    """
    words = max(1, width // BANK_BYTES)
    phase = warp.astype(np.int64) * words + lane.astype(np.int64) * words // 32
    first = address.astype(np.int64) // BANK_BYTES
    word = (first[:, None] + np.arange(words)).reshape(-1)
    phase = np.repeat(phase, words)
    order = np.lexsort((word, phase))
    phase, word = phase[order], word[order]
    fresh = np.ones(phase.size, bool)
    fresh[1:] = (phase[1:] != phase[:-1]) | (word[1:] != word[:-1])
    phase, word = phase[fresh], word[fresh]
    _, phase = np.unique(phase, return_inverse=True)
    load = np.bincount(phase * BANKS + word % BANKS, minlength=BANKS)
    load = np.pad(load, (0, -load.size % BANKS)).reshape(-1, BANKS)
    return int((load.max(axis=1) - 1).clip(0).sum())
