"""Flags: what strong accesses and fences order, by the release and acquire patterns of PTX.

A release pattern is a release on a place, or a fence and then a strong write there; an acquire
pattern is an acquire, or a strong read and then a fence. They synchronise if the read sees the
write, at once or through a chain of atomics, each of which is within the scope of the next, and the
first operation of the one pattern and the last of the other are within each other's scopes. A place
remembers its last writer and, for each scope that an acquire may have, what is known to it: a
strong write puts its own there, an atomic adds to what it saw, a weak write leaves nothing.

Fences of one thread and strong accesses of another may order as well (`cumulative`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from warploom.machine.clock import Array, Clocks, Ints, Mask, Vector
from warploom.machine.cumulative import Cumulative
from warploom.machine.knowledge import Knowledge, Ticks, joined
from warploom.machine.semantics import Scope, Semantics

Group = tuple[Scope, int]  # a scope, and which block, cluster or grid of it
Known = dict[Group, Knowledge | None]
SEQUENTIAL: Group = (Scope.GRID, -1)  # what only fences that are sc acquire
Waited = tuple[Knowledge | None, Knowledge | None]
Place = tuple[Hashable, int, int]  # a region, a byte of it, and a thread
Observed = tuple[int, int, int]  # the entry of a read; the first and the last write that it sees
ADDED_UP = 16  # after so many writes to a place, what is known there is added up
GROUPS = 64  # of threads that read a place together; more are remembered thread by thread
REMEMBERED = 4  # of what one thread saw of a place at different times


def _add_up(known: Known) -> None:
    for each in known.values():
        if each is not None:
            each.flat()


def _scalars(
    threads: Array, start: Array, entries: Ints, width: int, size: int
) -> tuple[Array, Array, Ints]:
    """Accesses of many bytes, scalar by scalar."""
    parts = np.arange(0, width, size or width or 1)
    if parts.size < 2:
        return threads, start, entries
    start = (start[:, None] + parts).reshape(-1)
    return np.repeat(threads, parts.size), start, np.repeat(entries, parts.size)


@dataclass(frozen=True, slots=True)
class Order:
    """What an access orders: nothing, if it is relaxed.

    `sees`: what it reads counts for a later fence; not so of a reduction, which returns nothing.
    `sequential`: a fence that is `sc`.
    """

    acquires: bool = False
    releases: bool = False
    sees: bool = True
    sequential: bool = False


@dataclass(slots=True)
class _Flag:
    """What the last write to a place was, and what is known through it."""

    size: int
    scope: Scope
    block: int
    known: Known
    chain: int  # which chain of atomics it is of; each knows what those before it did,
    version: int  # … and the how manieth write of the place it is

    def seen_by(self, scope: Scope, block: int, cluster: int) -> bool:
        """Whether the writer and a reader are within each other's scopes."""
        match min(scope, self.scope):
            case Scope.BLOCK:
                return block == self.block
            case Scope.CLUSTER:
                return block // cluster == self.block // cluster
            case _:
                return True


@dataclass(slots=True)
class _Fence:
    """What threads knew at their last fence of one scope; rows go over threads of the batch."""

    views: Ticks
    beyond: Array
    passed: Array  # whether there was one


@dataclass(slots=True)
class _Look:
    """What a strong read saw, and in which scope that has been acquired."""

    chain: int
    version: int
    known: Known
    entry: int  # of the read
    acquired: int = 0


@dataclass(slots=True)
class _Trail:
    """The strong writes to a place, numbered from 1, and which of them each reader has seen.

    A read sees the last, and, if that was an atomic, what it saw in turn.
    """

    writes: int = 0
    since: int = 1  # the first write that a read sees now
    number: dict[int, int] = field(default_factory=dict)  # of the last write of an entry
    readers: dict[int, list[Observed]] = field(default_factory=dict)  # by thread of the grid
    # The same of threads that read together, by which they are.
    groups: dict[bytes, list[tuple[Ints, int, int]]] = field(default_factory=dict)

    def read_together(self, codes: Ints, entries: Ints) -> None:
        """Many threads see at once; what is remembered of them is remembered of all."""
        key = codes.tobytes()
        if key not in self.groups and len(self.groups) >= GROUPS:
            for code, entry in zip(codes.tolist(), entries.tolist(), strict=True):
                self.read(code, entry)
            return
        seen = self.groups.setdefault(key, [])
        del seen[REMEMBERED - 2 : -1]
        seen.append((entries, self.since, self.writes))

    def observed(self) -> Array:
        """The entry of each look that is remembered, and the first and last write that it saw."""
        alone = [one for each in self.readers.values() for one in each]
        parts = [np.array(alone, np.int64).reshape(-1, 3)]
        for seen in self.groups.values():
            for entries, since, last in seen:
                row = np.broadcast_to(np.array([since, last]), (entries.size, 2))
                parts.append(np.column_stack((entries, row)))
        return np.concatenate(parts)

    def read(self, code: int, entry: int) -> None:
        """A thread sees; its last two looks are remembered, as the last may be what is judged now,
        beside its first few."""
        seen = self.readers.setdefault(code, [])
        now = (entry, self.since, self.writes)
        if not seen or seen[-1] != now:
            del seen[REMEMBERED - 2 : -1]
            seen.append(now)

    def write(self, entry: int, goes_on: bool) -> None:
        self.writes += 1
        self.number[entry] = self.writes
        if not goes_on:
            self.since = self.writes


@dataclass(slots=True)
class Flags:
    """The places of one launch that strong accesses touched, and the fences of its threads."""

    places: dict[Hashable, dict[int, _Flag]] = field(default_factory=dict)  # by region and byte
    trails: dict[Hashable, dict[int, _Trail]] = field(default_factory=dict)  # by region and byte
    own: dict[Place, dict[Scope, Knowledge]] = field(default_factory=dict)  # released before
    fences: dict[Scope, _Fence] = field(default_factory=dict)
    # By thread, and by place: what it saw there by strong reads, which a fence may acquire.
    looks: dict[int, dict[tuple[Hashable, int], list[_Look]]] = field(default_factory=dict)
    # By thread: what relaxed waits at mbarriers would have told, within a block and a cluster.
    waited: dict[int, Waited] = field(default_factory=dict)
    chains: int = 0
    cumulative: Cumulative = field(default_factory=lambda: Cumulative(strict=False))
    # The instructions, by their numbers, that saw a write and thereby ordered what came next.
    counted: set[frozenset[int]] = field(default_factory=set)

    def start(self) -> None:
        """Other threads run now."""
        self.fences, self.own, self.looks, self.waited = {}, {}, {}, {}
        self.cumulative.start()

    def forget(self, region: Hashable) -> None:
        self.places.pop(region, None)
        self.trails.pop(region, None)

    # -- fences -------------------------------------------------------------------------------

    def fence(self, clocks: Vector, threads: Array, scope: Scope, order: Order) -> None:
        whole = scope is Scope.GRID and self.cumulative.counts(sequential=order.sequential)
        if order.acquires:
            for thread in threads.tolist() if self.waited else ():
                near, far = self.waited.get(thread, (None, None))
                clocks.learn(np.array([thread]), near)
                if scope is not Scope.BLOCK:
                    clocks.learn(np.array([thread]), far)
                    self.waited.pop(thread, None)
            for thread in threads.tolist():
                for looks in self.looks.get(thread, {}).values():
                    self._acquire(clocks, thread, looks, scope, sequential=order.sequential)
                if scope is Scope.GRID:  # nothing is left to be acquired
                    self.looks.pop(thread, None)
            if whole:
                for entry in self.cumulative.acquire(clocks, threads):
                    self.counted.add(frozenset((clocks.layout.label(entry),)))
        if order.releases:
            clocks.advance(threads)
            if whole:
                self.cumulative.release(clocks, threads, sequential=order.sequential)
            kept = self.fences.get(scope)
            if kept is None:
                count = clocks.entries.size
                views = np.zeros((count, clocks.layout.block_threads), np.int32)
                kept = _Fence(views, np.full(count, None, object), np.zeros(count, bool))
                self.fences[scope] = kept
            kept.views[threads] = clocks.view(threads)
            kept.beyond[threads] = clocks.beyond(threads)
            kept.passed[threads] = True

    def wait(self, threads: Array, near: Knowledge | None, far: Knowledge | None) -> None:
        """A relaxed wait of these threads has passed: a fence behind it acquires this."""
        for thread in threads.tolist():
            before = self.waited.get(thread, (None, None))
            self.waited[thread] = joined(before[0], near), joined(before[1], far)

    def fenced(self, clocks: Vector, thread: int, least: Scope) -> Knowledge | None:
        """What a thread knew at its last fences of this scope or a wider one."""
        parts = [
            clocks.as_knowledge(thread, kept.views[thread].copy(), kept.beyond[thread])
            for scope, kept in self.fences.items()
            if scope >= least and kept.passed[thread]
        ]
        return joined(*parts)

    # -- accesses -----------------------------------------------------------------------------

    def weak_write(self, region: Hashable, start: Array, width: int) -> None:
        """Whoever reads these places now sees a write that orders nothing."""
        places = self.places.get(region)
        if places:
            for place, flag in list(places.items()):
                if ((start < place + flag.size) & (start + width > place)).any():
                    del places[place]

    def strong(
        self, clocks: Vector, region: Hashable, threads: Array, start: Array, semantics: Semantics,
        order: Order, entries: Ints, failed: Mask | None = None, *, width: int = 0,
    ) -> None:  # fmt: skip
        """Strong accesses of one instruction, in the order of the threads.

        `entries` are how they are written down; those that `failed` do not write. Of `width` bytes
        each scalar is an access, in an order that the manual leaves open.
        """
        threads, start, entries = _scalars(threads, start, entries, width, semantics.size)
        if not (semantics.kind.writes or order.acquires):
            self._read(clocks, region, threads, start, semantics, order, entries)
            return
        places = self.places.setdefault(region, {})
        trails = self.trails.setdefault(region, {})
        if order.releases:
            clocks.advance(threads)
        only_read = [False] * threads.size if failed is None else failed.tolist()  # of one scalar
        every = zip(threads.tolist(), start.tolist(), entries.tolist(), only_read, strict=True)
        for thread, place, entry, unwritten in every:
            block = clocks.block_number(thread)
            flag = places.get(place)
            known: Known = {}
            reads = semantics.kind.reads
            trail = trails.get(place)
            if trail is None:
                trail = trails[place] = _Trail()
            cluster = clocks.layout.cluster
            # What is of another size is not morally strong, so that it orders nothing.
            alike = flag is not None and flag.size == semantics.size
            seen = alike and flag is not None and flag.seen_by(semantics.scope, block, cluster)
            if reads and flag is not None and seen:
                known = flag.known
                trail.read(entry & clocks.layout.code_mask, entry)
            if reads and order.sees and flag is not None and known:
                self._look((region, place), thread, flag, entry)
            if reads and order.acquires:
                looks = self.looks.get(thread, {}).get((region, place), [])
                self._acquire(clocks, thread, looks, semantics.scope)
            if semantics.kind.writes and not unwritten:
                trail.write(entry, goes_on=reads and seen)
                given = self._given(clocks, (region, place, thread), semantics, order)
                for group, before in known.items():  # a chain of atomics goes on
                    given[group] = joined(given.get(group), before)
                chain = flag.chain if reads and flag is not None and seen else self._new_chain()
                version = trail.writes
                if version % ADDED_UP == 0:  # lest all that look walk along the whole chain
                    _add_up(given)
                places[place] = _Flag(semantics.size, semantics.scope, block, given, chain, version)

    def _read(
        self, clocks: Vector, region: Hashable, threads: Array, start: Array, semantics: Semantics,
        order: Order, entries: Ints,
    ) -> None:  # fmt: skip
        """Strong reads that order nothing by themselves, place by place."""
        places, trails = self.places.get(region, {}), self.trails.get(region, {})
        layout = clocks.layout
        for place in np.unique(start).tolist():
            flag = places.get(place)
            if flag is None or flag.size != semantics.size:  # as above
                continue
            at = np.flatnonzero(start == place)
            block = layout.block(entries[at])
            names = np.unique(block).tolist()
            sees = [name for name in names if flag.seen_by(semantics.scope, name, layout.cluster)]
            if len(sees) < len(names):
                at = at[np.isin(block, sees)]
            if not at.size:
                continue
            trails[place].read_together(entries[at] & np.int64(layout.code_mask), entries[at])
            if order.sees and flag.known:
                for thread, entry in zip(threads[at].tolist(), entries[at].tolist(), strict=True):
                    self._look((region, place), thread, flag, entry)

    def observed(
        self, clocks: Vector, region: Hashable, place: int, thread: int, now: frozenset[int]
    ) -> Array:
        """Reads of a place that a thread knows of: which, and the first and last write it saw.

        Not by those that it does `now`.
        """
        trail = self.trails.get(region, {}).get(place)
        if trail is None or not (trail.readers or trail.groups):
            return np.zeros((3, 0), np.int64)
        found = trail.observed()
        before = clocks.ordered_before(found[:, 0], thread)
        before &= ~np.isin(found[:, 0], list(now))
        return found[before].T

    def is_among(
        self, clocks: Clocks, region: Hashable, place: int, entry: int, seen: Array
    ) -> bool:  # fmt: skip
        """Whether a strong write, as it is written down, is one of those that were seen."""
        trail = self.trails.get(region, {}).get(place)
        number = 0 if trail is None else trail.number.get(entry, 0)
        by = seen[0][(seen[1] <= number) & (number <= seen[2])]
        if by.size:
            self.counted.add(frozenset(np.unique(clocks.layout.label(by)).tolist()))
        return bool(by.size)

    @staticmethod
    def _groups(clocks: Vector, thread: int) -> list[Group]:
        block = clocks.block_number(thread)
        cluster = block // clocks.layout.cluster
        return [(Scope.BLOCK, block), (Scope.CLUSTER, cluster), (Scope.GRID, 0)]

    def _new_chain(self) -> int:
        self.chains += 1
        return self.chains

    def _look(
        self, place: tuple[Hashable, int], thread: int, flag: _Flag, entry: int
    ) -> None:  # fmt: skip
        """A strong read: what it sees waits for a fence, or an acquire at the same place.

        Later in a chain all is known that was before, so of one chain the last look is enough:
        many may stand in line for a lock.
        """
        told = SEQUENTIAL if self.cumulative.strict else (Scope.GRID, 0)
        self.cumulative.look(thread, place, entry, flag.known.get(told))
        looks = self.looks.setdefault(thread, {}).setdefault(place, [])
        if looks and looks[-1].chain == flag.chain:
            if looks[-1].version == flag.version:
                return
            looks.pop()
        looks.append(_Look(flag.chain, flag.version, flag.known, entry))

    def _acquire(
        self, clocks: Vector, thread: int, looks: list[_Look], scope: Scope, *,
        sequential: bool = False,
    ) -> None:  # fmt: skip
        """What looks saw, within a scope, is known from now on."""
        groups = self._groups(clocks, thread)[:scope]
        for look in looks:
            if look.acquired < scope:
                look.acquired = scope
                if any(group in look.known for group in groups):
                    self.counted.add(frozenset((clocks.layout.label(look.entry),)))
                    self.cumulative.taken(sequential=sequential)
                for group in groups:
                    clocks.learn(np.array([thread]), look.known.get(group))

    def _given(self, clocks: Vector, key: Place, semantics: Semantics, order: Order) -> Known:
        """What a strong write publishes, for each scope that an acquire may have."""
        thread = key[2]
        if order.releases:
            known = clocks.knowledge(thread)
            before = self.own.setdefault(key, {})
            before.update(dict.fromkeys(list(Scope)[: semantics.scope], known))
        mine = self.own.get(key, {})
        out: Known = {}
        for group in self._groups(clocks, thread):
            given = joined(self.fenced(clocks, thread, group[0]), mine.get(group[0]))
            if given is not None:
                out[group] = given
        further = self.cumulative.given(clocks, thread)
        if further is not None:  # whose fences these are is not known: only the GPU has all
            group = SEQUENTIAL if self.cumulative.strict else (Scope.GRID, 0)
            own = out.get(group)
            if not (self.cumulative.strict or self.cumulative.told):
                self.cumulative.told = own is None or not own.covers(further)
            out[group] = further if own is None else joined(own, further)
        return out
