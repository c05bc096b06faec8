"""The values of the built-in index variables, and between which bounds all of them lie.

Arrays are never empty, so a scalar that is an array's size is at least 1; other facts about
scalars come from the kernel's requirements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from warploom.index.ir import Binary, Const, Expr, Var
from warploom.index.ranges import Range, Ranges
from warploom.kernel.dtype import DType
from warploom.kernel.ir import For, Kernel

INDEX_BITS = 32  # what every index type has: nothing is shifted further
INT_MIN, INT_MAX = -(2 ** (INDEX_BITS - 1)), 2 ** (INDEX_BITS - 1) - 1

Bounds = dict[str, tuple[int, int]]


def index_type(sizes: Iterable[int]) -> DType:
    """What indices of arrays with so many elements are computed in. Threads beyond the end of an
    array compute an index, too, before a condition stops them: along two sides that is less than
    four times as many."""
    return DType.I64 if max(sizes, default=0) > INT_MAX // 4 else DType.I32


def thread_variables(kernel: Kernel) -> dict[str, npt.NDArray[np.int64]]:
    """The value of each built-in thread variable in every thread of a block."""
    thread = np.arange(kernel.threads, dtype=np.int64)
    x, y, _ = kernel.block
    return {
        "thread": thread,
        "thread_x": thread % x,
        "thread_y": thread // x % y,
        "thread_z": thread // (x * y),
        "lane": thread % kernel.warp_size,
        "warp": thread // kernel.warp_size,
    }


def static_bounds(kernel: Kernel) -> Bounds:
    """Bounds of the built-in variables and integer scalars, both ends included."""
    bounds: Bounds = {
        name: (int(each.min()), int(each.max())) for name, each in thread_variables(kernel).items()
    }
    for name, size in zip(("block_x", "block_y", "block_z"), kernel.grid, strict=True):
        bounds[name] = (0, size.value - 1 if isinstance(size, Const) else INT_MAX)
    return bounds | scalar_bounds(kernel)


def counter_range(stmt: For, ranges: Ranges) -> Range:
    """The values that a loop counter may have; the lower end is above the upper if there are none.

    In the texts the counter also takes the value at which the loop ends, a step further at most.
    """
    if stmt.counts is not None:
        return Range(stmt.counts[0], stmt.counts[-1]) if stmt.counts else Range(0, -1)
    return Range(ranges.of(stmt.start).low, ranges.of(stmt.stop).high - 1)


def index_limits(kernel: Kernel) -> Range:
    """The numbers that an index expression of a kernel may be."""
    most = 2 ** (8 * kernel.index.bytes - 1) - 1
    return Range(-most - 1, most)


def scalar_bounds(kernel: Kernel) -> Bounds:
    """What is known of the integer scalars before a launch."""
    low, most = index_limits(kernel)
    lows = {each.name: low for each in kernel.scalars if each.dtype is kernel.index}
    for array in kernel.arrays:
        for name, low in _from_size(array.size):
            lows[name] = max(lows[name], low)
    for condition in kernel.requires:
        for name, low in _from_condition(condition):
            lows[name] = max(lows[name], low)
    return {name: (low, most) for name, low in lows.items()}


def _from_size(size: Expr) -> Iterator[tuple[str, int]]:
    match size:
        case Var(name):
            yield name, 1
        case Binary("*", Var(name), Const(times)) | Binary("*", Const(times), Var(name)):
            if times > 0:
                yield name, 1
        case _:
            return


def _from_condition(condition: Expr) -> Iterator[tuple[str, int]]:
    match condition:
        case Binary("and", left, right):
            yield from _from_condition(left)
            yield from _from_condition(right)
        case Binary(">=", Var(name), Const(low)) | Binary("<=", Const(low), Var(name)):
            yield name, low
        case Binary(">", Var(name), Const(below)) | Binary("<", Const(below), Var(name)):
            yield name, below + 1
        case Binary("==", Var(name), Const(value)):
            yield name, value
        case _:
            return
