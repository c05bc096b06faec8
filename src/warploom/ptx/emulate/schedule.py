"""Runs a compiled function on a batch: which group of threads runs next, and where they wait.

Threads that wait at the same block form one group. The block that comes first in the running
order (see `flow`) goes first, so threads meet again as early as they can. A group at a barrier
waits until all living threads of its block are at one.
"""

from __future__ import annotations

import time
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import (
    Culprit,
    DeviceError,
    KernelError,
    LimitError,
    SynchronisationError,
    UninitialisedError,
)
from warploom.machine.counters import Counters
from warploom.ptx.demangle import demangled
from warploom.ptx.emulate import origins
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.barrier import Barrier, BlockBarriers, Going
from warploom.ptx.emulate.cluster import ClusterWaits
from warploom.ptx.emulate.code import MOST_KEPT, Code, CodeBlock
from warploom.ptx.emulate.context import MALFORMED, Fetch, Step, malformed
from warploom.ptx.emulate.deadlock import Watch, land_copies
from warploom.ptx.emulate.frame import NOTHING, Batch, Frame
from warploom.ptx.emulate.lanes import Held, Members, WarpBarriers, missing, note_meeting
from warploom.ptx.emulate.poison import PoisonTransfer
from warploom.ptx.emulate.registers import RegisterWaits
from warploom.ptx.emulate.registers import finish as finish_registers
from warploom.ptx.emulate.skeleton import NOWHERE, Act, Event, Skeleton
from warploom.ptx.emulate.waits import deadlock
from warploom.ptx.ir import Instruction
from warploom.ptx.patience import timed

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

SPLIT = 0.3  # how often a group is split, where chance decides
PATIENCE = 2000  # slices one group may take over waiting ones before they get theirs
SPINNING = 250  # for so many a slice counts that looks at a flag: it may be waiting for the others
AHEAD = 40  # slices that a group may then take itself, so that it comes to what is waited for


class Runner:
    def __init__(self, code: Code, frame: Frame) -> None:
        self.code = code
        self.frame = frame
        self.batch: Batch = frame.batch
        self.pending: dict[int, Mask | None] = {}
        self.held: dict[int, Held] = {}  # at a warp-level instruction, for lanes still missing
        self.blocks = BlockBarriers(self.batch, self._error)
        self.warps = WarpBarriers(self.batch, self._error)
        self.clusters = ClusterWaits(self.batch, self._error)
        self.registers = RegisterWaits(self.batch, self._error)
        self.going: Going = []
        self.unions: dict[tuple[int, ...], frozenset[int]] = {}
        looks = any(block.looks for block in code.blocks)
        self.patient = self.batch.counters is not None and not looks
        self.impatience = 0
        self.favoured = -1  # where those stood that were let run last, out of slice
        self.watch = Watch(code, frame)
        self.ahead: Mask | None = None  # the threads that run out of slice,
        self.credit = 0  # … and how many slices they still have

    def run(self, mask: Mask | None) -> None:
        self.add(self.code.entry, mask)
        while True:
            while self.pending and (group := self._next()) is not None:
                self._visit(*group)
            if self._resume() or self._settle() or self._release():
                continue
            if not self.pending:
                self._refuse_waiting()
                return

    def _next(self) -> tuple[int, Mask | None] | None:
        """The group that runs now, and where; None if all that could are held back."""
        if self.batch.holding is not None:
            return self.batch.holding.turn(self.pending, self.code)  # type: ignore[no-any-return]
        if self.batch.chance is not None:
            return self._by_chance(self.batch.chance)
        rank = min(self.pending)
        if len(self.pending) > 1:
            rank = self._out_of_slice(rank)
        return rank, self.pending.pop(rank)

    def _out_of_slice(self, first: int) -> int:
        """Who runs where several could: the first, unless it may spin on what another will do.

        Where that is counted which warps do together, lanes that do not look at flags meet as early
        as they can, however long others wait: how many blocks are a batch then makes no difference.
        """
        if self.patient:
            return first
        rank = self._going_ahead() if self.credit > 0 else None
        if rank is not None:
            self.credit -= AHEAD // 4 if self.code.blocks[rank].looks else 1
            return rank
        self.impatience += SPINNING if self.code.blocks[first].looks else 1
        if self.impatience <= PATIENCE:
            return first
        self.impatience, self.credit = 0, AHEAD
        later = [each for each in self.pending if each > self.favoured]
        rank = self.favoured = min(later, default=first)
        self.ahead = self.pending[rank]
        return rank

    def _going_ahead(self) -> int | None:
        """Where the threads stand that run out of slice; they may have left or wait themselves."""
        ahead = self.ahead
        for rank in sorted(self.pending):
            mask = self.pending[rank]
            if ahead is None or mask is None or (mask & ahead).any():
                return rank
        self.credit = 0
        return None

    def _release(self) -> bool:
        """Nobody else can go on: who is held back may."""
        holding = self.batch.holding
        if holding is None or not holding.release():
            return False
        self.watch.effect()
        return True

    def _by_chance(self, chance: np.random.Generator) -> tuple[int, Mask | None]:
        """Any group, or some lanes of it: lanes need not stay together, nor meet again."""
        rank = int(chance.choice(sorted(self.pending)))
        mask = self.pending.pop(rank)
        if chance.random() < SPLIT:
            here = _as_mask(mask, self.batch.threads)
            some = here & (chance.random(self.batch.threads) < chance.random())
            if some.any() and (here & ~some).any():
                self.pending[rank] = here & ~some
                mask = some
        return rank, mask

    def add(self, rank: int, mask: Mask | None) -> None:
        """More threads wait at a block; those at a bare exit are gone at once."""
        block = self.code.blocks[rank]
        waits = block.barrier is not None or block.members is not None
        if block.leaves and block.condition is None and not (block.steps or waits):
            self._retire(block, mask)
            self.code.executed[rank] += self._count(mask)
            return
        if rank in self.held:
            mask = self.held.pop(rank).waits | _as_mask(mask, self.batch.threads)
        if rank not in self.pending:
            self.pending[rank] = mask
            return
        before = self.pending[rank]
        self.pending[rank] = None if before is None or mask is None else before | mask

    def _count(self, mask: Mask | None) -> int:
        return self.batch.threads if mask is None else int(np.count_nonzero(mask))

    def _retire(self, block: CodeBlock, mask: Mask | None) -> None:
        self.watch.effect()
        if not (block.ends_thread or self.code.kernel):
            return
        if self.batch.skeleton is not None:
            self._note_exit(self.batch.skeleton, block, _as_mask(mask, self.batch.threads))
        if mask is None:
            self.batch.alive[:] = False
        else:
            self.batch.alive &= ~mask

    def _note_exit(self, skeleton: Skeleton, block: CodeBlock, mask: Mask) -> None:
        """Threads leave the kernel; what reads shared memory for them must have ended."""
        span = None if block.leaving is None else self.code.module.span(block.leaving.instruction)
        site = NOWHERE if span is None else skeleton.site(span)
        threads = np.flatnonzero(mask & self.batch.alive)
        skeleton.note(threads, Event(Act.EXIT, site=site))
        for thread in set(threads.tolist()) & self.batch.bulks.keys():
            for read, _, copied in chain(*self.batch.bulks[thread]):
                if read is not None:
                    message = "a thread may end before this copy has read shared memory"
                    skeleton.fail("exit", message, copied)

    def _note_flags(self, skeleton: Skeleton, block: CodeBlock) -> None:
        """Some threads leave a loop that looks at a flag."""
        f, loop = self.frame, skeleton.loops[id(block)]
        assert block.condition is not None
        threads = np.flatnonzero(f.full_mask() & (f.widen(block.condition(f)) == loop.taken))
        if loop.number is None:
            numbers = np.broadcast_to(f.regs[loop.slot], (f.n,))[threads]
        else:
            numbers = np.full(threads.size, loop.number)
        skeleton.leave(threads, numbers)

    def _protected(self) -> frozenset[int]:
        """Registers that some thread which is not running will still read."""
        ranks = {*self.pending, *self.held, *self.warps.masks, *self.clusters.masks}
        ranks |= self.registers.masks.keys()
        ranks |= {rank for rank, _ in self.going}
        ranks |= self.blocks.ranks()
        if not ranks:
            return NOTHING
        key = tuple(sorted(ranks))
        found = self.unions.get(key)
        if found is None:
            found = frozenset().union(*[self.code.live[rank] for rank in timed(key)])
            if len(self.unions) * len(found) > MOST_KEPT:
                self.unions.clear()
            self.unions[key] = found
        return found

    # -- one block --------------------------------------------------------------------------

    def _visit(self, rank: int, mask: Mask | None) -> None:
        block = self.code.blocks[rank]
        if self.held or self.warps.masks or self.blocks.waiting:
            self._refuse_passing(rank, _as_mask(mask, self.batch.threads))
        if block.barrier is not None:
            self._meet(rank, block.barrier, mask)
        elif block.members is not None:
            self._gather(rank, block.members, mask)
        else:
            self._execute(rank, mask)

    def _gather(self, rank: int, members: Members, mask: Mask | None) -> None:
        """Lanes come to an instruction with a mask of members; some may have to wait."""
        if rank in self.held:
            mask = self.held.pop(rank).waits | _as_mask(mask, self.batch.threads)
        self.frame.activate(mask, NOTHING)
        held = missing(self.frame, members, self._error)
        if held is not None:
            self.held[rank] = held
            mask = _as_mask(mask, self.batch.threads) & ~held.waits
            passes = held.awaited & mask
            once = rank not in self.code.reach(rank) and len(self.code.blocks[rank].steps) > 1
            if once and passes.any():
                raise self._absent(rank, held, int(passes.argmax()))
        if mask is None or mask.any():
            self.frame.activate(mask, NOTHING)
            note_meeting(self.frame, members, self.code.module.span(members.instruction))
            self._execute(rank, mask)

    # -- who does not come any more -----------------------------------------------------------

    def _refuse_passing(self, rank: int, mask: Mask) -> None:
        """Threads run that others wait for, and are past the place where they should come."""
        for place, held in self.held.items():
            if rank in self.code.reach(place) and place not in self.code.reach(rank):
                gone = held.awaited & mask
                if gone.any():
                    raise self._absent(place, held, int(gone.argmax()))
        if not self.code.meets(rank, lanes=True):
            self._refuse_lanes(rank, mask)
        for waiting in self.blocks.waiting.values():
            for place, there in waiting.masks.items():
                if rank in self.code.reach(place) and not self.code.meets(rank, lanes=False):
                    self._refuse_skipped(place, there, mask, waiting.partial)

    def _refuse_lanes(self, rank: int, mask: Mask) -> None:
        """Lanes run that come to no bar.warp.sync any more, and others wait for them at one."""
        for place in self.warps.masks:
            if place == rank or rank in self.code.reach(place):
                held = self.warps.held(place)
                gone = held.awaited & mask
                if gone.any():
                    raise self._absent(place, held, int(gone.argmax()))

    def _refuse_skipped(self, place: int, waits: Mask, mask: Mask, partial: bool) -> None:
        """A barrier waits for all of its block, or one for some threads for its warps' lanes."""
        group_of = self.batch.warp_of if partial else self.batch.block_of
        wanted = np.zeros(int(group_of[-1]) + 1, bool)
        wanted[group_of[waits]] = True
        past = wanted[group_of] & mask
        if past.any():
            raise self._stuck(self._barrier(place), waits, int(past.argmax()))

    # -- running --------------------------------------------------------------------------------

    def _execute(self, rank: int, mask: Mask | None) -> None:
        f = self.frame
        block = self.code.blocks[rank]
        f.activate(mask, self._protected() if mask is not None else NOTHING)
        if f.count == 0:
            return
        self.code.executed[rank] += f.count
        counters = self.batch.counters
        if counters is not None and counters.tallies.watched is not None:
            counters.tallies.watched.came(block.names, self.batch.warp_of[f.index])
        if self.watch.came(rank):
            self._refuse_endless()
        if self.batch.origins is not None:
            origins.came(f, rank)
        if self.batch.work is not None:
            self.batch.work.add(len(block.steps), f.count)
        deadline, number, done = self.batch.deadline, 0, 0
        if deadline is not None and time.monotonic() > deadline:
            raise self._too_long(block, number)
        try:
            for number, step in enumerate(block.steps):
                if number < done:
                    continue
                # Thousands of steps may stand in a row, and one may take milliseconds.
                if deadline is not None and time.monotonic() > deadline:
                    raise self._too_long(block, number)
                piece = block.pieces.get(number)
                if piece is not None and piece.run(f):
                    done = piece.after
                else:
                    self._step(block.passages[number], step)
        except MALFORMED as error:
            instruction = block.passages[number].instruction
            raise malformed(self.code.module, instruction, error) from error
        self._leave(block)

    def _step(self, flow: PoisonTransfer, step: Step) -> None:
        if self.batch.origins is not None:
            self._follow(flow, step)
        elif self.frame.undefined:
            undefined.watched(self.frame, flow, step, self._unset)
        else:
            step(self.frame)

    def _follow(self, flow: PoisonTransfer, step: Step) -> None:
        def run() -> None:
            if self.frame.undefined:
                undefined.watched(self.frame, flow, step, self._unset)
            else:
                step(self.frame)

        origins.followed(self.frame, flow, run, self.code.module.span(flow.instruction))

    def _too_long(self, block: CodeBlock, number: int) -> LimitError:
        """Who is still running, and where; others may wait for what it does not do."""
        passage = (*block.passages[number:], block.leaving, None)[0]
        here = self.batch.where(int(self.frame.index[0]))
        waiting = sum(self._count(mask) for mask in self.pending.values())
        others = f", {waiting} other threads wait for their slice" if waiting else ""
        later = (
            prod(self.batch.grid) - self.batch.first_block - self.batch.blocks // self.batch.twins
        )
        others += f"; {later} blocks of the grid have not begun" if later else ""
        return LimitError(
            f"kernel '{demangled(self.code.name)}' did not end in the time it was given: "
            f"{here} and {self.frame.count - 1} others are still here{others}",
            None if passage is None else self.code.module.span(passage.instruction),
            "give it more seconds, unless this is a loop that waits for what never comes",
        )

    def _leave(self, block: CodeBlock) -> None:
        f = self.frame
        if f.count == 0:
            return
        if f.undefined and block.leaving is not None:
            undefined.require(f, block.leaving, f.full_mask(), self._unset)
        if self.batch.origins is not None:
            origins.left(f, block.leaving, self.code.sides(block))
        if self.batch.skeleton is not None and id(block) in self.batch.skeleton.loops:
            self._note_flags(self.batch.skeleton, block)
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
        if self.batch.counters is not None and block.leaving is not None:
            self._count_branch(self.batch.counters, block.leaving, value)
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
        if self.batch.skeleton is not None:
            self.batch.skeleton.divided(taken, rest, self.batch.warp_starts)
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

    def _count_branch(self, counters: Counters, branch: PoisonTransfer, value: Array) -> None:
        here = self.frame.full_mask()
        taken = self.frame.widen(value) & here
        starts = self.batch.warp_starts
        some, rest = (np.logical_or.reduceat(each, starts) for each in (taken, here & ~taken))
        divergent = int(np.count_nonzero(some & rest))
        counters.divergent_branches += divergent
        label = self.code.module.span(branch.instruction)
        counters.tallies.branched(label, int(np.count_nonzero(some | rest)), divergent)

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
            if self.batch.skeleton is not None:
                self.batch.skeleton.divided(chosen, here & ~chosen, self.batch.warp_starts)
            self.add(targets[choice], None if bool(chosen.all()) else chosen)

    # -- barriers -----------------------------------------------------------------------------

    def _meet(self, rank: int, barrier: Barrier, mask: Mask | None) -> None:
        going: Going = []
        self.watch.effect()
        self.frame.activate(mask, NOTHING)
        coming = self.code.blocks[rank].coming
        if self.frame.undefined and coming is not None:
            undefined.require(self.frame, coming, self.frame.full_mask(), self._unset)
        if self.batch.origins is not None:
            origins.left(self.frame, coming)
        if barrier.guard is not None:
            holds = self.frame.widen(barrier.guard(self.frame))
            here = self.frame.full_mask()
            mask = here & holds
            going = [(rank, here & ~holds)]
        if mask is None or mask.any():
            going += self._where(barrier).arrive(self.frame, rank, barrier, mask)
        self._go_on(going)

    def _where(
        self, barrier: Barrier
    ) -> BlockBarriers | WarpBarriers | ClusterWaits | RegisterWaits:
        if barrier.cluster:
            return self.clusters
        if barrier.registers:
            return self.registers
        return self.blocks if barrier.members is None else self.warps

    def _go_on(self, going: Going) -> None:
        """Groups that go on from where they waited; each keeps its registers until its slice."""
        self.going = going
        while self.going:
            rank, mask = self.going.pop(0)
            block = self.code.blocks[rank]
            after = (self.code.meets(each, lanes=True) for each in block.successors)
            if self.warps.masks and block.steps and not any(after):
                self._refuse_lanes(rank, mask)
            self._execute(rank, mask)

    # -- when nobody can run ------------------------------------------------------------------

    def _resume(self) -> bool:
        """Lanes go on that wait for nobody any more: the others have left the kernel."""
        for rank, held in list(self.held.items()):
            before = self.held.pop(rank).waits
            self._gather(rank, self._members(rank), held.waits)
            if rank not in self.held or not np.array_equal(self.held[rank].waits, before):
                return True
        return False

    def _members(self, rank: int) -> Members:
        members = self.code.blocks[rank].members
        assert members is not None
        return members

    def _settle(self) -> bool:
        """What waits at a barrier goes on if it may."""
        going = self.warps.settle() or self.blocks.settle() or self.clusters.settle()
        going = going or self.registers.settle()
        found = bool(going)
        self._go_on(going)
        return found

    def _refuse_waiting(self) -> None:
        """Nobody can run, and nothing will change that."""
        waits = self.registers.stuck()
        if waits is not None:  # others may wait for these
            raise waits
        for rank, held in self.held.items():
            raise self._absent(rank, held, None)
        for rank in self.warps.masks:
            raise self._absent(rank, self.warps.held(rank), None)
        block = self.blocks.stuck()
        if block is not None:
            rank, mask, reason = block
            raise self._stuck(self._barrier(rank), mask, None, reason)
        alone = self.clusters.stuck()
        if alone is not None:
            raise alone
        finish_registers(self.batch, self._error)

    def _refuse_endless(self) -> None:
        """All that run go round for ever, unless somebody else still runs or a copy comes."""
        spinning, batch = self.watch.again, self.batch
        running = self.frame.full_mask().copy()
        for mask in self.pending.values():
            running |= _as_mask(mask, batch.threads)
        held = None if batch.holding is None else batch.holding.held & running
        if held is not None and held.any():
            if spinning is not None and not (running & ~held & ~spinning).any():
                self.watch.effect() if land_copies(self.frame) else self._release()
            return
        if spinning is None or (running & ~spinning).any() or not batch.resident:
            return
        others = (batch.alive & ~running).copy()
        for _, mask in self._at_barriers():
            others &= ~mask
        if others.any():  # outside of this call, where they may run on
            return
        if land_copies(self.frame):
            self.watch.effect()
            return
        spins = self.watch.spins(running)
        raise deadlock(self.code, self.frame, spins, self._at_barriers())

    def _at_barriers(self) -> list[tuple[Instruction, Mask]]:
        """Who waits at a barrier or for lanes of a warp, and at which instruction."""
        found = [(self._members(rank).instruction, held.waits) for rank, held in self.held.items()]
        waiting = [each.masks for each in self.blocks.waiting.values()]
        for masks in (*waiting, self.warps.masks, self.clusters.masks, self.registers.masks):
            found += [(self._barrier(rank).instruction, mask) for rank, mask in masks.items()]
        return found

    def _barrier(self, rank: int) -> Barrier:
        barrier = self.code.blocks[rank].barrier
        assert barrier is not None
        return barrier

    def _error(
        self, instruction: Instruction, message: str, thread: int,
        kind: type[KernelError] = SynchronisationError,
    ) -> KernelError:  # fmt: skip
        where = self.batch.where(thread)
        span = self.code.module.span(instruction)
        told = kind(f"{instruction.name}: {message}; {where}", span)
        told.culprit = Culprit(where)
        return told

    def _unset(self, instruction: Instruction, message: str, thread: int) -> KernelError:
        return self._error(instruction, message, thread, UninitialisedError)

    def _absent(self, rank: int, held: Held, passed: int | None) -> KernelError:
        """Lanes wait for others that their mask names and that do not come."""
        block = self.code.blocks[rank]
        instruction = (block.members or self._barrier(rank)).instruction
        other = int(held.awaited.argmax()) if passed is None else passed
        lane = int(self.batch.lane[other])
        same = held.waits & (self.batch.warp_of == self.batch.warp_of[other])
        waits = int((same if same.any() else held.waits).argmax())
        message = f"the mask of members names lane {lane}, which does not come here: "
        message += self.batch.where(other) + (" is past it" if passed is not None else "")
        return self._error(instruction, message, waits)

    def _stuck(
        self, barrier: Barrier, mask: Mask, other: int | None,
        reason: str = "not all threads of the block come to this barrier",
    ) -> KernelError:  # fmt: skip
        thread = int(mask.argmax())
        count = int(np.count_nonzero(mask[self.batch.block_of == self.batch.block_of[thread]]))
        missing = f", {self.batch.where(other)} does not" if other is not None else ""
        where = self.batch.where(thread)
        told = SynchronisationError(
            f"{barrier.instruction.name}: {reason}: {where} waits here with {count - 1} "
            f"others{missing}",
            self.code.module.span(barrier.instruction),
        )
        told.culprit = Culprit(where)
        return told


def _as_mask(mask: Mask | None, threads: int) -> Mask:
    return np.ones(threads, bool) if mask is None else mask
