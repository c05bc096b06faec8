"""Arrays agree with single numbers, and what is undefined is an error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.index.strategies import environments, expressions
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate, totalise
from warploom.index.ir import Const, Expr, Var, select

x, y = Var("x"), Var("y")


@given(expressions(), environments())
@examples(150)
def test_arrays_agree_with_numbers(expr: Expr, env: dict[str, int]) -> None:
    arrays = {name: np.array([value, value]) for name, value in env.items()}
    try:
        expected = evaluate(expr, env)
    except CheckError as error:
        if "64 bits" not in error.message:
            with pytest.raises(CheckError):
                evaluate(expr, arrays)
        return
    assert np.array_equal(np.broadcast_to(evaluate(expr, arrays), (2,)), np.full(2, expected))


@given(expressions(), environments())
@examples(150)
def test_the_total_form_equals_the_expression_where_it_is_defined(
    expr: Expr, env: dict[str, int]
) -> None:
    total, defined = totalise(expr)
    is_defined, value, original = (value_or_none(part, env) for part in (defined, total, expr))
    if is_defined is not None and value is not None:  # None: it leaves 64 bits
        assert original == (value if is_defined else None)


def value_or_none(expr: Expr, env: dict[str, int]) -> int | None:
    try:
        return int(evaluate(expr, env))
    except CheckError:
        return None


def test_broadcasting_and_types() -> None:
    rows, columns = np.arange(3)[:, None], np.arange(4, dtype=np.uint8)
    result = evaluate(x * 4 + y, {"x": rows, "y": columns})
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.int64
    assert np.array_equal(result.ravel(), np.arange(12))
    truths = evaluate(x.lt(2).and_(y.gt(0)), {"x": rows, "y": columns})
    assert isinstance(truths, np.ndarray)
    assert truths.dtype == np.int64
    assert evaluate(x + 1, {"x": np.asarray(3)}) == 4
    assert evaluate(x + 1, {"x": True}) == 2


@pytest.mark.parametrize(
    ("expr", "word"),
    [
        (x // 0, "division by zero"),
        (x % (x - 3), "division by zero"),
        (x << 64, "more than 63"),
        (x >> -1, "less than 0"),
        (select(1, 0, x // 0), "division by zero"),
        (x * 2**62, "64 bits"),
        (Const(2**63) + x, "64 bits"),
        (y + 1, "'y' has no value"),
    ],
)
def test_what_is_undefined_is_an_error(expr: Expr, word: str) -> None:
    with pytest.raises(CheckError, match=word):
        evaluate(expr, {"x": 3})


def test_one_bad_element_is_enough() -> None:
    with pytest.raises(CheckError, match="division by zero"):
        evaluate(1 // x, {"x": np.arange(3)})


@pytest.mark.parametrize("value", [1.5, np.array([1.5]), "3", 2**70])
def test_only_integers_are_values(value: object) -> None:
    with pytest.raises(CheckError):
        evaluate(x, {"x": value})  # type: ignore[dict-item]
