"""Flags: what strong accesses and fences order, by the release and acquire patterns of PTX.

A release pattern is a release on a place, or a fence and then a strong write there; an acquire
pattern is an acquire, or a strong read and then a fence. They synchronise if the read sees the
write, at once or through a chain of atomics, and the threads are within each other's scopes, of the
accesses and of the fences alike. A place remembers, for each scope that a reader may have, what is
known to those that read it now: a strong write puts its own there, an atomic adds to what it saw, a
weak write leaves nothing.

Fences that are `sc` are taken as `acq_rel`: the order among them is one that no thread can know.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from warploom.machine.clock import Array, Vector
from warploom.machine.knowledge import Knowledge, Ticks, joined
from warploom.machine.manner import Manner, Scope

Group = tuple[Scope, int]  # a scope, and which block, cluster or grid of it
Known = dict[Group, Knowledge | None]
NO_THREADS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Order:
    """What an access orders: nothing, if it is relaxed.

    `sees`: what it reads counts for a later fence; not so of a reduction, which returns nothing.
    """

    acquires: bool = False
    releases: bool = False
    sees: bool = True


@dataclass(slots=True)
class _Fence:
    """What threads knew at their last fence of one scope; rows go over threads of the batch."""

    views: Ticks
    beyond: Array
    passed: Array  # whether there was one


@dataclass(slots=True)
class Flags:
    """The places of one launch that strong accesses touched, and the fences of its threads."""

    places: dict[Hashable, dict[int, Known]] = field(default_factory=dict)  # by region and byte
    own: dict[tuple[Hashable, int, int], tuple[Scope, Knowledge]] = field(default_factory=dict)
    fences: dict[Scope, _Fence] = field(default_factory=dict)
    collected: dict[Scope, Array] = field(default_factory=dict)  # by strong reads, of each thread

    def start(self) -> None:
        """Other threads run now."""
        self.fences, self.collected, self.own = {}, {}, {}

    def forget(self, region: Hashable) -> None:
        self.places.pop(region, None)

    # -- fences -------------------------------------------------------------------------------

    def fence(self, clocks: Vector, threads: Array, scope: Scope, order: Order) -> None:
        if order.acquires and scope in self.collected:
            found = self.collected[scope]
            for thread in threads.tolist():
                clocks.learn(np.array([thread]), found[thread])
        if order.releases:
            clocks.advance(threads)
            kept = self.fences.get(scope)
            if kept is None:
                count = clocks.entries.size
                views = np.zeros((count, clocks.layout.block_threads), np.int32)
                kept = _Fence(views, np.full(count, None, object), np.zeros(count, bool))
                self.fences[scope] = kept
            kept.views[threads] = clocks.view(threads)
            kept.beyond[threads] = clocks.beyond(threads)
            kept.passed[threads] = True

    # -- accesses -----------------------------------------------------------------------------

    def weak_write(self, region: Hashable, start: Array, width: int) -> None:
        """Whoever reads these places now sees a write that orders nothing."""
        places = self.places.get(region)
        if places:
            for place in [p for p in places if ((start < p + 8) & (start + width > p)).any()]:
                del places[place]

    def strong(
        self, clocks: Vector, region: Hashable, threads: Array, start: Array, manner: Manner,
        order: Order,
    ) -> None:  # fmt: skip
        """Strong accesses of one instruction, in the order of the threads."""
        places = self.places.setdefault(region, {})
        if order.releases:
            clocks.advance(threads)
        for thread, place in zip(threads.tolist(), start.tolist(), strict=True):
            known = places.get(place, {})
            groups = self._groups(clocks, thread)
            if manner.kind.reads and order.sees and known:
                self._read(clocks, thread, known, groups, manner, order)
            if manner.kind.writes:
                given = self._given(clocks, thread, (region, place, thread), manner, order)
                if manner.kind.reads:  # a chain of atomics goes on, in the scope of this one
                    for group in groups[: manner.scope]:
                        given[group] = joined(given.get(group), known.get(group))
                if given:
                    places[place] = given
                else:
                    places.pop(place, None)

    @staticmethod
    def _groups(clocks: Vector, thread: int) -> list[Group]:
        block = clocks.block_number(thread)
        cluster = block // clocks.layout.cluster
        return [(Scope.BLOCK, block), (Scope.CLUSTER, cluster), (Scope.GRID, 0)]

    def _read(
        self, clocks: Vector, thread: int, known: Known, groups: list[Group], manner: Manner,
        order: Order,
    ) -> None:  # fmt: skip
        seen: Knowledge | None = None
        for scope in Scope:  # what a fence of that scope, or an acquire, will make of it
            if scope <= manner.scope:
                seen = joined(seen, known.get(groups[scope - 1]))
            if seen is None:
                continue
            if scope not in self.collected:
                self.collected[scope] = np.full(clocks.entries.size, None, object)
            kept = self.collected[scope]
            kept[thread] = joined(kept[thread], seen)
        if order.acquires:
            clocks.learn(np.array([thread]), seen)

    def _given(
        self, clocks: Vector, thread: int, key: tuple[Hashable, int, int], manner: Manner,
        order: Order,
    ) -> Known:  # fmt: skip
        """What a strong write publishes, for each scope that a reader may have."""
        if order.releases:
            self.own[key] = (manner.scope, clocks.knowledge(thread))
        out: Known = {}
        for group in self._groups(clocks, thread)[: manner.scope]:
            parts = [
                clocks.as_knowledge(thread, kept.views[thread].copy(), kept.beyond[thread])
                for scope, kept in self.fences.items()
                if scope >= group[0] and kept.passed[thread]
            ]
            scope, before = self.own.get(key, (Scope.BLOCK, None))
            if scope >= group[0]:
                parts += [before] if before is not None else []
            given = joined(*parts)
            if given is not None:
                out[group] = given
        return out
