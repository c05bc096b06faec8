"""Fused multiply-add, extremes and clamping against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.machine.rounding import clamped, extreme, fma

FLOATS = {
    np.float32: st.floats(width=32),
    np.float64: st.floats(),
}


def nearest(exact: Fraction, dtype: Any) -> Any:
    """The float next to a fraction that is not zero, ties to even: by search among neighbours."""
    if dtype is np.float64:
        try:
            return np.float64(float(exact))  # Python rounds fractions correctly
        except OverflowError:
            return np.float64(math.inf if exact > 0 else -math.inf)
    bits = 24
    size = abs(exact)
    exponent = max(-126, _floor_log2(size))
    step = Fraction(2) ** (exponent - bits + 1)
    whole, rest = divmod(size, step)
    up = rest * 2 > step or (rest * 2 == step and whole % 2 == 1)
    rounded = (int(whole) + up) * step
    if rounded >= Fraction(2) ** 128:
        return np.float32(math.inf if exact > 0 else -math.inf)
    return np.float32(math.copysign(float(rounded), 1 if exact > 0 else -1))


def _floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def expected(a: Any, b: Any, c: Any) -> Any:
    dtype = type(a)
    if np.isfinite(a) and np.isfinite(b) and np.isinf(c):
        return c  # also where a·b, which has no bounds, is beyond the type
    if not all(np.isfinite(each) for each in (a, b, c)):
        with np.errstate(all="ignore"):
            return dtype(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact:
        return nearest(exact, dtype)
    if a * b == 0 and np.signbit(a * b) == np.signbit(c):
        return c
    return dtype(0)


def check(a: Any, b: Any, c: Any) -> None:
    with np.errstate(all="ignore"):
        got = fma(*[np.array([[each]]) for each in (a, b, c)])[0, 0]
        wanted = expected(a, b, c)
    assert got.dtype == wanted.dtype
    assert (np.isnan(got) and np.isnan(wanted)) or (
        got == wanted and np.signbit(got) == np.signbit(wanted)
    ), (a, b, c, got, wanted)


@examples(300)
@given(FLOATS[np.float32], FLOATS[np.float32], FLOATS[np.float32])
@example(1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60)  # on a tie of singles but for the addend
@example(1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-60))
@example(2.0**-75, 2.0**-75, 2.0**-149)
def test_single_multiply_add_rounds_once(a: float, b: float, c: float) -> None:
    check(np.float32(a), np.float32(b), np.float32(c))


@examples(300)
@given(FLOATS[np.float64], FLOATS[np.float64], FLOATS[np.float64])
@example(1 + 2.0**-52, 1 - 2.0**-52, -1.0)  # an unfused one gives zero
@example(1e308, 10.0, -math.inf)
@example(5e-324, 0.5, 5e-324)
def test_double_multiply_add_rounds_once(a: float, b: float, c: float) -> None:
    check(np.float64(a), np.float64(b), np.float64(c))


@examples(200)
@given(st.integers(0, 2**32 - 1), st.integers(-40, 40), st.integers(-40, 40))
def test_sums_that_nearly_cancel(seed: int, shift: int, near: int) -> None:
    """c is close to −a·b, where only the low half of the product is left."""
    random = np.random.default_rng(seed)
    for dtype in (np.float32, np.float64):
        a, b = (dtype(each) for each in random.standard_normal(2))
        c = dtype(-a * b)
        for _ in range(abs(near)):
            c = np.nextafter(c, dtype(np.inf if near > 0 else 0))
        scale = dtype(2.0**shift)
        check(a * scale, b, c * scale)


def test_shapes_broadcast() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (
        fma(a, np.asarray(2, np.float32), np.asarray(1, np.float32)).tolist()
        == (a * 2 + 1).tolist()
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_prefer_numbers_and_order_zeros(dtype: Any) -> None:
    values = [dtype(each) for each in (-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan)]
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            numbers = [k for k in (i, j) if k < 6] or [6]
            for least, wanted in ((True, min(numbers)), (False, max(numbers))):
                got = extreme(np.array([x]), np.array([y]), least, keep_nan=False)
                assert got.dtype == dtype
                assert got.tobytes() == values[wanted].tobytes() or np.isnan(values[wanted])
                assert np.isnan(got[0]) == np.isnan(values[wanted])


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_clamping(name: str) -> None:
    dtype, limits = np.dtype(name), np.iinfo(name)
    wholes = [-math.inf, -1e30, -129.0, -1.0, -0.0, 0.0, 77.0, 2.0**31, 2.0**62, 1e30, math.inf]
    got = clamped(np.array([*wholes, math.nan]), dtype, dtype.type(0))
    exact = [
        limits.min if x < limits.min else limits.max if x > limits.max else int(x) for x in wholes
    ]
    assert got.tolist() == [*exact, 0]
