"""A program with one operator changed is not proved, unless the change cannot be told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from bench.common.sketch.generate import seeded
from bench.common.sketch.nested import LAWFUL, nested_sketch
from bench.sketch.operators import NOTHING, agrees, fold, run, tally

from warploom.sketch.term.evaluate import evaluate
from warploom.sketch.term.ir import Goal, Literal, Program, Symbol, Undefined, fold_of


def test_no_changed_operator_is_proved() -> None:
    """A sample of the two hundred."""
    seen = tally(30)
    assert seen["disagrees"] == 0
    assert seen["refused"] >= 7
    assert seen["impossible"] >= 3
    assert seen["agrees"] <= 10  # folds of one item, cells that nobody reads, …


@pytest.mark.slow
def test_no_changed_operator_is_proved_in_two_hundred() -> None:
    seen = tally(200)
    assert (seen["disagrees"], seen.total()) == (0, 200)
    assert seen["refused"] >= 50
    assert seen["impossible"] >= 20
    assert seen["agrees"] <= 67


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50_000, 54_000, 500))
def test_no_changed_operator_is_proved_in_many(first: int) -> None:
    assert tally(450, first)["disagrees"] == 0


def test_the_judge_can_say_no() -> None:
    """It tells every two operators apart, and so does the goal of a sum from that of a product."""
    for one in LAWFUL:
        for two in LAWFUL:
            goal = Goal((1,), (fold_of([Symbol(0), Symbol(1), Symbol(2)], two),))
            table = Literal("x", (1,), (fold_of([Symbol(0), Symbol(1), Symbol(2)], one),))
            assert agrees(Program("p", (table,), (goal,)), ()) == (one == two)
    assert math.prod([2, 3]) == fold("*", [2, NOTHING, 3])


@pytest.mark.slow
def test_the_judge_says_yes_to_what_a_program_computes() -> None:
    """A goal that is what some fill gives: with that fill they agree."""
    for seed in range(25):
        program = nested_sketch(seeded(seed), ("+",), ())
        fill = [0] * len(program.holes)
        held = evaluate(program, fill)[-1]
        if any(isinstance(term, Undefined) for term in held):
            continue
        goal = Goal(program.steps[-1].shape, held)
        assert agrees(replace(program, goals=(goal,)), fill)
        assert len(run(program, fill, dict.fromkeys(range(40), 3))) == len(held)
