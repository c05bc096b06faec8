"""Interning, operators in both directions, and the generic walks."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.index.strategies import expressions
from tests.sampled import examples

from warploom.index.evaluate import evaluate
from warploom.index.ir import (
    BINARY,
    Binary,
    Const,
    Expr,
    Select,
    Var,
    children,
    constants,
    fold_up,
    lift,
    maximum,
    minimum,
    operations,
    rebuild,
    select,
    substitute,
    variables,
    walk,
)

x, y = Var("x"), Var("y")

INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
METHODS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
LOGIC = {"and": "and_", "or": "or_"}


def test_every_operator_is_covered_here() -> None:
    assert {*INFIX, *METHODS, *LOGIC} == set(BINARY)


@pytest.mark.parametrize("op", INFIX)
def test_operators_mean_what_python_means_in_both_directions(op: str) -> None:
    apply = INFIX[op]
    tried = 0
    for left in range(-7, 8):
        for right in range(-7, 8):
            if (op in ("//", "%") and right == 0) or (op in ("<<", ">>") and right < 0):
                continue
            expected = apply(left, right)
            assert evaluate(apply(x, y), {"x": left, "y": right}) == expected
            assert evaluate(apply(left, y), {"y": right}) == expected
            assert evaluate(apply(x, right), {"x": left}) == expected
            tried += 1
    assert tried >= 120


@pytest.mark.parametrize("op", METHODS)
def test_comparisons_are_methods_that_give_0_or_1(op: str) -> None:
    method, meaning = METHODS[op], getattr(operator, METHODS[op])
    for left in range(-2, 3):
        for right in range(-2, 3):
            value = evaluate(getattr(x, method)(right), {"x": left})
            assert (type(value), value) == (int, int(meaning(left, right)))


def test_logic_takes_any_number_for_true() -> None:
    for left in (-2, 0, 3):
        for right in (-1, 0, 1):
            env = {"x": left, "y": right}
            assert evaluate(x.and_(y), env) == int(bool(left) and bool(right))
            assert evaluate(x.or_(y), env) == int(bool(left) or bool(right))
            assert evaluate(x.not_(), env) == int(not left)
            assert evaluate(select(x, 5, y), env) == (5 if left else right)
            assert evaluate(minimum(x, y), env) == min(left, right)
            assert evaluate(maximum(x, y), env) == max(left, right)


def test_equal_expressions_are_one_object() -> None:
    assert (x + 1) * y is (x + 1) * y
    assert x + 1 is not 1 + x
    assert lift(True) is Const(1)
    assert lift(np.int64(3)) is Const(3)  # type: ignore[arg-type]
    assert x + np.int32(3) is x + 3  # type: ignore[arg-type]
    assert np.int32(3) - x is 3 - x  # type: ignore[operator]


@given(expressions())
@examples(100)
def test_rebuilding_gives_the_same_object(expr: Expr) -> None:
    assert fold_up(expr, rebuild) is expr


def test_an_expression_has_no_truth_value_and_takes_no_float() -> None:
    with pytest.raises(TypeError, match="and_"):
        bool(x.lt(3))
    with pytest.raises(TypeError):
        _ = x + 1.5  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _ = x < 3  # type: ignore[operator]


def test_a_shared_part_is_walked_and_counted_once() -> None:
    shared = x * 3
    expr = shared + shared % 3
    assert operations(expr) == 3
    assert constants(expr) == {3}
    assert variables(expr) == {"x"}
    assert [part for part in walk(expr) if part is shared] == [shared]
    position = {part: i for i, part in enumerate(walk(expr))}
    assert all(position[child] < position[part] for part in position for child in children(part))
    assert walk(expr, skip={shared}) == [Const(3), shared % 3, expr]


def test_substitution_is_all_at_once() -> None:
    assert substitute(x - y, {"x": y, "y": x}) is y - x
    assert substitute(x - y, {"x": 3}) is 3 - y
    assert substitute(Select(x, y, Const(1)), {"y": x + 1}) is select(x, x + 1, 1)


def test_depth_is_no_limit() -> None:
    deep: Expr = x
    for _ in range(5_000):
        deep = 1 - deep
    assert operations(deep) == 5_000
    assert evaluate(deep, {"x": 5}) == 5
    assert variables(substitute(deep, {"x": y})) == {"y"}
    assert len(repr(deep)) < 200
    assert hash(deep) == hash(deep)


def test_binary_fields() -> None:
    assert repr((3 - x) % 8) == "Binary('%', Binary('-', Const(3), Var('x')), Const(8))"
    assert isinstance(x + 1, Binary)


def test_copies_and_pickles_are_the_same_node() -> None:
    expr = select(x.lt(3), x * 2 + y, y)
    assert copy.deepcopy([expr])[0] is copy.copy(expr) is expr
    assert pickle.loads(pickle.dumps(expr)) is expr
