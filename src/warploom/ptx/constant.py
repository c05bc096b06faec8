"""Constant expressions of PTX: what their operators do, on whole numbers of 64 bits.

A number is signed unless it is written with a U or is too large for that; an operation on a signed
and an unsigned number is unsigned, as in C. Comparisons and logical operators give signed 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

_BITS = 64
# From the loosest to the tightest; all of them take the left side first.
PRECEDENCE = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
UNARY = ("+", "-", "!", "~")


@dataclass(frozen=True, slots=True)
class Constant:
    value: int
    unsigned: bool = False


def made(value: int, unsigned: bool) -> Constant:
    """The number in 64 bits."""
    wrapped = value % (1 << _BITS)
    if not unsigned and wrapped >> _BITS - 1:
        wrapped -= 1 << _BITS
    return Constant(wrapped, unsigned)


def literal(value: int, *, unsigned: bool) -> Constant:
    return made(value, unsigned or value >= 1 << _BITS - 1)


def unary(operator: str, operand: Constant) -> Constant:
    match operator:
        case "-":
            return made(-operand.value, operand.unsigned)
        case "~":
            return made(~operand.value, operand.unsigned)
        case "!":
            return Constant(int(not operand.value))
        case _:
            return operand


def binary(operator: str, a: Constant, b: Constant) -> Constant | None:
    """None of a division by zero, and of a shift that is out of range."""
    if operator in ("<<", ">>"):
        if not 0 <= b.value < _BITS:
            return None
        moved = a.value << b.value if operator == "<<" else a.value >> b.value
        return made(moved, a.unsigned)
    unsigned = a.unsigned or b.unsigned
    x, y = made(a.value, unsigned).value, made(b.value, unsigned).value
    if operator in ("/", "%"):
        if y == 0:
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return made(quotient if operator == "/" else x - y * quotient, unsigned)
    truth = {
        "||": bool(x or y), "&&": bool(x and y), "==": x == y, "!=": x != y, "<": x < y,
        "<=": x <= y, ">": x > y, ">=": x >= y,
    }  # fmt: skip
    if operator in truth:
        return Constant(int(truth[operator]))
    number = {"|": x | y, "^": x ^ y, "&": x & y, "+": x + y, "-": x - y, "*": x * y}
    return made(number[operator], unsigned)
