"""Floating-point arithmetic as the hardware does it, on arrays, for both evaluators.

NumPy rounds to nearest only, has no fused multiply-add, leaves open which zero is the lesser and
what a number beyond an integer type becomes. Two tools give the correct roundings:
*round to odd* (keep an inexact result's last bit set), after which a second rounding to a type
with at least two bits less is correct in every mode; and error terms of sums and products.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_TIE = np.uint32(0x1000_0000)
_BELOW_SINGLE = np.uint32(0x1FFF_FFFF)
_SMALLEST_SINGLE = np.float64(2.0**-126)
NAN32 = np.uint32(0x7FFF_FFFF)
NAN16 = np.uint16(0x7FFF)
NAN64 = np.uint64(0xFFF8 << 48)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b rounded, and the exact error of the rounding."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


def to_odd(s: Array, error: Array) -> Array:
    """The double next to `s` on the side of the error, if `s` is inexact and even."""
    fix = (error != 0) & np.isfinite(s) & np.isfinite(error)
    bits = s.view(np.int64)
    fix &= (bits & 1) == 0
    if not fix.any():
        return s
    away = (error > 0) == (s > 0)
    return (bits + np.where(fix, np.where(away, 1, -1), 0)).view(np.float64)


def odd_sum(a: Array, b: Array) -> Array:
    """a + b for doubles, rounded to odd."""
    return to_odd(*two_sum(a, b))


def narrow(x: Array, dtype: Any, mode: str) -> Array:
    """A double rounded to a narrower type: rn, rz, rm, rp (also written rni …)."""
    r = x.astype(dtype)
    if mode == "rn":
        return r
    back = r.astype(np.float64)
    if mode == "rz":
        wrong, towards = np.abs(back) > np.abs(x), dtype.type(0)
    elif mode == "rm":
        wrong, towards = back > x, dtype.type(-np.inf)
    else:
        wrong, towards = back < x, dtype.type(np.inf)
    return np.where(wrong, np.nextafter(r, towards), r)


def directed(s: Array, error: Array, mode: str) -> Array:
    """A rounded-to-nearest result moved one step where the mode and the exact error ask for it."""
    if mode == "rn":
        return s
    if mode == "rz":
        wrong, towards = (error != 0) & ((error > 0) != (s > 0)) & (s != 0), 0.0
    elif mode == "rm":
        wrong, towards = error < 0, -np.inf
    else:
        wrong, towards = error > 0, np.inf
    return np.where(wrong & np.isfinite(s), np.nextafter(s, towards), s)


def no_overflow(result: Array, mode: str, *operands: Array) -> Array:
    """An infinity made of finite operands is the largest number where the mode points inwards."""
    if mode == "rn" or not np.isinf(result).any():
        return result
    inwards = {"rz": np.isinf(result), "rm": result == np.inf, "rp": result == -np.inf}[mode]
    for operand in operands:
        inwards = inwards & np.isfinite(operand)
    largest = np.finfo(result.dtype).max
    return np.where(inwards, np.copysign(largest, result), result)


def _round_fraction(x: Fraction, mode: str) -> float:
    """A fraction that is not zero as a double, in any mode."""
    try:
        nearest = float(x)
    except OverflowError:
        nearest = np.inf if x > 0 else -np.inf
    if nearest == 0 and x < 0:
        nearest = -0.0
    if mode == "rn":
        return nearest
    if np.isinf(nearest):
        return float(no_overflow(np.array([nearest]), mode)[0])
    sign = (x > Fraction(nearest)) - (x < Fraction(nearest))
    if nearest == 0:  # `directed` leaves zeros alone when rounding towards zero
        step = {"rz": 0, "rm": sign < 0, "rp": sign > 0}[mode]
        return sign * 2.0**-1074 if step else nearest
    return float(directed(np.array([nearest]), np.array([float(sign)]), mode)[0])


def _wild(*exponents: Array) -> Array:
    """Where error terms of doubles may over- or underflow."""
    total = sum(exponents[1:], exponents[0])
    out = (total > 960) | (total < -900)
    for exponent in exponents:
        out = out | (np.abs(exponent) > 960)
    return out


def _repair(
    result: Array, wild: Array, mode: str, exact: Callable[..., Fraction], *operands: Array
) -> Array:
    """The elements marked wild, whose operands are finite, computed one by one with fractions."""
    for operand in operands:
        wild = wild & np.isfinite(operand)
    if not wild.any():
        return result
    result = np.array(result)
    wide = np.broadcast_arrays(result, *operands)[1:]
    for at in np.flatnonzero(wild):
        value = exact(*[Fraction(float(operand[at])) for operand in wide])
        if value != 0:
            result[at] = _round_fraction(value, mode)
        elif len(operands) == 3:  # a sum that cancels
            result[at] = 0.0
    return result


def signed_zero(s: Array, a: Array, b: Array, mode: str) -> Array:
    """A sum a + b that is exactly zero is −0 when rounding down, unless both are +0."""
    if mode != "rm":
        return s
    negative = (s == 0) & (a == -b) & (np.signbit(a) | np.signbit(b))
    return np.where(negative, s.dtype.type(-0.0), s)


# -- fused multiply-add -----------------------------------------------------------------------


def fma_single(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """a·b + c for singles, rounded once. The product is exact in double."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    s = product + addend
    if mode != "rn":
        rounded = narrow(odd_sum(product, addend), np.dtype(np.float32), mode)
        return signed_zero(rounded, product, addend, mode)
    r = s.astype(np.float32)
    # Rounding twice is wrong only where the double lies on a tie of singles, or is subnormal.
    doubtful = (s.view(np.uint32)[..., 0::2] & _BELOW_SINGLE) == _TIE
    small = np.abs(r) <= np.float32(_SMALLEST_SINGLE)
    if small.any():
        doubtful |= small & (s != 0)
    if doubtful.any():
        p, q = np.broadcast_arrays(product, addend)
        r[doubtful] = odd_sum(p[doubtful], q[doubtful]).astype(np.float32)
    return r


def fma(a: Array, b: Array, c: Array) -> Array:
    """a·b + c rounded once to nearest, for singles or doubles of any shape."""
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    if a.dtype == np.float32:
        return fma_single(np.atleast_1d(a), b, c).reshape(shape)
    x, y, z = (np.broadcast_to(each, shape).reshape(-1) for each in (a, b, c))
    return fma_double(x, y, z).reshape(shape)


def fma_narrow(a: Array, b: Array, c: Array) -> Array:
    """a·b + c for values of at most 24 bits given as doubles, rounded to odd as a double."""
    return odd_sum(a * b, c)


def _split(a: Array) -> tuple[Array, Array]:
    t = a * 134217729.0  # 2**27 + 1
    high = t - (t - a)
    return high, a - high


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a·b rounded and its error, where nothing over- or underflows."""
    p = a * b
    ah, al = _split(a)
    bh, bl = _split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def fma_double(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """a·b + c for doubles, rounded once (Boldo and Melquiond, by rounding to odd)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    p, low = two_product(a, b)
    t, t_low = two_sum(c, low)
    v, v_low = two_sum(p, t)
    rest = odd_sum(t_low, v_low)
    result = directed(*two_sum(v, rest), mode)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    plain = ~finite | (a == 0) | (b == 0)
    ea, eb, ec = (np.frexp(x)[1] for x in (a, b, c))
    wild = (_wild(ea, eb) | (ec > 1000)) & ~plain
    if plain.any():
        result = np.where(plain, a * b + c, result)
        beyond = np.isinf(c) & np.isfinite(a) & np.isfinite(b)  # a·b may be infinite as a double
        result = np.where(beyond, c, result)
    result = _repair(result, wild, mode, lambda x, y, z: x * y + z, a, b, c)
    lost = (p == 0) & (a != 0) & (b != 0)  # a product too small for a double is no zero
    return np.where(lost, result, signed_zero(result, p, c, mode))


def sum_double(a: Array, b: Array, mode: str) -> Array:
    result = no_overflow(directed(*two_sum(a, b), mode), mode, a, b)
    return signed_zero(result, a, b, mode)


def sum_single(a: Array, b: Array, mode: str) -> Array:
    x, y = a.astype(np.float64), b.astype(np.float64)
    return signed_zero(narrow(odd_sum(x, y), np.dtype(np.float32), mode), a, b, mode)


def product_double(a: Array, b: Array, mode: str) -> Array:
    result = no_overflow(directed(*two_product(a, b), mode), mode, a, b)
    wild = _wild(np.frexp(a)[1], np.frexp(b)[1])
    result = np.where(np.isfinite(a * b) & (a * b != 0), result, a * b)
    return _repair(result, wild, mode, lambda x, y: x * y, a, b)


# -- other operations -------------------------------------------------------------------------


def divide_single(a: Array, b: Array, mode: str) -> Array:
    """a / b for singles; the remainder a − q·b decides the direction."""
    q = a / b
    if mode == "rn":
        return q
    error = a.astype(np.float64) - q.astype(np.float64) * b.astype(np.float64)
    stepped = _step_single(q, np.where(b < 0, -error, error), mode)
    return no_overflow(stepped, mode, a, np.where(b == 0, np.float32(np.inf), b))


def root_single(a: Array, mode: str) -> Array:
    q = np.sqrt(a)
    if mode == "rn":
        return q
    q64 = q.astype(np.float64)
    return _step_single(q, a.astype(np.float64) - q64 * q64, mode)


def _step_single(q: Array, error: Array, mode: str) -> Array:
    return directed(q, error.astype(np.float64), mode).astype(np.float32)


def divide_double(a: Array, b: Array, mode: str) -> Array:
    q = a / b
    if mode == "rn":
        return q
    error = fma_double(-q, b, a)
    result = directed(q, np.where(b < 0, -error, error), mode)
    ea, eb, eq = (np.frexp(x)[1] for x in (a, b, q))
    wild = (_wild(eq, eb) | _wild(ea) | (q == 0) | np.isinf(q)) & (b != 0)
    return _repair(result, wild, mode, lambda x, y: x / y, a, np.where(b == 0, np.inf, b))


def root_double(a: Array, mode: str) -> Array:
    """Scaled by an even power of two, so that the error of the square cannot underflow."""
    if mode == "rn":
        return np.sqrt(a)
    scaled = np.where(a < 2.0**-600, a * 2.0**600, a)
    q = np.sqrt(scaled)
    q = directed(q, fma_double(-q, q, scaled), mode)
    return np.where(a < 2.0**-600, q * 2.0**-300, q)


def flush(x: Array) -> Array:
    """Subnormal numbers become zeros of the same sign (.ftz)."""
    tiny = np.abs(x) < np.finfo(x.dtype).smallest_normal
    return np.where(tiny, np.copysign(x.dtype.type(0), x), x) if tiny.any() else x


def flush_bf16(bits: Array) -> Array:
    return np.where(bits & np.uint16(0x7F80), bits, bits & np.uint16(0x8000))


def clean_single(r: Array) -> Array:
    """Every NaN becomes the one NaN that the hardware makes. `r` must be a fresh array."""
    bad = np.isnan(r)
    if bad.any():
        r.view(np.uint32)[bad] = NAN32
    return r


def first_nan(result: Array, *operands: Array) -> Array:
    """The result with each NaN replaced by the first NaN operand, quieted, or by the machine's."""
    bad = np.isnan(result)
    if not bad.any():
        return result
    bits = np.full(result.shape, NAN64)
    for operand in reversed(operands):
        quiet = np.asarray(operand).view(np.uint64) | np.uint64(1 << 51)
        bits = np.where(np.isnan(operand), quiet, bits)
    return np.where(bad, bits.view(np.float64), result)


def clean_half(r: Array) -> Array:
    bad = np.isnan(r)
    if bad.any():
        r.view(np.uint16)[bad] = NAN16
    return r


def saturate(r: Array) -> Array:
    """Clamped to [0, 1]; NaN and −0 become +0."""
    return np.where(r > 0, np.minimum(r, 1), 0).astype(r.dtype, copy=False)


# -- extremes and integers ----------------------------------------------------------------------


def extreme(a: Array, b: Array, least: bool, keep_nan: bool) -> Array:
    """The lesser or greater: −0 is less than +0, and a NaN loses unless it is to be kept."""
    out = np.minimum(a, b) if least else np.maximum(a, b)
    if not keep_nan and np.isnan(out).any():  # fmin and fmax differ on signalling NaNs
        out = np.where(np.isnan(a), b, np.where(np.isnan(b), a, out))
    zeros = (a == 0) & (b == 0)
    if zeros.any():
        negative = (np.signbit(a) | np.signbit(b)) if least else (np.signbit(a) & np.signbit(b))
        out = np.where(zeros, np.where(negative, out.dtype.type(-0.0), out.dtype.type(0)), out)
    return out


def clamped(whole: Array, dtype: np.dtype[Any], nan: Any) -> Array:
    """Whole numbers given as doubles in an integer type: the nearest that it has, `nan` for NaN."""
    limits = np.iinfo(dtype)
    low, high, bad = whole <= float(limits.min), whole >= float(limits.max), np.isnan(whole)
    inside = np.where(low | high | bad, 0.0, whole).astype(dtype)
    out = np.where(low, dtype.type(limits.min), inside)
    out = np.where(high, dtype.type(limits.max), out)
    return np.where(bad, nan, out)


# -- bf16 and tf32, held as bits ----------------------------------------------------------------


def bf16_to_single(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def single_to_bf16(x: Array, mode: str = "rn") -> Array:
    """The upper half of a single, rounded."""
    bits = x.view(np.uint32)
    keep = bits >> np.uint32(16)
    if mode == "rn":
        rounded = (bits + np.uint32(0x7FFF) + (keep & np.uint32(1))) >> np.uint32(16)
    elif mode == "rz":
        rounded = keep
    else:
        negative = (bits >> np.uint32(31)) == 1
        inexact = (bits & np.uint32(0xFFFF)) != 0
        rounded = keep + (inexact & (negative == (mode == "rm")))
    return np.where(np.isnan(x), NAN16, rounded.astype(np.uint16))


def double_to_bf16(x: Array, mode: str = "rn") -> Array:
    """Through a single rounded to odd, so that the second rounding is the only one that counts."""
    single = narrow(x, np.dtype(np.float32), "rz")
    inexact = np.isfinite(x) & (single.astype(np.float64) != x)
    odd = (single.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)
    return single_to_bf16(odd, mode)
