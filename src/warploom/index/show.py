"""How an index expression prints: as Python-like text, which `parse` reads back, and as C.

Both languages share one layout: a node spells itself as pieces, each with how tightly it must bind,
and parentheses appear only where they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from warploom.errors import EmitError, UnsupportedError
from warploom.index.ir import COMPARISONS, TRUTHS, Binary, Const, Expr, Select, Unary, Var, fold_up
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
    expr: Expr, ranges: Mapping[str, tuple[int, int]] | None = None, suffix: str = ""
) -> str:
    """The expression in C, CUDA C++ or OpenCL C; right for negative operands too.

    `ranges` bounds the variables: where no operand can be negative, `//` and `%` become plain `/`
    and `%`. What has no direct spelling calls a function of `c_helpers`. The variables are `int`,
    or, where a `suffix` is given, of the 64-bit type whose literals end so ("LL" in C).

    >>> x = Var("x")
    >>> c_text(x // 3 + x % 4)
    'floor_div(x, 3) + (x & 3)'
    >>> c_text(x // 3 + x % 4, {"x": (0, 31)})
    'x / 3 + x % 4'
    """
    known = Ranges(ranges or {})
    return _lay_out(expr, lambda part: _c(part, known.of, suffix))


def c_helpers(integer: str = "int", qualifiers: str = "static inline") -> str:
    """The functions that `c_text` may call, for one integer type."""
    unsigned = "unsigned " + integer
    return f"""\
{qualifiers} {integer} floor_div({integer} x, {integer} y) {{
  return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}}
{qualifiers} {integer} floor_mod({integer} x, {integer} y) {{
  return y == -1 ? 0 : x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);
}}
{qualifiers} {integer} shift_left({integer} x, {integer} count) {{
  return ({integer})(({unsigned})x << count);
}}
"""


C_HELPERS = c_helpers()


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


def _c(expr: Expr, range_of: Callable[[Expr], Range], suffix: str) -> Spelling:
    match expr:
        case Const(value):
            return _c_constant(value, suffix)
        case Var(name):
            if not _C_NAME.fullmatch(name):
                raise EmitError(f"the variable {name!r} is not a name of C")
            return ATOM, [name]
        case Unary("not", operand):
            return NEGATION, ["!", (operand, NEGATION)]
        case Unary(_, operand):
            # `--x` would be a decrement.
            return NEGATION, ["-", (operand, ATOM)]
        case Binary("//" | "%", left, right):
            return _c_division(expr, range_of(left).low >= 0 and range_of(right).low >= 0)
        case Binary("<<", left, right):
            return _c_shift_left(left, right, range_of, suffix)
        case Binary("and" | "or" as op, left, right):
            return _c_infix(_C_SPELLING[op], left, right)
        case Binary(op, left, right):
            return _c_infix(op, left, right)
        case Select(condition, then, otherwise):
            own = _C_PRIORITY["?"]
            pieces: list[Piece] = [(condition, own + 1), " ? ", (then, own + 1), " : "]
            return own, [*pieces, (otherwise, own)]
        case _:
            assert_never(expr)


def _c_infix(op: str, left: Expr, right: Expr) -> Spelling:
    own = _C_PRIORITY[op]
    if op in ("+", "-", "*", "/", "%"):
        return own, [(left, own), f" {op} ", (right, own + 1)]
    if op in ("&&", "||"):
        same = isinstance(left, Binary) and _C_SPELLING.get(left.op) == op
        least = _C_PRIORITY["|"]
        return own, [(left, own if same else least), f" {op} ", (right, least)]
    if op in COMPARISONS:
        return own, [(left, _C_PRIORITY["+"]), f" {op} ", (right, _C_PRIORITY["+"])]
    return own, [(left, NEGATION), f" {op} ", (right, NEGATION)]


def _c_division(expr: Binary, plain: bool) -> Spelling:
    """`//` and `%`, which in C round towards zero."""
    if plain:
        return _c_infix("/" if expr.op == "//" else "%", expr.left, expr.right)
    if isinstance(expr.right, Const) and expr.right.value > 0:
        divisor = expr.right.value
        if divisor & (divisor - 1) == 0:  # shifts and masks round down for negative numbers too
            if expr.op == "//":
                return _c_infix(">>", expr.left, Const(divisor.bit_length() - 1))
            return _c_infix("&", expr.left, Const(divisor - 1))
    name = "floor_div" if expr.op == "//" else "floor_mod"
    return ATOM, [f"{name}(", (expr.left, 0), ", ", (expr.right, 0), ")"]


def _c_shift_left(
    left: Expr, right: Expr, range_of: Callable[[Expr], Range], suffix: str
) -> Spelling:
    """A negative number may not be shifted in C, nor a truth (an `int`) by more than its width."""
    narrow = isinstance(left, Unary | Binary) and left.op in TRUTHS
    if not suffix and not narrow and range_of(left).low >= 0:
        return _c_infix("<<", left, right)
    return ATOM, ["shift_left(", (left, 0), ", ", (right, 0), ")"]


def _c_constant(value: int, suffix: str) -> Spelling:
    if not suffix and not -(2**31) <= value < 2**31:
        suffix = "LL"
    if value == (-(2**63) if suffix else -(2**31)):
        # Without its sign the literal is too large for the type.
        return ATOM, [f"({value + 1}{suffix} - 1)"]
    return (ATOM if value >= 0 else NEGATION), [f"{value}{suffix}"]
