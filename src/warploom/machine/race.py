"""Data races by happens-before: two threads, one place, a write, and nothing that orders the two.

Both evaluators feed it: accesses of many threads at once, and barriers; the emulator also fences,
flags and copies that end later. An access and an earlier one race if they are of different threads,
overlap, conflict (`semantics`: one writes, not both are strong enough), and the
earlier is not ordered before the later (`clock`, `flag`). Every such pair is seen, whatever the
order in which an evaluator happens to run its threads; what is reported is one race for each pair
of instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from warploom.errors import InternalError
from warploom.machine.async_completion import Completion, PendingCompletions
from warploom.machine.clock import Array, Clocks, Ints, Layout, Mask, Nested, Vector
from warploom.machine.flag import Flags, Order
from warploom.machine.knowledge import Knowledge, joined
from warploom.machine.semantics import BY_ORDER, ConflictScope, Kind, Scope, Semantics
from warploom.machine.shadow import ByLabel, History, Judge, Latest, UnderWay

Conflict = Callable[[Array, Array], Mask]  # a judge that does not ask for cells
Store = Latest | ByLabel | History | UnderWay | PendingCompletions
Pair = frozenset[tuple[Kind, Hashable]]
RELAXED = Order()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a race. `label` is whatever the evaluator calls the instruction."""

    kind: Kind
    block: int
    thread: int  # within the block
    label: Hashable = None
    under_way: bool = False  # by a copy that was not complete

    @property
    def words(self) -> str:
        return f"asynchronous {self.kind.value}" if self.under_way else self.kind.value


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to byte `offset` of a region, in the order in which they were seen.

    `same_value`: both wrote what is there, which hardware does not notice. `fence`: they are in
    order, but no fence lets the asynchronous way see what the first one wrote. `place` is the
    memory in words, where the evaluator has a name for it.
    """

    region: Hashable
    offset: int
    first: Side
    second: Side
    same_value: bool = False
    fence: bool = False
    place: str = ""

    @property
    def pair(self) -> Pair:
        """The two instructions, and what they do."""
        return frozenset((side.kind, side.label) for side in (self.first, self.second))


@dataclass(frozen=True)
class Writing:
    """Accesses that write: what they write is looked at only where two of them meet.

    `holds` says of each whether its value is there; `store` may be called before its time.
    """

    holds: Callable[[], Mask]
    store: Callable[[], None]

    @cached_property
    def before(self) -> Mask:
        """Whether its value was there before."""
        return self.holds()

    @cached_property
    def after(self) -> Mask:
        """Whether its value is there after all have written."""
        _ = self.before  # can only be seen until then
        self.store()
        return self.holds()


@dataclass(slots=True)
class _Shadow:
    """The accesses to one region, in cells of `unit` bytes that no access so far has divided."""

    size: int
    unit: int
    stores: dict[Semantics, Store] = field(default_factory=dict)

    def refine(self, unit: int) -> None:
        for store in self.stores.values():
            store.refine(self.unit // unit)
        self.unit = unit


class RaceDetector:
    """The accesses of one launch.

    `labels` is how many instructions there can be. `partial`: threads may synchronise in other
    groups than whole blocks and whole warps; `flags`: also by flags and fences, across blocks.
    `every`: a race for every pair of instructions is wanted, not only that there is one. `benign`:
    writes of the same value are none. `meetings`: that lanes met is told too (`lanes_meet`).
    `rounded`: pairs of writes that differ by rounding alone, which are no races either, but kept.
    """

    def __init__(
        self, blocks: int, block_threads: int, lanes: int, labels: int, *, partial: bool = False,
        flags: bool = False, every: bool = False, benign: bool = False, cluster: int = 1,
        meetings: bool = False, rounded: frozenset[Pair] = frozenset(),
    ) -> None:  # fmt: skip
        self.layout = Layout(blocks, block_threads, lanes, labels, cluster)
        self.partial = partial = partial or flags
        self.every = every
        self.benign = benign
        self.meetings = meetings and flags
        self.flags = Flags() if flags else None
        self.races: list[Race] = []
        self.rounding: list[Race] = []  # writes that differ by rounding alone
        self._rounded = rounded
        self._clock_type = Vector if partial else Nested
        self._shadows: dict[Hashable, _Shadow] = {}
        self._labels: dict[Hashable, int] = {}
        self._names: list[Hashable] = []
        self._seen: dict[Pair, Race] = {}
        self._ticks = 0
        self._sources = 0

    # -- batches and synchronisation ----------------------------------------------------------

    def start(self, first_block: int, blocks: int) -> None:
        """The next blocks run; from now on threads are numbered from the first of these."""
        self.clocks: Clocks = self._clock_type(self.layout, first_block, blocks, self._ticks)
        if self.flags is not None:
            self.flags.start()

    def end(self) -> None:
        """The blocks that ran are done; what flags tell of them is still true."""
        self._ticks = self.clocks.ticks if self.flags is not None else 0

    def forget(self, region: Hashable) -> None:
        """The region is new memory from now on."""
        self._shadows.pop(region, None)
        if self.flags is not None:
            self.flags.forget(region)

    def block_barrier(self, blocks: Array) -> None:
        """Whole blocks, numbered from the first of the batch, pass a barrier."""
        self.clocks.block_barrier(blocks)

    def warp_barrier(self, threads: Array) -> None:
        """The whole warps of these threads pass a barrier."""
        self.clocks.warp_barrier(threads)

    @property
    def vector(self) -> Vector:
        """The clocks for all other ways to synchronise: `release`, `acquire` and `meet`."""
        if not isinstance(self.clocks, Vector):
            raise InternalError("the race detector was not made for partial barriers")
        return self.clocks

    def proxy_fence(self, threads: Array) -> None:
        """What these threads wrote, or know of, may be read by the asynchronous way from now on.

        By whom that is known: it is handed on as all else is, under numbers of its own.
        """
        if isinstance(self.clocks, Vector):
            self.clocks.advance(threads)
            for thread in threads.tolist():
                known = self.clocks.knowledge(thread).renamed(self._as_fenced)
                self.clocks.learn(np.array([thread]), known)

    def _as_fenced(self, block: int) -> int | None:
        return _fenced(block) if 0 <= block < self.layout.blocks else None

    def lanes_meet(self, threads: Array, group: Array) -> None:
        """Lanes of one group are at one instruction, which orders no memory.

        What they did to an mbarrier is done all the same: whoever hears of one of them later may
        end it, as the last of those does that leave a `cuda::pipeline`.
        """
        self.vector.advance(threads)
        for name in np.unique(group).tolist():
            who = threads[group == name]
            known = joined(*[self.vector.knowledge(thread) for thread in who.tolist()])
            assert known is not None
            self.vector.learn(who, known.renamed(self._as_met))

    def _as_met(self, block: int) -> int | None:
        if 0 <= block < self.layout.blocks:
            return _met(block)
        return block if block < 0 and block % 2 == 0 else None

    def new_source(self) -> int:
        """A number for whoever tells that accesses are done (`async_completion`)."""
        self._sources += 1
        return self.layout.blocks + self._sources

    def fence(self, threads: Array, scope: Scope, order: Order) -> None:
        """These threads pass a fence."""
        if self.flags is not None:
            self.flags.fence(self.vector, threads, scope, order)

    def published(self, thread: int, scope: Scope, releases: bool) -> Knowledge | None:
        """What an arrival of a thread tells: all that it knows, or what it knew at a fence."""
        if releases:
            return self.vector.knowledge(thread)
        return None if self.flags is None else self.flags.fenced(self.vector, thread, scope)

    # -- accesses -----------------------------------------------------------------------------

    def access(
        self, region: Hashable, size: int, threads: Array, start: Array, width: int,
        semantics: Kind | Semantics, label: Hashable = None, *, order: Order = RELAXED,
        writing: Writing | None = None, completion: Completion | None = None,
        failed: Mask | None = None,
    ) -> list[Race]:  # fmt: skip
        """Notes that each thread touches `width` bytes from byte `start` on: once, in order, unless
        any synchronisation is followed (`partial`), when one may touch many places.

        Gives the races that are new. `failed`: swaps that found another value, and only read.
        """
        if not threads.size:
            return []
        if isinstance(semantics, Kind):
            semantics = Semantics(semantics, size=width if semantics.strong else 0)
        shadow = self._shadow(region, size, start, width)
        mine = self.clocks.now(threads) | np.int64(self._number(label) << self.layout.code_bits)
        if self.flags is not None:  # what an acquire orders is before the acquire itself
            if semantics.kind.strong:
                self.flags.strong(
                    self.vector, region, threads, start, semantics, order, mine, failed
                )
            elif semantics.kind.writes:
                self.flags.weak_write(region, start, width)
        first = start >> (shadow.unit.bit_length() - 1)
        found: list[Race] = []
        for part in range(width // shadow.unit):
            cells = first + part if part else first
            for chosen, how in _by_success(semantics, failed):
                some = (threads[chosen], cells[chosen], how, mine[chosen])
                found += self._cells(region, shadow, *some, writing)
            if completion is not None:
                self._told(shadow, semantics).begin(cells, mine, completion)
        self.races += found
        return found

    def complete(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Hashable,
    ) -> None:  # fmt: skip
        """Copies that were under way are done: from now on what they did is their threads'."""
        store = self._store(self._shadows[region], replace(semantics, under_way=False))
        for cells, mine in self._ended(region, threads, start, width, semantics, label):
            store.note(cells, mine, self.clocks, False)

    def land(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Hashable, completion: Completion,
    ) -> None:  # fmt: skip
        """Copies that were under way are done, for those who are told."""
        store = self._told(self._shadows[region], replace(semantics, told=1))
        for cells, mine in self._ended(region, threads, start, width, semantics, label):
            store.begin(cells, mine, completion)

    def _ended(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Hashable,
    ) -> Iterator[tuple[Array, Ints]]:  # fmt: skip
        """The cells and entries of copies that were under way, which they are no more."""
        shadow = self._shadows[region]
        mine = self.clocks.now(threads) | np.int64(self._number(label) << self.layout.code_bits)
        pending = shadow.stores[semantics]
        assert isinstance(pending, UnderWay)
        first = start >> (shadow.unit.bit_length() - 1)
        for part in range(width // shadow.unit):
            pending.done(first + part)
            yield first + part, mine

    def _told(self, shadow: _Shadow, semantics: Semantics) -> PendingCompletions:
        store = self._store(shadow, semantics)
        assert isinstance(store, PendingCompletions)
        return store

    def _shadow(self, region: Hashable, size: int, start: Array, width: int) -> _Shadow:
        ends = width | int(np.bitwise_or.reduce(start))
        unit = ends & -ends  # the largest power of two that divides width and places
        shadow = self._shadows.get(region)
        if shadow is None:
            shadow = self._shadows[region] = _Shadow(size, unit)
        elif unit < shadow.unit:
            shadow.refine(unit)
        return shadow

    def _store(self, shadow: _Shadow, semantics: Semantics) -> Store:
        store = shadow.stores.get(semantics)
        if store is None:
            cells = -(-shadow.size // shadow.unit)
            if semantics.told:
                store = PendingCompletions(cells, self.layout)
            elif semantics.under_way:
                store = UnderWay(cells, self.layout)
            elif self.partial:
                store = History(cells, self.layout, self.flags is not None)
            else:
                store = (ByLabel if self.every else Latest)(cells, self.layout)
            shadow.stores[semantics] = store
        return store

    def _number(self, label: Hashable) -> int:
        number = self._labels.get(label)
        if number is None:
            number = self._labels[label] = len(self._names)
            self._names.append(label)
            if number >= self.layout.labels:
                raise InternalError("more instructions than the race detector was made for")
        return number

    def _unfenced(self, entries: Array, threads: Array) -> Mask:
        """Writes that are unordered, or that no fence stands behind of which the reader knows."""
        bare = (entries != 0) & ~self._heard(entries, threads, _fenced)
        return np.asarray(bare | self.clocks.unordered(entries, threads))

    def _lacks_fence(
        self, semantics: Semantics, other: Semantics, entry: int, thread: Array
    ) -> bool:
        """Whether nothing but a fence between the ways to memory is missing."""
        if semantics.conflict_with(other) is not ConflictScope.UNFENCED:
            return False
        return not self.clocks.unordered(np.array([entry]), thread)[0]

    def _unmet(self, entries: Array, threads: Array) -> Mask:
        """Accesses that are unordered, and whose lanes met nobody that the reader heard of."""
        unordered = self.clocks.unordered(entries, threads)
        if self.meetings and unordered.any():
            unordered &= ~self._heard(entries, threads, _met)
        return unordered

    def _heard(self, entries: Array, threads: Array, number: Callable[[Array], Array]) -> Mask:
        """Whether each thread knows an access under the other number of its block."""
        layout = self.layout
        stamp = entries >> layout.stamp_shift
        return self.vector.told(
            number(layout.block(entries)), stamp, layout.inside(entries), threads
        )

    def _unobserved(
        self, conflict: Conflict, region: Hashable, unit: int, other: Semantics, now: frozenset[int]
    ) -> Judge:
        """Strong writes that are unordered, and that nobody read of whom the thread knows.

        A write is before what follows a strong read that sees it, though what the writer did
        before is not: the last block that counted may set the counter back.
        """
        clocks, flags = self.vector, self.flags
        assert flags is not None
        known: dict[tuple[int, int], Array] = {}

        def judge(entries: Array, threads: Array, cells: Array) -> Mask:
            bad = conflict(entries, threads)
            for at in np.flatnonzero(bad).tolist():
                place, thread = int(cells[at]) * unit // other.size * other.size, int(threads[at])
                if (place, thread) not in known:
                    known[place, thread] = flags.observed(clocks, region, place, thread, now)
                seen = known[place, thread]
                bad[at] = not flags.is_among(region, place, int(entries[at]), seen)
            return bad

        return judge

    def _judge(self, apart: ConflictScope) -> Conflict:
        """Which earlier accesses conflict with accesses now."""
        clocks, layout = self.clocks, self.layout
        match apart:
            case ConflictScope.UNORDERED:
                return clocks.unordered
            case ConflictScope.UNFENCED:
                return self._unfenced
            case ConflictScope.UNMET:
                return self._unmet
            case ConflictScope.ALWAYS:
                return lambda entries, threads: np.asarray(
                    (entries != 0) & (layout.differ(entries, clocks.now(threads)) != 0)
                )
            case _:
                group = layout.cluster if apart is ConflictScope.OTHER_CLUSTER else 1
                return lambda entries, threads: self._elsewhere(entries, threads, group)

    def _elsewhere(self, entries: Array, threads: Array, group: int) -> Mask:
        """Unordered accesses of other blocks, or of other groups of so many.

        At a flag in shared memory there are none, however many threads wait at it: whose they are
        is asked first, as what a thread knows of another takes much longer to find.
        """
        clocks, layout = self.clocks, self.layout
        theirs, mine = layout.block(entries), layout.block(clocks.now(threads))
        found: Mask = (entries != 0) & (theirs // group != mine // group)
        at = np.flatnonzero(found)
        if at.size:
            found[at] = clocks.unordered(entries[at], threads[at])
        return found

    def _cells(
        self, region: Hashable, shadow: _Shadow, threads: Array, cells: Array, semantics: Semantics,
        mine: Ints, writing: Writing | None,
    ) -> list[Race]:  # fmt: skip
        if not threads.size:
            return []
        found: list[tuple[Semantics, int, int, bool]] = []
        for other, store in shadow.stores.items():
            apart = semantics.conflict_with(other)
            if apart is ConflictScope.NEVER:
                continue
            judge = _of_any_cell(self._judge(apart))
            if isinstance(store, PendingCompletions):
                judge = store.unknown_to(self.vector.told)
            elif self.flags is not None and other.writes_for_readers and apart in BY_ORDER:
                now = frozenset(mine.tolist() if semantics.kind.strong else ())
                judge = self._unobserved(self._judge(apart), region, shadow.unit, other, now)
            met = store.earlier(cells, threads, judge)
            if not met or writing is None or not _both_only_write(semantics, other):
                found += [(other, one.entry, one.position, False) for one in met]
                continue
            for same in (False, True):
                at = np.flatnonzero(writing.before == same)
                found += [
                    (other, one.entry, int(at[one.position]), same)
                    for one in store.earlier(cells[at], threads[at], judge)
                ]
        own = semantics.conflict_with(semantics)
        store = self._store(shadow, semantics)
        at, others = store.note(cells, mine, self.clocks, own is not ConflictScope.NEVER)
        if at.size and own is not ConflictScope.NEVER:
            wrong = self._judge(own)(others, threads[at])
            at, others = at[wrong], others[wrong]
            alike = np.zeros(at.size, bool)
            if at.size and writing is not None and _both_only_write(semantics, semantics):
                alike = writing.after[at]
            for same in (False, True):
                first = np.flatnonzero(alike == same)[:1].tolist()
                found += [(semantics, int(others[i]), int(at[i]), same) for i in first]
        races = [
            Race(
                region, int(cells[position]) * shadow.unit, self._side(other, entry),
                self._side(semantics, int(mine[position])), same,
                self._lacks_fence(semantics, other, entry, threads[position : position + 1]),
            )
            for other, entry, position, same in found
            if not (same and self.benign)
        ]  # fmt: skip
        return self._fresh(races)

    def _fresh(self, races: list[Race]) -> list[Race]:
        """Those that are new, less those that differ by rounding alone."""
        fresh = [race for race in races if self._is_new(race)]
        if self._rounded:
            self.rounding += [race for race in fresh if race.pair in self._rounded]
            fresh = [race for race in fresh if race.pair not in self._rounded]
        return fresh

    def _side(self, semantics: Semantics, entry: int) -> Side:
        label = self._names[self.layout.label(entry)]
        return Side(semantics.kind, *self.layout.thread(entry), label, semantics.under_way)

    def _is_new(self, race: Race) -> bool:
        """Whether the pair of instructions is new, or worse than it was."""
        known = self._seen.get(race.pair)
        if known is not None and not known.same_value > race.same_value:
            return False
        self.races = [each for each in self.races if each is not known]
        self._seen[race.pair] = race
        return True


Blocks = TypeVar("Blocks", int, Array)


def _fenced(block: Blocks) -> Blocks:
    """Under which number a block is known by what a fence let the asynchronous way see."""
    return -1 - 2 * block


def _met(block: Blocks) -> Blocks:
    """Under which number a block is known by what its lanes had done when they met."""
    return -2 - 2 * block


def _of_any_cell(conflict: Conflict) -> Judge:
    return lambda entries, threads, _: conflict(entries, threads)


def _by_success(semantics: Semantics, failed: Mask | None) -> list[tuple[Any, Semantics]]:
    """Which accesses have which semantics; a swap that fails is a strong read."""
    if failed is None or not failed.any():
        return [(slice(None), semantics)]
    return [(~failed, semantics), (failed, replace(semantics, kind=Kind.STRONG_READ))]


def _both_only_write(one: Semantics, other: Semantics) -> bool:
    return not (one.kind.reads or other.kind.reads or other.under_way)
