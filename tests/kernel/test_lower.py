"""Permutations of registers that differ by thread: right for every size, in log₂ n steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, select
from warploom.kernel.build import Builder, from_index
from warploom.kernel.dtype import f32, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import For, Kernel, Let
from warploom.kernel.lower import Row, permute, rotate, split_rotation

LANE, COUNT = Var("lane"), Var("i")


def permuted(size: int, stmts: tuple[object, ...]) -> list[list[int]]:
    """For each thread, what the target registers hold after the statements; source r[i] = i."""
    k = Builder("permuted", block=32)
    y = k.array("y", i32, 32 * size)
    r, s = k.registers("r", i32, size), k.registers("s", i32, size)
    with k.loop("i", size) as i:
        r[i] = from_index(i)
    k.extend(stmts)  # type: ignore[arg-type]
    with k.loop("i", size) as i:
        y[k.lane * size + i] = s[i]
    kernel: Kernel = k.done()
    out = np.zeros(32 * size, np.int32)
    run(kernel, [out])
    return out.reshape(32, size).tolist()


def rows(size: int) -> tuple[Row, Row]:
    return Row("r", i32, size), Row("s", i32, size)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("amount", [LANE, 3 * LANE + 1, -LANE, LANE // 3 - 5])
def test_rotation(size: int, amount: Expr) -> None:
    stmts = rotate(*rows(size), amount)
    expected = [
        [(i + int(evaluate(amount, {"lane": lane}))) % size for i in range(size)]
        for lane in range(32)
    ]
    assert permuted(size, stmts) == expected
    steps = sum(isinstance(stmt, For) for stmt in stmts)
    assert steps == max(1, (size - 1).bit_length())


def test_a_constant_rotation_is_one_copy() -> None:
    stmts = rotate(*rows(5), Var("lane") * 0 + 3)
    assert len(stmts) == 1
    assert permuted(5, stmts) == [[(i + 3) % 5 for i in range(5)]] * 32


@given(
    st.integers(1, 9), st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 5)
)
@examples(40)
def test_affine_permutations(size: int, cf: int, cr: int, c: int, dr: int) -> None:
    index = (COUNT * cf + LANE * cr + LANE // dr + c) % size
    expected = [
        [(i * cf + lane * cr + lane // dr + c) % size for i in range(size)] for lane in range(32)
    ]
    assert permuted(size, permute(*rows(size), index, "i")) == expected


@pytest.mark.parametrize(
    "index",
    [
        (COUNT * LANE) % 5,
        (COUNT + select((LANE + COUNT).lt(9), 1, 3)) % 5,
        select(LANE.lt(4), COUNT, 4 - COUNT),
        (LANE // 4) % 5,
    ],
)
def test_other_permutations_become_selects(index: Expr) -> None:
    expected = [
        [int(evaluate(index, {"lane": lane, "i": i})) for i in range(5)] for lane in range(32)
    ]
    assert permuted(5, permute(*rows(5), index, "i")) == expected


def test_split() -> None:
    parts = split_rotation((2 * COUNT - LANE + 1) % 3, 3, "i")
    assert parts is not None
    assert split_rotation((COUNT * LANE) % 3, 3, "i") is None
    assert split_rotation((COUNT + LANE) % 4, 3, "i") is None


def test_amounts_are_computed_once() -> None:
    assert sum(isinstance(stmt, Let) for stmt in rotate(*rows(16), LANE * 3)) == 1


def test_a_row_is_not_permuted_into_itself() -> None:
    row = Row("r", f32, 3)
    with pytest.raises(CheckError, match="into itself"):
        rotate(row, row, LANE)
    with pytest.raises(CheckError, match="different kinds"):
        rotate(row, Row("s", i32, 3), LANE)
