"""Small kernels that were drawn: the judge never says what exact rationals do not."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from bench.common.verdict.rationals import TRAPS, drawn_case, wrong
from bench.common.verdict.terms import LANES, by_numpy, changed, drawn, exactly, made, x


@pytest.mark.parametrize("number", range(120))
@pytest.mark.sampled(4)
def test_verdicts_are_what_rationals_say(number: int) -> None:
    case = drawn_case(number)
    found = case.judged(number)
    assert not wrong(case, found), f"{case.text()}\n{found}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(len(TRAPS)))
def test_traps_have_the_verdict_that_is_due(number: int) -> None:
    case = drawn_case(4 * number + 3)
    assert case.same or case.judged(5).verdict != "equal"
    assert not case.same or case.judged(5).verdict == "equal"


def test_terms_are_evaluated_alike_in_rationals_and_in_numpy() -> None:
    r = Random(3)
    rows = [[Fraction(r.randint(-3, 3)) for _ in range(LANES)] for _ in range(3)]
    inputs = [np.array([float(v) for v in row]) for row in rows]
    compared = 0
    for _ in range(40):
        term = drawn(r, 3)
        with np.errstate(all="ignore"):
            near = by_numpy(term, inputs)
        exact = np.array([float(v) for v in exactly(term, rows, "f64")])
        np.testing.assert_allclose(near, exact, rtol=1e-9, atol=1e-9)
        compared += 1
    assert compared == 40


def test_a_term_that_is_changed_stays_the_same() -> None:
    r = Random(8)
    rows = [[Fraction(r.randint(-9, 9)) for _ in range(LANES)] for _ in range(3)]
    for _ in range(40):
        term = drawn(r, 3)
        assert exactly(term, rows, "f64") == exactly(changed(r, term), rows, "f64")


def test_a_sum_without_a_step_is_of_half_the_threads() -> None:
    rows = [[Fraction(1)] * LANES for _ in range(3)]
    assert exactly(made("total", x(0)), rows, "f32", lost=2) == [Fraction(16)] * LANES
