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
        self.epoch = np.zeros(cells, dtype=np.int32)

    def add(self, cells: Ints, threads: Ints, epochs: Ints) -> None:
        stale = cells[self.epoch[cells] != epochs]
        self.low[stale] = _NOBODY_LOW
        self.high[stale] = _NOBODY_HIGH
        self.epoch[cells] = epochs
        np.minimum.at(self.low, cells, threads)
        np.maximum.at(self.high, cells, threads)

    def stranger(self, cells: Ints, threads: Ints, epochs: Ints) -> tuple[int, int] | None:
        """The first access (by position) that a thread of another group came before, and it."""
        low, high = self.low[cells], self.high[cells]
        at = np.flatnonzero((low != threads) | (high != threads))
        if not len(at):  # the common case: nobody else was there
            return None
        low, high, own = low[at], high[at], threads[at] // self.group
        known = (self.epoch[cells[at]] == epochs[at]) & (high >= 0)
        other = np.where(low // self.group != own, low, high)
        found = np.flatnonzero(known & (other // self.group != own))
        return (int(at[found[0]]), int(other[found[0]])) if len(found) else None


class Epochs:
    """The accesses to one memory of `cells` cells; threads come in blocks and warps of fixed size.

    Epochs are counted by the caller: `block_epochs` and `warp_epochs` give, for each access, how
    many barriers of that level its thread has passed (a block barrier counts for both).
    """

    def __init__(self, cells: int, block_threads: int, warp_size: int) -> None:
        self._cells = cells
        self._groups = (block_threads, warp_size, 1)
        # Made at the first read or write: many arrays see only one of the two.
        self._readers: list[_Level] = []
        self._writers: list[_Level] = []

    def read(
        self, cells: Ints, threads: Ints, block_epochs: Ints, warp_epochs: Ints
    ) -> Race | None:
        """Notes that each thread reads its cell; the first race this makes, if any."""
        self._readers = self._readers or self._levels()
        stamps = (np.zeros_like(cells), block_epochs, warp_epochs)
        _add(self._readers, cells, threads, stamps)
        return _race(self._writers, cells, threads, stamps, "read and write")

    def write(
        self, cells: Ints, threads: Ints, block_epochs: Ints, warp_epochs: Ints
    ) -> Race | None:
        """Notes that each thread writes its cell; the first race this makes, if any."""
        self._writers = self._writers or self._levels()
        stamps = (np.zeros_like(cells), block_epochs, warp_epochs)
        _add(self._writers, cells, threads, stamps)
        return _race(self._writers, cells, threads, stamps, "write and write") or _race(
            self._readers, cells, threads, stamps, "read and write"
        )

    def _levels(self) -> list[_Level]:
        return [_Level(self._cells, group) for group in self._groups]


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
    for level, epochs in zip(levels, stamps, strict=False):  # no levels: nothing happened yet
        found = level.stranger(cells, threads, epochs)
        if found is not None:
            at, other = found
            return Race(int(cells[at]), other, int(threads[at]), kind)
    return None
