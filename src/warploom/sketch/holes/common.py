"""What every family of gathers shares: coordinates, tables, and which of many rows are equal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.search.budget import governing_budget
from warploom.sketch.term.gather import UNDEFINED, Shape, Table, strides

Integers: TypeAlias = npt.NDArray[Any]
Positions: TypeAlias = npt.NDArray[np.intp]

CHUNK_BYTES = 1 << 24
_SEED = 20201105


def distinct(rows: Integers) -> tuple[Positions, Positions]:
    """The number of the first row of each kind, ascending, and for each row which kind it is.

    Rows are sorted by a 64-bit fingerprint and then compared in full, so the answer is exact.
    """
    words = _words(rows)
    first, group = _group(_fingerprints(words))
    if not _all_equal(words, first, group):
        first, group = _group(words.view(np.dtype((np.void, words.shape[1] * 8))).ravel())
    return first, group


def distinct_parts(
    count: int, row_bytes: int, part: Callable[[slice], Integers]
) -> tuple[Positions, Positions, Integers]:
    """`distinct` of rows that are made in parts and never kept together, and the first rows."""
    step = max(1, CHUNK_BYTES // max(1, row_bytes))
    parts = [slice(start, min(start + step, count)) for start in range(0, count, step)]
    budget = governing_budget()
    for seed in itertools.count(_SEED):
        kinds = _Kinds(count, seed)
        for some in parts:
            budget.check()
            if not kinds.add(part(some)):
                break  # two different rows share a fingerprint: another seed
        else:
            return kinds.first[: kinds.count], kinds.group, kinds.heads[: kinds.count]
    raise AssertionError("seeds do not end")


class _Kinds:
    """The kinds of rows seen so far: the first row of each, kept as narrow as its numbers allow.

    Arrays are made for as many kinds as rows: memory that is never written to takes no room.
    """

    def __init__(self, rows: int, seed: int) -> None:
        self.count = 0
        self.first: Positions = np.empty(rows, np.intp)
        self.group: Positions = np.empty(rows, np.intp)
        self.heads: Integers = np.empty((0, 0), np.uint8)
        self._rows, self._done, self._seed = rows, 0, seed
        self._known = np.empty(0, np.uint64)  # fingerprints, sorted
        self._kinds: Positions = np.empty(0, np.intp)  # whose they are

    def add(self, rows: Integers) -> bool:
        """The rows that come next; whether each equals the first of its kind."""
        keys = _fingerprints(_words(rows), self._seed)
        first, group = _group(keys)
        at = np.minimum(np.searchsorted(self._known, keys[first]), max(0, len(self._known) - 1))
        old = self._known[at] == keys[first] if len(self._known) else np.zeros(len(first), np.bool_)
        kinds = np.empty(len(first), np.intp)
        kinds[old] = self._kinds[at[old]]
        fresh = first[~old]
        kinds[~old] = np.arange(self.count, self.count + len(fresh))
        self._keep(rows, fresh)
        known = np.concatenate([self._known, keys[fresh]])
        order = np.argsort(known, kind="stable")
        self._known = known[order]
        self._kinds = np.concatenate([self._kinds, kinds[~old]])[order]
        kind = kinds[group]
        self.group[self._done : self._done + len(rows)] = kind
        again = np.flatnonzero(self.first[kind] != np.arange(self._done, self._done + len(rows)))
        self._done += len(rows)
        return np.array_equal(rows[again], self.heads[kind[again]])

    def _keep(self, rows: Integers, fresh: Positions) -> None:
        kind = np.promote_types(self.heads.dtype, _narrowest(rows))
        if self.heads.dtype != kind or not len(self.heads):
            wider = np.empty((self._rows, rows.shape[1]), kind)
            if self.count:
                wider[: self.count] = self.heads[: self.count]
            self.heads = wider
        new = slice(self.count, self.count + len(fresh))
        self.heads[new] = rows[fresh]
        self.first[new] = fresh + self._done
        self.count += len(fresh)


def _narrowest(rows: Integers) -> np.dtype[Any]:
    """A type that holds all of these."""
    return np.promote_types(
        np.min_scalar_type(rows.min(initial=0)), np.min_scalar_type(rows.max(initial=0))
    )


def _words(rows: Integers) -> npt.NDArray[np.uint64]:
    """Each row as whole 64-bit words, padded with zero bytes."""
    data = np.ascontiguousarray(rows).view(np.uint8)
    padding = -data.shape[1] % 8
    if padding:
        data = np.pad(data, ((0, 0), (0, padding)))
    return data.view(np.uint64)


def _fingerprints(words: npt.NDArray[np.uint64], seed: int = _SEED) -> npt.NDArray[np.uint64]:
    width = words.shape[1]
    random = np.random.default_rng(seed)
    weights = random.integers(0, 1 << 64, size=width, dtype=np.uint64) | np.uint64(1)
    result = np.empty(len(words), np.uint64)
    step = max(1, CHUNK_BYTES // (8 * width))
    budget = governing_budget()
    for start in range(0, len(words), step):
        if start:
            budget.check()
        chunk = words[start : start + step]
        # A difference in high bits alone would survive only in high bits of the products.
        result[start : start + step] = (chunk ^ (chunk >> np.uint64(29))) @ weights
    return result


def _group(keys: npt.NDArray[Any]) -> tuple[Positions, Positions]:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    fresh = np.ones(len(keys), dtype=bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    heads = order[fresh]
    by_occurrence = np.argsort(heads)
    rank = np.empty_like(by_occurrence)
    rank[by_occurrence] = np.arange(len(heads))
    group = np.empty(len(keys), np.intp)
    group[order] = rank[np.cumsum(fresh) - 1]
    return heads[by_occurrence], group


def _all_equal(words: npt.NDArray[np.uint64], first: Positions, group: Positions) -> bool:
    """Whether each row equals the first of its group."""
    repeats = np.flatnonzero(first[group] != np.arange(len(words)))
    step = max(1, CHUNK_BYTES // (8 * words.shape[1]))
    for start in range(0, len(repeats), step):
        some = repeats[start : start + step]
        if not np.array_equal(words[some], words[first[group[some]]]):
            return False
    return True


def kinds_of(*columns: Integers) -> tuple[Positions, Positions]:
    """The first row of each kind, and for each row which kind it is."""
    code, most = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        spread = int(column.max(initial=0)) - low + 1
        most *= spread
        if most >= 1 << 62:  # too large for one number: count what there is so far
            found, code = np.unique(code, return_inverse=True)
            most = len(found) * spread
        code = code * spread + (column - low)
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return first, kind


def product(*columns: Any) -> Integers:
    """Every combination, the last column the fastest."""
    return np.stack([g.ravel() for g in np.meshgrid(*columns, indexing="ij")], axis=1)


def coordinates(shape: Shape) -> list[Integers]:
    """One array per axis, each open along the others, so that they broadcast to `shape`."""
    return [
        np.arange(length).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        for axis, length in enumerate(shape)
    ]


def grid(shape: Shape, axes: Sequence[int]) -> dict[int, Integers]:
    """Each axis' coordinate over all cells of the sub-array along `axes`, flat, row-major."""
    lengths = [shape[axis] for axis in axes]
    flat = np.indices(lengths).reshape(len(lengths), math.prod(lengths))
    return {axis: flat[i] for i, axis in enumerate(axes)}


def read(shape: Shape, source: Sequence[Integers], out_shape: Shape) -> Table:
    """The one-row table that reads coordinate `source` of an array; UNDEFINED out of bounds."""
    offset: Integers | int = 0
    inside: npt.NDArray[np.bool_] | bool = True
    for length, stride, coordinate in zip(shape, strides(shape), source, strict=True):
        offset = offset + coordinate * stride
        inside = inside & (np.asarray(coordinate) < length)
    table = np.where(inside, offset, UNDEFINED).astype(np.int32)
    return np.broadcast_to(table, out_shape).reshape(1, -1)
