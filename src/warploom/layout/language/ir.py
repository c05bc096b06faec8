"""What a layout is: a function from the coordinates of a tensor, or from numbers, to numbers.

    >>> Compose(Swizzle(3, 3, 3), Strided((8, 64), (64, 1)))
    Compose(Swizzle(3, 3, 3), Strided((8, 64), (64, 1)))

A shape:stride tree takes coordinates; a matrix and a table take the numbers below their size; the
other maps take every number that is not negative, so that they can be put after any layout. A
number stands for coordinates with the first coordinate fastest, as in CuTe: `Strided((8, 64), …)`
at 9 is at (1, 1). `evaluate.py` says what each of them means.
"""

from __future__ import annotations

from typing import TypeAlias

from warploom.node import Interned, node

# A shape, a stride or a coordinate: a number, or a tuple of such.
Tree: TypeAlias = "int | tuple[Tree, ...]"


def _constructor(self: Layout) -> str:
    """The call that makes it."""
    fields = ", ".join(repr(getattr(self, name)) for name in self.__match_args__)
    return f"{type(self).__name__}({fields})"


@node
class Strided(metaclass=Interned):
    """Coordinates times strides; both are trees of one form. A stride may be negative."""

    shape: Tree
    stride: Tree
    __repr__ = _constructor


@node
class Swizzle(metaclass=Interned):
    """CuTe's Swizzle<bits, base, shift>: where shift ≥ 0,

        x = … b b b … a a a … base bits     a ^= b
              |← shift →|

    and where shift < 0 the upper bits become b ^= a.
    """

    bits: int
    base: int
    shift: int
    __repr__ = _constructor


@node
class Matrix(metaclass=Interned):
    """An affine map over F2: `offset`, and by exclusive or `columns[j]` for each bit j of x."""

    columns: tuple[int, ...]
    offset: int
    __repr__ = _constructor


@node
class Table(metaclass=Interned):
    """The value of every number, one after the other."""

    values: tuple[int, ...]
    __repr__ = _constructor


@node
class Shift(metaclass=Interned):
    """x + by."""

    by: int
    __repr__ = _constructor


@node
class Pad(metaclass=Interned):
    """`by` unused places after every `every`: x + by · (x // every)."""

    every: int
    by: int
    __repr__ = _constructor


# The following read a number as a row and a column, x = row · columns + column.


@node
class Rotate(metaclass=Interned):
    """In every `within` columns the column is moved on, around the end, by `by · (row // rows)`."""

    columns: int
    within: int
    by: int
    rows: int
    __repr__ = _constructor


@node
class Exchange(metaclass=Interned):
    """column ^ unit · ((row >> shift) mod period); what it moves stays in its block of columns."""

    columns: int
    unit: int
    period: int
    shift: int
    __repr__ = _constructor


@node
class Tile(metaclass=Interned):
    """Blocks of height × width one after another, along the rows first."""

    columns: int
    height: int
    width: int
    __repr__ = _constructor


@node
class Compose(metaclass=Interned):
    """outer(inner(x))."""

    outer: Layout
    inner: Layout
    __repr__ = _constructor


Layout: TypeAlias = (
    Strided | Swizzle | Matrix | Table | Shift | Pad | Rotate | Exchange | Tile | Compose
)
# Layouts that take every number that is not negative.
MAPS = (Swizzle, Shift, Pad, Rotate, Exchange, Tile)


def flat(tree: Tree) -> tuple[int, ...]:
    """The numbers of a tree from left to right."""
    if isinstance(tree, int):
        return (tree,)
    return tuple(number for part in tree for number in flat(part))


def product(tree: Tree) -> int:
    result = 1
    for number in flat(tree):
        result *= number
    return result


def chain(layout: Layout) -> tuple[Layout, ...]:
    """The parts of nested compositions, outermost first."""
    if isinstance(layout, Compose):
        return (*chain(layout.outer), *chain(layout.inner))
    return (layout,)


def compose(*parts: Layout) -> Layout:
    """Several layouts one after another, outermost first; `chain` takes them apart again."""
    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = Compose(part, result)
    return result


def shape_of(layout: Layout) -> Tree | None:
    """The shape of the coordinates; None where every number is taken."""
    last = chain(layout)[-1]
    match last:
        case Strided(shape, _):
            return shape
        case Matrix(columns, _):
            return 1 << len(columns)
        case Table(values):
            return len(values)
        case _:
            return None


def size_of(layout: Layout) -> int | None:
    """How many elements there are; None where every number is taken."""
    shape = shape_of(layout)
    return None if shape is None else product(shape)
