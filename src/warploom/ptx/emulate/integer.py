"""Integer arithmetic: add to mad, carries, division, minima, dot products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import CARRY, Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import (
    Compile,
    binary,
    mixed,
    pairwise,
    parts,
    ternary,
    type_of,
    unary,
)
from warploom.ptx.ir import Instruction
from warploom.ptx.table import OPCODES
from warploom.ptx.types import DTYPES, S16, S64, U16, U64, UNSIGNED, is_signed

Array = npt.NDArray[Any]
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64", "u8": "u16", "s8": "s16"}
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def add(ctx: Context, ins: Instruction) -> Step:
    return _sum(ctx, ins, np.add)


def sub(ctx: Context, ins: Instruction) -> Step:
    return _sum(ctx, ins, np.subtract)


def _sum(ctx: Context, ins: Instruction, fn: Callable[..., Array]) -> Step:
    kind = type_of(ins)
    if "cc" in ins.modifiers or OPCODES[ins.opcode].reads_carry:
        return _with_carry(ctx, ins, kind)
    if "sat" in ins.modifiers:
        return _saturating(ctx, ins, kind, fn)
    if kind.endswith("x2"):
        return binary(ctx, ins, kind, pairwise(fn, S16 if is_signed(kind) else U16))
    return binary(ctx, ins, kind, fn)


def _saturating(ctx: Context, ins: Instruction, kind: str, fn: Callable[..., Array]) -> Step:
    limits = np.iinfo(DTYPES[kind])

    def saturated(a: Array, b: Array) -> Array:
        wide = fn(a.astype(np.int64), b.astype(np.int64))
        return wide.clip(limits.min, limits.max).astype(DTYPES[kind])

    return binary(ctx, ins, kind, saturated)


def add_with_carry(a: Array, b: Array, carry: Array | None) -> tuple[Array, Array]:
    """a + b + carry in the width of a, and the carry out."""
    r = a + b
    out = r < a
    if carry is not None:
        r2 = r + carry.astype(r.dtype)
        out = out | (r2 < r)
        r = r2
    return r, out


def subtract_with_carry(a: Array, b: Array, carry: Array | None) -> tuple[Array, Array]:
    """a − b as the hardware does it, a + ~b + 1: the carry is set where nothing is borrowed."""
    return add_with_carry(a, ~b, np.ones(1, bool) if carry is None else carry)


def _with_carry(ctx: Context, ins: Instruction, kind: str) -> Step:
    bits = f"u{kind[1:]}"
    store, (a, b) = parts(ctx, ins, bits, bits, bits)
    slot = ctx.slot_of(CARRY, "pred")
    take_in, give_out = OPCODES[ins.opcode].reads_carry, "cc" in ins.modifiers
    fn = add_with_carry if ins.opcode.startswith("add") else subtract_with_carry

    def step(f: Frame) -> None:
        result, carry = fn(a(f), b(f), _carry(f, slot) if take_in else None)
        store(f, result)
        if give_out:
            f.write(slot, carry)

    return step


def _carry(f: Frame, slot: int) -> Array:
    value = f.regs[slot]
    return value[f.index] if f.compact and value.size != 1 else value


# -- multiplication ---------------------------------------------------------------------------


def high_product(a: Array, b: Array) -> Array:
    """The upper half of a product in the operands' type."""
    size = a.dtype.itemsize
    if size < 8:
        wide = S64 if a.dtype.kind == "i" else U64
        product = a.astype(wide) * b.astype(wide)
        upper: Array = product >> wide.type(8 * size)
        return upper.astype(a.dtype)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    al, ah, bl, bh = ua & _LOW, ua >> _HALF, ub & _LOW, ub >> _HALF
    middle = ah * bl + ((al * bl) >> _HALF)
    second = al * bh + (middle & _LOW)
    high = ah * bh + (middle >> _HALF) + (second >> _HALF)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return np.asarray(high.view(a.dtype))


def wide_product(kind: str) -> Callable[[Array, Array], Array]:
    wide = DTYPES[WIDER[kind]]
    return lambda a, b: a.astype(wide) * b.astype(wide)


def mul(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    if "wide" in ins.modifiers:
        return mixed(ctx, ins, WIDER[kind], (kind, kind), wide_product(kind))
    return binary(ctx, ins, kind, high_product if "hi" in ins.modifiers else np.multiply)


def mad(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    if "cc" in ins.modifiers or OPCODES[ins.opcode].reads_carry:
        return _mad_with_carry(ctx, ins, kind)
    if "wide" in ins.modifiers:
        wide, product = WIDER[kind], wide_product(kind)
        return mixed(ctx, ins, wide, (kind, kind, wide), lambda a, b, c: product(a, b) + c)
    fn = high_product if "hi" in ins.modifiers else np.multiply
    if "sat" in ins.modifiers:
        limits = np.iinfo(DTYPES[kind])
        return ternary(
            ctx, ins, kind,
            lambda a, b, c: (fn(a, b).astype(np.int64) + c)
            .clip(limits.min, limits.max).astype(DTYPES[kind]),
        )  # fmt: skip
    return ternary(ctx, ins, kind, lambda a, b, c: fn(a, b) + c)


def _mad_with_carry(ctx: Context, ins: Instruction, kind: str) -> Step:
    fn = high_product if "hi" in ins.modifiers else np.multiply
    bits = UNSIGNED[DTYPES[kind].itemsize]
    store, (a, b, c) = parts(ctx, ins, kind, kind, kind, kind)
    slot = ctx.slot_of(CARRY, "pred")
    take_in, give_out = OPCODES[ins.opcode].reads_carry, "cc" in ins.modifiers

    def step(f: Frame) -> None:
        carry_in = _carry(f, slot) if take_in else None
        product = fn(a(f), b(f)).view(bits)
        result, carry = add_with_carry(product, c(f).view(bits), carry_in)
        store(f, result)
        if give_out:
            f.write(slot, carry)

    return step


def _product24(ins: Instruction, kind: str) -> Callable[[Array, Array], Array]:
    shift = 16 if "hi" in ins.modifiers else 0
    signed = is_signed(kind)

    def low24(x: Array) -> Array:
        wide = x.astype(np.int64) & 0xFFFFFF
        return wide - ((wide & 0x800000) << 1) if signed else wide

    return lambda a, b: ((low24(a) * low24(b)) >> shift).astype(np.uint32).view(DTYPES[kind])


def mul24(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    return binary(ctx, ins, kind, _product24(ins, kind))


def mad24(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    product = _product24(ins, kind)
    if "sat" in ins.modifiers:
        return ternary(
            ctx, ins, kind,
            lambda a, b, c: (product(a, b).astype(np.int64) + c)
            .clip(-(1 << 31), (1 << 31) - 1).astype(np.int32),
        )  # fmt: skip
    return ternary(ctx, ins, kind, lambda a, b, c: product(a, b) + c)


# -- division ---------------------------------------------------------------------------------


def quotient(a: Array, b: Array) -> Array:
    """Rounded towards zero; division by zero gives all ones."""
    zero = b == 0
    if a.dtype.kind == "u":
        return np.where(zero, ~a.dtype.type(0), a // np.where(zero, b.dtype.type(1), b))
    ua, ub = magnitude(a), magnitude(b)
    q = ua // np.where(zero, ub.dtype.type(1), ub)
    q = np.where((a < 0) != (b < 0), -q, q).view(a.dtype)
    return np.where(zero, a.dtype.type(-1), q)


def magnitude(a: Array) -> Array:
    """|a| as an unsigned number, right for the smallest one too."""
    unsigned = a.view(UNSIGNED[a.dtype.itemsize])
    return np.where(a < 0, -unsigned, unsigned)


def remainder(a: Array, b: Array) -> Array:
    """With the sign of a; all ones where b is zero."""
    rest: Array = a - quotient(a, b) * b
    return np.where(b == 0, ~a.dtype.type(0), rest)


def div(ctx: Context, ins: Instruction) -> Step:
    return binary(ctx, ins, type_of(ins), quotient)


def rem(ctx: Context, ins: Instruction) -> Step:
    return binary(ctx, ins, type_of(ins), remainder)


# -- the rest ---------------------------------------------------------------------------------


def extremum(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    fn = np.minimum if ins.opcode == "min" else np.maximum
    relu = "relu" in ins.modifiers
    clamped: Callable[..., Array] = (lambda a, b: np.maximum(fn(a, b), 0)) if relu else fn
    if kind.endswith("x2"):
        return binary(ctx, ins, kind, pairwise(clamped, S16 if is_signed(kind) else U16))
    return binary(ctx, ins, kind, clamped)


def neg(ctx: Context, ins: Instruction) -> Step:
    return unary(ctx, ins, type_of(ins), lambda a: -a)


def absolute(ctx: Context, ins: Instruction) -> Step:
    return unary(ctx, ins, type_of(ins), lambda a: np.abs(a))


def sad(ctx: Context, ins: Instruction) -> Step:
    """c + |a − b|"""

    def fn(a: Array, b: Array, c: Array) -> Array:
        distance = np.where(a < b, b - a, a - b)
        result: Array = c + distance
        return result

    return ternary(ctx, ins, type_of(ins), fn)


def _fields(value: Array, signed: bool, size: int) -> Array:
    narrow = {(1, False): np.uint8, (1, True): np.int8, (2, False): np.uint16, (2, True): np.int16}
    raw = np.ascontiguousarray(value).view(narrow[size, signed])
    return raw.reshape(-1, 4 // size).astype(np.int64)


def dp4a(ctx: Context, ins: Instruction) -> Step:
    """c plus the dot product of four bytes."""
    first, second = type_of(ins, -2), type_of(ins, -1)
    result = "s32" if "s32" in (first, second) else "u32"

    def fn(a: Array, b: Array, c: Array) -> Array:
        products = _fields(a, is_signed(first), 1) * _fields(b, is_signed(second), 1)
        total: Array = products.sum(axis=1) + c
        return total.astype(np.uint32).view(DTYPES[result])

    return mixed(ctx, ins, result, ("b32", "b32", result), fn)


def dp2a(ctx: Context, ins: Instruction) -> Step:
    """c plus two halfwords of a times the low or high two bytes of b."""
    first, second = type_of(ins, -2), type_of(ins, -1)
    result = "s32" if "s32" in (first, second) else "u32"
    start = 2 if "hi" in ins.modifiers else 0

    def fn(a: Array, b: Array, c: Array) -> Array:
        bytes_ = _fields(b, is_signed(second), 1)[:, start : start + 2]
        products = _fields(a, is_signed(first), 2) * bytes_
        total: Array = products.sum(axis=1) + c
        return total.astype(np.uint32).view(DTYPES[result])

    return mixed(ctx, ins, result, ("b32", "b32", result), fn)


TABLE: dict[str, Compile] = {
    "add": add, "sub": sub, "addc": add, "subc": sub, "mul": mul, "mad": mad, "madc": mad,
    "mul24": mul24, "mad24": mad24, "div": div, "rem": rem, "min": extremum, "max": extremum,
    "neg": neg, "abs": absolute, "sad": sad, "dp4a": dp4a, "dp2a": dp2a,
}  # fmt: skip
