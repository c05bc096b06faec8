"""Comparisons in C, and what chooses by them."""

from __future__ import annotations

from warploom.ptx.emulate.shape import type_of
from warploom.ptx.fast import floats
from warploom.ptx.fast.operand import Spell, Writer, sources, sources_bits
from warploom.ptx.ir import Instruction, Operand, Pair
from warploom.ptx.types import DTYPES, is_float

_ORDERED = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=",
    "hi": ">", "hs": ">=",
}  # fmt: skip
_JOIN = {"and": "&", "or": "|", "xor": "^"}
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")


def compared(w: Writer, ins: Instruction, kind: str) -> list[str]:
    """Whether the comparison holds, 0 or 1: of a pair for the lower numbers, then the upper."""
    if is_float(kind) and kind != "f64":
        ftz = "ftz" in ins.modifiers and not kind.startswith("bf16")
        read = [floats.numbers(w, x, kind, flushed=ftz) for x in ins.operands[1:3]]
    else:
        read = [[x] for x in sources(w, ins, kind, kind)]
    return [_holds(w, ins, kind, a, b) for a, b in zip(*read, strict=True)]


def _holds(w: Writer, ins: Instruction, kind: str, a: str, b: str) -> str:
    name = next(m for m in ins.modifiers if m in (*_ORDERED, *_UNORDERED, "num", "nan"))
    nan = f"(({a} != {a}) | ({b} != {b}))"
    if name in ("num", "nan"):
        return w.value("pred", nan if name == "nan" else f"{nan} ^ 1")
    if is_float(kind) and name in ("ne", "neu"):  # not equal is false if one of them is no number
        text = f"(({a} < {b}) | ({a} > {b}))"
    else:
        text = f"({a} {_ORDERED[name[:2]]} {b})"
    return w.value("pred", f"{text} | {nan}" if name in _UNORDERED else text)


def combined(w: Writer, ins: Instruction, holds: str) -> str:
    join = next((m for m in ins.modifiers if m in ("and", "or", "xor")), None)
    return f"{holds} {_JOIN[join]} {w.read(ins.operands[3], 'pred')}" if join else holds


def setp(w: Writer, ins: Instruction) -> None:
    """The second result is the opposite of the first, or of a pair what the upper numbers give."""
    holds = compared(w, ins, type_of(ins))
    if len(holds) == 1:
        holds.append(f"({holds[0]} ^ 1u)")
    targets: tuple[Operand, ...] = (ins.operands[0],)
    if isinstance(ins.operands[0], Pair):
        targets = (ins.operands[0].first, ins.operands[0].second)
    texts = [combined(w, ins, text) for text in holds]
    made = [w.value("pred", text) for text in texts[: len(targets)]]
    for target, text in zip(targets, made, strict=True):
        w.write(target, "pred", text)


_ONES = {"f32": "0x3F800000u", "f16": "0x3C00u", "bf16": "0x3F80u"}


def set_(w: Writer, ins: Instruction) -> None:
    target, source = type_of(ins, -2), type_of(ins, -1)
    holds = [combined(w, ins, text) for text in compared(w, ins, source)]
    if len(holds) == 2:
        yes = _ONES.get(target.removesuffix("x2"), "0xFFFFu")
        low, high = (f"(({text}) ? {yes} : 0u)" for text in holds)
        w.write(ins.operands[0], "u32", f"{high} << 16 | {low}")
        return
    bits = 8 * DTYPES[target].itemsize
    yes = _ONES.get(target, f"(uint{bits}_t)~0ull")
    w.write(ins.operands[0], f"u{bits}", f"({holds[0]}) ? {yes} : 0")


def selp(w: Writer, ins: Instruction) -> None:
    kind = f"u{8 * DTYPES[type_of(ins)].itemsize}"
    a, b = sources_bits(w, ins, type_of(ins), type_of(ins))
    w.write(ins.operands[0], kind, f"{w.read(ins.operands[3], 'pred')} ? {a} : {b}")


def slct(w: Writer, ins: Instruction) -> None:
    kind, tested = f"u{8 * DTYPES[type_of(ins, -2)].itemsize}", type_of(ins, -1)
    a, b = sources_bits(w, ins, type_of(ins, -2), type_of(ins, -2))
    c = w.value(tested, w.read(ins.operands[3], tested))
    if "ftz" in ins.modifiers:
        c = w.value(tested, f"flush({c})")
    w.write(ins.operands[0], kind, f"{c} >= 0 ? {a} : {b}")


TABLE: dict[str, Spell] = {"setp": setp, "set": set_, "selp": selp, "slct": slct}
