"""How an index expression prints: as Python-like text, which `parse` reads back, and as C.

Both languages share one layout: a node spells itself as pieces, each with how tightly it must bind,
and parentheses appear only where they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from warploom.errors import EmitError, UnsupportedError
from warploom.index.ir import (
    COMPARISONS,
    TRUTHS,
    Binary,
    BinaryOp,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    fold_up,
)
from warploom.index.ranges import Range, Ranges

# How tightly each operator of the Python-like text binds; `parse` reads the same table.
PRIORITY: dict[str, int] = {
    "if": 1, "or": 2, "and": 3, "not": 4,
    **dict.fromkeys(COMPARISONS, 5),
    "|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9,
    "+": 10, "-": 10, "*": 11, "//": 11, "%": 11,
}  # fmt: skip
NEGATION, ATOM = 12, 13

# A text larger than this comes from an expression with much sharing, which text cannot express.
MAX_PARTS = 1_000_000

Piece: TypeAlias = "str | tuple[Expr, int]"
# A node's own priority and its pieces.
Spelling: TypeAlias = "tuple[int, list[Piece]]"


def show(expr: Expr) -> str:
    """
    >>> show((3 - Var("x")) % 8 + 2 * Var("y"))
    '(3 - x) % 8 + 2 * y'
    """
    return _lay_out(expr, _python)


def c_text(
    expr: Expr,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    suffix: str = "",
    prefix: str = "",
) -> str:
    """The expression in C, CUDA C++ or OpenCL C; right for negative operands too.

    `ranges` bounds the variables: where no operand can be negative, `//` and `%` become plain `/`
    and `%`. What has no direct spelling calls a function of `c_helpers`, whose name begins with
    `prefix`. The variables are `int`, or, where a `suffix` is given, of the 64-bit type whose
    literals end so ("LL" in C).

    >>> x = Var("x")
    >>> c_text(x // 3 + x % 4)
    'floor_div(x, 3) + (x & 3)'
    >>> c_text(x // 3 + x % 4, {"x": (0, 31)})
    'x / 3 + x % 4'
    """
    known = Ranges(ranges or {})
    return _lay_out(expr, _CSpeller(known.of, suffix, prefix).spell)


def c_helpers(
    integer: str = "int", qualifiers: str = "static inline", prefix: str = ""
) -> dict[str, str]:
    """The functions that `c_text` may call, for one integer type, by their names."""
    two = f"{integer} x, {integer} y"
    bodies = {
        "floor_div": (two, "x / y - (x % y != 0 && (x % y < 0) != (y < 0))"),
        "floor_mod": (two, "y == -1 ? 0 : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0)"),
        "shift_left": (
            f"{integer} x, {integer} count",
            f"({integer})((unsigned {integer})x << count)",
        ),
    }
    return {
        prefix + name: f"{qualifiers} {integer} {prefix}{name}({given}) {{\n  return {body};\n}}\n"
        for name, (given, body) in bodies.items()
    }


def _lay_out(expr: Expr, spell: Callable[[Expr], Spelling]) -> str:
    if fold_up(expr, lambda _, sizes: min(1 + sum(sizes), MAX_PARTS + 1)) > MAX_PARTS:
        raise UnsupportedError(
            f"an index has more than {MAX_PARTS} parts when written out",
            advice="names that are made of names, one after the other, grow so: use fewer of them",
        )
    text: list[str] = []
    stack: list[Piece] = [(expr, 0)]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            text.append(piece)
            continue
        part, least = piece
        priority, pieces = spell(part)
        stack.extend(reversed(["(", *pieces, ")"] if priority < least else pieces))
    return "".join(text)


def _python(expr: Expr) -> Spelling:
    match expr:
        case Const(value):
            return (ATOM if value >= 0 else NEGATION), [str(value)]
        case Var(name):
            return ATOM, [name]
        case Unary("not", operand):
            return PRIORITY["not"], ["not ", (operand, PRIORITY["not"])]
        case Unary(_, Const(value)) if value >= 0:
            return NEGATION, [f"-({value})"]  # `-3` alone is one constant
        case Unary(_, operand):
            return NEGATION, ["-", (operand, NEGATION)]
        case Binary(op, left, right):
            own = PRIORITY[op]
            # Python chains comparisons, so one inside another always needs parentheses.
            on_left = own + 1 if op in COMPARISONS else own
            return own, [(left, on_left), f" {op} ", (right, own + 1)]
        case Select(condition, then, otherwise):
            own = PRIORITY["if"]
            pieces: list[Piece] = [(then, own + 1), " if ", (condition, own + 1), " else "]
            return own, [*pieces, (otherwise, own)]
        case _:
            assert_never(expr)


# How tightly the operators of C bind. Bit operations, shifts and comparisons sit where few readers
# expect them, so their operands get parentheses unless they bind tighter than any operator.
_C_PRIORITY: dict[str, int] = {
    "?": 1, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7,
    "<": 8, "<=": 8, ">": 8, ">=": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11,
}  # fmt: skip
_C_SPELLING: dict[str, str] = {"and": "&&", "or": "||"}
_C_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


# Bit operations, by the arithmetic that they do with a power of two.
_AS_BITS: dict[str, BinaryOp] = {"*": "<<", "//": ">>", "%": "&"}
_MOST_SHIFTED = 1 << 30  # an int cannot be shifted by its width
_MOST_JOINED = 8  # terms of a sum inside a sum
_BITWISE = ("^", "&", "|")
_BITS = (*_BITWISE, "<<", ">>")


class _CSpeller:
    """Spells nodes as C. Beside a bit operation, arithmetic with a power of two is written as a bit
    operation too: `column ^ (row >> 4)`, but `row / 16 * 3`. Inside sums it stays arithmetic, as a
    pitch (`row * 32 + column`) reads better so."""

    def __init__(self, range_of: Callable[[Expr], Range], suffix: str, prefix: str) -> None:
        self.range_of, self.suffix, self.prefix = range_of, suffix, prefix

    def spell(self, expr: Expr) -> Spelling:
        match expr:
            case Const(value):
                return _c_constant(value, self.suffix)
            case Var(name):
                if not _C_NAME.fullmatch(name):
                    raise EmitError(f"the variable {name!r} is not a name of C")
                return ATOM, [name]
            case Unary("not", operand):
                return NEGATION, ["!", (operand, NEGATION)]
            case Unary(_, operand):
                # `--x` would be a decrement.
                return NEGATION, ["-", (operand, ATOM)]
            case Binary("//" | "%"):
                return self._division(expr)
            case Binary("<<", left, right):
                return self._shift_left(left, right)
            case Binary("and" | "or" as op, left, right):
                return _logical(_C_SPELLING[op], left, right)
            case Binary(op, left, right):
                return self._infix(op, left, right)
            case Select(condition, then, otherwise):
                own = _C_PRIORITY["?"]
                pieces: list[Piece] = [(condition, own + 1), " ? ", (then, own + 1), " : "]
                return own, [*pieces, (otherwise, own)]
            case _:
                assert_never(expr)

    def _infix(self, op: str, left: Expr, right: Expr) -> Spelling:
        own = _C_PRIORITY[op]
        if op in COMPARISONS:
            return own, [(left, _C_PRIORITY["+"]), f" {op} ", (right, _C_PRIORITY["+"])]
        if op not in _BITS:
            level = op == "+" and self._may_join(right)
            return own, [(left, own), f" {op} ", (right, own if level else own + 1)]
        operands = [self._as_bits(each) for each in (left, right)]
        first, second = ((each, own if _continues(each, op) else NEGATION) for each in operands)
        return own, [first, f" {op} ", second]

    def _may_join(self, right: Expr) -> bool:
        """left + (a + b) → left + a + b, where no part of the sum passes what the whole is."""
        terms: list[Expr] = []
        while isinstance(right, Binary) and right.op == "+" and len(terms) < _MOST_JOINED:
            terms.append(right.right)
            right = right.left
        fits = not self.suffix and not any(_is_sum(each) for each in (*terms, right))
        return bool(terms) and fits and all(self.range_of(t).low >= 0 for t in (*terms, right))

    def _as_bits(self, expr: Expr) -> Expr:
        """An operand of a bit operation: arithmetic with a power of two is bit operations."""
        match expr:
            case Binary("*", Const() as factor, other) | Binary("*", other, Const() as factor):
                fits = not self.suffix and not _is_truth(other) and self.range_of(other).low >= 0
                return _with_bits("*", other, factor.value) if fits else expr
            case Binary("//" | "%" as op, other, Const(divisor)):
                return _with_bits(op, other, divisor)
            case _:
                return expr

    def _division(self, expr: Binary) -> Spelling:
        """`//` and `%`, which in C round towards zero."""
        left, right = expr.left, expr.right
        plain = self.range_of(left).low >= 0 and self.range_of(right).low >= 0
        if plain and not (isinstance(left, Binary) and left.op in _BITS):
            return self._infix("/" if expr.op == "//" else "%", left, right)
        # Shifts and masks round down for negative numbers too.
        match self._as_bits(expr):
            case Binary(">>" | "&" as op, left, right):
                return self._infix(op, left, right)
        if plain:
            return self._infix("/" if expr.op == "//" else "%", left, right)
        name = "floor_div" if expr.op == "//" else "floor_mod"
        return self._call(name, left, right)

    def _shift_left(self, left: Expr, right: Expr) -> Spelling:
        """A negative number may not be shifted, nor a truth (an `int`) by more than its width."""
        if not self.suffix and not _is_truth(left) and self.range_of(left).low >= 0:
            return self._infix("<<", left, right)
        return self._call("shift_left", left, right)

    def _call(self, name: str, left: Expr, right: Expr) -> Spelling:
        return ATOM, [f"{self.prefix}{name}(", (left, 0), ", ", (right, 0), ")"]


def _continues(expr: Expr, op: str) -> bool:
    """Whether an operand goes on with the same operator, whose order is all one."""
    return op in _BITWISE and isinstance(expr, Binary) and expr.op == op


def _is_sum(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op in ("+", "-")


def _is_truth(expr: Expr) -> bool:
    return isinstance(expr, Unary | Binary) and expr.op in TRUTHS


def _with_bits(op: BinaryOp, other: Expr, number: int) -> Binary:
    """other * 8 → other << 3;  other // 8 → other >> 3;  other % 8 → other & 7"""
    if not 1 <= number <= _MOST_SHIFTED or number & (number - 1):
        return Binary(op, other, Const(number))
    count = number - 1 if op == "%" else number.bit_length() - 1
    return Binary(_AS_BITS[op], other, Const(count))


def _logical(op: str, left: Expr, right: Expr) -> Spelling:
    own, least = _C_PRIORITY[op], _C_PRIORITY["|"]
    same = isinstance(left, Binary) and _C_SPELLING.get(left.op) == op
    return own, [(left, own if same else least), f" {op} ", (right, least)]


def _c_constant(value: int, suffix: str) -> Spelling:
    if not suffix and not -(2**31) <= value < 2**31:
        suffix = "LL"
    if value == (-(2**63) if suffix else -(2**31)):
        # Without its sign the literal is too large for the type.
        return ATOM, [f"({value + 1}{suffix} - 1)"]
    return (ATOM if value >= 0 else NEGATION), [f"{value}{suffix}"]
