"""Video instructions: sums, differences, extremes, shifts and comparisons of bytes and halves.

A scalar one takes a part of each source, widens it by its type's sign, and computes in more bits
than a register has; the result is saturated, then joined with a third operand or put into a part of
it. Those on pairs and fours do it in every part of a register at once. `Scalar`, `VideoProduct` and
`Several` say what an instruction is, what it reads; operands that are
none raise `ValueError`, which becomes an error with a place.

Today's machines have few of these instructions: ptxas (13.0, for sm_90) makes the scalar ones of
others, and not always what the manual says. Saturated to .u32, a result beyond 2³² - 1 is cut to 32
bits; saturated into a byte or a half, a negative one becomes the largest number; `.min` and `.max`
see 32 bits of the result; what goes into the upper half is the upper half of the result; products
that are scaled or saturated take all factors as signed. `doubt` knows from the operands' widths
whether a result can come there, and then the instruction is refused: neither answer would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warploom.machine.value.ir import Value, const
from warploom.ptx.ir import Component, Immediate, Instruction, Minus, Operand, Part, Register
from warploom.ptx.meaning.compare import holds
from warploom.ptx.meaning.shape import Operands, Result, Table, Unsupported
from warploom.ptx.types import types_of

TABLE = Table()
PLACES = {f"b{n}": (8 * n, 8) for n in range(4)} | {f"h{n}": (16 * n, 16) for n in range(2)}
SECOND = frozenset(("add", "min", "max"))
SCALES = {"shr7": 7, "shr15": 15}
USUAL = {2: ("10", "32"), 4: ("3210", "7654")}  # what is taken of a and b where nothing is said
# Of scalar video instructions only the forms of which ptxas makes for sm_90 what the manual says;
# of some it does so for narrow sources alone: `doubt` knows.
_SCALAR = """
    {word} {word} {word} sat? = d a b
    {word} {word} {word} sat? add = d a b c
    {word} {word} {word} sat min|max = d a b c
    s32 {word} {word} min|max = d a b c
    {word} {word} {word} = d.part a b c
"""
_NOT_NEGATIVE = """
    u32 u32 u32 min|max = d a b c
    {word} u32 u32 sat = d.part a b c
"""
_SHIFTED = """
    {word} {word} u32 clamp|wrap = d a b
    {word} {word} u32 clamp|wrap add = d a b c
    {word} {word} u32 clamp|wrap = d.part a b c
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A number in a register: its lowest bit, its width, and whether its top bit is a sign."""

    operand: Operand
    low: int
    width: int
    signed: bool
    minus: bool = False


@dataclass(frozen=True, slots=True)
class Scalar:
    """One operation. `limits`: what the result is cut off at; `place`: where it goes in `c`."""

    target: Operand
    a: Source
    b: Source
    c: Operand | None
    signed: bool  # the result, and with it c
    limits: tuple[int, int] | None
    second: str | None
    place: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class VideoProduct:
    """±a·b ± c, perhaps plus one, shifted to the right."""

    target: Operand
    sources: tuple[Source, Source, Source]
    minus: bool  # of the product
    one: int
    shift: int
    limits: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Several:
    """Two or four operations: of each, the first bit of both sources in b and a side by side."""

    target: Operand
    a: Operand
    b: Operand
    c: Operand
    width: int
    signed: tuple[bool, bool]
    places: tuple[tuple[int, int], ...]
    chosen: tuple[bool, ...]  # which results count
    limits: tuple[int, int] | None


# -- what an instruction is -------------------------------------------------------------------


def limits_of(width: int, signed: bool) -> tuple[int, int]:
    half = 1 << width - 1
    return (-half, half - 1) if signed else (0, 2 * half - 1)


def _kinds(ins: Instruction) -> list[bool]:
    """Whether result and sources are signed; what a comparison gives is not."""
    signed = [kind == "s32" for kind in types_of(ins)]
    return [False, *signed] if ins.opcode.startswith("vset") else signed


def _word(operand: Operand, constants: bool = True) -> Operand:
    """A register of 32 bits, or a constant."""
    if isinstance(operand, Immediate) and constants:
        return operand
    register = operand.register if isinstance(operand, Component) else operand
    if not isinstance(register, Register) or register.type not in ("b32", "u32", "s32"):
        raise ValueError(f"a register of 32 bits{' or a number' * constants} is needed")
    return operand


def _place(selector: str) -> tuple[int, int]:
    if selector not in PLACES:
        raise ValueError(f".{selector} is neither a byte nor a half of a register")
    return PLACES[selector]


def _source(operand: Operand, signed: bool) -> Source:
    minus = isinstance(operand, Minus)
    whole = operand.operand if isinstance(operand, Minus) else operand
    low, width = 0, 32
    if isinstance(whole, Part):
        low, width = _place(whole.selector)
        whole = whole.register
    return Source(_word(whole), low, width, signed, minus)


def _positive(source: Source) -> Source:
    if source.minus:
        raise ValueError("only vmad takes an operand with its sign turned")
    return source


def scalar_of(ins: Instruction) -> Scalar:
    signed, *kinds = _kinds(ins)
    target, *sources = ins.operands
    a, b = (_positive(_source(*each)) for each in zip(sources[:2], kinds, strict=True))
    second = next((word for word in ins.modifiers if word in SECOND), None)
    place = None
    if isinstance(target, Part):
        place, target = _place(target.selector), target.register
    if (place is not None) != (len(sources) == 3 and second is None):
        raise ValueError("a third source goes with a part of the destination, as in %r1.b0")
    width = 32 if place is None else place[1]
    limits = limits_of(width, signed) if "sat" in ins.modifiers else None
    c = _word(sources[2]) if len(sources) == 3 else None
    return Scalar(_word(target, constants=False), a, b, c, signed, limits, second, place)


def product_of(ins: Instruction) -> VideoProduct:
    _, *kinds = _kinds(ins)
    target, *sources = ins.operands
    a, b = (_source(*each) for each in zip(sources[:2], kinds, strict=True))
    minus = a.minus != b.minus
    signed = any(kinds) or minus or isinstance(sources[2], Minus)
    c = _source(sources[2], signed)
    if c.width != 32:
        raise ValueError("c is a whole register")
    if minus and c.minus:
        raise ValueError("the sign of a·b or that of c may be turned, not both")
    po = "po" in ins.modifiers
    if po and (a.minus or b.minus or c.minus):
        raise ValueError("with .po no sign is turned")
    shift = next((SCALES[word] for word in ins.modifiers if word in SCALES), 0)
    limits = limits_of(32, signed) if "sat" in ins.modifiers else None
    return VideoProduct(_word(target, constants=False), (a, b, c), minus, int(po), shift, limits)


def several_of(ins: Instruction) -> Several:
    lanes = int(ins.opcode[-1])
    signed, *kinds = _kinds(ins)
    width = 32 // lanes
    digits = []
    for operand, usual in zip(ins.operands[1:3], USUAL[lanes], strict=True):
        highest = 2 * lanes - 1
        pattern = f"{'h' if lanes == 2 else 'b'}[0-{highest}]{{{lanes}}}"
        digits.append(_selected(operand, usual, pattern)[::-1])
    masks = "h(?=.)1?0?" if lanes == 2 else "b(?=.)3?2?1?0?"
    chosen = _selected(ins.operands[0], USUAL[lanes][0], masks)
    target, a, b, c = (
        _word(each.register if isinstance(each, Part) and number < 3 else each, constants=False)
        for number, each in enumerate(ins.operands)
    )
    return Several(
        target, a, b, c, width, (kinds[0], kinds[1]),
        tuple((width * int(x), width * int(y)) for x, y in zip(*digits, strict=True)),
        tuple(str(lane) in chosen for lane in range(lanes)),
        limits_of(width, signed) if "sat" in ins.modifiers else None,
    )  # fmt: skip


def _selected(operand: Operand, usual: str, pattern: str) -> str:
    """The digits of a selector."""
    if not isinstance(operand, Part):
        return usual
    if not re.fullmatch(pattern, operand.selector):
        raise ValueError(f"here .{operand.selector} selects nothing")
    return operand.selector[1:]


# -- where the manual and ptxas part --------------------------------------------------------------


def _span(source: Source) -> tuple[int, int]:
    return limits_of(source.width, source.signed)


def _results(name: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The smallest and the largest result."""
    match name:
        case "vadd":
            return a[0] + b[0], a[1] + b[1]
        case "vsub":
            return a[0] - b[1], a[1] - b[0]
        case "vabsdiff":
            return 0, max(a[1] - b[0], b[1] - a[0])
        case "vmin":
            return min(a[0], b[0]), min(a[1], b[1])
        case "vmax":
            return max(a[0], b[0]), max(a[1], b[1])
        case "vset":
            return 0, 1
        case _:  # to the right; the table has no shift to the left of which the upper bits matter
            return a


def doubt(ins: Instruction) -> str:
    """Why the manual and ptxas may give two results; empty where they do not."""
    if ins.opcode[-1] in "24":
        return ""
    if ins.opcode == "vmad":
        it = product_of(ins)
        scaled = it.limits is not None or it.shift
        whole = any(not source.signed and source.width == 32 for source in it.sources[:2])
        return "factors of 32 bits without a sign" if scaled and whole else ""
    one = scalar_of(ins)
    if one.place == PLACES["h1"]:
        return "a result in the upper half"
    low, high = _results(ins.opcode, _span(one.a), _span(one.b))
    compared = one.second in ("min", "max")
    most = limits_of(32, one.signed)
    if one.limits is not None and not one.signed:
        most = (low, most[1] >> compared)
    elif one.limits is not None:
        most = (low, high)
    if (compared or one.limits is not None) and not most[0] <= low <= high <= most[1]:
        return "a result of more than 32 bits"
    return "a negative result" if one.place and one.limits is not None and low < 0 else ""


# -- what it computes, in 64 bits, which are more than the widest result has ------------------


def _average(a: Value, b: Value) -> Value:
    """Half of the sum; what is between two numbers goes away from zero."""
    total = a + b
    return total + const("s64", 0).le(total).to("s64") >> 1


OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "absdiff": lambda a, b: a.lt(b).select(b - a, a - b),
    "min": lambda a, b: a.min(b),
    "max": lambda a, b: a.max(b),
    "avrg": _average,
}


def _operation(r: Operands, a: Value, b: Value) -> Value:
    name = r.ins.opcode.rstrip("24")[1:]
    if name == "set":
        return holds(r, a, b).to("s64")
    if name not in ("shl", "shr"):
        return OPERATIONS[name](a, b)
    amount = (b & 31 if r.has("wrap") else b.min(32)).to("u32")
    return a << amount if name == "shl" else a >> amount


def _extended(bits: Value, low: int, width: int, signed: bool) -> Value:
    return bits.field(low, f"{'s' if signed else 'u'}{width}").to("s64")


def _value(r: Operands, source: Source) -> Value:
    return _extended(r.read(source.operand, "u32"), source.low, source.width, source.signed)


def _limited(value: Value, limits: tuple[int, int] | None) -> Value:
    return value if limits is None else value.clip(*limits)


def _checked(r: Operands) -> None:
    found = doubt(r.ins)
    if found:
        raise Unsupported(f"{r.ins.name} where it may have {found}: ptxas and the manual disagree")


@TABLE.row(
    "vset",
    "d a b",
    """
    {word} {word} {order}
    {word} {word} {order} add = d a b c
    u32 {word} {order} min|max = d a b c
    {word} {word} {order} = d.part a b c
    """,
)
@TABLE.row(
    "vshr",
    "d a b",
    _SHIFTED
    + """
    {word} {word} u32 sat clamp|wrap = d a b
    {word} {word} u32 sat clamp|wrap {second} = d a b c
    s32 {word} u32 clamp|wrap min|max = d a b c
    u32 u32 u32 clamp|wrap min|max = d a b c
    """,
)
@TABLE.row("vshl", "d a b", _SHIFTED)
@TABLE.row("vsub", "d a b", _SCALAR)
@TABLE.row(
    "vabsdiff",
    "d a b",
    _SCALAR + "u32 {word} {word} min|max = d a b c\n{word} {word} {word} sat = d.part a b c",
)
@TABLE.row("vadd vmin vmax", "d a b", _SCALAR + _NOT_NEGATIVE)
def scalar(r: Operands) -> list[Result]:
    _checked(r)
    it = scalar_of(r.ins)
    made = _limited(_operation(r, _value(r, it.a), _value(r, it.b)), it.limits)
    if it.c is not None:
        c = _value(r, Source(it.c, 0, 32, it.signed))
        made = _joined(it, made, c)
    return [Result(it.target, "u32", made.to("u32"))]


def _joined(it: Scalar, value: Value, c: Value) -> Value:
    """A result with c: by a second operation, or put into a part of it."""
    if it.place is None:
        return OPERATIONS[it.second or ""](value, c)
    low, width = it.place
    mask = (1 << width) - 1 << low
    return (value << low & mask) | (c & ~mask)


@TABLE.row(
    "vmad",
    "d a b c",
    "{word} {word} {word} po?\n{word} {signs} po? sat? shr7|shr15\n{word} {signs} po? sat",
)
def mad(r: Operands) -> list[Result]:
    """a·b + c, of which a shift to the right keeps the upper bits."""
    _checked(r)
    it = product_of(r.ins)
    a, b, c = (_value(r, source) for source in it.sources)
    product = -(a * b) if it.minus else a * b
    total = product - c if it.sources[2].minus else product + c
    made = _limited(total + it.one >> it.shift, it.limits)
    return [Result(it.target, "u32", made.to("u32"))]


@TABLE.row("vset2 vset4", "d a b c", "{word} {word} {order} add?")
@TABLE.row(
    "vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4",
    "d a b c",
    "{word} {word} {word} sat|add?",
)
def several(r: Operands) -> list[Result]:
    it = several_of(r.ins)
    first, second, out = (r.read(operand, "u32") for operand in (it.a, it.b, it.c))
    ones = (1 << it.width) - 1
    for lane, places in enumerate(it.places):
        if not it.chosen[lane]:
            continue
        a, b = (
            _extended(first if at < 32 else second, at % 32, it.width, signed)
            for at, signed in zip(places, it.signed, strict=True)
        )
        made = _limited(_operation(r, a, b), it.limits).to("u32")
        low = it.width * lane
        out = out + made if r.has("add") else (out & ~(ones << low)) | ((made & ones) << low)
    return [Result(it.target, "u32", out)]
