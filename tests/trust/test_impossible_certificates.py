"""Certificates that a sketch has no fill: what holds verifies, and nothing that is not true does.

The same with many more sketches is `bench/sketch/impossible.py`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from itertools import islice, product
from random import Random
from typing import Any

import numpy as np
import pytest
from bench.common.trust.impossible import altered, forged, impossible, proof, solvable
from bench.common.trust.tried import is_true
from tests.sampled import rounds

from warploom.errors import CheckError, SearchError
from warploom.pipeline.impossibility import certificate_of_impossible, plain_record
from warploom.sketch.front import load_text
from warploom.sketch.holes import build
from warploom.sketch.synth.solve import synthesize
from warploom.trust import impossible as checker
from warploom.trust.checked import Work, digest
from warploom.trust.choices import tables_of
from warploom.trust.impossible import check_impossible

Record = dict[str, Any]

SUMS = """
x: [12] = range(0, 12)
regs: [4,3] = load_rep(x)
t: [4,3] = ?col_xforms(regs)
sum: [4] = + identity{fold_len=3}(t)
goal: [4] trove_sum{n=3}
"""

# Each of two bits can be kept or dropped, never both: no cell alone is out of reach.
TOGETHER = """
define one([2]) -> [2] = { first = [0, -1], second = [-1, 1] }
x: [2] = range(0, 2)
y: [2] = ?one(x)
goal: [2] = [0, 1]
"""


def of(text: str) -> Record:
    return certificate_of_impossible(synthesize(load_text(text, "a sketch")))


def signed(record: Record) -> Record:
    return {**record, "digest": digest(record)}


@pytest.mark.slow
def test_the_certificates_of_random_sketches_hold_and_altered_ones_do_not() -> None:
    random, count = Random(7), rounds(45)
    records = [json.loads(json.dumps(proof(found))) for _, found in islice(impossible(1000), count)]
    for record in records:
        assert not check_impossible(record).open
        assert is_true(record)
    refused = 0
    for _ in range(4 * count):
        way, record = altered(random.choice(records), random)
        try:
            assert not check_impossible(record).open
            assert is_true(record), way
        except CheckError:
            refused += 1
    assert refused > 2 * count


def test_no_sketch_with_a_fill_is_proved_impossible() -> None:
    for found in islice(solvable(1000), rounds(45)):
        with pytest.raises(CheckError, match="there is a fill"):
            check_impossible(forged(found))


def test_what_it_says() -> None:
    record = of(SUMS)
    assert record["goal"]["cells"] == [0]
    assert [each["step"] for each in record["blocked"]] == [2]
    checked = check_impossible(record)
    assert checked.shown == (
        "no fill gives 1 of the 4 cells of 'sum' what the goal called 'trove_sum{n=3}' has there",
        "choices: 14 of 't' (argument=0, axes=[0, 1, 0], family=xforms, whole=False; made here); "
        "cell by cell",
        "laws: the order of items",
        "'t' is in the way: with another gather in its place there is a fill",
        "cell (0) should hold +(0, 1, 2); at most these can reach it: what is no part of any of "
        "these cells",
    )
    assert checked.not_covered == (checker.NUMBERS, checker.OTHER_LAWS)


def test_cells_that_cannot_be_right_together_need_all_fills() -> None:
    record = of(TOGETHER)
    assert record["goal"]["cells"] == [0, 1]
    shown = check_impossible(record).shown
    assert "choices: 2 of 'y' (as listed); all fills were run" in shown
    one = signed({**record, "goal": {**record["goal"], "cells": [0], "values": [0]}, "blocked": []})
    with pytest.raises(CheckError, match="there is a fill"):
        check_impossible(one)


def test_a_listed_hole_says_that_its_list_is_not_covered() -> None:
    text = SUMS.replace("col_xforms", "col_linear")
    record = of(text)
    said = "whether 'col_linear' has other choices for 't'"
    assert said in record["not_covered"]
    left = signed({**record, "not_covered": [checker.OTHER_LAWS]})
    with pytest.raises(CheckError, match="does not say that it leaves out"):
        check_impossible(left)


CHANGES: dict[str, Callable[[Record], Any]] = {
    "it uses other laws": lambda r: r.update(laws=["idempotence"]),
    "it claims": lambda r: r.update(verdict="proved"),
    "a cell of its goal is none": lambda r: r["goal"].update(cells=[4]),
    "cells of its goal are missing": lambda r: r["goal"].update(cells=[0, 1]),
    "an operator that is none": lambda r: r["steps"][3].update(operator=3),
    "reads what is not there": lambda r: r["steps"][2].update(args=[2]),
    "axes that are none": lambda r: r["steps"][2]["choices"].update(axes=[0, 2, 0]),
    "a family that is none": lambda r: r["steps"][2]["choices"].update(family="swizzles"),
    "nothing to choose from": lambda r: r["steps"][2].update(choices=[]),
    "a hole in the way is none": lambda r: r["blocked"][0].update(step=0),
    "another version": lambda r: r.update(version=True),
    "goal asks for what is undefined": lambda r: r["goal"].update(values=["?"]),
}


@pytest.mark.parametrize("why", CHANGES)
def test_what_is_malformed_is_refused(why: str) -> None:
    record = copy.deepcopy(of(SUMS))
    CHANGES[why](record)
    with pytest.raises(CheckError):
        check_impossible(record)  # it was changed
    with pytest.raises(CheckError):
        check_impossible(signed(record))


def test_a_sketch_that_is_solvable_or_too_large_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = "t: [4,3] = ?col_xforms(regs)", "s: [4,3] = ?row_xforms(regs)"
    right = synthesize(load_text(SUMS.replace(one, f"{two}\nt: [4,3] = ?col_xforms(s)")))
    with pytest.raises(SearchError, match="is not impossible"):
        certificate_of_impossible(right)
    monkeypatch.setattr(checker, "_MOST_WORK", 100)
    with pytest.raises(CheckError, match="too many fills"):
        of(SUMS)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("shape", list(product((2, 3, 4, 6, 8), (2, 3, 4, 5))))
def test_the_families_are_those_of_the_search(shape: tuple[int, int]) -> None:
    """Also where a result is shorter or longer than the argument, and along other axes."""
    rows, columns = shape
    wider = ((rows, columns), (rows + 1, columns), (rows, columns - 1), (rows, columns + 2))
    for family, whole, axes in product(("xforms", "rots"), (False, True), ((0, 1, 0), (1, 0, 1))):
        for cells in wider:
            if any(n != m for axis, (n, m) in enumerate(zip(shape, cells, strict=True))
                   if axis != axes[2]):  # fmt: skip
                continue
            name = f"{family}{'_no_group' if whole else ''}"
            said = dict(zip(("main", "second", "out"), axes, strict=True))
            theirs = build(name, said, (shape,), cells).tables
            asked = {"family": family, "axes": list(axes), "whole": whole, "argument": 0}
            ours = tables_of(asked, "it", cells, (shape,), Work(1 << 40), Work(1 << 40))
            assert np.array_equal(np.unique(ours, axis=0), np.unique(theirs, axis=0)), (name, axes)


def test_zeros_and_laws_are_read_as_the_search_reads_them() -> None:
    """A zero vanishes, a fold of one item is that item under the laws, and only there."""
    text = """
x: [4] = range(0, 4)
y: [4] = ?cond_keep(x)
s: [2] = + identity{fold_len=2}(y)
{laws}goal: [2] = [{one}, +(2, 3)]
"""
    none = synthesize(load_text(text.replace("{laws}", "").replace("{one}", "0")))
    record = certificate_of_impossible(none)
    assert not check_impossible(record).open
    lawful = signed({**record, "laws": ["flatten"], "words": []})
    claims = is_true(lawful)
    if claims:
        assert check_impossible(lawful).shown
    else:
        with pytest.raises(CheckError, match="there is a fill"):
            check_impossible(lawful)


def test_plain_claims_need_no_reason() -> None:
    program = load_text(TOGETHER)
    record = plain_record(program, program.goals[0], range(2), [])
    assert check_impossible(record).shown


FOLDS = """
x: [4] = range(0, 4)
y: [4] = ?rots{main=0,second=0,out=0}(x)
s: [2] = fold identity{fold_len=2}(y)
goal: [2] = [max(0, 2), max(1, 3)]
"""


@pytest.mark.parametrize("words", [["fold", "+"], ["fold"], [], ["fold", "fold"]])
def test_what_fold_stands_for_is_checked(words: list[str]) -> None:
    """Were `fold` a sum, no fill would give maxima: what it stands for is the goal's operator."""
    record = certificate_of_impossible(synthesize(load_text(FOLDS)))
    assert not any("stand" in each for each in record["not_covered"])
    kept = [step["operator"] for step in record["steps"] if "operator" in step]
    assert kept == [None, "max"]  # one depth alone: the record has no word any more
    record["steps"][-1]["operator"], record["blocked"] = "fold", []
    assert check_impossible(signed({**record, "words": ["fold", "max"]})).shown
    with pytest.raises(CheckError, match=r"'fold' stands for '(\+|fold)' at depth 1"):
        check_impossible(signed({**record, "words": words}))


def test_what_fold_stands_for_at_two_depths() -> None:
    text = """
x: [4] = range(0, 4)
y: [4] = ?rots{main=0,second=0,out=0}(x)
p: [2] = fold identity{fold_len=2}(y)
s: [2] = fold identity{fold_len=1}(p)
goal: [2] = [min(max(0, 2)), min(max(1, 3))]
"""
    record = certificate_of_impossible(synthesize(load_text(text)))
    for step in record["steps"][-2:]:
        step["operator"] = "fold"
    record["blocked"] = []
    assert check_impossible(signed({**record, "words": ["fold", "max", "min"]})).shown
    for words in (["fold", "min", "max"], ["fold", "max"]):
        with pytest.raises(CheckError, match="'fold' stands for"):
            check_impossible(signed({**record, "words": words}))


def test_under_laws_fold_stands_for_nothing_else() -> None:
    record = certificate_of_impossible(synthesize(load_text(FOLDS)))
    record["steps"][-1]["operator"], record["blocked"] = "fold", []
    with pytest.raises(CheckError, match="'fold' stands for 'fold'"):
        check_impossible(signed({**record, "laws": ["flatten"], "words": []}))
