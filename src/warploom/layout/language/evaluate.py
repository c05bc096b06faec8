"""What a layout means; this file is the definition of the language.

Numbers in, numbers out, on whole arrays. A number that a layout does not take is a CheckError.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.layout.language import ir
from warploom.search.budget import governing_budget

Numbers: TypeAlias = npt.NDArray[np.int64]
_LONG = 1 << 18


def pause_if_long(count: int) -> None:
    """Asks the budget of whoever called before work on so many numbers; what is small is done,
    whatever is left of it."""
    if count > _LONG:
        governing_budget().check()


def values(layout: ir.Layout) -> Numbers:
    """The value at every number of the domain, in order.

    >>> values(ir.Compose(ir.Swizzle(1, 0, 2), ir.Strided(8, 1)))
    array([0, 1, 2, 3, 5, 4, 7, 6])
    """
    size = ir.size_of(layout)
    if size is None:
        raise CheckError("a map of every number has no domain", advice="put it after a layout")
    return evaluate(layout, np.arange(size, dtype=np.int64))


def at(layout: ir.Layout, *coordinates: int) -> int:
    """The value at one element, by its coordinates.

    >>> at(ir.Compose(ir.Swizzle(3, 3, 3), ir.Strided((8, 64), (64, 1))), 3, 9)
    209
    """
    shape = ir.shape_of(layout)
    wanted = len(shape) if isinstance(shape, tuple) else 1
    if len(coordinates) not in (1, wanted):
        raise CheckError(f"the layout has {wanted} coordinates, not {len(coordinates)}")
    if len(coordinates) == 1:
        number = coordinates[0]
    else:
        assert isinstance(shape, tuple)
        sizes = [int(np.prod(ir.flat(part))) for part in shape]
        for place, size in zip(coordinates, sizes, strict=True):
            if not 0 <= place < size:
                raise CheckError(f"a coordinate is {place}, of a size of {size}")
        number = int(np.dot(coordinates, np.cumprod([1, *sizes[:-1]])))
    return int(evaluate(layout, np.array([number]))[0])


def evaluate(layout: ir.Layout, numbers: Numbers) -> Numbers:
    """The values at these numbers."""
    size = ir.size_of(layout)
    if isinstance(layout, ir.Shift):
        return extended(layout, numbers)
    if numbers.size and (numbers.min() < 0 or (size is not None and numbers.max() >= size)):
        worst = int(numbers.min() if numbers.min() < 0 else numbers.max())
        raise CheckError(f"the layout takes numbers below {size}, not {worst}")
    return extended(layout, numbers)


def extended(layout: ir.Layout, x: Numbers) -> Numbers:
    """`evaluate` without the bound: the last mode of a shape has no end, as CuTe has it."""
    match layout:
        case ir.Strided(shape, stride):
            return _strided(shape, stride, x)
        case ir.Swizzle(bits, base, shift):
            mask = ((1 << bits) - 1) << base
            moved = (x >> shift) & mask if shift >= 0 else (x & mask) << -shift
            return x ^ moved
        case ir.Matrix(columns, offset):
            result = np.full_like(x, offset)
            for bit, column in enumerate(columns):
                result ^= (x >> bit & 1) * column
            return result
        case ir.Table(table):
            return np.array(table, dtype=np.int64)[x]
        case ir.Shift(by):
            return x + by
        case ir.Pad(every, by):
            return x + by * (x // every)
        case ir.Rotate() | ir.Exchange() | ir.Tile():
            return _by_rows(layout, x // layout.columns, _rest(x, layout.columns))
        case ir.Compose(outer, inner):
            return evaluate(outer, extended(inner, x))
        case _:
            assert_never(layout)


def _strided(shape: ir.Tree, stride: ir.Tree, x: Numbers) -> Numbers:
    if x.size and x.min() < 0:  # as C and CuTe have it: towards zero, remainders with the sign
        return np.where(x < 0, -_strided(shape, stride, abs(x)), _strided(shape, stride, abs(x)))
    result = np.zeros_like(x)
    sizes, strides = ir.flat(shape), ir.flat(stride)
    for place, (size, step) in enumerate(zip(sizes, strides, strict=True)):
        last = place == len(sizes) - 1
        result += (x if last else _rest(x, size)) * step
        x = x // size
    return result


def _by_rows(layout: ir.Rotate | ir.Exchange | ir.Tile, row: Numbers, column: Numbers) -> Numbers:
    match layout:
        case ir.Rotate(columns, within, by, rows):
            place = column if within == columns else _rest(column, within)
            moved = _rest(place + by * (row // rows), within)
            return row * columns + (column - place) + moved
        case ir.Exchange(columns, unit, period, shift):
            return row * columns + (column ^ unit * _rest(row >> shift, period))
        case ir.Tile(columns, height, width):
            block = row // height * (columns // width) + column // width
            return (block * height + _rest(row, height)) * width + _rest(column, width)
        case _:
            assert_never(layout)


def _rest(x: Numbers, size: int) -> Numbers:
    """x % size, by the quotient: NumPy's own remainder takes several times as long."""
    if not size & (size - 1):
        return x & (size - 1)
    rest: Numbers = x - x // size * size
    return rest


def distinct(numbers: Numbers) -> Numbers:
    """Each once, in order. np.unique imports masked arrays, which takes longer than a search."""
    ordered = np.sort(numbers, axis=None)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]
