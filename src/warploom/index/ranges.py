"""Between which bounds an expression lies, given bounds for its variables (both ends included).

A variable without bounds may be any 64-bit integer. Sound for every value; exact for sums and
multiples of distinct variables, and tight for `//` and `%` by constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, assert_never

from warploom.errors import CheckError
from warploom.index import ir
from warploom.index.evaluate import HIGHEST, LOWEST, MAX_SHIFT


class Range(NamedTuple):
    """All integers from `low` to `high`."""

    low: int
    high: int


ANY = Range(LOWEST, HIGHEST)
# What is computed lies within 64 bits, but parts of a rewritten sum may pass them, so bounds are
# kept far wider; they end somewhere, as repeated squaring would make them as large as memory.
WIDEST = Range(-(2**255), 2**255)
TRUTH = Range(0, 1)
TRUE = Range(1, 1)
FALSE = Range(0, 0)


def range_of(expr: ir.Expr, bounds: Mapping[str, tuple[int, int]]) -> Range:
    """
    >>> range_of(ir.Var("x") % 8 - 3, {"x": (0, 4)})
    Range(low=-3, high=1)
    """
    return Ranges(bounds).of(expr)


class Ranges:
    """Bounds of many expressions over the same variables; each node is looked at once."""

    def __init__(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        for name, (low, high) in bounds.items():
            if low > high:
                raise CheckError(f"the variable '{name}' has no value: {low} to {high}")
        self._bounds = {name: Range(*both) for name, both in bounds.items()}
        self._known: dict[ir.Expr, Range] = {}

    def of(self, expr: ir.Expr) -> Range:
        known = self._known
        found = known.get(expr)
        if found is not None:
            return found
        for part in ir.walk(expr, skip=known):
            low, high = self._of_part(part, [known[child] for child in ir.children(part)])
            inside = WIDEST.low <= low and high <= WIDEST.high
            known[part] = Range(low, high) if inside else WIDEST
        return known[expr]

    def _of_part(self, part: ir.Expr, parts: list[Range]) -> Range:
        match part:
            case ir.Const(value):
                return Range(value, value)
            case ir.Var(name):
                return self._bounds.get(name, ANY)
            case ir.Unary(op, _):
                return _negated(parts[0]) if op == "-" else _not(_truth(parts[0]))
            case ir.Binary(op, _, _):
                return _binary(op, *parts)
            case ir.Select():
                condition, then, otherwise = parts
                truth = _truth(condition)
                if truth is TRUTH:
                    return _extreme(part, then, otherwise) or _union(then, otherwise)
                return then if truth is TRUE else otherwise
            case _:
                assert_never(part)


def _extreme(select: ir.Select, then: Range, otherwise: Range) -> Range | None:
    """The range of a minimum or maximum; None if the select is neither."""
    match select.condition:
        case ir.Binary("<" | "<=", left, right) if {left, right} == {
            select.then,
            select.otherwise,
        }:
            chosen = min if left is select.then else max
            return Range(chosen(then.low, otherwise.low), chosen(then.high, otherwise.high))
    return None


def _binary(op: ir.BinaryOp, left: Range, right: Range) -> Range:
    if op in ir.COMPARISONS:
        return _compared(op, left, right)
    return _ARITHMETIC[op](left, right)


def _compared(op: str, left: Range, right: Range) -> Range:
    match op:
        case "<":
            return TRUE if left.high < right.low else FALSE if left.low >= right.high else TRUTH
        case "<=":
            return _not(_compared("<", right, left))
        case ">":
            return _compared("<", right, left)
        case ">=":
            return _not(_compared("<", left, right))
        case "==":
            apart = left.high < right.low or right.high < left.low
            same = left.low == left.high == right.low == right.high
            return FALSE if apart else TRUE if same else TRUTH
        case _:
            return _not(_compared("==", left, right))


def _truth(value: Range) -> Range:
    if value.low > 0 or value.high < 0:
        return TRUE
    return FALSE if value == FALSE else TRUTH


def _not(truth: Range) -> Range:
    return FALSE if truth is TRUE else TRUE if truth is FALSE else TRUTH


def _and(left: Range, right: Range) -> Range:
    truths = (_truth(left), _truth(right))
    return FALSE if FALSE in truths else TRUTH if TRUTH in truths else TRUE


def _or(left: Range, right: Range) -> Range:
    return _not(_and(_not(_truth(left)), _not(_truth(right))))


def _union(*parts: Range) -> Range:
    return Range(min(part.low for part in parts), max(part.high for part in parts))


def _negated(value: Range) -> Range:
    return Range(-value.high, -value.low)


def _inverted(value: Range) -> Range:
    return Range(~value.high, ~value.low)


def _corners(function: Callable[[int, int], int], left: Range, right: Range) -> Range:
    """The bounds of a function that is monotone in each argument."""
    values = [function(x, y) for x in left for y in right]
    return Range(min(values), max(values))


def _signed_parts(divisor: Range) -> list[Range]:
    """The divisor without zero: its negative and its positive values, where there are any."""
    parts = [Range(divisor.low, min(divisor.high, -1)), Range(max(divisor.low, 1), divisor.high)]
    return [part for part in parts if part.low <= part.high]


def _quotient(left: Range, right: Range) -> Range:
    parts = [_corners(lambda x, y: x // y, left, part) for part in _signed_parts(right)]
    return _union(*parts) if parts else WIDEST


def _remainder(left: Range, right: Range) -> Range:
    parts = [
        _positive_remainder(left, part)
        if part.low > 0
        else _negated(_positive_remainder(_negated(left), _negated(part)))
        for part in _signed_parts(right)
    ]
    return _union(*parts) if parts else WIDEST


def _positive_remainder(left: Range, right: Range) -> Range:
    if right.low == right.high and left.low // right.low == left.high // right.low:
        return Range(left.low % right.low, left.high % right.low)
    if left.low >= 0:
        return Range(left.low if left.high < right.low else 0, min(left.high, right.high - 1))
    return Range(0, right.high - 1)


def _width(*parts: Range) -> int:
    """The bits, besides the sign, that hold every value."""
    return max(max(value, ~value).bit_length() for part in parts for value in part)


def _bit_and(left: Range, right: Range) -> Range:
    if left.low == left.high and right.low == right.high:
        return Range(left.low & right.low, left.low & right.low)
    if left.low >= 0 or right.low >= 0:
        return Range(0, min(part.high for part in (left, right) if part.low >= 0))
    both_negative = left.high < 0 and right.high < 0
    high = min(left.high, right.high) if both_negative else max(left.high, right.high)
    return Range(-(1 << _width(left, right)), high)


def _bit_or(left: Range, right: Range) -> Range:
    return _inverted(_bit_and(_inverted(left), _inverted(right)))


def _bit_xor(left: Range, right: Range) -> Range:
    if left.low == left.high and right.low == right.high:
        return Range(left.low ^ right.low, left.low ^ right.low)
    reach = 1 << _width(left, right)
    signs = {x < 0 for x in left}, {y < 0 for y in right}
    may_be_negative = any(x != y for x in signs[0] for y in signs[1])
    may_be_positive = any(x == y for x in signs[0] for y in signs[1])
    return Range(-reach if may_be_negative else 0, reach - 1 if may_be_positive else -1)


def _shifted(function: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    def bounds(left: Range, right: Range) -> Range:
        counts = Range(max(right.low, 0), min(right.high, MAX_SHIFT))
        return _corners(function, left, counts) if counts.low <= counts.high else WIDEST

    return bounds


_ARITHMETIC: dict[str, Callable[[Range, Range], Range]] = {
    "+": lambda left, right: Range(left.low + right.low, left.high + right.high),
    "-": lambda left, right: Range(left.low - right.high, left.high - right.low),
    "*": lambda left, right: _corners(lambda x, y: x * y, left, right),
    "//": _quotient,
    "%": _remainder,
    "&": _bit_and,
    "|": _bit_or,
    "^": _bit_xor,
    "<<": _shifted(lambda x, count: x << count),
    ">>": _shifted(lambda x, count: x >> count),
    "and": _and,
    "or": _or,
}
