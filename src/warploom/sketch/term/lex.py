"""The words of a `.swflow` text: a source comes in, tokens with their places come out, one by one.

Tokens are read on demand, so the first thing that is wrong ends the reading, however long the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from warploom.errors import ParseError, Source, Span
from warploom.sketch.term.limits import MAX_NAME, MAX_TEXT
from warploom.sketch.term.operator import OPERATORS, WORD


class Kind(Enum):
    """What a token is; the values are what error messages call it."""

    NUMBER = "a number"
    NAME = "a name"
    STRING = "a string"
    FOLD = "'fold'"
    DEFINE = "'define'"
    RANGE = "'range'"
    GOAL = "'goal'"
    ARROW = "'->'"
    PAREN_OPEN = "'('"
    PAREN_CLOSE = "')'"
    SQUARE_OPEN = "'['"
    SQUARE_CLOSE = "']'"
    BRACE_OPEN = "'{'"
    BRACE_CLOSE = "'}'"
    COLON = "':'"
    OPEN_MARK = "'?'"
    COMMA = "','"
    AT = "'@'"
    EQUALS = "'='"
    END = "the end of the text"


class Token(NamedTuple):
    """`text` is as written (for a fold: which operator, or `fold`); `start` is its offset."""

    kind: Kind
    text: str
    start: int


# The operators and `fold` are one kind of token: they say what a fold stands for.
_FIXED = {
    "(": Kind.PAREN_OPEN, ")": Kind.PAREN_CLOSE, "[": Kind.SQUARE_OPEN, "]": Kind.SQUARE_CLOSE,
    "{": Kind.BRACE_OPEN, "}": Kind.BRACE_CLOSE, ":": Kind.COLON, "?": Kind.OPEN_MARK,
    ",": Kind.COMMA, "@": Kind.AT, "=": Kind.EQUALS,
    "define": Kind.DEFINE, "range": Kind.RANGE, "goal": Kind.GOAL, "->": Kind.ARROW,
    **dict.fromkeys((*OPERATORS, WORD), Kind.FOLD),
}  # fmt: skip

_BLANK = r"(?:\s++|\#[^\n]*+)*"
# A quote ends a string unless a backslash stands before it.
_TOKEN = re.compile(
    _BLANK + r"""([()\[\]{}:?,@=+*]|"[^"\\]*+(?:\\"?+[^"\\]*+)*"|"|[^\s()\[\]{}:?,@=+*\#"]++|\Z)"""
)
_WORD = re.compile(r"""[^\s()\[\]{}:?,@=+*\#"]+""")
_NUMBER = re.compile(r"-?[0-9]+")
# Many numbers, each followed by its comma: read in one go, since tables can be long.
# No group is possessive: before Python 3.11.5 such a one loses characters (gh-106052).
_RUN = re.compile(rf"(?:{_BLANK}-?[0-9]{{1,18}}+{_BLANK},)+")
_COMMENT = re.compile(r"#[^\n]*+")
_BAD_CHARACTER = re.compile("[\0-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Lexer:
    """Reads tokens of one source at any offset. `breaks` are the offsets of its newlines."""

    source: Source
    breaks: list[int]

    def at(self, offset: int) -> Token:
        """The next token at or after `offset`."""
        found = _TOKEN.match(self.source.text, offset)
        if found is None:  # cannot happen: the pattern ends in "any character or the end"
            raise self.error("unreadable text", offset)
        text, start = found.group(1), found.start(1)
        kind = _FIXED.get(text)
        if kind is not None:
            return Token(kind, text, start)
        return Token(self._kind(text, start), text, start)

    def _kind(self, text: str, start: int) -> Kind:
        if not text:
            return Kind.END
        if text[0] == '"':
            if text == '"':
                raise self.error(
                    "the string that begins here never ends", start, 1, 'close it with "'
                )
            return Kind.STRING
        if _NUMBER.fullmatch(text) is None:
            if len(text) > MAX_NAME:
                raise self.error(f"a name has at most {MAX_NAME} characters", start, len(text))
            return Kind.NAME
        # Digits are counted first: Python refuses to read very long numbers.
        if len(text) > 40 or not -(1 << 63) <= int(text) < (1 << 63):
            raise self.error(
                "this number does not fit in 64 bits",
                start,
                len(text),
                "numbers are -2^63 to 2^63-1",
            )
        return Kind.NUMBER

    def run(self, offset: int) -> tuple[list[int], int]:
        """As many `number ,` pairs as stand at `offset`, and the offset behind them."""
        found = _RUN.match(self.source.text, offset)
        if found is None:
            return [], offset
        text = found.group()
        if "#" in text:
            text = _COMMENT.sub("", text)
        return list(map(int, text.split(",")[:-1])), found.end()

    def span(self, offset: int, length: int = 1) -> Span:
        line = bisect_left(self.breaks, offset)
        begin = self.breaks[line - 1] + 1 if line else 0
        end = self.breaks[line] if line < len(self.breaks) else len(self.source.text)
        return Span(self.source, line + 1, offset - begin + 1, max(1, min(length, end - offset)))

    def span_of(self, token: Token) -> Span:
        return self.span(token.start, len(token.text))

    def error(self, message: str, offset: int, length: int = 1, advice: str = "") -> ParseError:
        return ParseError(message, self.span(offset, length), advice)


def lexer(text: str, name: str) -> Lexer:
    """A lexer for the text, refused at once if it is too long or not text at all."""
    source = Source(name, text)
    if len(text) > MAX_TEXT:
        raise ParseError(
            f"the text has {len(text)} characters, more than {MAX_TEXT}",
            Span(source, 1, 1),
            "give long tables from Python: Sketch.gather and Sketch.choices",
        )
    found = Lexer(source, [newline.start() for newline in re.finditer("\n", text)])
    bad = _BAD_CHARACTER.search(text)
    if bad is not None:
        code = ord(bad.group())
        raise found.error(
            f"unexpected character U+{code:04X}", bad.start(), 1, "a sketch is plain UTF-8 text"
        )
    return found


def is_name(text: str) -> bool:
    """Whether the text reads as exactly one name."""
    return (
        _WORD.fullmatch(text) is not None
        and text not in _FIXED
        and _NUMBER.fullmatch(text) is None
        and _BAD_CHARACTER.search(text) is None
        and len(text) <= MAX_NAME
    )


def tokens(text: str, name: str = "<text>") -> list[Token]:
    """All tokens of a text, the end included."""
    source = lexer(text, name)
    found = [source.at(0)]
    while found[-1].kind is not Kind.END:
        found.append(source.at(found[-1].start + len(found[-1].text)))
    return found
