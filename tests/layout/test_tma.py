"""Tiles that tensor copies fill: where a copy puts each element, and which of them is best."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from bench.layout.tma_device import OUT as RECORD
from bench.layout.tma_device import copied, copy_job, is_where_it_says
from bench.ptx.launches import on_emulator

from warploom.errors import CheckError, UnsupportedError, WarploomError
from warploom.layout.formats.tma import box_of, boxes
from warploom.layout.language.evaluate import evaluate
from warploom.layout.patterns.named import pattern
from warploom.layout.patterns.pattern import parse_pattern
from warploom.layout.solver.certificate import SPANS, certificate, digest
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.trust.layout import check_layout


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["ldmatrix-tma:64x64:f16", "ldmatrix-tma:32x80:f16", "ldmatrix-tma:24x32:f32"]
)
def test_a_layout_is_where_tensor_copies_put_elements(name: str) -> None:
    problem = pattern(name)
    found = copied(problem)
    assert {box.mode.name for box in found} == set(SPANS)
    assert len({box.width for box in found}) > 1
    for box in found:
        memory = on_emulator(copy_job(problem, box))[2][1]
        assert is_where_it_says(problem, box, memory), box


def test_short_rows_begin_where_a_gpu_was_seen_to_put_them() -> None:
    """Memory was not cleared: what was found first may be left from a copy before, further down."""
    record = json.loads(RECORD.read_text())
    assert all(row["right"] for row in record["boxes"])
    for seen in record["short_rows"]:
        problem = pattern(f"ldmatrix-tma:{seen['tile']}")
        box = next(b for b in boxes(problem) if b.mode.name == seen["mode"])
        first = np.arange(problem.rows) * problem.columns
        places = evaluate(box.layout(problem), first) * problem.element_bytes
        equal = places == seen["first_bytes"]
        assert equal.sum() >= 7
        assert (places >= seen["first_bytes"]).all()


def test_the_best_of_all_boxes_with_its_proof() -> None:
    """128B is what everybody takes for halves of 64; 80 columns go without any swizzle."""
    for name, text in (("64x64", "S<3,3,3> o (64,64)"), ("64x80", "(64,(40,2)):(40,(1,2560))")):
        task = Task(pattern(f"ldmatrix-tma:{name}:f16"))
        solved = solve(task, "tma")
        assert solved.best is not None
        assert solved.best.cost == task.least
        assert solved.best.score.per_request == (Fraction(4),)
        record = certificate(task, solved)
        assert record["layout"].startswith(text)
        check_layout(record)


def test_a_class_beside_others_and_its_proof() -> None:
    """A tile that lanes store: what TMA's modes cost there, each of them counted again."""
    task = Task(pattern("ldmatrix:64x96:f16"))
    solved = solve(task, "tma")
    assert solved.proved
    assert solved.best is not None
    assert float(sum(solved.best.score.per_request)) == pytest.approx(32 / 3)
    record = certificate(task, solved)
    shown = check_layout(record)
    assert f"no layout of the class tma costs less than {solved.least}" in shown.shown
    assert solved.least == sum(solved.best.score.wavefronts)
    fewer = record | {"proof": {"by": "members", "members": record["proof"]["members"][1:]}}
    with pytest.raises(CheckError, match="not all members"):
        check_layout(fewer | {"digest": digest(fewer)})


def test_a_certificate_of_a_copied_tile_is_of_no_other_class() -> None:
    task = Task(pattern("ldmatrix-tma:64x64:f16"))
    other = replace(task.problem, copies=())
    record = certificate(Task(other), solve(Task(other), "xor"))
    record["problem"]["copies"] = ["store"]
    with pytest.raises(CheckError, match="no copy writes"):
        check_layout(record | {"digest": digest(record)})


def test_which_copies_write_a_layout() -> None:
    problem = pattern("ldmatrix-tma:64x128:f16")
    for box in boxes(problem):
        places = evaluate(box.layout(problem), np.arange(problem.size, dtype=np.int64))
        again = box_of(places, problem)
        assert again is not None
        assert again.layout(problem) == box.layout(problem)
    padded = np.arange(problem.size) + np.arange(problem.size) // 128 * 8
    assert box_of(padded, problem) is None


COPIED = """shape = [64, 64]
element = "f16"
[[access]]
name = "fill"
kind = "tma"
{more}
"""
LANES = """[[access]]
name = "rows"
steps = 16
bytes = 16
index = ["step // 8 * 32 + lane", "step % 8 * 8"]
"""


def test_a_copy_in_a_file() -> None:
    problem = parse_pattern(COPIED.format(more=LANES))
    assert problem.copies == ("fill",)
    assert [access.name for access in problem.accesses] == ["rows"]
    assert solve(Task(problem), "tma").proved


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('index = "lane"', "a tensor copy has no 'index'"),
        ("weight = 2", "a tensor copy has no 'weight'"),
        ("", "there is no access by lanes"),
        (LANES.replace("* 32 + lane", "* 64 + lane"), "coordinate 64 on axis 0"),
        (LANES.replace("bytes = 16", "bytes = 6"), "rows: a vector of 3"),
    ],
)
def test_what_a_copy_refuses(more: str, message: str) -> None:
    with pytest.raises(WarploomError, match=message) as caught:
        parse_pattern(COPIED.format(more=more))
    assert caught.value.span is not None


def test_where_a_copy_cannot_be() -> None:
    with pytest.raises(CheckError, match="gfx942 has no tensor copies"):
        pattern("ldmatrix-tma:64x64:f16@gfx942")
    with pytest.raises(UnsupportedError, match=r"a tensor copy \(store\) moves the tile"):
        solve(Task(pattern("ldmatrix-tma:64x64:f16")), "mixed")
