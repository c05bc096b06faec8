"""What instructions mean, one thread at a time, in Python's integers and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

FORMATS = {
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "f32": (24, -126, 127),
    "f64": (53, -1022, 1023),
}
INTEGRAL: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}


WHOLE: dict[str, Callable[[Fraction], int]]
WHOLE = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}


def round_to(x: Fraction, kind: str, mode: str) -> Fraction | float:
    """A fraction in a floating format; infinities are Python floats."""
    precision, low, high = FORMATS[kind]
    if x == 0:
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, low) - precision + 1)
    scaled = x / quantum
    whole = WHOLE[mode](scaled)
    result = whole * quantum
    largest = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** high
    if abs(result) <= largest:
        return result
    stays = mode == "rz" or (mode == "rm" and x > 0) or (mode == "rp" and x < 0)
    return (largest if x > 0 else -largest) if stays else math.inf if x > 0 else -math.inf


def wrap(value: int, kind: str) -> int:
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def clamp(value: int, kind: str) -> int:
    bits = int(kind[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    return max(low, min(high, value))


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _bits(a: int, kind: str) -> int:
    return a & ((1 << int(kind[1:])) - 1)


def _bfe(a: int, pos: int, length: int, kind: str) -> int:
    width = int(kind[1:])
    bits = _bits(a, kind)
    sign = 0
    if kind[0] == "s" and length:
        sign = bits >> min(pos + length - 1, width - 1) & 1
    out = 0
    for i in range(width):
        inside = i < length and pos + i < width
        out |= (bits >> (pos + i) & 1 if inside else sign) << i
    return out


def _bfi(a: int, b: int, pos: int, length: int, kind: str) -> int:
    width = int(kind[1:])
    for i in range(length):
        if pos + i < width:
            b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return b


def _bfind(a: int, kind: str, amount: bool) -> int:
    width = int(kind[1:])
    found = (~a if a < 0 else a).bit_length() - 1
    return 0xFFFFFFFF if found < 0 else width - 1 - found if amount else found


def _prmt(a: int, b: int, c: int) -> int:
    data = (b << 32 | a).to_bytes(8, "little")
    out = 0
    for i in range(4):
        pick = c >> 4 * i & 15
        byte = data[pick & 7]
        out |= (byte if pick < 8 else 0xFF * (byte >> 7)) << 8 * i
    return out


def _lop3(a: int, b: int, c: int, table: int) -> int:
    out = 0
    for i in range(32):
        out |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
    return out


def _dp(a: int, b: int, c: int, signs: tuple[str, str], size: int, start: int) -> int:
    total = c
    for i in range(4 // size):
        x = wrap(a >> 8 * size * i, f"{signs[0]}{8 * size}")
        y = wrap(b >> 8 * (i + start), f"{signs[1]}8")
        total += x * y
    return total


def _mul24(a: int, b: int, kind: str, high: bool) -> int:
    x, y = (wrap(v, f"{kind[0]}24") for v in (a, b))
    return (x * y) >> (16 if high else 0)


def integer(name: str) -> tuple[str, Callable[..., int]] | None:
    """(result type, meaning) of an integer or bit instruction."""
    opcode, *mods = name.split(".")
    kind = mods[-1] if mods else ""
    high, sat = "hi" in mods, "sat" in mods

    def product(a: int, b: int) -> int:
        return (a * b) >> int(kind[1:]) if high else a * b

    fit = (lambda v: clamp(v, kind)) if sat else (lambda v: v)
    width = int(kind[1:]) if kind[1:].isdigit() else 32
    wide = f"{kind[0]}{2 * width}" if "wide" in mods else kind
    table: dict[str, Callable[..., int]] = {
        "add": lambda a, b: fit(a + b), "sub": lambda a, b: fit(a - b), "mul": product,
        "mad": lambda a, b, c: fit(product(a, b) + c), "min": min, "max": max,
        "div": truncated, "rem": lambda a, b: a - b * truncated(a, b), "abs": abs,
        "neg": lambda a: -a, "sad": lambda a, b, c: c + abs(a - b),
        "mul24": lambda a, b: _mul24(a, b, kind, high),
        "mad24": lambda a, b, c: _mul24(a, b, kind, high) + c,
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a, "cnot": lambda a: int(a == 0),
        "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
        "brev": lambda a: int(f"{a:0{width}b}"[::-1], 2),
        "bfe": lambda a, p, n: _bfe(a, p, n, kind),
        "bfi": lambda a, b, p, n: _bfi(a, b, p, n, kind),
        "dp4a": lambda a, b, c: _dp(a, b, c, (mods[0][0], mods[1][0]), 1, 0),
        "dp2a": lambda a, b, c: _dp(a, b, c, (mods[1][0], mods[2][0]), 2, 2 if high else 0),
        "popc": lambda a: a.bit_count(), "clz": lambda a: width - a.bit_length(),
        "bfind": lambda a: _bfind(a, kind, "shiftamt" in mods),
        "shf": lambda a, b, n: _shf(a, b, n, mods),
        "prmt": _prmt, "szext": lambda a, n: _szext(a, n, mods),
        "bmsk": lambda a, n: _bmsk(a, n, mods),
    }  # fmt: skip
    if opcode not in table or (opcode == "prmt" and len(mods) > 1):
        return None
    result = {"popc": "u32", "clz": "u32", "bfind": "u32", "dp4a": "s32", "dp2a": "s32"}.get(
        opcode, wide
    )
    return result, table[opcode]


def _shf(a: int, b: int, n: int, mods: list[str]) -> int:
    n = n & 31 if "wrap" in mods else min(n, 32)
    both = b << 32 | a
    return (both << n) >> 32 if "l" in mods else both >> n


def _szext(a: int, n: int, mods: list[str]) -> int:
    n = min(n, 32) if "clamp" in mods else n & 31
    value = a & ((1 << n) - 1)
    return value - (1 << n) if mods[-1] == "s32" and n and value >> (n - 1) else value


def _bmsk(a: int, n: int, mods: list[str]) -> int:
    a, n = (min(a, 32), min(n, 32)) if "clamp" in mods else (a & 31, n & 31)
    return ((1 << n) - 1) << a


def as_number(value: Any, kind: str) -> float:
    """A NumPy scalar (bf16 as bits) as a Python float."""
    if kind == "bf16":
        return float(np.array([int(value) << 16], np.uint32).view(np.float32)[0])
    return float(value)


def arithmetic(name: str) -> Callable[..., Fraction | float | None] | None:
    """The rounded result of add, sub, mul, div, fma on floats; None where it is not finite."""
    opcode, *mods = name.split(".")
    kind, mode = mods[-1], next((m for m in mods if m in ("rn", "rz", "rm", "rp")), "rn")
    exact: dict[str, Callable[..., Fraction]] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b, "fma": lambda a, b, c: a * b + c, "rcp": lambda a: 1 / a,
    }  # fmt: skip
    if opcode not in exact or kind not in FORMATS or {"ftz", "sat", "approx", "full"} & set(mods):
        return None

    def meaning(*values: float) -> Fraction | float | None:
        if not all(map(math.isfinite, values)) or (opcode in ("div", "rcp") and values[-1] == 0):
            return None
        return round_to(exact[opcode](*map(Fraction, values)), kind, mode)

    return meaning


def conversion(name: str) -> Callable[[Any], Fraction | float | int | None] | None:
    """cvt between plain types."""
    opcode, *mods = name.split(".")
    if opcode != "cvt" or {"ftz", "relu", "pack", "tf32", "rna"} & set(mods) or "x2" in name:
        return None
    target, source = mods[-2:]
    mode = next((m for m in mods if m in ("rn", "rz", "rm", "rp")), "rn")
    whole = next((INTEGRAL[m] for m in mods if m in INTEGRAL), None)

    def meaning(value: Any) -> Fraction | float | int | None:
        if source in FORMATS:
            number = as_number(value, source)
            if math.isnan(number) or "sat" in mods:
                return None
            if target in FORMATS:
                if math.isinf(number) or whole:
                    return None
                return round_to(Fraction(number), target, mode)
            assert whole is not None
            if math.isinf(number):
                return clamp(int(math.copysign(1 << 70, number)), target)
            return clamp(whole(Fraction(number)), target)
        if target in FORMATS:
            return round_to(Fraction(int(value)), target, mode)
        return clamp(int(value), target) if "sat" in mods else wrap(int(value), target)

    return meaning
