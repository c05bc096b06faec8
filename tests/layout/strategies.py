"""Random layouts, small enough to be looked at element by element."""

from __future__ import annotations

from hypothesis import strategies as st

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
)

SIZES = st.sampled_from([1, 2, 2, 3, 4, 4, 5, 6, 8])
STRIDES = st.sampled_from([0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64])


@st.composite
def strided(draw: st.DrawFn, depth: int = 2) -> Strided:
    shape, stride = draw(trees(depth))
    return Strided(shape, stride)


@st.composite
def trees(draw: st.DrawFn, depth: int) -> tuple[Tree, Tree]:
    if depth == 0 or draw(st.booleans()):
        return draw(SIZES), draw(STRIDES)
    parts = [draw(trees(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    return tuple(shape for shape, _ in parts), tuple(stride for _, stride in parts)


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    bits = draw(st.integers(0, 3))
    shift = draw(st.integers(bits, bits + 3)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 4)), shift)


@st.composite
def by_rows(draw: st.DrawFn) -> Layout:
    part, parts = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 4))
    match draw(st.integers(0, 2)):
        case 0:
            within = draw(st.integers(1, 8))
            by, rows = draw(st.integers(0, 9)), draw(st.integers(1, 4))
            return Rotate(within * parts, within, by, rows)
        case 1:
            unit = draw(st.sampled_from([1, 2, 4]))
            return Exchange(unit * part * parts, unit, part, draw(st.integers(0, 3)))
        case _:
            return Tile(part * parts, draw(st.integers(1, 5)), part)


MAPS = st.one_of(
    swizzles(),
    by_rows(),
    st.builds(Shift, st.integers(0, 20)),
    st.builds(Pad, st.integers(1, 40), st.integers(0, 5)),
)


@st.composite
def domains(draw: st.DrawFn) -> Layout:
    match draw(st.integers(0, 3)):
        case 0:
            columns = draw(st.lists(st.integers(0, 63), max_size=6))
            return Matrix(tuple(columns), draw(st.integers(0, 63)))
        case 1:
            return Table(tuple(draw(st.lists(st.integers(0, 99), min_size=1, max_size=12))))
        case _:
            return draw(strided())


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    layout = draw(domains())
    for _ in range(draw(st.integers(0, 3))):
        layout = Compose(draw(MAPS), layout)
    return layout
