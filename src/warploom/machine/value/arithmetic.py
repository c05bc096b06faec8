"""The operations of machine values on Python's integers: the definition, and what folds constants.

A value of an integer type is a number in its range, of pred 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable


def wrap(type_: str, number: int) -> int:
    """A number modulo the width of a type, in its range."""
    width = 1 if type_ == "pred" else int(type_[1:])
    number &= (1 << width) - 1
    return number - (1 << width) if type_[0] == "s" and number >> width - 1 else number


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _nth(mask: int, base: int, offset: int) -> int:
    """The offset-th set bit from a base, upwards or downwards; all ones where there is none."""
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base if base < 32 else -1, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1


_PLAIN: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "neg": lambda a: -a,
    "not": lambda a: ~a,
    "div": _truncated,
    "rem": lambda a, b: a - _truncated(a, b) * b,
    "min": min,
    "max": max,
    "shl": lambda a, n: a << n,
    "shr": lambda a, n: a >> n,
    "eq": lambda a, b: int(a == b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "select": lambda p, a, b: a if p else b,
    "to": lambda a: a,
    "bits": lambda a: a,
    "nth": _nth,
}


def apply(op: str, type_: str, kinds: tuple[str, ...], numbers: list[int]) -> int:
    """The value of an operation on constants of the given types."""
    width = 1 if kinds[0] == "pred" else int(kinds[0][1:])
    bits = numbers[0] & (1 << width) - 1
    match op:
        case "mulhi":
            made = numbers[0] * numbers[1] >> width
        case "popc":
            made = bits.bit_count()
        case "clz":
            made = width - bits.bit_length()
        case "brev":
            made = int(f"{bits:0{width}b}"[::-1], 2)
        case _:
            made = _PLAIN[op](*numbers)
    return wrap(type_, made)
