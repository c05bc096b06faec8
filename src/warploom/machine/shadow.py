"""What each cell of a memory remembers of earlier accesses, and which of them are not ordered.

Cells, threads and entries (see `clock`) come as arrays of one length. Both stores keep real
accesses only, so what they report is unordered; they differ in what they may drop.

`Latest` is for barriers of whole blocks and warps. It keeps, per cell, the latest access and the
latest one before it by another lane of its warp, another warp of its block, and another block.
That is enough to see whether *any* access is unordered with a thread t: if t is of another block,
or of another warp and no block barrier passed since, the latest access is; otherwise the latest of
another block or warp is, if there is one; and if all that count are of t's own warp, either the
latest or the one beside it is not t's own.

That also holds for the accesses of one instruction, so `ByLabel` keeps them so, apart, where all
pairs of instructions are asked for.

`History` is for any synchronisation: a list per cell of the latest access of every thread by every
instruction, less those that a barrier of their block has ordered (unless flags order blocks).

`UnderWay` is for copies that nobody waited for yet: one per cell, unordered with everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from warploom.machine.clock import Array, Clocks, Ints, Layout, Mask

# Of accesses that came to one cell at once: positions, and for each the entry of another.
Met = tuple[Array, Ints]
# Which of some earlier accesses (entries) conflict with accesses by threads to cells now.
Judge = Callable[[Array, Array, Array], Mask]
FEW = 4  # less than one of so many: picked out before they are kept
SMALLEST = 1 << 10  # accesses in a history before it is first tidied up
STEPS = 8  # along lists, before those of so few cells are looked at
FEW_CELLS = 8
AT_ONCE = 1 << 15  # pairs of accesses that are judged together


def _at(values: Array, positions: Array) -> Array:
    """`values[positions]`, all of which there are: without looking for others, twice as fast."""
    return values.take(positions, mode="clip")


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier access that is unordered with the one at `position` of those given."""

    position: int
    entry: int


class Latest:
    """Four accesses per cell; the room for the last three is made when it is needed."""

    def __init__(self, cells: int, layout: Layout) -> None:
        self._layout = layout
        self._latest = np.zeros(cells, np.int64)
        self._places = np.zeros(0, np.int64)
        self._before = self._places.reshape(0, cells)  # of another lane, warp, block
        self._crowded = False  # most came where others were at the same time

    def refine(self, ratio: int) -> None:
        """Every cell becomes `ratio` cells."""
        self._latest = np.repeat(self._latest, ratio)
        if self._before.size:
            older = self._before
            self._make_room()
            self._before[:] = np.repeat(older, ratio, axis=1)

    def note(self, cells: Array, entries: Ints, clocks: Clocks, met: bool) -> Met:
        """Adds accesses of one instruction; says which came to one cell at once, if `met`."""
        if self._crowded and not met:
            cells, entries = self._ends_of_runs(cells, entries)
        before = _at(self._latest, cells)
        self._latest[cells] = entries
        alone = bool((cells[1:] > cells[:-1]).all())  # most often they come in order, one a cell
        after = entries if alone else _at(self._latest, cells)
        newest = int(before.max())
        if newest:
            self._keep_older(cells, before, after, newest < clocks.lowest_floor)
        lost = cells[:0] if alone else np.flatnonzero(after != entries)
        self._crowded = 4 * lost.size > cells.size
        if not lost.size:
            return lost, after[:0]
        cells, entries, after = _at(cells, lost), _at(entries, lost), _at(after, lost)
        self._put(cells, entries, self._layout.differ(entries, after))
        return lost, after

    def _ends_of_runs(self, cells: Array, entries: Ints) -> tuple[Array, Ints]:
        """The first and the last of neighbouring lanes of a warp at one cell: two are enough."""
        inside = entries[1:] ^ entries[:-1] < 1 << self._layout.lane_bits
        inside &= cells[1:] == cells[:-1]
        inside[1:] &= inside[:-1].copy()  # with both neighbours: neither the first nor the last
        end = np.ones(cells.size, bool)
        np.logical_not(inside[1:], out=end[1:-1])
        kept = np.flatnonzero(end)
        return _at(cells, kept), _at(entries, kept)

    def _keep_older(self, cells: Array, older: Ints, newer: Ints, dealt_with: bool) -> None:
        """What was the latest access stays beside the new one, if it can still matter.

        It cannot if it is of the same block and a barrier of all blocks has `dealt_with` it.
        """
        differ = self._layout.differ(older, newer)
        if not older.min():
            differ *= older != 0
        if dealt_with:
            differ *= differ >= 1 << self._layout.inner_bits
        matter = np.count_nonzero(differ)
        if FEW * matter > differ.size:
            self._put(cells, older, differ)
        elif matter:
            at = np.flatnonzero(differ)
            self._put(_at(cells, at), _at(older, at), _at(differ, at))

    def _put(self, cells: Array, entries: Ints, differ: Ints) -> None:
        """Puts accesses where their distance from the latest one of their cell says."""
        if not self._before.size:
            self._make_room()
        steps = [1, 1 << self._layout.lane_bits, 1 << self._layout.inner_bits]
        low, high = (
            sum(int(end) >= step for step in steps) - 1 for end in (differ.min(), differ.max())
        )
        if low == high:
            if low >= 0:
                self._before[low][cells] = entries
            return
        plane = np.full(differ.size, low, np.int8)
        for step in steps[low + 1 : high + 1]:
            plane += (differ >= step).view(np.int8)
        place = plane * np.int64(self._latest.size)
        place += cells
        if low < 0:  # of nobody else: into the last place, which nobody reads
            np.maximum(place, -1, out=place)
        self._places[place] = entries

    def _make_room(self) -> None:
        """For each kind of other a place per cell, and one for what need not be kept."""
        self._places = np.zeros(3 * self._latest.size + 1, np.int64)
        self._before = self._places[:-1].reshape(3, -1)

    def suspects(self, cells: Array, threads: Array, judge: Judge) -> Array:
        """Positions of the accesses that are unordered with an earlier one."""
        found = [bad for bad, _ in self._unordered(cells, threads, judge)]
        return np.flatnonzero(np.logical_or.reduce(found)) if found else cells[:0]

    def earlier(self, cells: Array, threads: Array, judge: Judge) -> list[Earlier]:
        """One unordered earlier access, that of the first position, if there is any."""
        found = [
            Earlier(int(bad.argmax()), int(entries[bad.argmax()]))
            for bad, entries in self._unordered(cells, threads, judge)
        ]
        return [min(found, key=lambda one: one.position)] if found else []

    def _unordered(self, cells: Array, threads: Array, judge: Judge) -> Iterator[tuple[Mask, Ints]]:
        for plane in (self._latest, *self._before):
            entries = _at(plane, cells)
            if entries.size and entries.max():
                bad = judge(entries, threads, cells)
                if bad.any():
                    yield bad, entries


class ByLabel:
    """The latest accesses of all instructions together, which answer most often, and of each."""

    def __init__(self, cells: int, layout: Layout) -> None:
        self._cells = cells
        self._layout = layout
        self._all = Latest(cells, layout)
        self._each: dict[int, Latest] = {}

    def refine(self, ratio: int) -> None:
        self._cells *= ratio
        for part in (self._all, *self._each.values()):
            part.refine(ratio)

    def note(self, cells: Array, entries: Ints, clocks: Clocks, met: bool) -> Met:
        label = self._layout.label(int(entries[0]))
        if label not in self._each:
            self._each[label] = Latest(self._cells, self._layout)
        self._each[label].note(cells, entries, clocks, met)
        return self._all.note(cells, entries, clocks, met)

    def earlier(self, cells: Array, threads: Array, judge: Judge) -> list[Earlier]:
        """For each instruction one unordered earlier access."""
        at = self._all.suspects(cells, threads, judge)
        if not at.size:
            return []
        return [
            Earlier(int(at[found.position]), found.entry)
            for each in self._each.values()
            for found in each.earlier(cells[at], threads[at], judge)
        ]


class History:
    """Lists of accesses, linked from the last one of each cell backwards."""

    def __init__(self, cells: int, layout: Layout, across: bool = False) -> None:
        self._layout = layout
        self._across = across  # flags may order blocks
        self._head = np.full(cells, -1, np.int64)
        self._count = 0
        # Of each access: its entry, its cell, and the number of the one before it in the cell.
        self._entry, self._cell, self._next = np.zeros((3, SMALLEST), np.int64)

    def refine(self, ratio: int) -> None:
        cells = self._cell[: self._count, None] * ratio + np.arange(ratio)
        self._head = np.full(self._head.size * ratio, -1, np.int64)
        self._rebuild(np.repeat(self._entry[: self._count], ratio), cells.reshape(-1))

    def _rebuild(self, entries: Ints, cells: Ints) -> None:
        """Makes the lists anew, of accesses in the order of time."""
        self._entry, self._cell, self._next = np.zeros((3, SMALLEST + 2 * cells.size), np.int64)
        self._head[:] = -1
        self._count = 0
        order = np.argsort(cells, kind="stable")
        self._append(entries[order], cells[order])

    def _append(self, entries: Ints, cells: Ints) -> None:
        """Adds accesses to the lists; equal cells stand side by side."""
        number = np.arange(self._count, self._count + cells.size)
        fresh = np.ones(cells.size, bool)
        fresh[1:] = cells[1:] != cells[:-1]
        self._entry[number], self._cell[number] = entries, cells
        self._next[number] = np.where(fresh, self._head[cells], number - 1)
        self._head[cells] = number  # the last of equal cells stays
        self._count += cells.size

    def note(self, cells: Array, entries: Ints, clocks: Clocks, _met: bool) -> Met:
        order = np.argsort(cells, kind="stable")
        cells, entries = cells[order], entries[order]
        met = cells[1:] == cells[:-1]
        head = self._head[cells]
        again = (head >= 0) & (self._who(self._entry[head]) == self._who(entries))
        self._entry[head[again]] = entries[again]  # the same thread and instruction, later
        if self._count + cells.size > self._entry.size:
            self._tidy(cells.size, clocks)
        self._append(entries[~again], cells[~again])
        return order[:-1][met], entries[1:][met]

    def _who(self, entries: Ints) -> Ints:
        """Thread and label."""
        return entries & np.int64((1 << self._layout.stamp_shift) - 1)

    def _tidy(self, more: int, clocks: Clocks) -> None:
        """Keeps the latest of each thread and label; of what barriers ordered, two blocks'.

        Makes room for `more`, and for as many again as there are.
        """
        entries, cells = self._entry[: self._count], self._cell[: self._count]
        who = self._who(entries)
        order = np.lexsort((np.arange(self._count), who, cells))
        last = np.ones(order.size, bool)
        last[:-1] = (np.diff(cells[order]) != 0) | (np.diff(who[order]) != 0)
        order = order[last]
        keep = clocks.live(entries[order]) | self._across
        dead = np.flatnonzero(~keep)
        place = np.stack((cells, who >> self._layout.code_bits))[:, order[dead]]
        edge = np.ones(dead.size + 1, bool)
        edge[1:-1] = (np.diff(place, axis=1) != 0).any(axis=0)
        keep[dead[edge[:-1] | edge[1:]]] = True  # the lowest and the highest block
        kept = np.sort(order[keep])
        self._rebuild(entries[kept], cells[kept])
        room = np.zeros((3, 2 * self._count + more + SMALLEST), np.int64)
        room[:, : self._count] = [
            column[: self._count] for column in (self._entry, self._cell, self._next)
        ]
        self._entry, self._cell, self._next = room

    def earlier(self, cells: Array, threads: Array, judge: Judge) -> list[Earlier]:
        """For each instruction one unordered earlier access."""
        found: dict[int, Earlier] = {}
        for position, number in self._lists(cells):
            entries = self._entry[number]
            bad = np.flatnonzero(judge(entries, threads[position], cells[position]))
            labels, first = np.unique(self._layout.label(entries[bad]), return_index=True)
            for label, at in zip(labels.tolist(), bad[first].tolist(), strict=True):
                one = Earlier(int(position[at]), int(entries[at]))
                if label not in found or one.position < found[label].position:
                    found[label] = one
        return list(found.values())

    def _lists(self, cells: Array) -> Iterator[tuple[Array, Array]]:
        """Positions and numbers of all accesses in the lists of these cells, the latest first.

        Step by step, all lists at once; what is left of long lists of a few cells, as of a lock
        and of what it guards, is picked out list by list.
        """
        position, number = np.arange(cells.size), self._head[cells]
        steps = 0
        while True:
            going = number >= 0
            if not going.any():
                return
            position, number = position[going], number[going]
            steps += 1
            if steps % STEPS == 0 and np.unique(cells[position]).size <= FEW_CELLS:
                break
            yield position, number
            number = self._next[number]
        for cell in np.unique(cells[position]).tolist():
            here = cells[position] == cell
            newest = int(number[here][0])
            rest = np.flatnonzero(self._cell[: newest + 1] == cell)[::-1]
            who = position[here]
            part = max(1, AT_ONCE // rest.size)
            for first in range(0, who.size, part):
                some = who[first : first + part]
                yield np.repeat(some, rest.size), np.tile(rest, some.size)


class UnderWay:
    """Copies that are not complete: the latest for each cell; a second that writes is a race.

    Many may read one cell; it is free when all of them are done.
    """

    def __init__(self, cells: int, _: Layout) -> None:
        self._entry = np.zeros(cells, np.int64)
        self._count = np.zeros(cells, np.int64)

    def refine(self, ratio: int) -> None:
        self._entry, self._count = np.repeat(self._entry, ratio), np.repeat(self._count, ratio)

    def note(self, cells: Array, entries: Ints, _: Clocks, _met: bool) -> Met:
        np.add.at(self._count, cells, 1)
        self._entry[cells] = entries
        after = self._entry.take(cells)
        lost = np.flatnonzero(after != entries)
        return lost, after[lost]

    def done(self, cells: Array) -> None:
        np.subtract.at(self._count, cells, 1)
        self._entry[cells[self._count[cells] == 0]] = 0

    def earlier(self, cells: Array, _: Array, __: Judge) -> list[Earlier]:
        found = np.flatnonzero(self._entry.take(cells))
        return [Earlier(int(at), int(self._entry[cells[at]])) for at in found[:1]]
