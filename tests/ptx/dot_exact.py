"""Dot products of tensor cores in whole numbers, one at a time: written apart from the emulator."""

from __future__ import annotations

from fractions import Fraction

# Bits of exponent and fraction; whether all ones in the exponent are infinities and NaNs.
KINDS = {"f16": (5, 10, True), "bf16": (8, 7, True), "tf32": (8, 10, True), "f32": (8, 23, True),
         "e5m2": (5, 2, True), "e4m3": (4, 3, False)}  # fmt: skip
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}
Number = tuple[Fraction, int] | float  # a value and its exponent; inf or nan


def read(code: int, kind: str, exponents_of: str = "") -> Number:
    if kind == "tf32":
        code >>= 13
    bits, fraction, ieee = KINDS[kind]
    bias = 2 ** (bits - 1) - 1
    sign = -1 if code >> (bits + fraction) else 1
    field, rest = (code >> fraction) & (2**bits - 1), code & (2**fraction - 1)
    if field == 2**bits - 1:
        if ieee:
            return float("nan") if rest else sign * float("inf")
        if rest == 2**fraction - 1:
            return float("nan")
    value = (
        sign * (Fraction(rest, 2**fraction) + (field > 0)) * Fraction(2) ** (max(field, 1) - bias)
    )
    exponent = max(field, 1) - bias
    if exponents_of and value:  # the number as one of a wider type, where it may be normal
        lowest = 2 - 2 ** (KINDS[exponents_of][0] - 1)
        exponent = lowest
        while abs(value) >= Fraction(2) ** (exponent + 1):
            exponent += 1
    return value, exponent


def toward_zero(x: Fraction) -> int:
    return int(x)  # Python cuts off


def write(value: Fraction, kind: str, nearest: bool, kept: int = 0) -> int:
    """The code of an exact value; zero is positive, what is too large infinite."""
    bits, fraction, _ = KINDS[kind]
    bias = 2 ** (bits - 1) - 1
    kept = kept or fraction
    magnitude = abs(value)
    exponent = 1 - bias
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = magnitude / Fraction(2) ** (exponent - kept)
    whole = round(scaled) if nearest else int(scaled)  # Python rounds ties to even
    if whole >= 2 ** (kept + 1):
        whole, exponent = whole // 2, exponent + 1
    if not whole:
        return 0
    sign = (value < 0) << (bits + fraction)
    if exponent > bias:
        return sign | (2**bits - 1) << fraction
    whole <<= fraction - kept
    field = exponent + bias if whole >= 2**fraction else 0
    return sign | field << fraction | whole % 2**fraction


def dot(
    a: list[Number], b: list[Number], c: int, result: str, below: int = 25, kept: int = 0
) -> int:
    """One fused step; codes in and out for c and the result."""
    addend = read(c, result)
    numbers = [*a, *b, addend]
    if any(isinstance(x, float) for x in numbers):
        return _special(a, b, addend, result)
    assert not isinstance(addend, float)
    terms = [addend]
    for x, y in zip(a, b, strict=True):
        assert not isinstance(x, float)
        assert not isinstance(y, float)
        terms.append((x[0] * y[0], x[1] + y[1]))
    live = [exponent for value, exponent in terms if value]
    if not live:
        return 0
    unit = Fraction(2) ** (max(live) - below)
    total = sum(toward_zero(value / unit) for value, _ in terms)
    return write(total * unit, result, nearest=result == "f16", kept=kept)


def _special(a: list[Number], b: list[Number], c: Number, result: str) -> int:
    def plain(x: Number) -> float:
        if isinstance(x, float):
            return x
        return float((x[0] > 0) - (x[0] < 0))  # its sign is all that matters

    products = [plain(x) * plain(y) for x, y in zip(a, b, strict=True)]
    wild = [x for x in (*products, plain(c)) if x != x or abs(x) == float("inf")]
    total = sum(wild)
    if total != total:
        return NAN[result]
    bits, fraction, _ = KINDS[result]
    return (total < 0) << (bits + fraction) | (2**bits - 1) << fraction


def add(x: int, y: int, kind: str) -> int:
    """An ordinary addition of two codes, rounded to nearest."""
    p, q = read(x, kind), read(y, kind)
    if isinstance(p, float) or isinstance(q, float):
        return _special([], [], _sum(p, q), kind)
    total = p[0] + q[0]
    bits, fraction, _ = KINDS[kind]
    if not total:
        negative = x >> (bits + fraction) and y >> (bits + fraction)
        return (1 << (bits + fraction)) if negative and not p[0] else 0
    code = write(total, kind, nearest=True)
    return code or (total < 0) << (bits + fraction)


def _sum(p: Number, q: Number) -> float:
    return sum(x for x in (p, q) if isinstance(x, float))
