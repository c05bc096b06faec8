"""Arithmetic, logic, comparisons and conversions in C, as the NumPy evaluator computes them."""

from __future__ import annotations

from collections.abc import Callable

from warploom.ptx.emulate.bits import PRMT_MODES
from warploom.ptx.emulate.shape import type_of
from warploom.ptx.fast import floats
from warploom.ptx.fast.convert import cvt
from warploom.ptx.fast.operand import NotTaken, Spell, Writer, alone, scalar, sources
from warploom.ptx.ir import Immediate, Instruction, Operand, Pair, Vector
from warploom.ptx.table import OPCODES
from warploom.ptx.types import DTYPES, is_float, is_signed

WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
SIGN = {"add": "+", "and": "&", "or": "|", "xor": "^"}


# -- sums and products ----------------------------------------------------------------------------


def add(w: Writer, ins: Instruction) -> None:
    kind, sign = type_of(ins), "-" if ins.opcode.startswith("sub") else "+"
    if is_float(kind):
        floats.add(w, ins)
    elif "cc" in ins.modifiers or OPCODES[ins.opcode].reads_carry:
        a, b = sources(w, ins, f"u{kind[1:]}", f"u{kind[1:]}")
        _carried(w, ins, f"u{kind[1:]}", a, f"~{b}" if sign == "-" else b)
    elif kind.endswith("x2"):
        _in_pairs(w, ins, kind, lambda a, b: f"{a} {sign} {b}")
    elif "sat" in ins.modifiers:
        a, b = sources(w, ins, kind, kind)
        w.write(ins.operands[0], kind, _clipped(kind, f"(int64_t){a} {sign} (int64_t){b}"))
    else:
        kind = f"u{kind[1:]}"
        a, b = sources(w, ins, kind, kind)
        w.write(ins.operands[0], kind, f"{a} {sign} {b}")


def _clipped(kind: str, text: str) -> str:
    """A number of 64 bits as the nearest of a smaller type."""
    return f"clipped_{kind}({text})"


def _in_pairs(w: Writer, ins: Instruction, kind: str, make: Callable[[str, str], str]) -> None:
    """On two numbers of 16 bits side by side."""
    part = f"{kind[0]}16"
    words = sources(w, ins, "u32", "u32")
    halves = []
    for shift in (0, 16):
        a, b = (w.value(part, f"({scalar(part)})({word} >> {shift})") for word in words)
        halves.append(w.value("u16", f"(uint16_t)({make(a, b)})"))
    w.write(ins.operands[0], "u32", f"(uint32_t){halves[1]} << 16 | {halves[0]}")


def _carried(w: Writer, ins: Instruction, kind: str, a: str, b: str) -> None:
    """A sum with the carry that comes in, and the one that goes out; a - b is a + ~b + 1."""
    name = scalar(kind)
    b = w.value(kind, f"({name})({b})")
    minus = ins.opcode.startswith("sub")
    comes = w.carry() if OPCODES[ins.opcode].reads_carry else "1u" if minus else "0u"
    first = w.value(kind, f"({name})({a} + {b})")
    total = w.value(kind, f"({name})({first} + ({name}){comes})")
    out = w.value("pred", f"({first} < {a}) | ({total} < {first})")
    w.write(ins.operands[0], kind, total)
    if "cc" in ins.modifiers:
        w.set_carry(out)


def product(ins: Instruction, kind: str, a: str, b: str) -> tuple[str, str]:
    """(type, text) of a product of integers: the lower or upper half, or all of it."""
    bits = int(kind[1:])
    if "wide" in ins.modifiers:
        wide = scalar(WIDER[kind])
        return WIDER[kind], f"({wide}){a} * ({wide}){b}"
    if "hi" not in ins.modifiers:
        # In 64 bits, so that small types do not become signed ones on the way.
        return f"u{bits}", f"(uint{bits}_t)((uint64_t){a} * (uint64_t){b})"
    if bits == 64:
        wide = f"{'unsigned ' * (kind[0] == 'u')}__int128"
        return kind, f"({scalar(kind)})((({wide}){a} * ({wide}){b}) >> 64)"
    wide = scalar(WIDER[kind])
    return kind, f"({scalar(kind)})((({wide}){a} * ({wide}){b}) >> {bits})"


def mul(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if is_float(kind):
        floats.add(w, ins)
        return
    long = "hi" in ins.modifiers and kind.endswith("64")
    (alone(_mul) if long else _mul)(w, ins)


def _mul(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    a, b = sources(w, ins, kind, kind)
    w.write(ins.operands[0], *product(ins, kind, a, b))


def mad(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if is_float(kind):
        floats.fma(w, ins)
        return
    long = "hi" in ins.modifiers and kind.endswith("64")
    (alone(_mad) if long else _mad)(w, ins)


def _mad(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    third = WIDER[kind] if "wide" in ins.modifiers else kind
    a, b, c = sources(w, ins, kind, kind, third)
    made, text = product(ins, kind, a, b)
    unsigned = f"u{made[1:]}"
    name = scalar(unsigned)
    if "cc" in ins.modifiers or OPCODES[ins.opcode].reads_carry:
        _carried(w, ins, unsigned, w.value(unsigned, f"({name})({text})"), f"({name}){c}")
    elif "sat" in ins.modifiers:
        w.write(ins.operands[0], kind, _clipped(kind, f"(int64_t)({scalar(kind)})({text}) + {c}"))
    else:
        w.write(ins.operands[0], unsigned, f"({name})({text}) + ({name}){c}")


def mul24(w: Writer, ins: Instruction) -> None:
    """Of the lowest 24 bits: the lower 32 bits of the product, or those from the 16th on."""
    kind = type_of(ins)
    read = sources(w, ins, "u32", "u32", kind)
    shift = 16 if "hi" in ins.modifiers else 0
    low24 = "((int64_t)(int32_t)({} << 8) >> 8)" if is_signed(kind) else "(int64_t)({} & 0xFFFFFFu)"
    cut = [low24.format(x) for x in read[:2]]
    made = f"({scalar(kind)})(uint32_t)(({cut[0]} * {cut[1]}) >> {shift})"
    if ins.opcode == "mul24":
        w.write(ins.operands[0], kind, made)
    elif "sat" in ins.modifiers:
        w.write(ins.operands[0], kind, _clipped("s32", f"(int64_t){made} + {read[2]}"))
    else:
        w.write(ins.operands[0], "u32", f"(uint32_t){made} + (uint32_t){read[2]}")


def sad(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    a, b, c = sources(w, ins, kind, kind, kind)
    name = f"uint{kind[1:]}_t"
    far = f"{a} < {b} ? ({name}){b} - ({name}){a} : ({name}){a} - ({name}){b}"
    w.write(ins.operands[0], f"u{kind[1:]}", f"({name}){c} + ({name})({far})")


def dot(w: Writer, ins: Instruction) -> None:
    """dp4a and dp2a: a sum of four products of bytes, or of two halfwords and bytes."""
    signs = [is_signed(type_of(ins, place)) for place in (-2, -1)]
    a, b, c = sources(w, ins, "u32", "u32", "u32")
    bits, count = (8, 4) if ins.opcode == "dp4a" else (16, 2)
    start = 16 if "hi" in ins.modifiers else 0

    def part(word: str, width: int, shift: int, is_minus: bool) -> str:
        return f"(int64_t)({'' if is_minus else 'u'}int{width}_t)({word} >> {shift})"

    terms = [
        f"{part(a, bits, bits * n, signs[0])} * {part(b, 8, start + 8 * n, signs[1])}"
        for n in range(count)
    ]
    w.write(ins.operands[0], "u32", f"(uint32_t)({' + '.join(terms)} + (int64_t){c})")


def div(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if not is_float(kind):
        alone(_integer_division)(w, ins)
        return
    floats.divided(w, ins)


def _integer_division(w: Writer, ins: Instruction) -> None:
    """By zero it gives all ones; the smallest number by -1 wraps."""
    kind = type_of(ins)
    a, b = sources(w, ins, kind, kind)
    name, sign = scalar(kind), "/" if ins.opcode == "div" else "%"
    text = f"{a} {sign} ({b} == 0 ? ({name})1 : {b})"
    if is_signed(kind):
        minus = f"({name})(0 - (u{name}){a})" if sign == "/" else "0"
        text = f"{b} == -1 ? {minus} : {text}"
    w.write(ins.operands[0], kind, f"{b} == 0 ? ({name})-1 : ({name})({text})")


def extremum(w: Writer, ins: Instruction) -> None:
    kind, sign = type_of(ins), "<" if ins.opcode == "min" else ">"
    if is_float(kind):
        floats.extremum(w, ins)
        return

    def chosen(a: str, b: str) -> str:
        text = f"({a} {sign} {b} ? {a} : {b})"
        return f"({text} > 0 ? {text} : 0)" if "relu" in ins.modifiers else text

    if kind.endswith("x2"):
        _in_pairs(w, ins, kind, chosen)
        return
    a, b = sources(w, ins, kind, kind)
    w.write(ins.operands[0], kind, chosen(a, b))


def neg(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if is_float(kind):
        floats.sign_changed(w, ins)
        return
    (a,) = sources(w, ins, kind)
    minus = f"0 - (u{scalar(kind)}){a}"
    w.write(ins.operands[0], f"u{kind[1:]}", minus if ins.opcode == "neg" else
            f"{a} < 0 ? (u{scalar(kind)})({minus}) : (u{scalar(kind)}){a}")  # fmt: skip


# -- bits -----------------------------------------------------------------------------------------


def logic(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    a, b = sources(w, ins, kind, kind)
    w.write(ins.operands[0], kind, f"{a} {SIGN[ins.opcode]} {b}")


def invert(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    (a,) = sources(w, ins, kind)
    w.write(ins.operands[0], kind, f"{a} ^ 1u" if kind == "pred" else f"~{a}")


def shift(w: Writer, ins: Instruction) -> None:
    """Amounts of the width and more shift everything out."""
    kind = type_of(ins)
    signed = ins.opcode == "shr" and is_signed(kind)
    bits = 8 * DTYPES[kind].itemsize
    kind, sign = f"{'s' if signed else 'u'}{bits}", "<<" if ins.opcode == "shl" else ">>"
    (a,) = sources(w, ins, kind)
    amount = ins.operands[2]
    if isinstance(amount, Immediate):
        n = str(min(amount.value & 0xFFFFFFFF, bits))
    else:
        n = w.value("u32", w.read(amount, "u32"))
    inside = f"({scalar(kind)})({a} {sign} ({n} < {bits} ? {n} : {bits - 1}))"
    w.write(ins.operands[0], kind, inside if signed else f"{n} < {bits} ? {inside} : 0")


def funnel(w: Writer, ins: Instruction) -> None:
    a, b, c = sources(w, ins, "u32", "u32", "u32")
    n = w.value("u64", f"{c} & 31u" if "wrap" in ins.modifiers else f"{c} < 32u ? {c} : 32u")
    both = f"(((uint64_t){b} << 32) | {a})"
    text = f"(({both} << {n}) >> 32)" if "l" in ins.modifiers else f"({both} >> {n})"
    w.write(ins.operands[0], "u32", f"(uint32_t){text}")


def lop3(w: Writer, ins: Instruction) -> None:
    """Any function of three bits; with a predicate also whether the result is not zero, joined."""
    table, target = ins.operands[4], ins.operands[0]
    if not isinstance(table, Immediate) or (len(ins.operands) != 5) != isinstance(target, Pair):
        raise NotTaken(ins.name)
    names = sources(w, ins, "u32", "u32", "u32")
    rows = [
        "(" + " & ".join(("" if row >> 2 - n & 1 else "~") + x for n, x in enumerate(names)) + ")"
        for row in range(8)
        if table.value >> row & 1
    ]
    text = " | ".join(rows) or "0u"
    if not isinstance(target, Pair):
        w.write(target, "u32", text)
        return
    made, sign = w.value("u32", text), "|" if "or" in ins.modifiers else "&"
    joined = w.value("pred", f"({made} != 0) {sign} {w.read(ins.operands[5], 'pred')}")
    w.write(target.first, "u32", made)
    w.write(target.second, "pred", joined)


@alone
def nth_bit(w: Writer, ins: Instruction) -> None:
    mask_, base, offset = sources(w, ins, "u32", "u32", "s32")
    w.write(ins.operands[0], "u32", f"nth_set({mask_}, {base}, {offset})")


def is_zero(w: Writer, ins: Instruction) -> None:
    kind = f"u{type_of(ins)[1:]}"
    (a,) = sources(w, ins, kind)
    w.write(ins.operands[0], kind, f"{a} == 0")


@alone
def counted(w: Writer, ins: Instruction) -> None:
    bits = type_of(ins)[1:]
    (a,) = sources(w, ins, f"u{bits}")
    match ins.opcode:
        case "popc":
            w.write(ins.operands[0], "u32", f"__builtin_popcountll({a})")
        case "clz":
            zeros = f"__builtin_clzll({a}) - {64 - int(bits)}"
            w.write(ins.operands[0], "u32", f"{a} ? {zeros} : {bits}")
        case "bfind":
            turned = is_signed(type_of(ins))
            found = f"highest({a}, {bits}, {int(turned)}, {int('shiftamt' in ins.modifiers)})"
            w.write(ins.operands[0], "u32", found)
        case _:
            w.write(ins.operands[0], f"u{bits}", f"reversed({a}, {bits})")


@alone
def field(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    unsigned, bits = f"u{kind[1:]}", kind[1:]
    if ins.opcode == "bfe":
        a, at, many = sources(w, ins, unsigned, "u32", "u32")
        text = f"extracted({a}, {at}, {many}, {bits}, {int(is_signed(kind))})"
    else:
        a, b, at, many = sources(w, ins, unsigned, unsigned, "u32", "u32")
        text = f"inserted({a}, {b}, {at}, {many}, {bits})"
    w.write(ins.operands[0], unsigned, f"(uint{bits}_t){text}")


@alone
def prmt(w: Writer, ins: Instruction) -> None:
    a, b, c = sources(w, ins, "u32", "u32", "u32")
    mode = next((m for m in ins.modifiers if m in PRMT_MODES), None)
    if mode is not None:
        rows = [sum(byte << 4 * at for at, byte in enumerate(row)) for row in PRMT_MODES[mode]]
        table = ", ".join(f"0x{row:x}" for row in rows)
        c = w.value("u32", f"((const uint32_t[]){{{table}}})[{c} & 3u]")
    w.write(ins.operands[0], "u32", f"permuted({a}, {b}, {c})")


def mask(w: Writer, ins: Instruction) -> None:
    """bmsk: ones from a position on; szext: the lowest bits of a number, extended."""
    a, b = sources(w, ins, "u32", "u32")
    cut = "({0} < 32u ? {0} : 32u)" if "clamp" in ins.modifiers else "({0} & 31u)"
    ones = w.value("u64", f"(1ull << {cut.format(b)}) - 1")
    if ins.opcode == "bmsk":
        w.write(ins.operands[0], "u32", f"(uint32_t)({ones} << {cut.format(a)})")
        return
    low = w.value("u64", f"{a} & {ones}")
    if not is_signed(type_of(ins)):
        w.write(ins.operands[0], "u32", f"(uint32_t){low}")
        return
    top = w.value("u64", f"({ones} + 1) >> 1")
    w.write(ins.operands[0], "u32", f"(uint32_t)(({low} ^ {top}) - {top})")


# -- moves ----------------------------------------------------------------------------------------


def mov(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    target, source = ins.operands[:2]
    if isinstance(target, Vector):
        _in_parts(w, target, source, kind)
    elif isinstance(source, Vector):
        _of_parts(w, target, source, kind)
    else:
        w.write(target, kind, w.read(source, kind))


def _in_parts(w: Writer, target: Vector, source: Operand, kind: str) -> None:
    bits = 8 * DTYPES[kind].itemsize
    part = bits // len(target.elements)
    if isinstance(source, Vector) or bits > 64:
        raise NotTaken("a mov of vectors")
    whole = w.value(f"u{bits}", w.read(source, f"u{bits}"))
    for number, element in enumerate(target.elements):
        w.write(element, f"b{part}", f"(uint{part}_t)({whole} >> {part * number})")


def _of_parts(w: Writer, target: Operand, source: Vector, kind: str) -> None:
    bits = 8 * DTYPES[kind].itemsize
    part = bits // len(source.elements)
    if bits > 64:
        raise NotTaken("a mov of vectors")
    terms = [
        f"((uint{bits}_t){w.read(element, f'b{part}')} << {part * number})"
        for number, element in enumerate(source.elements)
    ]
    w.write(target, f"u{bits}", " | ".join(terms))


TABLE: dict[str, Spell] = {
    "add": add, "sub": add, "addc": add, "subc": add, "mul": mul, "mad": mad, "madc": mad,
    "fma": floats.fma, "mul24": mul24, "mad24": mul24, "sad": sad, "dp4a": dot, "dp2a": dot,
    "div": div, "rem": div, "rcp": floats.of_one, "sqrt": floats.of_one, "rsqrt": floats.of_one,
    "ex2": floats.function, "lg2": floats.function, "sin": floats.function, "cos": floats.function,
    "tanh": floats.function, "copysign": floats.copysign, "testp": floats.testp,
    "min": extremum, "max": extremum, "neg": neg, "abs": neg, "and": logic, "or": logic,
    "xor": logic, "not": invert, "cnot": is_zero, "shl": shift, "shr": shift, "shf": funnel,
    "lop3": lop3, "fns": nth_bit, "popc": counted, "clz": counted, "bfind": counted,
    "brev": counted, "bfe": field, "bfi": field, "prmt": prmt, "bmsk": mask, "szext": mask,
    "cvt": cvt, "mov": mov,
}  # fmt: skip
