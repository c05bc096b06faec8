"""mbarriers: barriers in shared memory that count arrivals and bytes of copies.

A phase is complete when no arrival is pending and as many bytes came as were expected; then the
next one begins. Waiting is asking: the kernel asks until the answer is yes. What those that
arrived did before is ordered before what those do that got a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import KernelError, SynchronisationError
from warploom.machine.async_completion import Completion
from warploom.machine.knowledge import Knowledge, joined
from warploom.machine.memory import WINDOWS, mark_stored
from warploom.machine.semantics import Kind, Scope, Semantics
from warploom.ptx.emulate.access import Site, occupy, places
from warploom.ptx.emulate.context import Context, Fetch, Step
from warploom.ptx.emulate.frame import Batch, Frame
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.skeleton import NARROW, RELAXED, Act, Event, Skeleton
from warploom.ptx.ir import Instruction, Operand, Symbol
from warploom.ptx.types import U64

Array = npt.NDArray[Any]
MOST = (1 << 20) - 1
# A token has the phase from bit 36 on, from bit 20 on which word of its block's shared memory the
# mbarrier is, from 1 on, and below that what was pending.
_WORD, _PHASE = 20, 36


@dataclass(slots=True)
class MBarrier:
    expected: int
    pending: int
    phase: int = 0
    bytes: int = 0  # expected and not there yet
    block: int = 0  # of the batch, in whose shared memory it lies
    word: int = 0  # which one of that
    gathered: Knowledge | None = None  # what those that arrived in this phase knew
    known: Knowledge | None = None  # … in the phase before
    far: Knowledge | None = None  # what others of the cluster told, in its scope
    known_far: Knowledge | None = None  # … in the phase before
    coming: list[tuple[int, Callable[[], None]]] = field(default_factory=list)  # bytes of copies
    source: int = 0  # its number as one that tells of copies, once there were any
    source_far: int = 0  # … of copies that other blocks issued, in the scope of the cluster
    threads: int = 0  # of a block, as such numbers are kept
    came: list[int] = field(default_factory=list)  # threads that arrived in this phase
    before: list[int] = field(default_factory=list)  # … in the phase before
    awaited: int = 0  # bytes that were expected in this phase

    def settle(self) -> None:
        """Begins the next phase, if this one is complete."""
        if self.pending == 0 and self.bytes == 0:
            if self.source:
                self.gathered = joined(self.gathered, self.completion().known(self.threads))
            if self.source_far:
                self.far = joined(self.far, self.completion(far=True).known(self.threads))
            if self.gathered is not None:
                self.gathered.flat()  # once, not by each that waits
            self.known, self.gathered = self.gathered, None
            self.known_far, self.far = self.far, None
            self.phase += 1
            self.pending = self.expected
            self.before, self.came, self.awaited = self.came, [], 0

    def completion(self, inside: int = 0, *, far: bool = False) -> Completion:
        """The completion of a copy that this phase waits for; `far`: another block issued it."""
        return Completion(self.source_far if far else self.source, self.phase, inside)

    def tells_of_copies(self, batch: Batch, *, far: bool = False) -> None:
        if batch.races is None or (self.source_far if far else self.source):
            return
        self.threads = batch.block_size
        if far:
            self.source_far = batch.races.new_source()
        else:
            self.source = batch.races.new_source()

    def land(self) -> None:
        """The bytes of copies come as late as they can: when somebody waits for them."""
        while self.coming:
            count, copy = self.coming.pop(0)
            self.bytes -= count
            copy()
            self.settle()

    def tell(self, f: Frame, thread: int, scope: Scope, releases: bool) -> None:
        """What a thread knows that arrives; in the scope of a block those of its block hear it."""
        races = f.batch.races
        assert races is not None
        if releases:
            races.vector.advance(np.array([thread]))
        known = races.published(thread, scope, releases)
        near = f.batch.block_of[thread] == self.block
        if not near and scope is not Scope.BLOCK:
            self.far = joined(self.far, known)
        else:
            self.gathered = joined(self.gathered, known if near else races.narrow(known))

    def heard(self, f: Frame, scope: Scope) -> Knowledge | None:
        """What a thread of its block learns whose wait has passed."""
        assert f.batch.races is not None
        far = self.known_far
        reaches = scope is not Scope.BLOCK
        return joined(self.known, far if reaches else f.batch.races.narrow(far))

    def passed(self, f: Frame, threads: Array, scope: Scope, *, acquires: bool) -> None:
        """What these threads learn whose wait has passed; of a relaxed one, at their next fence."""
        assert f.batch.races is not None
        flags = f.batch.races.flags
        if acquires:
            f.batch.races.vector.learn(threads, self.heard(f, scope))
        elif flags is not None:
            flags.wait(threads, self.known, None if scope is Scope.BLOCK else self.known_far)

    def token(self) -> int:
        """Its state, as an arrival gives it."""
        return self.phase << _PHASE | (self.word + 1) << _WORD | self.pending

    def gave(self, token: int) -> bool:
        """Whether an arrival at it may have given a token."""
        return token >> _WORD & ((1 << _PHASE - _WORD) - 1) == self.word + 1

    def answers(self, token: int, by_parity: bool) -> bool:
        """Whether the phase of a token, or of a parity, is complete. Of a parity the lowest bit
        counts: Triton's kernels ask with -1 for an odd one."""
        return self.phase & 1 != token & 1 if by_parity else self.phase > token >> _PHASE


@dataclass(frozen=True, slots=True)
class Refused:
    """A thread asked an mbarrier whether a phase is complete, and it was not."""

    barrier: MBarrier
    token: int
    by_parity: bool
    site: Site


def shared_address(ctx: Context, operand: Operand) -> Fetch:
    """An address within shared memory, given as one or as a generic address."""
    fetch = ctx.address(operand)
    window = np.uint64(WINDOWS["shared"])

    def inside(f: Frame) -> Array:
        value = fetch(f).astype(np.uint64)
        return np.where(value >= window, value - window, value)

    return inside


def site_of(ctx: Context, ins: Instruction, width: int, semantics: Semantics) -> Site:
    near = any(word in ("shared", "shared::cta") for word in ins.modifiers)
    far = "shared::cluster" in ins.modifiers or not near
    return Site(ctx.module.span(ins), ins.name, "shared", width, False, semantics, far=far)


def near_site(ctx: Context, ins: Instruction, semantics: Semantics) -> Site:
    """What the manual permits at mbarriers of the thread's own block alone."""
    return replace(site_of(ctx, ins, 8, semantics), far=False)


def barriers_at(
    f: Frame, site: Site, address: Array, *, fresh: bool = False
) -> Iterator[tuple[int, int, MBarrier]]:
    """For each active thread, in order: its number among them, itself, and its barrier."""
    where = np.broadcast_to(f.active_part(address), (f.count,))
    for region, chosen, index in places(f, site, where):
        assert isinstance(chosen, slice)
        mark_stored(region, index, U64)
        for number, (thread, place) in enumerate(
            zip(f.index.tolist(), index.tolist(), strict=True)
        ):
            found = f.batch.mbarriers.get(place)
            if fresh:
                block, word = divmod(
                    place, max(1, region.data.size // f.batch.blocks // site.width)
                )
                found = f.batch.mbarriers[place] = MBarrier(0, 0, block=block, word=word)
                occupy(f.batch, place, occupied=True)
            if found is None:
                raise _absent(f, site, thread)
            yield number, thread, found


def _number(f: Frame, fetch: Fetch | None, default: int) -> list[int]:
    if fetch is None:
        return [default] * f.count
    given: list[int] = np.broadcast_to(f.active_part(fetch(f)), (f.count,)).tolist()
    return given


def scope_at(ins: Instruction) -> Scope:
    """The scope of an operation on an mbarrier; that of a block where none is written."""
    return Scope.CLUSTER if "cluster" in ins.modifiers else Scope.BLOCK


def arrive_at(f: Frame, site: Site, barrier: MBarrier, thread: int, count: int, bytes_: int,
              scope: Scope, releases: bool = True) -> int:  # fmt: skip
    """One arrival, which may expect bytes first; gives the token of the state before."""
    token = barrier.token()
    if f.batch.races is not None:
        barrier.tell(f, thread, scope, releases)
    barrier.bytes += bytes_
    barrier.awaited += bytes_
    counted(f, site, barrier, thread, count)
    return token


def counted(f: Frame, site: Site, barrier: MBarrier, thread: int, count: int) -> None:
    """Arrivals of a thread are there; the next phase may begin."""
    barrier.came.append(thread)
    barrier.pending -= count
    if barrier.pending < 0:
        message = f"{-barrier.pending} arrivals more than were expected"
        raise site.error(f, message, thread, SynchronisationError)
    barrier.settle()


# -- for proofs -----------------------------------------------------------------------------------


def begun(f: Frame, site: Site, barrier: MBarrier, thread: int) -> None:
    """An mbarrier is new; a later one at the same place is another."""
    skeleton, shared = f.batch.skeleton, f.batch.shared
    assert skeleton is not None
    place = next(at for at, each in f.batch.mbarriers.items() if each is barrier)
    block, byte = divmod(place * 8, max(1, shared.data.size // f.batch.blocks))
    before = [
        number for number, (_, at, b) in enumerate(skeleton.mbarriers) if (b, at) == (block, byte)
    ]
    if before and before[-1] not in skeleton.invalid:
        skeleton.fail("mbarrier", "an mbarrier is initialised again", site.span)
    skeleton.begin(barrier, byte, block, thread, site.span)


def ended(skeleton: Skeleton, site: Site, barrier: MBarrier | None, thread: int) -> None:
    """An mbarrier is made invalid; its place may be used again."""
    if barrier is None:
        skeleton.fail("mbarrier", "there is no mbarrier here to make invalid", site.span)
        return
    number = skeleton.number(barrier)
    skeleton.invalid.add(number)
    skeleton.note([thread], Event(Act.INVAL, number, site=skeleton.site(site.span)))


def noted(
    f: Frame, site: Site, act: Act, barrier: MBarrier, thread: int, amount: int, bytes_: int,
    phase: int | None = None, blocks: tuple[int, ...] = (), how: int = 0,
) -> None:  # fmt: skip
    """An event of the skeleton, in the phase that the mbarrier is in if no other is named."""
    skeleton = f.batch.skeleton
    assert skeleton is not None
    if act in (Act.ARRIVE, Act.EXPECT, Act.COPY):
        brings = act is Act.COPY
        if brings and not bytes_:
            message = "no phase waits for a copy of no bytes, so what it orders is not known"
            skeleton.fail("mbarrier", message, site.span)
        skeleton.count(barrier, 0 if brings else bytes_, bytes_ if brings else 0)
    phase = barrier.phase if phase is None else phase
    number = skeleton.number(barrier)
    place = skeleton.site(site.span)
    skeleton.note([thread], Event(act, number, phase, amount, bytes_, place, blocks, how))


def _how(f: Frame, scope: Scope, strong: bool, reaches: bool) -> int:
    """How an arrival or a wait hands on, or hears, what was done; `reaches`: other blocks, too."""
    assert f.batch.skeleton is not None
    narrow = scope is Scope.BLOCK and reaches and f.batch.skeleton.cluster > 1
    return NARROW * narrow | RELAXED * (not strong)


def mbarrier(ctx: Context, ins: Instruction) -> Step:
    return _KINDS[ins.modifiers[0]](ctx, ins)


def _manner(kind: Kind) -> Semantics:
    return Semantics(kind, Scope.CLUSTER, 8, mbarrier=True) if kind.strong else Semantics(kind)


def _init(ctx: Context, ins: Instruction) -> Step:
    address, count = shared_address(ctx, ins.operands[0]), ctx.read(ins.operands[1], "u32")
    site = near_site(ctx, ins, Semantics(Kind.WRITE, begins=True))

    def step(f: Frame) -> None:
        counts = _number(f, count, 1)
        for number, thread, barrier in barriers_at(f, site, address(f), fresh=True):
            if not 1 <= counts[number] <= MOST:
                message = f"a barrier for {counts[number]} arrivals"
                raise site.error(f, message, thread, SynchronisationError)
            barrier.expected = barrier.pending = counts[number]
            if f.batch.skeleton is not None:
                begun(f, site, barrier, thread)

    return step


def _inval(ctx: Context, ins: Instruction) -> Step:
    address = shared_address(ctx, ins.operands[0])
    site = near_site(ctx, ins, Semantics(Kind.WRITE, mbarrier=True))

    def step(f: Frame) -> None:
        where = np.broadcast_to(f.active_part(address(f)), (f.count,))
        for region, chosen, index in places(f, site, where):
            mark_stored(region, index, U64, stored=False)  # what is there is no value
            for thread, place in zip(f.index[chosen].tolist(), index.tolist(), strict=True):
                barrier = f.batch.mbarriers.pop(place, None)
                occupy(f.batch, place, occupied=False)
                if f.batch.skeleton is not None:
                    ended(f.batch.skeleton, site, barrier, thread)

    return step


def _arrive(ctx: Context, ins: Instruction) -> Step:
    """arrive and arrive_drop; a last operand is a count, or of expect_tx so many bytes."""
    store = ctx.write(ins.operands[0], "b64")
    address = shared_address(ctx, ins.operands[1])
    more = ctx.read(ins.operands[2], "u32") if len(ins.operands) > 2 else None
    wants_state = not (isinstance(ins.operands[0], Symbol) and ins.operands[0].name == "_")
    if "shared::cluster" in ins.modifiers and wants_state:
        raise ctx.fail(f"{ins.name} returns no state: its destination is '_'", ins)
    semantics = _manner(Kind.ATOMIC)
    site = near_site(ctx, ins, semantics) if wants_state else site_of(ctx, ins, 8, semantics)
    expects, drops = "expect_tx" in ins.modifiers, "arrive_drop" in ins.modifiers
    releases, scope = "relaxed" not in ins.modifiers, scope_at(ins)

    def step(f: Frame) -> None:
        given, tokens = _number(f, more, 0 if expects else 1), np.zeros(f.count, np.uint64)
        for number, thread, barrier in barriers_at(f, site, address(f)):
            count, bytes_ = (1, given[number]) if expects else (given[number], 0)
            if not 1 <= count <= MOST:
                message = f"{count} arrivals at once; there are 1 to {MOST}"
                raise site.error(f, message, thread, SynchronisationError)
            if drops:
                barrier.expected -= count
            before = barrier.phase
            if f.batch.skeleton is not None:
                how = _how(f, scope, releases, barrier.block != f.batch.block_of[thread])
                noted(f, site, Act.ARRIVE, barrier, thread, count, bytes_, how=how)
                if drops:
                    message = "arrive_drop changes how many arrivals later phases wait for"
                    f.batch.skeleton.fail("mbarrier", message, site.span)
            tokens[number] = arrive_at(f, site, barrier, thread, count, bytes_, scope, releases)
            if "noComplete" in ins.modifiers:
                if barrier.phase != before:
                    message = "this arrival completes the phase, which it must not"
                    raise site.error(f, message, thread, SynchronisationError)
                if f.batch.skeleton is not None:  # as of bytes, another arrival comes behind it
                    noted(f, site, Act.EXPECT, barrier, thread, 0, 0)
        store(f, f.spread(tokens))

    return step


def _bytes(ctx: Context, ins: Instruction) -> Step:
    """expect_tx and complete_tx."""
    address, count = shared_address(ctx, ins.operands[0]), ctx.read(ins.operands[1], "u32")
    site = site_of(ctx, ins, 8, _manner(Kind.ATOMIC))
    sign = 1 if "expect_tx" in ins.modifiers else -1

    def step(f: Frame) -> None:
        counts = _number(f, count, 0)
        for number, thread, barrier in barriers_at(f, site, address(f)):
            if f.batch.skeleton is not None:
                act = Act.EXPECT if sign > 0 else Act.COPY
                noted(f, site, act, barrier, thread, 0, counts[number])
            barrier.bytes += sign * counts[number]
            barrier.awaited += counts[number] if sign > 0 else 0
            barrier.settle()

    return step


def _wait(ctx: Context, ins: Instruction) -> Step:
    """test_wait and try_wait, by a token or by the parity of a phase."""
    store = ctx.write(ins.operands[0], "pred")
    address = shared_address(ctx, ins.operands[1])
    by_parity = "parity" in ins.modifiers
    wanted = ctx.read(ins.operands[2], "u32" if by_parity else "b64")
    site = near_site(ctx, ins, _manner(Kind.STRONG_READ))
    acquires, scope = "relaxed" not in ins.modifiers, scope_at(ins)

    def step(f: Frame) -> None:
        given = np.broadcast_to(f.active_part(wanted(f)), (f.count,))
        answers = np.zeros(f.count, bool)
        tokens = given & given.dtype.type(1) if by_parity else given
        for at, barrier, token in _asked(f, site, address(f), tokens):
            if not by_parity and not barrier.gave(token):
                message = "asks with a state that no arrival at this mbarrier gave"
                raise site.error(f, message, int(f.index[at[0]]), SynchronisationError)
            yes = barrier.answers(token, by_parity)
            if not yes and barrier.coming:
                barrier.land()
                yes = barrier.answers(token, by_parity)
            answers[at] = yes
            threads = f.index[at]
            if f.batch.refused is not None and not yes:
                refused = Refused(barrier, token, by_parity, site)
                f.batch.refused.update(dict.fromkeys(threads.tolist(), refused))
            if yes and f.batch.skeleton is not None:
                passed = barrier.phase - 1 if by_parity else token >> _PHASE
                act, how = Act.WAIT if by_parity else Act.TOKEN, _how(f, scope, acquires, True)
                for thread in threads.tolist():
                    noted(f, site, act, barrier, thread, 0, 0, passed, how=how)
            if yes and f.batch.races is not None:
                barrier.passed(f, threads, scope, acquires=acquires)
        store(f, f.spread(answers))

    return step


def _asked(
    f: Frame, site: Site, address: Array, tokens: Array
) -> Iterator[tuple[Array, MBarrier, int]]:
    """Who asks for which phase of which barrier: positions among the active threads.

    Those that ask the same come together. Where some ask otherwise of the same barrier they come in
    their order: an answer may be the end of a phase.
    """
    where = np.broadcast_to(f.active_part(address), (f.count,))
    for region, chosen, index in places(f, site, where):
        assert isinstance(chosen, slice)
        mark_stored(region, index, U64)
        fresh = np.ones(index.size, bool)
        fresh[1:] = (index[1:] != index[:-1]) | (tokens[1:] != tokens[:-1])
        heads = np.flatnonzero(fresh)
        every = list(zip(index[heads].tolist(), tokens[heads].tolist(),
                         np.split(np.arange(index.size), heads[1:]), strict=True))  # fmt: skip
        asked = {(place, token) for place, token, _ in every}
        if len({place for place, _ in asked}) == len(asked):
            groups: dict[tuple[int, int], list[Array]] = {}
            for place, token, numbers in every:
                groups.setdefault((place, token), []).append(numbers)
            every = [(*each, np.concatenate(parts)) for each, parts in groups.items()]
        for place, token, numbers in every:
            found = f.batch.mbarriers.get(place)
            if found is None:
                raise _absent(f, site, int(f.index[numbers[0]]))
            yield numbers, found, token


def _absent(f: Frame, site: Site, thread: int) -> KernelError:
    message = "there is no mbarrier here: nobody initialised it"
    return site.error(f, message, thread, SynchronisationError)


def _pending(ctx: Context, ins: Instruction) -> Step:
    store, token = ctx.write(ins.operands[0], "b32"), ctx.read(ins.operands[1], "b64")
    return lambda f: store(f, (token(f) & np.uint64(MOST)).astype(np.uint32))


def arrive_after_copies(ctx: Context, ins: Instruction) -> Step:
    """cp.async.mbarrier.arrive: an arrival that comes when the thread's copies are done.

    That is as late as it can be: when somebody waits. For races the copies are done when the phase
    is complete, for those that wait for it.
    """
    address = shared_address(ctx, ins.operands[0])
    site = site_of(ctx, ins, 8, _manner(Kind.ATOMIC))
    expected = "noinc" in ins.modifiers

    def step(f: Frame) -> None:
        for _, thread, barrier in barriers_at(f, site, address(f)):
            if f.batch.races is not None:
                barrier.tells_of_copies(f.batch)
                completion = barrier.completion(thread % f.batch.block_size)
                f.batch.copies.track(f.batch.races, thread, completion)
                if not f.batch.races.strict:  # by the manual it tells of its thread's copies alone
                    barrier.tell(f, thread, Scope.BLOCK, releases=True)
            if f.batch.skeleton is not None:
                noted(f, site, Act.LATER, barrier, thread, int(expected), 0)
            barrier.pending += not expected
            barrier.coming.append((0, partial(_arrived, f, site, barrier, thread, barrier.phase)))

    return step


def _arrived(f: Frame, site: Site, barrier: MBarrier, thread: int, issued: int) -> None:
    """An arrival comes that was issued in a phase, and may be counted in a later one."""
    if f.batch.skeleton is not None and barrier.phase != issued:
        message = "an arrival is issued in one phase of its mbarrier, and comes in another"
        f.batch.skeleton.fail("C1", message, site.span)
    counted(f, site, barrier, thread, 1)


_KINDS: dict[str, Compile] = {
    "init": _init, "inval": _inval, "arrive": _arrive, "arrive_drop": _arrive, "expect_tx": _bytes,
    "complete_tx": _bytes, "test_wait": _wait, "try_wait": _wait, "pending_count": _pending,
}  # fmt: skip
TABLE: dict[str, Compile] = {"mbarrier": mbarrier}
