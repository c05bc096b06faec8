"""Notices that no thread can ever go on, and says who waits where, and for what.

Waiting is asking: threads go round a loop until memory or an mbarrier says yes. When every running
thread has come back to a place with the same registers, nothing was written by anyone meanwhile and
no copy is under way, then they go round for ever, whoever runs first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.code import Code, CodeBlock
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.ir import Instruction, Special
from warploom.ptx.opcode import MemoryEffect
from warploom.ptx.table import OPCODES

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

MOST_VISITS, LEAST_VISITS = 300, 16  # without an effect before registers are compared
VISITING = 1 << 20  # … of so many threads in all
LONGEST = 1 << 16  # … at most, after some that were in vain
_READS = (MemoryEffect.READS, MemoryEffect.UPDATES)
_FENCES = frozenset({"fence", "membar"})
_ASKS = frozenset({"test_wait", "try_wait", "pending_count"})
_CLOCKS = ("%clock", "%globaltimer")


def is_quiet(block: CodeBlock) -> bool:
    """Whether a visit changes registers alone, from registers and memory; of atomics, see
    `Batch.swapped`. Time is an effect: a loop that looks at the clock ends by itself."""
    if block.barrier is not None or block.leaves:
        return False
    return all(each.plain or _asks(each.instruction) for each in block.passages) and not any(
        _reads_clock(each.instruction) for each in block.passages
    )


def _asks(ins: Instruction) -> bool:
    if ins.opcode == "mbarrier":
        return bool(_ASKS & set(ins.modifiers[:1]))
    known = OPCODES.get(ins.opcode)  # one that is not known is refused where it is reached
    reads = known is not None and known.memory in _READS and ins.opcode != "wgmma"
    return reads or ins.opcode in _FENCES


def _reads_clock(ins: Instruction) -> bool:
    return any(isinstance(each, Special) and each.name.startswith(_CLOCKS) for each in ins.operands)


@dataclass(slots=True)
class _Seen:
    """Registers of the threads that came to a place, as bytes; `who` are they, and `back` those
    that came there again as they were."""

    who: Mask
    registers: dict[int, Array]
    back: Mask


@dataclass(slots=True)
class Watch:
    """Looks at what a runner does; see the head of this file."""

    code: Code
    frame: Frame
    quiet: dict[int, bool] = field(default_factory=dict)
    visits: int = 0  # without an effect
    patience: int = field(init=False)
    seen: dict[int, _Seen] = field(default_factory=dict)
    again: Mask | None = None  # the threads that came back as they were

    def __post_init__(self) -> None:
        self.patience = max(LEAST_VISITS, min(MOST_VISITS, VISITING // self.frame.n))

    def effect(self) -> None:
        """Something changed that others may wait for."""
        if self.visits:
            self.visits = 0
            self._forget()

    def _forget(self) -> None:
        self.frame.batch.refused, self.frame.batch.swapped = None, False
        self.seen.clear()
        self.again = None

    def came(self, rank: int) -> bool:
        """The frame's threads come to a place: whether new ones are known to go round for ever."""
        quiet = self.quiet.get(rank)
        if quiet is None:
            quiet = self.quiet[rank] = is_quiet(self.code.blocks[rank])
        if not quiet or self.frame.batch.swapped:
            self.effect()
            return False
        self.visits += 1
        return self.visits > self.patience and self._compare(rank)

    def _compare(self, rank: int) -> bool:
        batch, here = self.frame.batch, self.frame.full_mask()
        if batch.refused is None:
            batch.refused, batch.swapped = {}, False
        now = {slot: self._bytes(slot) for slot in self.code.live[rank]}
        before = self.seen.get(rank)
        if before is None:
            self.seen[rank] = _Seen(here.copy(), now, np.zeros_like(here))
            return False
        known = here & before.who
        if any((now[slot][known] != before.registers[slot][known]).any() for slot in now):
            # Somebody computes: how long that takes is not known.
            self.visits, self.patience = 0, min(2 * self.patience, LONGEST)
            self._forget()
            return False
        fresh = here & ~before.who
        if fresh.any():
            for slot, old in before.registers.items():
                old[fresh] = now[slot][fresh]
            before.who |= here
        again = np.zeros(batch.threads, bool) if self.again is None else self.again
        self.again = again | known
        before.back |= known
        return bool((known & ~again).any())

    def spins(self, running: Mask) -> dict[int, Mask]:
        """By place, who goes round there: those that came back, to it or to another place of the
        same loop. A place that they came past before they went into their loop is none."""
        found: dict[int, Mask] = {}
        for rank, seen in self.seen.items():
            back = seen.back.copy()
            for other, each in self.seen.items():
                if rank in self.code.reach(other) and other in self.code.reach(rank):
                    back |= each.back
            found[rank] = seen.who & back & running
        return found

    def _bytes(self, slot: int) -> Array:
        value = self.frame.regs[slot]
        whole = np.array(np.broadcast_to(value, (self.frame.n,)), order="C")
        return whole.view(np.uint8).reshape(self.frame.n, -1)


def land_copies(frame: Frame) -> bool:
    """Copies that are under way arrive, as they would by themselves; whether there were any."""
    coming = [each for each in frame.batch.mbarriers.values() if each.coming]
    for barrier in coming:
        barrier.land()
    return bool(coming)
