"""Video instructions in C. `emulate/video.py` says what each is; 64 bits hold all results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from warploom.ptx.emulate.video import (
    COMPARED,
    SCALARS,
    SEVERALS,
    Source,
    doubt,
    product_of,
    scalar_of,
    several_of,
)
from warploom.ptx.fast.operand import NotTaken, Spell, Writer
from warploom.ptx.ir import Instruction

Kind = TypeVar("Kind")
OPERATIONS: dict[str, Callable[[str, str], str]] = {
    "add": lambda a, b: f"{a} + {b}",
    "sub": lambda a, b: f"{a} - {b}",
    "absdiff": lambda a, b: f"{a} < {b} ? {b} - {a} : {a} - {b}",
    "min": lambda a, b: f"{a} < {b} ? {a} : {b}",
    "max": lambda a, b: f"{a} < {b} ? {b} : {a}",
    "avrg": lambda a, b: f"({a} + {b} + ({a} + {b} >= 0)) >> 1",
    "shl": lambda a, b: f"(int64_t)((uint64_t){a} << {b})",
    "shr": lambda a, b: f"{a} >> {b}",
}
SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _known(what: Callable[[Instruction], Kind], ins: Instruction) -> Kind:
    try:
        if doubt(ins):
            raise NotTaken(ins.name)
        return what(ins)
    except ValueError as error:  # the evaluator says so when a thread comes there
        raise NotTaken(f"{ins.name}: {error}") from error


def _made(w: Writer, ins: Instruction, a: str, b: str) -> str:
    name = ins.opcode.rstrip("24")[1:]
    if name == "set":
        sign = SIGNS[next(word for word in ins.modifiers if word in COMPARED)]
        return w.value("s64", f"{a} {sign} {b}")
    if name in ("shl", "shr"):
        b = w.value("s64", f"{b} & 31" if "wrap" in ins.modifiers else f"{b} < 32 ? {b} : 32")
    return w.value("s64", OPERATIONS[name](a, b))


def _number(w: Writer, bits: str, low: int, width: int, signed: bool) -> str:
    """A part of a register, widened."""
    return w.value("s64", f"({'' if signed else 'u'}int{width}_t)({bits} >> {low})")


def _value(w: Writer, source: Source) -> str:
    bits = w.read(source.operand, "u32")
    return _number(w, bits, source.low, source.width, source.signed)


def _limited(w: Writer, value: str, limits: tuple[int, int] | None) -> str:
    if limits is None:
        return value
    low, high = (f"{limit}ll" for limit in limits)
    return w.value("s64", f"{value} < {low} ? {low} : {value} > {high} ? {high} : {value}")


def scalar(w: Writer, ins: Instruction) -> None:
    it = _known(scalar_of, ins)
    made = _limited(w, _made(w, ins, _value(w, it.a), _value(w, it.b)), it.limits)
    if it.c is not None:
        c = _value(w, Source(it.c, 0, 32, it.signed))
        if it.place is None:
            made = OPERATIONS[it.second or ""](made, c)
        else:
            mask = (1 << it.place[1]) - 1 << it.place[0]
            shifted = f"(uint64_t){made} << {it.place[0]}"
            made = f"({shifted} & 0x{mask:x}ull) | ((uint64_t){c} & ~0x{mask:x}ull)"
    w.write(it.target, "u32", f"(uint32_t)({made})")


def mad(w: Writer, ins: Instruction) -> None:
    it = _known(product_of, ins)
    a, b, c = (_value(w, source) for source in it.sources)
    sign = "-" if it.minus else ""
    total = f"{sign}({a} * {b}) {'-' if it.sources[2].minus else '+'} {c} + {it.one}"
    made = _limited(w, w.value("s64", f"({total}) >> {it.shift}"), it.limits)
    w.write(it.target, "u32", f"(uint32_t){made}")


def several(w: Writer, ins: Instruction) -> None:
    it = _known(several_of, ins)
    words = [w.value("u32", w.read(operand, "u32")) for operand in (it.a, it.b)]
    out = w.value("u32", w.read(it.c, "u32"))
    ones = (1 << it.width) - 1
    for lane, places in enumerate(it.places):
        if not it.chosen[lane]:
            continue
        a, b = (
            _number(w, words[at // 32], at % 32, it.width, signed)
            for at, signed in zip(places, it.signed, strict=True)
        )
        made = _limited(w, _made(w, ins, a, b), it.limits)
        low = it.width * lane
        if "add" in ins.modifiers:
            out = w.value("u32", f"{out} + (uint32_t){made}")
        else:
            kept = f"{out} & 0x{0xFFFFFFFF & ~(ones << low):x}u"
            out = w.value("u32", f"({kept}) | ((uint32_t){made} & 0x{ones:x}u) << {low}")
    w.write(it.target, "u32", out)


TABLE: dict[str, Spell] = {
    **dict.fromkeys(SCALARS, scalar), "vmad": mad, **dict.fromkeys(SEVERALS, several),
}  # fmt: skip
