"""Arithmetic modulo primes, on arrays; and how such primes are drawn.

Numbers are unsigned words of 64 bits below the prime, which is below 2^63. A product is made of
halves, and reduced as Montgomery does it, which needs no division.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.ptx.field.compiled import compiled

Array = npt.NDArray[np.uint64]
BITS = 61  # primes are drawn from 2^60 on, below 2^61
LIMB = 21  # three limbs hold a number
MOST_TERMS = 1 << 53 - 2 * LIMB  # sums of so many products of limbs are exact as doubles
ONE_BY_ONE = 32  # numbers that are inverted each by itself
WINDOW = 8  # bits of an exponent that are looked up at once
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # enough below 2^64


def is_prime(n: int) -> bool:
    """By Miller and Rabin, without error for numbers of 64 bits."""
    if n < 2 or any(n % w == 0 for w in _WITNESSES):
        return n in _WITNESSES
    twos = (n - 1 & 1 - n).bit_length() - 1
    for witness in _WITNESSES:
        x = pow(witness, n - 1 >> twos, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def draw_prime(r: Random) -> int:
    while True:
        n = r.randrange(1 << BITS - 1, 1 << BITS) | 1
        if is_prime(n):
            return n


def high_product(x: Any, y: Any) -> Array:
    """The upper 64 bits of products."""
    xl, xh, yl, yh = x & _LOW, x >> _HALF, y & _LOW, y >> _HALF
    middle = xh * yl + ((xl * yl) >> _HALF)
    second = xl * yh + (middle & _LOW)
    found: Array = xh * yh + (middle >> _HALF) + (second >> _HALF)
    return found


@dataclass(frozen=True, slots=True)
class Modulus:
    """A prime, and what products modulo it need."""

    p: int
    inverse: np.uint64  # of -p modulo 2^64
    square: np.uint64  # 2^128 modulo p

    @staticmethod
    def of(p: int) -> Modulus:
        return Modulus(p, np.uint64(pow(-p, -1, 1 << 64)), np.uint64((1 << 128) % p))

    @property
    def _p(self) -> np.uint64:
        return np.uint64(self.p)

    def add(self, x: Any, y: Any) -> Array:
        total = x + y
        return np.asarray(np.where(total >= self._p, total - self._p, total))

    def sub(self, x: Any, y: Any) -> Array:
        return np.asarray(np.where(x >= y, x - y, x + self._p - y))

    def neg(self, x: Any) -> Array:
        return np.asarray(np.where(x == 0, x, self._p - x))

    @property
    def _given(self) -> Array:
        return np.array([self.p, self.inverse, self.square], np.uint64)

    def mul(self, x: Any, y: Any) -> Array:
        code = compiled()
        return self.mul_by_numpy(x, y) if code is None else code.multiply(x, y, self._given)

    def mul_by_numpy(self, x: Any, y: Any) -> Array:
        return self._reduced(self._reduced(x, y), self.square)

    def _reduced(self, x: Any, y: Any) -> Array:
        """x · y / 2^64 modulo p."""
        low = x * y
        carried = high_product(low * self.inverse, self._p) + (low != 0)
        total = high_product(x, y) + carried
        return np.asarray(np.where(total >= self._p, total - self._p, total))

    def inverted(self, x: Any) -> Array:
        """1 / x; of 0 it is 0, which the caller must not divide by."""
        values = np.where(x == 0, np.uint64(1), x).reshape(-1)
        return np.where(x == 0, np.uint64(0), self._inverted(values).reshape(np.shape(x)))

    def _inverted(self, x: Array) -> Array:
        """The inverses of pairs, by that of their product, so that few are asked for."""
        if x.size <= ONE_BY_ONE:
            return np.array([pow(each, -1, self.p) for each in x.tolist()], np.uint64)
        half = x.size // 2
        low, high = x[:half], x[half : 2 * half]
        both = self._inverted(self.mul(low, high))
        return np.concatenate(
            [self.mul(both, high), self.mul(both, low), self._inverted(x[2 * half :])]
        )

    def powers(self, base: int) -> Array:
        """base^(n·256^k), by k and n: what is needed for any power of it."""
        rows = [[pow(base, n << WINDOW * k, self.p) for n in range(1 << WINDOW)] for k in range(8)]
        return np.array(rows, np.uint64)

    def power(self, table: Array, exponent: Array) -> Array:
        """The base of a table to numbers."""
        code = compiled()
        if code is not None:
            return code.power(table, exponent, self._given)
        return self.power_by_numpy(table, exponent)

    def power_by_numpy(self, table: Array, exponent: Array) -> Array:
        low = np.uint64((1 << WINDOW) - 1)
        result = table[0][exponent & low]
        for k in range(1, 8):
            result = self.mul(result, table[k][(exponent >> np.uint64(WINDOW * k)) & low])
        return np.asarray(result)

    def products(self, a: Array, b: Array) -> Array:
        """Σₖ a[…, i, k] · b[…, j, k]: matrices as tensor cores take them."""
        code = compiled()
        if code is not None:
            return code.products(a, b, self._given)
        return self.products_by_numpy(a, b)

    def products_by_numpy(self, a: Array, b: Array) -> Array:
        """The limbs of numbers are multiplied as doubles, whose sums stay exact."""
        total = np.zeros((*a.shape[:-1], b.shape[-2]), np.uint64)
        for start in range(0, a.shape[-1], MOST_TERMS):
            part = slice(start, start + MOST_TERMS)
            total = self.add(total, self._products(a[..., part], b[..., part]))
        return total

    def _products(self, a: Array, b: Array) -> Array:
        mask = np.uint64((1 << LIMB) - 1)
        left, right = (
            [((x >> np.uint64(LIMB * n)) & mask).astype(np.float64) for n in range(3)]
            for x in (a, np.swapaxes(b, -1, -2))
        )
        shift = np.uint64((1 << LIMB) % self.p)
        total: Array = np.zeros((*a.shape[:-1], b.shape[-2]), np.uint64)
        for weight in reversed(range(5)):  # by Horner's rule
            total = self.mul(total, shift)
            for n in range(3):
                if 0 <= weight - n < 3:
                    made = np.matmul(left[n], right[weight - n]).astype(np.uint64)
                    total = self.add(total, made)
        return total

    def of_float(self, value: float) -> int:
        """A finite float, which is a fraction over a power of two."""
        above, below = value.as_integer_ratio()
        return above * pow(below, -1, self.p) % self.p


@dataclass(frozen=True, slots=True)
class Primes:
    """Primes p and q with p | q - 1, and an element of order p modulo q.

    Its powers are an exponential function: of a number modulo p, to one modulo q.
    """

    p: Modulus
    q: Modulus
    generator: int
    table: Array = field(repr=False)

    @staticmethod
    def drawn(r: Random) -> Primes:
        while True:
            p = draw_prime(r)
            for times in (2, 4):
                q = times * p + 1
                if is_prime(q):
                    power = pow(r.randrange(2, q - 1), times, q)
                    if power == 1:
                        continue
                    modulus = Modulus.of(q)
                    return Primes(Modulus.of(p), modulus, power, modulus.powers(power))

    def exp(self, x: Array) -> Array:
        return self.q.power(self.table, x)
