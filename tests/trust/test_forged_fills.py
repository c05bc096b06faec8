"""Certificates of fills as a forger writes them, signed: an accepted one is true on numbers.

The oracle knows nothing of terms: it runs the steps and the goal on random numbers, with each zero
one number, and with every number that a zero may be.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from bench.common.trust.forged import (
    Json,
    accepted_record,
    drawn,
    fold,
    forged,
    is_true,
    literal,
    signed,
)

from warploom import synthesize
from warploom.errors import CheckError
from warploom.pipeline.certificate import certificate_of
from warploom.sketch import front
from warploom.trust.fill import check_fill

# -- the two that were accepted ------------------------------------------------------------------


@pytest.mark.parametrize("label", [{}, {"written": "fold"}])
def test_a_zero_that_must_be_0_and_1_is_refused(label: Json) -> None:
    """z = nothing; (z · x0) + z is x0 only if z is 1 to the product and 0 to the sum."""
    steps = [
        literal("x", [None, 0]),
        fold("p", [0], [0, 1], 2, "*") | label,
        fold("s", [0, 1], [0, 2], 2, "+") | label,
    ]
    parts = "have to be 1 and 0" if not label else "other parts"
    with pytest.raises(CheckError, match=parts):
        forged(steps, [["+", ["*", 0]]], {"*", "+"})


@pytest.mark.parametrize("operator", ["*", "fold"])
def test_an_empty_product_is_not_nothing(operator: str) -> None:
    """1 + x0·x1 is not x0·x1: neither as steps, whose words say what `fold` is, nor in the goal."""
    steps = [
        literal("x", [None, None, 0, 1]),
        fold("p", [0], [0, 1, 2, 3], 2, operator),
        fold("s", [1], [0, 1], 2, "+"),
    ]
    with pytest.raises(CheckError, match=r"have to be 1 and 0|nobody says which"):
        forged(steps, [["+", ["*", 0, 1]]], {"*", "+"}, words=["fold", "*", "+"])
    steps[0]["values"] = [2, 3, 0, 1]
    steps[2]["reads"]["table"] = [1, -1]
    right = forged(steps, [["+", ["*", 0, 1]]], {"*", "+"}, words=["fold", "*", "+"])
    check_fill(right)
    right["goal"]["values"] = [["+", ["*", 0, 1], ["*", None]]]
    with pytest.raises(CheckError, match="a zero inside of"):
        check_fill(signed(right))


def test_fold_alone_says_that_zeros_are_nothing() -> None:
    """What `fold` computes nobody says, so a fold of nothing may be dropped, and that is said."""
    steps = [literal("x", [None, 0]), fold("s", [0], [0, 1], 2, "fold")]
    record = forged(steps, [["fold", 0]], {"fold"})
    said = check_fill(record).not_covered
    assert said == (
        "what 'fold' computes",
        "zeros in what is written 'fold', which takes them for nothing",
        "rounding and overflow",
    )
    for missing in said:
        less = record | {"not_covered": [each for each in said if each != missing]}
        with pytest.raises(CheckError, match="does not say that it leaves out"):
            check_fill(signed(less))


CAVEATS: dict[str, tuple[list[Any], str, list[str]]] = {
    "sums round": ([0, 1], "+", ["rounding and overflow"]),
    "minima have no NaN": ([0, 1], "min", ["what is no number (NaN)"]),
    "bits are exact": ([0, 1], "^", []),
    "a fraction": ([0, {"number": 0.5}], "^", ["how the element type holds 0.5"]),
    "a large number": ([0, {"number": 128}], "^", ["how the element type holds 128"]),
    "a small number": ([0, {"number": 127}], "^", []),
}


@pytest.mark.parametrize("name", CAVEATS)
def test_each_caveat_is_needed(name: str) -> None:
    values, operator, needed = CAVEATS[name]
    steps = [literal("x", values), fold("s", [0], [0, 1], 2, operator)]
    record = forged(steps, [[operator, *values]], {operator})
    assert record["not_covered"] == needed
    check_fill(record)
    check_fill(signed(record | {"not_covered": [*needed, "more"]}))
    if needed:
        with pytest.raises(CheckError, match="leaves out"):
            check_fill(signed(record | {"not_covered": []}))


def test_a_function_is_known_by_its_name_alone() -> None:
    steps = [literal("x", [0]), fold("m", [0], [0], 1, "mean()")]
    record = forged(steps, [["mean()", 0]], {"mean()"})
    assert record["not_covered"] == ["rounding and overflow", "what 'mean' computes"]


def test_a_certificate_says_what_its_answer_does_not_cover() -> None:
    text = "x: [4] = range(0, 4)\ny: [2] = max identity{fold_len=2}(x)\n"
    result = synthesize(front.load_text(text + "goal: [2] = [max(0, 1), max(2, 3)]"))
    record = certificate_of(result.program, result.goal)
    assert record["not_covered"] == list(result.verdicts[0].not_covered)
    assert record["not_covered"] == ["what is no number (NaN)"]


# -- any number of others ------------------------------------------------------------------------


@pytest.mark.parametrize("count", [200, pytest.param(600, marks=pytest.mark.slow)])
def test_what_is_accepted_is_true_on_numbers(count: int) -> None:
    random = Random(26)
    accepted = untrue = 0
    for number in range(count):
        steps, wanted = drawn(random)
        record = accepted_record(steps, wanted, flatten=number % 2 == 0)
        if record is not None:
            accepted += 1
            assert is_true(record, random), json.dumps(record)
        else:
            untrue += not is_true({"steps": steps, "goal": {"values": wanted}}, random)
    assert accepted > count / 3
    assert untrue > count / 75  # which a checker that only drops zeros would accept
