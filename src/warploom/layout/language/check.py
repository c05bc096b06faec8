"""When a layout is well formed: `check` refuses what has no meaning, and gives back the rest."""

from __future__ import annotations

from typing import NoReturn, assert_never

from warploom.errors import CheckError
from warploom.layout.language import ir
from warploom.layout.language.evaluate import values

MOST_ELEMENTS = 1 << 24
MOST_BITS = 40  # addresses stay far below the 64 bits that arithmetic has


def check(layout: ir.Layout) -> ir.Layout:
    """The layout itself, if it is one."""
    match layout:
        case ir.Strided(shape, stride):
            _strided(shape, stride)
        case ir.Swizzle(bits, base, shift):
            _swizzle(bits, base, shift)
        case ir.Matrix(columns, offset):
            _numbers("columns and offset of a matrix", (*columns, offset))
            _at_most(1 << len(columns))
        case ir.Table(values):
            _numbers("values of a table", values)
            if not values:
                _fail("a table has at least one value")
            _at_most(len(values))
        case ir.Shift(by):
            _numbers("the shift", (by,))
        case ir.Pad(every, by):
            _numbers("the padding", (by,))
            _positive("padding comes after every", every)
        case ir.Rotate(columns, within, by, rows):
            _numbers("the rotation", (by,))
            _positive("the rows that rotate alike are", rows)
            _divides("columns that rotate", within, columns)
        case ir.Exchange():
            _exchange(layout)
        case ir.Tile(columns, height, width):
            _positive("the height of a tile is", height)
            _divides("columns of a tile", width, columns)
        case ir.Compose(outer, inner):
            _compose(check(outer), check(inner))
        case _:
            assert_never(layout)
    return layout


def _strided(shape: ir.Tree, stride: ir.Tree) -> None:
    if form(shape) != form(stride):
        _fail("shape and stride have different forms", "write (2,(3,4)):(1,(2,6))")
    if not ir.flat(shape):
        _fail("a shape has at least one size")
    if any(size < 1 for size in ir.flat(shape)):
        _fail(f"a shape has sizes of at least 1, not {min(ir.flat(shape))}")
    _numbers("strides", ir.flat(stride), signed=True)
    _at_most(ir.product(shape))


def form(tree: ir.Tree) -> object:
    """The tree without its numbers."""
    return None if isinstance(tree, int) else tuple(form(part) for part in tree)


def _swizzle(bits: int, base: int, shift: int) -> None:
    if bits < 0 or base < 0:
        _fail(f"Swizzle<{bits},{base},{shift}> has a negative number of bits")
    if abs(shift) < bits:
        _fail(
            f"Swizzle<{bits},{base},{shift}> moves bits onto themselves",
            f"the shift is at least {bits} (or at most {-bits}) places",
        )
    if bits + base + abs(shift) > MOST_BITS:
        _fail(f"Swizzle<{bits},{base},{shift}> reaches over {MOST_BITS} bits")


def _exchange(part: ir.Exchange) -> None:
    for name, number in (("unit", part.unit), ("period", part.period)):
        _positive(f"the {name} of an exchange is", number)
        if number & (number - 1):
            _fail(f"the {name} of an exchange is a power of two, not {number}")
    if not 0 <= part.shift <= MOST_BITS:
        _fail(f"rows are shifted by 0 to {MOST_BITS} places, not {part.shift}")
    _divides("columns of an exchange", part.unit * part.period, part.columns)


def _compose(outer: ir.Layout, inner: ir.Layout) -> None:
    if not isinstance(outer, ir.Shift) and _goes_down(inner) and int(values(inner).min()) < 0:
        _fail(
            f"the inner layout goes down to {int(values(inner).min())}",
            "put an offset between the two, which lifts it to 0",
        )
    size = ir.size_of(outer)
    if size is None:
        return
    if ir.size_of(inner) is None:
        _fail(
            "a layout with a domain is put after a map of every number",
            "put the map after the layout, or give it a domain: map o 64:1",
        )
    highest = int(values(inner).max())
    if highest >= size:
        _fail(f"the inner layout reaches {highest}, and the outer takes numbers below {size}")


def _goes_down(layout: ir.Layout) -> bool:
    """Whether a stride is negative, so that values may be."""
    last = ir.chain(layout)[-1]
    return isinstance(last, ir.Strided) and min(ir.flat(last.stride)) < 0


def _numbers(what: str, numbers: tuple[int, ...], signed: bool = False) -> None:
    for number in numbers:
        if type(number) is not int:
            _fail(f"{what}: {number!r:.40} is not a whole number")
        if number < 0 and not signed:
            _fail(f"{what}: {number} is negative")
        if abs(number) >> MOST_BITS:
            _fail(f"{what}: {number} has more than {MOST_BITS} bits")


def _positive(what: str, number: int) -> None:
    _numbers(what, (number,))
    if not number:
        _fail(f"{what} at least 1, not 0")


def _divides(what: str, part: int, columns: int) -> None:
    _positive(what, part)
    _positive("columns", columns)
    if columns % part:
        _fail(f"{what}: {part} does not divide {columns} columns")


def _at_most(size: int) -> None:
    if size > MOST_ELEMENTS:
        _fail(f"a layout of {size} elements is too large", f"{MOST_ELEMENTS} are the most")


def _fail(message: str, advice: str = "") -> NoReturn:
    raise CheckError(message, advice=advice)
