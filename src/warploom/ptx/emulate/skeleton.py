"""The skeleton of a run: what each thread did that others may wait for, in its own order.

Comes in: the events of a batch as they happen, noted by barriers, copies and products. Goes out:
agents. Threads that did the same are one agent, so a skeleton is small however many threads there
are. `ptx/prove` asks whether every schedule has the same skeleton.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warploom.errors import Span

Array = npt.NDArray[Any]
MOST_EVENTS = 1 << 18  # of one batch
ACQUIRES, RELEASES = 1, 2  # what an order does, as `bytes` of its event
# How an arrival or a wait is written: in the scope of a block; handing on nothing. How a fence is:
# that of one write or of one loop. How a remote access is: it only reads; it counts in a phase.
NARROW, RELAXED = 1, 2
OWN = 1
READS, COUNTS = 1, 2
NOWHERE = -1
GRID = ("grid",)  # the group of all blocks, which meet in a driver's workspace
TURNS = "turns"  # how a loop asks that waits for it
ELSEWHERE = "the driver's workspace is looked at where no block adds"
_WORD = 4  # where in that their count lies
_TURN = 1 << 31  # what all of them add
MAY_DEPEND = "what this load sees may depend on who came first"


class Act(Enum):
    """What an event is; each has the mbarrier or the group of threads that it is about."""

    INIT = "init"
    ARRIVE = "arrive"  # `amount` arrivals, which may expect `bytes` first
    EXPECT = "expect"  # bytes, without an arrival
    COPY = "copy"  # the issue of a copy that brings bytes
    LATER = "later"  # the issue of an arrival that comes when copies are done
    WAIT = "wait"  # a wait by parity that passed; `phase` is the one that was complete
    TOKEN = "token"  # noqa: S105 - the same by the token of an arrival
    COME = "come"  # to a barrier of threads, for `amount` of them where it says how many
    GO = "go"  # on from it
    REMOTE = "remote"  # an access of the shared memory of another block; `phase` is its number
    INVAL = "inval"  # an mbarrier is made invalid
    FENCE = "fence"  # what was initialised is visible for copies and for other blocks
    ORDERS = "orders"  # a fence of memory, or the order of a flag's own: of `amount` as its scope
    EXIT = "exit"

    def __repr__(self) -> str:
        return self.value


class Event(NamedTuple):
    act: Act
    where: Any = None  # the number of an mbarrier; or a group: its kind, then who
    phase: int = 0
    amount: int = 0
    bytes: int = 0
    site: int = NOWHERE  # in the list of places
    blocks: tuple[int, ...] = ()  # whose shared memory a copy or an access touches
    how: int = 0


@dataclass(frozen=True, slots=True)
class Agent:
    """Threads of one block that did the same."""

    block: int
    threads: tuple[int, ...]  # of the batch
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """An mbarrier when all threads have left: its phases are those that are complete."""

    name: str
    block: int
    expected: int
    phases: int
    pending: int
    bytes: int
    most: int  # bytes that were expected, or came, in one phase
    byte: int = 0  # where it lies in the shared memory of its block


@dataclass(frozen=True, slots=True)
class Broken:
    """A condition that does not hold, as it was seen while the kernel ran."""

    condition: str
    message: str
    site: int


@dataclass(frozen=True, slots=True)
class FlagLoop:
    """A loop that looks at a flag until a comparison lets it go; `taken`: by its branch, or past
    it. What it is compared with is a number, or the register with this slot."""

    load: Span
    compare: str
    type: str
    number: int | None
    slot: int
    holds: bool  # whether the loop is left where the comparison holds
    taken: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """The skeleton of a batch; `first` is its first block."""

    agents: tuple[Agent, ...]
    mbarriers: tuple[Ended, ...]
    sites: tuple[Span, ...]
    broken: tuple[Broken, ...]
    cluster: int
    first: int
    complete: bool  # whether all events were kept
    strict: bool = False  # judged by the manual alone
    parted: bool = False  # whether lanes of some warp went different ways
    seen: dict[int, frozenset[int]] = field(default_factory=dict)  # by load, who wrote what it saw
    initial: dict[Any, int] = field(default_factory=dict)  # of flags
    regions: dict[int, str] = field(default_factory=dict)  # … the memory that they are in
    plain: frozenset[Any] = frozenset()  # flags that are written by plain stores, too
    left: tuple[int, ...] = ()  # sites of cp.async that their threads did not wait for
    loops: tuple[FlagLoop, ...] = ()
    block_threads: int = 0
    practice: frozenset[str] = frozenset()  # what GPUs do, of which the manual says less
    # By what reads a tensor map in memory: who wrote it there, or nobody.
    maps: dict[int, frozenset[int]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Skeleton:
    """Notes events of a batch: the history of a thread is a place in a tree of events."""

    threads: int
    block_size: int
    cluster: int
    first: int
    node: Array = field(init=False)
    parents: list[int] = field(default_factory=lambda: [0])
    events: list[Event] = field(default_factory=lambda: [Event(Act.EXIT)])
    after: dict[tuple[int, Event], int] = field(default_factory=dict)
    sites: dict[Span, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # of mbarriers, by identity
    mbarriers: list[tuple[Any, int, int]] = field(default_factory=list)  # with place and block
    invalid: set[int] = field(default_factory=set)  # mbarriers that are no more
    most: dict[int, list[int]] = field(default_factory=dict)  # by mbarrier: phase, in, out, most
    generations: dict[Hashable, int] = field(default_factory=dict)
    products: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # by group and warp
    broken: list[Broken] = field(default_factory=list)
    practice: set[str] = field(default_factory=set)
    told: set[tuple[str, Span]] = field(default_factory=set)  # what is broken, each once
    loops: Mapping[int, FlagLoop] = field(default_factory=dict)  # by identity of their last block
    looked: dict[int, tuple[Any, Span, int]] = field(default_factory=dict)  # by thread, last flag
    initial: dict[Any, int] = field(default_factory=dict)
    regions: dict[int, str] = field(default_factory=dict)  # of flags, by where they begin
    plain: set[Any] = field(default_factory=set)
    left: set[int] = field(default_factory=set)  # where copies began that nobody waited for
    passed: set[Any] = field(default_factory=set)  # flags that somebody has waited for
    workspace: int | None = None  # where blocks meet, if their loops are understood
    added: int = 0  # by blocks that came since all had come
    arrived: dict[int, int] = field(default_factory=dict)  # by thread, in which phase
    writers: Array | None = None  # of each byte of shared memory: where it was written last
    # The same of global memory, by region, where tensor maps may be written there.
    far: dict[int, Array] | None = None
    maps: dict[int, set[int]] = field(default_factory=dict)
    seen: dict[int, set[int]] = field(default_factory=dict)
    complete: bool = True
    strict: bool = False
    parted: bool = False

    def __post_init__(self) -> None:
        self.node = np.zeros(self.threads, np.int64)

    # -- noting ---------------------------------------------------------------------------------

    def site(self, span: Span) -> int:
        return self.sites.setdefault(span, len(self.sites))

    def note(self, threads: Iterable[int] | Array, event: Event) -> None:
        chosen = np.asarray(threads)
        if chosen.size == 1:
            one = int(chosen.reshape(-1)[0])
            self.node[one] = self._child(int(self.node[one]), event)
            return
        before = self.node[chosen]
        for parent in np.unique(before).tolist():
            self.node[chosen[before == parent]] = self._child(parent, event)

    def _child(self, parent: int, event: Event) -> int:
        found = self.after.get((parent, event))
        if found is None:
            if len(self.events) > MOST_EVENTS:
                self.complete = False
                return parent
            found = self.after[parent, event] = len(self.events)
            self.parents.append(parent)
            self.events.append(event)
        return found

    def note_once(self, threads: Array, event: Event) -> None:
        """Unless it is what these threads did last."""
        last = self.node[threads]
        fresh = [each for each in np.unique(last).tolist() if self.events[each] != event]
        if fresh:
            self.note(threads[np.isin(last, fresh)], event)

    def fail(self, condition: str, message: str, span: Span) -> None:
        self.broken.append(Broken(condition, message, self.site(span)))

    def fail_once(self, condition: str, message: str, span: Span) -> None:
        if (condition, span) not in self.told:
            self.told.add((condition, span))
            self.fail(condition, message, span)

    def by_practice(self, condition: str, message: str, span: Span, assumed: str) -> None:
        """What the manual does not allow, but GPUs do: that is assumed, if it may be."""
        if self.strict:
            self.fail_once(condition, message, span)
        else:
            self.practice.add(assumed)

    # -- mbarriers ------------------------------------------------------------------------------

    def begin(self, barrier: Any, byte: int, block: int, thread: int, span: Span) -> None:
        """A thread initialised an mbarrier, at a byte of a block's shared memory."""
        number = self.numbers[id(barrier)] = len(self.mbarriers)
        self.mbarriers.append((barrier, byte, block))
        event = Event(Act.INIT, number, amount=barrier.expected, site=self.site(span))
        self.note([thread], event)

    def number(self, barrier: Any) -> int:
        return self.numbers[id(barrier)]

    def count(self, barrier: Any, expected: int, brought: int) -> None:
        """Bytes that a phase expects, or that come."""
        tally = self.most.setdefault(self.number(barrier), [0, 0, 0, 0])
        if tally[0] != barrier.phase:
            tally[:3] = [barrier.phase, 0, 0]
        tally[1] += expected
        tally[2] += brought
        tally[3] = max(tally[1:])

    # -- shared memory --------------------------------------------------------------------------

    def touch(
        self, span: Span, size: int, start: Array, width: int, *, reads: bool, writes: bool,
    ) -> None:  # fmt: skip
        """Bytes of shared memory, of `size` in all, are read or written by an instruction."""
        if self.writers is None:
            self.writers = np.full(size, NOWHERE, np.int32)
        site, places = self.site(span), (np.asarray(start)[:, None] + np.arange(width)).reshape(-1)
        if reads:
            self.seen.setdefault(site, set()).update(np.unique(self.writers[places]).tolist())
        if writes:
            self.writers[places] = site

    # -- shared memory of other blocks ----------------------------------------------------------

    def reach(self, threads: Array, block: int, span: Span, how: int) -> None:
        """Threads access the shared memory of another block."""
        event = Event(Act.REMOTE, None, block, site=self.site(span), blocks=(block,), how=how)
        self.note_once(threads, event)

    # -- tensor maps ----------------------------------------------------------------------------

    def write_far(self, span: Span, region: Any, start: Array, width: int) -> None:
        """Bytes of global memory are written, of which a tensor map may be made."""
        if self.far is not None:
            places = (np.asarray(start)[:, None] + np.arange(width)).reshape(-1)
            self._far(region)[places] = self.site(span)

    def read_map(self, span: Span, region: Any, start: int, width: int) -> None:
        """A tensor map of global memory is read: it was written there, or found there."""
        found = {NOWHERE}
        if self.far is not None:
            found = set(np.unique(self._far(region)[start : start + width]).tolist())
        self.maps.setdefault(self.site(span), set()).update(found)

    def _far(self, region: Any) -> Array:
        assert self.far is not None
        return self.far.setdefault(region.base, np.full(region.data.size, NOWHERE, np.int32))

    # -- flags ----------------------------------------------------------------------------------

    def fence(self, threads: Array, scope: int, ways: int) -> None:
        """Threads pass a fence; kept only where it may order something that is looked into."""
        if self.loops or self.strict or self.cluster > 1:
            self.note_once(threads, Event(Act.ORDERS, None, 0, int(scope), ways))

    def _orders(self, threads: Array, scope: int, ways: int) -> None:
        """A write of a flag releases, or a loop that looks at one acquires."""
        if self.loops and scope:
            self.note_once(threads, Event(Act.ORDERS, None, 0, int(scope), ways, how=OWN))

    def look(self, span: Span, threads: Array, region: Any, start: Array, acquires: int) -> None:
        """Threads look at places of global memory, and acquire in a scope, or in none (0)."""
        for thread, at in zip(threads.tolist(), np.asarray(start).tolist(), strict=True):
            if region.base == self.workspace:
                if at != _WORD:
                    self.fail_once("flags", ELSEWHERE, span)
                phase = self.generations.get(GRID, 0)
                self.looked[thread] = (GRID, span, phase if not self.added else NOWHERE)
                continue
            flag = ("flag", region.base, at)
            self.looked[thread] = (flag, span, acquires)
            self._begins(flag, region)

    def look_at_shared(self, span: Span) -> None:
        """Threads look at shared memory: what they see there is not followed as a flag is."""
        self.fail_once("memory", MAY_DEPEND, span)

    def _begins(self, flag: Any, region: Any) -> None:
        """What a flag holds before it is written for the first time."""
        if flag not in self.initial:
            self.initial[flag] = int(region.data[flag[2] : flag[2] + 4].view(np.uint32)[0])
            self.regions[region.base] = region.name

    def overwrite(self, region: Any, start: Array, width: int) -> None:
        """Copies and reductions of many bytes write places of global memory: none is a flag."""
        for at in np.asarray(start).tolist() if self.loops else ():
            self.plain |= {
                ("flag", region.base, each) for each in range(at // 4 * 4, at + width, 4)
            }

    def write(
        self, span: Span, threads: Array, region: Any, start: Array, values: Array, *, width: int,
        adds: bool, plain: bool, releases: int,
    ) -> None:  # fmt: skip
        """Threads store to, or add to, places of global memory that may be flags.

        What is written when somebody has passed is of phase 1: it sets a flag back.
        """
        if region.base == self.workspace:
            good = adds and width == _WORD and not (np.asarray(start) != _WORD).any()
            if not good:
                self.fail("flags", "the driver's workspace is written in another way", span)
            self._come_to_grid(span, threads, values)
            return
        self._orders(threads, releases, RELEASES)
        for thread, at, value in zip(
            threads.tolist(), np.asarray(start).tolist(), values.tolist(), strict=True
        ):
            flag = ("flag", region.base, at)
            words = {("flag", region.base, each) for each in range(at // 4 * 4, at + width, 4)}
            back = words & self.passed
            for each in back:
                event = Event(Act.COME, each, 1, int(value), int(adds), self.site(span))
                self.note([thread], event)
            if plain or width != 4:
                self.plain |= words - back
            if plain or width != 4 or back:
                continue
            self._begins(flag, region)
            event = Event(Act.COME, flag, 0, int(value), int(adds), self.site(span))
            self.note([thread], event)

    def leave(self, threads: Array, numbers: Array) -> None:
        """Threads leave loops in which they looked at flags; `numbers` is what they waited for."""
        for thread, number in zip(threads.tolist(), numbers.tolist(), strict=True):
            if thread in self.looked:
                flag, span, scope = self.looked[thread]
                if flag == GRID:
                    self._go_from_grid(span, thread, scope)
                    continue
                self.passed.add(flag)
                self.note([thread], Event(Act.GO, flag, 0, int(number), site=self.site(span)))
                self._orders(np.array([thread]), scope, ACQUIRES)

    def _come_to_grid(self, span: Span, threads: Array, values: Array) -> None:
        """Threads add to what their grid counts in its workspace."""
        for thread, value in zip(threads.tolist(), values.tolist(), strict=True):
            phase = self.arrived[thread] = self.generations.setdefault(GRID, 0)
            self.note([thread], Event(Act.COME, GRID, phase, int(value), site=self.site(span)))
            self.added += int(value)
            if self.added == _TURN:
                self.generations[GRID] += 1
                self.added = 0

    def _go_from_grid(self, span: Span, thread: int, seen: int) -> None:
        """A thread leaves a loop in which it waited for its grid: what it saw last is what all had
        added, and nothing that came later."""
        phase = self.arrived.get(thread, NOWHERE)
        if seen != phase + 1 or phase == NOWHERE:
            self.fail("flags", "in this run it was seen here that blocks came the next time", span)
        self.note([thread], Event(Act.GO, GRID, phase, site=self.site(span)))

    def divided(self, some: Array, rest: Array, starts: Array) -> None:
        """Some threads go one way and the rest another; `starts` are the first ones of warps."""
        if not self.parted:
            both = [np.logical_or.reduceat(each, starts) for each in (some, rest)]
            self.parted = bool((both[0] & both[1]).any())

    # -- threads that meet ----------------------------------------------------------------------

    def come(
        self, threads: Array, group: Hashable, span: Span, needed: int = 0, how: int = 0
    ) -> None:
        """`needed`: for how many threads a named barrier is; 0 for all."""
        phase = self.generations.setdefault(group, 0)
        self.note(threads, Event(Act.COME, group, phase, needed, site=self.site(span), how=how))

    def go(
        self,
        threads: Array,
        group: Hashable,
        span: Span,
        phase: int | None = None,
        how: int = 0,
    ) -> None:
        phase = self.generations.get(group, 0) if phase is None else phase
        self.note(threads, Event(Act.GO, group, phase, site=self.site(span), how=how))

    def meet(self, threads: Array, warps: Array, named: Array, span: Span, how: int = 0) -> None:
        """Lanes of a warp are at one instruction together, each with the mask that it names. One
        that orders no memory is RELAXED."""
        key = warps.astype(np.int64) << 32 | named.astype(np.int64)
        for each in np.unique(key).tolist():
            lanes = threads[key == each]
            group = ("warp", each >> 32, each & 0xFFFFFFFF)
            if self._together(lanes, group, how):
                continue  # they met, and nothing was done since
            self.come(lanes, group, span, how=how)
            self.go(lanes, group, span, how=how)
            self.generations[group] += 1

    def _together(self, lanes: Array, group: Hashable, how: int) -> bool:
        last = np.unique(self.node[lanes])
        if last.size > 1:
            return False
        at = int(last[0])
        while at and self.events[at].act is Act.COME and self.events[at].where[0] == "wgmma":
            at = self.parents[at]
        met = self.events[at]
        return met[:2] == (Act.GO, group) and met.how <= how

    def multiply(self, threads: Array, group: int, closed: int, span: Span) -> None:
        """A warp's part of a product, in its group with the number `closed`."""
        event = Event(Act.COME, ("wgmma", group), closed, site=self.site(span))
        last = self.events[int(self.node[threads[0]])]
        if last[:3] != event[:3]:
            self.note(threads, event)
        kept = self.products.setdefault((group, int(threads[0])), [])
        if not kept or kept[-1] != closed:
            kept.append(closed)

    def multiplied(self, threads: Array, group: int, newest: int, span: Span) -> None:
        """A warp has waited for its products up to a group."""
        done = [each for each in self.products.get((group, int(threads[0])), ()) if each <= newest]
        if done:
            self.note_once(threads, Event(Act.GO, ("wgmma", group), done[-1], site=self.site(span)))

    # -- what comes out -------------------------------------------------------------------------

    def recorded(self, name_of: Callable[[int], str]) -> Recorded:
        """`name_of` gives the name of a place of shared memory."""
        agents = []
        for leaf in np.unique(self.node).tolist():
            events = self._history(leaf)
            threads = np.flatnonzero(self.node == leaf)
            blocks = threads // self.block_size
            for block in np.unique(blocks).tolist():
                mine = tuple(threads[blocks == block].tolist())
                agents.append(Agent(block, mine, events))
        ended = tuple(self._ended(number, name_of) for number in range(len(self.mbarriers)))
        return Recorded(
            tuple(agents), ended, tuple(self.sites), tuple(self.broken), self.cluster, self.first,
            self.complete, self.strict, self.parted,
            {site: frozenset(who) for site, who in self.seen.items()}, self.initial, self.regions,
            frozenset(self.plain),
            tuple(sorted(self.left)),
            tuple(each for each in self.loops.values() if each.compare != TURNS), self.block_size,
            frozenset(self.practice), {site: frozenset(who) for site, who in self.maps.items()},
        )  # fmt: skip

    def _history(self, leaf: int) -> tuple[Event, ...]:
        out = []
        while leaf:
            out.append(self.events[leaf])
            leaf = self.parents[leaf]
        return tuple(reversed(out))

    def _ended(self, number: int, name_of: Callable[[int], str]) -> Ended:
        barrier, byte, block = self.mbarriers[number]
        most = self.most.get(number, [0, 0, 0, 0])[3]
        return Ended(
            name_of(byte), block, barrier.expected, barrier.phase, barrier.pending,
            barrier.bytes, most, byte,
        )  # fmt: skip
