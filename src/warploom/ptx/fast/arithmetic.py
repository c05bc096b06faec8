"""Arithmetic, logic, comparisons and conversions in C, as the NumPy evaluator computes them."""

from __future__ import annotations

from collections.abc import Callable

from warploom.ptx.emulate.shape import rounding_of, type_of, types_of
from warploom.ptx.fast.operand import NotTaken, Writer, scalar
from warploom.ptx.ir import Immediate, Instruction, Operand, Pair, Vector
from warploom.ptx.types import DTYPES, is_float, is_signed

Spell = Callable[[Writer, Instruction], None]
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
SIGN = {"add": "+", "and": "&", "or": "|", "xor": "^"}


def sources(w: Writer, ins: Instruction, *kinds: str) -> list[str]:
    """The operands after the first, each in a variable: some are read several times."""
    return [
        w.value(kind, w.read(operand, kind))
        for operand, kind in zip(ins.operands[1:], kinds, strict=False)
    ]


def refuse(ins: Instruction, *words: str) -> None:
    for word in words:
        if word in ins.modifiers:
            raise NotTaken(f"{ins.name}: .{word}")


def alone(spell: Spell) -> Spell:
    """In a loop of its own: compilers make no vectors of it, and would make none of the others."""

    def wrapped(w: Writer, ins: Instruction) -> None:
        w.close()
        spell(w, ins)
        w.close()

    return wrapped


# -- floats ---------------------------------------------------------------------------------------


def inputs(w: Writer, ins: Instruction, kind: str, count: int) -> list[str]:
    """Sources of singles or doubles that are rounded to nearest; all else is left alone."""
    if kind not in ("f32", "f64") or rounding_of(ins) != "rn" or len(types_of(ins)) > 1:
        raise NotTaken(ins.name)
    refuse(ins, "relu", "NaN", "xorsign", "abs")
    if kind == "f64":
        refuse(ins, "ftz", "sat", "approx")
    read = sources(w, ins, *[kind] * count)
    return [w.value(kind, f"flush({x})") for x in read] if "ftz" in ins.modifiers else read


def result(w: Writer, ins: Instruction, kind: str, text: str) -> None:
    """With flushing, saturation and the one NaN of singles around it."""
    if kind == "f32":
        for word, name in (("ftz", "flush"), ("sat", "saturated")):
            if word in ins.modifiers:
                text = f"{name}({text})"
        text = f"clean({text})"
    w.write(ins.operands[0], kind, text)


def joined(w: Writer, ins: Instruction, kind: str, sign: str) -> None:
    a, b = inputs(w, ins, kind, 2)
    text = f"{a} {sign} {b}"
    result(w, ins, kind, f"first_nan({a}, {b}, {text})" if kind == "f64" else text)


def fma(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    a, b, c = inputs(w, ins, kind, 3)
    if kind == "f32":
        result(w, ins, kind, f"__builtin_fmaf({a}, {b}, {c})")
        return
    product = w.value(kind, f"first_nan({a}, {b}, {a} * {b})")
    result(w, ins, kind, f"first_nan({product}, {c}, __builtin_fma({a}, {b}, {c}))")


def of_one(w: Writer, ins: Instruction) -> None:
    """Reciprocals and roots: what is called approximate is rounded correctly here, too."""
    kind = type_of(ins)
    (a,) = inputs(w, ins, kind, 1)
    end = "f" if kind == "f32" else ""
    match ins.opcode:
        case "rcp":
            text = f"1.0{end} / {a}"
        case "sqrt":
            text = f"__builtin_sqrt{end}({a})"
        case _ if kind == "f32":
            text = f"(float)(1.0 / __builtin_sqrt((double){a}))"
        case _:
            raise NotTaken(ins.name)
    result(w, ins, kind, text)


# -- sums and products ----------------------------------------------------------------------------


def add(w: Writer, ins: Instruction) -> None:
    kind, sign = type_of(ins), "-" if ins.opcode == "sub" else "+"
    if is_float(kind):
        joined(w, ins, kind, sign)
        return
    refuse(ins, "cc", "sat", "u16x2", "s16x2")
    kind = f"u{kind[1:]}"
    a, b = sources(w, ins, kind, kind)
    w.write(ins.operands[0], kind, f"{a} {sign} {b}")


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
        joined(w, ins, kind, "*")
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
        fma(w, ins)
        return
    refuse(ins, "cc", "sat")
    third = WIDER[kind] if "wide" in ins.modifiers else kind
    a, b, c = sources(w, ins, kind, kind, third)
    made, text = product(ins, kind, a, b)
    unsigned = f"u{made[1:]}"
    w.write(ins.operands[0], unsigned, f"({scalar(unsigned)})({text}) + ({scalar(unsigned)}){c}")


def div(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if not is_float(kind):
        alone(_integer_division)(w, ins)
        return
    refuse(ins, "approx", "full")
    joined(w, ins, kind, "/")


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
    kind, least = type_of(ins), ins.opcode == "min"
    if len(ins.operands) > 3:
        raise NotTaken(ins.name)
    if is_float(kind):
        a, b = inputs(w, ins, kind, 2)
        result(w, ins, kind, f"{'least' if least else 'most'}_{kind}({a}, {b})")
        return
    refuse(ins, "relu", "u16x2", "s16x2")
    a, b = sources(w, ins, kind, kind)
    w.write(ins.operands[0], kind, f"{a} {'<' if least else '>'} {b} ? {a} : {b}")


def neg(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if is_float(kind):
        if kind not in ("f32", "f64"):
            raise NotTaken(ins.name)
        (a,) = sources(w, ins, kind)
        if "ftz" in ins.modifiers:
            a = w.value(kind, f"flush({a})")
        bits = kind[1:]
        top = f"(uint{bits}_t)0x{1 << int(bits) - 1:x}ull"
        sign = f"^ {top}" if ins.opcode == "neg" else f"& (uint{bits}_t)~{top}"
        result(w, ins, kind, f"{kind}(b{bits}({a}) {sign})")
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
    table = ins.operands[4]
    if not isinstance(table, Immediate) or len(ins.operands) != 5:
        raise NotTaken(ins.name)
    names = sources(w, ins, "u32", "u32", "u32")
    rows = [
        "(" + " & ".join(("" if row >> 2 - n & 1 else "~") + x for n, x in enumerate(names)) + ")"
        for row in range(8)
        if table.value >> row & 1
    ]
    w.write(ins.operands[0], "u32", " | ".join(rows) or "0u")


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
    if ins.modifiers != ("b32",):
        raise NotTaken(ins.name)
    a, b, c = sources(w, ins, "u32", "u32", "u32")
    w.write(ins.operands[0], "u32", f"permuted({a}, {b}, {c})")


# -- comparisons ----------------------------------------------------------------------------------

_ORDERED = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=",
    "hi": ">", "hs": ">=",
}  # fmt: skip
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")


def compared(w: Writer, ins: Instruction, kind: str) -> str:
    """Whether the comparison holds: 0 or 1."""
    if is_float(kind):
        if kind not in ("f32", "f64"):
            raise NotTaken(ins.name)
        a, b = sources(w, ins, kind, kind)
        if "ftz" in ins.modifiers:
            a, b = (w.value(kind, f"flush({x})") for x in (a, b))
    else:
        a, b = sources(w, ins, kind, kind)
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
    return f"{holds} {SIGN[join]} {w.read(ins.operands[3], 'pred')}" if join else holds


def setp(w: Writer, ins: Instruction) -> None:
    holds = compared(w, ins, type_of(ins))
    targets: tuple[Operand, ...] = (ins.operands[0],)
    if isinstance(ins.operands[0], Pair):
        targets = (ins.operands[0].first, ins.operands[0].second)
    texts = [combined(w, ins, text) for text in (holds, f"({holds} ^ 1u)")]
    made = [w.value("pred", text) for text in texts[: len(targets)]]
    for target, text in zip(targets, made, strict=True):
        w.write(target, "pred", text)


def set_(w: Writer, ins: Instruction) -> None:
    target, source = type_of(ins, -2), type_of(ins, -1)
    if target not in ("u32", "s32", "f32"):
        raise NotTaken(ins.name)
    holds = combined(w, ins, compared(w, ins, source))
    yes = "0x3F800000u" if target == "f32" else "~0u"
    w.write(ins.operands[0], "u32", f"({holds}) ? {yes} : 0u")


def selp(w: Writer, ins: Instruction) -> None:
    kind = f"u{type_of(ins)[1:]}"
    a, b = sources(w, ins, type_of(ins), type_of(ins))
    if is_float(type_of(ins)):
        a, b = (f"b{kind[1:]}({x})" for x in (a, b))
    w.write(ins.operands[0], kind, f"{w.read(ins.operands[3], 'pred')} ? {a} : {b}")


# -- conversions ----------------------------------------------------------------------------------

_WHOLE = {
    "rni": "__builtin_rint", "rzi": "__builtin_trunc", "rmi": "__builtin_floor",
    "rpi": "__builtin_ceil",
}  # fmt: skip


def cvt(w: Writer, ins: Instruction) -> None:
    if len(types_of(ins)) != 2 or "pack" in ins.modifiers or "rs" in ins.modifiers:
        raise NotTaken(ins.name)
    target, source = types_of(ins)
    for kind in (target, source):
        if is_float(kind) and kind not in ("f32", "f64"):
            raise NotTaken(ins.name)
    if is_float(source):
        (_between_floats if is_float(target) else alone(_to_integer))(w, ins)
        return
    refuse(ins, "sat")
    if is_float(target) and rounding_of(ins) != "rn":
        raise NotTaken(ins.name)
    (a,) = sources(w, ins, source)
    w.write(ins.operands[0], target, f"({scalar(target)}){a}")


def _to_integer(w: Writer, ins: Instruction) -> None:
    target, source = types_of(ins)
    name = next((m for m in ins.modifiers if m in _WHOLE), "rzi")
    (a,) = sources(w, ins, source)
    if "ftz" in ins.modifiers:
        a = w.value(source, f"flush({a})")
    bits = 8 * DTYPES[target].itemsize
    # What the hardware makes of NaN: zero, or the top bit where 64 bits are involved.
    nan = f"(1ull << {bits - 1})" if source == "f64" or bits == 64 else "0"
    number = f"{_WHOLE[name]}((double){a})"
    w.write(ins.operands[0], target, f"clamped_{target}({number}, ({scalar(target)}){nan})")


def _between_floats(w: Writer, ins: Instruction) -> None:
    target, source = types_of(ins)
    if any(m in _WHOLE for m in ins.modifiers) or target == source or rounding_of(ins) != "rn":
        raise NotTaken(ins.name)
    refuse(ins, "sat", "ftz")
    (a,) = sources(w, ins, source)
    w.write(ins.operands[0], target, f"({scalar(target)}){a}")


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
    "add": add, "sub": add, "mul": mul, "mad": mad, "fma": fma, "div": div, "rem": div,
    "rcp": of_one, "sqrt": of_one, "rsqrt": of_one, "min": extremum, "max": extremum, "neg": neg,
    "abs": neg, "and": logic, "or": logic, "xor": logic, "not": invert, "shl": shift,
    "shr": shift, "shf": funnel, "lop3": lop3, "popc": counted, "clz": counted, "brev": counted,
    "bfe": field, "bfi": field, "prmt": prmt, "setp": setp, "set": set_, "selp": selp,
    "cvt": cvt, "mov": mov,
}  # fmt: skip
