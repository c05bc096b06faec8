"""CuTe's own unit tests of its algebra, restated: its layouts, and what must hold of results."""

from __future__ import annotations

import numpy as np
import pytest
from tests.layout.cute_cases import COMPLEMENT, COMPOSITION, DIVIDE, LEFT, PRODUCT, RIGHT

from warploom.errors import CheckError
from warploom.layout.language import tiling
from warploom.layout.language.algebra import (
    coalesce,
    complement,
    cosize,
    filtered,
    joined,
    top_modes,
)
from warploom.layout.language.evaluate import extended, values
from warploom.layout.language.ir import Strided, product, shape_of
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show


def strided(text: str) -> Strided:
    layout = parse(text)
    assert isinstance(layout, Strided)
    return layout


def test_complements() -> None:
    for text, given in COMPLEMENT:
        layout = strided(text)
        size = cosize(layout) if given is None else given
        rest = complement(layout, size)
        both, table = joined(layout, rest), values(rest)
        assert cosize(both) >= size, text
        assert cosize(rest) <= -(-size // cosize(layout)) * cosize(layout), text
        assert (np.diff(table) > 0).all(), text
        assert not set(table[1:].tolist()) & set(values(layout).tolist()), text
        assert product(rest.shape) >= size // product(filtered(layout).shape), text
        assert cosize(both) <= cosize(rest) + cosize(layout), text
        assert product(complement(both, cosize(both)).shape) == 1, text
        assert complement(complement(rest, cosize(layout)), size) == rest, text


def test_left_inverses() -> None:
    for text in LEFT:
        layout = parse(text)
        inverse = tiling.left_inverse(layout)
        again = extended(layout, extended(inverse, values(layout)))
        assert np.array_equal(again, values(layout)), text


def test_right_inverses() -> None:
    for text in RIGHT:
        layout = parse(text)
        found = values(tiling.right_inverse(layout))
        assert extended(layout, found).tolist() == list(range(len(found))), text


def test_compositions() -> None:
    for first, second in COMPOSITION:
        outer, inner = parse(first), parse(second)
        result = tiling.composed(outer, inner)
        assert np.array_equal(values(result), extended(outer, values(inner))), (first, second)
        assert finer(shape_of(inner), shape_of(result)), (first, second)


def finer(shape: object, other: object) -> bool:
    """Whether the other has the same sizes, where some are cut further: CuTe's `compatible`."""
    if isinstance(shape, int):
        return shape == product(other)  # type: ignore[arg-type]
    assert isinstance(shape, tuple)
    if len(shape) == 1 and not isinstance(other, tuple):
        return finer(shape[0], other)
    assert isinstance(other, tuple)
    return len(shape) == len(other) and all(map(finer, shape, other))


def test_divides() -> None:
    for first, second in DIVIDE:
        tile = strided(second)
        inside, outside = top_modes(tiling.logical_divide(strided(first), tile), 2)
        assert finer(tile.shape, inside.shape), (first, second)
        assert product(outside.shape) >= 1
    result = tiling.logical_divide(strided("(32,4,4):(1,32,128)"), strided("64:1"))
    assert show(result) == "(64,8):(1,64)"
    assert show(tiling.logical_divide(strided("2:1"), strided("32:1"))) == "(32,1):(1,0)"
    assert show(tiling.logical_divide(strided("48:1"), strided("32:1"))) == "(32,2):(1,32)"


def test_products() -> None:
    for first, second in PRODUCT:
        layout, copies = strided(first), strided(second)
        inside, outside = top_modes(tiling.logical_product(layout, copies), 2)
        assert inside == layout, (first, second)
        assert finer(copies.shape, outside.shape), (first, second)


def test_fewer_tilers_than_modes_leave_the_others() -> None:
    layout = strided("(9,(4,8),5):(59,(13,1),7)")
    divided = tiling.logical_divide(layout, (strided("3:3"), strided("(2,4):(1,8)")))
    assert show(divided) == "((3,3),((2,4),(2,2)),5):((177,59),((13,2),(26,1)),7)"
    zipped = tiling.zipped_divide(layout, (3,))
    assert show(zipped) == "((3,),(3,(4,8),5)):((59,),(177,(13,1),7))"
    tiled = tiling.tiled_divide(layout, (3, None))
    assert show(tiled) == "((3,1),3,(4,8),5):((59,0),177,(13,1),7)"
    flat_one = tiling.flat_divide(layout, (3, None))
    assert show(flat_one) == "(3,1,3,(4,8),5):(59,0,177,(13,1),7)"


def test_products_of_blocks() -> None:
    block, copies = strided("(2,5):(5,1)"), strided("(3,4):(1,3)")
    assert show(tiling.blocked_product(block, copies)) == "((2,3),(5,4)):((5,10),(1,30))"
    assert show(tiling.raked_product(block, copies)) == "((3,2),(4,5)):((10,5),(30,1))"
    more = tiling.blocked_product(strided("4:1"), strided("(2,3):(3,1)"))
    assert values(more).tolist() == values(strided("(4,2,3):(1,12,4)")).tolist()
    assert show(tiling.zipped_product(block, (3, 4))) == show(
        joined(joined(strided("2:5"), strided("5:1")), joined(strided("3:1"), strided("4:5")))
    )
    assert show(tiling.tiled_product(block, (3, 4))) == "((2,5),3,4):((5,1),1,5)"
    assert show(tiling.flat_product(block, (3, 4))) == "(2,5,3,4):(5,1,1,5)"


def test_coalescing_by_profile() -> None:
    layout = strided("(2,(1,6)):(1,(6,2))")
    assert show(coalesce(layout, (1, 1))) == "(2,6):(1,2)"
    assert show(coalesce(layout, (1,))) == "(2,(1,6)):(1,(6,2))"
    assert show(coalesce(layout, 1)) == "12:1"
    with pytest.raises(CheckError, match="3 modes"):
        coalesce(layout, (1, 1, 1))


def test_layouts_with_a_swizzle_are_cut_inside() -> None:
    layout = parse("S<3,3,3> o (64,64):(64,1)")
    cut = tiling.within(layout, lambda inner: tiling.zipped_divide(inner, (8, 16)))
    assert show(cut) == "S<3,3,3> o ((8,16),(8,4)):((64,1),(512,16))"
    assert sorted(values(cut).tolist()) == list(range(4096))
    with pytest.raises(CheckError, match="no modes"):
        tiling.within(parse("F2[1,2]"), coalesce)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tiling.logical_divide(strided("(4,4):(1,4)"), (2, 2, 2)),
        lambda: tiling.logical_divide(strided("(4,6):(1,8)"), strided("5:1")),
        lambda: tiling.zipped_divide(strided("8:1"), ()),
        lambda: tiling.tile_to_shape(strided("(8,8):(8,1)"), (12, 8)),
        lambda: tiling.tile_to_shape(strided("(8,8):(8,1)"), (16,)),
        lambda: tiling.left_inverse(parse("pad<8,1> o 64:1")),
        lambda: tiling.left_inverse(strided("(2,2):(2,3)")),
        lambda: complement(strided("(2,2):(2,3)"), 19),
        lambda: complement(strided("((2,2),(2,2)):((1,8),(8,4))"), 64),
        lambda: complement(strided("4:-1"), 8),
    ],
)
def test_what_has_no_answer_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(CheckError):
        call()


def test_negative_strides_are_refused_where_addresses_are_wanted() -> None:
    assert values(parse("4:-1")).tolist() == [0, -1, -2, -3]
    assert values(parse("shift<3> o 4:-1")).tolist() == [3, 2, 1, 0]
    assert values(parse("S<1,0,1> o shift<3> o 4:-1")).tolist() == [2, 3, 1, 0]
    with pytest.raises(CheckError, match="goes down to -3"):
        parse("S<1,0,1> o 4:-1")


def test_counted() -> None:
    """So many cases there are; a list that was cut short would pass everything above."""
    assert (len(COMPLEMENT), len(LEFT), len(RIGHT)) == (52, 26, 28)
    assert (len(COMPOSITION), len(DIVIDE), len(PRODUCT)) == (63, 25, 22)
