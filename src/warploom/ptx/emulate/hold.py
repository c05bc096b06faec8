"""Schedules in which warps are held back: the order in which events happen, chosen from outside.

A hold `3:2@17` keeps the threads of block 3, warp 2 from their event 17 until nobody else can go
on. Of several, the first that keeps somebody back ends first. Events are what other threads may
notice: steps on mbarriers, bulk copies, atomics, strong accesses, barriers. Without holds the
groups of threads take turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.ptx.emulate.code import Code, CodeBlock
from warploom.ptx.emulate.deadlock import is_quiet
from warploom.ptx.emulate.frame import WARP, Batch
from warploom.ptx.ir import Instruction
from warploom.ptx.known import STRONG, record_of, space_of
from warploom.ptx.opcode import MemoryEffect

Mask = npt.NDArray[np.bool_]
MOST_HOLDS = 16
_TEXT = re.compile(r"([0-9]{1,9}):([0-9]{1,4})@([0-9]{1,9})")
_MEET = (MemoryEffect.MEETS, MemoryEffect.UPDATES)
_OWN = frozenset({"local", "param", "const"})
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, order=True)
class Hold:
    """The threads of a warp wait before their event of this number, counted from 0."""

    block: int  # of the grid
    warp: int
    event: int

    def __str__(self) -> str:
        return f"{self.block}:{self.warp}@{self.event}"


Schedule = int | str | None  # a seed, holds, or the order of the code


def parse_holds(text: str) -> tuple[Hold, ...]:
    """`0:1@5,0:2@7`; an empty text is the schedule in which all take turns."""
    parts = text.split(",") if text else []
    found = [_TEXT.fullmatch(part.strip()) for part in parts]
    if len(parts) > MOST_HOLDS or not all(found):
        raise DeviceError(
            f"{text[:60]!r} is no schedule",
            advice=f"give a seed, or block:warp@event as in 0:1@5; {MOST_HOLDS} at most",
        )
    return tuple(Hold(*map(int, each.groups())) for each in found if each is not None)


def text_of(holds: Iterable[Hold]) -> str:
    return ",".join(map(str, holds))


def is_event(ins: Instruction) -> bool:
    """Whether other threads may notice that this is done, or it notices what they did."""
    words = set(ins.modifiers)
    record = record_of(ins)
    if record is not None and record.memory in _MEET:
        return True
    if ins.opcode == "mbarrier" or ins.opcode in ("setmaxnreg", "griddepcontrol"):
        return True
    if ins.opcode == "cp":  # a plain cp.async is awaited by its own thread alone
        return bool(words & {"bulk", "mbarrier"})
    if ins.opcode in ("ld", "st"):
        return "async" in words or (bool(STRONG & words) and space_of(ins) not in _OWN)
    return False


@dataclass(slots=True, eq=False)
class Holding:
    """The holds of one batch, and how far its threads are. `events` says where in the code each
    event of a warp was, by block of the grid, warp and number."""

    batch: Batch
    holds: tuple[Hold, ...]
    events: dict[Hold, int] = field(default_factory=dict)
    last: int = -1  # the place in the code of who ran last
    _quiet: dict[int, bool] = field(default_factory=dict)  # by place: nothing but asking
    _count: npt.NDArray[np.int64] = field(init=False)
    _at: npt.NDArray[np.int64] = field(init=False)  # the place of the last event of each thread
    _until: npt.NDArray[np.int64] = field(init=False)  # the event that a thread waits before

    def __post_init__(self) -> None:
        threads = self.batch.threads
        self._count = np.zeros(threads, np.int64)
        self._at = np.full(threads, -1, np.int64)
        self._until = np.full(threads, _NEVER, np.int64)
        for each in self.holds:
            own = self._threads(each)
            self._until[own] = np.minimum(self._until[own], each.event)

    def _threads(self, hold: Hold) -> npt.NDArray[np.intp]:
        size = self.batch.block_size
        numbers = [self.batch.number(block) for block in range(self.batch.blocks)]
        if hold.block not in numbers:
            return np.zeros(0, np.intp)
        start = numbers.index(hold.block) * size
        first = hold.warp * WARP
        return np.arange(start + min(first, size), start + min(first + WARP, size))

    def turn(self, pending: dict[int, Mask | None], code: Code) -> tuple[int, Mask] | None:
        """The next place, in a circle, with threads that are not held back; it is taken out."""
        for rank in sorted(pending, key=lambda each: (each <= self.last, each)):
            block, mask = code.blocks[rank], pending[rank]
            mask = np.ones(self.batch.threads, bool) if mask is None else mask
            kept = self.kept_back(rank, block, mask)
            going = mask & ~kept
            if going.any():
                del pending[rank]
                if kept.any():
                    pending[rank] = kept
                self.last = rank
                self.came(rank, block, going)
                return rank, going
        return None

    def kept_back(self, rank: int, block: CodeBlock, mask: Mask) -> Mask:
        """Those of a group that may not go on now."""
        if not block.event:
            return np.zeros_like(mask)
        return mask & (self._count >= self._until) & ~self._asks_again(rank, block)

    def came(self, rank: int, block: CodeBlock, mask: Mask) -> None:
        """A group comes to a place; one that only asks again has no new event."""
        if not block.event:
            return
        fresh = np.flatnonzero(mask & ~self._asks_again(rank, block))
        self._at[mask] = rank
        if fresh.size:
            warps = self.batch.warp_of[fresh] * (1 << 32) + self._count[fresh]
            for at in np.unique(warps, return_index=True)[1].tolist():
                thread = int(fresh[at])
                number, inside = divmod(thread, self.batch.block_size)
                block_number = self.batch.number(number)
                hold = Hold(block_number, inside // WARP, int(self._count[thread]))
                self.events.setdefault(hold, rank)
            self._count[fresh] += 1

    def _asks_again(self, rank: int, block: CodeBlock) -> Mask:
        """Threads that were here last, at a place that changes nothing: a wait is one event."""
        quiet = self._quiet.get(rank)
        if quiet is None:
            quiet = self._quiet[rank] = is_quiet(block)
        again: Mask = self._at == rank
        return again if quiet else np.zeros_like(again)

    def release(self) -> bool:
        """Nobody else can go on: the first hold that keeps somebody back ends. Whether one did."""
        for each in self.holds:
            own = self._threads(each)
            kept = own[(self._until[own] == each.event) & (self._count[own] >= each.event)]
            if kept.size:
                later = [h.event for h in self.holds if h > each and h.block == each.block
                         and h.warp == each.warp]  # fmt: skip
                self._until[kept] = min(later, default=_NEVER)
                return True
        return False

    @property
    def held(self) -> Mask:
        """Threads that have come as far as they may."""
        found: Mask = self._count >= self._until
        return found
