"""Fences whose threads have no part in a release or acquire pattern themselves.

A pattern of PTX is of one thread: it fences and writes, or reads and fences. Where all threads of a
block fence and meet, and one of them then counts the block as done, what the others wrote is in no
pattern. It is ordered all the same. By the manual one of any two `fence.sc` of a GPU is first; were
it the reader's, what its block read would be before the write that it saw. By practice every fence
of the GPU's scope does so: it ends when what its thread wrote is visible everywhere, and begins
what its thread reads anew.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from warploom.machine.clock import Array, Ints, Vector
from warploom.machine.knowledge import Knowledge, joined
from warploom.machine.proxy import FENCED, block_of, by_way, way_of

REMEMBERED = 4  # looks of one thread at one place


@dataclass(slots=True)
class Cumulative:
    """What is known to be behind a fence is handed on with all else, by a way of its own; `looks`
    are what threads of the batch saw, by thread and place."""

    strict: bool
    fenced: bool = False  # whether anything is behind such a fence
    loose: bool = False  # … that is not sc
    told: bool = False  # a strong write told more than its own thread's fences do
    relied: bool = False  # … which somebody took as the manual does not allow
    looks: dict[tuple[int, Hashable], list[tuple[int, Knowledge]]] = field(default_factory=dict)
    _entries: Ints | None = None  # of all these looks, in their order
    _given: dict[int, tuple[Knowledge, Knowledge | None]] = field(default_factory=dict)

    def start(self) -> None:
        """Other threads run now."""
        self.looks, self._entries, self._given = {}, None, {}

    def counts(self, *, sequential: bool) -> bool:
        """Whether a fence of the GPU's scope is one of these."""
        return sequential or not self.strict

    def release(self, clocks: Vector, threads: Array, *, sequential: bool) -> None:
        """What these threads know is behind their fences."""
        self.fenced = True
        self.loose |= not sequential
        clocks.add_up(threads)
        for thread in threads.tolist():
            known = clocks.knowledge(thread).renamed(
                lambda number: by_way(FENCED, number) if number >= 0 else None
            )
            clocks.learn(np.array([thread]), known)

    def given(self, clocks: Vector, thread: int) -> Knowledge | None:
        """What a strong write of a thread tells: all that it knows to be behind a fence."""
        beyond = clocks.beyond(np.array([thread]))[0]
        if not self.fenced or beyond is None:
            return None
        if id(beyond) not in self._given:
            known = beyond.renamed(
                lambda number: block_of(number) if way_of(number) == FENCED else None
            )
            self._given[id(beyond)] = beyond, known if known.flat() else None
        return self._given[id(beyond)][1]

    def taken(self, *, sequential: bool) -> None:
        """Somebody acquires what strong writes told."""
        self.relied |= self.told and (self.loose or not sequential)

    def look(self, thread: int, place: Hashable, entry: int, known: Knowledge | None) -> None:
        """A strong read of a thread saw a write that tells this."""
        if known is None:
            return
        looks = self.looks.setdefault((thread, place), [])
        if not looks or looks[-1][1] is not known:
            del looks[REMEMBERED - 1 :]
            looks.append((entry, known))
            self._entries = None

    def acquire(self, clocks: Vector, threads: Array) -> list[int]:
        """What was seen before these threads' fences is known; the entries of these looks."""
        every = [look for looks in self.looks.values() for look in looks]
        if self._entries is None:
            self._entries = np.array([entry for entry, _ in every], np.int64)
        used: set[int] = set()
        for thread in threads.tolist() if every else ():
            before = np.flatnonzero(clocks.ordered_before(self._entries, thread))
            used.update(before.tolist())
            known = joined(*[every[at][1] for at in before.tolist()])
            clocks.learn(np.array([thread]), known)
        return [every[at][0] for at in sorted(used)]
