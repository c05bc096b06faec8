"""cvt between integers and floating-point numbers of 16 to 64 bits; pairs and integers packed."""

from __future__ import annotations

from warploom.machine.value.ir import (
    Value,
    const,
    is_signed,
    joined,
    limits,
    make,
    real,
    width_of,
)
from warploom.ptx.meaning import small
from warploom.ptx.meaning.number import NarrowFloat, finished, number
from warploom.ptx.meaning.shape import Operands, Result, Table
from warploom.ptx.types import is_float, rounding_of

_WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


TABLE = Table()
_FORMS = """
    {small} {small}
    sat {narrowed}
    {round} sat? f16|f32|f64 {small}
    {round} bf16 {integer}
    {integral} ftz? ~sat? {small} f32
    {integral} ~sat? {small} f16|f64
    {integral} {integer} bf16
    {integral}? ftz? sat? f32 f32
    {integral}? sat? f64 f64
    {integral}? sat? f16 f16
    {integral} bf16 bf16
    ftz? sat? f64 f32
    ~ftz? sat? f32 f16
    sat? f64 f16
    f32|f64 bf16
    {round} ftz? sat? f32 f64
    {round} ~ftz? sat? f16 f32
    {round} sat? f16 f64
    {round}? f16 bf16
    {round}? bf16 f16
    {round} bf16 f32|f64
    rn|rz relu f16|bf16 f32
    rn|rz relu? satfinite f16|bf16 f32
    rn|rz satfinite relu f16|bf16 f32
    rn|rz relu? satfinite? f16x2|bf16x2 f32 = d a b
    rn|rz|rna tf32 f32
    rna satfinite tf32 f32
    rn|rz satfinite? relu tf32 f32
    rn|rz relu? satfinite tf32 f32
    rn satfinite relu? {eight}|{six}|e2m1x2 f32 = d a b
    rn satfinite relu? {eight}|e2m1x2 f16x2
    rn relu? f16x2 {eight}|{six}|e2m1x2
    rz|rp satfinite? ue8m0x2 f32 = d a b
    rz|rp satfinite? ue8m0x2 bf16x2
    rn bf16x2 ue8m0x2
    rs relu? satfinite? f16x2|bf16x2 f32 = d a b e
    rs relu? satfinite e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4 f32 = d v e
    pack sat u16|s16 s32 = d a b
    pack sat u8|s8|u4|s4|u2|s2 s32 b32 = d a b c
"""


@TABLE.row("cvt", "d a", _FORMS)
def cvt(r: Operands) -> list[Result]:
    target, source = r.kind(-2), r.kind(-1)
    if r.has("pack"):
        return _pack(r)
    if r.has("rs"):
        return small.stochastic(r)
    if target in ("f16x2", "bf16x2"):
        return _pair(r, target) if source == "f32" else small.from_small(r, source)
    if target.endswith("x2"):
        return small.to_small(r, target, source)
    (a,) = r.operands(source)
    return r.result(target, _converted(r, a, target, source))


def _converted(r: Operands, a: Value, target: str, source: str) -> Value:
    if not is_float(source):
        if is_float(target):
            return _of_integer(r, a, target)
        return (a.clip(*limits(target)) if r.has("sat") else a).to(target)
    ftz = r.has("ftz") and target != "f16" and source == "f32"  # halves are made of the number
    x = number(a, source, ftz)
    return _of_float(r, a, x, target, source) if is_float(target) else _to_integer(r, x, target)


# -- integer to float ---------------------------------------------------------------------------


def _of_integer(r: Operands, a: Value, target: str) -> Value:
    mode, wide = rounding_of(r.ins), width_of(a.type) == 64
    if target == "f64":
        made = _long_to_double(a, mode) if wide and mode != "rn" else a.to("f64")
    elif target == "f32" and mode == "rn":
        made = a.to("f32")
    else:
        exact = _odd_double(a) if wide else a.to("f64")
        if target == "f32":
            made = make("narrow", "f32", (exact,), mode)
        else:
            made = exact.encoded(target, mode).to("u16")
    return NarrowFloat(target).saturated(made) if r.has("sat") else made


def _magnitude(a: Value) -> tuple[Value, Value]:
    """The size of an integer of 64 bits, and the sign bit of its double."""
    bits = a.bits("u64")
    if not is_signed(a.type):
        return bits, const("u64", 0)
    minus = a.lt(0)
    return minus.select(-bits, bits), minus.select(const("u64", 1 << 63), 0)


def _scaled(whole: Value, power: Value, sign: Value) -> Value:
    """A whole number of at most 53 bits times a power of two, as a double."""
    bits = whole.to("f64").bits("u64")
    return (whole.eq(0).select(bits, bits + (power << 52)) | sign).bits("f64")


def _odd_double(a: Value) -> Value:
    """A 64-bit integer as a double, rounded to odd: the lost low bits leave one sticky bit."""
    size, sign = _magnitude(a)
    sticky = (~(size & 0x7FF).eq(0)).to("u64")
    large = ~(size >> 53).eq(0)
    kept = large.select(size >> 11 | sticky, size)
    return _scaled(kept, large.select(const("u64", 11), 0), sign)


def _long_to_double(a: Value, mode: str) -> Value:
    """A 64-bit integer as a double, in a direction: what 53 bits cannot hold is cut off or up."""
    size, sign = _magnitude(a)
    drop = (size >> 53).eq(0).select(const("u32", 0), const("u32", 11) - size.leading_zeros())
    kept = size >> drop
    lost = ~(kept << drop).eq(size)
    if mode != "rz":
        up = ~sign.eq(0) if mode == "rm" else sign.eq(0)
        kept = kept + (lost & up).to("u64")
    return _scaled(kept, drop.to("u64"), sign)


# -- float to integer ---------------------------------------------------------------------------


def _to_integer(r: Operands, x: Value, target: str) -> Value:
    """The nearest of the type; of a NaN zero, or the top bit where 64 bits are involved."""
    name = next((m for m in r.ins.modifiers if m in _WHOLE), "rzi")
    whole = x.to("f64").rounded(_WHOLE[name])
    least, most = limits(target)
    low, high = whole.le(real("f64", float(least))), real("f64", float(most)).le(whole)
    bad = whole.is_nan()
    inside = (low | high | bad).select(real("f64", 0.0), whole).to(target)
    made = high.select(const(target, most), low.select(const(target, least), inside))
    top = r.kind(-1) == "f64" or width_of(target) == 64
    nan = 1 << width_of(target) - 1 if top else 0
    return bad.select(const(target, nan), made)


# -- float to float -----------------------------------------------------------------------------


def _of_float(r: Operands, a: Value, x: Value, target: str, source: str) -> Value:
    if target == source == "f32" and len(r.ins.modifiers) == 2:
        return a  # a copy
    name = next((m for m in r.ins.modifiers if m in _WHOLE), None)
    if source == "f16" and target == "f64" and name is None:
        x = make("half", "f64", (a,))
    if name is not None:
        x = x.rounded(_WHOLE[name])
    if target == "tf32":
        return small.tf32(r, x)
    mode = rounding_of(r.ins)
    code = NarrowFloat(target)
    if target in ("f16", "bf16"):
        made = finished(r, code, x.encoded(target, mode).to("u16"))
        # NaNs keep their upper bits from f64, unless they are saturated: then they are zero.
        keeps = source == "f64" and not r.has("sat")
        return x.is_nan().select(_upper_bits(x, code), made) if keeps else made
    if target == "f32" and source == "f64":
        x = make("narrow", "f32", (x,), mode)
    made = finished(r, code, x.to(target))
    keeps = target == "f64" or (source in ("f64", "bf16") and name is None)
    return made if keeps else code.clean(made)


def _upper_bits(x: Value, code: NarrowFloat) -> Value:
    """The 16-bit NaN with the sign and the upper bits of a NaN double, made quiet."""
    bits, fraction = x.bits("u64"), code.fraction
    payload = bits >> 52 - fraction & (1 << fraction) - 1
    sign = bits >> 48 & 0x8000
    return (sign | payload | (code.infinity | 1 << fraction - 1)).to("u16")


# -- side by side -------------------------------------------------------------------------------


def _pair(r: Operands, target: str) -> list[Result]:
    """cvt.rn.f16x2.f32 d, a, b: a becomes the upper half, b the lower."""
    one = target.removesuffix("x2")
    a, b = r.operands("f32", "f32")
    return r.result(target, joined([_converted(r, x, one, "f32") for x in (b, a)]))


def _pack(r: Operands) -> list[Result]:
    """cvt.pack.sat: two integers saturated and put side by side, more bits shifted in below."""
    kind = next(m for m in r.ins.modifiers if m[0] in "us" and m[1:].isdigit())
    width = int(kind[1:])
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (
        0, (1 << width) - 1,
    )  # fmt: skip
    a, b, *more = r.operands("s32", "s32", "u32")
    upper, lower = (x.clip(low, high).bits("u32") & (1 << width) - 1 for x in (a, b))
    made = upper << width | lower
    return r.result("u32", made | more[0] << 2 * width if more else made)
