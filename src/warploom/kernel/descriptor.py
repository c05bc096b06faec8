"""Where elements lie in shared memory as tensor maps and descriptors of Hopper say: the offset of
each element of a box or factor, before and after the swizzle.

    rows of 128 bytes, in units of 16 bytes:    row r of eight has unit u at u ^ r

A swizzle of S bytes exchanges units inside S bytes by the row among eight; it counts rows from
addresses that are multiples of 8·S, where arrays that have one begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.index.evaluate import evaluate
from warploom.kernel.warpgroup import MapParam, Tile

Ints = npt.NDArray[np.int64]
UNIT, ROWS = 16, 8  # bytes that stay together; rows after which a pattern repeats
PLAIN_ALIGN = 128  # of a box without a swizzle
STEP_BYTES = 32  # of a factor along k, for one product


def pattern_bytes(swizzle: int) -> int:
    """What an array begins at a multiple of, so that patterns begin with it."""
    return max(ROWS * swizzle, PLAIN_ALIGN)


def swizzled(offsets: Any, swizzle: int) -> Any:
    """Bytes from the beginning of a pattern → where they lie."""
    if not swizzle:
        return offsets
    return offsets ^ ((offsets >> 7 & swizzle // UNIT - 1) << 4)


def view_of(map: MapParam, array: Any, scalars: Mapping[str, int]) -> Any:
    """The view of a flat array that a map is of, by the scalars of a launch."""
    flat = array.reshape(-1)
    sizes, strides = (
        [int(evaluate(each, scalars)) for each in exprs] for exprs in (map.sizes, map.strides)
    )
    reach = sum((n - 1) * s for n, s in zip(sizes, (*strides, 1), strict=True)) + 1
    if min(sizes) < 1 or reach > flat.size:
        raise DeviceError(f"the map '{map.name}' reaches {reach} elements of {flat.size}")
    steps = [each * flat.itemsize for each in (*strides, 1)]
    if any(each % UNIT for each in steps[:-1]):
        raise DeviceError(
            f"rows of '{map.array}' are {steps[-2]} bytes apart, through the map '{map.name}'",
            advice=f"a multiple of {UNIT} bytes",
        )
    return np.lib.stride_tricks.as_strided(flat, sizes, steps)


@cache
def box_offsets(box: tuple[int, ...], size: int) -> Ints:
    """The offsets of the elements of a box in bytes, without a swizzle: dense."""
    return np.arange(int(np.prod(box)), dtype=np.int64).reshape(box) * size


def box_bytes(map: MapParam, size: int) -> int:
    return map.elements * size


@cache
def _tile_offsets(
    swizzle: int, major: str, stride: int, leading: int, rows: int, size: int
) -> Ints:  # fmt: skip
    """(rows, k) → bytes from the beginning of a factor, as the table of descriptors has it."""
    depth = STEP_BYTES // size
    r, k = np.arange(rows)[:, None], np.arange(depth)[None, :]
    if major == "k":
        if swizzle:
            return r // ROWS * stride + r % ROWS * swizzle + k * size
        unit = k * size // UNIT
        return r // ROWS * stride + unit * leading + r % ROWS * UNIT + k * size % UNIT
    at = r * size
    if swizzle:
        return at // swizzle * leading + k // ROWS * stride + k % ROWS * swizzle + at % swizzle
    return at // UNIT * stride + k // ROWS * leading + k % ROWS * UNIT + at % UNIT


def tile_offsets(tile: Tile, rows: int, size: int) -> Ints:
    return _tile_offsets(tile.swizzle, tile.major, tile.stride, tile.leading, rows, size)


def tile_span(tile: Tile, rows: int, size: int) -> int:
    """Elements from the first to the end of the last."""
    return int(tile_offsets(tile, rows, size).max()) // size + 1
