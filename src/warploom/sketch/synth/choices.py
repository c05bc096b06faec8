"""The choices of a hole, or of two holes one after the other, and a trie over what they read.

Two adjacent holes are composed only where a cell is asked for, never as a whole table. The trie
sorts choices by the places they read for a few cells, so that for one state only the choices that
read allowed values are ever reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from warploom.search.budget import Budget
from warploom.sketch.synth.demand import Flags
from warploom.sketch.synth.problem import Move
from warploom.sketch.synth.rows import Index
from warploom.sketch.synth.subterms import Ids

TRIE_LEVELS = 6
TRIE_CHOICES = 1 << 20  # a larger set is kept in several tries
EXPAND_AT_ONCE = 1 << 19
SCAN_AT_ONCE = 1 << 22  # values of states that are scanned for allowed ones
PAIR_BYTES = 64  # what a pair (state, choice) takes while it is looked at


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """What the live choices of one hole read. Choices are numbered among the live ones."""

    move: Move
    alive: Index
    _columns: dict[int, Ids] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.alive)

    def column(self, cell: int) -> Ids:
        """The place that each choice reads for the cell; kept, since cells are asked for often."""
        if cell not in self._columns:
            self._columns[cell] = self.move.column(cell, self.alive)
        return self._columns[cell]

    def at(self, choice: Index, place: npt.NDArray[np.integer]) -> Ids:
        """What each choice reads for a cell of its own. Two cells more stand for the constants."""
        cells = self.move.cells
        read = self.move.places(self.alive[choice], np.minimum(place, cells - 1))
        beyond = place >= cells
        if beyond.any():
            read[beyond] = place[beyond] - cells + self.move.source_size - 2
        return read

    def tables(self, choice: Index) -> Ids:
        return self.move.rows(self.alive[choice])


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Those of a hole; with a hole before it, all pairs: choices i of the first and j of the second
    are choice i * |j| + j."""

    second: Reads
    first: Reads | None = None

    def __len__(self) -> int:
        return len(self.second) * (1 if self.first is None else len(self.first))

    @property
    def source_size(self) -> int:
        return (self.first or self.second).move.source_size

    def by_hole(self, choice: Index) -> dict[int, Index]:
        """As choices of each hole, numbered as in the program."""
        if self.first is None:
            return {self.second.move.position: self.second.alive[choice]}
        i, j = np.divmod(choice, len(self.second))
        one, two = self.first, self.second
        return {one.move.position: one.alive[i], two.move.position: two.alive[j]}

    def places(self, cell: int, choice: Index) -> Ids:
        """Where the given choices read for one cell."""
        read: Ids
        if self.first is None:
            read = self.second.column(cell)[choice]
        else:
            i, j = np.divmod(choice, len(self.second))
            read = self.first.at(i, self.second.column(cell)[j])
        return read

    def at(self, choice: Index, place: npt.NDArray[np.integer]) -> Ids:
        """Where the given choices read, each for a cell of its own."""
        if self.first is None:
            return self.second.at(choice, place)
        i, j = np.divmod(choice, len(self.second))
        return self.first.at(i, self.second.at(j, place))

    def tables(self, choice: Index) -> Ids:
        """Whole tables: [choices given, cells]."""
        if self.first is None:
            return self.second.tables(choice)
        i, j = np.divmod(choice, len(self.second))
        second = self.second.tables(j)
        return self.first.at(np.repeat(i, second.shape[1]), second.ravel()).reshape(second.shape)


class States(Protocol):
    """Rows whose cells can be read, whether or not they were ever written down."""

    def __len__(self) -> int: ...

    def read(self, row: Index, place: Ids) -> Ids: ...

    def holding(self, row: Index, allowed: Flags) -> tuple[Index, Index] | None:
        """Where these rows hold something allowed: (position in `row`, place); None: too dear."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """States as an array."""

    values: Ids

    def __len__(self) -> int:
        return len(self.values)

    def read(self, row: Index, place: Ids) -> Ids:
        found: Ids = self.values[row, place]
        return found

    def holding(self, row: Index, allowed: Flags) -> tuple[Index, Index] | None:
        step = max(1, SCAN_AT_ONCE // self.values.shape[1])
        found = [
            np.nonzero(allowed[self.values[row[start : start + step]]])
            for start in range(0, len(row), step)
        ]
        which = [part[0] + step * number for number, part in enumerate(found)]
        return np.concatenate(which), np.concatenate([part[1] for part in found])


Looked = Callable[[int], None]  # told how many nodes were looked at


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """`order` sorts the choices by the places read for `levels` cells; nodes are runs of it."""

    order: Index
    places: tuple[Ids, ...]  # by level: the place of each node
    children: tuple[Index, ...]  # by level: first child of each node, and the end
    runs: Index  # first choice of each leaf, and the end

    def pairs(
        self, states: States, flags: Flags, budget: Budget, looked: Looked
    ) -> Iterator[tuple[Index, Index]]:
        """(row, choice) pairs that read allowed values for all cells of the trie, in pieces.
        `flags[level]` says what is allowed there."""
        at_once = budget.at_once(EXPAND_AT_ONCE, PAIR_BYTES)
        waiting: list[tuple[Index, Index]] = []
        size = 0
        for row, leaf in self.leaves(states, flags, budget, looked):
            waiting.append((row, leaf))
            size += int((self.runs[leaf + 1] - self.runs[leaf]).sum())
            if size >= at_once:
                yield from self._spread_leaves(waiting, at_once)
                waiting, size = [], 0
        yield from self._spread_leaves(waiting, at_once)

    def _spread_leaves(
        self, found: list[tuple[Index, Index]], at_once: int
    ) -> Iterator[tuple[Index, Index]]:
        if found:
            row, leaf = (np.concatenate(parts) for parts in zip(*found, strict=True))
            for part in _pieces(self.runs, leaf, at_once):
                pair_row, at = _spread(row[part], leaf[part], self.runs)
                yield pair_row, self.order[at]

    def leaves(
        self, states: States, flags: Flags, budget: Budget, looked: Looked
    ) -> Iterator[tuple[Index, Index]]:
        """The (row, leaf) pairs, in pieces."""
        if len(states) and len(self.runs) > 1:
            row = np.arange(len(states))
            walk = _Walk(self, states, flags, budget, looked)
            yield from walk.below(0, row, np.zeros(len(row), np.int64))

    def child(self, level: int, node: Index, place: Index) -> tuple[Index, Flags]:
        """The child of each node for a place, and whether there is one."""
        parent = np.repeat(np.arange(len(self.children[level]) - 1), np.diff(self.children[level]))
        width = int(self.places[level].max(initial=0)) + 1
        keys = parent * width + self.places[level]  # sorted: by parent, then by place
        wanted = np.where(place < width, node * width + place, -1)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return at, keys[at] == wanted


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """One walk down a trie, in pieces that never spread beyond what fits."""

    trie: Trie
    states: States
    flags: Flags
    budget: Budget
    looked: Looked

    def below(self, level: int, row: Index, node: Index) -> Iterator[tuple[Index, Index]]:
        if level == len(self.trie.places):
            if len(row):
                yield row, node
            return
        at_once = self.budget.at_once(EXPAND_AT_ONCE, PAIR_BYTES)
        for part in _pieces(self.trie.children[level], node, at_once):
            self.budget.check()
            yield from self.below(level + 1, *self._step(level, row[part], node[part]))

    def _step(self, level: int, row: Index, node: Index) -> tuple[Index, Index]:
        """One cell further down: (row, node) pairs that read something allowed. Few allowed values
        are looked up in the states; otherwise all children are tried."""
        places, children = self.trie.places[level], self.trie.children[level]
        allowed = self.flags[level]
        branching = len(places) / max(1, len(children) - 1)
        if np.count_nonzero(allowed) < min(branching, 4):
            held = self.states.holding(row, allowed)
            if held is not None:
                found, place = held
                self.looked(len(found))
                child, there = self.trie.child(level, node[found], place)
                return row[found][there], child[there]
        row, node = _spread(row, node, children)
        self.looked(len(row))
        keep = allowed[self.states.read(row, places[node])]
        return row[keep], node[keep]


def _pieces(starts: Index, node: Index, at_once: int) -> Iterator[slice]:
    """Cuts nodes so that the runs of no piece are together much longer than asked for."""
    sizes = np.cumsum(starts[node + 1] - starts[node])
    start = 0
    while start < len(node):
        done = sizes[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(sizes, done + at_once, "right")))
        yield slice(start, end)
        start = end


def _spread(row: Index, node: Index, bounds: Index) -> tuple[Index, Index]:
    """Each row with everything in its node's run: (row, member)."""
    low = bounds[node]
    sizes = bounds[node + 1] - low
    which = np.repeat(np.arange(len(row)), sizes)
    nth = np.arange(len(which)) - (np.cumsum(sizes) - sizes)[which]
    return row[which], low[which] + nth


def build_tries(choices: Choices, cells: Index, budget: Budget) -> tuple[Trie, ...]:
    """Tries over the first few of `cells`, for all choices together."""
    found = []
    for start in range(0, len(choices), TRIE_CHOICES):
        budget.check()
        some = np.arange(start, min(start + TRIE_CHOICES, len(choices)))
        budget.room_for(64 * len(some))
        found.append(_build_trie(choices, some, cells))
    return tuple(found)


def _build_trie(choices: Choices, some: Index, cells: Index) -> Trie:
    """Over those cells that fit a 62-bit key, as long as they tell choices apart."""
    bits = max(1, int(choices.source_size - 1).bit_length())
    levels = min(TRIE_LEVELS, 62 // bits, len(cells))
    key = np.zeros(len(some), dtype=np.int64)
    for cell in cells[:levels]:
        key = (key << bits) | choices.places(int(cell), some)
    order = np.argsort(key, kind="stable")
    key = key[order]
    used = _useful_levels(key, bits, levels)
    return _nodes(some[order], key >> (bits * (levels - used)), bits, used)


def _useful_levels(key: Index, bits: int, levels: int) -> int:
    """How many levels of the sorted keys are worth having."""
    before = 1
    for level in range(levels):
        prefix = key >> (bits * (levels - 1 - level))
        distinct = 1 + int(np.count_nonzero(prefix[1:] != prefix[:-1]))
        if level and distinct == before:
            return level
        if distinct > 0.8 * len(key):
            return level + 1
        before = distinct
    return levels


def _nodes(order: Index, key: Index, bits: int, levels: int) -> Trie:
    starts = np.zeros(1, dtype=np.int64)
    places, children = [], []
    for level in range(levels):
        prefix = key >> (bits * (levels - 1 - level))
        new = np.flatnonzero(np.concatenate([[True], prefix[1:] != prefix[:-1]]))
        places.append((prefix[new] & ((1 << bits) - 1)).astype(np.int32))
        ends = np.append(starts, len(key))
        children.append(np.searchsorted(new, ends))
        starts = new
    return Trie(order, tuple(places), tuple(children), np.append(starts, len(key)))
