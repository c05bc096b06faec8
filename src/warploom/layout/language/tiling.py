"""Layouts cut into tiles and repeated over tiles, as CuTe has it: by a layout, or mode by mode.

    logical  ((tile of mode 0, rest), (tile of mode 1, rest), …)
    zipped   ((tiles of all modes), (rests))
    tiled    ((tiles of all modes), rest, rest, …)
    flat     (tile, tile, …, rest, rest, …)

A tiler is a layout, a number n (which is n:1), None (that mode stays as it is), or a tuple of
tilers, one for each mode. There may be fewer tilers than modes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from warploom.errors import CheckError
from warploom.layout.language import algebra
from warploom.layout.language.algebra import complement, cosize, joined, top_modes
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import values
from warploom.layout.language.ir import (
    Compose,
    Layout,
    Strided,
    Swizzle,
    chain,
    compose,
    product,
)
from warploom.layout.language.show import show

Tiler: TypeAlias = "int | Strided | tuple[Tiler, ...] | None"
_ONE = Strided(1, 0)
_Split: TypeAlias = Callable[[Strided, Strided], Strided]


def composition(layout: Strided, tiler: Tiler) -> Strided:
    """The elements that a tiler names, in its order.

    >>> show(composition(Strided((12, (4, 8)), (59, (13, 1))), (Strided(3, 4), Strided(8, 2))))
    '(3,(2,4)):(236,(26,1))'
    """
    return _by_mode(algebra.composition, layout, tiler)


def logical_divide(layout: Strided, tiler: Tiler) -> Strided:
    """A tile, and which tile: layout ∘ (tiler, complement of tiler). Several tilers: mode by mode.

    >>> show(logical_divide(Strided((4, 2, 3), (2, 1, 8)), Strided(4, 2)))
    '((2,2),(2,3)):((4,1),(2,8))'
    """
    return _by_mode(_divided, layout, tiler)


def logical_product(layout: Strided, copies: Tiler) -> Strided:
    """The layout, and where its copies are: (layout, complement of layout ∘ copies).

    >>> show(logical_product(Strided((2, 2), (4, 1)), Strided(6, 1)))
    '((2,2),(2,3)):((4,1),(2,8))'
    """
    return _by_mode(_multiplied, layout, copies)


def zipped_divide(layout: Strided, tiler: Tiler) -> Strided:
    """The tiles of all modes together, then which tiles.

    >>> show(zipped_divide(Strided((8, 8), (8, 1)), (4, 2)))
    '((4,2),(2,4)):((8,1),(32,2))'
    """
    return _zipped(_divided, layout, tiler)


def tiled_divide(layout: Strided, tiler: Tiler) -> Strided:
    """
    >>> show(tiled_divide(Strided((8, 8), (8, 1)), (4, 2)))
    '((4,2),2,4):((8,1),32,2)'
    """
    return _opened(zipped_divide(layout, tiler), first=False)


def flat_divide(layout: Strided, tiler: Tiler) -> Strided:
    """
    >>> show(flat_divide(Strided((8, 8), (8, 1)), (4, 2)))
    '(4,2,2,4):(8,1,32,2)'
    """
    return _opened(zipped_divide(layout, tiler), first=True)


def zipped_product(layout: Strided, copies: Tiler) -> Strided:
    """
    >>> show(zipped_product(Strided((2, 5), (1, 2)), Strided(3, 1)))
    '((2,5),3):((1,2),10)'
    """
    return _zipped(_multiplied, layout, copies)


def tiled_product(layout: Strided, copies: Tiler) -> Strided:
    return _opened(zipped_product(layout, copies), first=False)


def flat_product(layout: Strided, copies: Tiler) -> Strided:
    return _opened(zipped_product(layout, copies), first=True)


def blocked_product(block: Strided, copies: Strided) -> Strided:
    """Copies of a block side by side: mode i of the block, then mode i of the copies.

    >>> show(blocked_product(Strided((2, 5), (5, 1)), Strided((3, 4), (1, 3))))
    '((2,3),(5,4)):((5,10),(1,30))'
    """
    return joined(*(joined(*pair) for pair in _pairs(block, copies)))


def raked_product(block: Strided, copies: Strided) -> Strided:
    """Copies of a block, interleaved: mode i of the copies, then mode i of the block.

    >>> show(raked_product(Strided((2, 5), (5, 1)), Strided((3, 4), (1, 3))))
    '((3,2),(4,5)):((10,5),(30,1))'
    """
    return joined(*(joined(*reversed(pair)) for pair in _pairs(block, copies)))


def tile_to_shape(block: Strided, shape: tuple[int, ...]) -> Strided:
    """As many copies of a block as fill the shape, the first mode's fastest.

    >>> show(tile_to_shape(Strided((8, 8), (8, 1)), (16, 32)))
    '((8,2),(8,4)):((8,64),(1,128))'
    """
    check(block)
    parts = _filled(block, len(shape))
    if len(parts) > len(shape):
        raise CheckError(f"{show(block)} has more than {len(shape)} modes")
    counts, stride, strides = [], 1, []
    for size, part in zip(shape, parts, strict=True):
        own = product(part.shape)
        if size < 1 or size % own:
            raise CheckError(f"{size} is not a multiple of {own}", advice=f"of {show(block)}")
        counts.append(size // own)
        strides.append(stride)
        stride *= counts[-1]
    return blocked_product(joined(*parts), Strided(tuple(counts), tuple(strides)))


def within(layout: Layout, operation: Callable[[Strided], Strided]) -> Layout:
    """An operation on the shapes and strides of a composed layout; what is put after them stays.

    >>> from warploom.layout.language.parse import parse
    >>> show(within(parse("S<1,3,3> o (8,16):(16,1)"), lambda inner: zipped_divide(inner, (2, 8))))
    'S<1,3,3> o ((2,8),(4,2)):((16,1),(32,8))'
    """
    parts = chain(layout)
    if not isinstance(parts[-1], Strided):
        raise CheckError(f"{show(parts[-1])[:60]} has no modes", advice="shapes and strides have")
    return compose(*parts[:-1], operation(parts[-1]))


def composed(outer: Layout, inner: Layout) -> Layout:
    """outer ∘ inner: of shapes and strides where both are, else the one after the other.

    >>> from warploom.layout.language.parse import parse
    >>> show(composed(parse("S<2,0,3> o (8,8):(8,1)"), Strided((8, 4), (1, 16))))
    'S<2,0,3> o (8,4):(8,2)'
    """
    *maps, last = chain(outer)
    if isinstance(last, Strided) and isinstance(inner, Strided):
        return compose(*maps, algebra.composition(last, inner))
    return check(compose(outer, inner))


def left_inverse(layout: Layout) -> Layout:
    """The left inverse of shapes and strides, or of such with swizzles after them.

    >>> from warploom.layout.language.parse import parse
    >>> show(left_inverse(parse("S<1,0,2> o (4,4):(4,1)")))
    '(4,4):(4,1) o S<1,0,2> o 16:1'
    """
    maps, inner = _swizzled(layout)
    return _after_swizzles(algebra.left_inverse(inner), layout, maps)


def right_inverse(layout: Layout) -> Layout:
    """The right inverse of shapes and strides, or of such with swizzles after them; the numbers
    from 0 on that it takes fill the blocks in which the swizzles move them.

    >>> from warploom.layout.language.parse import parse
    >>> show(right_inverse(parse("S<1,0,2> o (4,4):(4,1)")))
    '(4,4):(4,1) o S<1,0,2> o 16:1'
    """
    maps, inner = _swizzled(layout)
    inverse = algebra.right_inverse(inner)
    if not maps:
        return inverse
    size = product(inverse.shape)
    for count in range(size, 0, -1):  # the longest run that the swizzles keep within it
        run = compose(*reversed(maps), Strided(count, 1))
        if int(values(run).max()) < size:
            return Compose(inverse, run)
    raise AssertionError("a swizzle moves 0 to 0")


def _swizzled(layout: Layout) -> tuple[list[Layout], Strided]:
    *maps, inner = chain(layout)
    if not isinstance(inner, Strided) or not all(isinstance(each, Swizzle) for each in maps):
        raise CheckError(
            f"the inverse of {show(layout)[:60]} is not known here",
            advice="it is known of shapes and strides, and of swizzles after them",
        )
    return maps, inner


def _after_swizzles(inverse: Strided, layout: Layout, maps: list[Layout]) -> Layout:
    """A swizzle undoes itself, so the inverse comes after the swizzles in the other order."""
    if not maps:
        return inverse
    reach = 1 << int(values(layout).max()).bit_length()
    return compose(inverse, *reversed(maps), Strided(reach, 1))


# -- one mode after another ------------------------------------------------------------------------


def _by_mode(operation: _Split, layout: Strided, tiler: Tiler) -> Strided:
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        parts = top_modes(layout)
        _enough(layout, parts, tiler)
        own = [_by_mode(operation, *each) for each in zip(parts, tiler, strict=False)]
        return joined(*own, *parts[len(tiler) :])
    return operation(layout, Strided(tiler, 1) if isinstance(tiler, int) else tiler)


def _zipped(operation: _Split, layout: Strided, tiler: Tiler) -> Strided:
    if tiler is None:
        return joined(_ONE, layout)
    if not isinstance(tiler, tuple):
        return _by_mode(operation, layout, tiler)
    parts = top_modes(layout)
    _enough(layout, parts, tiler)
    halves = [top_modes(_zipped(operation, *each), 2) for each in zip(parts, tiler, strict=False)]
    rests = [half[1] for half in halves] + parts[len(tiler) :]
    return joined(joined(*(half[0] for half in halves)), joined(*rests))


def _opened(zipped: Strided, first: bool) -> Strided:
    """The rests, and with `first` the tiles too, as modes of their own."""
    tiles, rests = top_modes(zipped, 2)
    return joined(*(top_modes(tiles) if first else [tiles]), *top_modes(rests))


def _enough(layout: Strided, parts: list[Strided], tiler: tuple[Tiler, ...]) -> None:
    if not 1 <= len(tiler) <= len(parts):
        raise CheckError(
            f"{len(tiler)} tilers, and {show(layout)} has {len(parts)} modes",
            advice="give one for each mode, or fewer; None leaves a mode as it is",
        )


def _divided(layout: Strided, tile: Strided) -> Strided:
    rest = complement(tile, product(layout.shape))
    return algebra.composition(layout, joined(tile, rest))


def _multiplied(layout: Strided, copies: Strided) -> Strided:
    room = product(layout.shape) * cosize(copies)
    return joined(layout, algebra.composition(complement(layout, room), copies))


def _pairs(block: Strided, copies: Strided) -> list[tuple[Strided, Strided]]:
    """Modes of the block beside those of its copies, as many as the one that has more."""
    count = max(len(top_modes(block)), len(top_modes(copies)))
    both = _multiplied(joined(*_filled(block, count)), joined(*_filled(copies, count)))
    first, second = top_modes(both, 2)
    return list(zip(top_modes(first), top_modes(second), strict=True))


def _filled(layout: Strided, count: int) -> list[Strided]:
    parts = top_modes(layout)
    return [*parts, *[_ONE] * (count - len(parts))]
