"""What `%…` of a format means in C: flags, width, precision, length and conversion.

Python's `%` agrees for most; it is asked where it does, and the rest is written out.
"""

from __future__ import annotations

import math
import re
from typing import Any, Protocol

LARGEST_FIELD = 1 << 12  # characters of one value: a width may be any number
_PART = re.compile(
    r"%(?:%|(?P<flags>[-+ #0]*)(?P<width>\*|\d{1,9})?(?:\.(?P<precision>\*|\d{0,9}))?"
    r"(?P<length>hh|h|ll|l|z|j|t)?(?P<kind>[diouxXeEfFgGaAcsp]))"
)
_BITS = {"hh": 8, "h": 16, "": 32}  # 64 for all others


class Values(Protocol):
    def take(self, kind: str) -> Any:
        """The next value, of a kind of `struct`."""

    def text(self) -> str:
        """The string that the next value points to."""


def filled(text: str, values: Values) -> str:
    """The format with its values; what is no conversion stays as it is."""
    return _PART.sub(lambda match: _part(match, values), text)


def _part(match: re.Match[str], values: Values) -> str:
    kind = match["kind"]
    if kind is None:
        return "%"
    flags = match["flags"]
    width, precision = (_size(match[name], values) for name in ("width", "precision"))
    if width is not None and width < 0:
        flags, width = flags + "-", -width
    if precision is not None and precision < 0:  # as if there were none
        precision = None
    width = min(width or 0, LARGEST_FIELD)
    precision = None if precision is None else min(precision, LARGEST_FIELD)
    length = match["length"] or ""
    if kind in "di":
        return _signed(
            flags, width, precision, values.take("i" if length in _BITS else "q"), length
        )
    if kind in "ouxX":
        number = values.take("I" if length in _BITS else "Q")
        return _unsigned(flags, width, precision, number & (1 << _BITS.get(length, 64)) - 1, kind)
    if kind in "aA":
        shown = _hexadecimal(values.take("d"), precision, flags)
        return _placed(shown if kind == "a" else shown.upper(), flags, width)
    if kind == "c":
        return _placed(chr(values.take("i") & 0xFF), flags, width)
    if kind == "s":
        return _placed(values.text()[:precision], flags, width)
    if kind == "p":
        address = values.take("Q")
        return _placed(f"{address:#x}" if address else "(nil)", flags, width)
    return str(_python(flags, width, precision, kind) % values.take("d"))


def _size(given: str | None, values: Values) -> int | None:
    if given == "*":
        return int(values.take("i"))
    return None if given is None else int(given or 0)


def _python(flags: str, width: int, precision: int | None, kind: str) -> str:
    dot = "" if precision is None else f".{precision}"
    return f"%{flags}{width or ''}{dot}{kind}"


def _placed(text: str, flags: str, width: int) -> str:
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _signed(flags: str, width: int, precision: int | None, number: int, length: str) -> str:
    half = 1 << _BITS.get(length, 64) - 1
    number = (number + half) % (2 * half) - half
    digits = _digits(str(abs(number)), precision, number)
    sign = "-" if number < 0 else "+" if "+" in flags else " " if " " in flags else ""
    return _zeros(sign, digits, flags, width, precision)


def _unsigned(flags: str, width: int, precision: int | None, number: int, kind: str) -> str:
    digits = _digits(format(number, "d" if kind == "u" else kind), precision, number)
    before = ""
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    elif "#" in flags and kind in "xX" and number:
        before = f"0{kind}"
    return _zeros(before, digits, flags, width, precision)


def _digits(digits: str, precision: int | None, number: int) -> str:
    """At least as many as the precision says; none at all for a 0 that needs none."""
    if precision == 0 and number == 0:
        return ""
    return digits if precision is None else digits.zfill(precision)


def _zeros(before: str, digits: str, flags: str, width: int, precision: int | None) -> str:
    """Zeros stand between sign and digits, unless a precision or a flag says otherwise."""
    if "0" in flags and "-" not in flags and precision is None:
        digits = digits.zfill(width - len(before))
    return _placed(before + digits, flags, width)


def _hexadecimal(value: float, precision: int | None, flags: str) -> str:
    sign = "-" if math.copysign(1.0, value) < 0 else "+" if "+" in flags else ""
    if not math.isfinite(value):
        return sign + ("inf" if math.isinf(value) else "nan")
    fraction, power = math.frexp(abs(value))
    power = power - 1 if fraction else 0
    mantissa = int(fraction * 2**53)  # one digit, and thirteen behind the point
    if precision is not None and precision < 13:
        unit = 1 << 4 * (13 - precision)
        half, mantissa = mantissa % unit, mantissa // unit
        mantissa += half * 2 > unit or (half * 2 == unit and mantissa & 1)
        mantissa *= unit
    whole, rest = divmod(mantissa, 1 << 52)
    digits = f"{rest:013x}"
    digits = digits.rstrip("0") if precision is None else digits.ljust(precision, "0")[:precision]
    point = "." if digits or "#" in flags else ""
    return f"{sign}0x{whole:x}{point}{digits}p{power:+d}"
