"""Layouts as a language: text and back, meaning, what is refused, what is true of a layout."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.layout.strategies import domains, layouts, swizzles
from tests.sampled import examples

import warploom.layout
from warploom.errors import CheckError, ParseError, WarploomError
from warploom.layout.language.build import column_major, padded, row_major, swizzled
from warploom.layout.language.check import check
from warploom.layout.language.evaluate import at, evaluate, values
from warploom.layout.language.facts import as_matrix, as_swizzle, facts_of, meeting
from warploom.layout.language.ir import (
    Compose,
    Exchange,
    Layout,
    Matrix,
    Pad,
    Rotate,
    Strided,
    Swizzle,
    Table,
    Tile,
    Tree,
    chain,
    compose,
)
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show


def test_the_examples_in_the_text_are_true() -> None:
    tried = 0
    for found in pkgutil.walk_packages(warploom.layout.__path__, "warploom.layout."):
        module = importlib.import_module(found.name)
        result = doctest.testmod(module)
        assert result.failed == 0, found.name
        tried += result.attempted
    assert tried >= 15


@given(layouts())
@examples(25)
def test_text_and_back(layout: Layout) -> None:
    assert parse(show(layout)) is compose(*chain(layout))


def coordinate(shape: Tree, number: int) -> Tree:
    """The number as a coordinate, the first fastest."""
    if isinstance(shape, int):
        return number % shape
    found = []
    for part in shape:
        size = int(np.prod(np.array(show_numbers(part))))
        found.append(coordinate(part, number % size))
        number //= size
    return tuple(found)


def show_numbers(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [n for part in tree for n in show_numbers(part)]


def by_rows(layout: Rotate | Exchange | Tile, row: int, column: int) -> int:
    match layout:
        case Rotate(columns, within, by, rows):
            block, place = divmod(column, within)
            for _ in range(by * (row // rows)):
                place = 0 if place + 1 == within else place + 1
            return row * columns + block * within + place
        case Exchange(columns, unit, period, shift):
            return row * columns + (column ^ unit * ((row // 2**shift) % period))
        case Tile(columns, height, width):
            before = (row // height) * columns * height + (column // width) * height * width
            return before + (row % height) * width + column % width


def by_hand(layout: Layout, x: int) -> int:
    """The meaning again, one number at a time and by other words."""
    match layout:
        case Strided(shape, stride):
            places = show_numbers(coordinate(shape, x))
            return sum(p * s for p, s in zip(places, show_numbers(stride), strict=True))
        case Swizzle(bits, base, shift):
            source, target = base + max(shift, 0), base + max(-shift, 0)
            for bit in range(bits):
                x ^= ((x >> (source + bit)) & 1) << (target + bit)
            return x
        case Matrix(columns, offset):
            for bit, column in enumerate(columns):
                offset ^= column if x >> bit & 1 else 0
            return offset
        case Table(table):
            return table[x]
        case Pad(every, by):
            return x + by * (x // every)
        case Rotate() | Exchange() | Tile():
            return by_rows(layout, *divmod(x, layout.columns))
        case Compose(outer, inner):
            return by_hand(outer, by_hand(inner, x))
        case _:
            return x + layout.by


@given(layouts())
@examples(25)
def test_the_meaning_number_by_number(layout: Layout) -> None:
    assert values(layout).tolist() == [by_hand(layout, x) for x in range(len(values(layout)))]


def test_swizzles_as_others_compute_them() -> None:
    first = evaluate(Swizzle(2, 0, 3), np.arange(32)).tolist()
    assert first[:16] == [*range(8), 9, 8, 11, 10, 13, 12, 15, 14]
    assert first[16:] == [18, 19, 16, 17, 22, 23, 20, 21, 27, 26, 25, 24, 31, 30, 29, 28]
    images = {
        (3, 3, 3): [1, 2, 4, 8, 16, 32, 72, 144, 288],
        (3, 4, 3): [1, 2, 4, 8, 16, 32, 64, 144, 288, 576],
        (2, 5, 2): [1, 2, 4, 8, 16, 32, 64, 160, 320],
        (3, 3, -3): [1, 2, 4, 72, 144, 288, 64, 128, 256],
    }
    for numbers, wanted in images.items():
        powers = np.array([1 << bit for bit in range(len(wanted))])
        assert evaluate(Swizzle(*numbers), powers).tolist() == wanted
    layout = swizzled(8, 64, bits=3, base=3, shift=3)
    assert [at(layout, 1, 0), at(layout, 7, 0), at(layout, 3, 9)] == [72, 504, 209]


@given(swizzles())
@examples(25)
def test_a_swizzle_is_its_own_inverse_and_a_matrix(swizzle: Swizzle) -> None:
    bits = swizzle.bits + swizzle.base + abs(swizzle.shift)
    layout = Compose(swizzle, Strided(1 << bits, 1))
    assert np.array_equal(values(Compose(swizzle, layout)), np.arange(1 << bits))
    matrix = as_matrix(values(layout))
    assert matrix is not None
    again = as_swizzle(matrix)
    assert again == (swizzle if swizzle.bits else Swizzle(0, 0, 0))


@given(domains())
@examples(25)
def test_facts_by_looking_at_every_element(layout: Layout) -> None:
    table, found = values(layout).tolist(), facts_of(layout)
    assert found.injective == (len(set(table)) == len(table))
    assert (found.lowest, found.highest, found.size) == (min(table), max(table), len(table))
    assert (meeting(np.array(table)) is None) == found.injective
    met = meeting(np.array(table))
    if met is not None:
        assert met[0] < met[1]
        assert table[met[0]] == table[met[1]]
        assert len(set(table[: met[1]])) == met[1]
    for length in range(1, len(table) + 1):
        if len(table) % length == 0:
            together = all(
                table[first + i] == table[first] + i
                for first in range(0, len(table), length)
                for i in range(length)
            )
            assert together or found.run != length
            assert not together or found.run >= length
    starts = table[:: found.run]
    if found.alignment:
        assert all(start % found.alignment == 0 for start in starts)
        assert any(start % (2 * found.alignment) for start in starts)
    else:
        assert set(starts) == {0}


def test_usual_layouts() -> None:
    assert show(row_major(4, 8)) == "(4,8):(8,1)"
    assert show(column_major(4, 8)) == "(4,8):(1,4)"
    assert show(row_major(16)) == "16:1"
    assert facts_of(padded(4, 8, by=1)).wasted == 3
    assert facts_of(swizzled(8, 8, bits=3, base=0, shift=3)).bijective


BAD = {
    "": "ends where a layout",
    "(4,8)": "':' should stand here",
    "(4,8):(8,1) 3": "after a layout",
    "(4,8):8": "different forms",
    "(4,0):(8,1)": "at least 1, not 0",
    "(4,-2):(8,1)": "at least 1, not -2",
    "S<1,0,1> o (4,8):(8,-1)": "goes down",
    "S<3,3,2> o 64:1": "moves bits onto themselves",
    "S<-1,3,3> o 64:1": "negative number of bits",
    "S<3,3> o 64:1": "takes 3 numbers, not 2",
    "S<3,3,99> o 64:1": "reaches over",
    "twist<3> o 64:1": "no layout",
    "F2[1,2] o 8:1": "reaches 7",
    "64:1 o S<3,0,3>": "map of every number",
    "tile<10,4,4> o 40:1": "4 does not divide 10",
    "exchange<12,1,3,0> o 24:1": "power of two, not 3",
    "rotate<8,8,1,0> o 64:1": "at least 1, not 0",
    "pad<0,1> o 64:1": "at least 1, not 0",
    "table[]": "at least one value",
    "1000000000:1": "too large",
    "F2[1,2,3": "',' should stand here",
    "99999999999999999999:1": "too large",
    "8:1 o \x00": "not part of a layout",
    "(" * 100 + "8": "deep",
    "shift<1> o " * 150 + "8:1": "one after another",
    "S<1,1,1> o " * 150 + "8:1": "one after another",
}


@pytest.mark.parametrize("text", BAD)
def test_one_located_error(text: str) -> None:
    with pytest.raises(WarploomError, match=BAD[text]) as caught:
        parse(text)
    assert isinstance(caught.value, CheckError | ParseError)
    assert caught.value.span is not None


@given(st.text(alphabet="S<>(),:o 0123456789F2[]^pad", max_size=30))
@examples(25)
def test_any_text_is_a_layout_or_one_error(text: str) -> None:
    try:
        layout = parse(text)
    except (CheckError, ParseError):
        return
    assert parse(show(layout)) is layout


def test_numbers_outside_are_refused() -> None:
    with pytest.raises(CheckError, match="below 8"):
        evaluate(Strided(8, 1), np.array([8]))
    with pytest.raises(CheckError, match="size of 4"):
        at(row_major(4, 8), 4, 0)
    with pytest.raises(CheckError, match="coordinates"):
        at(row_major(4, 8), 1, 2, 3)
    with pytest.raises(CheckError, match="no domain"):
        values(Swizzle(1, 0, 1))
    with pytest.raises(CheckError, match="whole number"):
        check(Table((1, True)))
