"""Values as C-family text, with no more parentheses than a careful person would write."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

import numpy as np

from warploom.emit.dialect import Dialect
from warploom.errors import EmitError
from warploom.index.ir import Expr
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    Cast,
    Cell,
    Choose,
    FromIndex,
    Number,
    Operation,
    Operator,
    Value,
    dtype_of,
)

# How tightly a spelling binds. As in index expressions, bit operations are kept apart by
# parentheses, since few readers know their place.
CHOICE, BITS, SHIFT, SUM, PRODUCT, PREFIX, ATOM = 1, 4, 9, 10, 11, 12, 13
_INFIX: dict[Operator, int] = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "&": BITS, "|": BITS, "^": BITS, "<<": SHIFT, ">>": SHIFT,
}  # fmt: skip

Spelling = tuple[int, str]


class ValuePrinter:
    """Prints values; how an index expression and a register are spelled is up to the caller."""

    def __init__(
        self,
        dialect: Dialect,
        index_text: Callable[[Expr], str],
        cell_text: Callable[[Cell], str],
    ) -> None:
        self.dialect = dialect
        self.index_text = index_text
        self.cell_text = cell_text

    def text(self, value: Value, least: int = 0) -> str:
        """The value, in parentheses if it binds less tightly than `least`."""
        priority, text = self._spell(value)
        return f"({text})" if priority < least else text

    def _spell(self, value: Value) -> Spelling:
        match value:
            case Number(number, dtype):
                return number_text(number, dtype, self.dialect)
            case Cell():
                return ATOM, self.cell_text(value)
            case FromIndex(expr, dtype):
                return PREFIX, f"({self.dialect.types[dtype]})({self.index_text(expr)})"
            case Operation():
                return self._operation(value)
            case Choose(condition, then, otherwise):
                chosen = self.text(then, CHOICE + 1), self.text(otherwise, CHOICE)
                return CHOICE, f"{self.condition(condition)} ? {chosen[0]} : {chosen[1]}"
            case Cast(dtype, inner):
                return PREFIX, f"({self.dialect.types[dtype]}){self.text(inner, PREFIX)}"
            case _:
                assert_never(value)

    def condition(self, expr: Expr) -> str:
        text = self.index_text(expr)
        return f"({text})" if "?" in text else text

    def _operation(self, value: Operation) -> Spelling:
        dtype = dtype_of(value)
        priority, text = self._operator(value, dtype)
        # Arithmetic on small integers happens in `int`; cut the result back.
        if dtype.bytes < 4:
            return PREFIX, f"({self.dialect.types[dtype]})({text})"
        return priority, text

    def _operator(self, value: Operation, dtype: DType) -> Spelling:
        op, operands = value.op, value.operands
        match op:
            case "neg" | "~":
                return PREFIX, ("-" if op == "neg" else "~") + self.text(operands[0], ATOM)
            case "min" | "max":
                return self._extremum(op, operands, dtype)
            case "fma":
                return self._fma(operands, dtype)
            case "&" | "|" | "^" | "<<" | ">>":
                left, right = (self._bits_operand(each, op) for each in operands)
                return _INFIX[op], f"{left} {op} {right}"
            case "+" | "-" | "*" | "/":
                own = _INFIX[op]
                left, right = self.text(operands[0], own), self.text(operands[1], own + 1)
                return own, f"{left} {op} {right}"
            case _:
                assert_never(op)

    def _bits_operand(self, value: Value, op: Operator) -> str:
        same = isinstance(value, Operation) and value.op == op and op in ("&", "|", "^")
        return self.text(value, BITS if same else PREFIX)

    def _extremum(self, op: str, operands: tuple[Value, ...], dtype: DType) -> Spelling:
        if self.dialect.ternary_minimum and not dtype.is_float:
            left, right = (self.text(each, PREFIX) for each in operands)
            sign = "<" if op == "min" else ">"
            return CHOICE, f"{left} {sign} {right} ? {left} : {right}"
        name = self.float_function(f"f{op}", dtype) if dtype.is_float else op
        if self.dialect.cast_small and dtype.bytes < 4:
            operands = tuple(Cast(dtype, each) for each in operands)
        return ATOM, f"{name}({', '.join(self.text(each) for each in operands)})"

    def _fma(self, operands: tuple[Value, ...], dtype: DType) -> Spelling:
        if dtype.is_float:
            name = self.float_function("fma", dtype)
            return ATOM, f"{name}({', '.join(self.text(each) for each in operands)})"
        a, b = (self.text(each, PRODUCT + 1) for each in operands[:2])
        return SUM, f"{a} * {b} + {self.text(operands[2], SUM + 1)}"

    def float_function(self, name: str, dtype: DType) -> str:
        return name + (self.dialect.single if dtype is DType.F32 else "")


def number_text(number: float, dtype: DType, dialect: Dialect) -> Spelling:
    """A literal that reads back as exactly this number."""
    if dtype.is_float:
        if math.isnan(number):
            raise EmitError("a kernel holds the constant NaN, which has no literal")
        if math.isinf(number):
            sign = "-" if number < 0 else ""
            return PREFIX, f"{sign}({dialect.types[dtype]}){dialect.infinity}"
        text = str(np.float32(number) if dtype is DType.F32 else float(number))
        text += "f" if dtype is DType.F32 else ""
    else:
        text = _integer_text(int(number), dtype, dialect)
    return (PREFIX if text.startswith(("-", "(")) else ATOM), text


def _integer_text(number: int, dtype: DType, dialect: Dialect) -> str:
    match dtype:
        case DType.U32:
            return f"{number}u"
        case DType.U64:
            return f"{number}u{dialect.long}"
        case DType.I64:
            lowest = number == -(2**63)  # without its sign it is too large for the type
            return f"({number + 1}{dialect.long} - 1)" if lowest else f"{number}{dialect.long}"
        case DType.I32 if number == -(2**31):
            return f"({number + 1} - 1)"
        case _:
            return str(number)
