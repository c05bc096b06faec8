"""Runs a compiled function on a batch: which group of threads runs next, and where they wait.

Threads that wait at the same block form one group. The block that comes first in the running
order (see `flow`) goes first, so threads meet again as early as they can. A group at a barrier
waits until all living threads of its block are at one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.ptx.emulate.barrier import Barrier, BlockBarriers, Going, WarpBarriers
from warploom.ptx.emulate.context import Fetch, Step
from warploom.ptx.emulate.frame import NOTHING, Batch, Frame
from warploom.ptx.ir import Instruction, Module

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

PATIENCE = 2000  # turns one group may take over waiting ones before they get a turn


# What NumPy and Python raise for operands that do not fit an instruction, such as and.f32.
MALFORMED = (TypeError, ValueError, KeyError, IndexError)


def malformed(module: Module, instruction: Instruction, error: Exception) -> DeviceError:
    return DeviceError(
        f"{instruction.name} with these operands is no instruction ({error})",
        module.span(instruction),
    )


@dataclass(slots=True)
class CodeBlock:
    """Steps, then where to go: `condition` chooses between the first and second successor.

    `leaves`: threads for which the condition holds (all, without one) leave the function;
    `ends_thread` says whether they leave the kernel. `switch` picks a successor by number; with a
    condition, threads for which it does not hold go to the last one.
    """

    steps: list[Step] = field(default_factory=list)
    sources: list[Instruction] = field(default_factory=list)  # of each step
    names: list[str] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    condition: Fetch | None = None
    leaves: bool = False
    ends_thread: bool = False
    switch: Fetch | None = None
    branch: Instruction | None = None
    barrier: Barrier | None = None
    missing: Callable[[Frame], Array | None] | None = None


@dataclass(slots=True, eq=False)
class Code:
    """A function ready to run; blocks are in running order and `live[r]` are its live slots."""

    name: str
    module: Module
    kernel: bool
    blocks: list[CodeBlock]
    entry: int
    live: list[frozenset[int]]
    sizes: list[int]
    local_size: int
    slots: dict[str, int]
    executed: list[int]  # thread executions of each block
    _reach: dict[int, frozenset[int]] = field(default_factory=dict)

    def reach(self, start: int) -> frozenset[int]:
        """The blocks that can come after a block."""
        found = self._reach.get(start)
        if found is None:
            seen: set[int] = set()
            work = list(self.blocks[start].successors)
            while work:
                block = work.pop()
                if block not in seen:
                    seen.add(block)
                    work += self.blocks[block].successors
            found = self._reach[start] = frozenset(seen)
        return found

    def new_registers(self) -> list[Array]:
        kinds = {0: np.bool_, 1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
        return [
            np.zeros(1, kinds[size] if size in kinds else np.dtype("V16")) for size in self.sizes
        ]


class Runner:
    def __init__(self, code: Code, frame: Frame) -> None:
        self.code = code
        self.frame = frame
        self.batch: Batch = frame.batch
        self.pending: dict[int, Mask | None] = {}
        self.held: dict[int, Mask] = {}  # at a warp-level instruction, for lanes still missing
        self.blocks = BlockBarriers(self.batch)
        self.warps = WarpBarriers(self.batch)
        self.going: Going = []
        self.unions: dict[tuple[int, ...], frozenset[int]] = {}
        self.impatience = 0

    def run(self, mask: Mask | None) -> None:
        self.add(self.code.entry, mask)
        while True:
            while self.pending:
                rank = self._next()
                self._visit(rank, self.pending.pop(rank))
            if self.held:
                rank = min(self.held)
                self._execute(rank, self.held.pop(rank))
            elif not self._settle():
                return

    def _next(self) -> int:
        rank = min(self.pending)
        if len(self.pending) > 1:
            self.impatience += 1
            if self.impatience > PATIENCE:  # a thread may be spinning on what another will do
                self.impatience = 0
                return max(self.pending)
        return rank

    def add(self, rank: int, mask: Mask | None) -> None:
        """More threads wait at a block; those at a bare exit are gone at once."""
        block = self.code.blocks[rank]
        if block.leaves and block.condition is None and not block.steps:
            self._retire(block, mask)
            self.code.executed[rank] += self._count(mask)
            return
        if rank in self.held:
            mask = self.held.pop(rank) | _as_mask(mask, self.batch.threads)
        if rank not in self.pending:
            self.pending[rank] = mask
            return
        before = self.pending[rank]
        self.pending[rank] = None if before is None or mask is None else before | mask

    def _count(self, mask: Mask | None) -> int:
        return self.batch.threads if mask is None else int(np.count_nonzero(mask))

    def _retire(self, block: CodeBlock, mask: Mask | None) -> None:
        if not (block.ends_thread or self.code.kernel):
            return
        if mask is None:
            self.batch.alive[:] = False
        else:
            self.batch.alive &= ~mask

    def _protected(self) -> frozenset[int]:
        """Registers that some thread which is not running will still read."""
        ranks = {*self.pending, *self.held, *self.warps.masks, *(rank for rank, _ in self.going)}
        ranks |= self.blocks.ranks()
        if not ranks:
            return NOTHING
        key = tuple(sorted(ranks))
        found = self.unions.get(key)
        if found is None:
            found = frozenset().union(*[self.code.live[rank] for rank in key])
            self.unions[key] = found
        return found

    # -- one block --------------------------------------------------------------------------

    def _visit(self, rank: int, mask: Mask | None) -> None:
        block = self.code.blocks[rank]
        if block.barrier is not None:
            self._meet(rank, block.barrier, mask)
            return
        if block.missing is not None and mask is not None and self.pending:
            self.frame.activate(mask, NOTHING)
            waits = block.missing(self.frame)
            if waits is not None:
                self.held[rank] = waits
                mask = mask & ~waits
                if not mask.any():
                    return
        self._execute(rank, mask)

    def _execute(self, rank: int, mask: Mask | None) -> None:
        f = self.frame
        block = self.code.blocks[rank]
        f.activate(mask, self._protected() if mask is not None else NOTHING)
        if f.count == 0:
            return
        self.code.executed[rank] += f.count
        if self.batch.deadline is not None and time.monotonic() > self.batch.deadline:
            raise DeviceError(f"kernel '{self.code.name}' did not end in the time it was given")
        number = 0
        try:
            for number, step in enumerate(block.steps):  # noqa: B007 - read below
                step(f)
        except MALFORMED as error:
            instruction = block.sources[number]
            raise malformed(self.code.module, instruction, error) from error
        self._leave(block)

    def _leave(self, block: CodeBlock) -> None:
        f = self.frame
        if f.count == 0:
            return
        if block.switch is not None:
            self._switch(block, block.switch)
        elif block.condition is None:
            if block.leaves or not block.successors:
                self._retire(block, f.mask)
            else:
                self.add(block.successors[0], f.mask)
        else:
            self._branch(block, block.condition)

    def _branch(self, block: CodeBlock, condition: Fetch) -> None:
        f = self.frame
        value = condition(f)
        if value.size == 1 and f.n != 1:
            self._go(block, f.mask, taken=bool(value[0]))
            return
        taken = f.widen(value)
        if f.mask is not None:
            taken = taken & f.mask
        count = int(np.count_nonzero(taken))
        if count in (0, f.count):
            self._go(block, f.mask, taken=count > 0)
            return
        rest = ~taken if f.mask is None else f.mask & ~taken
        if self.batch.counters is not None:
            self._count_divergence(taken, rest)
        self._go(block, taken, taken=True)
        self._go(block, rest, taken=False)

    def _go(self, block: CodeBlock, mask: Mask | None, *, taken: bool) -> None:
        if block.leaves:
            if taken:
                self._retire(block, mask)
            else:
                self.add(block.successors[0], mask)
        else:
            self.add(block.successors[0 if taken else 1], mask)

    def _count_divergence(self, taken: Array, rest: Array) -> None:
        assert self.batch.counters is not None
        starts = self.batch.warp_starts
        both = np.logical_or.reduceat(taken, starts) & np.logical_or.reduceat(rest, starts)
        self.batch.counters.divergent_branches += int(np.count_nonzero(both))

    def _switch(self, block: CodeBlock, switch: Fetch) -> None:
        f = self.frame
        number = f.widen(switch(f))
        here = f.full_mask()
        targets = block.successors
        if block.condition is not None:
            holds = f.widen(block.condition(f))
            if not holds[here].all():
                self.add(targets[-1], here & ~holds)
            here, targets = here & holds, targets[:-1]
        for choice in np.unique(number[here]).tolist():
            chosen = here & (number == choice)
            if choice >= len(targets):
                where = self.batch.where(int(chosen.argmax()))
                span = self.code.module.span(block.branch) if block.branch else None
                raise DeviceError(f"brx.idx: there is no target number {choice}; {where}", span)
            self.add(targets[choice], None if bool(chosen.all()) else chosen)

    # -- barriers -----------------------------------------------------------------------------

    def _meet(self, rank: int, barrier: Barrier, mask: Mask | None) -> None:
        going: Going = []
        if barrier.guard is not None:
            self.frame.activate(mask, NOTHING)
            holds = self.frame.widen(barrier.guard(self.frame))
            here = self.frame.full_mask()
            mask = here & holds
            going = [(rank, here & ~holds)]
        if mask is None or mask.any():
            meeting = self.blocks if barrier.members is None else self.warps
            going += meeting.arrive(self.frame, rank, barrier, mask)
        self._go_on(going)
        for waiting in self.blocks.waiting.values():
            if not waiting.partial and rank in waiting.masks:
                self._refuse_skipped(rank, barrier, waiting.masks[rank])

    def _go_on(self, going: Going) -> None:
        """Groups that go on from where they waited; each keeps its registers until its turn."""
        self.going = going
        while self.going:
            self._execute(*self.going.pop(0))

    def _refuse_skipped(self, rank: int, barrier: Barrier, mask: Mask) -> None:
        """Threads of the same block that went past the barrier will never come to it."""
        block_of = self.batch.block_of
        blocks = np.zeros(self.batch.blocks, bool)
        blocks[block_of[mask]] = True
        for other, there in self.pending.items():
            if other not in self.code.reach(rank) or rank in self.code.reach(other):
                continue
            past = blocks[block_of] & _as_mask(there, self.batch.threads)
            if past.any():
                raise self._stuck(barrier, mask, int(past.argmax()))

    def _settle(self) -> bool:
        """Nobody can run: what waits goes on if it may; False where nobody waits."""
        going = self.warps.settle() or self.blocks.settle()
        if not going:
            waiting = next(iter(self.blocks.waiting.values()), None)
            if waiting is None:
                return False
            rank, mask = next(iter(waiting.masks.items()))
            barrier = self.code.blocks[rank].barrier
            assert barrier is not None
            raise self._stuck(barrier, mask, None)
        self._go_on(going)
        return True

    def _stuck(self, barrier: Barrier, mask: Mask, other: int | None) -> DeviceError:
        thread = int(mask.argmax())
        count = int(np.count_nonzero(mask[self.batch.block_of == self.batch.block_of[thread]]))
        missing = f", {self.batch.where(other)} does not" if other is not None else ""
        return DeviceError(
            f"{barrier.instruction.name}: not all threads of the block come to this barrier: "
            f"{self.batch.where(thread)} waits here with {count - 1} others{missing}",
            self.code.module.span(barrier.instruction),
        )


def _as_mask(mask: Mask | None, threads: int) -> Mask:
    return np.ones(threads, bool) if mask is None else mask
