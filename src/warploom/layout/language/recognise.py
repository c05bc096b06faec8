"""A table of places → a layout in words that has them: strides, swizzles, matrices, exchanges of
columns, rotations, and each of these with padding. Functions that others wrote become layouts so.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from warploom.errors import CheckError
from warploom.layout.language import ir
from warploom.layout.language.build import row_major
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import Numbers, evaluate, values
from warploom.layout.language.facts import as_swizzle

MOST_ROWS_BITS = 12  # that an exchange shifts rows by
_SWIZZLES = [
    ir.Swizzle(bits, base, sign * shift)
    for bits in range(1, 6)
    for base in range(8)
    for shift in range(bits, bits + 8)
    for sign in (1, -1)
]


def recognised(places: Numbers, shape: tuple[int, ...]) -> ir.Layout | None:
    """The layout of a tensor whose elements, by rows, have these places; None where no word fits.

    >>> row, column = np.indices((8, 64))
    >>> recognised((row * 72 + (column ^ row * 8)).ravel(), (8, 64))
    Compose(Pad(64, 8), Compose(Swizzle(3, 3, 3), Strided((8, 64), (64, 1))))
    """
    plain = _without_padding(places, shape)
    if plain is not None:
        return plain
    order = np.argsort(places, kind="stable")
    jumps = np.flatnonzero(np.diff(places[order]) - 1)
    if not jumps.size:
        return None
    interval = int(jumps[0]) + 1
    padding = int(places[order[interval]] - places[order[interval - 1]]) - 1
    ranks = np.empty_like(places)
    ranks[order] = np.arange(len(places))
    padded = ranks + padding * (ranks // interval)
    if padding < 1 or not np.array_equal(padded + int(places.min()), places):
        return None
    inner = _without_padding(ranks, shape)
    if inner is None:
        return None
    start = int(places.min())
    parts = [*([ir.Shift(start)] if start else []), ir.Pad(interval, padding), inner]
    return check(ir.compose(*parts))


def modes_of(numbers: Numbers) -> tuple[ir.Tree, ir.Tree] | None:
    """Sizes with strides whose sums are these numbers, the fastest first.

    >>> modes_of(np.array([0, 1, 8, 9]))
    ((2, 2), (1, 8))
    """
    if numbers[0]:
        return None
    left, modes = numbers, list[tuple[int, int]]()
    while len(left) > 1:
        step, count = int(left[1]), len(left)
        while count > 1 and not np.array_equal(
            left.reshape(-1, count), left[::count, None] + step * np.arange(count)
        ):
            count = next(n for n in range(count - 1, 0, -1) if len(left) % n == 0)
        if count == 1:
            return None
        modes.append((count, step))
        left = left[::count]
    sizes, steps = zip(*(modes or [(1, 0)]), strict=True)
    return (sizes, steps) if len(modes) > 1 else (sizes[0], steps[0])


def _without_padding(places: Numbers, shape: tuple[int, ...]) -> ir.Layout | None:
    strided = _strided(places, shape)
    if strided is not None:
        return strided
    rows = row_major(*shape)
    numbers = np.arange(prod(shape), dtype=np.int64)
    for outer in (*_linear(places), *_by_rows(places, shape[-1])):
        try:
            found = check(outer)
        except CheckError:
            continue
        if np.array_equal(evaluate(found, numbers), places):
            return check(ir.Compose(found, rows))
    return _swizzled_strides(places, shape)


def _swizzled_strides(places: Numbers, shape: tuple[int, ...]) -> ir.Layout | None:
    """A swizzle over strides of any size. It undoes itself, so what it leaves must be strides; the
    elements along the axes tell that of most swizzles."""
    grid = places.reshape(shape)
    axes = [_along(grid, axis) for axis in range(len(shape))]
    for swizzle in _SWIZZLES:
        plain = [evaluate(swizzle, axis) for axis in axes]
        if any(modes_of(each - each[0]) is None for each in plain):
            continue
        found = _strided(evaluate(swizzle, places), shape)
        if found is not None:
            return check(ir.compose(swizzle, found))
    return None


def _strided(places: Numbers, shape: tuple[int, ...]) -> ir.Layout | None:
    grid = places.reshape(shape)
    start = int(places[0])
    modes: list[tuple[ir.Tree, ir.Tree]] = []
    for axis in range(len(shape)):
        mode = modes_of(_along(grid, axis) - start)
        if mode is None:
            return None
        modes.append(mode)
    sizes, steps = zip(*modes, strict=True)
    found = ir.Strided(sizes, steps) if len(modes) > 1 else ir.Strided(*modes[0])
    # Values have the first coordinate fastest.
    by_rows = values(found).reshape(shape[::-1]).T.ravel() + start
    if not np.array_equal(by_rows, places):
        return None
    return check(ir.Compose(ir.Shift(start), found) if start else found)


def _along(grid: Numbers, axis: int) -> Numbers:
    """The first line of elements along an axis."""
    return np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)[:, 0]


def _linear(places: Numbers) -> Iterator[ir.Layout]:
    """A swizzle or a matrix over F2, of row-major numbers; their sizes may be any."""
    first = int(places[0])
    bits = (len(places) - 1).bit_length()
    matrix = ir.Matrix(tuple(int(places[1 << bit]) ^ first for bit in range(bits)), first)
    swizzle = as_swizzle(matrix)
    if swizzle is not None:
        yield swizzle
    yield matrix


def _by_rows(places: Numbers, columns: int) -> Iterator[ir.Layout]:
    """What exchanges or turns the columns of a row, by the number of the row."""
    turns = places[::columns] - np.arange(0, len(places), columns)  # where column 0 of a row is
    moved = turns[turns > 0]
    if not moved.size or moved.max() >= columns:
        return
    unit = int(moved.min())
    for shift in range(MOST_ROWS_BITS):
        period = int(moved.max() // unit + 1)
        yield ir.Exchange(columns, unit, 1 << (period - 1).bit_length(), shift)
        if len(turns) >> shift <= 1:
            break
    rows = int(np.flatnonzero(turns)[0])
    for within in (n for n in range(2, columns + 1) if columns % n == 0):
        yield ir.Rotate(columns, within, int(turns[rows]), rows)
