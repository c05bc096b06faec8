"""Certificates of fills as a forger writes them, signed: an accepted one is true on numbers.

The oracle knows nothing of terms: it runs the steps and the goal on random numbers, with each zero
one number, and with every number that a zero may be.
"""

from __future__ import annotations

import itertools
import json
import math
from functools import reduce
from random import Random
from typing import Any

import pytest

from warploom import synthesize
from warploom.errors import CheckError
from warploom.pipeline.certificate import certificate_of
from warploom.sketch import front
from warploom.trust import fill
from warploom.trust.checked import digest
from warploom.trust.fill import check_fill, left_out
from warploom.trust.terms import NEUTRAL, ZERO, Terms

Json = dict[str, Any]
COMPUTE = {
    "+": lambda a, b: a + b, "*": lambda a, b: a * b, "min": min, "max": max,
    "&": lambda a, b: int(a) & int(b), "|": lambda a, b: int(a) | int(b),
    "^": lambda a, b: int(a) ^ int(b),
}  # fmt: skip
MAY_BE = (0, 1, -1, math.inf, -math.inf)  # the neutral elements


def signed(record: Json) -> Json:
    return record | {"digest": digest(record)}


def literal(name: str, values: list[Any]) -> Json:
    return {"name": name, "shape": [len(values)], "values": values}


def fold(name: str, args: list[int], table: list[int], length: int, operator: str) -> Json:
    """As a step of a certificate that reads a table."""
    return {
        "name": name, "shape": [len(table) // length], "cells": [len(table)], "args": args,
        "reads": {"table": table}, "fold": length, "operator": operator, "fill": None,
    }  # fmt: skip


def forged(steps: list[Json], values: list[Any], operators: set[str], **more: Any) -> Json:
    """With every caveat that it needs."""
    goal = {"number": 1, "of": 1, "text": "", "shape": [len(values)], "values": values}
    record = {
        "kind": "fill", "version": 2, "name": "forged", "size": {}, "warp": None, "steps": steps,
        "words": [], "goal": goal, "laws": [], "operators": sorted(operators), "verdict": "proved",
        "not_covered": [], **more,
    }  # fmt: skip
    record["not_covered"] = list(left_out(signed(record)))
    return signed(record)


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


CAVEATS = {
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


class Oracle:
    """The steps and the goal of a certificate on numbers; zeros are given."""

    def __init__(self, record: Json, numbers: dict[int, int], zeros: tuple[float, ...]) -> None:
        self.numbers, self.zeros = numbers, iter(zeros)
        self.arrays: list[list[float]] = []
        for step in record["steps"]:
            self.arrays.append(self._step(step))

    def _step(self, step: Json) -> list[float]:
        if "values" in step:
            return [next(self.zeros) if v is None else self.term(v) for v in step["values"]]
        joined = [value for arg in step["args"] for value in self.arrays[arg]]
        cells = [next(self.zeros) if at == ZERO else joined[at] for at in step["reads"]["table"]]
        length = step["fold"]
        rows = [cells[at : at + length] for at in range(0, len(cells), length)]
        return [reduce(COMPUTE[step["operator"]], row) for row in rows]

    def term(self, value: Any) -> float:
        match value:
            case None:
                return 0
            case int():
                return self.numbers[value]
            case {"number": number}:
                return float(number)
        return reduce(COMPUTE[value[0]], map(self.term, value[1:]))


def is_true(record: Json, random: Random) -> bool:
    """Whether there are numbers for the zeros with which the goal is met, whatever symbols are."""
    steps = record["steps"]
    count = sum(v is None for s in steps for v in s.get("values", ()))
    count += sum(s["reads"]["table"].count(ZERO) for s in steps if "reads" in s)
    trials = [
        {n: random.choice((-1, 1)) * random.randrange(2, 99) for n in range(6)} for _ in range(3)
    ]

    def meets(zeros: tuple[float, ...]) -> bool:
        for numbers in trials:
            try:
                run = Oracle(record, numbers, zeros)
            except (OverflowError, ValueError):  # no bits of what is infinite
                return False
            wanted = [run.term(value) for value in record["goal"]["values"]]
            if run.arrays[-1] != wanted:
                return False
        return True

    return any(map(meets, itertools.product(MAY_BE, repeat=count)))


def vanishing(steps: list[Json]) -> list[Any]:
    """What the last step holds if zeros vanish, whatever consumes them: what a forger wants."""
    arrays: list[list[Any]] = []
    for step in steps:
        if "values" in step:
            arrays.append(step["values"])
            continue
        joined = [value for arg in step["args"] for value in arrays[arg]]
        cells = [None if at == ZERO else joined[at] for at in step["reads"]["table"]]
        length = step["fold"]
        rows = (cells[at : at + length] for at in range(0, len(cells), length))
        kept = [[cell for cell in row if cell is not None] for row in rows]
        arrays.append([[step["operator"], *row] if row else None for row in kept])
    return arrays[-1]


def drawn(random: Random) -> tuple[list[Json], list[Any]]:
    """Some folds of some operators over symbols and at most three zeros."""
    signs = random.sample(sorted(NEUTRAL), 2)
    zeros = 3
    values: list[Any] = [random.choice([None, 0, 1, 2]) for _ in range(3)]
    steps, sizes = [literal("x", values)], [3]
    zeros -= values.count(None)
    for number in range(1, 1 + random.randint(1, 3)):
        args = random.choices(range(number), k=random.randint(1, 2))
        places = sum(sizes[arg] for arg in args)
        table = []
        for _ in range(4):
            blank = zeros > 0 and random.random() < 0.15
            zeros -= blank
            table.append(ZERO if blank else random.randrange(places))
        length = random.choice([1, 2, 4])
        steps.append(fold(f"s{number}", args, table, length, random.choice(signs)))
        sizes.append(4 // length)
    return steps, vanishing(steps)


def accepted_record(steps: list[Json], wanted: list[Any], flatten: bool) -> Json | None:
    """The certificate, with the operators that the checker will see, if it is accepted."""
    terms = Terms(flatten, [])
    laws = ["flatten"] if flatten else []
    try:
        fill._run(terms, steps)
        for value in wanted:
            terms.read(value)
        record = forged(steps, wanted, terms.operators, laws=laws)
        check_fill(json.loads(json.dumps(record)))
    except CheckError:
        return None
    return record


def test_what_is_accepted_is_true_on_numbers() -> None:
    random = Random(26)
    accepted = untrue = 0
    for number in range(600):
        steps, wanted = drawn(random)
        record = accepted_record(steps, wanted, flatten=number % 2 == 0)
        if record is not None:
            accepted += 1
            assert is_true(record, random), json.dumps(record)
        else:
            untrue += not is_true({"steps": steps, "goal": {"values": wanted}}, random)
    assert accepted > 200
    assert untrue > 8  # which a checker that only drops zeros would accept
