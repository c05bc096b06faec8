"""A call as Python writes it, `name = lang.BlockedLayout([1, 4], order=[1, 0])`: parsed, never run.

Layout objects of Gluon and names of register layouts are such calls. Only numbers, truths, lists
and further calls are taken from one, and what is wrong is shown at its place.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from warploom.errors import ParseError, Source, Span

MOST_TEXT = 20_000
MOST_DEEP = 8
MOST_NUMBER = 1 << 30
_NAMED = re.compile(r"\s*(?:[A-Za-z_]\w*\s*=(?!=)\s*)?((?:[A-Za-z_]\w*\s*\.\s*)*[A-Za-z_]\w*)\s*\(")
_GIVEN_NAME = re.compile(r"\s*[A-Za-z_]\w*\s*=(?!=)")


def called(text: str) -> str:
    """The name of what a text calls, without the modules before it; nothing where it calls nothing.

    >>> called("tile = gl.SwizzledSharedLayout(8, 1, 8)"), called("(8,64):(64,1)")
    ('SwizzledSharedLayout', '')
    """
    found = _NAMED.match(text[:200])
    return "" if found is None else _of_class(found[1].replace(" ", "").split("."))


def _of_class(parts: list[str]) -> str:
    """`PaddedSharedLayout.with_identity_for` keeps its class, `gl.BlockedLayout` loses its
    module."""
    classes = [part for part in parts[-2:-1] if part[:1].isupper()]
    return ".".join([*classes, parts[-1]])


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a text, so that what is wrong with it can be shown there."""

    source: Source
    node: ast.Call

    @property
    def name(self) -> str:
        parts, function = list[str](), self.node.func
        while isinstance(function, ast.Attribute):
            parts.insert(0, function.attr)
            function = function.value
        return _of_class([function.id, *parts]) if isinstance(function, ast.Name) else ""

    @property
    def text(self) -> str:
        return ast.get_source_segment(self.source.text, self.node) or self.source.text

    def inside(self, node: ast.Call) -> Call:
        return Call(self.source, node)

    def arguments(
        self, order: Sequence[str], also: Mapping[str, str] | None = None
    ) -> dict[str, ast.expr]:
        """What is given under each name: by place in this order, or by keyword. `also` has other
        keywords, and the names that they stand for. perPhase is per_phase."""
        if len(self.node.args) > len(order):
            extra = self.node.args[len(order)]
            self.fail(f"{self.name} takes {len(order)} arguments, not {len(self.node.args)}", extra)
        found = dict(zip(order, self.node.args, strict=False))
        known = {_plain_word(each): each for each in order}
        known |= {_plain_word(each): name for each, name in (also or {}).items()}
        for keyword in self.node.keywords:
            name = known.get(_plain_word(str(keyword.arg)))
            if name is None or name in found:
                wrong = "is given twice" if name in found else "is not understood"
                self.fail(
                    f"'{str(keyword.arg)[:40]}' in {self.name} {wrong}",
                    keyword.value if keyword.arg is None else keyword,
                    f"it takes {', '.join(order)}",
                )
            found[name] = keyword.value
        return found

    def value(self, node: ast.expr, what: str) -> object:
        """Numbers, truths, None, and lists of them; tuples are lists."""
        try:
            found = ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
            self.fail(f"{what} of {self.name} is not made of numbers", node, "write it out")
        return self._plain(found, what, node, 0)

    def _plain(self, found: object, what: str, node: ast.expr, depth: int) -> object:
        match found:
            case None:
                return None
            case bool() | int() if abs(found) <= MOST_NUMBER:
                return found
            case list() | tuple() if depth < MOST_DEEP:
                return [self._plain(each, what, node, depth + 1) for each in found]
        said = f"{what} of {self.name} is {str(found)[:40]}"
        raise ParseError(said, self.span(node), "numbers, truths and lists of them")

    def number(self, node: ast.expr, what: str, most: int = MOST_NUMBER) -> int:
        found = self.value(node, what)
        if type(found) is not int or not 0 <= found <= most:
            self.fail(f"{what} of {self.name} is {str(found)[:40]}", node, "it is a whole number")
        return found

    def truth(self, node: ast.expr, what: str) -> bool:
        found = self.value(node, what)
        if type(found) is not bool:
            self.fail(f"{what} of {self.name} is {str(found)[:40]}", node, "it is True or False")
        return found

    def numbers(self, node: ast.expr, what: str) -> list[int]:
        found = self.value(node, what)
        if not isinstance(found, list) or not all(type(each) is int for each in found):
            self.fail(f"{what} of {self.name} is {str(found)[:40]}", node, "a list of numbers")
        return found

    def lists(self, node: ast.expr, what: str) -> list[list[int]]:
        found = self.value(node, what)
        if not isinstance(found, list) or not all(
            isinstance(each, list) and all(type(n) is int for n in each) for each in found
        ):
            advice = "lists of coordinates, [[0, 1], [0, 2]]"
            self.fail(f"{what} of {self.name} is {str(found)[:40]}", node, advice)
        return found

    def fail(
        self, message: str, node: ast.expr | ast.keyword | None = None, advice: str = ""
    ) -> NoReturn:
        raise ParseError(message, self.span(node), advice)

    def span(self, node: ast.expr | ast.keyword | None = None) -> Span:
        """Where a part of the call is; Python counts columns in bytes."""
        node = node or self.node
        before = self.source.line(node.lineno).encode()[: node.col_offset]
        column = len(before.decode(errors="replace"))
        last = node.end_lineno or node.lineno
        end = (node.end_col_offset or 0) if last == node.lineno else node.col_offset + 1
        return Span(self.source, node.lineno, column + 1, max(1, end - node.col_offset))


def _plain_word(word: str) -> str:
    return word.lower().replace("_", "")


def parse_call(text: str, what: str, advice: str) -> Call:
    """The one call of a text, perhaps with a name that it is given there. `what` it should be is
    said where it is none.

    >>> parse_call("mma_a(k=2)", "register layout", "write mma_a(2)").arguments(("k",)).keys()
    dict_keys(['k'])
    """
    source = Source("<layout>", text)
    if len(text) > MOST_TEXT:
        raise ParseError(f"a text of {len(text)} letters is no {what}", Span(source, 1, 1), advice)
    named = _GIVEN_NAME.match(text)
    start = 0 if named is None else named.end()
    start += len(text[start:]) - len(text[start:].lstrip())
    # What stands before is blanked, so that places in the text stay what they are.
    blank = "".join(letter if letter == "\n" else " " for letter in text[:start])
    # An open bracket lets the call begin anywhere.
    whole = "(" + blank[1:] + text[start:] + "\n)" if start else text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python, about numbers that run into words
            found = ast.parse(whole, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"'{text[:60]}' is no {what}", _place_of(error, source), advice) from None
    if not isinstance(found.body, ast.Call):
        raise ParseError(f"'{text[:60]}' is no {what}", Span(source, 1, 1), advice)
    return Call(source, found.body)


def _place_of(error: BaseException, source: Source) -> Span:
    """Where Python could not go on."""
    line = getattr(error, "lineno", None) or 1
    if not source.has_line(line):
        return Span(source, 1, 1)
    column = min(getattr(error, "offset", None) or 1, len(source.line(line)) + 1)
    return Span(source, line, max(1, column))
