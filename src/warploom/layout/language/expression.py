"""A layout as an index expression of its coordinates: the cheapest of a few forms that equal it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from warploom.errors import UnsupportedError
from warploom.index.bits import BitMap, from_table
from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.index.table import cheapest
from warploom.layout.language import ir
from warploom.layout.language.evaluate import Numbers, pause_if_long, values

NAMES = ("row", "column")


def sizes_of(layout: ir.Layout) -> tuple[int, ...]:
    """The sizes of a layout's coordinates."""
    shape = ir.shape_of(layout)
    if shape is None:
        raise UnsupportedError("a map of every number has no coordinates")
    return tuple(ir.product(part) for part in shape) if isinstance(shape, tuple) else (shape,)


def names_of(count: int) -> tuple[str, ...]:
    """
    >>> names_of(2), names_of(3)
    (('row', 'column'), ('i0', 'i1', 'i2'))
    """
    if count <= 2:
        return NAMES[-count:]
    return tuple(f"i{place}" for place in range(count))


def expression(layout: ir.Layout, names: Sequence[str] | None = None) -> Expr:
    """What a layout computes, with as few operations as a form was found.

    >>> from warploom.index.show import show
    >>> show(expression(ir.Compose(ir.Swizzle(3, 3, 3), ir.Strided((8, 64), (64, 1)))))
    'column ^ row * 8 ^ row * 64'
    """
    sizes = sizes_of(layout)
    variables = [Var(name) for name in names or names_of(len(sizes))]
    bounds = {v.name: (0, size - 1) for v, size in zip(variables, sizes, strict=True)}
    table = values(layout)
    pause_if_long(len(table))
    forms = [_linear(table, sizes, variables)]
    if not _has_table(layout):
        forms.append(_direct(layout, variables))
    found = cheapest(
        (simplify(form, bounds) for form in forms if form is not None),
        {v.name: size for v, size in zip(variables, sizes, strict=True)},
        lambda cells: np.array_equal(cells.ravel(order="F"), table),
    )
    if found is None:
        raise UnsupportedError("a table has no expression", advice="write it as a table")
    return found


def _has_table(layout: ir.Layout) -> bool:
    if isinstance(layout, ir.Compose):
        return _has_table(layout.outer) or _has_table(layout.inner)
    return isinstance(layout, ir.Table)


def _linear(table: Numbers, sizes: tuple[int, ...], variables: list[Var]) -> Expr | None:
    """As exclusive ors of shifted coordinates, where the whole is linear in their bits."""
    if any(size & (size - 1) for size in sizes):
        return None
    found = from_table(table, tuple(size.bit_length() - 1 for size in sizes))
    if found is None:
        return None
    # The last coordinate first: it is the one that people write first.
    columns = tuple(column for part in found.parts[::-1] for column in part)
    return replace(found, columns=columns, widths=found.widths[::-1]).expression(*variables[::-1])


def _direct(layout: ir.Layout, variables: list[Var]) -> Expr:
    """Part after part; rows and columns are kept apart as long as they are."""
    *maps, inner = ir.chain(layout)
    place = _start(inner, variables)
    for part in reversed(maps):
        place = _after(part, place)
    return _number(place)


@dataclass(frozen=True, slots=True)
class _Cell:
    """row · columns + column, with the column below `columns`."""

    row: Expr
    column: Expr
    columns: int


def _number(place: Expr | _Cell) -> Expr:
    return place.row * place.columns + place.column if isinstance(place, _Cell) else place


def _start(inner: ir.Layout, variables: list[Var]) -> Expr | _Cell:
    match inner:
        case ir.Strided((int(), int() as size), (int() as stride, 1)) if size <= stride:
            return _Cell(variables[0], variables[1], stride)
        case ir.Strided(tuple() as shape, tuple() as strides):
            parts = zip(variables, shape, strides, strict=True)
            terms = [_coordinate(v, size, stride) for v, size, stride in parts]
            result = terms[0]
            for term in terms[1:]:
                result = result + term
            return result
        case ir.Strided(shape, stride):
            return _coordinate(variables[0], shape, stride)
    return _number(_after(inner, variables[0]))


def _after(part: ir.Layout, place: Expr | _Cell) -> Expr | _Cell:
    if not isinstance(part, ir.Rotate | ir.Exchange | ir.Tile):
        return mapped(part, _number(place))
    if isinstance(place, _Cell) and part.columns == place.columns:
        return _by_rows(part, place.row, place.column)
    x = _number(place)
    return _by_rows(part, x // part.columns, x % part.columns)


def _coordinate(x: Expr, shape: ir.Tree, stride: ir.Tree) -> Expr:
    """One coordinate, which may stand for several: the first of them fastest."""
    if isinstance(shape, int):
        assert isinstance(stride, int)
        return x if stride == 1 else x * stride
    assert isinstance(stride, tuple)
    result: Expr = Const(0)
    for place, (size, step) in enumerate(zip(shape, stride, strict=True)):
        last = place == len(shape) - 1
        count = ir.product(size)
        result = result + _coordinate(x if last else x % count, size, step)
        x = x // count
    return result


def mapped(part: ir.Layout, x: Expr) -> Expr:
    match part:
        case ir.Swizzle(bits, base, shift):
            mask = ((1 << bits) - 1) << base
            return x ^ ((x >> shift) & mask) if shift >= 0 else x ^ ((x & mask) << -shift)
        case ir.Matrix(columns, offset):
            width = max((c.bit_length() for c in (*columns, offset)), default=0)
            return BitMap(columns, offset, width, (len(columns),)).expression(x)
        case ir.Shift(by):
            return x + by
        case ir.Pad(every, by):
            return x + by * (x // every)
        case ir.Strided(shape, stride):
            return _coordinate(x, shape, stride)
        case _:
            raise UnsupportedError("a table has no expression")


def _by_rows(part: ir.Rotate | ir.Exchange | ir.Tile, row: Expr, column: Expr) -> Expr | _Cell:
    match part:
        case ir.Rotate(columns, within, by, rows):
            place = (column + by % within * (row // rows)) % within
            whole = place if within == columns else column // within * within + place
            return _Cell(row, whole, columns)
        case ir.Exchange(columns, unit, period, shift):
            return _Cell(row, column ^ unit * ((row >> shift) % period), columns)
        case ir.Tile(columns, height, width):
            block = row // height * (columns // width) + column // width
            return (block * height + row % height) * width + column % width
        case _:
            assert_never(part)
