"""Sizes in normal form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.array.language.size import normal, quotient, value_of
from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var
from warploom.index.show import show

n, m, c, d = Var("n"), Var("m"), Var("c"), Var("d")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (n // c * c, n),
        ((n + m) * 2, m + n + n + m),
        (n // c // d, n // (c * d)),
        (((n + d - 1) - (c + d - 1)) // c + 1, n // c),
        (n * m // (c * d) * d, m * (n // c)),
        ((n + c) // c, n // c + 1),
        (n % c + n - n % c, n),
        (Const(12) // 4, Const(3)),
        (n - n + 4, Const(4)),
    ],
)
def test_equal_sizes_are_one_object(left: Expr, right: Expr) -> None:
    assert normal(left) is normal(right)
    assert normal(normal(left)) is normal(left)


@pytest.mark.parametrize(
    ("left", "right"), [(n // c, n), (n % c, n), (n + m, n * m), (n // 2, n // 3), (n * n, n)]
)
def test_other_sizes_are_not(left: Expr, right: Expr) -> None:
    assert normal(left) is not normal(right)


def test_text() -> None:
    size = normal(n * m // (c * d))
    assert show(size) == "m * n // (c * d)"
    assert show(normal(2 + n - c)) == "n + 2 - c"


def test_constants_that_do_not_divide() -> None:
    with pytest.raises(CheckError, match="does not divide"):
        quotient(7, 2)
    with pytest.raises(CheckError, match="divided by zero"):
        quotient(n, 0)


def test_numbers_are_checked() -> None:
    assert value_of(normal(n // c), {"n": 12, "c": 4}) == 3
    with pytest.raises(CheckError, match="c does not divide n: 12 by 5"):
        value_of(normal(n // c), {"n": 12, "c": 5})
    with pytest.raises(CheckError, match="'c' has no value"):
        value_of(normal(n // c), {"n": 12})


leaves = st.sampled_from([n, m, c, d, *map(Const, range(4))])
expressions = st.recursive(
    leaves,
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner).map(
        lambda t: {"+": t[1] + t[2], "-": t[1] - t[2], "*": t[1] * t[2]}[t[0]]
    ),
    max_leaves=8,
)


@given(expressions, expressions)
def test_the_normal_form_has_the_same_value(left: Expr, right: Expr) -> None:
    """Also of a product divided by one of its factors."""
    values = {"n": 12, "m": 5, "c": 3, "d": 7}
    assert evaluate(normal(left), values) == evaluate(left, values)
    by = evaluate(right, values)
    if by and normal(right) is not Const(0):
        exact = normal(left * right // right)
        numerator = evaluate(left, values)
        assert evaluate(exact, values) == numerator


def test_a_sum_as_divisor_is_an_atom() -> None:
    assert normal((n + 1) // (m + 1)) is normal((1 + n) // (1 + m))
    assert np.int64(evaluate(normal((n + 1) // (m + 1)), {"n": 11, "m": 2})) == 4
