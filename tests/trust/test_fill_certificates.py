"""Certificates of fills: they hold, a changed one does not, and the checker shares no code."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from bench.common.sketch.generate import seeded, sketch
from bench.common.trust.altered import with_another_field
from bench.common.trust.made import EXAMPLES, MADE, written
from hypothesis import given
from tests.index.strategies import environments, expressions
from tests.sampled import examples
from tests.sources import outline

from warploom.errors import CheckError, SearchError, WarploomError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr
from warploom.index.show import show
from warploom.pipeline.certificate import certificate, certificate_of, record_of_fill
from warploom.sketch import front
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply
from warploom.sketch.term.read import read
from warploom.sketch.term.verify import verify
from warploom.trust import (
    cases,
    checked,
    expression,
    family,
    fill,
    layout,
    problem,
    reading,
    serving,
    terms,
    warp,
)  # fmt: skip
from warploom.trust.checked import Work, digest
from warploom.trust.expression import Expression
from warploom.trust.fill import check_fill


def signed(record: dict[str, Any]) -> dict[str, Any]:
    """Changed on purpose: the digest is made to fit."""
    return record | {"digest": digest(record)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MADE)
def test_what_is_written_holds(name: str) -> None:
    record = json.loads(written(name))
    shown = check_fill(record).shown
    assert f"cells of '{record['steps'][-1]['name']}' holds its goal" in shown[0]
    assert not check_fill(record).open


def test_operators_and_laws_are_said() -> None:
    assert check_fill(json.loads(written("convolution"))).shown[1].startswith("operators: *, +;")
    assert check_fill(json.loads(written("function"))).shown[1] == (
        "operators: +; laws: flatten; "
        "reassociated: + (in floating point the result may round differently)"
    )


@pytest.mark.parametrize("name", MADE)
def test_a_changed_field_is_refused(name: str) -> None:
    """Seven times 150, of any field."""
    record = json.loads(written(name))
    for changed in with_another_field(record, 150, Random(name)):
        with pytest.raises(CheckError):
            check_fill(changed)


SIGNED = {
    "another operator": (("steps", -1, "operator"), "*", "other operators|does not hold its goal"),
    "another offset": (("steps", 2, "reads", "offset"), "x0 * 3 + x1", "does not hold its goal"),
    "outside": (("steps", 2, "reads", "offset"), "x0 * 3 + x1 + 99", "is undefined"),
    "no argument": (("steps", 2, "reads", "argument"), "1", "does not hold its goal"),
    "no such argument": (("steps", 2, "reads", "argument"), "2", "an argument is none"),
    "divided by zero": (("steps", 2, "reads", "offset"), "x0 // (x1 - x1)", "divides by zero"),
    "another variable": (("steps", 2, "reads", "offset"), "lane", "reads 'lane'"),
    "no expression": (("steps", 2, "reads", "offset"), "x0 +", "reads ''"),
    "code": (("steps", 2, "reads", "offset"), "__import__('os')", "no index expression"),
    "another goal": (("goal", "values", 1), ["+", 3, 4, 6], "does not hold its goal"),
    "undefined goal": (("goal", "values", 1), "?", "does not hold its goal"),
    "a later step": (("steps", 1, "args"), [3], "not of this form"),
    "from behind": (("steps", 1, "args"), [-1], "reads what is not there"),
    "no fold": (("steps", -1, "fold"), None, "folds nothing"),
    "other laws": (("laws",), ["distributive"], "laws that are none"),
    "no proof": (("verdict",), "refuted", "not a proof"),
    "huge": (("steps", 0, "shape"), [1 << 40], "has more than"),
    "nothing": (("steps",), [], "not of this form"),
    "another kind": (("kind",), "layout", "other parts"),
    "true for 1": (("version",), True, "another version"),
    "a fraction": (("version",), 2.0, "another version"),
    "an older one": (("version",), 1, "another version"),
    "no name": (("name",), None, "a text is none"),
    "no caveats": (("not_covered",), [], "leaves out: rounding and overflow"),
    "another caveat": (("not_covered",), ["rounding"], "leaves out: rounding and overflow"),
    "a number of caveats": (("not_covered",), [1], "a text is none"),
    "a caveat of letters": (("not_covered",), "rounding and overflow", "other parts"),
    "no goal": (("goal", "number"), 0, "a number that is none"),
    "a later goal": (("goal", "number"), 2, "a number that is none"),
    "a true goal": (("goal", "number"), True, "a number that is none"),
    "an operator of nothing": (("steps", 2, "operator"), "+", "folds nothing"),
    "a word for it": (("words",), ["fold", "mean()"], "no operator"),
    "a word that is none": (("words",), ["fold", "plus"], "no operator"),
    "a nameless function": (("steps", -1, "operator"), "()", "no operator"),
    "a function of three": (("steps", -1, "operator"), "mean()", "more than one item"),
    "goal of truths": (("goal", "values", 1), True, "not of this form"),
    "goal of a text": (("goal", "values", 1), "+", "not of this form"),
    "a true number": (("goal", "values", 1), {"number": True}, "not of this form"),
    "no number": (("goal", "values", 1), {"number": float("nan")}, "is no number"),
    "an infinite number": (("goal", "values", 1), {"number": float("inf")}, "is no number"),
    "a number and more": (("goal", "values", 1), {"number": 1, "x": 2}, "not of this form"),
    "a zero in a sum": (("goal", "values", 1), ["+", 3, 4, 5, None], "a zero inside of"),
    "an empty sum": (("goal", "values", 1), ["+"], "not of this form"),
    "a size of lists": (("size",), {"n": [1]}, "a size is none"),
    "a warp of nothing": (("warp",), {}, "other parts"),
    "a list of a text": (("goal", "text"), ["x"], "a text is none"),
    "no words": (("words",), {}, "other parts"),
    "true argument": (("steps", 2, "args"), [True], "reads what is not there"),
    "half a fill": (("steps", 2, "fill"), {"family": "xform"}, "a fill has other parts"),
    "more than a fill": (
        ("steps", 2, "fill"),
        {"family": "", "parameters": {}, "text": "", "more": 1},
        "a fill has other parts",
    ),
    "around 64 bits": (
        ("steps", 2, "reads", "offset"),
        "x0 * 3 + (x1 - x0) % 3 + 4294967296 * 4294967296",
        "too large",
    ),
    "shifted out": (
        ("steps", 2, "reads", "offset"),
        "x0 * 3 + (x1 - x0) % 3 + (4294967296 << 40)",
        "too large",
    ),
    "halves": (("steps", 2, "reads"), {"table": [0.5] * 12}, "not whole"),
    "truths": (("steps", 2, "reads"), {"table": [True, *[0] * 11]}, "not whole"),
}


@pytest.mark.parametrize("name", SIGNED)
def test_what_is_wrong_is_refused_though_it_is_signed(name: str) -> None:
    path, value, message = SIGNED[name]
    record = json.loads(written("sums"))
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(CheckError, match=message):
        check_fill(signed(record))


@pytest.mark.parametrize("count", [36, pytest.param(120, marks=pytest.mark.slow)])
def test_the_checker_says_what_the_evaluator_says(count: int) -> None:
    """Right and wrong fills of random sketches, with folds, zeros and undefined cells."""
    right = wrong = 0
    for seed in range(count):
        program, pick = sketch(seeded(seed)), seeded(seed + 1)
        goal = replace(program.goals[0], laws=("flatten",) if seed % 3 == 0 else ())
        steps = [program.steps[hole] for hole in program.holes]
        for _ in range(3):
            fill = tuple(pick(len(step.gathers)) for step in steps if isinstance(step, Apply))
            try:
                said = bool(verify(program, goal, fill))
            except CheckError:  # a goal that cannot be read together with its program
                continue
            try:
                check_fill(json.loads(json.dumps(record_of_fill(program, goal, fill))))
                found = True
            except CheckError:
                found = False
            # Under laws nothing is said of zeros that 'fold' would take for two numbers.
            zeros = bool(goal.laws) and bool(read(program, goal).zeros)
            assert found == said or (zeros and said), (seed, fill)
            right, wrong = right + found, wrong + (not found)
    assert right > count / 5
    assert wrong > count * 5 / 6


@examples(200)
@given(expressions(), environments())
def test_index_expressions_are_read_as_they_are_meant(expr: Expr, env: dict[str, int]) -> None:
    known = {name: np.array([value]) for name, value in env.items()}
    try:
        wanted = evaluate(expr, env)
    except WarploomError:
        return  # undefined there; what the checker refuses or reads is nobody's address
    if abs(int(wanted)) < 1 << 40:
        found = Expression(show(expr), known, 1, Work(1 << 31)).value
        assert np.broadcast_to(found, (1,)).tolist() == [int(wanted)]


def test_numbers_are_equal_to_the_last_digit() -> None:
    """As fractions of 64 bits these two are one."""
    record = json.loads(written("sums"))
    shape, large = [1], 1 << 53
    record |= {"steps": [{"name": "x", "shape": shape, "values": [{"number": large}]}]}
    goal = {"text": "", "shape": shape, "values": [{"number": float(large)}]}
    record |= {"goal": record["goal"] | goal, "operators": []}
    record |= {"not_covered": [f"how the element type holds {large}"]}
    check_fill(signed(record))
    record["goal"]["values"] = [{"number": large + 1}]
    with pytest.raises(CheckError, match="does not hold its goal"):
        check_fill(signed(record))


def test_a_zero_is_one_number() -> None:
    """0 to a sum and 1 to a product: one that both read has to be both."""
    record = json.loads(written("own gathers"))
    zero = {"name": "z", "shape": [1], "values": [None]}
    one = {"name": "x", "shape": [1], "values": [0]}
    both = {"cells": [2], "args": [0, 1], "reads": {"argument": "x0", "offset": "0"}, "fold": 2,
            "shape": [1], "fill": None}  # fmt: skip
    steps = [zero, one, both | {"name": "p", "operator": "*"}]
    last = both | {"name": "s", "operator": "+", "args": [0, 2]}
    goal = record["goal"] | {"text": "", "shape": [1], "values": [["+", ["*", 0]]]}
    record |= {"not_covered": ["rounding and overflow"]}
    record |= {"steps": [*steps, last], "goal": goal, "operators": ["*", "+"], "words": []}
    with pytest.raises(CheckError, match="have to be 1 and 0"):
        check_fill(signed(record))
    record["steps"][-1]["args"] = [1, 2]  # x + x, of which the second went through the product
    record["goal"]["values"] = [["+", 0, ["*", 0]]]
    check_fill(signed(record))
    record["steps"][2]["reads"]["offset"] = "0"
    record["steps"][2]["args"] = [0, 0]  # a product of zeros is 1, and is then added up
    record |= {"goal": goal | {"values": [["+", 0]]}, "operators": ["+"]}
    with pytest.raises(CheckError, match="have to be 1 and 0"):
        check_fill(signed(record))


def test_only_what_is_proved_is_certified() -> None:
    program = front.load_text((EXAMPLES / "sums.swflow").read_text())
    with pytest.raises(CheckError, match="not proved"):
        certificate_of(program, program.goals[0], (0, 0))
    none = front.load_text((EXAMPLES / "impossible.swflow").read_text())
    with pytest.raises(SearchError, match="no fill to certify"):
        certificate(synthesize(none))


@pytest.mark.parametrize("junk", [{}, {"kind": "fill"}, {"steps": 3}])
def test_junk_is_one_error(junk: dict[str, Any]) -> None:
    with pytest.raises(CheckError):
        check_fill(junk)


def test_the_checkers_share_nothing_with_what_they_check() -> None:
    """A person can read each: the standard library, NumPy, errors and the records of machines."""
    given = {"warploom.errors", "warploom.machine.record", "warploom.machine.serving"}
    for module in (
        fill, terms, warp, expression, reading, layout, problem, cases, family, serving, checked,
    ):  # fmt: skip
        text = Path(str(module.__file__)).read_text()
        names = {s.module for s in outline(text).imports if isinstance(s, ast.ImportFrom)}
        ours = {str(name) for name in names if str(name).startswith("warploom")}
        assert all(n in given or n.startswith("warploom.trust.") for n in ours)
        assert "warploom.trust.layout_text" not in ours  # it reads the language of layouts
        assert len(text.splitlines()) < 400
