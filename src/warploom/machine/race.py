"""Data races by barrier epochs: two threads of a block, one location, no barrier between, a write.

A barrier starts a new epoch of its block; a warp-level synchronisation starts a new epoch of its
warp, which orders the lanes of that warp only. Atomic accesses do not race with each other and are
not recorded. A location that several blocks touch is followed for the last of them: what is
reported is a race, but a race in such a place may be missed.

Each location remembers its last writer and up to two readers of the current epoch as stamps:

     63            32 31         10 9       0
    | epoch of a block | warp epoch | thread |     epochs are never used twice, by any block
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_EPOCH = 32
_WARP_EPOCH = 10
_THREAD = (1 << _WARP_EPOCH) - 1
_WARP_EPOCHS = 1 << (_EPOCH - _WARP_EPOCH)
WORD = 4


@dataclass(frozen=True, slots=True)
class Race:
    """`position` counts within the accesses given; `other` is the earlier thread of the block."""

    position: int
    other: int
    earlier: str  # read or write


class _Shadow:
    """Stamps of one region, per word; per byte from the first access that needs it."""

    def __init__(self, size: int) -> None:
        self.unit = WORD
        self.stamps = [np.zeros(-(-size // WORD), np.int64) for _ in range(3)]

    def refine(self) -> None:
        if self.unit > 1:
            self.stamps = [np.repeat(stamp, self.unit) for stamp in self.stamps]
            self.unit = 1


class RaceDetector:
    """Epochs and stamps of one launch; `start` is called for every batch of blocks."""

    def __init__(self) -> None:
        self._shadows: dict[int, _Shadow] = {}
        self._next_epoch = 1

    def start(self, blocks: int, block_size: int) -> None:
        index = np.arange(blocks * block_size, dtype=np.int64)
        self._inside = index % block_size
        self._block_of = index // block_size
        warps = -(-block_size // 32)
        self._warp_of = self._block_of * warps + self._inside // 32
        self._warp_epoch = np.zeros(blocks * warps, np.int64)
        self._epoch = np.zeros(blocks, np.int64)
        self.pass_barrier(np.arange(blocks))

    def pass_barrier(self, blocks: Array) -> None:
        self._epoch[blocks] = self._next_epoch + np.arange(blocks.size)
        self._next_epoch += int(blocks.size)
        self._restamp()

    def pass_warp_barrier(self, threads: Array) -> None:
        self._warp_epoch[np.unique(self._warp_of[threads])] += 1
        self._restamp()

    def _restamp(self) -> None:
        epoch = self._epoch[self._block_of] << _EPOCH
        warp = (self._warp_epoch[self._warp_of] % _WARP_EPOCHS) << _WARP_EPOCH
        self._stamp = epoch | warp | self._inside

    def record(
        self, region: int, size: int, threads: Array, start: Array, width: int, write: bool
    ) -> Race | None:
        """Notes an access of `width` bytes at byte `start` per thread; gives the race it makes."""
        shadow = self._shadows.get(region)
        if shadow is None:
            shadow = self._shadows[region] = _Shadow(size)
        if width < WORD:
            shadow.refine()
        mine = self._stamp[threads]
        first = start // shadow.unit
        for part in range(max(1, width // shadow.unit)):
            race = self._record_word(shadow, mine, first + part, write)
            if race is not None:
                return race
        return None

    def _record_word(self, shadow: _Shadow, mine: Array, at: Array, write: bool) -> Race | None:
        writer, reader, second = shadow.stamps
        race = _conflict(writer[at], mine, "write")
        if race is None and write:
            race = _conflict(reader[at], mine, "read") or _conflict(second[at], mine, "read")
        if race is not None:
            return race
        if write:
            writer[at] = mine
        else:
            _note_read(reader, second, mine, at)
        return None


def _note_read(reader: Array, second: Array, mine: Array, at: Array) -> None:
    """Keeps one reader of the epoch and, beside it, the last one that is another thread."""
    before = reader[at]
    stale = ((before ^ mine) >> _EPOCH) != 0
    if stale.any():
        fresh = at[stale]
        reader[fresh] = mine[stale]
        second[fresh] = 0
        before = reader[at]
    others = before != mine
    if others.any():
        second[at[others]] = mine[others]


def _conflict(earlier: Array, mine: Array, what: str) -> Race | None:
    """The first stamp of the same epoch by another thread that nothing orders before mine."""
    differ = earlier ^ mine
    bad = (differ >> _EPOCH == 0) & (differ & _THREAD != 0)
    if not bad.any():
        return None
    same_warp = (differ & _THREAD) < 32  # threads differ in their lowest five bits only
    ordered = same_warp & ((differ >> _WARP_EPOCH) & (_WARP_EPOCHS - 1) != 0)
    bad &= ~ordered
    if not bad.any():
        return None
    position = int(bad.argmax())
    return Race(position, int(earlier[position]) & _THREAD, what)
