"""Checks a certificate about a filled sketch by itself: nothing of the search is used, nor of the
languages of sketches and of index expressions.

What is checked: every gather reads what its index expressions say, or its table; every cell of the
last step then holds the term that the goal has there, up to the laws that are named; operators are
those that are named; and no zero has to be two numbers. Terms are equal if they are the same
symbols, folded alike, in any order: each operator commutes and associates.

A symbol is written as its number, zero as null, what is undefined as "?", a number as {"number":
2.5}, and a fold as a list: its operator, then its items.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.trust.checked import Checked, digest, require, whole_numbers

Numbers = npt.NDArray[np.int64]

_KEYS = {
    "kind", "version", "name", "size", "steps", "words", "goal", "laws", "operators", "verdict",
    "made", "digest",
}  # fmt: skip
_INPUT = {"name", "shape", "values"}
_APPLY = {"name", "shape", "cells", "args", "reads", "fold", "operator", "written", "fill"}
_GOAL = {"text", "shape", "values"}
_FILL = {"family", "parameters", "text"}
_MADE = {"date", "host", "version"}
UNSIGNED = ("made", "digest")  # who wrote it, and when, is not part of what is proved

# What a zero is to each operator that consumes it. To a function, and as a result, it is 0.
_NEUTRAL = {"+": 0, "*": 1, "min": math.inf, "max": -math.inf, "&": -1, "|": 0, "^": 0}
_ANY = "fold"  # an operator of which nothing is known
_ZERO, _UNDEFINED = -1, -2  # in tables, and the terms themselves
_MOST_CELLS = 1 << 22


def check_fill(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    try:
        return _check(record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise CheckError(f"the certificate is not of this form: {error!r:.80}") from None
    except (RecursionError, MemoryError):
        raise CheckError("the certificate is too large") from None


def _check(record: dict[str, Any]) -> Checked:
    whole = set(record) == _KEYS and set(record["made"]) == _MADE
    require(whole and record["kind"] == "fill", "it has other parts than it should")
    require(digest(record, UNSIGNED) == record["digest"], "it was changed after it was written")
    _check_labels(record)
    require(record["verdict"] == "proved", f"it claims {record['verdict']!r:.40}, not a proof")
    laws, goal = record["laws"], record["goal"]
    require(laws in ([], ["flatten"]), f"it uses laws that are none: {laws!r:.40}")
    require(set(goal) == _GOAL, "its goal has other parts than it should")
    terms = _Terms(bool(laws), record["words"])
    held = _run(terms, record["steps"])
    shape, last = goal["shape"], record["steps"][-1]
    require(shape == last["shape"], "its goal and its last step differ in shape")
    wanted = [terms.read(value) for value in goal["values"]]
    require(len(wanted) == len(held) == _size(shape), "cells of its goal are missing")
    for cell, (found, asked) in enumerate(zip(held.tolist(), wanted, strict=True)):
        require(found != _UNDEFINED, f"cell {cell} of '{last['name']}' is undefined")
        require(
            (_ZERO if found < 0 else found) == asked,
            f"cell {cell} of '{last['name']}' does not hold its goal",
        )
    terms.zeros.end(held)
    require(sorted(terms.operators) == record["operators"], "it uses other operators than it says")
    operators = ", ".join(record["operators"]) or "none"
    return Checked((
        f"each of the {len(wanted)} cells of '{last['name']}' holds its goal, called "
        f"{goal['text']!r:.80}",
        f"operators: {operators}; laws: {', '.join(laws) or 'the order of items'}",
    ))  # fmt: skip


def _check_labels(record: dict[str, Any]) -> None:
    """What is there for the reader is a text, whatever it says: it is not part of the proof."""
    words, steps, made = record["words"], record["steps"], record["made"]
    texts = [record["name"], record["goal"]["text"], *words, *made.values()]
    for step in steps:
        fill = step.get("fill")
        require(fill is None or set(fill) == _FILL, "a fill has other parts than it should")
        texts += [step["name"], step.get("operator", ""), step.get("written", "")]
        texts += [] if fill is None else [fill["family"], fill["text"]]
    require(all(isinstance(text, str) for text in texts), "what should be a text is none")
    lists = isinstance(words, list) and isinstance(steps, list)
    require(lists and isinstance(record["size"], dict), "it has other parts than it should")
    require(repr(record["version"]) == "1", "it is of another version")


def _size(shape: list[int]) -> int:
    require(all(type(n) is int and n > 0 for n in shape), "a shape has an axis that is none")
    size = math.prod(shape)
    require(size <= _MOST_CELLS, f"an array has more than {_MOST_CELLS} cells")
    return size


# -- steps -----------------------------------------------------------------------------------------


def _run(terms: _Terms, steps: list[dict[str, Any]]) -> Numbers:
    """The terms that the last step holds."""
    arrays: list[Numbers] = []
    for step in steps:
        size = _size(step["shape"])
        if set(step) == _INPUT:
            held = np.array([terms.read(value) for value in step["values"]], np.int64)
            require(len(held) == size, f"'{step['name']}' lacks values")
            arrays.append(terms.zeros.made(held))
            continue
        require(set(step) == _APPLY, f"'{step['name']}' has other parts than it should")
        args = [arrays[arg] for arg in step["args"] if type(arg) is int and arg >= 0]
        require(len(args) == len(step["args"]) > 0, f"'{step['name']}' reads what is not there")
        arrays.append(_applied(terms, step, args, size))
    return arrays[-1]


def _applied(terms: _Terms, step: dict[str, Any], args: list[Numbers], size: int) -> Numbers:
    table = _table(step, [len(each) for each in args])
    fresh = terms.zeros.made(np.where(table == _ZERO, _ZERO, _UNDEFINED))
    joined = np.concatenate([*args, [_UNDEFINED]])
    cells = np.where(table == _ZERO, fresh, joined[np.where(table < 0, len(joined) - 1, table)])
    length = step["fold"]
    if length is None:
        require(len(cells) == size, f"'{step['name']}' lacks cells")
        return cells
    require(type(length) is int and length > 0, f"'{step['name']}' folds runs of no length")
    require(len(cells) == size * length, f"'{step['name']}' lacks cells")
    rows = cells.reshape(-1, length).tolist()
    made = [terms.fold(step["operator"], row, step["written"] != _ANY) for row in rows]
    return np.array(made, np.int64)


def _table(step: dict[str, Any], lengths: list[int]) -> Numbers:
    """What each cell reads: an offset through all arguments laid end to end, or what is none."""
    cells, reads = step["cells"], step["reads"]
    size = _size(cells)
    if set(reads) == {"table"}:
        table = whole_numbers(reads["table"])
        require(len(table) == size, f"the table of '{step['name']}' lacks cells")
        require(int(table.min()) >= _UNDEFINED, f"the table of '{step['name']}' reads nothing")
        return np.where(table < sum(lengths), table, _UNDEFINED)
    require(set(reads) == {"argument", "offset"}, f"'{step['name']}' says not what it reads")
    places = [axis.reshape(-1) for axis in np.indices(cells)]
    known = {f"x{axis}": place for axis, place in enumerate(places)}
    which, offset = (
        np.broadcast_to(_Expression(reads[part], known).value, (size,)) for part in
        ("argument", "offset")
    )  # fmt: skip
    require(bool(((which >= 0) & (which <= len(lengths))).all()), "an argument is none")
    starts = np.cumsum([0, *lengths])
    length = np.array([*lengths, 1])[which]
    inside = (offset >= 0) & (offset < length)
    table = np.where(inside, starts[which] + offset, _UNDEFINED)
    return np.where(which == len(lengths), _ZERO, table)


# -- terms -----------------------------------------------------------------------------------------


class _Terms:
    """Gives equal terms equal numbers; zeros and undefined terms are below zero."""

    def __init__(self, flatten: bool, words: list[str]) -> None:
        self._flatten, self._words = flatten, words
        self._numbers: dict[Any, int] = {}
        self._items: list[tuple[str, tuple[int, ...]] | None] = []
        self._depths: list[int] = []
        self.operators: set[str] = set()
        self.zeros = _Zeros()

    def _number(self, key: Any, fold: tuple[str, tuple[int, ...]] | None, depth: int) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._items)
            self._items.append(fold)
            self._depths.append(depth)
        return self._numbers[key]

    def read(self, value: Any) -> int:
        match value:
            case None:
                return _ZERO
            case "?":
                return _UNDEFINED
            case bool():
                raise ValueError("neither true nor false is a term")
            case int():
                return self._number(("symbol", value), None, 0)
            case {"number": int() | float() as number, **rest} if not rest:
                return self._number(("number", number), None, 0)  # whole ones are exact
            case [str() as operator, *items] if items:
                return self.fold(operator, [self.read(item) for item in items], consumes=False)
        raise ValueError(f"no term: {value!r:.40}")

    def fold(self, operator: str, items: list[int], consumes: bool) -> int:
        """A fold of items; `consumes`: it says what the zeros among them are."""
        function = operator.endswith("()")
        require(function or operator == _ANY or operator in _NEUTRAL, f"no operator: {operator}")
        require(not function or len(items) == 1, f"{operator} has more than one item")
        if _UNDEFINED in items:
            return _UNDEFINED
        if consumes:
            for item in items:
                self.zeros.consumed(item, 0 if function else _NEUTRAL.get(operator))
        kept = [_ZERO if item < 0 else item for item in items if function or item >= 0]
        if not kept:
            return self.zeros.folded(_NEUTRAL.get(operator) if consumes else None)
        depth = 1 + max(self._depths[item] if item >= 0 else 0 for item in kept)
        if operator == _ANY and depth < len(self._words):
            operator = self._words[depth]
        if self._flatten and operator in _NEUTRAL:
            kept = [part for item in kept for part in self._parts(operator, item)]
            if len(kept) == 1:
                return kept[0]
            depth = 1 + max(self._depths[item] for item in kept)
        self.operators.add(operator)
        fold = operator, tuple(sorted(kept))
        return self._number(fold, fold, depth)

    def _parts(self, operator: str, item: int) -> tuple[int, ...]:
        fold = self._items[item]
        return fold[1] if fold is not None and fold[0] == operator else (item,)


class _Zeros:
    """A zero is the neutral element of what consumes it: one that is copied must be one number.

    Each zero that a step makes has a number of its own, below that of an undefined term, by which
    it is followed; `_ZERO` itself is one of the goal, or within a term.
    """

    def __init__(self) -> None:
        self._taken: list[float | None] = []  # what each is taken for

    def _new(self, value: float | None) -> int:
        self._taken.append(value)
        return _UNDEFINED - len(self._taken)

    def made(self, held: Numbers) -> Numbers:
        """Gives each zero among some cells its own number."""
        for cell in np.flatnonzero(held == _ZERO):
            held[cell] = self._new(None)
        return held

    def folded(self, value: float | None) -> int:
        """A fold of nothing but zeros is the neutral element of its operator."""
        return self._new(value)

    def consumed(self, item: int, value: float | None) -> None:
        if item >= _UNDEFINED or value is None:
            return
        known = self._taken[_UNDEFINED - 1 - item]
        require(known in (None, value), f"a zero would have to be {known} and {value}")
        self._taken[_UNDEFINED - 1 - item] = value

    def end(self, held: Numbers) -> None:
        """The zeros of the result are the number 0."""
        for item in held.tolist():
            self.consumed(item, 0)


# -- index expressions -----------------------------------------------------------------------------

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
_NOT = 2  # binds between `and` and comparisons
_GROWING: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "<<": lambda a, b: a * 2.0**b,
}  # fmt: skip


class _Expression:
    """A text of the index language, evaluated for all cells at once, by descent."""

    def __init__(self, text: str, known: dict[str, Numbers]) -> None:
        require(len(text) <= 1 << 16, "an index expression is too long")
        self._tokens, self._known, self._at = [*_tokens(text), ""], known, 0
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
                require(bool((size < 2.0**63).all()), "an index expression is too large")
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
