"""Bit instructions: logic, shifts, fields, permutations, counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import Compile, binary, mixed, parts, ternary, type_of, unary
from warploom.ptx.ir import Immediate, Instruction, Pair
from warploom.ptx.types import DTYPES, is_signed

Array = npt.NDArray[Any]


def logic(ctx: Context, ins: Instruction) -> Step:
    fns: dict[str, Callable[..., Array]] = {
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    return binary(ctx, ins, type_of(ins), fns[ins.opcode])


def invert(ctx: Context, ins: Instruction) -> Step:
    return unary(ctx, ins, type_of(ins), np.invert)


def cnot(ctx: Context, ins: Instruction) -> Step:
    return unary(ctx, ins, type_of(ins), lambda a: (a == 0).astype(a.dtype))


def shift(ctx: Context, ins: Instruction) -> Step:
    """Amounts of the width and more shift everything out."""
    kind = type_of(ins)
    if ins.opcode == "shl":
        kind = f"u{kind[1:]}"
        fn: Callable[..., Array] = np.left_shift
    else:
        kind = f"s{kind[1:]}" if is_signed(kind) else f"u{kind[1:]}"
        fn = np.right_shift
    dtype = DTYPES[kind]
    most = np.uint32(8 * dtype.itemsize)
    amount = ins.operands[2]
    if isinstance(amount, Immediate):
        fixed = dtype.type(min(amount.value & 0xFFFFFFFF, int(most)))
        store, (a,) = parts(ctx, ins, kind, kind)
        return lambda f: store(f, fn(a(f), fixed))
    return mixed(
        ctx, ins, kind, (kind, "u32"), lambda a, b: fn(a, np.minimum(b, most).astype(dtype))
    )


def funnel(ctx: Context, ins: Instruction) -> Step:
    """shf: a 64-bit value shifted, one half of it kept."""
    wrap, left = "wrap" in ins.modifiers, "l" in ins.modifiers

    def fn(low: Array, high: Array, amount: Array) -> Array:
        n = (amount & np.uint32(31)) if wrap else np.minimum(amount, np.uint32(32))
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        n64 = n.astype(np.uint64)
        if left:
            return ((both << n64) >> np.uint64(32)).astype(np.uint32)
        return (both >> n64).astype(np.uint32)

    return ternary(ctx, ins, "u32", fn)


def lop3(ctx: Context, ins: Instruction) -> Step:
    """Any function of three bits, given by its table."""
    table = ins.operands[4]
    if not isinstance(table, Immediate):
        raise ctx.fail(f"the table of {ins.name} is a constant", ins)
    fn = lop3_function(table.value & 0xFF)
    if len(ins.operands) == 5:
        return ternary(ctx, ins, "u32", fn)
    return _lop3_with_predicate(ctx, ins, fn)


def _lop3_with_predicate(ctx: Context, ins: Instruction, fn: Callable[..., Array]) -> Step:
    """lop3.or d|p, a, b, c, table, q: p is also whether d is not zero, joined with q."""
    pair = ins.operands[0]
    if not isinstance(pair, Pair):
        raise ctx.fail(f"{ins.name} has two results", ins)
    store, store_flag = ctx.write(pair.first, "u32"), ctx.write(pair.second, "pred")
    a, b, c = (ctx.read(operand, "u32") for operand in ins.operands[1:4])
    q = ctx.read(ins.operands[5], "pred")
    join = np.logical_or if "or" in ins.modifiers else np.logical_and

    def step(f: Frame) -> None:
        result = fn(a(f), b(f), c(f))
        joined = join(result != 0, q(f))
        store(f, result)
        store_flag(f, joined)

    return step


def lop3_function(table: int) -> Callable[[Array, Array, Array], Array]:
    simple: dict[int, Callable[[Array, Array, Array], Array]] = {
        0xC0: lambda a, b, c: (a & b) | (c & 0),
        0x80: lambda a, b, c: a & b & c,
        0xFE: lambda a, b, c: a | b | c,
        0x96: lambda a, b, c: a ^ b ^ c,
        0xF8: lambda a, b, c: a | (b & c),
        0xEA: lambda a, b, c: (a & b) | c,
        0xCA: lambda a, b, c: (a & b) | (~a & c),
        0xE8: lambda a, b, c: (a & b) | (a & c) | (b & c),
    }
    if table in simple:
        return simple[table]

    def fn(a: Array, b: Array, c: Array) -> Array:
        out = (a & b & c) & np.uint32(0)
        for row in range(8):
            if table >> row & 1:
                x = a if row & 4 else ~a
                y = b if row & 2 else ~b
                z = c if row & 1 else ~c
                out = out | (x & y & z)
        return out

    return fn


def _amount(given: Array, width: int) -> Array:
    """A position or length: its lowest byte; of 64-bit fields ptxas makes shifts, which clamp."""
    if width == 64:
        return np.minimum(given, np.uint32(0xFF)).astype(np.int64)
    return (given & np.uint32(0xFF)).astype(np.int64)


def extract(ctx: Context, ins: Instruction) -> Step:
    """bfe: `length` bits from `position`; beyond the top the sign bit (or zero) is repeated."""
    kind = type_of(ins)
    dtype = DTYPES[kind]
    width = 8 * dtype.itemsize
    signed = is_signed(kind)

    def fn(a: Array, position: Array, length: Array) -> Array:
        pos, count = _amount(position, width), _amount(length, width)
        unsigned = a.view(DTYPES[f"u{width}"]).astype(np.uint64)
        taken = np.where(pos < 64, unsigned >> np.minimum(pos, 63).astype(np.uint64), np.uint64(0))
        keep = np.minimum(count, 64)
        ones = np.where(keep < 64, (np.uint64(1) << np.minimum(keep, 63).astype(np.uint64))
                        - np.uint64(1), ~np.uint64(0))  # fmt: skip
        field = taken & ones
        if signed:
            at = np.minimum(pos + count - 1, width - 1)
            sign = (unsigned >> np.maximum(at, 0).astype(np.uint64)) & np.uint64(1)
            fill = (count > 0) & (sign == 1)
            known = np.clip(width - pos, 0, keep)
            below = np.where(known < 64, (np.uint64(1) << np.minimum(known, 63).astype(np.uint64))
                             - np.uint64(1), ~np.uint64(0))  # fmt: skip
            field = np.where(fill, field | ~below, field)
        return field.astype(DTYPES[f"u{width}"]).view(dtype)

    return mixed(ctx, ins, kind, (kind, "u32", "u32"), fn)


def insert(ctx: Context, ins: Instruction) -> Step:
    """bfi: `length` bits of a put into b at `position`."""
    kind = type_of(ins)
    dtype = DTYPES[kind]
    width = 8 * dtype.itemsize

    def fn(a: Array, b: Array, position: Array, length: Array) -> Array:
        pos, count = _amount(position, width), np.minimum(_amount(length, width), width)
        ones = np.where(count < 64, (np.uint64(1) << np.minimum(count, 63).astype(np.uint64))
                        - np.uint64(1), ~np.uint64(0))  # fmt: skip
        up = np.minimum(pos, 63).astype(np.uint64)
        mask = np.where(pos < width, ones << up, np.uint64(0))
        moved = a.astype(np.uint64) << up
        return ((b.astype(np.uint64) & ~mask) | (moved & mask)).astype(dtype)

    return mixed(ctx, ins, kind, (kind, kind, "u32", "u32"), fn)


def _highest_bit(a: Array) -> Array:
    """Position of the highest set bit of unsigned numbers, −1 for zero."""
    x = a.astype(np.uint64)
    out = np.full(x.shape, -1, np.int64)
    found = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        big = x >= np.uint64(1 << step)
        found += np.where(big, step, 0)
        x = np.where(big, x >> np.uint64(step), x)
    return np.where(a != 0, found, out)


def clz(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)
    width = 8 * DTYPES[kind].itemsize
    return mixed(ctx, ins, "u32", (kind,), lambda a: width - 1 - _highest_bit(a))


def popc(ctx: Context, ins: Instruction) -> Step:
    return mixed(ctx, ins, "u32", (type_of(ins),), count_bits)


def count_bits(a: Array) -> Array:
    x = a.astype(np.uint64)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


def bfind(ctx: Context, ins: Instruction) -> Step:
    """The highest bit that is not a copy of the sign; all ones where there is none."""
    kind = type_of(ins)
    width = 8 * DTYPES[kind].itemsize
    amount = "shiftamt" in ins.modifiers

    def fn(a: Array) -> Array:
        bits = np.where(a < 0, ~a, a) if is_signed(kind) else a
        found = _highest_bit(bits.view(DTYPES[f"u{width}"]))
        if amount:
            found = np.where(found < 0, found, width - 1 - found)
        return found.astype(np.uint32)

    return mixed(ctx, ins, "u32", (kind,), fn)


def brev(ctx: Context, ins: Instruction) -> Step:
    kind = type_of(ins)

    def fn(a: Array) -> Array:
        size = a.dtype.itemsize
        raw = np.ascontiguousarray(a).view(np.uint8).reshape(-1, size)
        flipped = np.packbits(np.unpackbits(raw, axis=1, bitorder="little"), axis=1)
        # The first bit is now the top bit of the first byte: a big-endian number.
        return flipped.view(a.dtype.newbyteorder(">")).reshape(-1).astype(a.dtype)

    return unary(ctx, ins, f"u{kind[1:]}", fn)


def fns(ctx: Context, ins: Instruction) -> Step:
    """The n-th set bit from a base, upwards or downwards; all ones where there is none."""

    def fn(mask: Array, base: Array, offset: Array) -> Array:
        mask, base, offset = np.broadcast_arrays(mask, base, offset)
        bits = (mask[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
        place = np.arange(32)
        inside = base[:, None] < 32  # a search from elsewhere finds nothing
        up = (place >= base[:, None]) & (bits == 1)
        down = inside & (place <= base[:, None]) & (bits == 1)
        rank_up = np.cumsum(up, axis=1)
        rank_down = np.cumsum(down[:, ::-1], axis=1)[:, ::-1]
        want = np.where(offset == 0, 1, np.abs(offset.astype(np.int64)))[:, None]
        hit = np.where((offset < 0)[:, None], down & (rank_down == want), up & (rank_up == want))
        hit &= (offset != 0)[:, None] | (place == base[:, None])
        return np.where(hit.any(axis=1), hit.argmax(axis=1), 0xFFFFFFFF)

    return mixed(ctx, ins, "u32", ("u32", "u32", "s32"), fn)


# -- prmt -------------------------------------------------------------------------------------

PRMT_MODES: dict[str, list[list[int]]] = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}


def prmt(ctx: Context, ins: Instruction) -> Step:
    """Any four of the eight bytes of two words; bit 3 of a selector repeats the byte's sign."""
    mode = next((m for m in ins.modifiers if m in PRMT_MODES), None)
    if mode is None:
        return ternary(ctx, ins, "u32", permute_bytes)
    nibbles = np.array(
        [sum(b << 4 * i for i, b in enumerate(row)) for row in PRMT_MODES[mode]], np.uint32
    )
    return ternary(ctx, ins, "u32", lambda a, b, c: permute_bytes(a, b, nibbles[c & np.uint32(3)]))


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    out = np.zeros(1, np.uint32)
    for place in range(4):
        nibble = (selector >> np.uint32(4 * place)) & np.uint32(15)
        byte = (both >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(
            np.uint32
        )
        byte = byte & np.uint32(0xFF)
        sign = (byte >> np.uint32(7)) * np.uint32(0xFF)
        byte = np.where((nibble & np.uint32(8)) != 0, sign, byte)
        out = out | (byte << np.uint32(8 * place))
    return out


def bmsk(ctx: Context, ins: Instruction) -> Step:
    """A mask of b ones from bit a."""
    clamp = "clamp" in ins.modifiers

    def fn(a: Array, b: Array) -> Array:
        pos, count = a.astype(np.int64), b.astype(np.int64)
        if clamp:
            pos, count = np.minimum(pos, 32), np.minimum(count, 32)
        else:
            pos, count = pos & 31, count & 31
        return (((1 << count) - 1) << pos) & 0xFFFFFFFF

    return mixed(ctx, ins, "u32", ("u32", "u32"), fn)


def szext(ctx: Context, ins: Instruction) -> Step:
    """The low b bits of a, extended by sign or zero."""
    clamp, signed = "clamp" in ins.modifiers, is_signed(type_of(ins))

    def fn(a: Array, b: Array) -> Array:
        n = b.astype(np.int64)
        n = np.minimum(n, 32) if clamp else n & 31
        value = a.astype(np.int64) & ((1 << n) - 1)
        if signed:
            top = np.where(n > 0, 1 << np.maximum(n - 1, 0), 0)
            value = np.where(value & top != 0, value - (top << 1), value)
        return value.astype(np.uint32)

    return mixed(ctx, ins, "u32", ("u32", "u32"), fn)


TABLE: dict[str, Compile] = {
    "and": logic, "or": logic, "xor": logic, "not": invert, "cnot": cnot, "shl": shift,
    "shr": shift, "shf": funnel, "lop3": lop3, "bfe": extract, "bfi": insert, "clz": clz,
    "popc": popc, "bfind": bfind, "brev": brev, "fns": fns, "prmt": prmt, "bmsk": bmsk,
    "szext": szext,
}  # fmt: skip
