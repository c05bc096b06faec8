"""Terms of a certificate, with numbers for equal ones, and what each zero among them has to be.

A symbol is written as its number, zero as null, what is undefined as "?", a number as {"number":
2.5}, and a fold as a list: its operator, then its items. Terms are equal if they are the same
symbols, folded alike, in any order: each operator commutes and associates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import TooMuchError, Work, require

Numbers = npt.NDArray[np.int64]

# What a zero is to each operator that consumes it. To a function, and as a result, it is 0.
NEUTRAL = {"+": 0, "*": 1, "min": math.inf, "max": -math.inf, "&": -1, "|": 0, "^": 0}
ANY = "fold"  # an operator of which nothing is known, to which a zero is nothing
ZERO, UNDEFINED = -1, -2  # in tables, and the terms themselves
_EVERY_TYPE_HOLDS = 127  # the integers up to here
_ROUNDED = {"+", "*", ANY}
_MOST_PARTS = 1 << 21  # items of all folds together, and of steps: some seconds
_MOST_WORK = 1 << 30  # numbers that index expressions compute: some seconds


def is_function(operator: str) -> bool:
    """Whether an operator is a function of one item, known by its name alone."""
    return operator.endswith("()") and operator != "()"


class Terms:
    """Gives equal terms equal numbers; zeros and undefined terms are below zero.

    `operators` are those of the terms, `applied` those of steps, whatever became of them; `used` is
    what the laws did. `words[d]` is what a step written `fold` stands for at depth d; `asked` are
    the depths at which one was.
    """

    def __init__(self, flatten: bool, words: list[str]) -> None:
        for word in words:
            require(word == ANY or word in NEUTRAL, f"'fold' stands for {word!r:.40}, no operator")
        # Under laws depths are not what they were: there a step written `fold` is of its own kind.
        self._flatten, self._words = flatten, [] if flatten else words
        self._numbers: dict[Any, int] = {}
        self._items: list[tuple[str, tuple[int, ...]] | None] = []
        self._depths: list[int] = []
        self._parts_left = _MOST_PARTS
        self.operators: set[str] = set()
        self.applied: set[str] = set()
        self.asked: set[int] = set()
        self.constants: set[int | float] = set()
        self.used: set[tuple[str, str]] = set()
        self.zeros = Zeros()
        self.work = Work(_MOST_WORK)

    def _number(self, key: Any, fold: tuple[str, tuple[int, ...]] | None, depth: int) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._items)
            self._items.append(fold)
            self._depths.append(depth)
        return self._numbers[key]

    def read(self, value: Any) -> int:
        """A term of an input or of the goal. In a fold nothing is zero: what would it be?"""
        match value:
            case None:
                return ZERO
            case "?":
                return UNDEFINED
            case bool() | {"number": bool()}:
                raise ValueError("neither true nor false is a term")
            case int():
                return self._number(("symbol", value), None, 0)
            case {"number": int() | float() as number, **rest} if not rest:
                require(math.isfinite(number), f"{number} is no number")
                self.constants.add(number)
                return self._number(("number", number), None, 0)  # whole ones are exact
            case [str() as operator, *items] if items:
                self._check_operator(operator, len(items))
                inner = [self.read(item) for item in items]
                zero = ZERO in inner and not is_function(operator)
                require(not zero, f"a term has a zero inside of {operator!r:.40}")
                return UNDEFINED if UNDEFINED in inner else self._packed(operator, inner)
        raise ValueError(f"no term: {value!r:.40}")

    def fold(self, operator: str, items: list[int]) -> int:
        """A step's fold, which says of the zeros among its items what they are."""
        self._check_operator(operator, len(items))
        self._count(len(items))
        if UNDEFINED in items:
            return UNDEFINED
        whole = is_function(operator)
        kept = [ZERO if item < 0 else item for item in items if whole or item >= 0]
        operator = self._meant(operator, kept)
        self.applied.add(operator)
        for item in items:
            self.zeros.consumed(item, zero_of(operator))
        return self._packed(operator, kept) if kept else self.zeros.new(zero_of(operator))

    def bare(self, operator: str, items: list[int]) -> int:
        """A step's fold to which every zero is nothing, whatever number it would have to be."""
        self._check_operator(operator, len(items))
        if UNDEFINED in items:
            return UNDEFINED
        kept = [item for item in items if is_function(operator) or item != ZERO]
        if not kept:
            return ZERO
        operator = self._meant(operator, kept)
        self.applied.add(operator)
        return self._packed(operator, kept)

    def fold_of(self, term: int) -> tuple[str, tuple[int, ...]] | None:
        """Operator and items of a term; None: it is no fold."""
        return self._items[term] if term >= 0 else None

    def flattens(self, operator: str) -> bool:
        """Whether the laws take folds of this operator apart."""
        return self._flatten and operator in NEUTRAL

    def _check_operator(self, operator: str, items: int) -> None:
        function = is_function(operator)
        known = function or operator == ANY or operator in NEUTRAL
        require(known, f"no operator: {operator!r:.40}")
        require(not function or items == 1, f"{operator!r:.40} has more than one item")

    def _depth(self, items: list[int]) -> int:
        return 1 + max(self._depths[item] if item >= 0 else 0 for item in items)

    def _meant(self, operator: str, kept: list[int]) -> str:
        """What a step's operator is: `fold` is known by the depth of what it makes."""
        if operator != ANY:
            return operator
        if kept:
            depth = self._depth(kept)
            self.asked.add(depth)
            return self.word(depth)
        meant = set(self._words[1:]) if self._words else {ANY}
        require(len(meant) == 1, "a fold of zeros alone is written 'fold': nobody says which")
        return meant.pop()

    def word(self, depth: int) -> str:
        """What `fold` stands for at a depth."""
        return self._words[depth] if depth < len(self._words) else ANY

    def at_depths(self, terms: list[int]) -> dict[int, set[str]]:
        """By depth, the operators of these terms and of their parts that `fold` may stand for.

        Under the laws depths are not what they were: there all are said of each.
        """
        found: dict[int, set[str]] = {depth: set() for depth in self.asked}
        left, seen = [*terms], set[int]()
        while left:
            term = left.pop()
            fold = self.fold_of(term)
            if fold is None or term in seen:
                continue
            seen.add(term)
            left += fold[1]
            if not is_function(fold[0]):
                for depth in self.asked if self._flatten else (self._depths[term],):
                    found.setdefault(depth, set()).add(fold[0])
        return found

    def _packed(self, operator: str, items: list[int]) -> int:
        if self._flatten and operator in NEUTRAL:
            length = sum(len(self._parts(operator, item)) for item in items)
            self._count(length)
            if length > len(items):
                self.used.add(("reassociated", operator))
            items = [part for item in items for part in self._parts(operator, item)]
            if len(items) == 1:
                self.used.add(("a fold of one item is the item", operator))
                return items[0]
        self._count(len(items))
        self.operators.add(operator)
        fold = operator, tuple(sorted(items))
        return self._number(fold, fold, self._depth(items))

    def _count(self, parts: int) -> None:
        self._parts_left -= parts
        if self._parts_left < 0:
            raise TooMuchError(f"whether it holds: its folds have more than {_MOST_PARTS} items")

    def _parts(self, operator: str, item: int) -> tuple[int, ...]:
        fold = self._items[item] if item >= 0 else None
        return fold[1] if fold is not None and fold[0] == operator else (item,)

    def caveats(self) -> Iterator[str]:
        """What a proof about exact numbers, by operators that are known by name, leaves out."""
        made = self.operators | self.applied
        if ANY in made:
            yield "what 'fold' computes"
        if self.zeros.nothing:
            yield "zeros in what is written 'fold', which takes them for nothing"
        functions = sorted(filter(is_function, made))
        if made & _ROUNDED or functions:
            yield "rounding and overflow"
        for name in functions:
            yield f"what '{name.removesuffix('()')}' computes"
        if made & {"min", "max"}:
            yield "what is no number (NaN)"
        for number in sorted(self.constants):
            if not isinstance(number, int) or abs(number) > _EVERY_TYPE_HOLDS:
                yield f"how the element type holds {number}"


def zero_of(operator: str) -> float | str:
    """What a zero is to an operator."""
    return operator if operator == ANY else NEUTRAL.get(operator, 0)


class Zeros:
    """A zero is the neutral element of what consumes it: one that is copied must be one number.

    Each zero that a step makes has a number of its own, below that of an undefined term, by which
    it is followed; `ZERO` itself is one of the goal, or within a term. `nothing`: to some fold of
    which nothing is known, a zero is nothing.
    """

    def __init__(self) -> None:
        self._taken: list[float | str | None] = []  # what each is taken for
        self.nothing = False

    def new(self, value: float | str | None) -> int:
        self.nothing |= value == ANY
        self._taken.append(value)
        return UNDEFINED - len(self._taken)

    def made(self, held: Numbers) -> Numbers:
        """Gives each zero among some cells its own number."""
        cells = np.flatnonzero(held == ZERO)
        held[cells] = UNDEFINED - 1 - len(self._taken) - np.arange(len(cells))
        self._taken += [None] * len(cells)
        return held

    def consumed(self, item: int, value: float | str) -> None:
        if item >= UNDEFINED:
            return
        self.nothing |= value == ANY
        known = self._taken[UNDEFINED - 1 - item]
        numbers = ANY not in (known, value) and known is not None
        require(not numbers or known == value, f"a zero would have to be {known} and {value}")
        if known in (None, ANY):
            self._taken[UNDEFINED - 1 - item] = value

    def end(self, held: Numbers) -> None:
        """The zeros of the result are the number 0."""
        for item in held.tolist():
            self.consumed(item, 0)
