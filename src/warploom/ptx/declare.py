"""Declarations: `.reg`, variables of every space with initialisers, parameters of functions."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

from warploom.ptx import ir
from warploom.ptx.lex import Token, negate, number
from warploom.ptx.names import Names
from warploom.ptx.operand import Cursor, read_offset
from warploom.ptx.patience import timed

LINKAGES = (".extern", ".visible", ".weak", ".common")
SPACES = (".reg", ".param", ".shared", ".local", ".const", ".global", ".sreg", ".tex")
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_ZERO = ir.Immediate("0", 0, ir.Spelling.INTEGER)
_PLAIN_LIST = re.compile(r"\s*\{([\s\d,]+)\}\s*(?=;)")
MOST_VARIABLES = 1 << 16
LARGEST_ARRAY = 1 << 40  # bytes; keeps the arithmetic on hostile sizes small


def read_registers(cursor: Cursor, names: Names) -> ir.RegisterDeclaration:
    """`.reg .v2 .f32 %a<4>, b;`"""
    start = cursor.expect(".reg").start
    vector, kind = _read_type(cursor)
    declared: list[tuple[str, int]] = []
    while True:
        token = cursor.expect_kind("name", "a register name")
        count = 0
        if cursor.accept("<"):
            count = cursor.integer("a count of registers")
            cursor.expect(">")
        if not names.declare(token.text, count, kind, vector):
            raise cursor.error("register declared twice in one scope", token)
        declared.append((token.text, count))
        if not cursor.accept(","):
            break
    end = cursor.expect(";").end
    return ir.RegisterDeclaration(kind, vector, tuple(declared), start, end)


def _read_type(cursor: Cursor) -> tuple[int, str]:
    vector = 1
    if cursor.ahead.text in _VECTORS:
        vector = _VECTORS[cursor.take().text]
    return vector, cursor.expect_kind("directive", "a type").text[1:]


class _Header:
    """What stands before the name of a variable or parameter."""

    def __init__(self, cursor: Cursor) -> None:
        self.space = cursor.take().text[1:]
        self.align = 0
        self.vector = 1
        self.type = ""
        self.attributes: list[str] = []
        while cursor.ahead.kind == "directive":
            self._read_word(cursor)
        if not self.type:
            raise cursor.error("expected a type")

    def _read_word(self, cursor: Cursor) -> None:
        word = cursor.take().text
        if word == ".align":
            place = cursor.ahead
            align = cursor.integer("an alignment")
            if align < 1 or align & (align - 1):
                raise cursor.error("an alignment is a power of two", place)
            if ".ptr" not in self.attributes and "ptr" not in self.attributes:
                self.align = align
        elif word in _VECTORS:
            self.vector = _VECTORS[word]
        elif word == ".attribute":
            self.attributes.append(_read_attribute(cursor))
        elif not self.type and word not in SPACES:
            self.type = word[1:]
        else:
            self.attributes.append(word[1:])


def _read_attribute(cursor: Cursor) -> str:
    """`(.managed)` or `(.unified(1, 2))`, kept as text."""
    words = [cursor.expect("(").text]
    depth = 1
    while depth:
        if cursor.ahead.kind == "end":
            raise cursor.error("expected ')'")
        token = cursor.take()
        depth += (token.text == "(") - (token.text == ")")
        words.append(token.text)
    return "".join(words)


def read_variables(cursor: Cursor, linkage: tuple[str, ...], start: int) -> list[ir.Variable]:
    """`.shared .align 4 .b8 name[16] = {…}, other;` with the linkage already taken."""
    header = _Header(cursor)
    found: list[tuple[str, tuple[int, ...], tuple[ir.Initial, ...] | None]] = []
    while True:
        name = cursor.expect_kind("name", "a name").text
        if cursor.accept("<"):  # `%P<2>` declares %P0 and %P1
            found += [(f"{name}{number}", (), None) for number in range(_read_count(cursor))]
        else:
            sizes = _read_sizes(cursor)
            initial = _read_initial(cursor, sizes) if cursor.accept("=") else None
            found.append((name, sizes, initial))
        if not cursor.accept(","):
            break
    end = cursor.expect(";").end
    return [
        _variable(header, name, sizes, linkage, initial, start, end)
        for name, sizes, initial in found
    ]


def _read_count(cursor: Cursor) -> int:
    token = cursor.ahead
    count = cursor.integer("a count of variables")
    if count > MOST_VARIABLES:
        raise cursor.error("too many variables", token)
    cursor.expect(">")
    return count


def read_parameters(cursor: Cursor) -> tuple[ir.Variable, ...]:
    """`(.param .u64 a, .reg .b32 b)` with its parentheses."""
    cursor.expect("(")
    out: list[ir.Variable] = []
    while not cursor.at(")"):
        if out:
            cursor.expect(",")
        start = cursor.ahead.start
        if cursor.ahead.text not in SPACES:
            raise cursor.error("expected a parameter")
        header = _Header(cursor)
        name = cursor.expect_kind("name", "a parameter name")
        sizes = _read_sizes(cursor)
        end = cursor.ahead.start if sizes else name.end
        out.append(_variable(header, name.text, sizes, (), None, start, end))
    cursor.take()
    return tuple(out)


def _variable(
    header: _Header,
    name: str,
    sizes: tuple[int, ...],
    linkage: tuple[str, ...],
    initial: tuple[ir.Initial, ...] | None,
    start: int,
    end: int,
) -> ir.Variable:
    attributes = tuple(header.attributes)
    return ir.Variable(
        name, header.space, header.type, header.vector, sizes, header.align, linkage, attributes,
        initial, start, end,
    )  # fmt: skip


def _read_sizes(cursor: Cursor) -> tuple[int, ...]:
    sizes: list[int] = []
    while cursor.accept("["):
        sizes.append(0 if cursor.at("]") else cursor.integer("an array size"))
        closing = cursor.expect("]")
        if prod(max(1, s) for s in sizes) > LARGEST_ARRAY:
            raise cursor.error("array too large", closing)
    return tuple(sizes)


@lru_cache(maxsize=4096)
def _cached_number(text: str) -> ir.Immediate | None:
    return number(text)


def _read_initial(cursor: Cursor, sizes: tuple[int, ...]) -> tuple[ir.Initial, ...]:
    text = cursor.text.source.text
    plain = _PLAIN_LIST.match(text, cursor.ahead.start)
    if plain is not None:
        values = [_cached_number(word.strip()) for word in timed(plain.group(1).split(","))]
        if None not in values:
            fresh = Cursor(cursor.text, plain.end(), cursor.limit)
            cursor.ahead = fresh.ahead
            return tuple(v for v in values if v is not None)
    return _read_braces(cursor, sizes) if cursor.at("{") else (_read_value(cursor),)


def _read_braces(cursor: Cursor, sizes: tuple[int, ...]) -> tuple[ir.Initial, ...]:
    """Nested braces without recursion; a short inner list is filled up with zeros."""
    cursor.expect("{")
    out: list[ir.Initial] = []
    opened = [0]
    while opened:
        if cursor.accept("{"):
            opened.append(len(out))
        elif cursor.accept("}"):
            begin = opened.pop()
            row = prod(sizes[len(opened) :]) if len(opened) < len(sizes) else 0
            missing = row - (len(out) - begin)
            if opened and 0 < missing < 1 << 20:
                out += [_ZERO] * missing
        elif not cursor.accept(","):
            out.append(_read_value(cursor))
    return tuple(out)


def _read_value(cursor: Cursor) -> ir.Initial:
    """A constant, an address, or `0xff(…)`: one byte of an address."""
    minus = cursor.accept("-")
    token = cursor.take()
    if token.kind == "number":
        value = number(token.text)
        if value is None:
            raise cursor.error("this is no number", token)
        if cursor.accept("("):
            inner = _read_address(cursor, cursor.expect_kind("name", "a name"))
            cursor.expect(")")
            return ir.Masked(value.value, inner)
        return negate(value) if minus else value
    if token.kind != "name" or minus:
        raise cursor.error("expected a value", token)
    return _read_address(cursor, token)


def _read_address(cursor: Cursor, token: Token) -> ir.Operand | ir.Generic:
    """A name with an offset, or `generic(name)`, within whose brackets the offset may stand."""
    if token.text == "generic" and cursor.accept("("):
        inside = _read_name(cursor, cursor.expect_kind("name", "a name"))
        cursor.expect(")")
        distance = read_offset(cursor)
        return ir.Generic(inside if distance is None else ir.Offset(inside, distance))
    return _read_name(cursor, token)


def _read_name(cursor: Cursor, token: Token) -> ir.Operand:
    symbol = ir.Symbol(token.text)
    distance = read_offset(cursor)
    return symbol if distance is None else ir.Offset(symbol, distance)
