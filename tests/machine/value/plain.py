"""What machine values mean, one thread at a time, in Python's integers and fractions.

The value of an integer type is a number in its range, of pred 0 or 1, of f32 and f64 its bits. The
interpreters in NumPy, C and Z3 are tested against this.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction

from warploom.machine.narrow import FORMATS, Format
from warploom.machine.value.arithmetic import apply
from warploom.machine.value.ir import Value, is_float, nodes

_WHOLE: dict[str, Callable[[float], int]] = {
    "rint": round,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
}


def evaluate(value: Value, operands: Sequence[int]) -> int:
    """The value for these operands."""
    made: dict[Value, int] = {}
    for node in nodes([value]):
        made[node] = _value(node, [made[a] for a in node.args], operands)
    return made[value]


def _value(node: Value, args: list[int], operands: Sequence[int]) -> int:
    if node.op == "arg":
        return operands[int(node.number)]
    if node.op == "const":
        return int(node.number)
    kinds = tuple(a.type for a in node.args)
    floating = any(map(is_float, (node.type, *kinds)))
    if node.op in ("select", "bits") or not floating:
        return apply(node.op, node.type, kinds, args)
    return _floating(node, kinds, args)


def _floating(node: Value, kinds: tuple[str, ...], args: list[int]) -> int:
    if node.op == "half":
        return _bits(node.type, struct.unpack("<e", struct.pack("<H", args[0]))[0])
    numbers = [_number(*each) for each in zip(kinds, args, strict=True)]
    x = numbers[0]
    match node.op:
        case "eq":
            return int(x == numbers[1])
        case "lt":
            return int(x < numbers[1])
        case "le":
            return int(x <= numbers[1])
        case "mul":
            return _bits(node.type, float(x) * float(numbers[1]))
        case "to" if not is_float(node.type):
            return int(x)
        case "to":
            return _rounded(node.type, x, "rn")
        case "narrow":
            return _rounded(node.type, x, str(node.number))
        case "encode":
            return _encoded(node, float(x), args[1:])
        case _:
            whole = float(_WHOLE[node.op](x)) if math.isfinite(x) else x
            return _bits(node.type, math.copysign(whole, x))


def _number(type_: str, bits: int) -> int | float:
    if not is_float(type_):
        return bits
    kinds = ("<I", "<f") if type_ == "f32" else ("<Q", "<d")
    return float(struct.unpack(kinds[1], struct.pack(kinds[0], bits))[0])


def _bits(type_: str, number: float) -> int:
    kind = "<f" if type_ == "f32" else "<d"
    return int.from_bytes(struct.pack(kind, number), "little")


_SINGLE = Format("f32", 8, 23, 0x7F7FFFFF, 0x7F800000, 0x7FC00000)
_DOUBLE = Format("f64", 11, 52, 0x7FEF << 48 | (1 << 48) - 1, 0x7FF0 << 48, 0x7FF8 << 48)


def _rounded(type_: str, x: int | float, mode: str) -> int:
    """A number in f32 or f64."""
    form = _SINGLE if type_ == "f32" else _DOUBLE
    return code_of(x, form, mode)


def _encoded(node: Value, x: float, random: list[int]) -> int:
    name, mode, *finite = str(node.number).split()
    return code_of(x, FORMATS[name], mode, bool(finite), *random)


def code_of(x: int | float, form: Format, mode: str, finite: bool = False, random: int = 0) -> int:
    """The bits of a number in a format, rounded once."""
    if x != x:
        return form.largest if form.nan is None else form.nan
    minus = math.copysign(1, x) < 0
    sign = form.sign if minus else 0
    beyond = form.largest if finite or form.infinity is None else form.infinity
    if math.isinf(x):
        return sign | beyond
    code = _magnitude(abs(Fraction(x)), form, mode, minus, random)
    inwards = mode == "rz" or mode == ("rp" if minus else "rm")
    return sign | (code if code <= form.largest else form.largest if inwards else beyond)


def _magnitude(size: Fraction, form: Format, mode: str, minus: bool, random: int) -> int:
    lowest = 1 - form.bias
    exponent = lowest
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = size / Fraction(2) ** (exponent - form.fraction_bits)
    below = math.floor(scaled)
    rest = scaled - below
    match mode:
        case "rn":
            whole = round(scaled)
        case "rna":
            whole = below + (rest >= Fraction(1, 2))
        case "rs":
            whole = below + (rest + Fraction(random, 1 << 16) >= 1)
        case "rz":
            whole = below
        case _:
            whole = below + (rest > 0 and minus == (mode == "rm"))
    return whole + (exponent - lowest << form.fraction_bits)
