"""Floating-point arithmetic in C: singles, doubles, halves, and pairs of them.

A half is worked on as a single, which holds it; what is rounded once from the exact result is so
in the evaluator too. Pairs are two numbers side by side.
"""

from __future__ import annotations

from warploom.ptx.fast.operand import LANES, NotTaken, Spell, Writer, refuse, sources, sources_bits
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.types import DTYPES, rounding_of, type_of, types_of

MODES = {"rn": "RN", "rz": "RZ", "rm": "RM", "rp": "RP"}
HALVES = ("f16", "bf16")


# -- numbers of an operand, and of a result --------------------------------------------------------


def single(kind: str) -> str:
    return kind.removesuffix("x2")


def as_single(kind: str, text: str) -> str:
    """A single that is the number whose bits these are."""
    return {"f16": f"h32({text})", "bf16": f"bf32({text})", "f32": f"f32({text})"}[kind]


def numbers(w: Writer, operand: Operand, kind: str, *, flushed: bool = False) -> list[str]:
    """The number in an operand, or the two of a pair, as singles; the lower first."""
    one = single(kind)
    bits, count = 8 * DTYPES[one].itemsize, 2 if kind.endswith("x2") else 1
    whole = w.value(f"u{bits * count}", w.bits(operand, kind))
    found = []
    for part in range(count):
        text = f"(uint{bits}_t)({whole} >> {bits * part})" if count == 2 else whole
        if flushed and one == "f16":
            text = f"flush_h({text})"
        value = w.value("f32", as_single(one, text))
        found.append(w.value("f32", f"flush({value})") if flushed and one == "f32" else value)
    return found


def store(w: Writer, ins: Instruction, kind: str, bits: list[str]) -> None:
    """The bits of one number, or of a pair, the lower first."""
    if len(bits) == 1:
        w.write(ins.operands[0], f"u{8 * DTYPES[kind].itemsize}", bits[0])
        return
    width = 8 * DTYPES[single(kind)].itemsize
    low, high = (w.value(f"u{width}", text) for text in bits)
    whole = f"uint{2 * width}_t"
    w.write(ins.operands[0], f"u{2 * width}", f"({whole}){high} << {width} | {low}")


def finished(ins: Instruction, kind: str, text: str) -> str:
    """The bits of a result: flushed, saturated, and with the one NaN."""
    if kind == "bf16":
        refuse(ins, "ftz", "sat")
        return text
    flushes, saturates = ("flush", "saturated") if kind == "f32" else ("flush_h", "saturated_h")
    for word, name in (("ftz", flushes), ("sat", saturates)):
        if word in ins.modifiers:
            text = f"{name}({text})"
    return f"b32(clean({text}))" if kind == "f32" else text


# -- sums, products --------------------------------------------------------------------------------


def is_plain(ins: Instruction, kind: str) -> bool:
    """A double: an operator of C's, or what the processor gives with another rounding."""
    if kind != "f64":
        return False
    refuse(ins, "ftz", "sat", "approx")
    return True


def double_of(
    w: Writer, ins: Instruction, what: str, operator: str, given: list[str]
) -> tuple[str, list[str]]:
    """A result of doubles, by `operator` where it is rounded to nearest; what was given, too."""
    mode = MODES.get(rounding_of(ins))
    if mode is None:
        raise NotTaken(ins.name)
    if mode == "RN":
        return operator, given
    out, arrays = w.array(64), [w.filled(64, f"b64({value})") for value in given]
    read = [f"f64({array}[l])" for array in arrays]
    values = ", ".join([*read, *["0.0"] * (3 - len(read))])
    w.put(f"ACTIVE(l, m) {out}[l] = b64(rounded({what}, {values}, {mode}));")
    return f"f64({out}[l])", [w.value("f64", text) for text in read]


def doubles(w: Writer, ins: Instruction, text: str) -> None:
    w.write(ins.operands[0], "f64", text)


def computed(w: Writer, ins: Instruction, count: int) -> None:
    """add, sub, mul or fma of singles, halves and pairs; the first operands may be halves."""
    kinds = types_of(ins)
    kind = kinds[0]
    one, mode = single(kind), MODES.get(rounding_of(ins))
    if mode is None or (mode != "RN" and one != "f32"):
        raise NotTaken(ins.name)
    narrow = kinds[1] if len(kinds) > 1 else kind
    first = [narrow] * (count - 1) + [kind]  # of mixed forms all but the last are halves
    ftz = "ftz" in ins.modifiers
    operands = [
        numbers(w, operand, each, flushed=ftz)
        for operand, each in zip(ins.operands[1:], first, strict=False)
    ]
    bits = []
    for values in zip(*operands, strict=True):
        text = _number(ins.opcode, one, mode, list(values))
        if "relu" in ins.modifiers:
            text = _not_negative(w, one, text)
        bits.append(finished(ins, one, text))
    store(w, ins, kind, bits)


def _number(opcode: str, kind: str, mode: str, values: list[str]) -> str:
    """A result: a single, or the bits of a half."""
    a, b = values[:2]
    sign, minus = ("-", "-") if opcode == "sub" else ("+", "")
    name = "sum" if opcode in ("add", "sub") else "product" if opcode == "mul" else "fma"
    match kind, name:
        case "f32", "sum":
            return f"{a} {sign} {b}" if mode == "RN" else f"sum_to({a}, {minus}{b}, {mode})"
        case "f32", "product":
            return f"{a} * {b}" if mode == "RN" else f"narrow((double){a} * {b}, {mode})"
        case "f32", _:
            c = values[2]
            nearest = f"__builtin_fmaf({a}, {b}, {c})"
            return nearest if mode == "RN" else f"fma_to({a}, {b}, {c}, {mode})"
        case "f16", "sum":
            return f"h16({a} {sign} {b})"
        case "f16", "product":
            return f"h16({a} * {b})"
        case _, "sum":
            return f"bf16d(odd_sum({a}, {minus}(double){b}))"
        case _, "product":
            return f"bf16d((double){a} * {b})"
        case _:
            made = "h16d" if kind == "f16" else "bf16d"
            return f"{made}(odd_sum((double){a} * {b}, {values[2]}))"


def _not_negative(w: Writer, kind: str, text: str) -> str:
    """.relu: what is below zero is zero; a NaN stays one."""
    if kind == "f32":
        value = w.value("f32", text)
        return f"{value} > 0.0f || {value} != {value} ? {value} : 0.0f"
    bits = w.value("u16", text)
    number = w.value("f32", as_single(kind, bits))
    return f"{number} > 0.0f || {number} != {number} ? {bits} : 0"


def _operator(opcode: str) -> tuple[str, str]:
    """C's sign, and the name of the operation where it is rounded otherwise."""
    if opcode == "mul":
        return "*", "PRODUCT"
    return ("-", "DIFFERENCE") if opcode == "sub" else ("+", "SUM")


def add(w: Writer, ins: Instruction) -> None:
    if not is_plain(ins, type_of(ins)):
        computed(w, ins, 2)
        return
    a, b = sources(w, ins, "f64", "f64")
    sign, what = _operator(ins.opcode)
    made, (a, b) = double_of(w, ins, what, f"{a} {sign} {b}", [a, b])
    doubles(w, ins, f"first_nan({a}, {b}, {made})")


def fma(w: Writer, ins: Instruction) -> None:
    if not is_plain(ins, type_of(ins)):
        computed(w, ins, 3)
        return
    a, b, c = sources(w, ins, "f64", "f64", "f64")
    made, (a, b, c) = double_of(w, ins, "FUSED", f"__builtin_fma({a}, {b}, {c})", [a, b, c])
    doubles(w, ins, f"quiet_or({a}, first_nan({b}, {c}, {made}))")


# -- division, roots, functions --------------------------------------------------------------------


def divided(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    if "approx" not in ins.modifiers and is_plain(ins, kind):
        a, b = sources(w, ins, kind, kind)
        made, (a, b) = double_of(w, ins, "QUOTIENT", f"{a} / {b}", [a, b])
        doubles(w, ins, f"first_nan({a}, {b}, {made})")
        return
    mode = _single_mode(ins, kind)
    (a,), (b,) = (numbers(w, each, kind, flushed="ftz" in ins.modifiers)
                  for each in ins.operands[1:3])  # fmt: skip
    text = f"{a} / {b}" if mode == "RN" else f"divided({a}, {b}, {mode})"
    if "approx" in ins.modifiers:
        text = f"quotient({a}, {b})"
    store(w, ins, kind, [finished(ins, kind, text)])


def _single_mode(ins: Instruction, kind: str) -> str:
    mode = MODES.get(rounding_of(ins))
    if kind != "f32" or mode is None:
        raise NotTaken(ins.name)
    return mode


def of_one(w: Writer, ins: Instruction) -> None:
    """Reciprocals and roots: what is called approximate is rounded correctly here, too."""
    kind = type_of(ins)
    if kind == "f64":
        _of_one_double(w, ins)
        return
    mode = _single_mode(ins, kind)
    (a,) = numbers(w, ins.operands[1], kind, flushed="ftz" in ins.modifiers)
    nearest = mode == "RN"
    if ins.opcode == "rcp":
        text = f"1.0f / {a}" if nearest else f"divided(1.0f, {a}, {mode})"
    elif ins.opcode == "sqrt":
        text = f"__builtin_sqrtf({a})" if nearest else f"root({a}, {mode})"
    else:
        text = f"(float)(1.0 / __builtin_sqrt((double){a}))"
    store(w, ins, kind, [finished(ins, kind, text)])


def _of_one_double(w: Writer, ins: Instruction) -> None:
    if "approx" in ins.modifiers:
        _approximate_double(w, ins)
        return
    if not is_plain(ins, "f64"):
        raise NotTaken(ins.name)
    (a,) = sources(w, ins, "f64")
    if ins.opcode == "rcp":
        made, given = double_of(w, ins, "QUOTIENT", f"1.0 / {a}", ["1.0", a])
    else:
        made, given = double_of(w, ins, "ROOT", f"__builtin_sqrt({a})", [a])
    doubles(w, ins, f"quiet_or({given[-1]}, made_nan({made}))")


def _approximate_double(w: Writer, ins: Instruction) -> None:
    """With .ftz on the upper 32 bits alone."""
    (a,) = sources(w, ins, "f64")
    ftz = "ftz" in ins.modifiers
    if ftz:
        a = w.value("f64", f"upper_half(flush_d({a}))")
    text = f"1.0 / {a}" if ins.opcode == "rcp" else f"1.0 / __builtin_sqrt({a})"
    doubles(w, ins, f"flush_d(upper_half({text}))" if ftz else text)


def function(w: Writer, ins: Instruction) -> None:
    """What the C library computes, or NumPy where the two may differ."""
    kind = type_of(ins)
    if single(kind) in HALVES:
        _of_halves(w, ins, kind)
        return
    if kind != "f32":
        raise NotTaken(ins.name)
    (a,) = numbers(w, ins.operands[1], kind, flushed="ftz" in ins.modifiers)
    out = w.array(LANES)
    given = w.filled(LANES, f"b32({a})")
    w.put(f"ACTIVE(l, m) {out}[l] = b32(approximate(L, {ins.opcode.upper()}, f32({given}[l])));")
    store(w, ins, kind, [finished(ins, kind, f"f32({out}[l])")])


def _of_halves(w: Writer, ins: Instruction, kind: str) -> None:
    ftz, brain = "ftz" in ins.modifiers, int(single(kind) == "bf16")
    flushes = "flush_bf" if brain else "flush_h"
    read = numbers(w, ins.operands[1], kind, flushed=ftz)
    given = [w.filled(LANES, f"b32(flush({a}))" if ftz and brain else f"b32({a})") for a in read]
    made = [w.array(16) for _ in given]
    for x, out in zip(given, made, strict=True):
        what = f"L, {ins.opcode.upper()}, f32({x}[l]), {brain}"
        w.put(f"ACTIVE(l, m) {out}[l] = approximate_half({what});")
    store(w, ins, kind, [f"{flushes}({out}[l])" if ftz else f"{out}[l]" for out in made])


# -- minima, signs, tests --------------------------------------------------------------------------


def extremum(w: Writer, ins: Instruction) -> None:
    kind, least = type_of(ins), ins.opcode == "min"
    if kind == "f64":
        refuse(ins, "NaN", "xorsign", "abs")
        a, b = sources(w, ins, kind, kind)
        doubles(w, ins, f"{'least' if least else 'most'}_f64({a}, {b})")
        return
    one, keep = single(kind), int("NaN" in ins.modifiers)
    read = [numbers(w, each, kind, flushed="ftz" in ins.modifiers) for each in ins.operands[1:]]
    bits = []
    for values in zip(*read, strict=True):
        given = [f"__builtin_fabsf({v})" for v in values] if "abs" in ins.modifiers else values
        text = given[0]
        for other in given[1:]:
            text = w.value("f32", f"lesser({text}, {other}, {int(least)}, {keep})")
        if "xorsign" in ins.modifiers:
            sign = f"(b32({values[0]}) ^ b32({values[1]})) & 0x80000000u"
            text = f"f32((b32({text}) & 0x7FFFFFFFu) | ({sign}))"
        encoded = {"f16": f"h16({text})", "bf16": f"bf16({text})", "f32": text}[one]
        bits.append(finished(ins, one, encoded))
    store(w, ins, kind, bits)


def sign_changed(w: Writer, ins: Instruction) -> None:
    """neg and abs: the sign bit; the one NaN but where the evaluator keeps what is there."""
    kind, negative = type_of(ins), ins.opcode == "neg"
    if kind == "f64":
        (a,) = sources(w, ins, kind)
        top = "0x8000000000000000ull"
        doubles(w, ins, f"f64(b64({a}) {'^' if negative else '& ~'}{top})")
        return
    one = single(kind)
    bits = []
    for value in numbers(w, ins.operands[1], kind, flushed="ftz" in ins.modifiers):
        top = f"b32({value}) {'^' if negative else '& ~'}0x80000000u"
        text = {"f16": f"h16(f32({top}))", "bf16": f"bf16(f32({top}))", "f32": f"f32({top})"}[one]
        if kind == "bf16" and not negative:
            text = f"(uint16_t)(({top}) >> 16)"
        bits.append(finished(ins, one, text))
    store(w, ins, kind, bits)


def copysign(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    bits = kind[1:]
    a, b = sources_bits(w, ins, kind, kind)
    top = f"(uint{bits}_t)0x{1 << int(bits) - 1:x}ull"
    w.write(ins.operands[0], f"u{bits}", f"({a} & {top}) | ({b} & (uint{bits}_t)~{top})")


def testp(w: Writer, ins: Instruction) -> None:
    kind = type_of(ins)
    (a,) = sources(w, ins, kind)
    size, least = f"__builtin_fabs((double){a})", "0x1p-126" if kind == "f32" else "0x1p-1022"
    finite = f"__builtin_isfinite({a})"
    texts = {
        "finite": f"{finite} != 0", "infinite": f"__builtin_isinf({a}) != 0",
        "number": f"{a} == {a}", "notanumber": f"{a} != {a}",
        "normal": f"({finite} != 0) & (({size} >= {least}) | ({a} == 0))",
        "subnormal": f"({size} < {least}) & ({a} != 0)",
    }  # fmt: skip
    name = next(m for m in ins.modifiers if m in texts)
    w.write(ins.operands[0], "pred", texts[name])


# Where the last type of an instruction is a floating one; comparisons and cvt are elementwise.
TABLE: dict[str, Spell] = {
    "add": add, "sub": add, "mul": add, "mad": fma, "fma": fma, "div": divided, "min": extremum,
    "max": extremum, "neg": sign_changed, "abs": sign_changed, "rcp": of_one, "sqrt": of_one,
    "rsqrt": of_one, "ex2": function, "lg2": function, "sin": function, "cos": function,
    "tanh": function, "copysign": copysign, "testp": testp,
}  # fmt: skip
