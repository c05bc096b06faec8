"""Are two functions of the inputs the same, over the reals?

Each draw has primes and inputs of its own. What differs in a draw is different; what is alike in it
is equal but for an error that is bounded, and draws go on until their errors together are below
2^-40. Rounding and overflow are ignored, and so are inputs for which a denominator vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from random import Random
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.ptx.field.digits import Digits
from warploom.ptx.field.elements import BOUNDS, Elements, NonLinear, NotKnown
from warploom.ptx.field.floats import Field

Array = npt.NDArray[Any]
ENOUGH = -40.0  # log2 of the error that is left
MOST_DRAWS = 20
MOST_DEGREE = 2.0**20  # of what is no exponential: beyond, xᵖ may be x
# A number of b bits is 0 modulo at most b / 60 of the primes that may be drawn: p from 2^60 to 2^61
# with 2p + 1 or 4p + 1 prime, too, of which there are about 2^50.6.
PRIMES = 2.0**56
NEVER = -1000.0  # log2 of what does not happen
FEW = 1 << 19  # values of an input that is drawn from few


@dataclass(frozen=True, slots=True)
class Compared:
    """One draw: where two results differ, and log2 of how likely they are alike by chance."""

    apart: Array
    error: float


def compared(e: Elements, x: Array, y: Array, narrow: int = 0) -> Compared:
    """Two results as elements, of one draw; `narrow`: of how many values some inputs were drawn."""
    exponential = e["exponential"][x] | e["exponential"][y]
    apart = (e["b"][x] != e["b"][y]) | (~exponential & (e["a"][x] != e["a"][y]))
    u, v = e["constant"][x], e["constant"][y]
    apart |= (np.isinf(u) | np.isinf(v)) & (u != v)
    return Compared(apart, _error(e, x, y, bool(exponential.any()), narrow))


def _error(e: Elements, x: Array, y: Array, exponential: bool, narrow: int) -> float:
    """log2 of how likely results that differ are alike in this draw."""
    n, d, s, t, few, u, v, w, b, factor = (
        [e[name][each] for each in (x, y)] for name in (*BOUNDS, "factor")
    )
    _, here, there = e.factors.common(*factor)
    degree = float(np.maximum(n[0] + d[1], n[1] + d[0]).max(initial=0))
    if not exponential and degree >= MOST_DEGREE:
        raise NotKnown(f"polynomials of degree {degree:.0f}")
    bits = np.maximum(s[0] + t[1] + here, s[1] + t[0] + there).max(initial=0) + 1
    terms = np.logaddexp2(u[0] + v[1], u[1] + v[0]).max(initial=0)
    weight = np.maximum(w[0] + b[1], w[1] + b[0]).max(initial=0)
    one = _Chance(
        e, degree, float(weight), float(bits), float(terms),
        float((few[0] + few[1]).max(initial=0)),
    )  # fmt: skip
    error = one.alike(narrow) + _of_functions(e, narrow)
    return log2(error) if error else NEVER


@dataclass(frozen=True, slots=True)
class _Chance:
    """How likely two different fractions of polynomials and exponentials are alike in a draw: by
    the degree and the coefficients of their difference, its exponents and how many they are, and
    its degree in what was drawn from few values."""

    elements: Elements
    degree: float
    weight: float
    bits: float
    terms: float
    narrow: float

    def alike(self, few: int) -> float:
        e = self.elements
        if self.terms > 900:
            return 1.0
        found = (self.degree + self.weight / e.unit) / float(e.pair.p.p)
        if self.degree or self.weight or self.bits > 1 or self.narrow:
            found += (self.bits + e.factors.most_bits) / PRIMES
        return float(found + (2.0**self.terms * self.narrow / few if few else 0.0))


def _of_functions(e: Elements, few: int) -> float:
    """How likely a function is given the same of arguments that differ."""
    if not e.functions:
        return 0.0
    most = e.argument
    unit = e.factors.of_all(e.arguments)
    above = e.factors.above(np.array(sorted(e.arguments)), unit).max(initial=0)
    one = _Chance(
        e, most["degree"] + most["degree_below"], most["weight"] + most["weight_below"],
        most["size"] + most["size_below"] + float(above) + 1,
        most["terms"] + most["terms_below"] + 1, 2 * most["narrow"],
    )  # fmt: skip
    keys = (1.0 + (e.count if e.by_key else 0)) / float(e.pair.p.p)
    return float(e.functions) ** 2 * (one.alike(few) + keys)


@dataclass(frozen=True, slots=True)
class Answer:
    """`error`: log2 of how likely what is called equal is not. `apart`: by result, where the first
    draw that told them apart differs."""

    verdict: Literal["equal", "different", "unknown"]
    why: str = ""
    error: float = 0.0
    draws: int = 0
    apart: tuple[Array, ...] = ()
    narrow: int | None = None  # the input that was drawn from few values
    span: Span | None = None  # of what is not known


Once = Callable[[Field, Random, int | None], list[tuple[Array, Array]]]


def decided(once: Once, inputs: int, seed: int) -> Answer:
    """`once` computes pairs of results in a field that was drawn; it is told which of so many
    inputs is to be drawn from few values, if any.

    Exponentials of what is not linear are functions of which nothing is known, first; then an input
    is drawn from few values.
    """
    ways: list[tuple[int | None, bool]] = [(None, False), (None, True)]
    ways += [(each, False) for each in range(inputs)]
    why: NotKnown | None = None
    found = Answer("unknown")
    for narrow, free in ways:
        try:
            answer = _drawn(once, narrow, Random(seed), by_key=False, free=free)
            if answer.verdict == "different":  # perhaps by extrema of the same
                answer = _drawn(once, narrow, Random(seed), by_key=True, free=free)
        except NonLinear as error:
            why = why or error
            continue
        except NotKnown as error:
            return _unknown(error)
        if answer.verdict == "equal" or (not free and answer.verdict == "different"):
            return answer
        if found.verdict == "unknown":
            found = answer
        if narrow is None and not free:  # all exponentials are linear
            break
    return found if found.verdict == "different" or found.why or why is None else _unknown(why)


def _unknown(error: NotKnown) -> Answer:
    return Answer("unknown", str(error), span=error.span)


def _drawn(once: Once, narrow: int | None, r: Random, *, by_key: bool, free: bool) -> Answer:
    left = 0.0
    for draw in range(1, MOST_DRAWS + 1):
        field = Field(Elements.drawn(r), Digits.drawn(r))
        field.elements.by_key, field.elements.free_exponentials = by_key, free
        pairs = once(field, r, narrow)
        found = [compared(field.elements, x, y, FEW if narrow is not None else 0) for x, y in pairs]
        apart = tuple(each.apart for each in found)
        if any(each.any() for each in apart):
            return Answer("different", draws=draw, apart=apart, narrow=narrow)
        left += min(0.0, max((each.error for each in found), default=NEVER))
        if left <= ENOUGH:
            return Answer("equal", error=left, draws=draw, narrow=narrow)
        if left / draw * MOST_DRAWS > ENOUGH:
            break
    return Answer("unknown", f"a draw may err by 2^{left / draw:.0f}", left, draw)
