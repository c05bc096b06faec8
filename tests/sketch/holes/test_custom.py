"""A user's own tables: kept as given, and read back by arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.ir import operations, walk
from warploom.sketch.holes import custom
from warploom.sketch.term.ir import UNDEFINED, ZERO, GatherSet

Sound = Callable[..., None]


def make(choices: list[str], tables: list[list[int]]) -> GatherSet:
    return custom("mine", ((2, 2), (3,)), (2, 3), choices, np.array(tables, np.int32))


def test_equal_tables_keep_the_first_name(sound: Sound) -> None:
    gathers = make(["a", "b", "c"], [[0, 1, 2, 3, 4, 5], [6, 6, 6, 6, 6, 6], [0, 1, 2, 3, 4, 5]])
    assert [gathers.describe(i) for i in range(len(gathers))] == ["a", "b"]
    sound(gathers)


@examples(100)
@given(tables=st.lists(st.lists(st.integers(UNDEFINED, 6), min_size=6, max_size=6), min_size=1))
def test_expressions(tables: list[list[int]], sound: Sound) -> None:
    sound(make([f"t{i}" for i in range(len(tables))], tables))


def test_a_large_random_table_stays_small_and_shallow(sound: Sound) -> None:
    table = np.random.default_rng(1).integers(0, 4096, (1, 4096)).astype(np.int32)
    gathers = custom("shuffle", ((4096,),), (64, 64), ["only"], table)
    sound(gathers)
    assert len(walk(gathers.expression(0).offset)) < 6 * 4096


def test_a_sum_of_coordinates_is_found() -> None:
    table = np.arange(12, dtype=np.int32).reshape(4, 3).T.reshape(1, -1)
    gathers = custom("turn", ((4, 3),), (3, 4), ["t"], table)
    assert operations(gathers.expression(0).offset) == 2  # x0 + 3*x1


@pytest.mark.parametrize(
    ("choices", "tables", "message"),
    [
        (["a"], [[0, 1]], r"shape of the tables must be \[1,6\], got \[1,2\]"),
        (["a", "b"], [[0] * 6], r"must be \[2,6\], got \[1,6\]"),
        (["a"], [[0, 1, 2, 3, 4, 7]], "choice a reads offset 7 for cell 5"),
        (["a"], [[0, 1, 2, ZERO, UNDEFINED, -3]], "reads offset -3 for cell 5"),
    ],
)
def test_wrong_tables(choices: list[str], tables: list[list[int]], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        make(choices, tables)


def test_no_table() -> None:
    with pytest.raises(CheckError, match="defines no gather"):
        custom("mine", ((2,),), (2,), [], np.empty((0, 2), np.int32))
