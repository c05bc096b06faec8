"""Quotients and remainders of indices, where loop counters lie below sizes that may be symbolic.

    >>> from warploom.index.show import show
    >>> i, j, n, c = Var("i"), Var("j"), Var("n"), Var("c")
    >>> known = Known({"i": n, "j": c})
    >>> [show(each) for each in known.divided(i * c + j, c)]
    ['i', 'j']

What is not shown to lie in range is left as `//` and `%`, which round down: negative indices, as
padding makes them, are right too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from warploom.array.language.size import MOST
from warploom.index.facts import Facts
from warploom.index.ir import Binary, Const, Expr, Unary, Var, variables
from warploom.index.laws import simplify
from warploom.index.prove import follows

EFFORT = 500  # of one proof; what is not shown in so much is seldom true


class Known:
    """Counters and what they lie below; every other variable is a size, of at least 1.

    `divisions` are pairs of which the second divides the first exactly. Without `effort` nothing is
    proved of symbolic sizes; what numbers say is always known.
    """

    def __init__(
        self,
        counters: Mapping[str, Expr],
        divisions: Iterable[tuple[Expr, Expr]] = (),
        effort: int = EFFORT,
    ) -> None:
        self.effort = effort
        self.counters = dict(counters)
        self._divisions = tuple(divisions)
        self._facts: Facts | None = None
        self._names: set[str] = set()
        self._answers: dict[Expr, bool] = {}
        self.ranges = {
            name: (0, size.value - 1)
            for name, size in self.counters.items()
            if isinstance(size, Const)
        }

    def with_counter(self, name: str, size: Expr) -> Known:
        return Known({**self.counters, name: size}, self._divisions, self.effort)

    def shows(self, goal: Expr) -> bool:
        """Whether a condition holds for all values of counters and sizes; False is "not shown"."""
        if goal not in self._answers:
            short = simplify(goal, self.ranges)
            known = isinstance(short, Const)
            self._answers[goal] = short is Const(1) if known else self._proves(short)
        return self._answers[goal]

    def _proves(self, goal: Expr) -> bool:
        return self.effort > 0 and follows(goal, self._known(goal), self.effort)

    def _known(self, goal: Expr) -> Facts:
        names = {name for size in self.counters.values() for name in variables(size)}
        names |= variables(goal)
        if self._facts is None or not names <= self._names:
            exactly = {n for pair in self._divisions for each in pair for n in variables(each)}
            self._names = names | exactly
            bounds = {
                name: (0, MOST) if name in self.counters else (1, MOST) for name in self._names
            }
            bounds |= dict.fromkeys(self.counters, (0, MOST))
            exact = [(left % right).eq(0) for left, right in self._divisions]
            below = [Var(name).lt(size) for name, size in self.counters.items()]
            self._facts = Facts.about(bounds).assuming(*exact, *below)
        return self._facts

    def in_range(self, value: Expr, size: Expr) -> bool:
        """0 <= value < size"""
        return self.shows(value.ge(0)) and self.shows(value.lt(size))

    def simple(self, value: Expr) -> Expr:
        return simplify(value, self.ranges)

    def divided(self, value: Expr, by: Expr) -> tuple[Expr, Expr]:
        """value // by and value % by, for a positive divisor."""
        value = self.simple(value)
        if by is Const(1):
            return value, Const(0)
        whole: Expr = Const(0)
        rest: Expr = Const(0)
        for negative, term in terms(value):
            times = multiple(term, by)
            if times is None:
                rest = rest - term if negative else rest + term
            else:
                whole = whole - times if negative else whole + times
        rest = self.simple(rest)
        if self.in_range(rest, by):
            return self.simple(whole), rest
        return self.simple(whole + rest // by), self.simple(rest % by)


def terms(value: Expr) -> list[tuple[bool, Expr]]:
    """The terms of a sum, and whether they are taken away; products of sums are multiplied out."""
    match value:
        case Binary("+", left, right):
            return terms(left) + terms(right)
        case Binary("-", left, right):
            return terms(left) + [(not negative, term) for negative, term in terms(right)]
        case Unary("-", operand):
            return [(not negative, term) for negative, term in terms(operand)]
        case Binary("*", left, right):
            lefts, rights = terms(left), terms(right)
            if len(lefts) == len(rights) == 1:
                return [(lefts[0][0] != rights[0][0], lefts[0][1] * rights[0][1])]
            return [(a != b, x * y) for a, x in lefts for b, y in rights]
        case _:
            return [(False, value)]


def multiple(term: Expr, by: Expr) -> Expr | None:
    """The x of which a product is x·by, if it has the factors for it."""
    have, number = _factors(term)
    want, divisor = _factors(by)
    if divisor == 0 or number % divisor or want - have:
        return None
    result: Expr = Const(number // divisor)
    for factor in (have - want).elements():
        result = factor if result is Const(1) else result * factor
    return result


def _factors(term: Expr) -> tuple[Counter[Expr], int]:
    """What a product is made of, and its constant."""
    match term:
        case Const(value):
            return Counter(), value
        case Binary("*", left, right):
            (one, a), (other, b) = _factors(left), _factors(right)
            return one + other, a * b
        case _:
            return Counter([term]), 1
