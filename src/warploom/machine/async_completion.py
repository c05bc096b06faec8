"""Accesses that end when it is told: by the phase of an mbarrier, or to those that wait for them.

A bulk copy, a copy that an mbarrier tracks, a product that reads shared memory: none is done for a
thread before that thread was told, nor is it for the thread that began it. Who tells has a number
beyond those of blocks, and tells in ticks that grow (phases, groups): that one was told is part of
what a thread knows (`knowledge`), and so handed on by whatever orders memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warploom.machine.clock import Array, Clocks, Ints, Layout, Mask
from warploom.machine.knowledge import Knowledge
from warploom.machine.shadow import Earlier, Judge, Met


@dataclass(frozen=True, slots=True)
class Completion:
    """Who will tell that an access is done, and at which tick; of many, whose access it is."""

    source: int
    tick: int
    inside: int = 0

    def repeated(self, _: int) -> Completion:
        """This, for each part of an access."""
        return self

    def known(self, threads: int) -> Knowledge:
        """What those know that were told of all that this source tells until now."""
        return Knowledge((self.source, np.full(threads, self.tick + 1, np.int32)), ())

    def known_of_one(self, threads: int) -> Knowledge:
        """What those know that were told of this one access only."""
        ticks = np.zeros(threads, np.int32)
        ticks[self.inside] = self.tick + 1
        return Knowledge((self.source, ticks), ())


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of many accesses, each with a source and a tick of its own."""

    source: Ints
    tick: Ints
    inside: int = 0

    def repeated(self, parts: int) -> Completions:
        """These, for each part of an access."""
        return Completions(np.repeat(self.source, parts), np.repeat(self.tick, parts), self.inside)


class PendingCompletions:
    """Per cell the latest such access: whoever comes later must have been told of it."""

    def __init__(self, cells: int, _: Layout) -> None:
        self._entry, self._source, self._tick, self._inside = np.zeros((4, cells), np.int64)

    def refine(self, ratio: int) -> None:
        planes = (self._entry, self._source, self._tick, self._inside)
        self._entry, self._source, self._tick, self._inside = (
            np.repeat(plane, ratio) for plane in planes
        )

    def begin(self, cells: Array, entries: Ints, completion: Completion | Completions) -> None:
        self._entry[cells] = entries
        self._source[cells] = completion.source
        self._tick[cells] = completion.tick
        self._inside[cells] = completion.inside

    def note(self, cells: Array, _: Ints, __: Clocks, ___: bool) -> Met:
        return cells[:0], cells[:0]

    def earlier(self, cells: Array, threads: Array, judge: Judge) -> list[Earlier]:
        """One that a thread was not told of."""
        at = np.flatnonzero(self._entry.take(cells))
        wrong = at[judge(self._entry[cells[at]], threads[at], cells[at])] if at.size else at
        return [Earlier(int(one), int(self._entry[cells[one]])) for one in wrong[:1]]

    def unknown_to(self, told: Callable[[Array, Array, Array, Array], Mask]) -> Judge:
        """The judge of these cells, where `told` says who knows of which source, until when."""

        def judge(_: Array, threads: Array, cells: Array) -> Mask:
            where = (self._source[cells], self._tick[cells], self._inside[cells])
            return np.asarray(~told(*where, threads))

        return judge
