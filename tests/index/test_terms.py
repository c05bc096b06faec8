"""Sums of terms against plain numbers: each operation of a ring, with numbers for the atoms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bench.common.narrowed import of
from hypothesis import given
from hypothesis import strategies as st

from warploom.index.ir import Expr, Var
from warploom.index.terms import Modular, Polynomial, Ratios, Sum, modular, terms_range

VALUES = {0: 3, 1: -7, 2: 12}
NAMED = {Var("a"): Fraction(3), Var("b"): Fraction(-7), Var("c"): Fraction(12)}
MONOMIALS = st.lists(st.integers(0, 2), max_size=3).map(lambda atoms: tuple(sorted(atoms)))
WHOLE = st.dictionaries(MONOMIALS, st.integers(-9, 9), max_size=4)
POLYNOMIALS = WHOLE.map(Polynomial({}).of)
MODULAR = WHOLE.map(lambda terms: modular(8, terms))
ATOMS: list[Expr] = list(NAMED)
POWERS = st.dictionaries(st.sampled_from(ATOMS), st.sampled_from([-2, -1, 1, 2])).map(
    lambda powers: tuple(sorted(powers.items(), key=lambda each: of(Var, each[0]).name))
)
RATIOS = st.dictionaries(POWERS, st.fractions(-3, 3, max_denominator=4), max_size=4).map(
    Ratios({}).of
)


def value(form: Sum[Any, Any]) -> Fraction:
    total = Fraction(0)
    for monomial, factor in form.terms.items():
        product = Fraction(factor)
        for atom in monomial:
            product *= NAMED[atom[0]] ** atom[1] if isinstance(atom, tuple) else VALUES[atom]
        total += product
    return total % 256 if isinstance(form, Modular) else total


@given(st.one_of(*(st.tuples(each, each) for each in (POLYNOMIALS, MODULAR, RATIOS))))
def test_operations_are_those_of_numbers(pair: tuple[Any, Any]) -> None:
    left, right = pair
    period = 256 if isinstance(left, Modular) else 0
    for found, wanted in (
        (left + right, value(left) + value(right)),
        (left - right, value(left) - value(right)),
        (left * right, value(left) * value(right)),
        (left.scaled(5), 5 * value(left)),
        (left.plus(right, -3), value(left) - 3 * value(right)),
    ):
        assert value(found) == (wanted % period if period else wanted)
        assert all(found.terms.values())
    assert left + right == right + left
    assert hash(left * right) == hash(right * left)
    assert (left - left).is_constant
    assert (left - left).constant == 0


@given(MODULAR)
def test_modular_sums_of_other_widths_differ(form: Modular) -> None:
    assert form != modular(9, form.terms)
    assert value(modular(8, form.signed_terms)) == value(form)
    assert modular(1, {(0,): 1}) * modular(1, {(0,): 1}) == modular(1, {(0,): 1})


@given(POLYNOMIALS)
def test_ranges_hold_every_value(form: Polynomial) -> None:
    low, high = terms_range(form.terms, {0: (-3, 3), 1: (-7, 0), 2: (1, 12)})
    assert low <= value(form) <= high
