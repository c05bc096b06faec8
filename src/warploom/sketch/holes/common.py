"""What every family of gathers shares: coordinates, tables, and which of many rows are equal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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
    for seed in itertools.count(_SEED):
        keys = [_fingerprints(_words(part(some)), seed) for some in parts]
        first, group = _group(np.concatenate(keys))
        heads = _heads(parts, part, first, group)
        if heads is not None:
            return first, group, heads
    raise AssertionError("seeds do not end")


def _heads(
    parts: list[slice], part: Callable[[slice], Integers], first: Positions, group: Positions
) -> Integers | None:
    """The first row of each group, if all rows of a group are equal."""
    heads: Integers | None = None
    for some in parts:
        rows = part(some)
        if heads is None:
            heads = np.empty((len(first), rows.shape[1]), rows.dtype)
        mine = slice(*np.searchsorted(first, (some.start, some.stop)).tolist())
        heads[mine] = rows[first[mine] - some.start]
        if not np.array_equal(rows, heads[group[some]]):
            return None
    return heads


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
    for start in range(0, len(words), step):
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
