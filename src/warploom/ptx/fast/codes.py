"""cvt in C to and from numbers of four to eight bits, with random bits, to tf32, and of pairs.

Formats are those of `machine.narrow`; numbers of at most a byte are read back by table.
"""

from __future__ import annotations

import numpy as np

from warploom.machine.narrow import FORMATS, decoded, scale_to_bf16
from warploom.machine.rounding import NAN16
from warploom.ptx.emulate.shape import rounding_of, types_of
from warploom.ptx.fast.floats import MODES, numbers
from warploom.ptx.fast.operand import NotTaken, Writer, alone, sources
from warploom.ptx.ir import Instruction, Vector
from warploom.ptx.types import DTYPES

SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0")


def coded(x: str, name: str, mode: str, finite: bool = False, random: str = "0u") -> str:
    """The bits in a format of a double."""
    form = FORMATS[name]
    beyond = form.largest if finite or form.infinity is None else form.infinity
    nan = form.largest if form.nan is None else form.nan
    numbers = f"{1 - form.bias}, {form.fraction_bits}, {form.largest}u, {beyond}u, {nan}u"
    return f"coded({x}, {numbers}, {form.sign}u, {mode}, {random})"


def is_small(kind: str) -> bool:
    return kind.partition("x")[0] in SMALL


def _limited(ins: Instruction, x: str) -> str:
    return f"not_negative((double){x})" if "relu" in ins.modifiers else f"(double){x}"


def _side_by_side(w: Writer, ins: Instruction, target: str, made: list[str]) -> None:
    """Bits of several numbers, the first highest."""
    bits = 8 * DTYPES[target].itemsize
    width = bits // len(made)
    values = [w.value("u32", text) for text in made]
    terms = [f"{x} << {width * (len(made) - 1 - n)}" for n, x in enumerate(values)]
    w.write(ins.operands[0], f"u{bits}", f"(uint{bits}_t)({' | '.join(terms)})")


# -- pairs -----------------------------------------------------------------------------------------


@alone
def to_small(w: Writer, ins: Instruction) -> None:
    """Of two registers, or of a pair of halves, whose upper one comes first."""
    target, source = types_of(ins)
    if source == "f32":
        given = [numbers(w, operand, source)[0] for operand in ins.operands[1:3]]
    else:
        given = numbers(w, ins.operands[1], source)[::-1]
    name, mode = target.removesuffix("x2"), MODES.get(rounding_of(ins))
    finite = "satfinite" in ins.modifiers
    if mode is None:
        raise NotTaken(ins.name)
    if name == "ue8m0":
        made = [f"power_code((double){x}, {mode}, {int(finite)})" for x in given]
    else:
        made = [coded(_limited(ins, x), name, mode, finite) for x in given]
    _side_by_side(w, ins, target, made)


@alone
def from_small(w: Writer, ins: Instruction) -> None:
    target, source = types_of(ins)
    bits = 8 * DTYPES[source].itemsize
    table = _halves(w, source.removesuffix("x2"), "relu" in ins.modifiers)
    last = len(table[1]) - 1
    whole = w.value("u32", w.read(ins.operands[1], f"u{bits}"))
    made = [f"{table[0]}[{whole} >> {shift} & {last}u]" for shift in (bits // 2, 0)]
    _side_by_side(w, ins, target, made)


def _halves(w: Writer, name: str, limited: bool) -> tuple[str, list[int]]:
    """A table of the text: the half, or bf16, of each code."""
    if name == "ue8m0":
        bits = scale_to_bf16(np.arange(256))
    else:
        values = decoded(name)
        values = np.where(values <= 0, 0.0, values) if limited else values
        bits = values.astype(np.float16).view(np.uint16)
        bits = np.where(np.isnan(values), NAN16, bits)
    found = [int(x) for x in bits]
    return w.tables.setdefault(", ".join(map(str, found)), f"places{len(w.tables)}"), found


# -- random bits -----------------------------------------------------------------------------------


@alone
def stochastic(w: Writer, ins: Instruction) -> None:
    target = types_of(ins)[0]
    name, _, count = target.partition("x")
    values = ins.operands[1:3]
    if count == "4":
        if not isinstance(ins.operands[1], Vector):
            raise NotTaken(ins.name)
        values = ins.operands[1].elements
    given = [numbers(w, operand, "f32")[0] for operand in values]
    random = _random_bits(w, w.value("u32", w.read(ins.operands[-1], "u32")), name)
    finite = "satfinite" in ins.modifiers
    made = [
        coded(_limited(ins, x), name, "RS", finite, random[number * 2 // len(given)])
        for number, x in enumerate(given)
    ]
    _side_by_side(w, ins, target, made)


def _random_bits(w: Writer, bits: str, name: str) -> list[str]:
    """Sixteen for the first half of the numbers, and sixteen for the second."""
    texts = [f"{bits} >> 16", f"{bits} & 0xFFFFu"]
    if name == "f16":  # thirteen of them
        texts = [f"({text} & 0x1FFFu) << 3" for text in (f"{bits} >> 16", bits)]
    elif name == "e2m1":  # the upper bytes of both halves, and the lower ones
        texts = [
            f"({bits} >> 16 & 0xFF00u) | ({bits} >> 8 & 0xFFu)",
            f"({bits} >> 8 & 0xFF00u) | ({bits} & 0xFFu)",
        ]
    return [w.value("u32", text) for text in texts]


# -- tf32, and integers that are packed ------------------------------------------------------------


def tf32(w: Writer, ins: Instruction) -> None:
    mode = {**MODES, "rna": "RNA"}[rounding_of(ins)]
    (a,) = numbers(w, ins.operands[1], "f32")
    bits = w.value("u32", f"tf32_code({a}, {mode})")
    if "satfinite" in ins.modifiers:  # the assembler's program for rna steps down from NaNs too
        infinite = f"({bits} & 0x7FFFFFFFu) {'>=' if mode == 'RNA' else '=='} 0x7F800000u"
        bits = w.value("u32", f"{infinite} ? {bits} - 0x2000u : {bits}")
    if "relu" in ins.modifiers:
        bits = w.value("u32", f"{bits} >= 0x80000000u && {bits} <= 0xFF800000u ? 0u : {bits}")
    w.write(ins.operands[0], "u32", bits)


def pack(w: Writer, ins: Instruction) -> None:
    """Two integers, saturated, side by side; more bits are shifted in below."""
    small = next(m for m in ins.modifiers if m[0] in "us" and m[1:].isdigit())
    width = int(small[1:])
    least, most = (
        (-(1 << width - 1), (1 << width - 1) - 1) if small[0] == "s" else (0, (1 << width) - 1)
    )
    kinds = ("s32", "s32", "u32")[: len(ins.operands) - 1]
    a, b, *more = sources(w, ins, *kinds)
    high, low = (
        w.value("u32", f"(uint32_t)({x} < {least} ? {least} : {x} > {most} ? {most} : {x})"
                f" & {(1 << width) - 1}u")
        for x in (a, b)
    )  # fmt: skip
    text = f"{high} << {width} | {low}"
    w.write(ins.operands[0], "u32", f"{text} | {more[0]} << {2 * width}" if more else text)
