"""Numbers that elements have in common: each is a factor times a fraction of polynomials whose
coefficients are whole numbers. What is scaled everywhere alike has small coefficients so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from math import gcd, log2
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MOST_BITS = 1 << 14
_LOW = np.int64((1 << 32) - 1)


class Endless(Exception):  # noqa: N818 - it is told as what is not known
    """A factor has more bits than are followed."""


def common(x: Fraction, y: Fraction) -> Fraction:
    """The largest of which both are whole multiples; of 0 and something that is it."""
    above = gcd(x.numerator * y.denominator, y.numerator * x.denominator)
    return Fraction(above, x.denominator * y.denominator)


def bits(x: Fraction) -> float:
    return float(x.numerator.bit_length() + x.denominator.bit_length())


def times(x: Fraction, unit: Fraction) -> float:
    """log2 of how many times a unit is in it; of nothing as of one."""
    return log2(abs((x / unit).numerator)) if x and unit else 0.0


@dataclass(slots=True)
class Factors:
    """The factors of a run, by number; 0 is one."""

    listed: list[Fraction] = field(default_factory=lambda: [Fraction(1)])
    _number: dict[Fraction, int] = field(default_factory=lambda: {Fraction(1): 0})
    _made: dict[tuple[str, int, int], tuple[int, float, float]] = field(default_factory=dict)
    most_bits: float = 2.0  # of all that there are

    def number(self, given: Fraction) -> int:
        found = self._number.get(given)
        if found is None:
            self.most_bits = max(self.most_bits, bits(given))
            if self.most_bits > MOST_BITS:
                raise Endless
            found = self._number[given] = len(self.listed)
            self.listed.append(given)
        return found

    def product(self, x: Array, y: Array) -> Array:
        return self._numbers("product", x, y)

    def sum(self, x: Array, y: Array) -> Array:
        return self._numbers("sum", x, y)

    def common(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """What both have in common, and log2 of how many times it is in either."""
        made = self._pairs("common", x, y)
        return made[0].astype(np.int64), made[1], made[2]

    def inverse(self, x: Array) -> Array:
        return self._numbers("inverse", x, x)

    def of_all(self, numbers: Iterable[int]) -> int:
        """What all of these have in common."""
        found = [self.listed[n] for n in set(numbers)]
        return self.number(reduce(common, found, Fraction(0)) or Fraction(1))

    def above(self, numbers: Array, unit: int) -> Array:
        """log2 of how many times a unit is in each."""
        distinct, place = np.unique(numbers, return_inverse=True)
        made = [times(self.listed[n], self.listed[unit]) for n in distinct.tolist()]
        return np.array(made)[place].reshape(numbers.shape)

    def _numbers(self, how: str, x: Array, y: Array) -> Array:
        return np.asarray(self._pairs(how, x, y)[0].astype(np.int64))

    def _pairs(self, how: str, x: Array, y: Array) -> Array:
        """Something of pairs, made once of each that there is: three rows."""
        if not x.size:
            return np.zeros((3, 0))
        keys = x.astype(np.int64) << np.int64(32) | y.astype(np.int64)
        if (keys == keys[0]).all():
            return np.repeat(np.array([self._pair(how, int(keys[0]))]).T, keys.size, axis=1)
        distinct, place = np.unique(keys, return_inverse=True)
        made = np.array([self._pair(how, key) for key in distinct.tolist()])
        return made[place].T

    def _pair(self, how: str, key: int) -> tuple[int, float, float]:
        x, y = key >> 32, key & int(_LOW)
        found = self._made.get((how, x, y))
        if found is None:
            found = self._made[how, x, y] = _HOW[how](self, self.listed[x], self.listed[y])
        return found


def _product(f: Factors, x: Fraction, y: Fraction) -> tuple[int, float, float]:
    return f.number(x * y), 0.0, 0.0


def _common(f: Factors, x: Fraction, y: Fraction) -> tuple[int, float, float]:
    unit = common(x, y)
    return f.number(unit), times(x, unit), times(y, unit)


def _sum(f: Factors, x: Fraction, y: Fraction) -> tuple[int, float, float]:
    return f.number(x + y), 0.0, 0.0


def _inverse(f: Factors, x: Fraction, _: Fraction) -> tuple[int, float, float]:
    return f.number(1 / x), 0.0, 0.0


_HOW: dict[str, Callable[[Factors, Fraction, Fraction], tuple[int, float, float]]] = {
    "product": _product, "common": _common, "inverse": _inverse, "sum": _sum,
}  # fmt: skip
