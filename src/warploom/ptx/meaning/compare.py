"""Comparisons, and what chooses by them: setp, set, selp, slct."""

from __future__ import annotations

from warploom.machine.value.ir import Value, const
from warploom.ptx.ir import Operand, Pair
from warploom.ptx.meaning.number import flushed, numbers
from warploom.ptx.meaning.shape import Operands, Result, Table, value_type
from warploom.ptx.types import is_float

# Each by `eq`, `lt` and `le`: whether the operands are swapped, and the result turned around.
_ORDERED = {
    "eq": ("eq", False, False), "ne": ("eq", False, True), "lt": ("lt", False, False),
    "le": ("le", False, False), "gt": ("lt", True, False), "ge": ("le", True, False),
    "lo": ("lt", False, False), "ls": ("le", False, False), "hi": ("lt", True, False),
    "hs": ("le", True, False),
}  # fmt: skip
TABLE = Table()
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")
_NAMES = (*_ORDERED, *_UNORDERED, "num", "nan")
_ONES = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f64": 0x3FF0 << 48}


def holds(r: Operands, a: Value, b: Value) -> Value:
    """The comparison among the modifiers. NaN: ordered ones are false, the others true."""
    name = next(m for m in r.ins.modifiers if m in _NAMES)
    if a.type[0] != "f":
        return _ordered(name, a, b)
    number = a.eq(a) & b.eq(b)
    match name:
        case "num":
            return number
        case "nan":
            return ~number
        case "ne":
            return a.lt(b) | b.lt(a)
        case "neu":
            return ~a.eq(b)
        case _:
            plain = _ordered(name[:2], a, b)
            return plain | ~number if name in _UNORDERED else plain


def _ordered(name: str, a: Value, b: Value) -> Value:
    basic, swapped, turned = _ORDERED[name]
    x, y = (b, a) if swapped else (a, b)
    made = {"eq": x.eq, "lt": x.lt, "le": x.le}[basic](y)
    return ~made if turned else made


def _compared(r: Operands, kind: str) -> list[Value]:
    """Whether it holds: of a pair for the lower numbers, then for the upper ones."""
    if not is_float(kind):
        return [holds(r, *r.operands(kind, kind))]
    ftz = r.has("ftz") and not kind.startswith("bf16")
    read = [numbers(r, operand, kind, ftz) for operand in r.ins.operands[1:3]]
    return [holds(r, a, b) for a, b in zip(*read, strict=True)]


def _combined(r: Operands, truths: list[Value]) -> list[Value]:
    """Joined with a predicate, where one is given."""
    join = next((m for m in r.ins.modifiers if m in ("and", "or", "xor")), None)
    if join is None:
        return truths
    other = r.read(r.ins.operands[3], "pred")
    return [
        {"and": truth & other, "or": truth | other, "xor": truth ^ other}[join] for truth in truths
    ]


def _joinable(operands: str, rows: str) -> str:
    """Comparisons, each plain and, at JOIN, joined with one more predicate."""
    return "\n".join(
        row.replace("JOIN", join) + f" = {operands}{more}"
        for row in rows.strip().split("\n")
        for join, more in (("", ""), ("{join}", " c"))
    )


@TABLE.row(
    "setp",
    "d|p a b",
    _joinable(
        "d|p a b",
        """
        eq|ne JOIN {bits}
        {order} JOIN {integer}
        {unsigned_order} JOIN u16|u32|u64
        {order}|{unordered} JOIN ftz? f32|{half}
        {order}|{unordered} JOIN f64|{brain}
    """,
    ),
)  # fmt: skip
def setp(r: Operands) -> list[Result]:
    """setp.lt.and.s32 p|q, a, b, c: p = (a < b) and c, q = not (a < b) and c; of pairs p is for
    the lower and q for the upper numbers."""
    truths = _compared(r, r.kind())
    if len(truths) == 1:
        truths.append(~truths[0])
    target = r.ins.operands[0]
    targets: tuple[Operand, ...] = (target,)
    if isinstance(target, Pair):
        targets = (target.first, target.second)
    made = _combined(r, truths[: len(targets)])
    return [Result(one, "pred", truth) for one, truth in zip(targets, made, strict=True)]


@TABLE.row(
    "set",
    "d a b",
    _joinable(
        "d a b",
        """
        eq|ne JOIN u32|s32|f32 {bits}
        {order} JOIN u32|s32|f32 {integer}
        {unsigned_order} JOIN u32|s32|f32 u16|u32|u64
        {order}|{unordered} JOIN ftz? u32|s32|f32 f32
        {order}|{unordered} JOIN u32|s32|f32 f64
        {order}|{unordered} JOIN ftz? u16|s16|u32|s32|f16 f16
        {order}|{unordered} JOIN u16|s16|u32|s32|bf16 bf16
        {order}|{unordered} JOIN ftz? u32|s32|f16x2 f16x2
        {order}|{unordered} JOIN u32|s32|bf16x2 bf16x2
    """,
    ),
)  # fmt: skip
def set_(r: Operands) -> list[Result]:
    """set.lt.u32.f32: all ones (or 1.0 for a floating result) where the comparison holds."""
    target, source = r.kind(-2), r.kind(-1)
    truths = _combined(r, _compared(r, source))
    if len(truths) == 2:
        yes = const("u32", _ONES.get(target.removesuffix("x2"), 0xFFFF))
        low, high = (truth.select(yes, 0) for truth in truths)
        return r.result("u32", low | high << 16)
    bits = f"u{value_type(target)[1:]}"
    yes = const(bits, _ONES.get(target, -1))
    return r.result(bits, truths[0].select(yes, 0))


@TABLE.row("selp", "d a b c", "{any}")
def selp(r: Operands) -> list[Result]:
    a, b = r.operands(r.kind(), r.kind())
    return r.result(r.kind(), r.read(r.ins.operands[3], "pred").select(a, b))


@TABLE.row("slct", "d a b c", "{any} s32\n{any} ftz? f32\nftz {any} f32")
def slct(r: Operands) -> list[Result]:
    """a where c is not negative (−0 counts as zero, NaN as negative), else b."""
    kind, tested = r.kind(-2), r.kind(-1)
    a, b, c = r.operands(kind, kind, tested)
    c = flushed(c) if r.has("ftz") else c
    return r.result(kind, const(c.type, 0).le(c).select(a, b))
