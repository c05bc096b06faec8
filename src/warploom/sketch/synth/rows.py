"""Sets of states with the fills that lead to them.

Equal states are kept once, whatever fills lead to them; `Origin` remembers all of these, so that
the fills of the few states that solve the problem can be counted and listed at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.sketch.synth.domain import Ids

Index = npt.NDArray[np.int64]
Columns = dict[int, Index]  # choices by hole


@dataclass(slots=True, eq=False)
class Origin:
    """How each row came about: alternatives `starts[r]:starts[r+1]`, each a row of every parent
    and a choice for each of some holes. Without parents a row has one, empty, fill.
    """

    rows: int
    starts: Index
    parents: tuple[tuple[Origin, Index], ...] = ()
    choices: Columns = field(default_factory=dict)
    _counts: npt.NDArray[np.object_] | None = field(default=None, repr=False)

    def counts(self) -> npt.NDArray[np.object_]:
        """How many fills lead to each row, exactly."""
        if self._counts is None:
            ways = np.ones(int(self.starts[-1]), dtype=object)
            for parent, at in self.parents:
                ways = ways * parent.counts()[at]
            self._counts = (
                np.add.reduceat(ways, self.starts[:-1]) if self.rows else np.zeros(0, dtype=object)
            )
        return self._counts

    def fills(self, rows: Index) -> tuple[Index, Columns]:
        """All fills of the given rows: which of `rows` each belongs to, and its choices."""
        which, alternative = _spread(self.starts, rows)
        columns = {hole: choice[alternative] for hole, choice in self.choices.items()}
        for parent, at in self.parents:
            again, more = parent.fills(at[alternative])
            which, alternative = which[again], alternative[again]
            columns = {hole: choices[again] for hole, choices in columns.items()} | more
        return which, columns

    def any_fill(self, row: int) -> Columns:
        """One fill of a row: there may be too many to list them."""
        alternative = self.starts[row : row + 1]
        columns = {hole: choice[alternative] for hole, choice in self.choices.items()}
        for parent, at in self.parents:
            columns |= parent.any_fill(int(at[alternative[0]]))
        return columns


def leaf(rows: int) -> Origin:
    return Origin(rows, np.arange(rows + 1))


def _spread(starts: Index, rows: Index) -> tuple[Index, Index]:
    """Every alternative of every row: (position in `rows`, alternative)."""
    sizes = starts[rows + 1] - starts[rows]
    which = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum(sizes) - sizes
    return which, np.arange(len(which)) - first[which] + starts[rows][which]


@dataclass(slots=True, eq=False)
class Rows:
    """States of one value: `values[r]` its cells, `keys[s][r]` the row of shared step s it uses."""

    values: Ids
    keys: dict[int, Index]
    origin: Origin

    def __len__(self) -> int:
        return len(self.values)


@dataclass(slots=True, eq=False)
class Pending:
    """New states collected before they are merged: values and where each came from."""

    parents: tuple[Origin, ...]
    values: list[Ids] = field(default_factory=list)
    keys: list[dict[int, Index]] = field(default_factory=list)
    at: list[tuple[Index, ...]] = field(default_factory=list)
    choices: list[Columns] = field(default_factory=list)
    nbytes: int = 0

    def add(
        self, values: Ids, keys: dict[int, Index], at: tuple[Index, ...], choices: Columns
    ) -> None:
        if len(values) == 0:
            return
        self.values.append(values)
        self.keys.append(keys)
        self.at.append(at)
        self.choices.append(choices)
        self.nbytes += values.nbytes

    def take(self) -> Rows | None:
        """Merges equal states and empties the collection."""
        if not self.values:
            return None
        values = np.concatenate(self.values)
        keys = _concatenate(self.keys)
        at = tuple(np.concatenate(parts) for parts in zip(*self.at, strict=True))
        choices = _concatenate(self.choices)
        self.values, self.keys, self.at, self.choices, self.nbytes = [], [], [], [], 0
        first, group = _merge(values, keys)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(first) + 1))
        parents = tuple((p, rows[order]) for p, rows in zip(self.parents, at, strict=True))
        picked = {hole: choice[order] for hole, choice in choices.items()}
        origin = Origin(len(first), starts, parents, picked)
        return Rows(values[first], {k: col[first] for k, col in keys.items()}, origin)


def _concatenate(parts: list[dict[int, Index]]) -> dict[int, Index]:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _merge(values: Ids, keys: dict[int, Index]) -> tuple[Index, Index]:
    """(first row of each group of equal rows, group of each row), in order of first appearance."""
    table = np.concatenate([values, *(c[:, None].astype(np.int32) for c in keys.values())], axis=1)
    prints = _fingerprint(table)
    _, first, group = np.unique(prints, return_index=True, return_inverse=True)
    if not np.array_equal(table[first[group]], table):  # two different rows share a fingerprint
        _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(first, kind="stable")
    place = np.empty(len(rank), dtype=np.int64)
    place[rank] = np.arange(len(rank))
    return first[rank], place[group.ravel()]


def _fingerprint(table: Ids) -> npt.NDArray[np.uint64]:
    rng = np.random.default_rng(table.shape[1])
    weights = rng.integers(1, 2**63, size=table.shape[1], dtype=np.uint64)
    out = np.zeros(len(table), dtype=np.uint64)
    step = max(1, 2**21 // max(1, table.shape[1]))
    for start in range(0, len(table), step):
        part = table[start : start + step].astype(np.uint64)
        out[start : start + step] = (part * weights).sum(axis=1, dtype=np.uint64)
    return out
