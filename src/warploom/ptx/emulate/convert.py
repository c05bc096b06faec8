"""cvt between all integer and floating types, with rounding and saturation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine import rounding as r
from warploom.ptx.emulate import small
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.floats import scalar_kind
from warploom.ptx.emulate.shape import Compile, mixed, parts, rounding_of, type_of
from warploom.ptx.ir import Instruction
from warploom.ptx.types import DTYPES, F32, F64, is_float

Array = npt.NDArray[Any]
Function = Callable[..., Array]

_INTEGRAL: dict[str, Function] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


def cvt(ctx: Context, ins: Instruction) -> Step:
    target, source = type_of(ins, -2), type_of(ins, -1)
    if "pack" in ins.modifiers:
        return _pack(ctx, ins)
    if "rs" in ins.modifiers:
        return small.stochastic(ctx, ins, target)
    if target in ("f16x2", "bf16x2"):
        return _pair(ctx, ins, target) if source == "f32" else small.from_small(ctx, ins, source)
    if target.endswith("x2"):
        return small.to_small(ctx, ins, target, source)
    return mixed(ctx, ins, target, (source,), conversion(ins, target, source))


def conversion(ins: Instruction, target: str, source: str) -> Function:
    if is_float(source):
        widen = _from_float(ins, source)
        if is_float(target):
            return _float_to_float(ins, target, source, widen)
        return _float_to_integer(ins, target, source, widen)
    if is_float(target):
        return _integer_to_float(ins, target, source)
    return _integer_to_integer(ins, target)


# -- integer to integer -------------------------------------------------------------------------


def _integer_to_integer(ins: Instruction, target: str) -> Function:
    dtype = DTYPES[target]
    if "sat" not in ins.modifiers:
        return lambda a: a.astype(dtype)
    limits = np.iinfo(dtype)

    def saturated(a: Array) -> Array:
        have = np.iinfo(a.dtype)
        low, high = max(limits.min, have.min), min(limits.max, have.max)
        return a.clip(a.dtype.type(low), a.dtype.type(high)).astype(dtype)

    return saturated


# -- integer to float ---------------------------------------------------------------------------


def _integer_to_float(ins: Instruction, target: str, source: str) -> Function:
    mode = rounding_of(ins)
    wide = DTYPES[source].itemsize == 8
    dtype = DTYPES[target]

    def convert(a: Array) -> Array:
        if mode == "rn" and target in ("f32", "f64"):
            return a.astype(dtype)
        if target == "f64":
            return _long_to_double(a, mode) if wide else a.astype(F64)
        exact = _odd_double(a) if wide else a.astype(F64)
        return r.double_to_bf16(exact, mode) if target == "bf16" else r.narrow(exact, dtype, mode)

    return (lambda a: r.saturate(convert(a))) if "sat" in ins.modifiers else convert


def _odd_double(a: Array) -> Array:
    """A 64-bit integer as a double, rounded to odd: the lost low bits leave one sticky bit."""
    magnitude = np.where(a < 0, -a.view(np.uint64), a.view(np.uint64))
    high = magnitude >> np.uint64(11)
    sticky = (magnitude & np.uint64(0x7FF)) != 0
    large = (high | sticky).astype(F64) * 2048.0
    value = np.where(magnitude >> np.uint64(53) != 0, large, magnitude.astype(F64))
    return np.where(a < 0, -value, value)


def _long_to_double(a: Array, mode: str) -> Array:
    nearest = a.astype(F64)
    error = [int(x) - int(y) for x, y in zip(a.tolist(), nearest.tolist(), strict=True)]
    return r.directed(nearest, np.array(error, F64), mode)


# -- float to integer ---------------------------------------------------------------------------


def _from_float(ins: Instruction, source: str) -> Function:
    ftz = "ftz" in ins.modifiers and type_of(ins, -2) != "f16"  # halves are made of the number
    if source == "bf16":
        return r.bf16_to_single
    if source == "f32" and ftz:
        return r.flush
    return lambda a: a


def _float_to_integer(ins: Instruction, target: str, source: str, widen: Function) -> Function:
    name = next((m for m in ins.modifiers if m in _INTEGRAL), "rzi")
    fn, dtype = _INTEGRAL[name], DTYPES[target]
    limits = np.iinfo(dtype)
    # What the hardware makes of NaN: zero, or the top bit where 64 bits are involved.
    odd_one = source == "f64" or dtype.itemsize == 8
    nan = limits.min if target[0] == "s" else 1 << (8 * dtype.itemsize - 1)
    nan_value = dtype.type(nan if odd_one else 0)
    return lambda a: r.clamped(fn(widen(a).astype(F64)), dtype, nan_value)


# -- float to float -----------------------------------------------------------------------------


def _float_to_float(ins: Instruction, target: str, source: str, widen: Function) -> Function:
    name = next((m for m in ins.modifiers if m in _INTEGRAL), None)
    mode = rounding_of(ins)
    # NaNs keep their upper bits from f64, and to f32 from bf16; elsewhere there is only one NaN.
    # Saturated, a NaN is zero, of doubles too (as on an H200).
    wide = source == "f64" and target in ("f16", "bf16") and "sat" not in ins.modifiers
    keep = target == "f32" and source in ("f64", "bf16") and name is None
    if target == source == "f32" and len(ins.modifiers) == 2:
        return lambda a: a  # a copy
    finish = _finisher(ins, target, keep)

    def convert(a: Array) -> Array:
        x = widen(a)
        if name is not None:
            x = _INTEGRAL[name](x)
        if target == "bf16":
            out = (
                r.single_to_bf16(x, mode)
                if x.dtype == F32
                else r.double_to_bf16(x.astype(F64), mode)
            )
        elif target == "tf32":
            return _tf32_finish(ins, _to_tf32(x, mode))
        elif DTYPES[target].itemsize >= x.dtype.itemsize:
            out = x.astype(DTYPES[target])
        else:
            out = r.narrow(x.astype(F64), DTYPES[target], mode)
        return _upper_bits(finish(out), x) if wide else finish(out)

    return convert


def _upper_bits(out: Array, x: Array) -> Array:
    """Halves of which NaNs have the upper bits of the doubles that they were made of."""
    bad = np.isnan(x)
    if not bad.any():
        return out
    single = x.astype(F32).view(np.uint32)
    fraction = 7 if out.dtype == np.uint16 else 10
    exponent = np.uint32((1 << 15 - fraction) - 1 << fraction)
    payload = (single >> np.uint32(23 - fraction)) & np.uint32((1 << fraction) - 1)
    quiet = np.uint32(1 << fraction - 1)
    made = (single >> np.uint32(16) & np.uint32(0x8000)) | exponent | payload | quiet
    return np.where(bad, made.astype(np.uint16).view(out.dtype), out)


def _finisher(ins: Instruction, target: str, keep_nan: bool) -> Function:
    sat, relu, finite = (word in ins.modifiers for word in ("sat", "relu", "satfinite"))
    ftz = "ftz" in ins.modifiers and target == "f32"
    clean = None if keep_nan else {"f32": r.clean_single, "f16": r.clean_half}.get(target)

    def finish(x: Array) -> Array:
        if ftz:
            x = r.flush(x)
        if sat:
            x = r.saturate(x)
        if finite:
            x = _largest_for_infinity(x, target)
        if relu:
            negative = (x >> np.uint16(15) == 1) if target == "bf16" else (x <= 0)
            nan = (x & np.uint16(0x7FFF)) > 0x7F80 if target == "bf16" else np.isnan(x)
            x = np.where(negative & ~nan, x.dtype.type(0), x)
        return clean(np.array(x)) if clean else x

    return finish


def _largest_for_infinity(x: Array, target: str) -> Array:
    if target == "bf16":
        return np.where((x & np.uint16(0x7FFF)) == 0x7F80, x - np.uint16(1), x)
    return np.where(np.isinf(x), np.copysign(np.finfo(x.dtype).max, x), x)


def _tf32_finish(ins: Instruction, bits: Array) -> Array:
    if "satfinite" in ins.modifiers:
        infinite = (bits & np.uint32(0x7FFFFFFF)) == np.uint32(0x7F800000)
        if "rna" in ins.modifiers:  # a program of the assembler's, which steps down from NaNs too
            infinite = (bits & np.uint32(0x7FFFFFFF)) >= np.uint32(0x7F800000)
        bits = np.where(infinite, bits - np.uint32(0x2000), bits)
    if "relu" in ins.modifiers:
        nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
        bits = np.where((bits >> np.uint32(31) == 1) & ~nan, np.uint32(0), bits)
    return bits


def _to_tf32(x: Array, mode: str) -> Array:
    """19 bits of a single are kept; rna rounds ties away from zero."""
    bits = x.view(np.uint32)
    if mode == "rz":
        rounded = bits
    elif mode == "rna":
        rounded = bits + np.uint32(0x1000)
    else:
        rounded = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    kept = rounded & np.uint32(0xFFFFE000)
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    upper = bits & np.uint32(0xFFFFE000)
    if mode != "rna":  # which alone keeps the upper bits of a NaN
        nan = special & (bits & np.uint32(0x7FFFFF) != 0)
        upper = np.where(nan, np.uint32(0x7FFFE000), upper)
    return np.where(special, upper, kept)


def _pair(ctx: Context, ins: Instruction, target: str) -> Step:
    """cvt.rn.f16x2.f32 d, a, b: a becomes the upper half, b the lower."""
    one = conversion(ins, scalar_kind(target), "f32")

    def fn(a: Array, b: Array) -> Array:
        high, low = (one(x).view(np.uint16).astype(np.uint32) for x in (a, b))
        return (high << np.uint32(16)) | low

    store, (a, b) = parts(ctx, ins, target, "f32", "f32")
    return lambda f: store(f, fn(a(f), b(f)))


def _pack(ctx: Context, ins: Instruction) -> Step:
    """cvt.pack.sat: two integers saturated and put side by side, more bits shifted in below."""
    small = next(m for m in ins.modifiers if m[0] in "us" and m[1:].isdigit())
    width = int(small[1:])
    low, high = (
        (-(1 << width - 1), (1 << width - 1) - 1) if small[0] == "s" else (0, (1 << width) - 1)
    )
    mask = np.uint32((1 << width) - 1)
    more = len(ins.operands) > 3

    def fn(a: Array, b: Array, c: Array | None = None) -> Array:
        upper, lower = (x.clip(low, high).astype(np.uint32) & mask for x in (a, b))
        out: Array = (upper << np.uint32(width)) | lower
        if c is not None:
            out = out | (c << np.uint32(2 * width))
        return out

    sources = ("s32", "s32", "u32") if more else ("s32", "s32")
    return mixed(ctx, ins, "u32", sources, fn)


TABLE: dict[str, Compile] = {"cvt": cvt}
