"""The shared memory of blocks that are evaluated together: arrays in one pool of bytes for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.kernel import ir
from warploom.kernel.pool import offsets, pool_bytes
from warploom.machine.memory import per_owner

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array: the pool of all blocks seen as elements of its type, and where it lies.

    Each block has a `row` of the pool; `first` is the array's place in it, in elements.
    """

    number: int
    data: Array
    row: int
    first: int
    size: int


@dataclass(slots=True)
class Pool:
    """The shared memory of some blocks. `owner` is the array that stored to each granule last, so
    that arrays which share bytes cannot read each other's; 0 is nobody."""

    granule: int
    bytes: int
    owner: npt.NDArray[np.int16]
    arrays: dict[str, SharedArray]

    def granules(self, memory: SharedArray, cells: Ints, width: int) -> Iterator[Ints]:
        """The granules of an access of so many elements, one after another."""
        each = memory.data.itemsize // self.granule
        for offset in range(width * each):
            yield cells * each + offset


def pool_of(kernel: ir.Kernel, blocks: int) -> Pool:
    declared = [each for each in kernel.body if isinstance(each, ir.Shared)]
    places = offsets(declared)
    data = per_owner("shared memory", blocks, kernel.threads, pool_bytes(declared)).data
    row = len(data) // blocks
    granule = min((each.dtype.bytes for each in declared), default=1)
    arrays = {
        each.name: SharedArray(
            number,
            data.view(each.dtype.storage),
            row // each.dtype.bytes,
            places[each.name] // each.dtype.bytes,
            each.size,
        )
        for number, each in enumerate(declared, 1)
    }
    return Pool(granule, len(data), np.zeros(len(data) // granule, dtype=np.int16), arrays)
