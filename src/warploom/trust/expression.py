"""Texts of index expressions, evaluated for all cells at once: the checkers' own reading of them.

It shares nothing with `index/`, which wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import Work, require

Numbers = npt.NDArray[np.int64]

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|<<|>>|<=|>=|==|!=|[-+*%&|^<>()]))", re.ASCII)
_BINARY: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (  # the weakest first
    {"or": lambda a, b: ((a != 0) | (b != 0)).astype(np.int64)},
    {"and": lambda a, b: ((a != 0) & (b != 0)).astype(np.int64)},
    {
        "<": lambda a, b: (a < b).astype(np.int64), "<=": lambda a, b: (a <= b).astype(np.int64),
        ">": lambda a, b: (a > b).astype(np.int64), ">=": lambda a, b: (a >= b).astype(np.int64),
        "==": lambda a, b: (a == b).astype(np.int64), "!=": lambda a, b: (a != b).astype(np.int64),
    },
    {"|": np.bitwise_or}, {"^": np.bitwise_xor}, {"&": np.bitwise_and},
    {"<<": np.left_shift, ">>": np.right_shift},
    {"+": np.add, "-": np.subtract},
    {"*": np.multiply, "//": np.floor_divide, "%": np.remainder},
)  # fmt: skip
_READ = 1024  # reading a word takes as long as computing so many numbers
_NOT = 2  # binds between `and` and comparisons
_GROWING: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "<<": lambda a, b: a * 2.0**b,
}  # fmt: skip


class Expression:
    """A text of the index language, evaluated for so many cells at once, by descent."""

    def __init__(self, text: str, known: dict[str, Numbers], cells: int, work: Work) -> None:
        require(len(text) <= 1 << 16, "an index expression is too long")
        self._tokens, self._known, self._at = [*_tokens(text), ""], known, 0
        work.take(len(self._tokens) * (cells + _READ))
        self.value: Numbers = self._selection()
        require(self._tokens[self._at] == "", f"an index expression has no end: {text:.60}")

    def _took(self, *words: str) -> str:
        found = self._tokens[self._at]
        if found not in words:
            return ""
        self._at += 1
        return found

    def _selection(self) -> Numbers:
        """`a if c else b`"""
        value = self._level(0)
        if not self._took("if"):
            return value
        condition = self._level(0)
        require(bool(self._took("else")), "an index expression has an if without else")
        return np.where(condition != 0, value, self._selection())

    def _level(self, level: int) -> Numbers:
        if level == len(_BINARY):
            return self._atom()
        if level == _NOT and self._took("not"):
            return np.where(self._level(level) == 0, 1, 0)
        value = self._level(level + 1)
        while word := self._took(*_BINARY[level]):
            other = self._level(level + 1)
            if word in ("//", "%"):
                require(bool((other != 0).all()), "an index expression divides by zero")
            if word in ("<<", ">>"):
                good = bool(((other >= 0) & (other < 63)).all())
                require(good, "an index expression shifts too far")
            if word in _GROWING:  # a number of 64 bits that is too large is another one
                size = np.abs(_GROWING[word](np.float64(value), np.float64(other)))
                # Half of what there is: these sizes are rounded.
                require(bool((size < 2.0**62).all()), "an index expression is too large")
            value = _BINARY[level][word](value, other)
        return value

    def _atom(self) -> Numbers:
        if self._took("-"):
            return np.negative(self._atom())
        token = self._tokens[self._at]
        self._at += 1
        if token == "(":
            value = self._selection()
            require(bool(self._took(")")), "an index expression lacks a parenthesis")
            return value
        if token.isdecimal():
            require(len(token) <= 12, "an index expression has a number too large")
            return np.int64(token)  # type: ignore[return-value]
        require(token in self._known, f"an index expression reads '{token:.20}'")
        return self._known[token]


def _tokens(text: str) -> Iterator[str]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        require(match is not None, f"no index expression: {text:.60}")
        assert match is not None
        yield match[match.lastindex or 0]
        at = match.end()
