"""Gradients of attention beside finite differences, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.catalogue.attention.asked import Options
from warploom.catalogue.attention.gradient import gradients
from warploom.catalogue.attention.operator import all_gradients, in_words, plain, said
from warploom.catalogue.attention.tuned import sampled

STEP = 1e-6


def forward(q: Any, k: Any, v: Any, options: Options, bias: Any) -> Any:
    made = np.zeros_like(q)
    for b, h in np.ndindex(q.shape[:2]):
        own = h * k.shape[1] // q.shape[1]
        given = q[b, h], k[b, own], v[b, own]
        made[b, h] = sampled(*given, np.arange(q.shape[2]), options, bias[0, h])
    return made


def logarithms(q: Any, k: Any, options: Options, bias: Any) -> Any:
    """Of sums of exponentials, by values of which one adds up what is seen."""
    s = q @ np.repeat(k, q.shape[1] // k.shape[1], axis=1).swapaxes(2, 3) * q.shape[3] ** -0.5
    s = np.tanh(s / options.soft_cap) * options.soft_cap if options.soft_cap else s
    last = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    key = np.arange(k.shape[2])[None]
    seen = (key <= last) if options.causal else key >= 0
    seen = seen & (key > last - options.window) if options.window else seen
    with np.errstate(divide="ignore"):
        return np.log(np.where(seen, np.exp(s + bias), 0).sum(-1))


def test_the_plain_expression_of_the_operator_is_attention() -> None:
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, h, n, 8)) for h, n in ((4, 9), (2, 7), (2, 7)))
    how = (True, 3, 0.0, 2.0)
    bias = np.zeros((1, 4, 9, 7))
    found, sums = in_words(q, k, v, said(*how))
    np.testing.assert_allclose(found, forward(q, k, v, said(*how), bias), atol=1e-12)
    np.testing.assert_allclose(sums, logarithms(q, k, said(*how), bias), atol=1e-12)
    np.testing.assert_array_equal(plain(q, k, v, *how), found)
    ours = gradients(q, {"q": q, "k": k, "v": v}, found, sums, said(*how))
    for own, each in zip(ours, all_gradients(None, q, q, k, v, *how), strict=True):
        np.testing.assert_array_equal(own, each)


@pytest.mark.parametrize(
    "options",
    [Options(), Options(causal=True, window=3, soft_cap=2.0), Options(causal=True)],
    ids=["full", "window and cap", "rows without keys"],
)
def test_they_are_finite_differences(options: Options) -> None:
    random = np.random.default_rng(0)
    queries = 9 if options.causal and not options.window else 5
    q, k, v = (random.standard_normal((2, h, n, 8)) for h, n in ((4, queries), (2, 7), (2, 7)))
    bias = random.standard_normal((1, 4, queries, 7))
    found = forward(q, k, v, options, bias)
    weights = random.standard_normal(found.shape)
    arrays = {"q": q, "k": k, "v": v, "bias": bias}
    made = gradients(weights, arrays, found, logarithms(q, k, options, bias), options)
    for array, own in zip((q, k, v), made, strict=True):
        for at in random.integers(0, array.size, 8):
            flat, sums = array.reshape(-1), []
            for step in (STEP, -2 * STEP, STEP):
                flat[at] += step
                sums.append(float((forward(q, k, v, options, bias) * weights).sum()))
            assert own.reshape(-1)[at] == pytest.approx((sums[0] - sums[1]) / (2 * STEP), abs=1e-7)
