"""cvt in C, as the evaluator converts."""

from __future__ import annotations

from warploom.ptx.emulate.shape import rounding_of, types_of
from warploom.ptx.fast.floats import HALVES, MODES, numbers, store
from warploom.ptx.fast.operand import NotTaken, Writer, alone, refuse, scalar, sources
from warploom.ptx.ir import Instruction, Operand
from warploom.ptx.types import DTYPES, is_float

_WHOLE = {
    "rni": "__builtin_rint", "rzi": "__builtin_trunc", "rmi": "__builtin_floor",
    "rpi": "__builtin_ceil",
}  # fmt: skip
_KNOWN = ("f16", "bf16", "f32", "f64", "tf32")


def cvt(w: Writer, ins: Instruction) -> None:
    if len(types_of(ins)) != 2 or "pack" in ins.modifiers or "rs" in ins.modifiers:
        raise NotTaken(ins.name)
    target, source = types_of(ins)
    if target in ("f16x2", "bf16x2") and source == "f32":
        _pair(w, ins, target)
        return
    if any(is_float(kind) and kind not in _KNOWN for kind in (target, source)):
        raise NotTaken(ins.name)
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
    refuse(ins, "sat")
    mode = MODES.get(rounding_of(ins))
    (a,) = sources(w, ins, source)
    if mode == "RN" and target in ("f32", "f64"):
        w.write(ins.operands[0], target, f"({scalar(target)}){a}")
        return
    narrow = {"f16": "h16d", "bf16": "bf16d"}
    if DTYPES[source].itemsize == 8 or mode is None or (target in HALVES and mode != "RN"):
        raise NotTaken(ins.name)
    exact = f"(double){a}"
    if target == "f64":
        w.write(ins.operands[0], "f64", exact)
    elif target == "f32":
        w.write(ins.operands[0], "f32", f"narrow({exact}, {mode})")
    else:
        store(w, ins, target, [f"{narrow[target]}({exact})"])


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
    if target == "tf32" or source == "tf32":
        raise NotTaken(ins.name)
    if target == source == "f32" and len(ins.modifiers) == 2:
        w.write(ins.operands[0], "u32", w.bits(ins.operands[1], "f32"))  # a copy
        return
    if source == "f64" and target in HALVES:
        raise NotTaken(ins.name)  # whose NaNs have bits of the double's
    name = next((m for m in ins.modifiers if m in _WHOLE), None)
    if target == "f64" and source == "f16" and name is None:
        refuse(ins, "sat", "ftz")
        w.write(ins.operands[0], "f64", f"h64({w.bits(ins.operands[1], 'f16')})")
        return
    a = _number(w, ins, ins.operands[1], source, target)
    if name is not None:
        kind = "f64" if source == "f64" else "f32"
        a = w.value(kind, f"{_WHOLE[name]}{'' if kind == 'f64' else 'f'}({a})")
    if target == "f64":
        refuse(ins, "sat", "ftz")
        w.write(ins.operands[0], "f64", f"(double){a}")
        return
    keep = target == "f32" and source in ("f64", "bf16") and name is None
    store(w, ins, target, [_made(w, ins, a, target, keep)])


def _made(w: Writer, ins: Instruction, a: str, target: str, keep_nan: bool) -> str:
    """The bits of a single, half or bf16: rounded, then flushed, saturated, cut off at zero."""
    mode = MODES.get(rounding_of(ins))
    if mode is None or (target != "f32" and mode not in ("RN", "RZ")):
        raise NotTaken(ins.name)
    if target == "f32":
        refuse(ins, "satfinite", "relu")
        text = f"narrow({a}, {mode})"
        for word, name in (("ftz", "flush"), ("sat", "saturated")):
            text = f"{name}({text})" if word in ins.modifiers else text
        return f"b32({text})" if keep_nan else f"b32(clean({text}))"
    refuse(ins, "sat")
    if target == "f16":
        bits = w.value("u16", f"h16({a})" if mode == "RN" else f"h16_rz({a})")
        infinite, nan = "0x7C00u", "0x7C00u"
    else:
        cut = f"({a} != {a} ? 0x7FFFu : b32({a}) >> 16)"
        bits = w.value("u16", f"bf16({a})" if mode == "RN" else cut)
        infinite, nan = "0x7F80u", "0x7F80u"
    if "satfinite" in ins.modifiers:
        bits = w.value("u16", f"({bits} & 0x7FFFu) == {infinite} ? {bits} - 1 : {bits}")
    if "relu" in ins.modifiers:
        negative = f"({bits} & 0x8000u) && ({bits} & 0x7FFFu) <= {nan}"
        bits = w.value("u16", f"{negative} ? 0 : {bits}")
    return bits


def _pair(w: Writer, ins: Instruction, target: str) -> None:
    """The first operand becomes the upper half."""
    one = target.removesuffix("x2")
    made = [
        _made(w, ins, _number(w, ins, operand, "f32", one), one, False)
        for operand in ins.operands[1:3]
    ]
    store(w, ins, target, made[::-1])
