"""What floating instructions give, bit for bit, in Python's fractions: nothing is shared with the
emulator. `meaning` takes the name of an instruction and its operands as bits, and gives bits; None
where PTX leaves them open (NaNs of doubles)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

# Bits of exponent and of fraction; the code of the largest number, of infinity and of a NaN.
FORMATS: dict[str, tuple[int, int, int, int | None, int | None]] = {
    "f16": (5, 10, 0x7BFF, 0x7C00, 0x7FFF),
    "bf16": (8, 7, 0x7F7F, 0x7F80, 0x7FFF),
    "f32": (8, 23, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF),
    "f64": (11, 52, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, None),
    "tf32": (8, 10, 0x3FBFF, 0x3FC00, None),
    "e4m3": (4, 3, 0x7E, None, 0x7F),
    "e5m2": (5, 2, 0x7B, 0x7C, 0x7F),
    "e2m3": (2, 3, 0x1F, None, None),
    "e3m2": (3, 2, 0x1F, None, None),
    "e2m1": (2, 1, 0x7, None, None),
}
MODES = ("rn", "rz", "rm", "rp", "rna", "rs")
Number = Fraction | float  # floats are -0.0, the infinities and NaN only


def width(kind: str) -> int:
    exponent, fraction = FORMATS[kind][:2]
    return 1 + exponent + fraction


def decode(bits: int, kind: str) -> Number:
    exponent_bits, fraction_bits, largest, infinity, _ = FORMATS[kind]
    sign = -1 if bits >> exponent_bits + fraction_bits & 1 else 1
    code = bits & (1 << exponent_bits + fraction_bits) - 1
    if code == infinity:
        return sign * math.inf
    if code > largest:
        return math.nan
    field, fraction = code >> fraction_bits, code & (1 << fraction_bits) - 1
    if field:
        fraction += 1 << fraction_bits
    bias = (1 << exponent_bits - 1) - 1
    value = sign * Fraction(fraction) * Fraction(2) ** (max(field, 1) - bias - fraction_bits)
    return -0.0 if value == 0 and sign < 0 else value


def negative(x: Number) -> bool:
    return math.copysign(1, x) < 0 if isinstance(x, float) else x < 0


def is_nan(x: Number) -> bool:
    return isinstance(x, float) and math.isnan(x)


def is_infinite(x: Number) -> bool:
    return isinstance(x, float) and math.isinf(x)


def exact(x: Number) -> Fraction:
    return Fraction(0) if isinstance(x, float) else x


def to_whole(x: Fraction, mode: str, sign: bool, random: Fraction | None = None) -> int:
    """A magnitude as a whole number; the mode is meant for a number of that sign."""
    below = math.floor(x)
    rest = x - below
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1),
        "rna": rest >= Fraction(1, 2), "rz": False,
        "rm": sign and rest > 0, "rp": not sign and rest > 0,
        "rs": random is not None and rest + random >= 1,
    }  # fmt: skip
    return below + up[mode]


def encode(
    x: Number, kind: str, mode: str = "rn", satfinite: bool = False, random: Fraction | None = None
) -> int | None:
    exponent_bits, fraction_bits, largest, infinity, nan = FORMATS[kind]
    if is_nan(x):
        return nan if nan is not None or kind in ("f64", "tf32") else largest
    sign = negative(x)
    top = sign << exponent_bits + fraction_bits
    if is_infinite(x):
        return top | (largest if satfinite or infinity is None else infinity)
    magnitude, lowest = abs(exact(x)), 2 - (1 << exponent_bits - 1)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent = max(lowest, exponent - (magnitude < Fraction(2) ** exponent))
    exponent = exponent if magnitude else lowest
    whole = to_whole(magnitude / Fraction(2) ** (exponent - fraction_bits), mode, sign, random)
    code = whole + (exponent - lowest << fraction_bits)
    if code > largest:
        inwards = mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and sign)
        stays = satfinite or inwards or infinity is None
        code = largest if stays or infinity is None else infinity
    return top | code


def flush(x: Number, kind: str) -> Number:
    """.ftz: numbers below the smallest normal one are zeros of their sign."""
    exponent_bits = FORMATS[kind][0]
    if isinstance(x, Fraction) and abs(x) < Fraction(2) ** (2 - (1 << exponent_bits - 1)):
        return -0.0 if x < 0 else Fraction(0)
    return x


def add(a: Number, b: Number, mode: str) -> Number:
    if is_nan(a) or is_nan(b) or (is_infinite(a) and is_infinite(b) and a != b):
        return math.nan
    if is_infinite(a) or is_infinite(b):
        return a if is_infinite(a) else b
    total = exact(a) + exact(b)
    if total == 0 and (
        (negative(a) and negative(b)) or (mode == "rm" and (negative(a) or negative(b)))
    ):
        return -0.0
    return total


def minus(x: Number) -> Number:
    if isinstance(x, float):
        return -x
    return -0.0 if x == 0 else -x


def multiply(a: Number, b: Number) -> Number:
    if is_nan(a) or is_nan(b):
        return math.nan
    sign = negative(a) != negative(b)
    if is_infinite(a) or is_infinite(b):
        return math.nan if 0 in (a, b) else -math.inf if sign else math.inf
    product = exact(a) * exact(b)
    return -0.0 if product == 0 and sign else product


def divide(a: Number, b: Number) -> Number:
    if is_nan(a) or is_nan(b) or (is_infinite(a) and is_infinite(b)) or (a == 0 and b == 0):
        return math.nan
    sign = negative(a) != negative(b)
    if is_infinite(a) or b == 0:
        return -math.inf if sign else math.inf
    quotient = Fraction(0) if is_infinite(b) else exact(a) / exact(b)
    return -0.0 if quotient == 0 and sign else quotient


def extreme(values: list[Number], least: bool, keep_nan: bool) -> Number:
    if keep_nan and any(map(is_nan, values)):
        return math.nan
    numbers = [x for x in values if not is_nan(x)]
    if not numbers:
        return math.nan
    pick = min if least else max
    return pick(numbers, key=lambda x: (x, not negative(x)))


def _finish(x: Number, kind: str, words: set[str], mode: str) -> int | None:
    bits = encode(x, kind, mode)
    if bits is None:
        return None
    value = decode(bits, kind)
    if "ftz" in words:
        value = flush(value, kind)
    if "sat" in words:
        value = Fraction(0) if is_nan(value) or value <= 0 else min(value, Fraction(1))
    if "relu" in words and not is_nan(value) and value <= 0:
        value = Fraction(0)
    return encode(value, kind)


def _pairs(fn: Callable[..., int | None], values: tuple[int, ...], bits: int) -> int | None:
    mask = (1 << bits) - 1
    low, high = fn(*[v & mask for v in values]), fn(*[v >> bits & mask for v in values])
    return None if low is None or high is None else high << bits | low


def arithmetic(opcode: str, words: list[str]) -> Callable[..., int | None]:
    kinds = [w for w in words if w.removesuffix("x2") in FORMATS]
    kind, mode = kinds[0], next((w for w in words if w in MODES), "rn")
    scalar, given = kind.removesuffix("x2"), set(words)
    # With halves: the first operand of a sum, the first two of a product and a sum.
    halves = kinds[1] if len(kinds) > 1 else scalar
    few = 2 if opcode == "fma" else 1

    def one(*bits: int) -> int | None:
        values = [decode(v, halves if i < few else scalar) for i, v in enumerate(bits)]
        if "ftz" in given:
            values = [flush(x, scalar) for x in values]
        match opcode:
            case "add":
                result = add(values[0], values[1], mode)
            case "sub":
                result = add(values[0], minus(values[1]), mode)
            case "mul":
                result = multiply(values[0], values[1])
            case "fma" | "mad":
                result = add(multiply(values[0], values[1]), values[2], mode)
            case "div":
                result = divide(values[0], values[1])
            case "rcp":
                result = divide(Fraction(1), values[0])
            case "neg":
                result = minus(values[0])
            case _:
                signs = [v >> width(scalar) - 1 & 1 for v in bits]
                return _extreme(opcode, given, values, signs, scalar)
        return _finish(result, scalar, given, mode)

    if kind == scalar:
        return one
    return lambda *bits: _pairs(one, bits, width(scalar))


def _extreme(
    opcode: str, words: set[str], values: list[Number], signs: list[int], kind: str
) -> int | None:
    if "abs" in words:
        values = [minus(x) if negative(x) else x for x in values]
    result = extreme(values, opcode == "min", "NaN" in words)
    if "xorsign" in words and not is_nan(result):
        flip = signs[0] != signs[1]
        result = minus(result) if flip != negative(result) else result
    return _finish(result, kind, words & {"ftz"}, "rn")


# -- conversions -------------------------------------------------------------------------------

INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def _range(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _integral(x: Number, mode: str) -> Number:
    if isinstance(x, float):
        return x
    whole = to_whole(abs(x), mode, x < 0)
    return -0.0 if whole == 0 and x < 0 else Fraction(-whole if x < 0 else whole)


def _float_to_integer(x: Number, source: str, target: str, mode: str) -> int:
    low, high = _range(target)
    bits = int(target[1:])
    if is_nan(x):
        wide = source == "f64" or bits == 64
        lone = low if low < 0 else 1 << bits - 1  # the top bit
        return lone & (1 << max(bits, 16)) - 1 if wide else 0
    x = _integral(x, mode)
    value = (low if x < 0 else high) if is_infinite(x) else max(low, min(high, int(exact(x))))
    return value & (1 << max(bits, 16)) - 1  # a byte is extended in its register


def conversion(words: list[str]) -> Callable[..., int | None]:
    """cvt of one number."""
    target, source = words[-2:]
    given = set(words)
    integral = next((INTEGRAL[w] for w in words if w in INTEGRAL), None)
    mode = next((w for w in words if w in MODES), "rn")

    def number(bits: int) -> Number:
        if source in FORMATS:
            x = decode(bits, source)
            flushed = "ftz" in given and source == "f32" and target != "f16"
            return flush(x, source) if flushed else x
        low, high = _range(source)
        bits &= high - low
        return Fraction(bits - (high - low + 1) if bits > high else bits)

    def convert(bits: int) -> int | None:
        x = number(bits)
        if target not in FORMATS:
            if source in FORMATS:
                return _float_to_integer(x, source, target, integral or "rz")
            low, high = _range(target)
            value = int(exact(x))
            value = max(low, min(high, value)) if "sat" in given else value
            if not low <= value <= high:  # the low bits
                value &= high - low
                value -= (high - low + 1) * (value > high)
            return value & (1 << max(int(target[1:]), 16)) - 1
        if is_nan(x) and not integral and _keeps(source, target, given):
            return None  # some of its bits
        x = x if integral is None else _integral(x, integral)
        words_ = given - ({"ftz"} if target != "f32" else set())
        if "satfinite" in given:
            out = encode(x, target, mode, satfinite=True)
            return (
                None
                if out is None
                else _finish(decode(out, target), target, words_ & {"relu"}, "rn")
            )
        return _finish(x, target, words_, mode)

    return convert


def _keeps(source: str, target: str, words: set[str]) -> bool:
    """Whether a NaN keeps some of its bits: those of an H200 are in `test_seen.py`."""
    if target == source == "f32":
        return not words & {"ftz", "sat"}
    return (source, target) in {("f64", "f32"), ("bf16", "f32"), ("f64", "f16"), ("f64", "bf16")}


def to_tf32(words: list[str], bits: int) -> int | None:
    x = decode(bits, "f32")
    if is_nan(x):
        return None
    mode = next(w for w in words if w in MODES)
    out = encode(x, "tf32", mode, "satfinite" in words)
    assert out is not None
    if "relu" in words and (negative(x) or x == 0):
        out = 0
    return out << 13


def to_scale(bits: int, kind: str, mode: str, satfinite: bool) -> int:
    x = decode(bits, kind)
    if is_nan(x):
        return 0xFF
    if is_infinite(x):
        return 0xFE if satfinite else 0xFF
    magnitude = abs(exact(x))
    code = 0
    for each in range(256):
        power = Fraction(2) ** (each - 127)
        if mode == "rz" and power <= magnitude:
            code = each
        if mode == "rp" and power < magnitude:
            code = each + 1
    return min(code, 0xFE) if satfinite else min(code, 0xFF)


def _to_small(words: list[str], target: str, bits: int, kind: str, random: Fraction | None) -> int:
    if target == "ue8m0":
        return to_scale(bits, kind, next(w for w in words if w in MODES), "satfinite" in words)
    x = decode(bits, kind)
    if "relu" in words and not is_nan(x) and (negative(x) or x == 0):
        x = Fraction(0)
    out = encode(x, target, "rn" if random is None else "rs", "satfinite" in words, random)
    assert out is not None
    return out


def _from_small(words: list[str], source: str, code: int) -> int:
    if source == "ue8m0":
        return 0x7FFF if code == 0xFF else 0x40 if code == 0 else code << 7
    x = decode(code & (1 << width(source)) - 1, source)
    out = _finish(x, "f16", set(words) & {"relu"}, "rn")
    assert out is not None
    return out


def _random(bits: int, name: str, first: bool) -> Fraction:
    high, low = bits >> 16, bits & 0xFFFF
    if name == "f16":
        return Fraction((high if first else low) & 0x1FFF, 1 << 13)
    if name == "e2m1":
        upper, lower = (high >> 8) << 8 | low >> 8, (high & 0xFF) << 8 | low & 0xFF
        return Fraction(upper if first else lower, 1 << 16)
    return Fraction(high if first else low, 1 << 16)


def small_conversion(words: list[str]) -> Callable[..., int | None]:
    """cvt of several numbers at once, or to tf32; the first operand lies highest."""
    target, source = words[-2:]
    name, _, count = target.partition("x")
    if target == "tf32":
        return lambda bits: to_tf32(words, bits)
    if "rs" in words:
        return lambda *given: _random_conversion(words, name, given)
    if source in ("f16x2", "bf16x2"):
        each = 4 if name == "e2m1" else 8
        half = source.removesuffix("x2")
        return lambda bits: (
            _to_small(words, name, bits >> 16, half, None) << each
            | _to_small(words, name, bits & 0xFFFF, half, None)
        )
    if source == "f32":
        one = conversion([*words[:-2], name, source]) if name in ("f16", "bf16") else None
        each = {"f16": 16, "bf16": 16, "e2m1": 4}.get(name, 8)

        def pair(a: int, b: int) -> int | None:
            made = [
                _to_small(words, name, v, "f32", None) if one is None else one(v) for v in (a, b)
            ]
            return None if None in made else made[0] << each | made[1]  # type: ignore[operator]

        return pair
    inner = source.removesuffix("x2")
    each = 4 if inner == "e2m1" else 8
    assert count == "2"
    return lambda bits: (
        _from_small(words, inner, bits >> each & 255) << 16
        | _from_small(words, inner, bits & (1 << each) - 1)
    )


def _random_conversion(words: list[str], name: str, given: tuple[int, ...]) -> int:
    *values, random = given
    each = {"f16": 16, "bf16": 16, "e2m1": 4}.get(name, 8)
    out = 0
    for place, bits in enumerate(values):
        part = _random(random, name, 2 * place < len(values))
        out = out << each | _to_small(words, name, bits, "f32", part)
    return out


ARITHMETIC = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "neg", "min", "max")


def meaning(name: str) -> Callable[..., int | None] | None:
    """Of an instruction on floats; None for what this file does not say."""
    opcode, *words = name.split(".")
    floats = [w for w in words if w.removesuffix("x2").removesuffix("x4") in (*FORMATS, "ue8m0")]
    if not floats or {"approx", "full"} & set(words):
        return None
    if opcode in ARITHMETIC:
        return arithmetic(opcode, words)
    if opcode == "cvt":
        plain = all(
            (w in FORMATS and w != "tf32") or (w[0] in "us" and w[1:].isdigit()) for w in words[-2:]
        )
        return conversion(words) if plain and "rs" not in words else small_conversion(words)
    return None
