"""cvt to and from numbers of four to eight bits, and with random bits: see `machine.narrow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine import rounding as r
from warploom.machine.narrow import FORMATS, decoded, encode, scale_to_bf16, to_scale
from warploom.ptx.emulate.context import Context, Step
from warploom.ptx.emulate.floats import scalar_kind
from warploom.ptx.emulate.frame import Frame
from warploom.ptx.emulate.shape import parts, rounding_of, type_of
from warploom.ptx.ir import Instruction, Vector
from warploom.ptx.types import DTYPES, F64

Array = npt.NDArray[Any]
Function = Callable[..., Array]


def to_small(ctx: Context, ins: Instruction, target: str, source: str) -> Step:
    """Two values side by side, the first in the upper half: of two registers, or of a pair."""
    one = _small_function(ins, target.removesuffix("x2"))
    width = np.uint32(4 * DTYPES[target].itemsize)
    if source == "f32":
        store, (a, b) = parts(ctx, ins, target, source, source)
        return lambda f: store(f, _side_by_side(one(a(f)), one(b(f)), width, DTYPES[target]))
    store, (a,) = parts(ctx, ins, target, source)

    def step(f: Frame) -> None:
        high, low = _unpacked(a(f), source)
        store(f, _side_by_side(one(high), one(low), width, DTYPES[target]))

    return step


def _small_function(ins: Instruction, target: str) -> Function:
    mode, finite = rounding_of(ins), "satfinite" in ins.modifiers
    if target == "ue8m0":
        return lambda x: to_scale(x.astype(F64), mode, finite)
    form = FORMATS[target]
    return lambda x: encode(_not_negative(ins, x.astype(F64)), form, mode, finite, None)


def _not_negative(ins: Instruction, x: Array) -> Array:
    """.relu: what is below zero is zero; a NaN stays one."""
    return np.where(x <= 0, 0.0, x) if "relu" in ins.modifiers else x


def _side_by_side(high: Array, low: Array, width: Any, dtype: np.dtype[Any]) -> Array:
    both: Array = (high.astype(np.uint32) << width) | low.astype(np.uint32)
    return both.astype(dtype)


def _unpacked(value: Array, kind: str) -> tuple[Array, Array]:
    """The upper and lower number of a pair of halves, as singles."""
    halves = np.ascontiguousarray(value).view(DTYPES[scalar_kind(kind)]).reshape(-1, 2)
    if kind == "bf16x2":
        halves = r.bf16_to_single(halves)
    return halves[:, 1].astype(np.float32), halves[:, 0].astype(np.float32)


def from_small(ctx: Context, ins: Instruction, source: str) -> Step:
    """A pair of small numbers as a pair of halves, which hold each of them."""
    target = type_of(ins, -2)
    store, (a,) = parts(ctx, ins, target, source)
    width = np.uint32(4 * DTYPES[source].itemsize)
    mask = np.uint32((1 << int(width)) - 1)

    def one(code: Array) -> Array:
        if source == "ue8m0x2":
            return scale_to_bf16(code)
        table = decoded(source.removesuffix("x2"))
        number = table[code & np.uint32(table.size - 1)]
        half = r.clean_half(_not_negative(ins, number).astype(np.float16))
        return half.view(np.uint16)

    def step(f: Frame) -> None:
        value = a(f).astype(np.uint32)
        high, low = one(value >> width), one(value & mask)
        store(f, _side_by_side(high, low, np.uint32(16), np.dtype(np.uint32)))

    return step


def stochastic(ctx: Context, ins: Instruction, target: str) -> Step:
    """Random bits, as high as the dropped ones begin, are added before truncating."""
    name, _, count = target.partition("x")
    form, finite = FORMATS[name], "satfinite" in ins.modifiers
    if count == "4":
        vector = ins.operands[1]
        if not isinstance(vector, Vector) or len(vector.elements) != 4:
            raise ctx.fail(f"{ins.name} takes four registers in braces", ins)
        values = [ctx.read(element, "f32") for element in vector.elements]
    else:
        values = [ctx.read(operand, "f32") for operand in ins.operands[1:3]]
    random = ctx.read(ins.operands[-1], "u32")
    store = ctx.write(ins.operands[0], target)
    width = np.uint32(8 * DTYPES[target].itemsize // len(values))

    def step(f: Frame) -> None:
        bits = _random_bits(random(f), name)
        out = np.zeros(1, np.uint32)
        for number, value in enumerate(values):  # the first lies highest
            x = _not_negative(ins, value(f).astype(F64))
            mine = bits[number * 2 // len(values)]
            out = (out << width) | encode(x, form, "rs", finite, mine)
        store(f, out.astype(DTYPES[target]))

    return step


def _random_bits(bits: Array, name: str) -> tuple[Array, Array]:
    """Sixteen bits for the first half of the values, and sixteen for the second, as doubles."""
    high, low = bits >> np.uint32(16), bits & np.uint32(0xFFFF)
    if name == "f16":  # thirteen of them
        high, low = ((part & np.uint32(0x1FFF)) << np.uint32(3) for part in (high, low))
    elif name == "e2m1":  # the upper bytes of both halves, and the lower ones
        upper = (high & np.uint32(0xFF00)) | (low >> np.uint32(8))
        lower = ((high & np.uint32(0xFF)) << np.uint32(8)) | (low & np.uint32(0xFF))
        high, low = upper, lower
    return high.astype(F64), low.astype(F64)
