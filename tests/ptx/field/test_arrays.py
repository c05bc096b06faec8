"""A reference on elements computes what NumPy does: beside each element is its value for inputs
that are certain numbers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from warploom.ptx.field.arrays import Exact, Literals, joined
from warploom.ptx.field.elements import Elements, NotKnown

X = np.random.default_rng(0).standard_normal((4, 8))
V = np.random.default_rng(1).standard_normal(8)
FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, _: np.clip(x, -0.5, 0.5),
    lambda x, _: np.clip(x, 0.5, -0.5),
    lambda x, _: x.clip(0),
    lambda x, _: x.clip(max=0.1),
    lambda x, v: np.clip(x, v, None),
    lambda x, _: np.pad(x, 1),
    lambda x, _: np.pad(x, ((0, 1), (2, 0)), constant_values=3),
    lambda _, v: np.outer(v, v),
    lambda x, v: np.outer(x, v),
    lambda x, _: np.tril(x, k=-1),
    lambda x, _: np.triu(x),
    lambda _, v: np.vstack([v, v]),
    lambda x, _: np.hstack([x, x]),
    lambda x, _: np.copy(x),
    lambda x, _: np.expm1(x),
    lambda x, _: np.log1p(x * x),
    lambda x, _: np.zeros_like(x, shape=(3,)),
    lambda _, v: np.full_like(v, 2.5, shape=(2, 8)),
    lambda x, v: np.full_like(x, v[0]),
    lambda x, _: np.ones_like(x, dtype=np.float32) * np.size(x, 1) + np.ndim(x),
    lambda x, _: x.flatten("F"),
    lambda x, _: x.ravel("F"),
    lambda x, _: np.ravel(x, "F"),
    lambda _, v: np.array([[v[0], 1], [2, v[3]]]),
    lambda x, _: np.std(x, 1, ddof=1),
    lambda x, v: np.einsum("ij,j->i", x, v) - x @ v + np.dot(x, v),
    lambda x, _: x[::2, ::-1] - x.mean(axis=(0, 1), keepdims=True),
    lambda x, _: np.cumsum(x, -1) * x**-2 + np.abs(x) ** 1.5,
    lambda x, _: np.roll(np.swapaxes(x, 0, 1), 3, 1),
]


def on_elements(function: Callable[[Any, Any], Any]) -> Any:
    e = Elements.drawn(Random(1))
    literals = Literals(e, "f8")
    given = [Exact(literals, e.inputs(a.size, Random(2), 0, a.reshape(-1)).reshape(a.shape))
             for a in (X, V)]  # fmt: skip
    made = function(*given)
    found = made if isinstance(made, Exact) else joined(np.asarray(made))
    return e["real"][found.numbers]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_are_those_of_numpy(function: Callable[[Any, Any], Any]) -> None:
    np.testing.assert_allclose(on_elements(function), function(X, V), rtol=1e-12)


def changed(view: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """An array after what was made of it is written to."""

    def function(x: Any, _: Any) -> Any:
        row = x[:1].copy()
        made = view(row)
        made[0] = 0.0
        return row

    return function


MADE: list[Callable[[Any], Any]] = [
    lambda row: row.flatten(),
    lambda row: +row,
    lambda row: row.sum(axis=0),
    lambda row: row.max(axis=0),
    lambda row: np.einsum("ij->j", row),
    lambda row: row.astype(np.float32),
    lambda row: np.concatenate([row]),
    lambda row: row.reshape(-1),
    lambda row: row.ravel(),
    lambda row: row[0],
    lambda row: row.T,
]


@pytest.mark.parametrize("view", [pytest.param(each, id=str(n)) for n, each in enumerate(MADE)])
def test_what_is_a_view_is_one(view: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(on_elements(changed(view)), changed(view)(X, V), rtol=1e-12)


def test_elements_are_no_numbers_of_python() -> None:
    def put(x: Any, _: Any) -> Any:
        made = np.zeros(4)
        made[0] = x[0, 0]
        return made

    with pytest.raises(
        ValueError, match="array element"
    ) as error:  # NumPy's, by what it was raised for
        on_elements(put)
    assert "zeros_like" in str(error.value.__cause__)
    with pytest.raises(NotKnown, match="'prod'"):
        on_elements(lambda x, _: x.prod())
