"""What may be rewritten: laws about one part of a composition, or two neighbours, and `simplify`.

A law shows before → after; `tests/layout/test_laws.py` tries each on random layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.errors import CheckError
from warploom.layout.language import ir
from warploom.layout.language.algebra import composition
from warploom.layout.language.evaluate import extended, values
from warploom.layout.language.facts import as_matrix, as_swizzle


@dataclass(frozen=True, slots=True)
class Law:
    """`rewrite` takes two neighbours, outer and inner, and gives what stands for both; or None."""

    name: str
    rewrite: Callable[[ir.Layout, ir.Layout], ir.Layout | None]


def is_identity(layout: ir.Layout) -> bool:
    """Whether a map of every number changes none of them: no bits, nothing to add, one column."""
    match layout:
        case ir.Swizzle(0, _, _) | ir.Shift(0) | ir.Pad(_, 0):
            return True
        case ir.Rotate(_, within, by, _):
            return by % within == 0
        case ir.Exchange(_, _, period, _):
            return period == 1
        case ir.Tile(columns, height, width):
            return height == 1 or width == columns
    return False


def _drop(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """identity o A → A."""
    return inner if is_identity(outer) else None


def _undo(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """S o S → shift<0>: a swizzle is its own inverse."""
    return ir.Shift(0) if isinstance(outer, ir.Swizzle) and outer is inner else None


def _shifts(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """shift<a> o shift<b> → shift<a + b>."""
    if isinstance(outer, ir.Shift) and isinstance(inner, ir.Shift):
        return ir.Shift(outer.by + inner.by)
    return None


def _padded(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """pad<C,p> o (R,C):(C,1) → (R,C):(C+p,1): a stride of whole rows grows with each row."""
    if not isinstance(outer, ir.Pad) or not isinstance(inner, ir.Strided):
        return None
    every, by = outer.every, outer.by
    grown = ir.Strided(inner.shape, _grown(inner.stride, every, by))
    fits = ir.product(inner.shape) <= 1 << 20
    return grown if fits and (values(grown) == extended(outer, values(inner))).all() else None


def _grown(stride: ir.Tree, every: int, by: int) -> ir.Tree:
    if isinstance(stride, tuple):
        return tuple(_grown(part, every, by) for part in stride)
    return stride + by * (stride // every)


def _tiled(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """tile<C,h,w> o (R,C):(C,1) → ((h,R/h),(w,C/w)):((w,h·C),(1,h·w)): blocks are strides."""
    if not isinstance(outer, ir.Tile) or not isinstance(inner, ir.Strided):
        return None
    columns, height, width = outer.columns, outer.height, outer.width
    match inner.shape, inner.stride:
        case (int() as rows, int() as own), (int() as step, 1) if own == step == columns:
            if rows % height == 0:
                down = _cut(rows, height, width, height * columns)
                across = _cut(columns, width, 1, height * width)
                return ir.Strided((down[0], across[0]), (down[1], across[1]))
    return None


def _cut(size: int, part: int, stride: int, further: int) -> tuple[ir.Tree, ir.Tree]:
    return (size, stride) if part == size else ((part, size // part), (stride, further))


def _strided(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """A:B o C:D → the layout of shapes and strides that CuTe's composition is, where it is one."""
    if isinstance(outer, ir.Strided) and isinstance(inner, ir.Strided):
        try:
            return composition(outer, inner)
        except CheckError:
            return None
    return None


def _matrices(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """A o F2[…] → F2[…], where A is a matrix or a swizzle: linear maps compose."""
    if not isinstance(inner, ir.Matrix) or not isinstance(outer, ir.Matrix | ir.Swizzle):
        return None
    return as_matrix(values(ir.Compose(outer, inner)))


def _swizzles(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """F2[…] o A → S<B,M,S> o A, where the matrix is a swizzle."""
    if not isinstance(outer, ir.Matrix):
        return None
    swizzle = as_swizzle(outer)
    return None if swizzle is None else ir.Compose(swizzle, inner)


def _tables(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    """A o table[…] → table[A(…)]."""
    if not isinstance(inner, ir.Table):
        return None
    return ir.Table(tuple(values(ir.Compose(outer, inner)).tolist()))


LAWS: tuple[Law, ...] = (
    Law("what changes nothing is left out", _drop),
    Law("a swizzle undoes itself", _undo),
    Law("shifts add up", _shifts),
    Law("padding of whole rows is a stride", _padded),
    Law("blocks are strides", _tiled),
    Law("strides compose", _strided),
    Law("matrices compose", _matrices),
    Law("a matrix may be a swizzle", _swizzles),
    Law("a table swallows what comes after it", _tables),
)


def simplify(layout: ir.Layout) -> ir.Layout:
    """The laws, applied to neighbours until none applies.

    >>> from warploom.layout.language.show import show
    >>> show(simplify(ir.compose(ir.Shift(0), ir.Pad(32, 1), ir.Strided((32, 32), (32, 1)))))
    '(32,32):(33,1)'
    """
    parts = list(ir.chain(layout))
    place = 0
    while place + 1 < len(parts):
        found = _first(parts[place], parts[place + 1])
        if found is None:
            place += 1
        else:
            parts[place : place + 2] = ir.chain(found)
            place = max(0, place - 1)
    return ir.compose(*parts)


def _first(outer: ir.Layout, inner: ir.Layout) -> ir.Layout | None:
    for law in LAWS:
        found = law.rewrite(outer, inner)
        if found is not None and ir.size_of(found) == ir.size_of(inner):
            return found
    return None
