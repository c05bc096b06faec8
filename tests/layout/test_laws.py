"""Every law, on random layouts: what it gives is the same function; and each is used."""

from __future__ import annotations

from collections import Counter

import numpy as np
from bench.common.narrowed import present
from hypothesis import given
from hypothesis import strategies as st
from tests.layout.strategies import MAPS, domains, layouts, strided, swizzles
from tests.sampled import examples

from warploom.layout.language.build import row_major
from warploom.layout.language.evaluate import values
from warploom.layout.language.facts import as_matrix
from warploom.layout.language.ir import (
    Compose,
    Layout,
    Matrix,
    Pad,
    Shift,
    Strided,
    Swizzle,
    Table,
    Tile,
    size_of,
)
from warploom.layout.language.laws import LAWS, simplify

USED: Counter[str] = Counter()
SMALL_PADS = st.builds(Pad, st.sampled_from([1, 2, 4, 8]), st.integers(0, 3))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """Two parts that can stand one after another."""
    matrix = st.builds(
        lambda s: present(as_matrix(values(Compose(s, Strided(2048, 1))))), swizzles()
    )
    rows = st.builds(row_major, st.integers(1, 6), st.integers(1, 8))
    inner = draw(st.one_of(domains(), strided(), rows, matrix, MAPS))
    if size_of(inner) is None:
        return draw(MAPS), inner
    size = int(values(inner).max()) + 1
    unit = tuple(1 << bit for bit in range(size.bit_length()))
    with_domain: st.SearchStrategy[Layout] = st.sampled_from(
        [
            Strided((2, -(-size // 2)), (-(-size // 2), 1)),
            Strided(size, 3),
            Matrix(unit, 0),
            Matrix(tuple(3 * column for column in unit), 1),
        ]
    )
    return draw(st.one_of(MAPS, SMALL_PADS, with_domain)), inner


def try_all_laws(outer: Layout, inner: Layout) -> None:
    base = Strided(512, 1)
    whole: Layout = Compose(outer, inner)
    bounded = size_of(inner) is not None
    for law in LAWS:
        found = law.rewrite(outer, inner)
        if found is not None:
            USED[law.name] += 1
            before = whole if bounded else Compose(whole, base)
            after = found if bounded else Compose(found, base)
            assert np.array_equal(values(after), values(before)), law.name


# For each law a pair that it is about: chance does not meet all of them every time.
MET: list[tuple[Layout, Layout]] = [
    (Shift(0), Swizzle(1, 0, 1)),
    (Swizzle(3, 3, 3), Swizzle(3, 3, 3)),
    (Shift(3), Shift(4)),
    (Pad(8, 1), Strided((4, 8), (8, 1))),
    (Tile(8, 4, 2), Strided((8, 8), (8, 1))),
    (Strided((6, 2), (8, 2)), Strided((4, 3), (3, 1))),
    (Swizzle(1, 0, 1), Matrix((1, 2, 4), 5)),
    (Matrix((1, 2, 5, 10), 0), Strided(16, 1)),
    (Pad(2, 1), Table((3, 1, 2))),
]


def test_every_law_is_right_and_used() -> None:
    @given(neighbours())
    @examples(25)
    def search(pair: tuple[Layout, Layout]) -> None:
        try_all_laws(*pair)

    search()
    for pair in MET:
        try_all_laws(*pair)
    assert {law.name for law in LAWS} == set(USED)


@given(layouts())
@examples(25)
def test_a_simpler_layout_is_the_same_function(layout: Layout) -> None:
    assert np.array_equal(values(simplify(layout)), values(layout))
