"""What every family of gathers shares: encoding a table, finding equal ones, naming the survivors.

A family enumerates `Candidates` (parameter choices in order, and the table each gives); `collect`
turns them into a `GatherSet` of distinct tables, ordered by first occurrence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.index.ir import constants, operations
from warploom.search.budget import governing_budget
from warploom.sketch.holes.call import Call
from warploom.sketch.term.ir import UNDEFINED, GatherExpr, GatherSet, Shape, Table

Integers: TypeAlias = npt.NDArray[Any]
Positions: TypeAlias = npt.NDArray[np.intp]
Cost: TypeAlias = tuple[int, int]  # operations, distinct constants

_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Choices of parameters, numbered in enumeration order.

    Choice `i` has the table `tables[owner[i]]`; rows of `tables` are in order of first use and may
    still be equal. `name`, `expression` and `cost` take the number of a choice.
    """

    tables: Table
    owner: Positions
    name: Callable[[int], str]
    expression: Callable[[int], GatherExpr]
    cost: Callable[[int], Cost] | None = None


def collect(call: Call, candidates: Candidates) -> GatherSet:
    """The distinct gathers, each shown by the cheapest choice that gives it."""
    if not len(candidates.tables):
        call.fail(
            f"{call.function} has no gather from {list(call.in_shape)} to {list(call.out_shape)}",
            "the identity needs equal shapes, and an axis of length 1 has nothing to move",
        )
    first, group = distinct(candidates.tables)
    owner = group[candidates.owner]
    tables = candidates.tables if len(first) == len(group) else candidates.tables[first]
    cost = candidates.cost or (lambda i: expression_cost(candidates.expression(i)))
    chosen: dict[int, int] = {}

    def representative(position: int) -> int:
        if position not in chosen:
            members = np.flatnonzero(owner == range(len(first))[position]).tolist()
            chosen[position] = members[0] if len(members) == 1 else min(members, key=cost)
        return chosen[position]

    return GatherSet(
        function=call.function,
        options=tuple(sorted(call.options.items(), key=lambda item: item[0])),
        arg_shapes=call.arg_shapes,
        out_shape=call.out_shape,
        tables=np.ascontiguousarray(tables, dtype=np.int32),
        describe=lambda i: candidates.name(representative(i)),
        expression=lambda i: candidates.expression(representative(i)),
        spellings=lambda: ((candidates.name(n), int(kind)) for n, kind in enumerate(owner)),
    )


def expression_cost(gather: GatherExpr) -> Cost:
    both = (gather.argument, gather.offset)
    return sum(map(operations, both)), len(frozenset().union(*map(constants, both)))


def distinct(rows: Integers) -> tuple[Positions, Positions]:
    """The number of the first row of each kind, ascending, and for each row which kind it is.

    Rows are sorted by a 64-bit fingerprint and then compared in full, so the answer is exact.
    """
    words = _words(rows)
    first, group = _group(_fingerprints(words))
    if not _all_equal(words, first, group):
        first, group = _group(words.view(np.dtype((np.void, words.shape[1] * 8))).ravel())
    return first, group


def _words(rows: Integers) -> npt.NDArray[np.uint64]:
    """Each row as whole 64-bit words, padded with zero bytes."""
    data = np.ascontiguousarray(rows).view(np.uint8)
    padding = -data.shape[1] % 8
    if padding:
        data = np.pad(data, ((0, 0), (0, padding)))
    return data.view(np.uint64)


def _fingerprints(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    width = words.shape[1]
    random = np.random.default_rng(20201105)
    weights = random.integers(0, 1 << 64, size=width, dtype=np.uint64) | np.uint64(1)
    result = np.empty(len(words), np.uint64)
    step = max(1, _CHUNK_BYTES // (8 * width))
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
    step = max(1, _CHUNK_BYTES // (8 * words.shape[1]))
    for start in range(0, len(repeats), step):
        some = repeats[start : start + step]
        if not np.array_equal(words[some], words[first[group[some]]]):
            return False
    return True


def strides(shape: Shape) -> tuple[int, ...]:
    """How far apart neighbours along each axis lie in row-major order."""
    result = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        result[axis] = result[axis + 1] * shape[axis + 1]
    return tuple(result)


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


def replace_coordinate(call: Call, axis: int, axes: Sequence[int], values: Integers) -> Table:
    """Tables that read the cell itself, but at `values` along `axis`.

    `values[i]` runs over the grid of `axes`. The shapes agree except along `axis`; a value beyond
    the argument's length there is UNDEFINED.
    """
    call.afford(len(values), 4 * call.cells, "use a smaller array or a smaller set of gathers")
    in_shape, out_shape = call.in_shape, call.out_shape
    open_shape = [out_shape[a] if a in axes else 1 for a in range(len(out_shape))]
    moved = values.reshape([len(values), *open_shape]).astype(np.int32)
    beyond = moved >= in_shape[axis]
    stride = strides(in_shape)
    moved *= np.int32(stride[axis])
    kept = sum(
        (c * stride[a] for a, c in enumerate(coordinates(out_shape)) if a != axis),
        start=np.zeros([1] * len(out_shape), np.int64),
    ).astype(np.int32)
    tables = np.empty([len(values), *out_shape], np.int32)
    np.add(moved, kept, out=tables)
    if beyond.any():
        tables[np.broadcast_to(beyond, tables.shape)] = UNDEFINED
    return tables.reshape(len(values), call.cells)
