"""What may be rewritten: laws about one part of a composition, or two neighbours, and `simplify`.

A law shows before → after; `tests/layout/test_laws.py` tries each on random layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.errors import CheckError
from warploom.layout.language.algebra import composition
from warploom.layout.language.evaluate import extended, values
from warploom.layout.language.facts import as_matrix, as_swizzle
from warploom.layout.language.ir import (
    Compose,
    Exchange,
    Layout,
    Matrix,
    Pad,
    Rotate,
    Shift,
    Strided,
    Swizzle,
    Table,
    Tile,
    Tree,
    chain,
    compose,
    product,
    size_of,
)


@dataclass(frozen=True, slots=True)
class Law:
    """`rewrite` takes two neighbours, outer and inner, and gives what stands for both; or None."""

    name: str
    rewrite: Callable[[Layout, Layout], Layout | None]


def is_identity(layout: Layout) -> bool:
    """Whether a map of every number changes none of them: no bits, nothing to add, one column."""
    match layout:
        case Swizzle(0, _, _) | Shift(0) | Pad(_, 0):
            return True
        case Rotate(_, within, by, _):
            return by % within == 0
        case Exchange(_, _, period, _):
            return period == 1
        case Tile(columns, height, width):
            return height == 1 or width == columns
    return False


def _drop(outer: Layout, inner: Layout) -> Layout | None:
    """identity o A → A."""
    return inner if is_identity(outer) else None


def _undo(outer: Layout, inner: Layout) -> Layout | None:
    """S o S → shift<0>: a swizzle is its own inverse."""
    return Shift(0) if isinstance(outer, Swizzle) and outer is inner else None


def _shifts(outer: Layout, inner: Layout) -> Layout | None:
    """shift<a> o shift<b> → shift<a + b>."""
    if isinstance(outer, Shift) and isinstance(inner, Shift):
        return Shift(outer.by + inner.by)
    return None


def _padded(outer: Layout, inner: Layout) -> Layout | None:
    """pad<C,p> o (R,C):(C,1) → (R,C):(C+p,1): a stride of whole rows grows with each row."""
    if not isinstance(outer, Pad) or not isinstance(inner, Strided):
        return None
    every, by = outer.every, outer.by
    grown = Strided(inner.shape, _grown(inner.stride, every, by))
    fits = product(inner.shape) <= 1 << 20
    return grown if fits and (values(grown) == extended(outer, values(inner))).all() else None


def _grown(stride: Tree, every: int, by: int) -> Tree:
    if isinstance(stride, tuple):
        return tuple(_grown(part, every, by) for part in stride)
    return stride + by * (stride // every)


def _strided(outer: Layout, inner: Layout) -> Layout | None:
    """A:B o C:D → the layout of shapes and strides that CuTe's composition is, where it is one."""
    if isinstance(outer, Strided) and isinstance(inner, Strided):
        try:
            return composition(outer, inner)
        except CheckError:
            return None
    return None


def _matrices(outer: Layout, inner: Layout) -> Layout | None:
    """A o F2[…] → F2[…], where A is a matrix or a swizzle: linear maps compose."""
    if not isinstance(inner, Matrix) or not isinstance(outer, Matrix | Swizzle):
        return None
    return as_matrix(values(Compose(outer, inner)))


def _swizzles(outer: Layout, inner: Layout) -> Layout | None:
    """F2[…] o A → S<B,M,S> o A, where the matrix is a swizzle."""
    if not isinstance(outer, Matrix):
        return None
    swizzle = as_swizzle(outer)
    return None if swizzle is None else Compose(swizzle, inner)


def _tables(outer: Layout, inner: Layout) -> Layout | None:
    """A o table[…] → table[A(…)]."""
    if not isinstance(inner, Table):
        return None
    return Table(tuple(values(Compose(outer, inner)).tolist()))


LAWS: tuple[Law, ...] = (
    Law("what changes nothing is left out", _drop),
    Law("a swizzle undoes itself", _undo),
    Law("shifts add up", _shifts),
    Law("padding of whole rows is a stride", _padded),
    Law("strides compose", _strided),
    Law("matrices compose", _matrices),
    Law("a matrix may be a swizzle", _swizzles),
    Law("a table swallows what comes after it", _tables),
)


def simplify(layout: Layout) -> Layout:
    """The laws, applied to neighbours until none applies.

    >>> from warploom.layout.language.show import show
    >>> show(simplify(compose(Shift(0), Pad(32, 1), Strided((32, 32), (32, 1)))))
    '(32,32):(33,1)'
    """
    parts = list(chain(layout))
    place = 0
    while place + 1 < len(parts):
        found = _first(parts[place], parts[place + 1])
        if found is None:
            place += 1
        else:
            parts[place : place + 2] = chain(found)
            place = max(0, place - 1)
    return compose(*parts)


def _first(outer: Layout, inner: Layout) -> Layout | None:
    for law in LAWS:
        found = law.rewrite(outer, inner)
        if found is not None and size_of(found) == size_of(inner):
            return found
    return None
