"""Sets of states with the fills that lead to them.

Equal states are kept once, whatever fills lead to them; `Origin` remembers all of these, so that
the fills of the few states that solve the problem can be counted and listed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.search.budget import Budget
from warploom.sketch.synth.subterms import Ids

Index = npt.NDArray[np.int64]
Columns = dict[int, Index]  # choices by hole
Prints = npt.NDArray[np.uint64]

COMPARED_AT_ONCE = 1 << 21  # values
MOST_PARTS = 256
ROW_BYTES = 64  # what is needed for a row besides its values while rows are merged


@dataclass(slots=True, eq=False)
class Origin:
    """How each row came about: alternatives `starts[r]:starts[r+1]`, each a row of every parent
    and a choice for each of some holes. Without parents a row has one, empty, fill.
    """

    rows: int
    starts: Index
    parents: tuple[tuple[Origin, Index], ...] = ()
    choices: Columns = field(default_factory=dict)

    @property
    def alternatives(self) -> int:
        return int(self.starts[-1])


def leaf(rows: int) -> Origin:
    return Origin(rows, np.arange(rows + 1))


def spread(starts: Index, rows: Index) -> tuple[Index, Index]:
    """Every alternative of every row: (position in `rows`, alternative)."""
    sizes = starts[rows + 1] - starts[rows]
    which = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum(sizes) - sizes
    return which, np.arange(len(which)) - first[which] + starts[rows][which]


def trimmed(origin: Origin, rows: Index) -> Origin:
    """Only these rows, and of each parent only what they came from: what a few states that solve
    the problem need to remember of the many that do not."""
    if not origin.parents and not origin.choices:
        return leaf(len(rows))
    sizes = origin.starts[rows + 1] - origin.starts[rows]
    alternative = spread(origin.starts, rows)[1]
    parents = []
    for parent, at in origin.parents:
        used, now = np.unique(at[alternative], return_inverse=True)
        parents.append((trimmed(parent, used), now.ravel()))
    choices = {hole: choice[alternative] for hole, choice in origin.choices.items()}
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Origin(len(rows), starts, tuple(parents), choices)


@dataclass(slots=True, eq=False)
class Rows:
    """States of one value: `values[r]` its cells, `keys[s][r]` the row of shared step s it uses."""

    values: Ids
    keys: dict[int, Index]
    origin: Origin

    def __len__(self) -> int:
        return len(self.values)

    def only(self, at: Index) -> Rows:
        keys = {key: column[at] for key, column in self.keys.items()}
        return Rows(self.values[at], keys, trimmed(self.origin, at))

    @property
    def nbytes(self) -> int:
        alternatives = 8 * self.origin.alternatives
        alternatives *= 1 + len(self.origin.parents) + len(self.origin.choices)
        return self.values.nbytes + len(self) * (8 * len(self.keys) + ROW_BYTES) + alternatives

    def slices(self, nbytes: int) -> Iterator[Rows]:
        """The rows in batches of about so many bytes."""
        step = max(1, nbytes // max(1, self.nbytes // max(1, len(self))))
        if step >= len(self):
            yield self
            return
        for start in range(0, len(self), step):
            yield self.only(np.arange(start, min(start + step, len(self))))


@dataclass(slots=True, eq=False)
class Part:
    """Different states, and the alternatives that lead to them: `row[a]` is the state of a."""

    values: Ids
    keys: dict[int, Index]
    prints: Prints
    row: Index
    at: tuple[Index, ...]
    choices: Columns

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        alternatives = 8 * len(self.row) * (1 + len(self.at) + len(self.choices))
        return self.values.nbytes + len(self) * (8 * len(self.keys) + ROW_BYTES) + alternatives


@dataclass(slots=True, eq=False)
class Pending:
    """New states collected before they go on together, equal ones as one."""

    parents: tuple[Origin, ...]
    parts: list[Part] = field(default_factory=list)
    nbytes: int = 0

    def add(
        self, values: Ids, keys: dict[int, Index], at: tuple[Index, ...], choices: Columns
    ) -> None:
        if len(values) == 0:
            return
        every = np.arange(len(values))
        prints = _fingerprints(values, keys)
        part = _merged([Part(values, keys, prints, every, at, choices)], Budget())
        self.parts.append(part)
        self.nbytes += part.nbytes
        if len(self.parts) > MOST_PARTS:
            self.merge(Budget())

    def merge(self, budget: Budget) -> None:
        """Makes one part of all."""
        if len(self.parts) > 1:
            budget.room_for(self.nbytes)
            part = _merged(self.parts, budget)
            self.parts, self.nbytes = [part], part.nbytes

    def take(self, budget: Budget) -> Iterator[Rows]:
        """All states as one batch, if there are any; empties the collection."""
        self.merge(budget)
        return self.slices(1 << 62)

    def slices(self, nbytes: int) -> Iterator[Rows]:
        """The states in pieces of about so many bytes, part by part; empties the collection."""
        while self.parts:
            part = self.parts.pop(0)
            self.nbytes -= part.nbytes
            order = np.argsort(part.row, kind="stable")
            starts = np.searchsorted(part.row[order], np.arange(len(part) + 1))
            parents = tuple((p, rows[order]) for p, rows in zip(self.parents, part.at, strict=True))
            picked = {hole: choice[order] for hole, choice in part.choices.items()}
            rows = Rows(part.values, part.keys, Origin(len(part), starts, parents, picked))
            yield from rows.slices(nbytes)


def _merged(parts: list[Part], budget: Budget) -> Part:
    """One part of several, in order of first appearance. The old ones' values are not kept."""
    budget.check()
    keys = _concatenate([part.keys for part in parts])
    prints = np.concatenate([part.prints for part in parts])
    first, group = _distinct(prints)
    budget.check()
    if len(first) < len(prints) and not _groups_are_equal(parts, keys, first, group, budget):
        # Two different rows share a fingerprint, which next to never happens.
        first, group = _distinct(_as_bytes(parts, keys))
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    row = np.concatenate([group[part.row + o] for part, o in zip(parts, offsets, strict=False)])
    at = tuple(np.concatenate(columns) for columns in zip(*(p.at for p in parts), strict=True))
    choices = _concatenate([part.choices for part in parts])
    keys = {key: column[first] for key, column in keys.items()}
    return Part(_picked(parts, offsets, first), keys, prints[first], row, at, choices)


def _concatenate(parts: list[dict[int, Index]]) -> dict[int, Index]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _picked(parts: list[Part], offsets: Index, first: Index) -> Ids:
    """The values of these rows (ascending) of all parts."""
    if len(parts) == 1 and len(first) == len(parts[0]):
        return parts[0].values
    out = np.empty((len(first), parts[0].values.shape[1]), dtype=np.int32)
    for part, low, high in zip(parts, offsets, offsets[1:], strict=False):
        start, end = np.searchsorted(first, (low, high))
        np.take(part.values, first[start:end] - low, axis=0, out=out[start:end])
    return out


def _distinct(prints: npt.NDArray[np.generic]) -> tuple[Index, Index]:
    """(first row of each kind, kind of each row), in order of first appearance."""
    _, first, group = np.unique(prints, return_index=True, return_inverse=True)
    if len(first) == len(prints):
        every = np.arange(len(prints))
        return every, every
    rank = np.argsort(first, kind="stable")
    place = np.empty(len(rank), dtype=np.int64)
    place[rank] = np.arange(len(rank))
    return first[rank], place[group.ravel()]


def _groups_are_equal(
    parts: list[Part], keys: dict[int, Index], first: Index, group: Index, budget: Budget
) -> bool:
    """Whether each row equals the first of its group, cell by cell."""
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    again = np.flatnonzero(first[group] != np.arange(len(group)))
    model = first[group[again]]
    if any(not np.array_equal(column[again], column[model]) for column in keys.values()):
        return False
    step = max(1, COMPARED_AT_ONCE // max(1, parts[0].values.shape[1]))
    for start in range(0, len(again), step):
        budget.check()
        some = slice(start, start + step)
        one, two = (_rows_of(parts, offsets, rows[some]) for rows in (again, model))
        if not np.array_equal(one, two):
            return False
    return True


def _rows_of(parts: list[Part], offsets: Index, rows: Index) -> Ids:
    """Some rows of all parts, numbered through."""
    out = np.empty((len(rows), parts[0].values.shape[1]), dtype=np.int32)
    which = np.searchsorted(offsets, rows, "right") - 1
    for number in np.unique(which):
        here = which == number
        out[here] = parts[number].values[rows[here] - offsets[number]]
    return out


def _as_bytes(parts: list[Part], keys: dict[int, Index]) -> npt.NDArray[np.void]:
    table = np.concatenate([part.values for part in parts])
    columns = [column[:, None].astype(np.int32) for column in keys.values()]
    table = np.ascontiguousarray(np.concatenate([table, *columns], axis=1))
    return table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()


def _fingerprints(values: Ids, keys: dict[int, Index]) -> Prints:
    """Equal rows have equal ones; different rows nearly always different ones."""
    rng = np.random.default_rng(values.shape[1])
    weights = rng.integers(1, 2**63, size=values.shape[1] + len(keys), dtype=np.uint64)
    out = np.zeros(len(values), dtype=np.uint64)
    step = max(1, COMPARED_AT_ONCE // max(1, values.shape[1]))
    for start in range(0, len(values), step):
        part = values[start : start + step].astype(np.uint64)
        out[start : start + step] = part @ weights[: values.shape[1]]
    for weight, column in zip(weights[values.shape[1] :], keys.values(), strict=True):
        out += column.astype(np.uint64) * weight
    return out
