"""Arithmetic modulo primes is that of Python's whole numbers."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warploom.ptx.field.prime import BITS, Modulus, Primes, is_prime

PAIR = Primes.drawn(Random(1))
MODULI = (PAIR.p, PAIR.q)


def numbers(m: Modulus, count: int, seed: int = 0) -> list[int]:
    r = Random(seed)
    return [0, 1, m.p - 1, *(r.randrange(m.p) for _ in range(count))]


def words(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def test_small_primes_are_told() -> None:
    sieve = {n for n in range(2, 2000) if all(n % d for d in range(2, n))}
    assert {n for n in range(2000) if is_prime(n)} == sieve
    assert not is_prime(3215031751)  # passes for 2, 3, 5 and 7
    assert not is_prime(3825123056546413051)  # … up to 23


def test_what_is_drawn_belongs_together() -> None:
    p, q = PAIR.p.p, PAIR.q.p
    assert 1 << BITS - 1 <= p < 1 << BITS
    assert q < 1 << 63
    assert is_prime(p)
    assert is_prime(q)
    assert (q - 1) % p == 0
    assert pow(PAIR.generator, p, q) == 1 != PAIR.generator
    assert Primes.drawn(Random(2)).p.p != p


@given(st.integers(0, 1 << 63), st.integers(0, 1 << 63))
def test_two_numbers(x: int, y: int) -> None:
    for m in MODULI:
        a, b = x % m.p, y % m.p
        one, other = words([a]), words([b])
        assert m.add(one, other)[0] == (a + b) % m.p
        assert m.sub(one, other)[0] == (a - b) % m.p
        assert m.mul(one, other)[0] == a * b % m.p == m.mul_by_numpy(one, other)[0]
        assert m.neg(one)[0] == -a % m.p


def test_inverses_of_few_and_of_many() -> None:
    for m in MODULI:
        for count in (0, 30, 301):
            values = numbers(m, count)
            wanted = [pow(x, -1, m.p) if x else 0 for x in values]
            assert m.inverted(words(values)).tolist() == wanted


def test_powers_are_an_exponential() -> None:
    values = numbers(PAIR.p, 20)
    q = PAIR.q
    wanted = [pow(PAIR.generator, x, q.p) for x in values]
    assert PAIR.exp(words(values)).tolist() == wanted
    assert q.power_by_numpy(PAIR.table, words(values)).tolist() == wanted


def test_products_of_matrices() -> None:
    for m in MODULI:
        a = words(numbers(m, 57)).reshape(2, 5, 6)
        b = words(numbers(m, 33, 1)).reshape(2, 3, 6)
        wanted = [
            [[sum(map(int.__mul__, row, column)) % m.p for column in y] for row in x]
            for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        most = np.full((1, 2500), m.p - 1, np.uint64)  # more than one exact sum
        for products in (m.products, m.products_by_numpy):
            assert products(a, b).tolist() == wanted
            assert products(most, most)[0, 0] == 2500 * (m.p - 1) ** 2 % m.p
