"""What an index expression means; this file is the definition of the language.

Values are 64-bit integers. `//` and `%` round towards minus infinity, as in Python; bit operations
see two's complement; comparisons and `and`, `or`, `not` give 0 or 1. Undefined are: division by
zero, a shift by less than 0 or more than 63, and a value that leaves 64 bits. The first two raise
CheckError; the third raises on Python ints and wraps on arrays. `select` does not guard: both sides
must be defined. A rewrite may turn an undefined expression into a defined one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index import ir

Ints: TypeAlias = npt.NDArray[np.int64]
Value: TypeAlias = "int | Ints"

LOWEST, HIGHEST = -(2**63), 2**63 - 1
MAX_SHIFT = 63

# Each meaning serves Python ints and arrays alike.
_BINARY: dict[ir.BinaryOp, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda left, right: (left != 0) & (right != 0),
    "or": lambda left, right: (left != 0) | (right != 0),
}
_UNARY: dict[ir.UnaryOp, Callable[[Any], Any]] = {
    "-": operator.neg,
    "not": lambda operand: operand == 0,
}


def evaluate(expr: ir.Expr, env: Mapping[str, int | npt.NDArray[Any]]) -> int | Ints:
    """The value of `expr`; arrays broadcast, and a shared part is computed once.

    >>> evaluate((3 - ir.Var("x")) % 4, {"x": np.arange(6)})
    array([3, 2, 1, 0, 3, 2])
    """

    if isinstance(expr, ir.Const):  # as registers are mostly numbered
        return _in_range(expr.value)

    def visit(part: ir.Expr, parts: tuple[Value, ...]) -> Value:
        if not isinstance(part, ir.Var):
            return apply(part, parts)
        if part.name not in env:
            raise CheckError(f"the variable '{part.name}' has no value")
        return _as_value(part.name, env[part.name])

    return ir.fold_up(expr, visit)


def apply(part: ir.Const | ir.Unary | ir.Binary | ir.Select, values: tuple[Value, ...]) -> Value:
    """One operation, on the values of its children."""
    match part:
        case ir.Const(value):
            return _in_range(value)
        case ir.Unary(op, _):
            return _finish(op, _UNARY[op](values[0]))
        case ir.Binary(op, _, _):
            return _binary(op, *values)
        case ir.Select():
            return _choose(*values)
        case _:
            assert_never(part)


def _binary(op: ir.BinaryOp, left: Value, right: Value) -> Value:
    if op in ("//", "%") and _any(right == 0):
        raise CheckError(f"division by zero in '{op}'")
    if op in ("<<", ">>") and _any((right < 0) | (right > MAX_SHIFT)):
        raise CheckError(f"'{op}' by less than 0 or more than {MAX_SHIFT} bits")
    return _finish(op, _BINARY[op](left, right))


def _any(truth: Any) -> bool:
    """NumPy takes longer to look at one truth than most operations take."""
    return truth if isinstance(truth, bool) else bool(np.any(truth))


def totalise(expr: ir.Expr, max_shift: int = MAX_SHIFT) -> tuple[ir.Expr, ir.Expr]:
    """An expression that is defined everywhere and equals `expr` where the second one is true.

    x // y  →  x // (1 if y == 0 else y),  y != 0
    """
    conditions: list[ir.Expr] = []

    def visit(part: ir.Expr, parts: tuple[ir.Expr, ...]) -> ir.Expr:
        match part:
            case ir.Binary("//" | "%" as op, _, _) if not _is_const(parts[1], 1, HIGHEST):
                left, right = parts
                conditions.append(right.ne(0))
                return ir.Binary(op, left, ir.select(right.eq(0), 1, right))
            case ir.Binary("<<" | ">>" as op, _, _) if not _is_const(parts[1], 0, max_shift):
                left, right = parts
                allowed = right.ge(0).and_(right.le(max_shift))
                conditions.append(allowed)
                return ir.Binary(op, left, ir.select(allowed, right, 0))
        return ir.rebuild(part, parts)

    total = ir.fold_up(expr, visit)
    defined: ir.Expr = ir.Const(1)
    for condition in dict.fromkeys(conditions):
        defined = defined.and_(condition)
    return total, defined


def _is_const(expr: ir.Expr, low: int, high: int) -> bool:
    return isinstance(expr, ir.Const) and low <= expr.value <= high


def _choose(condition: Value, then: Value, otherwise: Value) -> Value:
    if isinstance(condition, int):
        return then if condition else otherwise
    return np.where(condition != 0, then, otherwise)


def _finish(op: str, result: Any) -> Value:
    if isinstance(result, int):
        return _in_range(int(result))
    return np.asarray(result, dtype=np.int64) if op in ir.TRUTHS else result


def _in_range(value: int) -> int:
    if not LOWEST <= value <= HIGHEST:
        raise CheckError("a value overflows 64 bits")
    return value


def _as_value(name: str, value: int | npt.NDArray[Any]) -> Value:
    if isinstance(value, np.ndarray) and value.ndim:
        if value.dtype.kind not in "iub":
            raise CheckError(f"the variable '{name}' holds {value.dtype}, not integers")
        return value.astype(np.int64, copy=False)
    try:
        return _in_range(int(operator.index(value)))
    except TypeError:
        raise CheckError(f"the variable '{name}' is not an integer") from None
