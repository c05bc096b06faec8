"""Dot products as tensor cores compute them: all terms of a group aligned, cut off, added, rounded.

    d = round(c + Σ aᵢ·bᵢ)      over one group of k, in one step

Every term is shifted to the largest exponent among the terms and cut off F bits below it; the
sum is exact, and rounded once: singles toward zero, halves to nearest. Exponents are those of
the factors as they are written, so that a product is not normalised and a subnormal number keeps
the lowest one. Groups follow each other in ascending k, the result of one being the c of the
next. A zero is always +0, a NaN always the same one. Doubles hold all of it exactly: a product
has at most 22 bits, a sum 33.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.narrow import FORMATS, decoded
from warploom.machine.rounding import NAN32, bf16_to_single, fma_double, fma_single, narrow

Array = npt.NDArray[Any]
_F32 = np.dtype(np.float32)
_NOWHERE = -4000  # exponent of a zero: below those of all numbers
_LOWEST = {"f32": -126, **{name: 1 - form.bias for name, form in FORMATS.items()}}


@dataclass(frozen=True, slots=True)
class Rule:
    """How one machine computes: bits kept below the largest exponent, and terms of a group.

    `kept` is how many bits of the result's fraction there are; 0 for all that its type has.
    """

    below: int
    group: int
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Terms:
    """Factors: values as doubles, and their exponents."""

    value: Array
    exponent: Array

    def taken(self, places: Any) -> Terms:
        return Terms(self.value[..., places], self.exponent[..., places])


def rule_for(machine: int, kind: str, depth: int, *, warpgroup: bool = False) -> Rule:
    """The rule of a machine (90 for sm_90) for a type of the factors and the k of an instruction.

    Those of sm_90 were checked bit for bit on an H200; the others are as published.
    """
    small = kind in ("e4m3", "e5m2")
    if warpgroup and small:
        return Rule(13, depth, 13)
    if machine >= 90:
        return Rule(25, depth)
    if small:
        return Rule(13, 16, 13)
    if machine < 75:
        return Rule(23, 4)
    wide = 4 if kind == "tf32" else 8
    return Rule(24, min(wide, depth))


def terms(bits: Array, kind: str, like: str = "") -> Terms:
    """Numbers given as bits; `like` is the type whose lowest exponent counts, if it is another."""
    with np.errstate(invalid="ignore"):  # a NaN that signals is one like the others here
        value = _values(bits, kind)
    return Terms(value, _exponents(value, _LOWEST[like or kind]))


def _values(bits: Array, kind: str) -> Array:
    match kind:
        case "f16":
            value = bits.astype(np.uint16).view(np.float16).astype(np.float64)
        case "bf16":
            value = bf16_to_single(bits.astype(np.uint16)).astype(np.float64)
        case "tf32":
            whole = bits.astype(np.uint32) & np.uint32(0xFFFFE000)  # the rest is not looked at
            value = whole.view(np.float32).astype(np.float64)
        case "f32":
            value = bits.astype(np.uint32).view(np.float32).astype(np.float64)
        case _:
            value = decoded(kind)[bits]
    return value


def _exponents(value: Array, lowest: int) -> Array:
    exponent = np.maximum(np.frexp(value)[1] - 1, lowest)
    return np.where(value == 0, _NOWHERE, exponent)


def fused(a: Terms, b: Terms, c: Array, result: str, rule: Rule) -> Array:
    """c + Σ a·b along the last axis, as values of the result's type, f32 or f16."""
    depth = a.value.shape[-1]
    total = c
    for first in range(0, depth, rule.group):
        part = slice(first, first + rule.group)
        total = _step(a.taken(part), b.taken(part), total, result, rule)
    return total


def _step(a: Terms, b: Terms, c: Array, result: str, rule: Rule) -> Array:
    product = a.value * b.value
    addend = c.astype(np.float64)
    wild = ~(np.isfinite(product).all(axis=-1) & np.isfinite(addend))
    if wild.any():
        special = product.sum(axis=-1) + addend
        product = np.where(np.isfinite(product), product, 0.0)
        addend = np.where(np.isfinite(addend), addend, 0.0)
    exponent = a.exponent + b.exponent
    exponent = np.where(product == 0, _NOWHERE, exponent).max(axis=-1)
    top = np.maximum(exponent, _exponents(addend, _LOWEST[result]))
    shift = np.clip(rule.below - top, -1000, 1000)
    scale = np.ldexp(1.0, shift)
    total = np.trunc(product * scale[..., None]).sum(axis=-1) + np.trunc(addend * scale)
    rounded = _rounded(np.ldexp(total, -shift), result, rule.kept)
    if wild.any():
        rounded = np.where(wild, special.astype(rounded.dtype), rounded)
    return canonical(rounded)


def _rounded(exact: Array, result: str, kept: int) -> Array:
    """A sum as a number of the result's type; what rounds to zero is +0."""
    if result == "f16":
        return exact.astype(np.float16) + np.float16(0)
    cut = narrow(exact, _F32, "rz")
    cut = np.where(np.abs(exact) >= 2.0**128, np.copysign(np.float32(np.inf), exact), cut)
    cut = cut.astype(np.float32)
    if kept:
        low = np.uint32((1 << 23 - kept) - 1)
        cut = (cut.view(np.uint32) & ~low).view(np.float32)
    return cut + np.float32(0)


def canonical(value: Array) -> Array:
    """NaNs as tensor cores write them: all ones but for the sign."""
    if value.dtype == np.float16:
        return np.where(np.isnan(value), np.uint16(0x7FFF).view(np.float16), value)
    return np.where(np.isnan(value), NAN32.view(np.float32), value)


# -- what has no rule of its own, as ptxas expands it for sm_90 ----------------------------------


def small_by_halves(a: Array, b: Array, kinds: tuple[str, str], c: Array, result: str) -> Array:
    """mma of 8-bit numbers: as halves, in two groups that start from zero; c is added last."""
    halves = (terms(bits, kind, "f16") for bits, kind in zip((a, b), kinds, strict=True))
    first, second = halves
    place = np.arange(a.shape[-1]) % 4
    total = np.zeros_like(c)
    for chosen in (place < 2, place >= 2):
        rule = Rule(25, int(chosen.sum()))
        total = fused(first.taken(chosen), second.taken(chosen), total, result, rule)
    return canonical(c + total)


def quads_by_fma(a: Array, b: Array, c: Array, result: str) -> Array:
    """mma.m8n8k4 of halves: a chain of fused multiply-adds in single precision."""
    x, y = (bits.astype(np.uint16).view(np.float16).astype(np.float32) for bits in (a, b))
    pairs = [(x[..., k], y[..., k]) for k in range(4)]
    if result == "f32":
        total = np.zeros_like(c)
        for left, right in pairs:
            total = _fma(left, right, total)
        return canonical(c + total)
    total = c.astype(np.float32)
    for (p, q), (r, s) in (pairs[:2], pairs[2:]):
        total = total + _fma(r, s, p * q)
    return canonical(total.astype(np.float16))


def _fma(a: Array, b: Array, c: Array) -> Array:
    a, b, c = (np.ascontiguousarray(each) for each in np.broadcast_arrays(a, b, c))
    return fma_single(a, b, c)


def doubles_by_fma(a: Array, b: Array, c: Array) -> Array:
    """mma of doubles: fused multiply-adds in ascending k. Of NaNs the first of b, c, a goes on."""
    total = c
    for k in range(a.shape[-1]):
        x, y, z = (
            np.ascontiguousarray(each).reshape(-1)
            for each in np.broadcast_arrays(a[..., k], b[..., k], total)
        )
        made = fma_double(x, y, z).view(np.uint64)
        made = np.where(np.isnan(made.view(np.float64)), np.uint64(0xFFF8 << 48), made)
        for each in (x, z, y):
            quiet = each.view(np.uint64) | np.uint64(1 << 51)
            made = np.where(np.isnan(each), quiet, made)
        total = made.view(np.float64).reshape(total.shape)
    return total


def whole(a: Array, b: Array, c: Array, saturates: bool) -> Array:
    """Integers: exact, then wrapped or cut off at the ends of 32 bits."""
    total = np.einsum("...k,...k->...", a.astype(np.int64), b.astype(np.int64)) + c.astype(np.int64)
    if saturates:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return np.asarray(total).astype(np.int32)
