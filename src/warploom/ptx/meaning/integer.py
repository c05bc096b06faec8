"""Integer arithmetic: add to mad, carries, division, minima, dot products."""

from __future__ import annotations

from collections.abc import Callable

from warploom.machine.value.ir import FALSE, TRUE, Value, const, is_signed, limits, unsigned
from warploom.ptx.meaning.shape import CARRY, Meaning, Operands, Result, Table, pairwise

WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64", "u8": "u16", "s8": "s16"}
TABLE = Table()
_SUM = """
    {integer}
    sat s32
    cc {carry}
"""


@TABLE.row("addc subc", "d a b", "cc? {carry}", reads_carry=True)
@TABLE.row("sub", "d a b", _SUM)
@TABLE.row("add", "d a b", "u16x2|s16x2" + _SUM)
def add(r: Operands) -> list[Result]:
    kind, minus = r.kind(), r.ins.opcode.startswith("sub")
    if _carries(r):
        bits = unsigned(kind)
        a, b = r.operands(bits, bits)
        return _with_carry(r, a, ~b if minus else b, TRUE if minus else FALSE)

    def total(a: Value, b: Value) -> Value:
        return a - b if minus else a + b

    if kind.endswith("x2"):
        return r.result(kind, pairwise(kind[:-2], total, *r.operands(kind, kind)))
    a, b = r.operands(kind, kind)
    if r.has("sat"):
        return r.result(kind, saturated(total(a.to("s64"), b.to("s64")), kind))
    return r.result(kind, total(a, b))


def saturated(value: Value, kind: str) -> Value:
    """A number of 64 bits as the nearest of a smaller type."""
    return value.clip(*limits(kind)).to(kind)


def _reads_carry(r: Operands) -> bool:
    """addc, subc and madc take the carry flag."""
    return r.ins.opcode.endswith("c")


def _carries(r: Operands) -> bool:
    return r.has("cc") or _reads_carry(r)


def _with_carry(r: Operands, a: Value, b: Value, first: Value) -> list[Result]:
    """a + b plus the carry that comes in (a − b is a + ~b + 1), and the carry that goes out."""
    carry = r.read(CARRY, "pred") if _reads_carry(r) else first
    part = a + b
    total = part + carry.to(part.type)
    results = r.result(total.type, total)
    if r.has("cc"):
        results.append(Result(CARRY, "pred", part.lt(a) | total.lt(part)))
    return results


# -- multiplication ---------------------------------------------------------------------------


def _product(r: Operands, a: Value, b: Value) -> Value:
    """The lower or upper half of a product, or all of it."""
    if r.has("wide"):
        wide = WIDER[a.type]
        return a.to(wide) * b.to(wide)
    return a.high_product(b) if r.has("hi") else a * b


@TABLE.row("mul", "d a b", "lo|hi {integer}\nwide u16|u32|s16|s32")
def mul(r: Operands) -> list[Result]:
    a, b = r.operands(r.kind(), r.kind())
    made = _product(r, a, b)
    return r.result(made.type, made)


@TABLE.row("madc", "d a b c", "lo|hi cc? {carry}", reads_carry=True)
@TABLE.row(
    "mad",
    "d a b c",
    "lo|hi {integer}\nwide u16|u32|s16|s32\nhi sat s32\nlo|hi cc {carry}",
)
def mad(r: Operands) -> list[Result]:
    kind = r.kind()
    a, b, c = r.operands(kind, kind, WIDER[kind] if r.has("wide") else kind)
    made = _product(r, a, b)
    if _carries(r):
        bits = unsigned(kind)
        return _with_carry(r, made.bits(bits), c.bits(bits), FALSE)
    return r.result(made.type, _sum(r, made, c))


def _sum(r: Operands, a: Value, b: Value) -> Value:
    if r.has("sat"):
        return saturated(a.to("s64") + b.to("s64"), a.type)
    return a + b


@TABLE.row("mad24", "d a b c", "lo|hi u32|s32\nhi sat s32")
@TABLE.row("mul24", "d a b", "lo|hi u32|s32")
def mul24(r: Operands) -> list[Result]:
    """The lower 32 bits of the product of the lowest 24 bits, or those from the 16th on."""
    kind = r.kind()
    a, b, *more = r.operands(kind, kind, kind)
    product = _low24(a) * _low24(b) >> (16 if r.has("hi") else 0)
    made = product.to(kind)
    return r.result(kind, _sum(r, made, more[0]) if more else made)


def _low24(x: Value) -> Value:
    return (x << 8 >> 8).to("s64")


# -- division ---------------------------------------------------------------------------------


@TABLE.row("div rem", "d a b", "{integer}")
def div(r: Operands) -> list[Result]:
    """Rounded towards zero; division by zero gives all ones, as does the remainder of it."""
    kind = r.kind()
    a, b = r.operands(kind, kind)
    zero, one = b.eq(0), const(kind, 1)
    divides = r.ins.opcode == "div"
    minus, divisor = FALSE, zero.select(one, b)
    if is_signed(kind):  # by -1 the smallest number has no quotient
        minus = b.eq(-1)
        divisor = (zero | minus).select(one, b)
    made = a.quotient(divisor) if divides else a.remainder(divisor)
    made = minus.select(-a, made) if divides else made
    return r.result(kind, zero.select(const(kind, -1), made))


# -- the rest ---------------------------------------------------------------------------------


@TABLE.row("min max", "d a b", "u16|u32|u64|s16|s64|u16x2\nrelu? s32|s16x2")
def extremum(r: Operands) -> list[Result]:
    kind = r.kind()

    def chosen(a: Value, b: Value) -> Value:
        made = a.min(b) if r.ins.opcode == "min" else a.max(b)
        return made.max(0) if r.has("relu") else made

    operands = r.operands(kind, kind)
    if kind.endswith("x2"):
        return r.result(kind, pairwise(kind[:-2], chosen, *operands))
    return r.result(kind, chosen(*operands))


@TABLE.row("neg", "d a", "s16|s32|s64")
def neg(r: Operands) -> list[Result]:
    (a,) = r.operands(r.kind())
    return r.result(a.type, -a)


@TABLE.row("abs", "d a", "s16|s32|s64")
def absolute(r: Operands) -> list[Result]:
    (a,) = r.operands(r.kind())
    return r.result(a.type, a.lt(0).select(-a, a))


@TABLE.row("sad", "d a b c", "{integer}")
def sad(r: Operands) -> list[Result]:
    """c + |a − b|"""
    a, b, c = r.operands(*[r.kind()] * 3)
    return r.result(a.type, c + a.lt(b).select(b - a, a - b))


def _dot(parts: Callable[[Value, Value], list[tuple[Value, Value]]]) -> Meaning:
    """c plus the sum of the products of pairs, modulo 2³²."""

    def meaning(r: Operands) -> list[Result]:
        kind = "s32" if "s32" in (r.kind(-2), r.kind(-1)) else "u32"
        a, b, total = r.operands("b32", "b32", kind)
        for x, y in parts(a, b) if not r.has("hi") else parts(a, b >> 16):
            first = x.bits(f"{r.kind(-2)[0]}{x.type[1:]}").to(kind)
            total = total + first * y.bits(f"{r.kind(-1)[0]}8").to(kind)
        return r.result(kind, total)

    return meaning


TABLE.row("dp4a", "d a b c", "u32|s32 u32|s32")(
    _dot(lambda a, b: [(a.field(8 * n, "u8"), b.field(8 * n, "u8")) for n in range(4)])
)
TABLE.row("dp2a", "d a b c", "lo|hi u32|s32 u32|s32")(
    _dot(lambda a, b: [(a.field(16 * n, "u16"), b.field(8 * n, "u8")) for n in range(2)])
)
