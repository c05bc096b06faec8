"""Random texts of every format are read, written and read again; damaged ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.layout.texts import FORMATS, damaged, round_trips

from warploom.layout.formats.given import given_layout
from warploom.layout.language.evaluate import values
from warploom.layout.language.recognise import recognised
from warploom.layout.language.show import show

FEW = {"TileLang": 60, "Gluon's shared layouts": 100}  # whose texts take longest


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMATS)
def test_round_trips(name: str) -> None:
    seen = round_trips(name, FEW.get(name, 200))
    assert len(seen) >= (1 if name == "bases of registers" else 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_texts(name: str) -> None:
    assert damaged(name, FEW.get(name, 200))["refused"] > 15


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_ten_thousand_round_trips(name: str) -> None:
    assert sum(round_trips(name, 10_000).values()) == 10_000


# What a function computes, and the layout in words.
FUNCTIONS = [
    ("i * 72 + (j ^ i % 8 * 8)", (16, 64), "pad<64,8> o S<3,3,3> o (16,64):(64,1)"),
    ("i * 36 + j + 4", (8, 32), "shift<4> o (8,32):(36,1)"),
    ("[j // 8, i, j % 8]", (16, 32), "(16,(8,4)):(8,(1,128))"),
    ("i * 48 + (j ^ i % 8 * 2)", (12, 48), "exchange<48,2,8,0> o (12,48):(48,1)"),
    ("i * 64 + (j ^ i % 8 * 8)", (12, 64), "S<3,3,3> o (12,64):(64,1)"),
    ("i * 24 + (j + i // 4) % 24", (32, 24), "rotate<24,24,1,4> o (32,24):(24,1)"),
    ("i * 20 + (j ^ i // 2 % 2 * 2)", (6, 20), "exchange<20,2,2,1> o (6,20):(20,1)"),
    ("j * 6 + i ^ j * 6 + i >> 3 & 1", (6, 8), "S<1,0,3> o (6,8):(1,6)"),
]


@pytest.mark.parametrize(("function", "shape", "wanted"), FUNCTIONS)
def test_functions_become_layouts_in_words(
    function: str, shape: tuple[int, ...], wanted: str
) -> None:
    text = f"T.Layout({shape}, lambda i, j: {function})"
    found = given_layout(text)
    assert show(found) == wanted
    assert np.array_equal(values(found), values(given_layout(wanted)))


def test_what_no_word_fits_is_a_table() -> None:
    places = np.array([0, 5, 1, 7, 2, 3, 4, 6])
    assert recognised(places, (2, 4)) is None
    text = "T.Layout((2, 4), lambda i, j: (i * 4 + j) * 3 % 8 ^ (i * 4 + j) // 3)"
    assert "table" in show(given_layout(text))
