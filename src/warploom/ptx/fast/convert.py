"""cvt in C, as the evaluator converts."""

from __future__ import annotations

from warploom.ptx.emulate.shape import rounding_of, types_of
from warploom.ptx.fast import codes
from warploom.ptx.fast.floats import HALVES, MODES, numbers, store
from warploom.ptx.fast.operand import NotTaken, Writer, alone, refuse, scalar, sources
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.types import DTYPES, is_float

_WHOLE = {
    "rni": "__builtin_rint", "rzi": "__builtin_trunc", "rmi": "__builtin_floor",
    "rpi": "__builtin_ceil",
}  # fmt: skip
_KNOWN = ("f16", "bf16", "f32", "f64")


def cvt(w: Writer, ins: Instruction) -> None:
    target, source = types_of(ins)[:2]
    if "pack" in ins.modifiers:
        codes.pack(w, ins)
    elif "rs" in ins.modifiers:
        codes.stochastic(w, ins)
    elif codes.is_small(target) or codes.is_small(source):
        (codes.to_small if codes.is_small(target) else codes.from_small)(w, ins)
    elif target in ("f16x2", "bf16x2") and source == "f32":
        _pair(w, ins, target)
    elif target == "tf32" and source == "f32":
        codes.tf32(w, ins)
    elif any(is_float(kind) and kind not in _KNOWN for kind in (target, source)):
        raise NotTaken(ins.name)
    else:
        _one(w, ins, target, source)


def _one(w: Writer, ins: Instruction, target: str, source: str) -> None:
    if is_float(source) and is_float(target):
        _between_floats(w, ins, target, source)
    elif is_float(source):
        alone(_to_integer)(w, ins)
    elif is_float(target):
        _of_integer(w, ins, target, source)
    else:
        _between_integers(w, ins, target, source)


def _between_integers(w: Writer, ins: Instruction, target: str, source: str) -> None:
    (a,) = sources(w, ins, source)
    if "sat" not in ins.modifiers:
        w.write(ins.operands[0], target, f"({scalar(target)}){a}")
        return
    least, most = _limits(target)
    text = f"({scalar(target)}){a}"
    for sign, end, narrower in (
        ("<", least, least > _limits(source)[0]), (">", most, most < _limits(source)[1]),
    ):  # fmt: skip
        if narrower:
            limit = _constant(end)
            text = f"{a} {sign} ({scalar(source)}){limit} ? ({scalar(target)}){limit} : ({text})"
    w.write(ins.operands[0], target, text)


def _limits(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _constant(number: int) -> str:
    return f"(-{-number - 1}ll - 1)" if number < 0 else f"{number}ull"


def _of_integer(w: Writer, ins: Instruction, target: str, source: str) -> None:
    mode = MODES.get(rounding_of(ins))
    if mode is None:
        raise NotTaken(ins.name)
    wide = DTYPES[source].itemsize == 8
    if mode == "RN" and (target in ("f32", "f64") or not wide):
        (a,) = sources(w, ins, source)
        nearest = {"f16": f"h16d((double){a})", "bf16": f"bf16d((double){a})"}
        _put(w, ins, target, nearest.get(target, f"({scalar(target)}){a}"))
    else:
        alone(_directed)(w, ins)


def _directed(w: Writer, ins: Instruction) -> None:
    """A double holds the integer, or is next to it, rounded to odd."""
    (target, source), mode = types_of(ins), MODES[rounding_of(ins)]
    (a,) = sources(w, ins, source)
    exact = f"(double){a}"
    if DTYPES[source].itemsize == 8:
        size = w.value("u64", f"{a} < 0 ? 0 - (uint64_t){a} : (uint64_t){a}")
        name, more = ("double_of", f", {mode}") if target == "f64" else ("odd_long", "")
        exact = w.value("f64", f"{name}({size}, {a} < 0{more})")
    match target:
        case "f64":
            _put(w, ins, target, exact)
        case "f32":
            _put(w, ins, target, f"narrow({exact}, {mode})")
        case _:
            _put(w, ins, target, codes.coded(exact, target, mode))


def _put(w: Writer, ins: Instruction, target: str, text: str) -> None:
    """A number, or the bits of a half; .sat makes it one of [0, 1]."""
    names = {"f16": "saturated_h", "f32": "saturated", "f64": "saturated_d"}
    if "sat" in ins.modifiers:
        text = f"{names[target]}({text})"
    w.write(ins.operands[0], "u16" if target in HALVES else target, text)


def _number(w: Writer, ins: Instruction, operand: Operand, source: str, target: str) -> str:
    """The number that is converted, as a single, or as a double where it is one."""
    if source == "f64":
        return w.value("f64", w.read(operand, "f64"))
    ftz = "ftz" in ins.modifiers and target != "f16" and source == "f32"
    return numbers(w, operand, source, flushed=ftz)[0]


def _to_integer(w: Writer, ins: Instruction) -> None:
    target, source = types_of(ins)
    name = next((m for m in ins.modifiers if m in _WHOLE), "rzi")
    a = _number(w, ins, ins.operands[1], source, target)
    bits = 8 * DTYPES[target].itemsize
    # What the hardware makes of NaN: zero, or the top bit where 64 bits are involved.
    nan = f"(1ull << {bits - 1})" if source == "f64" or bits == 64 else "0"
    number = f"{_WHOLE[name]}((double){a})"
    w.write(ins.operands[0], target, f"clamped_{target}({number}, ({scalar(target)}){nan})")


def _between_floats(w: Writer, ins: Instruction, target: str, source: str) -> None:
    if target == source == "f32" and len(ins.modifiers) == 2:
        w.write(ins.operands[0], "u32", w.bits(ins.operands[1], "f32"))  # a copy
        return
    name = next((m for m in ins.modifiers if m in _WHOLE), None)
    if target == "f64" and source == "f16" and name is None:
        _put(w, ins, target, f"h64({w.bits(ins.operands[1], 'f16')})")
        return
    a = _number(w, ins, ins.operands[1], source, target)
    if name is not None:
        kind = "f64" if source == "f64" else "f32"
        a = w.value(kind, f"{_WHOLE[name]}{'' if kind == 'f64' else 'f'}({a})")
    if target == "f64":
        _put(w, ins, target, f"(double){a}")
        return
    if source == "f64" and target in HALVES:
        w.write(ins.operands[0], "u16", _half_of_double(ins, a, target))
        return
    keep = target == "f32" and source in ("f64", "bf16") and name is None
    store(w, ins, target, [_made(w, ins, a, target, keep)])


def _half_of_double(ins: Instruction, a: str, target: str) -> str:
    """Of which NaNs have the upper bits of the double's."""
    refuse(ins, "satfinite", "relu")
    mode = MODES[rounding_of(ins)]
    bits = codes.coded(a, target, mode)
    if "sat" in ins.modifiers:
        return f"saturated_h({bits})"
    return f"{a} != {a} ? upper_nan({a}, {10 if target == 'f16' else 7}) : {bits}"


def _made(w: Writer, ins: Instruction, a: str, target: str, keep_nan: bool) -> str:
    """The bits of a single, half or bf16: rounded, then flushed, saturated, cut off at zero."""
    mode = MODES.get(rounding_of(ins))
    if mode is None:
        raise NotTaken(ins.name)
    if target == "f32":
        refuse(ins, "satfinite", "relu")
        text = f"narrow({a}, {mode})"
        for word, name in (("ftz", "flush"), ("sat", "saturated")):
            text = f"{name}({text})" if word in ins.modifiers else text
        return f"b32({text})" if keep_nan else f"b32(clean({text}))"
    bits = w.value("u16", _half(a, target, mode))
    if "sat" in ins.modifiers:
        bits = w.value("u16", f"saturated_h({bits})")
    infinite = "0x7C00u" if target == "f16" else "0x7F80u"
    if "satfinite" in ins.modifiers:
        bits = w.value("u16", f"({bits} & 0x7FFFu) == {infinite} ? {bits} - 1 : {bits}")
    if "relu" in ins.modifiers:
        negative = f"({bits} & 0x8000u) && ({bits} & 0x7FFFu) <= {infinite}"
        bits = w.value("u16", f"{negative} ? 0 : {bits}")
    return bits


def _half(a: str, target: str, mode: str) -> str:
    """The bits of a half or bf16 that a single is rounded to."""
    match target, mode:
        case "f16", "RN":
            return f"h16({a})"
        case "f16", "RZ":
            return f"h16_rz({a})"
        case "bf16", "RN":
            return f"bf16({a})"
        case "bf16", "RZ":
            return f"({a} != {a} ? 0x7FFFu : b32({a}) >> 16)"
        case _:
            return codes.coded(f"(double){a}", target, mode)


def _pair(w: Writer, ins: Instruction, target: str) -> None:
    """The first operand becomes the upper half."""
    one = target.removesuffix("x2")
    made = [
        _made(w, ins, _number(w, ins, operand, "f32", one), one, False)
        for operand in ins.operands[1:3]
    ]
    store(w, ins, target, made[::-1])
