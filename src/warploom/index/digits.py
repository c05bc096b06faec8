"""Quotients and remainders by constants, with what does not change them left out.

(16·t + 4·q + i) // 64, of t ≥ 0, q < 4, i < 4   →   t // 4
(16·t + 4·q + i) % 64                            →   t % 4·16 + 4·q + i
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from warploom.index.ir import Binary, Const, Expr, fold_up, rebuild
from warploom.index.laws import total
from warploom.index.ranges import range_of

Terms = list[tuple[Expr | None, int]]  # a constant is a factor of nothing


def separated(expr: Expr, bounds: Mapping[str, tuple[int, int]]) -> Expr:
    """An equal expression, given the bounds of its variables."""

    def visit(part: Expr, parts: tuple[Expr, ...]) -> Expr:
        match part:
            case Binary("//" | "%" as op, _, Const(by)) if by > 1:
                return _divided(op, parts[0], by, bounds)
        return rebuild(part, parts)

    return fold_up(expr, visit)


def _divided(op: str, whole: Expr, by: int, bounds: Mapping[str, tuple[int, int]]) -> Expr:
    terms = _terms(whole, 1)
    for step in sorted({gcd(by, *(f for _, f in terms[:n])) for n in range(1, len(terms) + 1)},
                       reverse=True):  # fmt: skip
        rest = _sum([(each, f) for each, f in terms if f % step], 1)
        known = range_of(rest, bounds)
        if step > 1 and known.low >= 0 and known.high < step:
            above, left = _sum([each for each in terms if each[1] % step == 0], step), by // step
            if op == "//":
                return above // left if left > 1 else above
            return above % left * step + rest if left > 1 else rest
    return whole // by if op == "//" else whole % by


def _terms(expr: Expr, factor: int) -> Terms:
    """A sum as what is added up, the largest factors first."""
    found: Terms
    match expr:
        case Const(value):
            found = [(None, value * factor)]
        case Binary("+", left, right):
            found = [*_terms(left, factor), *_terms(right, factor)]
        case Binary("-", left, right):
            found = [*_terms(left, factor), *_terms(right, -factor)]
        case Binary("*", left, Const(by)):
            found = _terms(left, factor * by)
        case _:
            found = [(expr, factor)]
    return sorted(found, key=lambda each: -abs(each[1]))


def _sum(terms: Terms, step: int) -> Expr:
    return total(Const(f // step) if each is None else each * (f // step) for each, f in terms)
