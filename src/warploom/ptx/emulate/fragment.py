"""How the lanes of a warp hold a matrix: for each element, which lane and which of its values.

l is a lane, g = l >> 2, t = l & 3; p values share a register of 32 bits. All matrices of mma
follow one rule: rows go over g, columns over t, and what is left over registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.frame import WARP, Frame
from warploom.ptx.types import U32, U64

Array = npt.NDArray[Any]
Places = tuple[Array, Array]  # of each element: the lane, and the number of the value there


def _inverse(rows: Array, columns: Array, shape: tuple[int, int]) -> Places:
    """From (row, column) of each lane's values to (lane, value) of each element."""
    lanes, values = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    lane, value = np.indices(rows.shape)
    lanes[rows, columns], values[rows, columns] = lane, value
    return lanes, values


@lru_cache
def left(rows: int, depth: int, packed: int) -> Places:
    """A of mma, by row and k; `packed` values to a register (one for f64 too)."""
    lane, value = np.indices((WARP, rows * depth // WARP))
    g, t, r, j = lane >> 2, lane & 3, value // packed, value % packed
    if rows == 8:
        return _inverse(g, packed * t + j, (rows, depth))
    return _inverse(g + 8 * (r & 1), packed * t + j + 4 * packed * (r >> 1), (rows, depth))


@lru_cache
def right(depth: int, packed: int) -> Places:
    """B of mma, by column and k."""
    lane, value = np.indices((WARP, 8 * depth // WARP))
    g, t, r, j = lane >> 2, lane & 3, value // packed, value % packed
    return _inverse(g, packed * t + j + 4 * packed * r, (8, depth))


@lru_cache
def result(rows: int, columns: int) -> Places:
    """C and D: for more than eight columns, eight after the other."""
    lane, value = np.indices((WARP, rows * columns // WARP))
    g, t = lane >> 2, lane & 3
    part = 4 if rows == 16 else 2
    inside = value % part
    column = 8 * (value // part) + 2 * t + (inside & 1)
    return _inverse(g + 8 * (inside >> 1), column, (rows, columns))


# -- Volta's: four products of a warp, each of eight lanes ----------------------------------------


@lru_cache
def quads(kind: str, by_row: bool) -> tuple[Array, Array]:
    """(lane, value) of a, b, c32 or c16, by quad, by row or column, and by k or column."""
    lane, value = np.indices((WARP, 4 if kind in "ab" else 8))
    quad, low, high = (lane >> 2) & 3, lane & 3, 4 * (lane >> 4)
    if kind in "ab":
        along = by_row if kind == "a" else not by_row
        outer, inner = (low + high, value) if along else (value + high, low)
        shape = (4, 8, 4)
    elif kind == "c16":
        outer, inner, shape = low + high, value, (4, 8, 8)
    else:
        outer = (lane & 1) + (value & 2) + high
        inner, shape = (value & 4) + (lane & 2) + (value & 1), (4, 8, 8)
    lanes, values = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    lanes[quad, outer, inner], values[quad, outer, inner] = lane, value
    return lanes, values


# -- registers ------------------------------------------------------------------------------------


def warps_of(f: Frame, fail: Callable[[Frame, str, int], Exception]) -> Array:
    """Threads of the running warps, a row each; all lanes must be there."""
    batch = f.batch
    running = np.unique(batch.warp_of[f.index])
    rows = batch.warp_starts[running][:, None] + np.arange(WARP)
    last = rows[:, -1]
    whole = (last < f.n) & (batch.warp_of[np.minimum(last, f.n - 1)] == running)
    if whole.all() and f.mask is not None:
        whole &= f.mask[rows].all(axis=1)
    if not whole.all():
        thread = int(batch.warp_starts[running[~whole]][0])
        raise fail(f, "not all 32 lanes of the warp come here", thread)
    return rows


def gathered(f: Frame, registers: list[Array], threads: Array, bits: int) -> Array:
    """Values of a few bits: by warp, lane and number, out of registers read now."""
    raw = np.stack([f.widen(each)[threads] for each in registers], axis=-1)
    if bits >= 32:
        return raw
    if bits == 4:
        low = np.ascontiguousarray(raw.astype(U32)).view(np.uint8)
        return np.stack((low & 15, low >> 4), axis=-1).reshape(*raw.shape[:-1], -1)
    dtype = {8: np.uint8, 16: np.uint16}[bits]
    return np.ascontiguousarray(raw.astype(U32)).view(dtype)


def elements(values: Array, places: Places) -> Array:
    """A matrix for each warp."""
    found: Array = values[:, places[0], places[1]]
    return found


def scattered(matrix: Array, places: Places, bits: int) -> list[Array]:
    """The registers that hold a matrix: for each, by warp and lane."""
    count = int(places[1].max()) + 1
    values = np.zeros((matrix.shape[0], WARP, count), matrix.dtype)
    values[:, places[0], places[1]] = matrix
    word = U64 if bits == 64 else U32
    whole = np.ascontiguousarray(values).view(word)
    return [whole[..., number] for number in range(whole.shape[-1])]
