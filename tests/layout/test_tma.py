"""Tiles that tensor copies fill: where a copy puts each element, and which of them is best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.ptx.test_async import BEGIN, WAIT, run

from warploom import ptx
from warploom.errors import CheckError, UnsupportedError, WarploomError
from warploom.layout.access import Problem
from warploom.layout.certificate import SPANS, certificate, digest
from warploom.layout.evaluate import evaluate
from warploom.layout.named import pattern
from warploom.layout.pattern import parse_pattern
from warploom.layout.solve import solve
from warploom.layout.task import Task
from warploom.layout.tma import Box, box_of, boxes
from warploom.trust.layout import check_layout

LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


def copied(problem: Problem, box: Box) -> np.ndarray:
    """The tile in shared memory, as the emulator's tensor copies fill it, each element a number."""
    size = problem.element_bytes
    dtype = np.dtype(f"u{size}")
    array = np.arange(problem.size, dtype=dtype).reshape(problem.rows, problem.columns)
    starts = [(x, y) for x in range(0, problem.columns, box.width)
              for y in range(0, problem.rows, box.height)]  # fmt: skip
    body = BEGIN + "ld.param.u64 %l2, [p1]; mov.b64 %l4, p0; cvta.param.u64 %l5, %l4;\n@!%p1 bra J;"
    body += f"mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], {problem.size * size};\n"
    for number, (x, y) in enumerate(starts):
        at = number * box.height * box.width * size
        body += f"mov.u32 %r4, {x}; mov.u32 %r5, {y}; add.u32 %r6, %s, {at};"
        body += f"{LOAD} [%r6], [%l5, {{%r4, %r5}}], [bar];\n"
    body += "J:\n" + WAIT.format(n=0, parity=0) + "\nmov.u32 %r1, %t;\n"
    body += "L: shl.b32 %r2, %r1, 2; add.u32 %r3, %s, %r2; ld.shared.u32 %r6, [%r3];"
    body += "cvt.u64.u32 %l6, %r2; add.u64 %l6, %l2, %l6; st.global.u32 [%l6], %r6;\n"
    body += f"add.u32 %r1, %r1, 32; setp.lt.u32 %p3, %r1, {problem.size * size // 4}; @%p3 bra L;"
    out = np.zeros(problem.size * size // 4, np.uint32)
    swizzle = SPANS[box.mode.name]
    run(body, [ptx.tensor_map(array, (box.height, box.width), swizzle), out])
    return out.view(dtype)


@pytest.mark.parametrize(
    "name", ["ldmatrix-tma:64x64:f16", "ldmatrix-tma:32x80:f16", "ldmatrix-tma:24x32:f32"]
)
def test_a_layout_is_where_tensor_copies_put_elements(name: str) -> None:
    problem = pattern(name)
    numbers = np.arange(problem.size, dtype=np.int64)
    found = list(boxes(problem))
    assert {box.mode.name for box in found} == set(SPANS)
    assert len({box.width for box in found}) > 1
    for box in found:
        places = evaluate(box.layout(problem), numbers)
        assert np.array_equal(copied(problem, box)[places], numbers), box


def test_the_best_of_all_boxes_with_its_proof() -> None:
    """128B is what everybody takes for halves of 64; 80 columns go without any swizzle."""
    for name, text in (("64x64", "S<3,3,3> o (64,64)"), ("64x80", "tile<80,64,40> o (64,80)")):
        task = Task(pattern(f"ldmatrix-tma:{name}:f16"))
        solved = solve(task, "tma")
        assert solved.best is not None
        assert solved.best.cost == task.least == 4
        record = certificate(task, solved)
        assert record["layout"].startswith(text)
        check_layout(record)


def test_a_class_beside_others_and_its_proof() -> None:
    """A tile that lanes store: what TMA's modes cost there, each of them counted again."""
    task = Task(pattern("ldmatrix:64x96:f16"))
    solved = solve(task, "tma")
    assert solved.proved
    assert solved.best is not None
    assert float(solved.best.cost) == pytest.approx(32 / 3)
    record = certificate(task, solved)
    shown = check_layout(record)
    assert "no layout of the class tma costs less than 32/3" in shown.shown
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
