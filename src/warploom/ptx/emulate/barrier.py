"""Barriers of a block: who has come, who waits, and when those that wait go on.

`arrive` takes the threads that come to a barrier and gives those that may go on, wherever in the
code each of them waited; `settle` is for when nobody else can run. A warp has come when all its
threads that are still there have; a barrier for so many threads counts warps, each as 32, and is
complete when enough of them came; one for the whole block when all that are still there did. Races
learn here what a barrier orders: what a thread did before it arrived, before what those that waited
do next. What can only be a mistake is a located error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError, Span
from warploom.machine.clock import Board
from warploom.machine.judges import Practice
from warploom.machine.record import CUDA
from warploom.ptx.emulate.context import Fetch
from warploom.ptx.emulate.frame import NOTHING, WARP, Batch, Frame
from warploom.ptx.emulate.skeleton import Skeleton
from warploom.ptx.ir import Instruction

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Going = list[tuple[int, Mask]]  # places in the code, and the threads that go on from there
Fail = Callable[[Instruction, str, int], DeviceError]  # an instruction, what is wrong, a thread


@dataclass(slots=True)
class Barrier:
    """bar.sync, bar.arrive, bar.red: its number and for how many threads; or bar.warp.sync.

    `guard` is the predicate of threads that come to it at all, `members` the lanes of a warp's,
    `joined` the predicate that bar.red puts together. `aligned`: a warp comes as a whole.
    """

    instruction: Instruction
    waits: bool = True
    number: Fetch | None = None
    threads: Fetch | None = None
    members: Fetch | None = None
    guard: Fetch | None = None
    joined: Fetch | None = None
    aligned: bool = True
    cluster: bool = False  # barrier.cluster.wait
    registers: bool = False  # setmaxnreg
    span: Span | None = None

    @property
    def partial(self) -> bool:
        """Whether it may be complete without all threads of the block."""
        return self.threads is not None or not self.waits


@dataclass(slots=True)
class _Waiting:
    """What is known at one barrier number; arrays go over threads or over blocks of the batch."""

    arrived: Array  # how often each thread came since the barrier was last complete
    needed: Array  # by block: for how many threads it is; 0 for all
    place: Array  # where in the code each thread came to it
    holds: Mask  # the predicate of each thread that came to a bar.red
    users: dict[int, Instruction] = field(default_factory=dict)  # by place in the code
    masks: dict[int, Mask] = field(default_factory=dict)  # who waits
    partial: bool = False
    aligned: bool = False
    board: Board | None = None  # what those that arrived had done and seen, for races

    @staticmethod
    def nobody(batch: Batch) -> _Waiting:
        count = np.zeros(batch.threads, np.int64)
        needed = np.zeros(batch.blocks, np.int64)
        return _Waiting(count, needed, count.copy(), np.zeros(batch.threads, bool))


class BlockBarriers:
    def __init__(self, batch: Batch, fail: Fail) -> None:
        self.batch = batch
        self.fail = fail
        self.waiting: dict[int, _Waiting] = {}
        self.span: Span | None = None  # where threads came last

    @property
    def _all(self) -> int:
        """The threads of a block, as barriers count them."""
        return -(-self.batch.block_size // WARP) * WARP

    def ranks(self) -> set[int]:
        return {rank for waiting in self.waiting.values() for rank in waiting.masks}

    # -- arriving -----------------------------------------------------------------------------

    def arrive(self, f: Frame, rank: int, barrier: Barrier, mask: Mask | None) -> Going:
        batch = self.batch
        f.activate(mask, NOTHING)
        numbers = barrier.number(f) if barrier.number else np.zeros(1, np.uint32)
        here = f.full_mask()
        wide = f.widen(numbers)
        self._require(barrier, here & (wide >= CUDA.block_barriers), wide, "there is no barrier {}")
        if mask is None and numbers.size == 1 and not barrier.partial and not self.waiting:
            if barrier.joined is not None:
                self._reduce(np.ones(batch.blocks, bool), f.widen(barrier.joined(f)), here)
            self._pass(np.arange(batch.blocks))
            if batch.skeleton is not None:
                self._note_all(batch.skeleton, f, int(numbers[0]), barrier)
            return [(rank, here)]
        going: Going = []
        for number in np.unique(wide[here]).tolist():
            for chosen in self._arrivals(here & (wide == number), barrier):
                f.activate(chosen, NOTHING)
                going += self._arrive(f, rank, barrier, number, chosen)
        return going

    def _require(self, barrier: Barrier, bad: Mask, value: Array, message: str) -> None:
        if bad.any():
            thread = int(bad.argmax())
            raise self.fail(barrier.instruction, message.format(int(value[thread])), thread)

    def _arrivals(self, mask: Mask, barrier: Barrier) -> list[Mask]:
        """One warp of a block after the other where it matters which of them make it complete."""
        if barrier.threads is None:
            return [mask]
        warp = np.arange(mask.size) % self.batch.block_size // WARP
        return [mask & (warp == one) for one in np.unique(warp[mask]).tolist()]

    def _arrive(self, f: Frame, rank: int, barrier: Barrier, number: int, mask: Mask) -> Going:
        waiting = self.waiting.get(number)
        if waiting is None:
            waiting = self.waiting[number] = _Waiting.nobody(self.batch)
        self._agree(f, barrier, waiting, mask)
        waiting.partial |= barrier.partial
        waiting.aligned |= barrier.aligned
        waiting.arrived += mask
        waiting.place[mask] = rank
        waiting.users[rank] = barrier.instruction
        if self.batch.skeleton is not None:
            self._note_come(self.batch.skeleton, number, mask, barrier, waiting.needed)
        if barrier.joined is not None:
            waiting.holds[mask] = f.widen(barrier.joined(f))[mask]
        if barrier.aligned:
            self._refuse_divided(waiting, barrier, mask)
        if barrier.waits:
            waiting.masks[rank] = mask | waiting.masks.get(rank, False)
        else:
            self._announce(waiting, mask)
        going = self._release(number)
        return going if barrier.waits else [*going, (rank, mask)]

    def _agree(self, f: Frame, barrier: Barrier, waiting: _Waiting, mask: Mask) -> None:
        """All that come to a barrier mean the same number of threads, and the same operation."""
        needed = np.zeros(1, np.int64)
        if barrier.threads is not None:
            needed = barrier.threads(f).astype(np.int64)
        needed = f.widen(needed)
        self._require(
            barrier, mask & (needed % WARP != 0), needed,
            f"a barrier for {{}} threads, which is no multiple of {WARP}",
        )  # fmt: skip
        if not barrier.waits:
            self._require(barrier, mask & (needed == 0), needed, "an arrival for {} threads")
        block_of = self.batch.block_of
        came = np.zeros(self.batch.blocks, bool)
        came[block_of[waiting.arrived > 0]] = True
        fresh = mask & ~came[block_of]
        waiting.needed[block_of[fresh]] = needed[fresh]
        before = waiting.needed[block_of]
        # A number that is that of all threads says what no number says, where all are there.
        alike = (np.minimum(before, needed) == 0) & (np.maximum(before, needed) == self._all)
        gone = np.bincount(block_of, weights=~self.batch.alive, minlength=self.batch.blocks)
        other = mask & (before != needed) & ~(alike & (gone == 0)[block_of])
        if other.any():
            thread = int(other.argmax())
            raise self.fail(
                barrier.instruction,
                f"a barrier for {_spoken(needed[thread])}, at which other threads wait for "
                f"{_spoken(before[thread])}", thread,
            )  # fmt: skip
        self._refuse_mixed(barrier, waiting, mask & came[block_of])

    def _refuse_mixed(self, barrier: Barrier, waiting: _Waiting, mask: Mask) -> None:
        reduces = barrier.joined is not None
        if not mask.any():
            return
        there = {r for r, user in waiting.users.items() if ("red" in user.modifiers) != reduces}
        busy = np.isin(waiting.place, list(there)) & (waiting.arrived > 0)
        block_of = self.batch.block_of
        if there and np.isin(block_of[mask], block_of[busy]).any():
            message = "a reduction at a barrier at which others wait without one, or the reverse"
            raise self.fail(barrier.instruction, message, int(mask.argmax()))

    def _refuse_divided(self, waiting: _Waiting, barrier: Barrier, mask: Mask) -> None:
        """Lanes of one warp that came to an aligned barrier by different instructions."""
        batch = self.batch
        came = waiting.arrived > 0
        low = np.minimum.reduceat(np.where(came, waiting.place, 1 << 62), batch.warp_starts)
        high = np.maximum.reduceat(np.where(came, waiting.place, -1), batch.warp_starts)
        divided = (low != high)[batch.warp_of] & mask
        if divided.any():
            raise self.fail(
                barrier.instruction,
                "lanes of one warp come to a barrier by different instructions, which only "
                "barrier without .aligned allows", int(divided.argmax()),
            )  # fmt: skip

    # -- going on -----------------------------------------------------------------------------

    def _warps(self, waiting: _Waiting) -> Array:
        """How often each warp of the batch has come: as often as the last of its threads."""
        batch = self.batch
        far = np.int64(1 << 62)
        living = np.minimum.reduceat(np.where(batch.alive, waiting.arrived, far), batch.warp_starts)
        gone = np.maximum.reduceat(waiting.arrived, batch.warp_starts)
        return np.where(living < far, living, gone)

    def _complete(self, waiting: _Waiting, warps: Array) -> Mask:
        """The blocks at which a barrier is complete."""
        batch = self.batch
        block_of_warp = batch.block_of[batch.warp_starts]
        count = np.bincount(block_of_warp, weights=warps, minlength=batch.blocks) * WARP
        absent = np.bincount(
            batch.block_of, weights=batch.alive & (waiting.arrived == 0), minlength=batch.blocks
        )
        whole = (absent == 0) & (count > 0)
        return np.where(waiting.needed > 0, count >= np.maximum(waiting.needed, 1), whole)

    def _release(self, number: int) -> Going:
        """Lets the blocks go that are complete at a barrier."""
        batch = self.batch
        waiting = self.waiting[number]
        warps = self._warps(waiting)
        done = self._complete(waiting, warps)
        if not done.any():
            return []
        open_ = done[batch.block_of] & (warps > 0)[batch.warp_of]
        self._reduce(done, waiting.holds, open_ & (waiting.arrived > 0))
        waiting.arrived[open_] = 0
        if batch.skeleton is not None:
            self._note_go(batch.skeleton, number, waiting, done, open_)
        going = [(rank, mask & open_) for rank, mask in waiting.masks.items()]
        going = [(rank, mask) for rank, mask in going if mask.any()]
        gone = self._gone(done)
        if (waiting.partial or gone.any()) and batch.races is not None:
            self._meet(waiting, done, going, gone)
            self._count(np.flatnonzero(done))
        else:
            self._pass(np.flatnonzero(done))
        left = {rank: mask & ~open_ for rank, mask in waiting.masks.items()}
        waiting.masks = {rank: mask for rank, mask in left.items() if mask.any()}
        if not waiting.arrived.any():
            del self.waiting[number]
        return going

    def _gone(self, done: Mask) -> Mask:
        """Threads that ended, where that does not count as coming to a barrier of these blocks: it
        does by practice. By the manual it lets others go, and orders nothing."""
        races = self.batch.races
        if races is None or not races.strict:
            return done[:0]
        found: Mask = done[self.batch.block_of] & ~self.batch.alive
        return found

    def _reduce(self, done: Mask, holds: Mask, came: Mask) -> None:
        """Keeps, for each block that is complete, how many threads' predicates hold and how many
        threads came, for the instructions that wait for it."""
        batch = self.batch
        yes = np.bincount(batch.block_of, weights=holds & came, minlength=batch.blocks)
        all_ = np.bincount(batch.block_of, weights=came, minlength=batch.blocks)
        batch.joined[:, done] = np.stack((yes, all_))[:, done]

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
        if shared.written is not None and bool(shared.written.view(bool).all()):
            shared.written = None  # nothing is left to be reported

    def _announce(self, waiting: _Waiting, mask: Mask) -> None:
        """Threads that arrive and go on: only what they did until now is ordered."""
        if self.batch.races is not None:
            clocks, threads = self.batch.races.vector, np.flatnonzero(mask)
            if waiting.board is None:
                waiting.board = clocks.new_clock(self.batch.blocks)
            clocks.release(threads, waiting.board, self.batch.block_of[threads])

    def _meet(self, waiting: _Waiting, done: Mask, going: Going, gone: Mask) -> None:
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
        if waiting.board is None:
            waiting.board = clocks.new_clock(batch.blocks)
        clocks.release(threads[rest], waiting.board, block[rest])
        clocks.acquire(threads[rest], waiting.board, block[rest])
        waiting.board.wipe(np.flatnonzero(done))
        if not waiting.partial:
            for one in np.unique(batch.block_of[gone]).tolist():
                ended = np.flatnonzero(gone & (batch.block_of == one))
                batch.races.judges.ended(ended, threads[block == one])

    # -- for proofs -----------------------------------------------------------------------------

    def _note_come(
        self, skeleton: Skeleton, number: int, mask: Mask, barrier: Barrier, needed: Array
    ) -> None:  # fmt: skip
        assert barrier.span is not None
        threads = np.flatnonzero(mask)
        block = self.batch.block_of[threads]
        for each in np.unique(block).tolist():
            mine, group = threads[block == each], ("barrier", each, number)
            whole = barrier.waits and int(needed[each]) == self._all
            skeleton.come(mine, group, barrier.span, 0 if whole else int(needed[each]))
        self.span = barrier.span

    def _note_go(
        self, skeleton: Skeleton, number: int, waiting: _Waiting, done: Mask, open_: Mask
    ) -> None:
        assert self.span is not None
        there = np.logical_or.reduce([open_ & False, *waiting.masks.values()])
        left = (waiting.arrived > 0) & done[self.batch.block_of]
        if left.any():
            message = "some lanes of a warp come to a barrier, which is complete without them"
            skeleton.fail("barrier", message, self.span)
        if waiting.aligned:
            self._note_ended(skeleton, waiting, done, open_)
        for block in np.flatnonzero(done).tolist():
            group = ("barrier", block, number)
            going = np.flatnonzero(there & open_ & (self.batch.block_of == block))
            if going.size:
                skeleton.go(going, group, self.span)
            skeleton.generations[group] = skeleton.generations.get(group, 0) + 1

    def _note_ended(self, skeleton: Skeleton, waiting: _Waiting, done: Mask, open_: Mask) -> None:
        """aligned: by the manual all threads of the block, or of the warps, come to the barrier."""
        assert self.span is not None
        batch = self.batch
        whole = (waiting.needed == 0)[batch.block_of] & done[batch.block_of]
        if ((whole | open_) & ~batch.alive).any():
            message = "by the manual all threads come to what is .aligned, and some have ended"
            skeleton.by_practice("aligned", message, self.span, Practice.ENDED.value)

    def _note_all(self, skeleton: Skeleton, f: Frame, number: int, barrier: Barrier) -> None:
        """All threads came at once, and go on."""
        whole = np.zeros(self.batch.blocks, np.int64)
        self._note_come(skeleton, number, f.full_mask(), barrier, whole)
        for block in range(self.batch.blocks):
            group = ("barrier", block, number)
            going = np.flatnonzero(self.batch.block_of == block)
            assert barrier.span is not None
            skeleton.go(going, group, barrier.span)
            skeleton.generations[group] += 1

    # -- when nobody can run --------------------------------------------------------------------

    def settle(self) -> Going:
        """Who may go on since others left the kernel."""
        for number in list(self.waiting):
            going = self._release(number)
            if going:
                return going
        return []

    def stuck(self) -> tuple[int, Mask, str] | None:
        """Who waits at a barrier that will never be complete: where, and what for."""
        for number, waiting in self.waiting.items():
            for rank, mask in waiting.masks.items():
                block = self.batch.block_of[int(mask.argmax())]
                needed = int(waiting.needed[block])
                if not needed:
                    return rank, mask, "not all threads of the block come to this barrier"
                mine = self.batch.block_of[self.batch.warp_starts] == block
                came = int(self._warps(waiting)[mine].sum()) * WARP
                return rank, mask, (
                    f"barrier {number} is never complete: it is for {needed} threads, and only "
                    f"{came} come (each warp counts as {WARP})"
                )  # fmt: skip
        return None


def _spoken(needed: int) -> str:
    return f"{needed} threads" if needed else "all threads of the block"
