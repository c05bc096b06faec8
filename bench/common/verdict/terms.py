"""Small computations of 32 threads as terms: drawn, rewritten to what is the same over the reals,
or broken in one place; evaluated in exact rationals, in NumPy, and written as PTX (`terms_ptx.py`).

Input k of thread i is x[k, (i + shift) % 32]. Exponents are whole combinations of inputs, which are
drawn as whole numbers, so that all values are rational. A root is taken to 40 places by whole
numbers: alike for what is alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from random import Random
from typing import Any

import numpy as np

LANES, INPUTS = 32, 3
PLACES = 10**40
CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.25, 0.1, 1e-5, 0.7, 1.4426950408889634)
CANCELLED = (16777216.0, 1e30)


@dataclass(frozen=True)
class Term:
    """`op` of `of`; an input has its number and shift in `at`, a constant its `value`."""

    op: str
    of: tuple[Term, ...] = ()
    at: tuple[int, int] = (0, 0)
    value: float = 0.0

    def parts(self) -> list[Term]:
        return [self, *(each for one in self.of for each in one.parts())]


def x(number: int, shift: int = 0) -> Term:
    return Term("x", at=(number, shift % LANES))


def constant(value: float) -> Term:
    return Term("c", value=value)


def made(op: str, *of: Term) -> Term:
    return Term(op, of)


class UndefinedError(Exception):
    """A value is no number: a denominator vanishes, or a root is of what is below 0."""


Rows = list[list[Fraction]]
Values = list[Fraction]


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise UndefinedError
    return Fraction(isqrt(value.numerator * PLACES**2 // value.denominator), PLACES)


def _power_of_two(value: Fraction) -> Fraction:
    if value.denominator != 1 or abs(value) > 4000:
        raise UndefinedError
    return Fraction(2) ** int(value)


def _quotient(a: Fraction, b: Fraction) -> Fraction:
    if not b:
        raise UndefinedError
    return a / b


EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": _quotient, "fma": lambda a, b, c: a * b + c, "neg": lambda a: -a, "max": max,
    "min": min, "exp2": _power_of_two, "sqrt": _root,
}  # fmt: skip


def exactly(term: Term, rows: Rows, kind: str, lost: int | None = None) -> Values:
    """The value of each thread; constants are floats of a type. `lost`: of sums of all threads by
    halves of 16, 8, 4, 2 and 1, one that is left out."""
    apart = 0 if lost is None else LANES >> lost + 1
    known: dict[int, Values] = {}  # by object: powers share their parts

    def of(t: Term) -> Values:
        if id(t) not in known:
            known[id(t)] = values(t)
        return known[id(t)]

    def values(t: Term) -> Values:
        match t.op:
            case "x":
                row = rows[t.at[0]]
                return [row[(i + t.at[1]) % LANES] for i in range(LANES)]
            case "c":
                return [Fraction(rounded(t.value, kind))] * LANES
            case "total":
                one = of(t.of[0])
                return [
                    sum((v for j, v in enumerate(one) if not (i ^ j) & apart), Fraction(0))
                    for i in range(LANES)
                ]
            case "first":  # of the threads below the middle one thing, else another
                a, b = (of(each) for each in t.of)
                return [*a[:16], *b[16:]]
        return [EXACT[t.op](*given) for given in zip(*(of(p) for p in t.of), strict=True)]

    return of(term)


def rounded(value: float, kind: str) -> float:
    return float(np.float32(value)) if kind == "f32" else value


def by_numpy(term: Term, inputs: Any) -> Any:
    """With the operators of NumPy, on what a reference is given."""
    known: dict[int, Any] = {}  # by object: powers share their parts

    def of(t: Term) -> Any:
        if id(t) not in known:
            known[id(t)] = one(t)
        return known[id(t)]

    def one(t: Term) -> Any:
        match t.op:
            case "x":
                return np.roll(inputs[t.at[0]], -t.at[1])
            case "c":
                return np.full(LANES, t.value)
            case "total":
                return np.broadcast_to(np.sum(of(t.of[0])), (LANES,))
            case "first":
                a, b = (of(each) for each in t.of)
                if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
                    return np.where(np.arange(LANES) < 16, a, b)
                return np.concatenate([a[:16], b[16:]])
        return NUMPY[t.op](*(of(p) for p in t.of))

    return of(term)


NUMPY: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "fma": lambda a, b, c: a * b + c, "neg": lambda a: -a,
    "max": np.maximum, "min": np.minimum, "exp2": np.exp2, "sqrt": np.sqrt,
}  # fmt: skip


# -- drawn -----------------------------------------------------------------------------------------


def drawn(r: Random, depth: int) -> Term:
    if depth <= 0 or r.random() < 0.12:
        if r.random() < 0.2:
            return constant(r.choice(CONSTANTS))
        return x(r.randrange(INPUTS), r.choice((0, 0, 0, 1, 5, 16)))
    op = r.choice(("add", "sub", "mul", "mul", "fma", "add", "max", "min", "exp2", "div", "neg",
                   "total", "first", "sqrt"))  # fmt: skip
    match op:
        case "exp2":
            return made("exp2", _linear(r))
        case "sqrt":
            inner = drawn(r, depth - 2)
            return made("sqrt", made("fma", inner, inner, constant(1.0)))
        case "div":
            below = drawn(r, depth - 2)
            return made("div", drawn(r, depth - 1), made("fma", below, below, constant(2.0)))
        case "neg" | "total":
            return made(op, drawn(r, depth - 1))
        case "fma":
            return made(op, *(drawn(r, depth - 1 - n % 2) for n in range(3)))
    return made(op, drawn(r, depth - 1), drawn(r, depth - 1 - r.randrange(2)))


def _linear(r: Random) -> Term:
    found = x(r.randrange(INPUTS), r.choice((0, 1)))
    for _ in range(r.randrange(3)):
        other = x(r.randrange(INPUTS), r.choice((0, 1)))
        if r.random() < 0.3:
            other = made("mul", other, constant(r.choice((2.0, 3.0, -1.0))))
        found = made(r.choice(("add", "sub")), found, other)
    return found


# -- the same over the reals -----------------------------------------------------------------------


def changed(r: Random, t: Term, rate: float = 0.45) -> Term:
    """A term that is the same over the reals, computed in another way."""
    of = tuple(changed(r, each, rate) for each in t.of)
    t = replace(t, of=of)
    if r.random() > rate:
        return t
    return r.choice(SAME)(r, t)


def _commuted(_: Random, t: Term) -> Term:
    return replace(t, of=(t.of[1], t.of[0], *t.of[2:])) if t.op in COMMUTATIVE else t


def _regrouped(_: Random, t: Term) -> Term:
    if t.op in ("add", "mul", "max", "min") and t.of[0].op == t.op:
        (a, b), c = t.of[0].of, t.of[1]
        return made(t.op, a, made(t.op, b, c))
    return t


def _spread(_: Random, t: Term) -> Term:
    if t.op == "mul" and t.of[0].op in ("add", "sub"):
        (a, b), c = t.of[0].of, t.of[1]
        return made(t.of[0].op, made("mul", a, c), made("mul", b, c))
    return t


def _fused(_: Random, t: Term) -> Term:
    if t.op == "fma":
        return made("add", made("mul", *t.of[:2]), t.of[2])
    if t.op == "add" and t.of[0].op == "mul":
        return made("fma", *t.of[0].of, t.of[1])
    if t.op == "sub":
        return made("fma", t.of[1], constant(-1.0), t.of[0])
    return t


def _idle(r: Random, t: Term) -> Term:
    match r.randrange(4):
        case 0:
            return made("mul", made("mul", t, constant(2.0)), constant(0.5))
        case 1:
            other = x(r.randrange(INPUTS))
            return made("sub", made("add", t, other), other)
        case 2:
            return made("neg", made("neg", t))
    return made("add", t, constant(0.0))


def _parted(_: Random, t: Term) -> Term:
    """exp2(a ± b) = exp2(a) · exp2(±b); a sum of sums is that of both; a quotient an inverse."""
    if t.op == "exp2" and t.of[0].op in ("add", "sub"):
        a, b = t.of[0].of
        return made("mul" if t.of[0].op == "add" else "div", made("exp2", a), made("exp2", b))
    if t.op == "total" and t.of[0].op in ("add", "sub"):
        return made(t.of[0].op, *(made("total", each) for each in t.of[0].of))
    if t.op == "div":
        return made("mul", t.of[0], made("div", constant(1.0), t.of[1]))
    return t


COMMUTATIVE = ("add", "mul", "max", "min", "fma")
SAME = (_commuted, _regrouped, _spread, _fused, _idle, _parted)


# -- broken in one place ---------------------------------------------------------------------------


def broken(r: Random, t: Term) -> Term:
    """A term with one change, which may change what it computes."""
    parts = t.parts()
    chosen = parts[r.randrange(len(parts))]
    return _replaced(t, chosen, _broken(r, chosen))


def _replaced(t: Term, old: Term, new: Term) -> Term:
    if t is old:
        return new
    return replace(t, of=tuple(_replaced(each, old, new) for each in t.of))


def _broken(r: Random, t: Term) -> Term:
    match t.op:
        case "x":
            number, shift = t.at
            if r.random() < 0.5:
                return x(number, shift + r.choice((1, 16, 31)))
            return x((number + 1) % INPUTS, shift)
        case "c":
            if r.random() < 0.5:
                return constant(float(np.nextafter(np.float32(t.value), np.float32(np.inf))))
            return constant(t.value + r.choice((1.0, -2.0)))
        case "add" | "sub":
            return made("sub" if t.op == "add" else "add", *t.of)
        case "max" | "min":
            return made("min" if t.op == "max" else "max", *t.of)
        case "mul" | "div":
            return r.choice((t.of[0], made("mul" if t.op == "div" else "add", *t.of)))
        case "fma":
            return made("fma", t.of[0], t.of[2], t.of[1])
        case "exp2":
            return made("exp2", made("add", t.of[0], x(r.randrange(INPUTS))))
        case "first":
            return made("first", t.of[1], t.of[0])
    return t.of[0]
