"""Where threads wait for each other: barriers of a block, for all or some of it, and of warps.

`arrive` takes the threads that come to a barrier and gives those that may go on, wherever in the
code each of them waited; `settle` is for when nobody else can run. Races learn here what a barrier
orders: what a thread did before it arrived, before what those that waited do next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Fetch
from warploom.ptx.emulate.frame import NOTHING, WARP, Batch, Frame
from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Going = list[tuple[int, Mask]]  # places in the code, and the threads that go on from there


@dataclass(slots=True)
class Barrier:
    """bar.sync, bar.arrive, bar.red: its number and for how many threads; or bar.warp.sync.

    `guard` is the predicate of threads that come to it at all, `members` the lanes of a warp's.
    """

    instruction: Instruction
    waits: bool = True
    number: Fetch | None = None
    threads: Fetch | None = None
    members: Fetch | None = None
    guard: Fetch | None = None

    @property
    def partial(self) -> bool:
        """Whether it may be complete without all threads of the block."""
        return self.threads is not None or not self.waits


@dataclass(slots=True)
class _Waiting:
    """Threads at one barrier number: where they wait, and arrivals that do not wait, by block."""

    arrived: Array
    masks: dict[int, Mask] = field(default_factory=dict)
    partial: bool = False
    clock: Array | None = None  # what those that arrived had done and seen, for races


class BlockBarriers:
    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.waiting: dict[int, _Waiting] = {}

    def ranks(self) -> set[int]:
        return {rank for waiting in self.waiting.values() for rank in waiting.masks}

    def arrive(self, f: Frame, rank: int, barrier: Barrier, mask: Mask | None) -> Going:
        batch = self.batch
        f.activate(mask, NOTHING)
        numbers = barrier.number(f) if barrier.number else np.zeros(1, np.uint32)
        if mask is None and numbers.size == 1 and not barrier.partial and not self.waiting:
            self._pass(np.arange(batch.blocks))
            return [(rank, f.full_mask())]
        here = f.full_mask()
        wide = np.broadcast_to(f.widen(numbers), (f.n,))
        going: Going = []
        for number in np.unique(wide[here]).tolist():
            for chosen in self._arrivals(here & (wide == number), barrier):
                f.activate(chosen, NOTHING)
                needed = barrier.threads(f) if barrier.threads else None
                going += self._arrive(rank, barrier, number, chosen, f, needed)
        return going

    def _arrivals(self, mask: Mask, barrier: Barrier) -> list[Mask]:
        """One warp of a block after the other where it matters which of them make it complete."""
        if barrier.threads is None:
            return [mask]
        warp = np.arange(mask.size) % self.batch.block_size // WARP
        return [mask & (warp == one) for one in np.unique(warp[mask]).tolist()]

    def _arrive(
        self, rank: int, barrier: Barrier, number: int, mask: Mask, f: Frame, threads: Array | None
    ) -> Going:  # fmt: skip
        batch = self.batch
        waiting = self.waiting.get(number)
        if waiting is None:
            waiting = self.waiting[number] = _Waiting(np.zeros(batch.blocks, np.int64))
        waiting.partial |= barrier.partial
        if barrier.waits:
            waiting.masks[rank] = mask | waiting.masks.get(rank, False)
        else:
            waiting.arrived += np.bincount(batch.block_of[mask], minlength=batch.blocks)
            self._announce(waiting, mask)
        needed: Array | None = None
        if threads is not None:
            needed = np.zeros(batch.blocks, np.int64)
            wide = np.broadcast_to(f.widen(threads), (f.n,))[mask].astype(np.int64)
            np.maximum.at(needed, batch.block_of[mask], wide)
        going = self._release(number, needed)
        return going if barrier.waits else [*going, (rank, mask)]

    def _release(self, number: int, needed: Array | None) -> Going:
        """Lets the blocks go that are complete at a barrier."""
        batch = self.batch
        waiting = self.waiting[number]
        arrived = waiting.arrived.copy()
        for mask in waiting.masks.values():
            arrived += np.bincount(batch.block_of[mask], minlength=batch.blocks)
        alive = np.bincount(batch.block_of[batch.alive], minlength=batch.blocks)
        done = (arrived > 0) & (arrived >= (alive if needed is None else needed))
        if needed is not None:
            done &= needed > 0
        if not done.any():
            return []
        waiting.arrived[done] = 0
        open_ = done[batch.block_of]
        going = [(rank, mask & open_) for rank, mask in waiting.masks.items()]
        going = [(rank, mask) for rank, mask in going if mask.any()]
        if waiting.partial and batch.races is not None:
            self._meet(waiting, done, going)
            self._count(np.flatnonzero(done))
        else:
            self._pass(np.flatnonzero(done))
        left = {rank: mask & ~open_ for rank, mask in waiting.masks.items()}
        waiting.masks = {rank: mask for rank, mask in left.items() if mask.any()}
        if not waiting.masks and not waiting.arrived.any():
            del self.waiting[number]
        return going

    def _pass(self, blocks: Array) -> None:
        """All threads of these blocks go on."""
        if self.batch.races is not None:
            self.batch.races.block_barrier(blocks)
        self._count(blocks)

    def _count(self, blocks: Array) -> None:
        batch = self.batch
        if batch.counters is not None:
            batch.counters.barriers += int(blocks.size)
        shared = batch.shared
        if shared.written is not None and bool(shared.written.all()):
            shared.written = None  # nothing is left to be reported

    def _announce(self, waiting: _Waiting, mask: Mask) -> None:
        """Threads that arrive and go on: only what they did until now is ordered."""
        if self.batch.races is not None:
            clocks, threads = self.batch.races.vector, np.flatnonzero(mask)
            if waiting.clock is None:
                waiting.clock = clocks.new_clock(self.batch.blocks)
            clocks.release(threads, waiting.clock, self.batch.block_of[threads])

    def _meet(self, waiting: _Waiting, done: Mask, going: Going) -> None:
        """Those that waited see what all that arrived had done and seen."""
        batch = self.batch
        assert batch.races is not None
        clocks = batch.races.vector
        threads = np.flatnonzero(np.logical_or.reduce([mask for _, mask in going] or [done[:0]]))
        block = batch.block_of[threads]
        whole = np.bincount(block, minlength=batch.blocks) == batch.block_size
        if whole.any():
            batch.races.block_barrier(np.flatnonzero(whole))
        rest = ~whole[block]
        if waiting.clock is None:
            waiting.clock = clocks.new_clock(batch.blocks)
        clocks.release(threads[rest], waiting.clock, block[rest])
        clocks.acquire(threads[rest], waiting.clock, block[rest])
        waiting.clock[done] = 0

    def settle(self) -> Going:
        """Threads that left count as arrived; arrivals that nobody waits for are forgotten."""
        for number in list(self.waiting):
            going = self._release(number, None)
            if going:
                return going
        for number, waiting in list(self.waiting.items()):
            if not waiting.masks:
                del self.waiting[number]
        return []


class WarpBarriers:
    """bar.warp.sync: lanes wait until all that their mask names are at one with the same mask."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.masks: dict[int, Mask] = {}
        self.named = np.zeros(batch.threads, np.uint32)

    def arrive(self, f: Frame, rank: int, barrier: Barrier, mask: Mask | None) -> Going:
        f.activate(mask, NOTHING)
        assert barrier.members is not None
        here = f.full_mask()
        self.named[here] = np.broadcast_to(f.widen(barrier.members(f)), (f.n,))[here]
        self.masks[rank] = here | self.masks.get(rank, False)
        return self._release(complete_only=True)

    def _release(self, complete_only: bool) -> Going:
        batch = self.batch
        waiting = np.logical_or.reduce(list(self.masks.values()))
        open_ = np.zeros(batch.threads, bool)
        for named in np.unique(self.named[waiting]).tolist():
            here = waiting & (self.named == named)
            member = (np.int64(named) >> batch.lane) & 1 != 0
            missing = self._in_warp(member & batch.alive & ~here)
            passing = here & ~missing if complete_only else here
            if passing.any():
                left = member & ~batch.alive & self._in_warp(passing)
                self._pass(passing | left)
                open_ |= passing
        going = [(rank, mask & open_) for rank, mask in self.masks.items()]
        left = {rank: mask & ~open_ for rank, mask in self.masks.items()}
        self.masks = {rank: mask for rank, mask in left.items() if mask.any()}
        return [(rank, mask) for rank, mask in going if mask.any()]

    def _in_warp(self, mask: Mask) -> Mask:
        """Whether the mask holds for some lane of each thread's warp."""
        any_: Mask = np.logical_or.reduceat(mask, self.batch.warp_starts)[self.batch.warp_of]
        return any_

    def _pass(self, passing: Mask) -> None:
        """Lanes of one mask, those that left too, are ordered, each warp for itself."""
        races = self.batch.races
        if races is None:
            return
        threads = np.flatnonzero(passing)
        if races.partial:
            races.vector.meet(threads, self.batch.warp_of[threads])
        else:
            races.warp_barrier(threads)

    def settle(self) -> Going:
        """First who is complete since other lanes left; else all, though lanes are missing."""
        if not self.masks:
            return []
        return self._release(complete_only=True) or self._release(complete_only=False)
