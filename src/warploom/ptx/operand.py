"""The operands of one instruction: a fast way for the usual text, and a cursor for all of it."""

from __future__ import annotations

import re

from warploom.errors import ParseError
from warploom.ptx import constant, ir
from warploom.ptx.lex import IDENTIFIER, Token, negate, next_token, number
from warploom.ptx.names import Names

DEEPEST = 16  # nesting of brackets in operands; PTX needs three
LONGEST_LIST = 4096  # elements of a vector, or arguments of a call

_USUAL = re.compile(
    rf"(?:(?P<name>{IDENTIFIER}(?:\.(?:[xyzw]|[bh]\d+))?)|(?P<number>-?\d\w*)"
    rf"|\[\s*(?P<base>{IDENTIFIER})\s*(?:\+\s*(?P<offset>-?\d\w*)\s*)?\])"
)


class Cursor:
    """A position in a text that moves over tokens."""

    __slots__ = ("ahead", "calls", "limit", "text")

    def __init__(self, text: ir.Text, position: int, limit: int | None = None) -> None:
        self.text = text
        self.limit = limit
        self.calls = False  # parentheses hold arguments, and no constant expression
        self.ahead = next_token(text, position, limit)

    def take(self) -> Token:
        token = self.ahead
        self.ahead = next_token(self.text, token.end, self.limit)
        return token

    def at(self, mark: str) -> bool:
        return self.ahead.text == mark and self.ahead.kind in ("mark", "directive")

    def accept(self, mark: str) -> bool:
        if self.at(mark):
            self.take()
            return True
        return False

    def expect(self, what: str) -> Token:
        """The next token, which must be this mark or directive."""
        if not self.at(what):
            raise self.error(f"expected '{what}'")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.ahead.kind != kind:
            raise self.error(f"expected {what}")
        return self.take()

    def integer(self, what: str) -> int:
        """A whole number that is not negative."""
        token = self.expect_kind("number", what)
        value = number(token.text)
        if value is None or value.spelling is not ir.Spelling.INTEGER:
            raise self.error(f"expected {what}", token)
        return value.value

    def error(self, message: str, token: Token | None = None) -> ParseError:
        place = token or self.ahead
        found = "the end of the text" if place.kind == "end" else f"'{place.text[:40]}'"
        return ParseError(f"{message}, found {found}", self.text.span(place.start, place.end))


def usual_operands(text: str, names: Names) -> tuple[ir.Operand, ...] | None:
    """Operands without braces or parentheses; None where the text needs the cursor."""
    known = names.known
    out = []
    for piece in map(str.strip, text.split(",")):
        operand = known.get(piece)
        if operand is None:
            operand = _usual(piece, names)
            if operand is None:
                return None
            known[piece] = operand
        out.append(operand)
    return tuple(out)


def _usual(piece: str, names: Names) -> ir.Operand | None:
    match = _USUAL.fullmatch(piece)
    if match is None:
        return None
    name, digits, base, offset = match.groups()
    if name is not None:
        return names.resolve(name)
    if digits is not None:
        return _signed(digits)
    if offset is None:
        return ir.Address(names.resolve(base))
    distance = _signed(offset)
    if distance is None or distance.spelling is not ir.Spelling.INTEGER:
        return None
    return ir.Address(names.resolve(base), distance.value)


def _signed(text: str) -> ir.Immediate | None:
    value = number(text.removeprefix("-"))
    return negate(value) if value is not None and text[0] == "-" else value


def read_operands(cursor: Cursor, names: Names) -> tuple[ir.Operand, ...]:
    """`a, b, …` up to the semicolon, which is left standing."""
    if cursor.at(";"):
        return ()
    out = [read_operand(cursor, names)]
    while cursor.accept(","):
        out.append(read_operand(cursor, names))
    return tuple(out)


def read_operand(cursor: Cursor, names: Names, depth: int = 0) -> ir.Operand:
    if depth > DEEPEST:
        raise cursor.error("operands nested too deeply")
    operand = _read_primary(cursor, names, depth)
    if cursor.accept("|"):
        return ir.Pair(operand, read_operand(cursor, names, depth + 1))
    return operand


def _read_primary(cursor: Cursor, names: Names, depth: int) -> ir.Operand:
    token = cursor.ahead
    if cursor.accept("{"):
        if cursor.at("}"):
            raise cursor.error("expected an operand between braces")
        return ir.Vector(_read_list(cursor, names, "}", depth))
    if cursor.at("(") and (cursor.calls or not _is_constant(cursor)):
        cursor.take()
        return ir.Arguments(_read_list(cursor, names, ")", depth))
    if cursor.accept("["):
        return _read_address(cursor, names, depth)
    if cursor.at("!") and not _is_constant(cursor):
        cursor.take()
        return ir.Negated(read_operand(cursor, names, depth + 1))
    if token.kind in ("number", "mark"):
        return _read_number(cursor, names)
    cursor.expect_kind("name", "an operand")
    base = names.resolve(token.text)
    distance = read_offset(cursor)
    if distance is not None:
        return ir.Offset(base, distance)
    if cursor.at("[") and isinstance(base, ir.Symbol):  # an array of textures: name[index]
        return _read_index(cursor, names, base, depth)
    return base


def _read_index(cursor: Cursor, names: Names, base: ir.Symbol, depth: int) -> ir.Operand:
    cursor.expect("[")
    index = read_operand(cursor, names, depth + 1)
    cursor.expect("]")
    return ir.Address(base, 0, (index,))


def _read_list(cursor: Cursor, names: Names, close: str, depth: int) -> tuple[ir.Operand, ...]:
    out: list[ir.Operand] = []
    while not cursor.at(close):
        if out:
            cursor.expect(",")
        if len(out) == LONGEST_LIST:
            raise cursor.error(f"more than {LONGEST_LIST} operands in a row")
        out.append(read_operand(cursor, names, depth + 1))
    cursor.take()
    return tuple(out)


def _read_address(cursor: Cursor, names: Names, depth: int) -> ir.Address:
    base: ir.Operand = read_operand(cursor, names, depth + 1)
    offset = 0
    if isinstance(base, ir.Offset):
        offset, base = base.offset, base.base
    elif isinstance(base, ir.Immediate) and (distance := read_offset(cursor)) is not None:
        offset = distance
    more: list[ir.Operand] = []
    while cursor.accept(","):
        more.append(read_operand(cursor, names, depth + 1))
    cursor.expect("]")
    return ir.Address(base, offset, tuple(more))


def _read_number(cursor: Cursor, names: Names) -> ir.Operand:
    start = cursor.ahead.start
    if cursor.at("-") and _after(cursor).kind == "name":
        cursor.take()
        return ir.Minus(names.resolve(cursor.take().text))
    minus = cursor.at("-") and _after(cursor).kind == "number"
    if minus:
        cursor.take()
    if cursor.ahead.kind == "number":
        token = cursor.take()
        value = number(token.text)
        if value is None:
            raise cursor.error("this is no number", token)
        value = negate(value) if minus else value
        if _operator(cursor) is None:
            return value
        left = _literal(cursor, value, token)
    else:
        left = _read_unary(cursor, 0)
    result = _read_rest(cursor, left, 0)
    text = cursor.text.source.text[start : cursor.ahead.start].strip()
    return ir.Immediate(text, result.value, ir.Spelling.INTEGER)


def read_offset(cursor: Cursor) -> int | None:
    """`+4`, `-4`, `+-4` or `+4*(2+1)` after a name."""
    total = None
    while cursor.at("+") or cursor.at("-"):
        minus = cursor.take().text == "-"
        term = _climb(cursor, _read_unary(cursor, 0), _LEVELS["*"], 0).value
        total = (total or 0) + (-term if minus else term)
    return total


# -- constant expressions --------------------------------------------------------------------------

_LEVELS = {word: level for level, words in enumerate(constant.PRECEDENCE) for word in words}


def _after(cursor: Cursor) -> Token:
    """The token behind the next one."""
    return next_token(cursor.text, cursor.ahead.end, cursor.limit)


def _is_constant(cursor: Cursor) -> bool:
    """Whether a parenthesis or an operator begins a constant expression."""
    place = cursor.ahead
    for _ in range(DEEPEST):
        place = next_token(cursor.text, place.end, cursor.limit)
        if place.text not in ("(", *constant.UNARY):
            break
    return place.kind == "number" or place.text in (".s64", ".u64")


def _operator(cursor: Cursor) -> str | None:
    """The operator that comes next; a percent sign is read as a name."""
    token = cursor.ahead
    known = token.text in _LEVELS or token.text == "?"
    return token.text if known and token.kind in ("mark", "name") else None


def _literal(cursor: Cursor, value: ir.Immediate, token: Token) -> constant.Constant:
    if value.spelling is not ir.Spelling.INTEGER:
        raise cursor.error("constant expressions are of whole numbers", token)
    return constant.literal(value.value, unsigned=token.text.endswith("U"))


def _read_rest(cursor: Cursor, left: constant.Constant, depth: int) -> constant.Constant:
    """The rest of an expression behind its first operand, conditions included."""
    left = _climb(cursor, left, 0, depth)
    if not cursor.accept("?"):
        return left
    first = _read_rest(cursor, _read_unary(cursor, depth + 1), depth + 1)
    cursor.expect(":")
    second = _read_rest(cursor, _read_unary(cursor, depth + 1), depth + 1)
    return first if left.value else second


def _climb(
    cursor: Cursor, left: constant.Constant, least: int, depth: int
) -> constant.Constant:  # fmt: skip
    """Operators that bind at least so tightly, from the left to the right."""
    while (word := _operator(cursor)) is not None and _LEVELS.get(word, -1) >= least:
        token = cursor.take()
        right = _climb(cursor, _read_unary(cursor, depth), _LEVELS[word] + 1, depth)
        found = constant.binary(word, left, right)
        if found is None:
            raise cursor.error("a division by zero, or a shift by 64 bits and more", token)
        left = found
    return left


def _read_unary(cursor: Cursor, depth: int) -> constant.Constant:
    if depth > DEEPEST:
        raise cursor.error("a constant expression that is nested too deeply")
    for word in constant.UNARY:
        if cursor.accept(word):
            return constant.unary(word, _read_unary(cursor, depth + 1))
    if cursor.accept("("):
        if cursor.ahead.text in (".s64", ".u64"):
            unsigned = cursor.take().text == ".u64"
            cursor.expect(")")
            return constant.made(_read_unary(cursor, depth + 1).value, unsigned)
        inner = _read_rest(cursor, _read_unary(cursor, depth + 1), depth + 1)
        cursor.expect(")")
        return inner
    token = cursor.expect_kind("number", "a number")
    value = number(token.text)
    if value is None:
        raise cursor.error("this is no number", token)
    return _literal(cursor, value, token)
