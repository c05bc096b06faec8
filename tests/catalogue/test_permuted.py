"""Views whose leading axes lie in memory in another order are taken as they lie, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom
from warploom.errors import DeviceError


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)


def case(name: str) -> tuple[Any, Any, Any]:
    """A kernel, a contiguous array of two batch axes, and what is computed of it."""
    if name == "aos-sum":
        return warploom.load(name, fields=3), drawn(4, 5, 3), lambda x: x.sum(axis=-1)
    if name == "transposition":
        return warploom.load(name, m=4, n=3), drawn(5, 2, 4, 3), lambda x: x.swapaxes(-1, -2)
    weights = np.zeros(9, np.float32)
    weights[4] = 2
    convolve = warploom.load("convolution-2d")
    return (lambda *arrays: convolve(arrays[0], weights, *arrays[1:])), drawn(4, 3, 7, 33), np.add


NAMES = ["aos-sum", "transposition", "convolution-2d"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_leading_axes_may_lie_in_any_order(name: str) -> None:
    kernel, x, wanted = case(name)
    turned = x.swapaxes(0, 1)
    expected = wanted(turned, turned) if wanted is np.add else wanted(turned)
    made = kernel(turned)
    assert made.shape == expected.shape
    assert np.array_equal(made, expected)
    assert made.swapaxes(0, 1).flags.c_contiguous  # as the input lies
    assert np.array_equal(kernel(turned), made)  # the plan that is remembered
    assert np.array_equal(kernel(x), made.swapaxes(0, 1))  # and the one of arrays in order
    given = np.zeros_like(made)  # NumPy keeps the order
    kernel(turned, given)
    assert np.array_equal(given, made)


@pytest.mark.parametrize("name", NAMES)
def test_what_has_gaps_or_lies_otherwise_is_refused(name: str) -> None:
    kernel, x, _ = case(name)
    for view in (x[::2], x[..., ::-1], x.swapaxes(-1, -2) if name == "aos-sum" else x[..., 1:]):
        with pytest.raises(DeviceError, match=r"not contiguous|shape|whole"):
            kernel(view)
    turned = x.swapaxes(0, 1)
    with pytest.raises(DeviceError, match="does not lie in memory as"):
        kernel(turned, np.zeros(kernel(turned).shape, np.float32))


def test_an_axis_of_one_element_lies_anywhere() -> None:
    kernel, x, _ = case("aos-sum")
    alone = x[:1].swapaxes(0, 1)
    assert np.array_equal(kernel(alone), alone.sum(axis=-1))
