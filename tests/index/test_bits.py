"""Affine maps over F2 against arithmetic on single bits."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.bits import (
    BitMap,
    from_expression,
    from_json,
    identity,
    reversal,
    rotation,
    side_by_side,
    xor,
)
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Var, operations
from warploom.index.parse import parse
from warploom.index.show import show

x, y = Var("x"), Var("y")


@st.composite
def maps(draw: st.DrawFn, most: int = 6) -> BitMap:
    bits = draw(st.integers(0, most))
    widths = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=2)))
    number = st.integers(0, (1 << bits) - 1)
    columns = draw(st.lists(number, min_size=sum(widths), max_size=sum(widths)))
    return BitMap(tuple(columns), draw(number), bits, widths)


@st.composite
def permutations(draw: st.DrawFn, bits: int) -> BitMap:
    """Products of elementary steps: each swaps two bits, or adds one to another."""
    columns = list(identity(bits).columns)
    for _ in range(draw(st.integers(0, 12))):
        i, j = draw(st.integers(0, bits - 1)), draw(st.integers(0, bits - 1))
        if i == j:
            continue
        if draw(st.booleans()):
            columns[i], columns[j] = columns[j], columns[i]
        else:
            columns[i] ^= columns[j]
    return BitMap(tuple(columns), draw(st.integers(0, (1 << bits) - 1)), bits, (bits,))


def by_bits(each: BitMap, inputs: tuple[int, ...]) -> int:
    """Every bit of the result by a sum over every bit of the input."""
    vector = [
        value >> b & 1 for value, w in zip(inputs, each.widths, strict=True) for b in range(w)
    ]
    result = 0
    for row in range(each.bits):
        total = each.offset >> row & 1
        for bit, column in zip(vector, each.columns, strict=True):
            total += bit * (column >> row & 1)
        result |= total % 2 << row
    return result


def inputs_of(each: BitMap) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(1 << width) for width in each.widths)))


@examples(80)
@given(maps())
def test_numbers_arrays_and_expressions_agree_with_single_bits(each: BitMap) -> None:
    every = inputs_of(each)
    expected = [by_bits(each, inputs) for inputs in every]
    assert [each(*inputs) for inputs in every] == expected
    columns = [np.array(column) for column in zip(*every, strict=True)]
    assert each(*columns).tolist() == expected
    names = [x, y][: len(each.widths)]
    expr = each.expression(*names)
    env = dict(zip(("x", "y"), columns, strict=False))
    assert np.broadcast_to(evaluate(expr, env), len(every)).tolist() == expected
    assert parse(show(expr)) is expr
    assert from_json(json.loads(json.dumps(each.to_json()))) == each


@examples(60)
@given(maps())
def test_from_expression_finds_the_map_again(each: BitMap) -> None:
    names = [x, y][: len(each.widths)]
    widths = dict(zip(("x", "y"), each.widths, strict=False))
    assert from_expression(each.expression(*names), widths, each.bits) == each


@examples(60)
@given(st.data(), st.integers(1, 5))
def test_composition_and_inverse(data: st.DataObject, bits: int) -> None:
    one, two = data.draw(permutations(bits)), data.draw(permutations(bits))
    for value in range(1 << bits):
        assert (one @ two)(value) == one(two(value))
        assert one.inverse()(one(value)) == value
    assert one @ one.inverse() == one.inverse() @ one == identity(bits)


@examples(80)
@given(maps())
def test_rank_and_permutations(each: BitMap) -> None:
    results = {by_bits(each, inputs) for inputs in inputs_of(each)}
    assert len(results) == 1 << each.rank
    taken_once = len(results) == 1 << each.bits == 1 << len(each.columns)
    assert each.is_permutation == taken_once
    if not each.is_permutation:
        with pytest.raises(CheckError, match="no inverse"):
            each.inverse()


def reversed_text(value: int, bits: int) -> int:
    return int(format(value, f"0{bits}b")[::-1], 2) if bits else 0


@pytest.mark.parametrize("bits", range(1, 8))
def test_named_maps(bits: int) -> None:
    size = 1 << bits
    for value in range(size):
        assert reversal(bits)(value) == reversed_text(value, bits)
        for by in range(-bits, 2 * bits):
            text = format(value, f"0{bits}b")
            turn = by % bits
            assert rotation(bits, by)(value) == int(text[bits - turn :] + text[: bits - turn], 2)
        for low in range(bits + 1):
            kept = value >> low << low
            assert reversal(bits, 0, low)(value) == kept | reversed_text(value - kept, low)
        assert xor(bits, size - 1)(value) == size - 1 - value


def test_expressions_are_short() -> None:
    assert identity(5).expression(x) is x
    assert xor(5, 9).expression(x) is x ^ 9
    assert rotation(5, 2).expression(x) is (x >> 2) ^ ((x & 3) << 3)
    assert side_by_side(identity(5), xor(5, 4)).expression(x, y) is x ^ y ^ 4
    assert BitMap((0, 0), 3, 2, (2,)).expression(x) is Const(3)
    gray = from_expression(x ^ (x >> 1), {"x": 8}, 8)
    assert gray is not None
    assert operations(gray.expression(x)) == 2
    assert operations(reversal(5).expression(x)) == 12


def test_what_is_not_affine_is_not_found() -> None:
    assert from_expression(x * 3, {"x": 3}, 5) is None
    assert from_expression(x + 1, {"x": 3}, 4) is None
    assert from_expression(x & y, {"x": 2, "y": 2}, 2) is None
    assert from_expression(x, {"x": 4}, 3) is None  # does not fit
    assert from_expression(x - 1, {"x": 3}, 3) is None
    assert from_expression(7 - x, {"x": 3}, 3) == xor(3, 7)
    assert from_expression(x * 4 + y, {"x": 2, "y": 2}, 4) == BitMap((4, 8, 1, 2), 0, 4, (2, 2))


@pytest.mark.parametrize(
    "record",
    [
        None,
        {"columns": [1]},
        {"columns": [1], "offset": 0, "bits": 1, "widths": [1], "more": 0},
        {"columns": 1, "offset": 0, "bits": 1, "widths": [1]},
        {"columns": [2], "offset": 0, "bits": 1, "widths": [1]},
        {"columns": [1], "offset": True, "bits": 1, "widths": [1]},
        {"columns": [1], "offset": 0, "bits": 99, "widths": [1]},
        {"columns": [1], "offset": 0, "bits": 1, "widths": [2]},
    ],
)
def test_bad_records(record: object) -> None:
    with pytest.raises(CheckError):
        from_json(record)


def test_wrong_calls() -> None:
    with pytest.raises(CheckError, match="takes 1 numbers, not 2"):
        identity(3)(1, 2)
    with pytest.raises(CheckError, match="takes 1 numbers, not 2"):
        identity(3).expression(x, y)
    with pytest.raises(CheckError, match="is put after"):
        identity(3) @ identity(4)
    with pytest.raises(CheckError, match="not among"):
        reversal(4, 2, 3)
    with pytest.raises(CheckError, match="widths of all variables"):
        from_expression(x + y, {"x": 2}, 4)
    with pytest.raises(CheckError, match="too many to try"):
        from_expression(x, {"x": 21}, 21)
