"""Equality of index expressions, by trying every value or by asking Z3.

The one module that imports z3, and only when it is asked; others get it by `load_z3`. A small box
of values is tried whole with NumPy, so most questions about lanes need no solver.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias, assert_never

from warploom.errors import UnsupportedError, missing_extra
from warploom.index.evaluate import MAX_SHIFT, totalise
from warploom.index.ir import Binary, Const, Expr, Select, Unary, Var, fold_up, variables
from warploom.index.ranges import ANY, Range, Ranges
from warploom.index.trial import MAX_TRIED, box_size, first_where

# Bit operations are spelled out bit by bit; beyond this no solver comes back.
MAX_BITS = 32

Bounds: TypeAlias = Mapping[str, tuple[int, int]]
Term: TypeAlias = Any  # a z3.ArithRef; z3 comes without types


@dataclass(frozen=True, slots=True)
class Equality:
    """`equal` is None where the solver gave up; where it is False, the values that differ."""

    equal: bool | None
    counterexample: dict[str, int] | None = None


def prove_equal(left: Expr, right: Expr, ranges: Bounds, seconds: float = 10) -> Equality:
    """Whether both have the same value wherever both are defined, for variables in `ranges`.

    >>> x = Var("x")
    >>> prove_equal(x % 4, x & 3, {"x": (-9, 9)})
    Equality(equal=True, counterexample=None)
    >>> prove_equal(x // 2, x >> 2, {"x": (0, 9)})
    Equality(equal=False, counterexample={'x': 2})
    """
    if left is right:
        return Equality(True)
    total_left, defined_left = totalise(left)
    total_right, defined_right = totalise(right)
    differ = defined_left.and_(defined_right).and_(total_left.ne(total_right))
    names = sorted(variables(differ))
    box = {name: Range(*ranges.get(name, ANY)) for name in names}
    if box_size(box) <= MAX_TRIED:
        found = first_where(differ, box)
        return Equality(found is None, found)
    return _ask(differ, box, names, seconds)


def _ask(differ: Expr, box: Mapping[str, Range], names: list[str], seconds: float) -> Equality:
    z3 = load_z3()
    symbols = {name: z3.Int(name) for name in names}
    solver = z3.Solver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    for name, (low, high) in box.items():
        solver.add(symbols[name] >= low, symbols[name] <= high)
    solver.add(to_z3(differ, symbols, box) != 0)
    answer = solver.check()
    if answer == z3.unsat:
        return Equality(True)
    if answer != z3.sat:
        return Equality(None)
    model = solver.model()
    return Equality(
        False,
        {name: model.eval(symbols[name], model_completion=True).as_long() for name in names},
    )


def to_z3(expr: Expr, variables: Mapping[str, Term], ranges: Bounds | None = None) -> Term:
    """The expression over integers without bounds, with a missing variable added by its own name.

    Shifts need a constant or bounded count; `&`, `|` and `^` a mask of low bits, or operands whose
    `ranges` fit in MAX_BITS bits. Elsewhere UnsupportedError.
    """
    translation = _Translation(load_z3(), Ranges(ranges or {}).of)
    return fold_up(expr, lambda part, parts: translation.of(part, parts, variables))


def load_z3() -> ModuleType:
    """The solver, for whoever asks; where it is missing, the error names the extra."""
    try:
        return import_module("z3")
    except ImportError:
        raise missing_extra("z3-solver", "smt") from None


class _Translation:
    def __init__(self, z3: ModuleType, range_of: Callable[[Expr], Range]) -> None:
        self._z3 = z3
        self._range_of = range_of

    def of(self, part: Expr, parts: tuple[Term, ...], variables: Mapping[str, Term]) -> Term:
        z3 = self._z3
        match part:
            case Const(value):
                return z3.IntVal(value)
            case Var(name):
                return variables[name] if name in variables else z3.Int(name)
            case Unary("-", _):
                return -parts[0]
            case Unary(_, _):
                return self._truth(parts[0] == 0)
            case Binary():
                return self._binary(part, *parts)
            case Select():
                return z3.If(parts[0] != 0, parts[1], parts[2])
            case _:
                assert_never(part)

    def _truth(self, condition: Any) -> Term:
        return self._z3.If(condition, self._z3.IntVal(1), self._z3.IntVal(0))

    def _binary(self, expr: Binary, left: Term, right: Term) -> Term:
        match expr.op:
            case "//" | "%":
                return self._division(expr, left, right)
            case "<<" | ">>":
                return self._shift(expr, left, right)
            case "&" | "|" | "^":
                return self._bits(expr, left, right)
            case "and":
                return self._truth(self._z3.And(left != 0, right != 0))
            case "or":
                return self._truth(self._z3.Or(left != 0, right != 0))
            case "+" | "-" | "*":
                return _PLAIN[expr.op](left, right)
            case op:
                return self._truth(_PLAIN[op](left, right))

    def _division(self, expr: Binary, left: Term, right: Term) -> Term:
        """Z3 keeps the remainder positive; ours has the sign of the divisor."""

        def divide(x: Term, y: Term, sign: int) -> Term:
            return x / y if expr.op == "//" else sign * (x % y)

        low, high = self._range_of(expr.right)
        if low >= 0:
            return divide(left, right, 1)
        if high <= 0:
            return divide(-left, -right, -1)
        return self._z3.If(right > 0, divide(left, right, 1), divide(-left, -right, -1))

    def _shift(self, expr: Binary, left: Term, right: Term) -> Term:
        low, high = self._range_of(expr.right)
        low, high = max(low, 0), min(high, MAX_SHIFT)
        result = self._z3.IntVal(0)
        for count in range(high, low - 1, -1):
            shifted = left * (1 << count) if expr.op == "<<" else left / (1 << count)
            result = self._z3.If(right == count, shifted, result) if low < high else shifted
        return result

    def _bits(self, expr: Binary, left: Term, right: Term) -> Term:
        if expr.op == "&":
            for term, other in ((left, expr.right), (right, expr.left)):
                if isinstance(other, Const) and other.value >= 0 and _is_mask(other.value):
                    return term % (other.value + 1)
        bounds = (*self._range_of(expr.left), *self._range_of(expr.right))
        width = max(max(bound, ~bound).bit_length() for bound in bounds)
        if width > MAX_BITS:
            raise UnsupportedError(
                f"'{expr.op}' on values of more than {MAX_BITS} bits has no proof",
                advice="give ranges for the variables",
            )
        # Two's complement: the highest bit, the sign, counts negative.
        signed = any(bound < 0 for bound in bounds)
        weights = [1 << place for place in range(width)] + ([-(1 << width)] if signed else [])
        return self._z3.Sum(
            self._z3.IntVal(0),
            *[weight * self._bit(expr.op, left, right, weight) for weight in weights],
        )

    def _bit(self, op: str, left: Term, right: Term, weight: int) -> Term:
        x, y = (term / abs(weight) % 2 == 1 for term in (left, right))
        joined = {"&": self._z3.And, "|": self._z3.Or, "^": self._z3.Xor}[op](x, y)
        return self._truth(joined)


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _is_mask(value: int) -> bool:
    return value & (value + 1) == 0
