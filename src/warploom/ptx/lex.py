"""PTX text to tokens. One regular expression knows all tokens; spaces and comments are skipped."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np

from warploom.errors import ParseError, Source
from warploom.ptx.ir import Immediate, Spelling, Text
from warploom.ptx.patience import look, timed

IDENTIFIER = r"[A-Za-z_$%][\w$]*"

# Blank runs and comments; an unclosed comment does not match and is reported where it opens.
# No group is possessive: before Python 3.11.5 such a one loses characters (gh-106052).
_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*"
_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*'
_BLANK = rf"(?:\s++|//[^\n]*+|{_COMMENT}\*/)*"
BLANK = re.compile(_BLANK)

TOKEN = re.compile(
    rf"{_BLANK}(?:"
    r"(?P<number>0[fF][0-9a-fA-F]{8}(?!\w)|0[dD][0-9a-fA-F]{16}(?!\w)|0[xX][0-9a-fA-F]+U?"
    r"|0[bB][01]+U?|(?:\d+\.\d*|\.\d+(?!\w)|\d+(?=[eE]))(?:[eE][+-]?\d+)?|\d+U?)"
    rf"|(?P<name>{IDENTIFIER}(?:(?:\.|::)[\w$]+)*)"
    r"|(?P<directive>\.[A-Za-z_]\w*(?:::\w+)*)"
    rf'|(?P<string>{_STRING}")'
    r"|(?P<mark>@@|<<|>>|[<>=!]=|&&|\|\||[@!|,;:+\-*/&^~?=<>()\[\]{}])"
    r"|(?P<end>\Z))"
)

# What never ends is matched as well: a search that failed would start again at the next quote.
_BRACE = re.compile(rf'[{{}}]|{_STRING}"?|//[^\n]*|{_COMMENT}(?:\*/)?')

_NUMBER = re.compile(
    r"(?P<single>0[fF][0-9a-fA-F]{8})|(?P<double>0[dD][0-9a-fA-F]{16})"
    r"|(?P<hex>0[xX][0-9a-fA-F]+)U?|(?P<bin>0[bB][01]+)U?|(?P<dec>\d+)U?"
    r"|(?P<decimal>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
)
LONGEST_NUMBER = 400  # digits; longer ones are refused before Python converts them


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # number, name, directive, string, mark, end
    text: str
    start: int
    end: int


def make_text(text: str, name: str) -> Text:
    # One number per character: looking for line ends is then a comparison of arrays.
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = np.flatnonzero(characters == ord("\n"))
    return Text(Source(name, text), (0, *(ends + 1).tolist()))


def check_braces(text: Text) -> None:
    """Refuses a text whose braces do not match, before anything is built from it."""
    opened: list[int] = []
    for match in timed(_BRACE.finditer(text.source.text)):
        place = match.start()
        character = match.group()[0]
        if character == "{":
            opened.append(place)
        elif character == "}":
            if not opened:
                raise ParseError("this brace closes nothing", text.span(place))
            opened.pop()
        elif character == "/" and _is_open_comment(match.group()):
            raise ParseError("comment without an end", text.span(place, place + 2))
    if opened:
        place = opened[-1]
        raise ParseError("this brace is never closed", text.span(place), "add a '}'")


def _is_open_comment(text: str) -> bool:
    return text.startswith("/*") and (len(text) < 4 or not text.endswith("*/"))


def next_token(text: Text, position: int, limit: int | None = None) -> Token:
    """The token at or after `position`; raises where no token can start."""
    look()
    body = text.source.text
    match = TOKEN.match(body, position) if limit is None else TOKEN.match(body, position, limit)
    if match is None or match.lastgroup is None:
        raise bad_token(text, position)
    kind = match.lastgroup
    return Token(kind, match.group(kind), match.start(kind), match.end(kind))


def bad_token(text: Text, position: int) -> ParseError:
    body = text.source.text
    blank = BLANK.match(body, position)
    place = blank.end() if blank else position
    if body.startswith("/*", place):
        return ParseError("comment without an end", text.span(place, place + 2))
    if body.startswith('"', place):
        return ParseError("string without an end", text.span(place))
    shown = body[place : place + 1]
    return ParseError(f"no PTX token starts with {shown!r}", text.span(place))


def number(text: str) -> Immediate | None:
    """An immediate from its spelling, without a sign; None if it is none."""
    if len(text) > LONGEST_NUMBER:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = text[2:]
    match match.lastgroup:
        case "single":
            return Immediate(text, int(digits, 16), Spelling.SINGLE)
        case "double":
            return Immediate(text, int(digits, 16), Spelling.DOUBLE)
        case "hex":
            return _whole(text, int(match.group("hex"), 16))
        case "bin":
            return _whole(text, int(match.group("bin"), 2))
        case "dec":
            return _decimal_integer(text, match.group("dec"))
        case _:
            bits = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
            return Immediate(text, bits, Spelling.DECIMAL)


def _decimal_integer(text: str, digits: str) -> Immediate | None:
    if len(digits) > 1 and digits[0] == "0":
        if not set(digits) <= set("01234567"):
            return None
        return _whole(text, int(digits, 8))
    return _whole(text, int(digits))


def _whole(text: str, value: int) -> Immediate | None:
    """None where it does not fit 64 bits."""
    return None if value >> 64 else Immediate(text, value, Spelling.INTEGER)


def negate(value: Immediate) -> Immediate:
    """The immediate with a minus sign in front."""
    text = "-" + value.text
    match value.spelling:
        case Spelling.INTEGER:
            return Immediate(text, -value.value, value.spelling)
        case Spelling.SINGLE:
            return Immediate(text, value.value ^ 1 << 31, value.spelling)
        case Spelling.DOUBLE | Spelling.DECIMAL:
            return Immediate(text, value.value ^ 1 << 63, value.spelling)
