"""Layouts as what others use: each text is read again, and one that says less is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bench.common.layout.spellings import random_layout

from warploom.emit.index_function import EXPORTS, exported, index_function
from warploom.errors import WarploomError
from warploom.layout.formats.cute import read_cute
from warploom.layout.formats.export import cute_type, read_cute_type
from warploom.layout.formats.given import given_layout
from warploom.layout.language.build import row_major, swizzled
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show


def test_types_round_trip() -> None:
    random = np.random.default_rng(4)
    for _ in range(100):
        layout = random_layout(random)
        text = cute_type(layout, "tile")
        again = read_cute_type(text)  # and without its name
        assert np.array_equal(values(again), values(layout)), text
        assert given_layout(text.removeprefix("using tile = ").removesuffix(";\n")) is again


def test_a_type_comes_with_every_spelling() -> None:
    layout = swizzled(8, 64, bits=3, base=3, shift=3)
    *comments, last = exported(layout, "cute", "tile", 2).splitlines()
    assert [line.split()[1] for line in comments] == [
        "dsl:", "c++:", "pycute:", "tensor-layouts:", "tilelang:",
    ]  # fmt: skip
    assert given_layout("\n".join([*comments, last])) is layout  # the whole of it, as it is written
    assert all(read_cute(line.split(maxsplit=2)[2], 2) is layout for line in comments)
    assert last == (
        "using tile = cute::ComposedLayout<cute::Swizzle<3,3,3>, cute::Int<0>, "
        "cute::Layout<cute::Shape<cute::Int<8>, cute::Int<64>>, "
        "cute::Stride<cute::Int<64>, cute::Int<1>>>>;"
    )


def test_bases_are_read_again() -> None:
    layout = parse("F2[1,2,4,8,16,34,68,136,272,515] o (32,32):(32,1)")
    bases = exported(layout, "triton")
    assert json.loads(bases)["offset"][-1] == [16, 3]
    assert np.array_equal(values(given_layout(bases, (32, 32))), values(layout))


def test_what_a_padded_layout_is() -> None:
    padded = parse("pad<48,8> o (128,48):(48,1)")
    assert show(read_cute(exported(padded, "cute").split()[2])) == "(128,48):(56,1)"
    with pytest.raises(WarploomError, match="powers of two"):
        exported(padded, "triton")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Layout<Shape<_8,_16>,Stride<_16,_1>", "'>' should stand"),
        ("Layout<Shape<_8,_16>,Stride<_16>>", "different forms"),
        ("Layout<Shape<_8,_16>,Stride<_16,_1>> x", "no type of a layout"),
        ("Layout<Shape<>,Stride<>>", "a type should stand"),
        ("Layout<Int<8>>", "such parameters"),
        ("ComposedLayout<Swizzle<3,3,2>, _0, Layout<_64,_1>>", "onto themselves"),
        ("Int<8>", "no type of a layout"),
        ("Layout<" * 100, "a type should stand"),
    ],
)
def test_bad_types_are_one_error(text: str, message: str) -> None:
    with pytest.raises(WarploomError, match=message):
        read_cute_type(text)


@pytest.mark.parametrize("how", EXPORTS)
def test_what_cannot_be_named(how: str) -> None:
    if how != "triton":  # bases have no name
        with pytest.raises(WarploomError, match="is no name"):
            exported(row_major(4, 4), how, "größe")


def test_places_beyond_an_int_are_refused() -> None:
    for text in ("(2,2):(2147483648,1)", "table[5,8589934592,1]"):
        with pytest.raises(WarploomError, match="does not fit into an int"):
            index_function(parse(text), "c")
    with pytest.raises(WarploomError, match="there is no format"):
        exported(row_major(4, 4), "fortran")


def test_types_with_flags_and_negative_strides() -> None:
    flagged = (
        "ComposedLayout<Swizzle<3,4,3>, smem_ptr_flag_bits<{}>, "
        "Layout<Shape<_8,Int<64>>, Stride<_64,_1>>>"
    )
    assert show(read_cute_type(flagged.format(16))) == "S<3,3,3> o (8,64):(64,1)"
    assert show(read_cute_type("cute::" + flagged.format(4))) == "S<3,5,3> o (8,64):(64,1)"
    with pytest.raises(WarploomError, match="6 bits"):
        read_cute_type(flagged.format(6))
    for layout in (parse("shift<3> o 4:-1"), parse("(4,2):(-1,8)")):
        assert np.array_equal(values(read_cute_type(cute_type(layout))), values(layout))
    assert show(read_cute_type("Layout<_4,_m1>")) == "4:-1"
    assert show(read_cute("(_4,_2):(_-1,_8)")) == "(4,2):(-1,8)"
    printed = "Sw<3,4,3> o smem_ptr[4b](unset) o (_8,_64):(_64,_1)"
    assert show(read_cute(printed)) == "S<3,5,3> o (8,64):(64,1)"


@pytest.mark.parametrize(
    "text",
    [
        "S<3,3,3> o (64,64):(64,1)", "pad<48,8> o (128,48):(48,1)", "(64,(64,2)):(64,(1,4096))",
        "exchange<48,8,2,2> o (64,48):(48,1)", "(8,4,16):(64,16,1)", "32:1", "rotate<24,24,1,4> o "
        "(32,24):(24,1)", "F2[1,2,4,8,3,5,9,17] o (16,16):(16,1)",
    ],
)  # fmt: skip
def test_tilelang_out_and_in(text: str) -> None:
    layout = parse(text)
    written = exported(layout, "tilelang", "tile")
    again = given_layout(written)
    assert np.array_equal(values(again), values(layout))
    function = written[written.index("lambda") : -2]  # what Python itself makes of it
    places = np.array([eval(function)(*at) for at in np.ndindex(*sizes_of(layout))])  # noqa: S307
    ours = values(layout).reshape(sizes_of(layout)[::-1]).T.ravel()
    assert np.array_equal(places, ours)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("T.Layout((8, 8), lambda i: i)", "coordinates"),
        ("T.Layout((8, 8), lambda i, j: i + x)", "unknown variable"),
        ("T.Layout((8, 8), lambda i, j: __import__('os'))", "os|'|import"),
        ("T.Layout((8, 8), lambda i, j: i - j)", "negative"),
        ("T.Layout((99999, 99999), lambda i, j: i)", "elements"),
        ("T.Layout(lambda i, j: i)", "no layout of TileLang"),
        ("T.Layout((8, 8), lambda i, j: " + "(" * 5000, "no layout"),
    ],
)
def test_bad_tilelang_layouts_are_refused(text: str, why: str) -> None:
    with pytest.raises(WarploomError, match=why):
        given_layout(text)


def test_what_counts_bytes_needs_the_size_of_an_element() -> None:
    swizzled = parse("S<3,3,3> o (8,64):(64,1)")
    unknown, known = exported(swizzled, "cute"), exported(swizzled, "cute", "place", 2)
    assert unknown.count("needs the element's size") == 2
    assert "smem_ptr[16b]" in known
    assert "smem_ptr" not in unknown
    assert exported(row_major(8, 64), "cute").count("needs the element's size") == 1  # TileLang's
    assert "nvmma" in exported(swizzled, "ttgir", "place", 2)
    assert "nvmma" not in exported(swizzled, "ttgir")
