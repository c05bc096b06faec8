"""Floating-point operands as numbers, and results as bits: flushed, saturated, cleaned."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.machine.value.ir import Value, const, make
from warploom.ptx.ir import Operand
from warploom.ptx.meaning.shape import Operands


def numbers(r: Operands, operand: Operand, kind: str, ftz: bool = False) -> list[Value]:
    """The number in an operand, or the two of a pair, the lower first: f64, or f32 for all else."""
    whole = r.read(operand, kind)
    if kind.endswith("x2"):
        return [number(whole.field(low, "u16"), kind[:-2], ftz) for low in (0, 16)]
    return [number(whole, kind, ftz)]


def number(bits: Value, kind: str, ftz: bool = False) -> Value:
    """A number from the bits of a half; others are one already."""
    match kind:
        case "f16":
            code = (bits & 0x7C00).eq(0).select(bits & 0x8000, bits) if ftz else bits
            return make("half", "f32", (code,))
        case "bf16":
            return (bits.to("u32") << 16).bits("f32")
        case "f32" if ftz:
            return flushed(bits)
        case _:
            return bits


def flushed(x: Value) -> Value:
    """A single of which subnormal ones are zeros of the same sign."""
    bits = x.bits("u32")
    return (bits & 0x7F800000).eq(0).select(bits & 0x80000000, bits).bits("f32")


@dataclass(frozen=True, slots=True)
class NarrowFloat:
    """The bits of a floating type: what infinity, one and the machine's NaN are in it."""

    kind: str

    @property
    def width(self) -> int:
        return {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[self.kind]

    @property
    def fraction(self) -> int:
        """How many bits the fraction has."""
        return {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[self.kind]

    @property
    def infinity(self) -> int:
        return (1 << self.width - 1) - (1 << self.fraction)

    @property
    def one(self) -> int:
        return self.infinity >> 1 & self.infinity

    def saturated(self, x: Value) -> Value:
        """Clamped to [0, 1]; NaN and −0 become +0."""
        bits = x.bits(f"u{self.width}")
        inside = (bits - 1).lt(self.infinity)  # above zero, and a number
        return inside.select(bits.min(self.one), 0).bits(x.type)

    def finite(self, x: Value) -> Value:
        """The largest number of its sign in place of an infinity."""
        bits = x.bits(f"u{self.width}")
        size = bits & (1 << self.width - 1) - 1
        return size.eq(self.infinity).select(bits - 1, bits).bits(x.type)

    def not_negative(self, x: Value) -> Value:
        """Zero in place of what has a minus sign and is a number."""
        bits, sign = x.bits(f"u{self.width}"), 1 << self.width - 1
        minus = const(bits.type, sign).le(bits) & bits.le(sign | self.infinity)
        return minus.select(const(bits.type, 0), bits).bits(x.type)

    def clean(self, x: Value) -> Value:
        """Every NaN is the one that the machine makes."""
        bits = x.bits(f"u{self.width}")
        nan = const(bits.type, (1 << self.width - 1) - 1)
        bad = const(bits.type, self.infinity).lt(bits & nan)
        return bad.select(nan, bits).bits(x.type)


def finished(r: Operands, code: NarrowFloat, x: Value) -> Value:
    """A result as its modifiers want it: flushed, saturated, finite, not negative."""
    if r.has("ftz") and code.kind == "f32":
        x = flushed(x)
    if r.has("sat"):
        x = code.saturated(x)
    if r.has("satfinite"):
        x = code.finite(x)
    return code.not_negative(x) if r.has("relu") else x
