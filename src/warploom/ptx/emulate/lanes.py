"""Where lanes of a warp wait for each other: at bar.warp.sync, and at all that has member masks.

A lane must be named by its own mask, and waits until every lane that the mask names and that has
not left the kernel is there with the same mask: at a bar.warp.sync anywhere in the code, at
anything else at the same instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.ptx.emulate.barrier import Barrier, Fail, Going
from warploom.ptx.emulate.context import Fetch
from warploom.ptx.emulate.frame import NOTHING, Batch, Frame
from warploom.ptx.emulate.skeleton import RELAXED
from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


GONE = "by the manual all lanes that are named come to bar.warp.sync, and some have ended"
LEFT = "lanes that ended have come to every bar.warp.sync, as it is on GPUs"


@dataclass(frozen=True, slots=True)
class Members:
    """An instruction with a mask of members, and the predicate of the lanes that execute it."""

    instruction: Instruction
    named: Fetch
    guard: Fetch | None


@dataclass(frozen=True, slots=True)
class Held:
    """Threads that wait at an instruction, and the threads they wait for."""

    waits: Mask
    awaited: Mask


def per_warp(batch: Batch, ufunc: np.ufunc, value: Array) -> Array:
    """A value per thread reduced over its warp, given back to every thread of it."""
    reduced = ufunc.reduceat(value, batch.warp_starts)
    return reduced[batch.warp_of]


def lanes_where(batch: Batch, holds: Mask) -> Array:
    """Bit l of a warp's mask: the condition holds for lane l. Per thread."""
    return per_warp(batch, np.bitwise_or, holds.astype(np.uint32) << batch.lane.astype(np.uint32))


def names_lane(batch: Batch, named: Array) -> Mask:
    """Whether a mask of members, one for all or one per thread, names each thread's own lane."""
    own: Mask = (named.astype(np.int64) >> batch.lane) & 1 != 0
    return own


def equal_lanes(batch: Batch, threads: Array, value: Array) -> Array:
    """Per thread the mask of those of the given threads in its warp that hold the same value."""
    warp, mine = batch.warp_of[threads], value[threads]
    order = np.lexsort((mine, warp))
    w, v = warp[order], mine[order]
    fresh = np.concatenate(([True], (w[1:] != w[:-1]) | (v[1:] != v[:-1])))
    bits = np.uint32(1) << batch.lane[threads][order].astype(np.uint32)
    groups = np.bitwise_or.reduceat(bits, np.flatnonzero(fresh))
    out = np.zeros(batch.threads, np.uint32)
    out[threads[order]] = groups[np.cumsum(fresh) - 1]
    return out


def missing(f: Frame, members: Members, fail: Fail) -> Held | None:
    """Who of the running threads waits at an instruction, if anybody does."""
    batch, named = f.batch, members.named(f)
    here = f.full_mask()
    if members.guard is not None:
        here = here & f.widen(members.guard(f))
        if not here.any():
            return None
    if f.mask is None and members.guard is None and named.size == 1 and named[0] == 0xFFFFFFFF:
        return None
    stranger = here & ~names_lane(batch, f.widen(named))
    if stranger.any():
        message = "the mask of members does not name the lane that executes it"
        raise fail(members.instruction, message, int(stranger.argmax()))
    if named.size == 1:
        present = lanes_where(batch, here)
    else:
        present = equal_lanes(batch, np.flatnonzero(here), f.widen(named))
    absent = f.widen(named) & lanes_where(batch, batch.alive) & ~present
    waits = here & (absent != 0)
    if not waits.any():
        return None
    wanted = per_warp(batch, np.bitwise_or, np.where(waits, absent, np.uint32(0)))
    return Held(waits, names_lane(batch, wanted))


def note_meeting(f: Frame, members: Members, span: Span) -> None:
    """The lanes that an instruction names are there together, which orders no memory."""
    races, skeleton = f.batch.races, f.batch.skeleton
    if skeleton is None and (races is None or not races.judges.asks_who_met):
        return
    here = f.full_mask()
    if members.guard is not None:
        here = here & f.widen(members.guard(f))
    threads = np.flatnonzero(here)
    named = f.widen(members.named(f))[threads].astype(np.int64)
    if races is not None and races.judges.asks_who_met:
        races.lanes_meet(threads, f.batch.warp_of[threads] << 32 | named)
    if skeleton is not None:
        skeleton.meet(threads, f.batch.warp_of[threads], named, span, RELAXED)


class WarpBarriers:
    """bar.warp.sync: lanes wait until all that their mask names are at one with the same mask."""

    def __init__(self, batch: Batch, fail: Fail) -> None:
        self.batch = batch
        self.fail = fail
        self.masks: dict[int, Mask] = {}
        self.named = np.zeros(batch.threads, np.uint32)
        self.span: Span | None = None  # where lanes came last

    def arrive(self, f: Frame, rank: int, barrier: Barrier, mask: Mask | None) -> Going:
        f.activate(mask, NOTHING)
        assert barrier.members is not None
        self.span = barrier.span
        here = f.full_mask()
        named = f.widen(barrier.members(f))
        stranger = here & ~names_lane(self.batch, named)
        if stranger.any():
            message = "the mask of members does not name the lane that executes it"
            raise self.fail(barrier.instruction, message, int(stranger.argmax()))
        self.named[here] = named[here]
        self.masks[rank] = here | self.masks.get(rank, False)
        return self.settle()

    def settle(self) -> Going:
        """Those go on whose lanes are all there, or have left the kernel."""
        if not self.masks:
            return []
        batch = self.batch
        waiting = np.logical_or.reduce(list(self.masks.values()))
        open_ = np.zeros(batch.threads, bool)
        for named in np.unique(self.named[waiting]).tolist():
            here = waiting & (self.named == named)
            member = names_lane(batch, np.array([named]))
            lacking = per_warp(batch, np.logical_or, member & batch.alive & ~here)
            passing = here & ~lacking
            if passing.any():
                left = member & ~batch.alive & per_warp(batch, np.logical_or, passing)
                self._pass(passing | left)
                if left.any() and batch.skeleton is not None and self.span is not None:
                    batch.skeleton.by_practice("aligned", GONE, self.span, LEFT)
                self._note(passing, named)
                open_ |= passing
        going = [(rank, mask & open_) for rank, mask in self.masks.items()]
        rest = {rank: mask & ~open_ for rank, mask in self.masks.items()}
        self.masks = {rank: mask for rank, mask in rest.items() if mask.any()}
        return [(rank, mask) for rank, mask in going if mask.any()]

    def _note(self, passing: Mask, named: int) -> None:
        """For the skeleton of the run."""
        if self.batch.skeleton is not None and self.span is not None:
            threads = np.flatnonzero(passing)
            names = np.full(threads.size, named, np.int64)
            self.batch.skeleton.meet(threads, self.batch.warp_of[threads], names, self.span)

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

    def held(self, rank: int) -> Held:
        """Who waits at one place, and for whom."""
        batch, waits = self.batch, self.masks[rank]
        waiting = np.logical_or.reduce(list(self.masks.values()))
        awaited = np.zeros(batch.threads, bool)
        for named in np.unique(self.named[waits]).tolist():
            here = waiting & (self.named == named)
            member = names_lane(batch, np.array([named])) & per_warp(batch, np.logical_or, here)
            awaited |= member & batch.alive & ~here
        return Held(waits, awaited)
