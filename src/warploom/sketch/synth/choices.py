"""The choices of a hole, or of two holes one after the other, and a trie over what they read.

Two adjacent holes are composed only where a cell is asked for, never as a whole table. The trie
sorts choices by the places they read for a few cells, so that for one state only the choices that
read allowed values are ever reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.sketch.synth.demand import Flags
from warploom.sketch.synth.domain import Ids
from warploom.sketch.synth.rows import Index

TRIE_LEVELS = 6
EXPAND_AT_ONCE = 1 << 19


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """`second[c, j]`: what choice j of the (last) hole reads for cell c. With a hole before it,
    `first[p, i]` is what that one's choice i reads for place p; choices are numbered i * |j| + j.
    """

    second: Ids  # [cells, choices]
    first: Ids | None = None  # [places, choices]

    @property
    def count(self) -> int:
        return int(self.second.shape[1] * (1 if self.first is None else self.first.shape[1]))

    def places(self, cell: int, choice: Index) -> Ids:
        """Where the given choices read for one cell."""
        read: Ids
        if self.first is None:
            read = self.second[cell][choice]
        else:
            i, j = np.divmod(choice, self.second.shape[1])
            read = self.first[self.second[cell][j], i]
        return read

    def all_places(self, cell: int) -> Ids:
        if self.first is None:
            read: Ids = self.second[cell]
            return read
        return np.ascontiguousarray(self.first[self.second[cell]].T).ravel()

    def tables(self, choice: Index) -> Ids:
        """Whole tables: [choices given, cells]."""
        if self.first is None:
            return self.second.T[choice]
        i, j = np.divmod(choice, self.second.shape[1])
        return self.first[self.second.T[j], i[:, None]]


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """`order` sorts the choices by the places read for `levels` cells; nodes are runs of it."""

    order: Index
    places: tuple[Ids, ...]  # by level: the place of each node
    children: tuple[Index, ...]  # by level: first child of each node, and the end
    runs: Index  # first choice of each leaf, and the end

    def pairs(self, sources: Ids, flags: Flags) -> Iterator[tuple[Index, Index, int]]:
        """(row, choice) pairs that read allowed values for all cells of the trie, in chunks, and
        how many nodes were looked at to find them. `flags[level]` says what is allowed there."""
        width = max(1, int(self.children[0][1])) if self.children else 1
        step = max(1, EXPAND_AT_ONCE // width)
        for start in range(0, len(sources), step):
            row = np.arange(start, min(start + step, len(sources)))
            node = np.zeros(len(row), dtype=np.int64)
            looked = 0
            for level in range(len(self.places)):
                row, node, seen = self._descend(level, sources, row, node, flags[level])
                looked += seen
            yield from self._leaves(row, node, looked)

    def _descend(
        self, level: int, sources: Ids, row: Index, node: Index, allowed: Flags
    ) -> tuple[Index, Index, int]:
        """One cell further down: (row, node) pairs that read something allowed, and how many
        nodes were looked at. Few allowed values are looked up in the states; otherwise all
        children are tried."""
        places, children = self.places[level], self.children[level]
        branching = len(places) / max(1, len(children) - 1)
        if len(row) and np.count_nonzero(allowed) < min(branching, 4):
            found, place = np.nonzero(allowed[sources[row]])
            child, there = self._child(level, node[found], place)
            return row[found][there], child[there], len(found)
        row, node = _spread(row, node, children)
        keep = allowed[sources[row, places[node]]]
        return row[keep], node[keep], len(row)

    def _child(self, level: int, node: Index, place: Index) -> tuple[Index, Flags]:
        """The child of each node for a place, and whether there is one."""
        parent = np.repeat(np.arange(len(self.children[level]) - 1), np.diff(self.children[level]))
        width = int(self.places[level].max(initial=0)) + 1
        keys = parent * width + self.places[level]  # sorted: by parent, then by place
        wanted = np.where(place < width, node * width + place, -1)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return at, keys[at] == wanted

    def _leaves(self, row: Index, node: Index, looked: int) -> Iterator[tuple[Index, Index, int]]:
        sizes = np.cumsum(self.runs[node + 1] - self.runs[node])
        start = 0
        while start < len(row):
            done = sizes[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(sizes, done + EXPAND_AT_ONCE)))
            pair_row, at = _spread(row[start:end], node[start:end], self.runs)
            yield pair_row, self.order[at], looked
            looked, start = 0, end


def _spread(row: Index, node: Index, bounds: Index) -> tuple[Index, Index]:
    """Each row with everything in its node's run: (row, member)."""
    low = bounds[node]
    sizes = bounds[node + 1] - low
    which = np.repeat(np.arange(len(row)), sizes)
    nth = np.arange(len(which)) - (np.cumsum(sizes) - sizes)[which]
    return row[which], low[which] + nth


def build_trie(choices: Choices, cells: Index, source_size: int) -> Trie:
    """A trie over the first few of `cells`: those that fit a 62-bit key and tell choices apart."""
    bits = max(1, int(source_size - 1).bit_length())
    key = np.zeros(choices.count, dtype=np.int64)
    columns: list[Ids] = []
    distinct = 1
    for cell in cells[: min(TRIE_LEVELS, 62 // bits)]:
        column = choices.all_places(int(cell))
        longer = (key << bits) | column
        now = len(np.unique(longer)) if choices.count > 1 else 1
        if columns and now == distinct:
            break
        columns.append(column)
        key, distinct = longer, now
        if distinct > 0.8 * choices.count:
            break
    order = np.argsort(key, kind="stable")
    return _nodes(order, key[order], bits, len(columns))


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
