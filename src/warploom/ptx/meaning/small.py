"""cvt to and from numbers of four to eight bits, with random bits, and to tf32.

Formats are those of `machine/narrow.py`.
"""

from __future__ import annotations

from warploom.machine.narrow import FORMATS
from warploom.machine.value.ir import Value, const, real
from warploom.ptx.ir import Vector
from warploom.ptx.meaning.number import numbers
from warploom.ptx.meaning.shape import Operands, Result
from warploom.ptx.types import DTYPES, rounding_of

NAN16 = 0x7FFF


def _not_negative(r: Operands, x: Value) -> Value:
    """.relu: what is below zero is zero; a NaN stays one."""
    zero = real(x.type, 0.0)
    return x.le(zero).select(zero, x) if r.has("relu") else x


def _side_by_side(r: Operands, target: str, made: list[Value]) -> list[Result]:
    """Codes of several numbers, the first highest."""
    bits = 8 * DTYPES[target].itemsize
    total = const("u32", 0)
    for code in made:
        total = total << bits // len(made) | code
    return r.result(f"u{bits}", total.to(f"u{bits}"))


# -- pairs ----------------------------------------------------------------------------------------


def to_small(r: Operands, target: str, source: str) -> list[Result]:
    """Two values side by side, the first in the upper half: of two registers, or of a pair."""
    if source == "f32":
        given = r.operands("f32", "f32")
    else:
        given = numbers(r, r.ins.operands[1], source)[::-1]
    name, mode, finite = target.removesuffix("x2"), rounding_of(r.ins), r.has("satfinite")
    if name == "ue8m0":
        made = [_scale(x, mode, finite) for x in given]
    else:
        made = [_not_negative(r, x).encoded(name, mode, finite) for x in given]
    return _side_by_side(r, target, made)


def _scale(x: Value, mode: str, finite: bool) -> Value:
    """The power of two at or above (rp) or at or below (rz) a magnitude, by its exponent's bits.

    0 stands for 2⁻¹²⁷, which is half of the smallest normal single.
    """
    size = x.bits("u32") & 0x7FFFFFFF
    code = size >> 23
    if mode == "rp":
        beyond = code.eq(0).select(const("u32", 0x400000).lt(size), ~(size & 0x7FFFFF).eq(0))
        code = (code + beyond.to("u32")).min(0xFF)
    code = code.min(0xFE) if finite else code
    return x.is_nan().select(const("u32", 0xFF), code)


def from_small(r: Operands, source: str) -> list[Result]:
    """A pair of small numbers as a pair of halves, which hold each of them."""
    width = 4 * DTYPES[source].itemsize
    whole = r.read(r.ins.operands[1], source).to("u32")
    codes = [whole >> width, whole & (1 << width) - 1]
    name = source.removesuffix("x2")
    made = [_power(code) if name == "ue8m0" else _half(r, code, name) for code in codes]
    return _side_by_side(r, r.kind(-2), made)


def _power(code: Value) -> Value:
    """A power of two as a bf16."""
    some = code.eq(0).select(const("u32", 0x40), code << 7)
    return code.eq(0xFF).select(const("u32", NAN16), some)


def _half(r: Operands, code: Value, name: str) -> Value:
    """A small number as a half: its bits as those of a single, scaled by the exponents' bases."""
    form = FORMATS[name]
    size = code & form.sign - 1
    scaled = (size << 23 - form.fraction_bits).bits("f32") * real("f32", 2.0 ** (127 - form.bias))
    if form.infinity is not None:
        scaled = size.eq(form.infinity).select(real("f32", float("inf")), scaled)
    minus = ~(code & form.sign).eq(0)
    x = (scaled.bits("u32") | minus.select(const("u32", 1 << 31), 0)).bits("f32")
    made = _not_negative(r, x).encoded("f16", "rn")
    if form.nan is None:
        return made
    bad = const("u32", max(form.largest, form.infinity or 0)).lt(size)
    return bad.select(const("u32", NAN16), made)


# -- random bits ----------------------------------------------------------------------------------


def stochastic(r: Operands) -> list[Result]:
    """Random bits, as high as the dropped ones begin, are added before truncating."""
    target = r.kind(0)
    name, _, count = target.partition("x")
    operands = r.ins.operands[1:3]
    if count == "4":
        vector = r.ins.operands[1]
        if not isinstance(vector, Vector) or len(vector.elements) != 4:
            raise ValueError(f"{r.ins.name} takes four registers in braces")
        operands = vector.elements
    values = [_not_negative(r, r.read(operand, "f32")) for operand in operands]
    random = _random_bits(r.read(r.ins.operands[-1], "u32"), name)
    finite = r.has("satfinite")
    made = [
        x.encoded(name, "rs", finite, random[at * 2 // len(values)]) for at, x in enumerate(values)
    ]
    return _side_by_side(r, target, made)


def _random_bits(bits: Value, name: str) -> tuple[Value, Value]:
    """Sixteen bits for the first half of the values, and sixteen for the second."""
    high, low = bits >> 16, bits & 0xFFFF
    if name == "f16":  # thirteen of them
        return (high & 0x1FFF) << 3, (low & 0x1FFF) << 3
    if name == "e2m1":  # the upper bytes of both halves, and the lower ones
        return (high & 0xFF00) | low >> 8, (high & 0xFF) << 8 | low & 0xFF
    return high, low


# -- tf32 -----------------------------------------------------------------------------------------


def tf32(r: Operands, x: Value) -> Value:
    """19 bits of a single are kept; rna rounds ties away from zero."""
    bits, mode = x.bits("u32"), rounding_of(r.ins)
    more = {"rz": const("u32", 0), "rna": const("u32", 0x1000)}.get(
        mode, (bits >> 13 & 1) + 0xFFF
    )  # fmt: skip
    special = (bits & 0x7F800000).eq(0x7F800000)
    made = special.select(bits, bits + more) & 0xFFFFE000
    if mode != "rna":  # which alone keeps the upper bits of a NaN
        made = x.is_nan().select(const("u32", 0x7FFFE000), made)
    if r.has("satfinite"):
        # The assembler's program for rna steps down from NaNs too.
        size = made & 0x7FFFFFFF
        infinite = size.eq(0x7F800000) if mode != "rna" else const("u32", 0x7F800000).le(size)
        made = infinite.select(made - 0x2000, made)
    if r.has("relu"):
        minus = const("u32", 1 << 31).le(made) & made.le(0xFF800000)
        made = minus.select(const("u32", 0), made)
    return made
