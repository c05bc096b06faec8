"""Tables as expressions: what comes back holds the table's numbers, and says why it is cheap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.index.ir import Var
from warploom.index.show import show
from warploom.index.table import (
    affine,
    lane_condition,
    lane_expression,
    tabulated,
    thread_expression,
)

LANE, WARP, THREAD = Var("lane"), Var("warp"), Var("thread")
NUMBERS = np.arange(32)


@given(st.lists(st.integers(0, 40), min_size=32, max_size=32))
def test_every_table_of_lanes_has_an_expression(numbers: list[int]) -> None:
    table = np.array(numbers)
    assert (tabulated(lane_expression(table, LANE), {"lane": 32}) == table).all()
    truths = table > 20
    assert (tabulated(lane_condition(truths, LANE), {"lane": 32}) == truths).all()


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (NUMBERS ^ 9, "lane ^ 9"),
        (NUMBERS * 3 + 2, "lane * 3 + 2"),
        (NUMBERS * 3 % 32, "lane * 3 % 32"),
        (NUMBERS // 8, "lane // 8"),
    ],
)
def test_regular_tables_are_cheap(table: np.ndarray, text: str) -> None:
    assert show(lane_expression(table, LANE)) == text


@given(st.integers(2, 5), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_threads(warps: int, kind: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    lanes, added = random.permutation(32), random.integers(0, 4, (warps, 1)) * 32
    anything = random.integers(0, 9, (warps, 32))
    table = (lanes + added, lanes ^ added, anything, NUMBERS + added)[kind]
    found = thread_expression(table, THREAD, LANE, WARP)
    number = np.arange(32 * warps)
    each = {"warp": ("thread", number // 32), "lane": ("thread", number % 32)}
    assert (tabulated(found, {"thread": 32 * warps}, each) == table.ravel()).all()


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
def test_sums_of_multiples(factors: list[int], seed: int) -> None:
    axes = np.ogrid[:3, :4, :2]
    table = np.asarray(sum(f * axis for f, axis in zip(factors, axes, strict=True)) + 7)
    assert affine(table) == (factors, 7)
    matters = np.random.default_rng(seed).random(table.shape) < 0.5
    matters[0, 0, 0] = matters[1, 0, 0] = matters[0, 1, 0] = matters[0, 0, 1] = True
    assert affine(np.where(matters, table, 99), matters) == (factors, 7)
    table[2, 3, 1] += 1
    assert affine(table) is None
    assert affine(table, np.zeros(table.shape, np.bool_)) is None
