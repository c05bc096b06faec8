"""Races by barrier epochs: two threads touch one cell, one of them writes, no barrier between them.

A cell remembers the lowest and highest thread that read and that wrote it since the last barrier
of each level. Threads of one *group* are ordered by that level's barrier: nothing orders blocks, a
block barrier orders the warps of a block, a warp barrier the lanes of a warp. So an access races
with an earlier one of the same epoch whose thread lies in another group, and lowest and highest
are enough to see that, since groups are runs of threads. An evaluator that runs in lock-step
cannot hide a race from this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_NOBODY_LOW = np.iinfo(np.int64).max
_NOBODY_HIGH = np.int64(-1)


@dataclass(frozen=True, slots=True)
class Race:
    """Threads count through the whole grid; `kind` says what the two did."""

    cell: int
    first: int
    second: int
    kind: Literal["write and write", "read and write"]


class _Level:
    """Who touched each cell since this level's last barrier."""

    def __init__(self, cells: int, group: int) -> None:
        self.group = group
        self.low = np.full(cells, _NOBODY_LOW, dtype=np.int64)
        self.high = np.full(cells, _NOBODY_HIGH, dtype=np.int64)
        self.epoch = np.zeros(cells, dtype=np.int64)

    def add(self, cells: Ints, threads: Ints, epochs: Ints) -> None:
        stale = cells[self.epoch[cells] != epochs]
        self.low[stale] = _NOBODY_LOW
        self.high[stale] = _NOBODY_HIGH
        self.epoch[cells] = epochs
        np.minimum.at(self.low, cells, threads)
        np.maximum.at(self.high, cells, threads)

    def strangers(self, cells: Ints, threads: Ints, epochs: Ints) -> Ints:
        """For each access a thread of another group that came before it, or -1."""
        own = threads // self.group
        low, high = self.low[cells], self.high[cells]
        known = (self.epoch[cells] == epochs) & (high >= 0)
        other = np.where(low // self.group != own, low, high)
        return np.where(known & (other // self.group != own), other, -1)


class Epochs:
    """The accesses to one memory of `cells` cells; threads come in blocks and warps of fixed size.

    Epochs are counted by the caller: `block_epochs` and `warp_epochs` give, for each access, how
    many barriers of that level its thread has passed (a block barrier counts for both).
    """

    def __init__(self, cells: int, block_threads: int, warp_size: int) -> None:
        groups = (block_threads, warp_size, 1)
        self._readers = [_Level(cells, group) for group in groups]
        self._writers = [_Level(cells, group) for group in groups]

    def read(
        self, cells: Ints, threads: Ints, block_epochs: Ints, warp_epochs: Ints
    ) -> Race | None:
        """Notes that each thread reads its cell; the first race this makes, if any."""
        stamps = (np.zeros_like(cells), block_epochs, warp_epochs)
        _add(self._readers, cells, threads, stamps)
        return _race(self._writers, cells, threads, stamps, "read and write")

    def write(
        self, cells: Ints, threads: Ints, block_epochs: Ints, warp_epochs: Ints
    ) -> Race | None:
        """Notes that each thread writes its cell; the first race this makes, if any."""
        stamps = (np.zeros_like(cells), block_epochs, warp_epochs)
        _add(self._writers, cells, threads, stamps)
        return _race(self._writers, cells, threads, stamps, "write and write") or _race(
            self._readers, cells, threads, stamps, "read and write"
        )


def _add(levels: list[_Level], cells: Ints, threads: Ints, stamps: tuple[Ints, ...]) -> None:
    for level, epochs in zip(levels, stamps, strict=True):
        level.add(cells, threads, epochs)


def _race(
    levels: list[_Level],
    cells: Ints,
    threads: Ints,
    stamps: tuple[Ints, ...],
    kind: Literal["write and write", "read and write"],
) -> Race | None:
    for level, epochs in zip(levels, stamps, strict=True):
        others = level.strangers(cells, threads, epochs)
        found = np.flatnonzero(others >= 0)
        if len(found):
            at = int(found[0])
            return Race(int(cells[at]), int(others[at]), int(threads[at]), kind)
    return None
