"""setmaxnreg: registers that the warps of a block give back to a pool, and take from it.

A block begins with what its kernel is compiled for, and its pool is empty. `.dec` gives a warp's
surplus back; `.inc` waits until the pool has what the warp lacks. Where the registers of a thread
are not known (no bound in the kernel, so that an assembler chooses), nothing is rationed. All four
warps of a warpgroup set the same numbers in the same order, which is looked at in the end. By the
manual they do so by one instruction, and meet before the next: that is asked of proofs alone, as
Triton's kernels do not meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeadlockError, DeviceError, Span
from warploom.machine.record import CUDA
from warploom.ptx.emulate.barrier import Barrier, Going
from warploom.ptx.emulate.context import Context
from warploom.ptx.emulate.frame import NOTHING, WARP, Batch, Frame
from warploom.ptx.emulate.skeleton import Act, Event
from warploom.ptx.ir import Function, Immediate, Instruction

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
LEAST, MOST, STEP = 24, 256, 8
GROUP = 4  # warps of a warpgroup
APART = "warps of a warpgroup may set their registers by several setmaxnreg, as they do on GPUs"
Fail = Callable[..., DeviceError]  # an instruction, what is wrong, a thread, the kind of error


def check_count(ctx: Context, ins: Instruction) -> None:
    """As an assembler refuses other numbers."""
    count = ins.operands[0]
    good = isinstance(count, Immediate) and LEAST <= count.value <= MOST
    if not good or int(count.value) % STEP:  # type: ignore[union-attr]
        message = f"{ins.name}: a number of registers is {LEAST} to {MOST}, in steps of {STEP}"
        raise ctx.fail(message, ins)


def registers_of(function: Function, threads: int) -> int | None:
    """What a thread of a kernel starts with, as an assembler gives it where threads are bound."""
    numbers = {
        each.name: prod(int(word) for word in each.words if word.isdigit())
        for each in function.directives
    }
    if "maxnreg" in numbers:
        return numbers["maxnreg"] // STEP * STEP  # as a warp is given them
    if not numbers.keys() & {"maxntid", "reqntid"}:
        return None
    most = numbers.get("maxntid", numbers.get("reqntid", threads))
    share = CUDA.block_registers // (most * numbers.get("minnctapersm", 1))
    return min(share, CUDA.thread_registers) // STEP * STEP


@dataclass(slots=True)
class Pools:
    """The registers of one batch: of a thread of each warp, and in each block's pool."""

    held: Array
    free: Array
    told: dict[int, list[tuple[str, int]]] = field(default_factory=dict)  # by warp, in order
    last: dict[int, Instruction] = field(default_factory=dict)  # of each warp
    places: dict[int, list[Span]] = field(default_factory=dict)  # … where they stand, in order

    @staticmethod
    def of(batch: Batch) -> Pools:
        found = batch.special_state.get("registers")
        if found is None:
            each = batch.registers or 0
            found = Pools(np.full(batch.warp_starts.size, each), np.zeros(batch.blocks, np.int64))
            batch.special_state["registers"] = found
        assert isinstance(found, Pools)
        return found


class RegisterWaits:
    """Warps at a setmaxnreg, by place in the code."""

    def __init__(self, batch: Batch, fail: Fail) -> None:
        self.batch = batch
        self.fail = fail
        self.masks: dict[int, Mask] = {}
        self._barriers: dict[int, Barrier] = {}

    def arrive(self, f: Frame, rank: int, barrier: Barrier, mask: Mask | None) -> Going:
        f.activate(mask, NOTHING)
        self.masks[rank] = f.full_mask() | self.masks.get(rank, False)
        self._barriers[rank] = barrier
        return self.settle()

    def settle(self) -> Going:
        """Warps that have come whole and get what they ask for; who gives back lets others go."""
        going: Going = []
        found = True
        while found:
            found = False
            for rank, mask in list(self.masks.items()):
                for warp in np.unique(self.batch.warp_of[mask]).tolist():
                    own = (self.batch.warp_of == warp) & self.batch.alive
                    if (own & ~mask).any():
                        continue
                    self._require_whole(self._barriers[rank], warp, own)
                    if self._served(self._barriers[rank], warp, own):
                        going.append((rank, own & mask))
                        mask = self.masks[rank] = mask & ~own
                        found = True
                if not mask.any():
                    del self.masks[rank]
        return going

    def _require_whole(self, barrier: Barrier, warp: int, lanes: Mask) -> None:
        """Lanes that ended have not come."""
        if np.count_nonzero(self.batch.warp_of == warp) != np.count_nonzero(lanes):
            message = "not all lanes of the warp come here"
            raise self.fail(barrier.instruction, message, int(lanes.argmax()))

    def _served(self, barrier: Barrier, warp: int, lanes: Mask) -> bool:
        """Whether a warp gets or gives back what it says."""
        batch, ins, pools = self.batch, barrier.instruction, Pools.of(self.batch)
        (count,) = ins.operands
        assert isinstance(count, Immediate)
        wanted, held = int(count.value), int(pools.held[warp])
        block, gives = int(batch.block_of[batch.warp_starts[warp]]), "dec" in ins.modifiers
        thread = int(lanes.argmax())
        if batch.registers is not None:
            if (wanted > held) if gives else (wanted < held):
                verb = "keep" if gives else "have"
                message = f"the warp has {held} registers a thread; it cannot {verb} {wanted}"
                raise self.fail(ins, message, thread)
            if (wanted - held) * WARP > pools.free[block]:
                return False
            pools.free[block] -= (wanted - held) * WARP
        if batch.skeleton is not None and (wanted != held or batch.registers is None):
            act, site = Act.COME if gives else Act.GO, batch.skeleton.site(_span(barrier))
            event = Event(act, ("registers", block), 0, wanted, site=site)
            batch.skeleton.note(np.flatnonzero(lanes), event)
        pools.held[warp] = wanted
        pools.told.setdefault(warp, []).append((ins.modifiers[0], wanted))
        pools.last[warp] = ins
        pools.places.setdefault(warp, []).append(_span(barrier))
        return True

    def stuck(self) -> DeviceError | None:
        """Who waits for registers that never come back, or for lanes of its own warp."""
        for rank, mask in self.masks.items():
            barrier, thread = self._barriers[rank], int(mask.argmax())
            warp, block = int(self.batch.warp_of[thread]), int(self.batch.block_of[thread])
            own = (self.batch.warp_of == warp) & self.batch.alive
            if (own & ~mask).any():
                message = "not all lanes of the warp come here"
                return self.fail(barrier.instruction, message, thread)
            pools = Pools.of(self.batch)
            first = self.batch.warp_of[block * self.batch.block_size]
            warps = -(-self.batch.block_size // WARP)
            others = ", ".join(str(each) for each in pools.held[first : first + warps])
            message = (
                f"deadlock: waits for registers that never come back; the pool of the block has "
                f"{int(pools.free[block])}, and its warps hold {others} a thread"
            )
            return self.fail(barrier.instruction, message, thread, DeadlockError)
        return None


def finish(batch: Batch, fail: Fail) -> None:
    """All threads have ended: of a warpgroup, all warps have set their registers alike."""
    pools = batch.special_state.get("registers")
    if pools is None:
        return
    warps = -(-batch.block_size // WARP)
    for warp, told in pools.told.items():
        block, inside = divmod(warp, warps)
        first = inside // GROUP * GROUP
        if first + GROUP <= warps:
            group = range(block * warps + first, block * warps + first + GROUP)
            if any(pools.told.get(other, []) != told for other in group):
                message = "the four warps of the warpgroup do not all do this"
                raise fail(pools.last[warp], message, int(batch.warp_starts[warp]))
            apart = any(pools.places[other] != pools.places[warp] for other in group)
            if apart and batch.skeleton is not None:
                message = "the warps of the warpgroup do this by different instructions"
                batch.skeleton.by_practice("aligned", message, pools.places[warp][-1], APART)


def _span(barrier: Barrier) -> Span:
    assert barrier.span is not None
    return barrier.span
