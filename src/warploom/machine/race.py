"""Data races by barrier epochs: two threads of a block, one location, no barrier between, a write.

A barrier starts a new epoch of its block; a warp-level synchronisation starts a new epoch of its
warp, which orders the lanes of that warp only. Atomic accesses do not race with each other and are
not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Race:
    """`position` counts within the accesses given; `other` is the earlier thread."""

    position: int
    other: int
    earlier: str  # read or write


class _Shadow:
    """Per byte of a region: the last writer, and one reader of the epoch (or several)."""

    def __init__(self, size: int) -> None:
        self.writer = np.full(size, -1, np.int32)
        self.write_epoch = np.full(size, -1, np.int32)
        self.write_warp_epoch = np.full(size, -1, np.int32)
        self.reader = np.full(size, -1, np.int32)
        self.read_epoch = np.full(size, -1, np.int32)
        self.read_warp_epoch = np.full(size, -1, np.int32)
        self.second_reader = np.full(size, -1, np.int32)


class RaceDetector:
    """Epochs and shadows for the blocks that run at the same time."""

    def __init__(self, threads: int, block_size: int) -> None:
        index = np.arange(threads, dtype=np.int32)
        inside = index % block_size
        warps = -(-block_size // 32)
        self.block_of = index // block_size
        self.warp_of = self.block_of * warps + inside // 32
        self.epoch = np.zeros(int(self.block_of[-1]) + 1, np.int32)
        self.warp_epoch = np.zeros(int(self.warp_of[-1]) + 1, np.int32)
        self._shadows: dict[int, _Shadow] = {}

    def pass_barrier(self, blocks: Array) -> None:
        self.epoch[blocks] += 1

    def pass_warp_barrier(self, threads: Array) -> None:
        self.warp_epoch[np.unique(self.warp_of[threads])] += 1

    def record(
        self, region: int, size: int, threads: Array, start: Array, width: int, write: bool
    ) -> Race | None:
        """Notes an access of `width` bytes at byte `start` per thread; returns a race if it is one."""
        shadow = self._shadows.get(region)
        if shadow is None:
            shadow = self._shadows[region] = _Shadow(size)
        thread = np.repeat(threads.astype(np.int32), width)
        byte = (start.astype(np.int64)[:, None] + np.arange(width)).reshape(-1)
        race = self._against_writes(shadow, thread, byte, width)
        if write and race is None:
            race = self._against_reads(shadow, thread, byte, width)
        self._note(shadow, thread, byte, write)
        return race

    def _unordered(self, thread: Array, other: Array, epoch: Array, warp_epoch: Array) -> Array:
        """Where `other` accessed in the same block and epoch without an order to `thread`."""
        block = self.block_of[thread]
        warp = self.warp_of[thread]
        known = (other >= 0) & (other != thread)
        past = np.where(known, other, 0)
        same_block = self.block_of[past] == block
        same_warp = self.warp_of[past] == warp
        ordered = same_warp & (warp_epoch != self.warp_epoch[warp])
        result: Array = known & same_block & (epoch == self.epoch[block]) & ~ordered
        return result

    def _against_writes(
        self, shadow: _Shadow, thread: Array, byte: Array, width: int
    ) -> Race | None:
        other = shadow.writer[byte]
        bad = self._unordered(
            thread, other, shadow.write_epoch[byte], shadow.write_warp_epoch[byte]
        )
        if not bad.any():
            return None
        at = int(bad.argmax())
        return Race(at // width, int(other[at]), "write")

    def _against_reads(self, shadow: _Shadow, thread: Array, byte: Array, width: int) -> Race | None:
        for readers in (shadow.reader, shadow.second_reader):
            other = readers[byte]
            bad = self._unordered(
                thread, other, shadow.read_epoch[byte], shadow.read_warp_epoch[byte]
            )
            if bad.any():
                at = int(bad.argmax())
                return Race(at // width, int(other[at]), "read")
        return None

    def _note(self, shadow: _Shadow, thread: Array, byte: Array, write: bool) -> None:
        epoch = self.epoch[self.block_of[thread]]
        warp_epoch = self.warp_epoch[self.warp_of[thread]]
        if write:
            shadow.writer[byte] = thread
            shadow.write_epoch[byte] = epoch
            shadow.write_warp_epoch[byte] = warp_epoch
            return
        # Keep one reader of the epoch and, beside it, the last one that is another thread.
        current = (shadow.read_epoch[byte] == epoch) & (shadow.reader[byte] >= 0)
        current &= self.block_of[np.maximum(shadow.reader[byte], 0)] == self.block_of[thread]
        shadow.second_reader[byte[~current]] = -1
        shadow.reader[byte] = np.where(current, shadow.reader[byte], thread)
        others = shadow.reader[byte] != thread
        shadow.second_reader[byte[others]] = thread[others]
        shadow.read_epoch[byte] = epoch
        shadow.read_warp_epoch[byte] = warp_epoch
