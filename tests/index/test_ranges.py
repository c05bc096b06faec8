"""Bounds hold for every value, and are as tight as they should be where it matters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.strategies import BOUNDS, environments, expressions
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import BINARY, Binary, Const, Expr, Var, select
from warploom.index.ranges import ANY, Range, range_of

x, y, z = Var("x"), Var("y"), Var("z")
small = st.tuples(st.integers(-9, 9), st.integers(0, 6)).map(lambda two: (two[0], sum(two)))


@given(expressions(12), st.lists(environments(), min_size=5, max_size=5))
@examples(300)
def test_no_value_lies_outside(expr: Expr, envs: list[dict[str, int]]) -> None:
    low, high = range_of(expr, BOUNDS)
    for env in envs:
        try:
            value = evaluate(expr, env)
        except CheckError:
            continue
        assert low <= value <= high


@pytest.mark.parametrize("op", BINARY)
@given(left=small, right=small)
@examples(40)
def test_each_operation_over_whole_boxes(
    op: str, left: tuple[int, int], right: tuple[int, int]
) -> None:
    low, high = range_of(Binary(op, x, y), {"x": left, "y": right})  # type: ignore[arg-type]
    seen = []
    for first in range(left[0], left[1] + 1):
        for second in range(right[0], right[1] + 1):
            try:
                seen.append(evaluate(Binary(op, x, y), {"x": first, "y": second}))  # type: ignore[arg-type]
            except CheckError:
                continue
    assert all(low <= value <= high for value in seen)
    exact = op in ("+", "-", "*", "<", "<=", ">", ">=", "==", "!=", "and", "or")
    if seen and (exact or (op == "//" and right[0] > 0)):
        assert (low, high) == (min(seen), max(seen))


@given(left=small, divisor=st.integers(-6, 6).filter(bool))
@examples(100)
def test_division_by_a_constant_is_tight(left: tuple[int, int], divisor: int) -> None:
    values = range(left[0], left[1] + 1)
    quotients = [value // divisor for value in values]
    assert range_of(x // divisor, {"x": left}) == (min(quotients), max(quotients))
    remainders = [value % divisor for value in values]
    if len(set(quotients)) == 1 or len(values) >= abs(divisor) * 2:
        assert range_of(x % divisor, {"x": left}) == (min(remainders), max(remainders))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (x * 8 + y, (0, 255)),
        (x * -2 + 3 * y - 5, (-67, 16)),
        ((x * 8 + y) // 8, (0, 31)),
        (x % 32, (0, 31)),
        ((x + 64) % 32, (0, 31)),
        (x ^ 16, (0, 31)),
        (x & 3, (0, 3)),
        (x | y, (0, 31)),
        (select(x.lt(32), y, -1), (0, 7)),
        (z, ANY),
        (z % 4, (0, 3)),
        (z & 7, (0, 7)),
    ],
)
def test_known_bounds(expr: Expr, expected: tuple[int, int]) -> None:
    assert range_of(expr, {"x": (0, 31), "y": (0, 7)}) == expected


def test_squaring_again_and_again_stays_small() -> None:
    power: Expr = x
    for _ in range(5_000):
        power = power * power
    low, high = range_of(power, {"x": (0, 9)})
    assert low.bit_length() <= 300
    assert high.bit_length() <= 300


def test_an_empty_range_is_an_error() -> None:
    with pytest.raises(CheckError, match="'x' has no value"):
        range_of(x, {"x": (3, 2)})


def test_ranges_are_records() -> None:
    assert range_of(Const(3), {}) == Range(3, 3)
