"""A function ready to run: blocks of steps in running order, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.barrier import Barrier
from warploom.ptx.emulate.context import Fetch, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.lanes import Members
from warploom.ptx.emulate.poison import PoisonTransfer
from warploom.ptx.flow import LiveSets
from warploom.ptx.ir import Instruction, Module

Array = npt.NDArray[Any]
MOST_KEPT = 1 << 24  # registers in sets that are kept to be asked for again


class CompiledPiece(Protocol):
    """Steps in a row as one call of compiled code."""

    @property
    def after(self) -> int:
        """The step that comes after them."""

    def run(self, f: Frame) -> bool:
        """Whether it was done; else nothing has changed, and the steps are to be taken."""


@dataclass(slots=True)
class CodeBlock:
    """Steps, then where to go: `condition` chooses between the first and second successor.

    `leaves`: threads for which the condition holds (all, without one) leave the function;
    `ends_thread` says whether they leave the kernel. `switch` picks a successor by number; with a
    condition, threads for which it does not hold go to the last one.
    """

    steps: list[Step] = field(default_factory=list)
    passages: list[PoisonTransfer] = field(default_factory=list)  # of each step
    names: list[str] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    condition: Fetch | None = None
    leaves: bool = False
    ends_thread: bool = False
    switch: Fetch | None = None
    branch: Instruction | None = None
    leaving: PoisonTransfer | None = None  # of the branch at the end
    barrier: Barrier | None = None
    coming: PoisonTransfer | None = None  # of the barrier
    members: Members | None = None
    looks: bool = False  # it reads what other threads may be meant to write meanwhile
    looks_far: bool = False  # … of other blocks, perhaps
    event: bool = False  # it begins with what other threads may notice (`hold.py`)
    refusal: str = ""  # of its first instruction that cannot be run: its step says this
    pieces: dict[int, CompiledPiece] = field(default_factory=dict)  # by their first step

    @property
    def is_plain(self) -> bool:
        """Writes registers and goes on, by itself: no memory, no other lane, no way out."""
        if self.leaves or self.switch is not None or self.barrier is not None or self.members:
            return False
        return bool(self.successors) and all(
            each.plain and not each.across for each in self.passages
        )


@dataclass(frozen=True, slots=True)
class Sides:
    """Where the ways of a branch meet again, and the registers that were written until then."""

    join: int
    slots: frozenset[int]


@dataclass(frozen=True, slots=True)
class LiveSlots:
    """The slots that are live at the start of each block, worked out where they are asked for."""

    sets: LiveSets
    number: list[int]  # of the block at each place of the running order
    slots: dict[str, int]
    kept: dict[int, frozenset[int]] = field(default_factory=dict)

    def __getitem__(self, rank: int) -> frozenset[int]:
        found = self.kept.get(rank)
        if found is None:
            keys = self.sets[self.number[rank]]
            found = frozenset(self.slots[key] for key in keys if key in self.slots)
            if len(self.kept) * len(self.sets.keys) < MOST_KEPT:
                self.kept[rank] = found
        return found


@dataclass(slots=True, eq=False)
class Code:
    """A function ready to run; blocks are in running order and `live[r]` are its live slots."""

    name: str
    module: Module
    kernel: bool
    blocks: list[CodeBlock]
    entry: int
    live: LiveSlots
    sizes: list[int]
    local_size: int
    locals: dict[str, int]  # offset of each variable in a thread's own memory
    slots: dict[str, int]
    executed: list[int]  # thread executions of each block
    watches_products: bool = False  # steps look after registers of products, for races
    _reach: dict[int, frozenset[int]] = field(default_factory=dict)
    _sides: dict[int, Sides | None] = field(default_factory=dict)
    _meets: dict[tuple[int, bool], bool] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """What is said of an instruction that cannot be run, if a thread comes there."""
        return next((block.refusal for block in self.blocks if block.refusal), "")

    @property
    def may_wait_for_blocks(self) -> bool:
        """Whether a loop reads what other blocks may be meant to write."""
        last = -1  # the end of the loops that began so far: they are contiguous
        ends: dict[int, int] = {}
        for rank, block in enumerate(self.blocks):
            for after in block.successors:
                if after <= rank:
                    ends[after] = rank
        for rank, block in enumerate(self.blocks):
            last = max(last, ends.get(rank, -1))
            if block.looks_far and rank <= last:
                return True
        return False

    @property
    def may_spin(self) -> bool:
        """Whether a loop reads what other threads may be meant to write, or has no way out."""
        return any(
            rank in self.reach(rank) and (block.looks or block.successors == [rank])
            for rank, block in enumerate(self.blocks)
        )

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

    def sides(self, block: CodeBlock) -> Sides | None:
        """What a branch at the end of a block decides, where that is plainly nothing else."""
        if id(block) not in self._sides:
            self._sides[id(block)] = self._found_sides(block)
        return self._sides[id(block)]

    def _found_sides(self, block: CodeBlock) -> Sides | None:
        if block.leaves or block.switch is not None or len(block.successors) != 2:
            return None
        ahead, slots = set(block.successors), set[int]()
        while len(ahead) > 1:  # they run in order, so the last one left is where all ways meet
            rank = min(ahead)
            ahead.remove(rank)
            side = self.blocks[rank]
            if not side.is_plain or min(side.successors) <= rank:
                return None
            ahead |= set(side.successors)
            slots |= {slot for each in side.passages for slot in each.writes}
        (rank,) = ahead
        own = next(number for number, each in enumerate(self.blocks) if each is block)
        return Sides(rank, frozenset(slots)) if rank > own else None

    def meets(self, start: int, *, lanes: bool) -> bool:
        """Whether a barrier of the block, or one of lanes, can come at a block or after it."""
        found = self._meets.get((start, lanes))
        if found is None:
            barriers = (self.blocks[rank].barrier for rank in (start, *self.reach(start)))
            found = any(
                each is not None and (each.members is not None) == lanes for each in barriers
            )
            self._meets[start, lanes] = found
        return found

    def new_registers(self) -> list[Array]:
        kinds = {0: np.bool_, 1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
        return [
            np.zeros(1, kinds[size] if size in kinds else np.dtype("V16")) for size in self.sizes
        ]
