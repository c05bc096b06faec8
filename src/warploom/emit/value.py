"""Values as C-family text, with no more parentheses than a careful person would write.

What a language leaves undefined is never written: signed integers are computed without their sign,
which wraps, and where an operator or cast means something else the text calls a helper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from warploom.emit.dialect import Dialect, unsigned
from warploom.emit.helper import BYTES, rounds_twice
from warploom.emit.literal import (
    ATOM,
    BITS,
    CHOICE,
    PREFIX,
    PRODUCT,
    SHIFT,
    SUM,
    Spelling,
    number_text,
)
from warploom.index.ir import Expr
from warploom.kernel import ir
from warploom.kernel.dtype import DType

_INFIX: dict[ir.Operator, int] = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "&": BITS, "|": BITS, "^": BITS, "<<": SHIFT, ">>": SHIFT,
}  # fmt: skip
_WRAPPING = frozenset({"+", "-", "*", "neg", "fma", "<<"})


class ValuePrinter:
    """Prints values; how an index expression and a register are spelled is up to the caller.

    `helpers` are the functions that the printed texts call, by names that begin with `prefix`.
    """

    def __init__(
        self,
        dialect: Dialect,
        index_text: Callable[[Expr], str],
        cell_text: Callable[[ir.Cell], str],
        prefix: str = "",
    ) -> None:
        self.dialect = dialect
        self.index_text = index_text
        self.cell_text = cell_text
        self.prefix = prefix
        self.helpers: dict[str, None] = {}

    def text(self, value: ir.Value, least: int = 0) -> str:
        """The value, in parentheses if it binds less tightly than `least`."""
        return _enclosed(self._spell(value), least)

    def condition(self, condition: ir.Condition) -> str:
        """A condition as it stands before a question mark."""
        if isinstance(condition, ir.Compare):
            left, right = (self.text(each, SUM) for each in (condition.left, condition.right))
            return f"{left} {condition.op} {right}"
        text = self.index_text(condition)
        return f"({text})" if "?" in text else text

    def _spell(self, value: ir.Value) -> Spelling:
        match value:
            case ir.Number(number, dtype):
                return number_text(number, dtype, self.dialect)
            case ir.Cell():
                return ATOM, self.cell_text(value)
            case ir.FromIndex(expr, dtype):
                return PREFIX, f"({self.dialect.types[dtype]})({self.index_text(expr)})"
            case ir.Operation():
                return self._operation(value)
            case ir.Choose(condition, then, otherwise):
                chosen = self.text(then, CHOICE + 1), self.text(otherwise, CHOICE)
                return CHOICE, f"{self.condition(condition)} ? {chosen[0]} : {chosen[1]}"
            case ir.Cast(dtype, inner):
                return self._cast(dtype, inner)
            case _:
                assert_never(value)

    def _cast(self, dtype: DType, inner: ir.Value) -> Spelling:
        source = ir.dtype_of(inner)
        if source.is_code or dtype.is_code:
            return self._call(f"{dtype!r}_from_{source!r}", (inner,))
        if (source.is_float and not dtype.is_float) or rounds_twice(source, dtype, self.dialect):
            return self._call(f"{dtype!r}_from_{source!r}", (inner,))
        return PREFIX, f"({self.dialect.types[dtype]}){self.text(inner, PREFIX)}"

    def _call(self, helper: str, operands: tuple[ir.Value, ...]) -> Spelling:
        return ATOM, self.call(helper, [self.text(each) for each in operands])

    def call(self, helper: str, operands: Iterable[str]) -> str:
        """A call of a helper, which the text then needs."""
        self.helpers[helper] = None
        return f"{self.prefix}{helper}({', '.join(operands)})"

    # -- operations

    def _operation(self, value: ir.Operation) -> Spelling:
        dtype = ir.dtype_of(value)
        if dtype.is_float:
            return self._float_operation(value, dtype)
        if value.op in _WRAPPING and (dtype.is_signed or dtype.bytes < 4):
            wide = self._without_sign(value, unsigned(dtype))
            return PREFIX, f"({self.dialect.types[dtype]})({wide[1]})"
        priority, text = self._integer_operation(value, dtype)
        # Arithmetic on small integers happens in `int`; cut the result back.
        if dtype.bytes < 4 and priority != ATOM:
            return PREFIX, f"({self.dialect.types[dtype]})({text})"
        return priority, text

    def _float_operation(self, value: ir.Operation, dtype: DType) -> Spelling:
        op, operands = value.op, value.operands
        if op in self.dialect.functions:
            name = self.dialect.functions[op][0 if dtype is DType.F32 else 1]
            return ATOM, f"{name}({', '.join(self.text(each) for each in operands)})"
        if op == "neg":
            return PREFIX, "-" + self.text(operands[0], ATOM)
        if op in _INFIX:
            return self._infix(op, self.text, operands)
        return self._call(f"{op}_{dtype!r}", operands)

    def _infix(
        self, op: ir.Operator, spell: Callable[[ir.Value, int], str], operands: tuple[ir.Value, ...]
    ) -> Spelling:
        own = _INFIX[op]
        return own, f"{spell(operands[0], own)} {op} {spell(operands[1], own + 1)}"

    def _integer_operation(self, value: ir.Operation, dtype: DType) -> Spelling:
        op, operands = value.op, value.operands
        match op:
            case "~":
                return PREFIX, "~" + self.text(operands[0], ATOM)
            case "neg":
                return PREFIX, "-" + self.text(operands[0], ATOM)
            case "abs":
                helper = f"abs_{dtype!r}"
                return self._call(helper, operands) if dtype.is_signed else self._spell(operands[0])
            case "min" | "max":
                return self._extremum(op, operands, dtype)
            case "fma":
                a, b = (self.text(each, PRODUCT + 1) for each in operands[:2])
                return SUM, f"{a} * {b} + {self.text(operands[2], SUM + 1)}"
            case "&" | "|" | "^" | "<<" | ">>":
                left, right = (self._bits_operand(each, op) for each in operands)
                return _INFIX[op], f"{left} {op} {right}"
            case "bytes" if self.dialect.byte_select:
                listed = ", ".join(self.text(each) for each in operands)
                return ATOM, f"{self.dialect.byte_select}({listed})"
            case "bytes":
                return self._call(BYTES, operands)
            case "/":
                return self._division(operands, dtype)
            case _:
                return self._infix(op, self.text, operands)

    def _division(self, operands: tuple[ir.Value, ...], dtype: DType) -> Spelling:
        match operands[1]:
            case ir.Number(number) if number not in (0, -1):  # can neither trap nor overflow
                return self._infix("/", self.text, operands)
            case _:
                return self._call(f"divide_{dtype!r}", operands)

    def _bits_operand(self, value: ir.Value, op: ir.Operator) -> str:
        same = isinstance(value, ir.Operation) and value.op == op and op in ("&", "|", "^")
        return self.text(value, BITS if same else PREFIX)

    def _extremum(self, op: str, operands: tuple[ir.Value, ...], dtype: DType) -> Spelling:
        if not self.dialect.integer_extremes:
            left, right = (self.text(each, PREFIX) for each in operands)
            sign = "<" if op == "min" else ">"
            return CHOICE, f"{left} {sign} {right} ? {left} : {right}"
        if self.dialect.cast_small and dtype.bytes < 4:
            operands = tuple(ir.Cast(dtype, each) for each in operands)
        call = f"{op}({', '.join(self.text(each) for each in operands)})"
        return (PREFIX if dtype.bytes < 4 else ATOM), call

    # -- integers without their sign, which wrap

    def _without_sign(self, value: ir.Value, wide: DType) -> Spelling:
        """The value modulo a power of two, as a number of the wide unsigned type."""
        match value:
            case ir.Operation("neg", (operand,)):
                return SUM, f"{self._wide_number(0, wide)} - {self._wide(operand, wide, PRODUCT)}"
            case ir.Operation("fma", (a, b, c)):
                product = f"{self._wide(a, wide, PRODUCT)} * {self._wide(b, wide, PREFIX)}"
                return SUM, f"{product} + {self._wide(c, wide, PRODUCT)}"
            case ir.Operation("<<", (left, count)):
                return SHIFT, f"{self._wide(left, wide, PREFIX)} << {self.text(count, PREFIX)}"
            case ir.Operation("+" | "-" | "*" as op, operands):
                return self._infix(op, lambda each, least: self._wide(each, wide, least), operands)
            case ir.Number(number):
                return ATOM, self._wide_number(int(number), wide)
            case _:
                if ir.dtype_of(value) is wide:
                    return self._spell(value)
                return PREFIX, f"({self.dialect.types[wide]}){self.text(value, PREFIX)}"

    def _wide(self, value: ir.Value, wide: DType, least: int) -> str:
        return _enclosed(self._without_sign(value, wide), least)

    def _wide_number(self, number: int, wide: DType) -> str:
        return number_text(number % (1 << (8 * wide.bytes)), wide, self.dialect)[1]


def _enclosed(spelling: Spelling, least: int) -> str:
    priority, text = spelling
    return f"({text})" if priority < least else text
