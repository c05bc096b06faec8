"""Reads the text that `show` prints; a bad text ends in one located error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from warploom.errors import CheckError, ParseError, Source, Span
from warploom.layout.language import ir
from warploom.layout.language.check import check

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>-?[0-9]+)(?![\w.])|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<symbol>[<>()\[\],:^])",
    re.ASCII,
)
MOST_CHARACTERS = 4_000_000
MOST_DEPTH = 40
MOST_PARTS = 100  # of a composition
_MOST_DIGITS = 13

# The maps with numbers between < and >: how many, and what they make.
_MAPS: dict[str, tuple[int, Callable[..., ir.Layout]]] = {
    "S": (3, ir.Swizzle),
    "shift": (1, ir.Shift),
    "pad": (2, ir.Pad),
    "rotate": (4, ir.Rotate),
    "exchange": (4, ir.Exchange),
    "tile": (3, ir.Tile),
}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # number, name, symbol or end
    text: str
    start: int


class Reader:
    """A text as tokens, read from left to right; dialects of others read with it, too."""

    def __init__(self, source: Source, pattern: re.Pattern[str] = _TOKEN) -> None:
        self.source = source
        if len(source.text) > MOST_CHARACTERS:
            raise ParseError(f"a layout has at most {MOST_CHARACTERS} characters")
        self._tokens = self._split(pattern)
        self._at = 0

    def _split(self, pattern: re.Pattern[str]) -> list[Token]:
        text, position, tokens = self.source.text, 0, []
        while position < len(text):
            found = pattern.match(text, position)
            if found is None:
                self.fail("this is not part of a layout", Token("symbol", "?", position))
            if found.lastgroup != "space":
                tokens.append(Token(str(found.lastgroup), found.group(), position))
            position = found.end()
        return [*tokens, Token("end", "", len(text))]

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def take(self) -> Token:
        token = self.next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def rest(self) -> list[Token]:
        """What is still to be read."""
        return self._tokens[self._at :]

    def accept(self, text: str) -> bool:
        if self.next.kind != "end" and self.next.text == text:
            self.take()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"'{text}' should stand here", self.next)

    def number(self) -> int:
        token = self.take()
        if token.kind != "number":
            self.fail("a number should stand here", token)
        if len(token.text) > _MOST_DIGITS:
            self.fail("the number is too large", token)
        return int(token.text.lstrip("_"))

    def numbers(self, closing: str) -> tuple[int, ...]:
        """Numbers between commas, up to the closing bracket."""
        found: list[int] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(self.number())
        return tuple(found)

    def tree(self, depth: int = 0) -> ir.Tree:
        if depth > MOST_DEPTH:
            self.fail(f"a shape is at most {MOST_DEPTH} deep", self.next)
        if not self.accept("("):
            return self.number()
        parts: list[ir.Tree] = []
        while not self.accept(")"):
            if parts:
                self.expect(",")
                if self.accept(")"):
                    break
            parts.append(self.tree(depth + 1))
        return tuple(parts)

    def composition(self, part: Callable[[], list[ir.Layout]]) -> list[ir.Layout]:
        """Layouts one after another, outermost first."""
        parts = part()
        while self.accept("o"):
            parts += part()
            if len(parts) > MOST_PARTS:
                self.fail(f"at most {MOST_PARTS} layouts one after another", self.next)
        return parts

    def fail(self, message: str, token: Token, advice: str = "") -> NoReturn:
        raise ParseError(message, self.span(token), advice)

    def span(self, token: Token) -> Span:
        return self.source.at(token.start, len(token.text))

    def checked(self, layout: ir.Layout, token: Token) -> ir.Layout:
        """The layout, if it is one; what is wrong is said at its first word."""
        try:
            return check(layout)
        except CheckError as error:
            error.span = error.span or self.span(token)
            raise


def parse(text: str, source_name: str = "<layout>") -> ir.Layout:
    """
    >>> parse("S<3,3,3> o (8,64):(64,1)")
    Compose(Swizzle(3, 3, 3), Strided((8, 64), (64, 1)))
    """
    reader = Reader(Source(source_name, text))
    first = reader.next
    parts = reader.composition(lambda: [_part(reader)])
    if reader.next.kind != "end":
        reader.fail(f"'{reader.next.text}' after a layout", reader.next, "compose with ' o '")
    return reader.checked(ir.compose(*parts), first)


def _part(reader: Reader) -> ir.Layout:
    token = reader.next
    if token.kind == "name":
        return reader.checked(_named(reader, reader.take()), token)
    if token.kind == "end":
        reader.fail("the text ends where a layout should stand", token)
    shape = reader.tree()
    reader.expect(":")
    return reader.checked(ir.Strided(shape, reader.tree()), token)


def _named(reader: Reader, token: Token) -> ir.Layout:
    if token.text == "F2":
        reader.expect("[")
        columns = reader.numbers("]")
        return ir.Matrix(columns, reader.number() if reader.accept("^") else 0)
    if token.text == "table":
        reader.expect("[")
        return ir.Table(reader.numbers("]"))
    if token.text not in _MAPS:
        known = ", ".join([*_MAPS, "F2", "table"])
        reader.fail(f"'{token.text[:40]}' is no layout", token, f"known are {known}")
    count, build = _MAPS[token.text]
    reader.expect("<")
    numbers = reader.numbers(">")
    if len(numbers) != count:
        reader.fail(f"{token.text}<…> takes {count} numbers, not {len(numbers)}", token)
    return build(*numbers)
