"""The algebra against what CuTe's own implementations gave, and against its definitions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.layout.strategies import strided
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.layout.language.algebra import (
    coalesce,
    complement,
    composition,
    cosize,
    filtered,
    left_inverse,
    modes,
    right_inverse,
)
from warploom.layout.language.evaluate import extended, values
from warploom.layout.language.facts import is_injective
from warploom.layout.language.ir import Strided, product
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show
from warploom.layout.language.tiling import (
    logical_divide,
    logical_product,
    tile_to_shape,
    zipped_divide,
)


def read(text: str) -> Strided:
    layout = parse(text)
    assert isinstance(layout, Strided)
    return layout


def test_coalesce() -> None:
    assert show(coalesce(read("((2,4),8):((1,2),8)"))) == "64:1"
    assert show(coalesce(read("(2,(1,6)):(1,(6,2))"))) == "12:1"


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
    ],
)
def test_composition(outer: str, inner: str, result: str) -> None:
    assert show(composition(read(outer), read(inner))) == result


@pytest.mark.parametrize(
    ("layout", "size", "result"),
    [
        ("4:1", 24, "6:4"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("(2,4):(8,1)", 64, "(2,4):(4,16)"),
        ("(4,6):(1,4)", 24, "1:0"),
    ],
)
def test_complement(layout: str, size: int, result: str) -> None:
    assert show(complement(read(layout), size)) == result


def test_divide_and_product() -> None:
    divided = logical_divide(read("(4,2,3):(2,1,8)"), read("4:2"))
    assert show(divided) == "((2,2),(2,3)):((4,1),(2,8))"
    zipped = zipped_divide(read("(8,8):(8,1)"), (read("4:1"), read("2:1")))
    assert show(zipped) == "((4,2),(2,4)):((8,1),(32,2))"
    once = logical_product(read("(2,2):(4,1)"), read("6:1"))
    assert show(once) == "((2,2),(2,3)):((4,1),(2,8))"
    twice = logical_product(read("(2,2):(4,1)"), read("(4,2):(2,1)"))
    assert show(twice) == "((2,2),(4,2)):((4,1),(8,2))"


def test_inverses() -> None:
    assert show(right_inverse(read("(4,8):(8,1)"))) == "(8,4):(4,1)"
    assert show(right_inverse(read("(2,4,6):(4,1,8)"))) == "(4,2,6):(2,1,8)"
    assert show(right_inverse(read("(4,2):(2,16)"))) == "1:0"
    assert show(left_inverse(read("(4,8):(8,1)"))) == "(8,4):(4,1)"
    assert show(left_inverse(read("4:2"))) == "(2,4):(0,1)"


# -- by definition ---------------------------------------------------------------------------------


@given(strided())
@examples(25)
def test_coalescing_keeps_the_function(layout: Strided) -> None:
    again = coalesce(layout)
    assert values(again).tolist() == values(layout).tolist()
    assert cosize(layout) == int(values(layout).max()) + 1
    merged = modes(again)
    for (size, stride), (_, after) in pairwise(merged):
        assert size * stride != after
    assert set(values(filtered(layout)).tolist()) == set(values(layout).tolist())


@given(strided(), strided())
@examples(25)
def test_composition_is_one_function_after_the_other(outer: Strided, inner: Strided) -> None:
    try:
        result = composition(outer, inner)
    except CheckError:
        return
    assert values(result).tolist() == extended(outer, values(inner)).tolist()
    assert product(result.shape) == product(inner.shape)


def _covered(layout: Strided) -> list[int]:
    """1, then each stride, the smallest first, and what its mode covers."""
    moving = sorted((stride, size) for size, stride in modes(layout) if stride and size > 1)
    return [1, *(number for stride, size in moving for number in (stride, stride * size))]


@given(strided(), st.integers(1, 300))
@examples(25)
def test_a_complement_fills_up(layout: Strided, size: int) -> None:
    try:
        rest = complement(layout, size)
    except CheckError:
        return
    there = set(values(filtered(layout)).tolist())
    sums = [a + b for a in there for b in values(rest).tolist()]
    assert len(set(sums)) == len(sums)  # nothing twice
    if all(d % c == 0 for c, d in pairwise(_covered(layout))):
        assert set(range(size)) <= set(sums) or max(sums) < size
    assert values(rest).tolist() == sorted(values(rest).tolist())


@given(strided())
@examples(25)
def test_a_right_inverse_is_one_on_the_longest_run(layout: Strided) -> None:
    inverse = right_inverse(layout)
    size = product(inverse.shape)
    assert extended(layout, values(inverse)).tolist() == list(range(size))


@given(strided())
@examples(25)
def test_a_left_inverse_is_one_on_the_image(layout: Strided) -> None:
    try:
        inverse = left_inverse(layout)
    except CheckError:
        return
    image = values(layout)
    assert extended(layout, extended(inverse, image)).tolist() == image.tolist()
    if is_injective(image):
        assert extended(inverse, image).tolist() == list(range(len(image)))


@given(strided(), strided())
@examples(25)
def test_a_product_holds_copies(layout: Strided, copies: Strided) -> None:
    assume(is_injective(values(layout)) and is_injective(values(copies)))
    try:
        result = logical_product(layout, copies)
    except CheckError:
        return
    table = values(result)
    assert is_injective(table)
    assert table[: product(layout.shape)].tolist() == values(layout).tolist()


REFUSED = {
    "composition": lambda: composition(read("(4,6):(1,8)"), read("5:1")),
    "stride": lambda: composition(read("(6,2):(8,2)"), read("3:4")),
    "overlap": lambda: complement(read("(4,4):(1,2)"), 24),
    "no room": lambda: complement(read("4:1"), 0),
    "divide": lambda: logical_divide(read("(4,6):(1,8)"), read("5:1")),
    "modes": lambda: zipped_divide(read("(8,8):(8,1)"), (4, 4, 4)),
    "two at one": lambda: left_inverse(read("(2,2):(2,3)")),
    "a tiler of size 0": lambda: zipped_divide(read("(8,8):(8,1)"), (4, 0)),
    "copies of size 0": lambda: logical_product(read("4:1"), Strided(0, 1)),
    "a block of size 0": lambda: tile_to_shape(Strided(0, 1), (8,)),
    "a rest too large": lambda: zipped_divide(read("(2,16):(0,1)"), Strided(8, 1 << 40)),
    "an inverse of nothing": lambda: right_inverse(Strided((4, 0), (1, 4))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_answer_is_refused(name: str) -> None:
    with pytest.raises(CheckError):
        REFUSED[name]()
