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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.errors import InternalError
from warploom.machine.async_completion import Completion, Completions, PendingCompletions
from warploom.machine.clock import Array, Clocks, Ints, Layout, Mask, Nested, Vector
from warploom.machine.cumulative import Cumulative
from warploom.machine.flag import Flags, Order
from warploom.machine.judges import Cause, Home, Judges, of_any_cell
from warploom.machine.knowledge import Knowledge, joined
from warploom.machine.last import LastWrites
from warploom.machine.overlap import Footprint, Overlap
from warploom.machine.proxy import BEGUN, MET, NARROW, Fenced, Place, Ways, by_way, way_of
from warploom.machine.semantics import BY_FENCE, BY_ORDER, ConflictScope, Kind, Scope, Semantics
from warploom.machine.shadow import ByLabel, History, Judge, Latest, UnderWay
from warploom.machine.shadows import Conflicts, Shadows, Store, Writing

# Of an earlier access: its semantics and entry, the position of the one that meets it, whether both
# write one value, and whether GPUs get it wrong.
_Met = tuple[Semantics, int, int, bool, bool]
Pair = frozenset[tuple[Kind, Hashable]]
RELAXED = Order()
MAP_READ = Semantics(Kind.READ, under_way=True, tensor_map=True)  # until its copy is done


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

    `same_value`: both wrote what is there, which hardware does not notice. `cause` is what is
    missing between them; `breaks` is false of what the manual forbids, and all GPUs do right.
    `place` is the memory in words, where the evaluator has a name for it. `held` are the bytes that
    are there, and `given` those that the second brings, where they are known.
    """

    region: Hashable
    offset: int
    first: Side
    second: Side
    same_value: bool = False
    cause: Cause = Cause.ORDER
    breaks: bool = True
    place: str = ""
    held: bytes = b""
    given: bytes = b""

    @property
    def fence(self) -> bool:
        """Whether they are in order, and only a fence between two ways to memory is missing."""
        return self.cause in (Cause.PROXY, Cause.MAP, Cause.INIT)

    @property
    def pair(self) -> Pair:
        """The two instructions, and what they do."""
        return frozenset((side.kind, side.label) for side in (self.first, self.second))


class RaceDetector:
    """The accesses of one launch.

    `labels` is how many instructions there can be. `partial`: threads may synchronise in other
    groups than whole blocks and whole warps; `flags`: also by flags and fences, across blocks.
    `every`: a race for every pair of instructions is wanted, not only that there is one. `benign`:
    writes of the same value are none. `meetings`: that lanes met is told too (`lanes_meet`).
    `rounded`: pairs of writes that differ by rounding alone, which are no races either, but kept.
    `strict`: what the manual forbids is a race, also where it seldom shows on GPUs (`judges`).
    """

    def __init__(
        self, blocks: int, block_threads: int, lanes: int, labels: int, *, partial: bool = False,
        flags: bool = False, every: bool = False, benign: bool = False, cluster: int = 1,
        meetings: bool = False, rounded: frozenset[Pair] = frozenset(), strict: bool = False,
    ) -> None:  # fmt: skip
        self.layout = Layout(blocks, block_threads, lanes, labels, cluster)
        self.partial = partial = partial or flags
        self.every = every
        self.benign = benign
        self.flags = Flags(cumulative=Cumulative(strict)) if flags else None
        self.ways = Ways(self.layout)
        self.judges = Judges(self.layout, self.flags, meetings and flags, self.ways)
        self.strict = strict
        self.lenient = (False, True) if strict else (True,)
        self.races: list[Race] = []
        self.rounding: list[Race] = []  # writes that differ by rounding alone
        self._rounded = rounded
        self._clock_type = Vector if partial else Nested
        self._shadows: dict[Hashable, Shadows] = {}
        self._labels: dict[Hashable, int] = {}
        self._names: list[Hashable] = []
        self._seen: dict[Pair, Race] = {}
        self._ticks = 0
        self._sources = 0
        self._confined: set[Hashable] = set()
        self._begun: dict[int, Knowledge] = {}  # by thread: mbarriers that it tells of
        self.footprint: Footprint | None = None  # of this launch, where another may overlap it
        self.overlap: Overlap | None = None  # with launches before this one
        self.last: LastWrites | None = None
        self.undecided: dict[Hashable, tuple[Side, Side]] = {}  # strong accesses of two launches

    # -- batches and synchronisation ----------------------------------------------------------

    def start(self, first_block: int, blocks: int) -> None:
        """The next blocks run; from now on threads are numbered from the first of these."""
        self.clocks: Clocks = self._clock_type(self.layout, first_block, blocks, self._ticks)
        self.judges.start(self.clocks)
        self._begun = {}
        if self.flags is not None:
            self.flags.start()

    def end(self) -> None:
        """The blocks that ran are done; what flags tell of them is still true."""
        self._ticks = self.clocks.ticks if self.flags is not None else 0

    def forget(self, region: Hashable) -> None:
        """The region is new memory from now on."""
        self._shadows.pop(region, None)
        for each in (self.flags, self.last):
            if each is not None:
                each.forget(region)

    def confine(self, region: Hashable) -> None:
        """Each place of the region is reached by the blocks of one cluster alone."""
        self._confined.add(region)

    def _conflict(self, region: Hashable, one: Semantics, other: Semantics) -> ConflictScope:
        """The scope within which two accesses of a region conflict, if any can be outside of it."""
        found = one.conflict_with(other)
        if region in self._confined and (
            found is ConflictScope.OTHER_CLUSTER
            or (found is ConflictScope.OTHER_BLOCK and self.layout.cluster == 1)
        ):
            return ConflictScope.NEVER
        return found

    def _conflicts(self, region: Hashable, shadow: Shadows, semantics: Semantics) -> Conflicts:
        """The earlier accesses with which one conflicts, and where."""
        found = shadow.conflicts.get(semantics)
        if found is None:
            every = ((other, store, self._conflict(region, semantics, other))
                     for other, store in shadow.stores.items())  # fmt: skip
            found = shadow.conflicts[semantics] = [
                one for one in every if one[2] is not ConflictScope.NEVER
            ]
        return found

    def block_barrier(self, blocks: Array) -> None:
        """Whole blocks, numbered from the first of the batch, pass a barrier."""
        self.clocks.block_barrier(blocks)

    def warp_barrier(self, threads: Array) -> None:
        """The whole warps of these threads pass a barrier."""
        self.clocks.warp_barrier(threads)

    @property
    def vector(self) -> Vector:
        """The clocks for all other ways to synchronise: `release`, `acquire` and `meet`."""
        return self.judges.vector

    def proxy_fence(self, threads: Array, memory: Fenced = Fenced.ALL) -> None:
        """What these threads wrote there, or know of, may be read by the asynchronous way from now
        on.

        By whom that is known: it is handed on as all else is, under numbers of its own.
        """
        if isinstance(self.clocks, Vector):
            self.clocks.advance(threads)
            self.clocks.add_up(threads)
            for thread in threads.tolist():
                way = self.ways.of_fence(memory, self.clocks.block_number(thread))
                self._rename(thread, self.ways.plainly(way))

    def map_fence(self, threads: Array, place: Place | None, scope: Scope) -> None:
        """A fence before a tensor map is used: without a place what these threads know is on its
        way to those who use tensor maps; with one they may read the map that is there."""
        if not isinstance(self.clocks, Vector):
            return
        self.clocks.advance(threads)
        for thread in threads.tolist():
            block = self.clocks.block_number(thread)
            if place is not None:
                self._rename(thread, self.ways.taken(place, scope, block))
                continue
            for way in self.ways.of_release(scope, block):
                self._rename(thread, self.ways.plainly(way))

    def _rename(self, thread: int, number: Callable[[int], int | None]) -> None:
        """A thread knows what it knows under other numbers, too."""
        self.vector.learn(np.array([thread]), self.vector.knowledge(thread).renamed(number))

    def narrow(self, known: Knowledge | None) -> Knowledge | None:
        """What was told in a scope that does not reach the hearer: it orders nothing, but says what
        was meant to be ordered."""
        if known is None:
            return None
        self.judges.narrow = True
        return known.renamed(lambda number: by_way(NARROW, number) if number >= 0 else None)

    def init_fence(self, threads: Array) -> None:
        """A fence behind initialisations of mbarriers: who meets these threads knows of them."""
        self.vector.advance(threads)
        for thread in threads.tolist():
            known = self.vector.knowledge(thread).renamed(self.ways.plainly(BEGUN))
            self._begun[thread] = known
            self.vector.learn(np.array([thread]), known)

    def use_map(self, region: Hashable, place: int, thread: int) -> None:
        """What a thread reads next with `MAP_READ` is the tensor map at this place."""
        block = self.vector.block_number(thread)
        self.judges.map = self.ways.of_map((region, place), block)

    def lanes_meet(self, threads: Array, group: Array) -> None:
        """Lanes of one group are at one instruction, which orders no memory.

        What they did to an mbarrier is done all the same: whoever hears of one of them later may
        end it, as the last of those does that leave a `cuda::pipeline`.
        """
        self.vector.advance(threads)
        self.vector.add_up(threads)
        if self.judges.company is not None:
            self.judges.company.meet(self.vector, threads, group)
        for name in np.unique(group).tolist() if self.judges.meetings else ():
            who = threads[group == name]
            known = joined(*[self.vector.knowledge(thread) for thread in who.tolist()])
            assert known is not None
            self.vector.learn(who, known.renamed(self._as_met))

    def _as_met(self, block: int) -> int | None:
        if 0 <= block < self.layout.blocks:
            return by_way(MET, block)
        return block if way_of(block) == MET else None

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
        begun = self._begun.get(thread)
        fenced = None if self.flags is None else self.flags.fenced(self.vector, thread, scope)
        return joined(begun, fenced)

    # -- accesses -----------------------------------------------------------------------------

    def access(
        self, region: Hashable, size: int, threads: Array, start: Array, width: int,
        semantics: Kind | Semantics, label: Hashable = None, *, order: Order = RELAXED,
        writing: Writing | None = None,
        completion: Completion | Completions | None = None,
        failed: Mask | None = None, memory: Array | None = None,
    ) -> list[Race]:  # fmt: skip
        """Notes that each thread touches `width` bytes from byte `start` on: once, in order, unless
        any synchronisation is followed (`partial`), when one may touch many places.

        Gives the races that are new. `failed`: swaps that found another value, and only read.
        `memory`: the bytes of the region, where they are to be told.
        """
        if not threads.size:
            return []
        if isinstance(semantics, Kind):
            semantics = Semantics(semantics, size=width if semantics.strong else 0)
        shadow = self._shadow(region, size, start, width)
        mine = self.clocks.now(threads) | np.int64(self._number(label) << self.layout.code_bits)
        if self.last is not None and semantics.writes_for_readers:
            by = self.clocks, self.flags, region, threads, start
            rows = None if writing is None else writing.rows
            self.last.write(*by, width, semantics, label, mine, rows, failed)
        if self.flags is not None:  # what an acquire orders is before the acquire itself
            if semantics.kind.strong:
                of = self.vector, region, threads, start, semantics, order, mine, failed
                self.flags.strong(*of, width=width)
            elif semantics.kind.writes:
                self.flags.weak_write(region, start, width)
        first = start >> (shadow.unit.bit_length() - 1)
        found = self._overlapping(region, size, threads, start, width, semantics, mine)
        parts = width // shadow.unit
        if parts > 1 and self.partial and writing is None and failed is None:  # all at once
            first = (first[:, None] + np.arange(parts)).reshape(-1)
            threads, mine = np.repeat(threads, parts), np.repeat(mine, parts)
            completion, parts = None if completion is None else completion.repeated(parts), 1
        for part in range(parts):
            cells = first + part if part else first
            for chosen, how in _by_success(semantics, failed):
                some = (threads[chosen], cells[chosen], how, mine[chosen])
                found += self._cells(region, shadow, *some, writing, memory, width)
            if completion is not None:
                self._told(shadow, semantics).begin(cells, mine, completion)
        self.races += found
        return found

    def is_known(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics
    ) -> bool:  # fmt: skip
        """Whether such accesses now would race with nothing, by practice; they are not noted."""
        shadow = self._shadow(region, 0, start, width)
        mine = self.clocks.now(threads)
        first = start >> (shadow.unit.bit_length() - 1)
        for other, store, apart in self._conflicts(region, shadow, semantics):
            judge = self._judge(apart, store, region, shadow, other, mine, semantics, True)
            parts = (first + part for part in range(width // shadow.unit))
            if any(store.earlier(cells, threads, judge) for cells in parts):
                return False
        return True

    def wait_for_launches(self, threads: Array) -> None:
        """These threads wait until the launches before this one have ended."""
        if self.footprint is not None:
            self.footprint.waited = True
        if self.overlap is not None:
            for source in self.overlap.awaited:
                self.vector.learn(threads, Completion(source, 0).known(1))

    def _overlapping(
        self, region: Hashable, size: int, threads: Array, start: Array, width: int,
        semantics: Semantics, mine: Ints,
    ) -> list[Race]:  # fmt: skip
        """Accesses of launches that may still run; notes these for launches to come."""
        if self.footprint is not None:
            self.footprint.note(region, size, start, width, semantics.kind, mine)
        if self.overlap is None:
            return []
        none = np.zeros(threads.size, np.int64)
        races = []
        for met in self.overlap.met(
            region, start, width, semantics.kind,
            lambda source: ~self.vector.told(none + source, none, none, threads),
        ):  # fmt: skip
            side = self._side(semantics, int(mine[met.position]))
            if met.strong:
                self.undecided.setdefault((met.side.label, side.label), (met.side, side))
            else:
                races.append(Race(region, met.offset, met.side, side, cause=Cause.GRID))
        return self._fresh(races)

    def side(self, kind: Kind, entry: int) -> Side:
        """Who made an access of this launch."""
        return self._side(Semantics(kind), entry)

    def add(self, race: Race) -> bool:
        """Something that an evaluator found by itself; whether it is new."""
        found = self._fresh([race])
        self.races += found
        return bool(found)

    def complete(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Hashable,
    ) -> None:  # fmt: skip
        """Copies that were under way are done: from now on what they did is their threads'."""
        store = self._store(self._shadows[region], replace(semantics, under_way=False))
        for cells, mine in self._ended(region, threads, start, width, semantics, label, None):
            store.note(cells, mine, self.clocks, False)

    def land(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Hashable, completion: Completion,
    ) -> None:  # fmt: skip
        """Copies that were under way are done, for those who are told."""
        store = self._told(self._shadows[region], replace(semantics, told=1))
        of = region, threads, start, width, semantics, label, completion
        for cells, mine in self._ended(*of):
            store.begin(cells, mine, completion)

    def _ended(
        self, region: Hashable, threads: Array, start: Array, width: int, semantics: Semantics,
        label: Hashable, completion: Completion | None,
    ) -> Iterator[tuple[Array, Ints]]:  # fmt: skip
        """The cells and entries of copies that were under way, which they are no more."""
        shadow = self._shadows[region]
        mine = self.clocks.now(threads) | np.int64(self._number(label) << self.layout.code_bits)
        if self.last is not None:
            self.last.ended(region, start, width, mine, completion)
        pending, first = shadow.stores[semantics], start >> (shadow.unit.bit_length() - 1)
        assert isinstance(pending, UnderWay)
        for part in range(width // shadow.unit):
            pending.done(first + part)
            yield first + part, mine

    def _told(self, shadow: Shadows, semantics: Semantics) -> PendingCompletions:
        store = self._store(shadow, semantics)
        assert isinstance(store, PendingCompletions)
        return store

    def _shadow(self, region: Hashable, size: int, start: Array, width: int) -> Shadows:
        ends = width | int(np.bitwise_or.reduce(start))
        unit = ends & -ends  # the largest power of two that divides width and places
        shadow = self._shadows.get(region)
        if shadow is None:
            shadow = self._shadows[region] = Shadows(size, unit)
        elif unit < shadow.unit:
            shadow.refine(unit)
        return shadow

    def _store(self, shadow: Shadows, semantics: Semantics) -> Store:
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
            shadow.add(semantics, store)
        return store

    def _number(self, label: Hashable) -> int:
        number = self._labels.get(label)
        if number is None:
            number = self._labels[label] = len(self._names)
            self._names.append(label)
            if number >= self.layout.labels:
                raise InternalError("more instructions than the race detector was made for")
        return number

    def _cells(
        self, region: Hashable, shadow: Shadows, threads: Array, cells: Array, semantics: Semantics,
        mine: Ints, writing: Writing | None, memory: Array | None, width: int,
    ) -> list[Race]:  # fmt: skip
        if not threads.size:
            return []
        found: list[_Met] = []
        for other, store, apart in self._conflicts(region, shadow, semantics):
            by_model: list[_Met] = []
            for lenient in self.lenient:  # what the manual orders, practice orders as well
                judge = self._judge(apart, store, region, shadow, other, mine, semantics, lenient)
                met = [*self._earlier(store, cells, threads, semantics, other, writing, judge,
                                      lenient)]  # fmt: skip
                if not met:
                    break
                by_model = met + by_model
            found += by_model
        found += self._at_once(region, shadow, cells, threads, semantics, mine, writing)
        races = []
        for other, entry, at, same, breaks in found:
            if same and self.benign:
                continue
            offset, apart = int(cells[at]) * shadow.unit, semantics.conflict_with(other)
            cause = self.judges.cause(apart, other, entry, threads[at : at + 1])
            waited = cause is Cause.WAIT or (other.told and other.kind.writes)
            if waited and not breaks:  # … in too small a scope
                cause = Cause.SCOPE
            held = b"" if memory is None else memory[offset : offset + width].tobytes()
            given = b"" if writing is None else writing.bytes_of(at)
            sides = self._side(other, entry), self._side(semantics, int(mine[at]))
            races.append(Race(region, offset, *sides, same, cause, breaks, "", held, given))
        return self._fresh(races)

    def _judge(
        self, apart: ConflictScope, store: Store, region: Hashable, shadow: Shadows,
        other: Semantics, mine: Ints, semantics: Semantics, lenient: bool,
    ) -> Judge:  # fmt: skip
        if isinstance(store, PendingCompletions):
            return self.judges.untold(store, lenient=lenient)
        if apart in BY_FENCE:
            home = self._home(shadow) if region in self._confined else None
            return self.judges.unfenced(apart, other, home, lenient=lenient)
        conflict = self.judges.conflict(apart, other, lenient=lenient)
        if self.flags is not None and other.writes_for_readers and apart in BY_ORDER:
            now = frozenset(mine.tolist() if semantics.kind.strong else ())
            return self.judges.unobserved(conflict, region, shadow.unit, other, now)
        return of_any_cell(conflict)

    def _home(self, shadow: Shadows) -> Home:
        """Whose cells of shared memory are: the rank of the block within its cluster."""
        size, unit = shadow.size // self.clocks.blocks, shadow.unit
        return lambda cells: cells * unit // size % self.layout.cluster

    def _earlier(
        self, store: Store, cells: Array, threads: Array, semantics: Semantics, other: Semantics,
        writing: Writing | None, judge: Judge, breaks: bool,
    ) -> Iterator[_Met]:  # fmt: skip
        """Earlier accesses that conflict; of writes those of one value apart."""
        met = store.earlier(cells, threads, judge)
        if not met or writing is None or not _both_only_write(semantics, other):
            for one in met:
                yield other, one.entry, one.position, False, breaks
            return
        for same in (False, True):
            at = np.flatnonzero(writing.before == same)
            for one in store.earlier(cells[at], threads[at], judge):
                yield other, one.entry, int(at[one.position]), same, breaks

    def _at_once(
        self, region: Hashable, shadow: Shadows, cells: Array, threads: Array,
        semantics: Semantics, mine: Ints, writing: Writing | None,
    ) -> Iterator[_Met]:  # fmt: skip
        """Accesses of this one instruction that conflict with each other; notes them all."""
        own = self._conflict(region, semantics, semantics)
        store = self._store(shadow, semantics)
        at, others = store.note(cells, mine, self.clocks, own is not ConflictScope.NEVER)
        if not at.size or own is ConflictScope.NEVER:
            return
        wrong = self.judges.conflict(own, semantics, lenient=False)(others, threads[at])
        at, others = at[wrong], others[wrong]
        alike = np.zeros(at.size, bool)
        if at.size and writing is not None and _both_only_write(semantics, semantics):
            alike = writing.after[at]
        for same in (False, True):
            for i in np.flatnonzero(alike == same)[:1].tolist():
                yield semantics, int(others[i]), int(at[i]), same, True

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
        if known is not None and _gravity(race) <= _gravity(known):
            return False
        self.races = [each for each in self.races if each is not known]
        self._seen[race.pair] = race
        return True


def _gravity(race: Race) -> tuple[bool, bool]:
    """How bad a race is, beside others of its pair of instructions."""
    return race.breaks, not race.same_value


def _by_success(semantics: Semantics, failed: Mask | None) -> list[tuple[Any, Semantics]]:
    """Which accesses have which semantics; a swap that fails is a strong read."""
    if failed is None or not failed.any():
        return [(slice(None), semantics)]
    return [(~failed, semantics), (failed, replace(semantics, kind=Kind.STRONG_READ))]


def _both_only_write(one: Semantics, other: Semantics) -> bool:
    return not (one.kind.reads or other.kind.reads or other.under_way)
