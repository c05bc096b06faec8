# ruff: noqa: E501 - programs read better with a line each
"""wgmma.fence: registers that are touched, and then belong to a product."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.ptx.test_async import HEAD
from tests.ptx.test_warpgroup import ADDED, CLOSE, FILL, LEFT, MADE, START, STORE, STORE_OTHER, WAIT

from warploom import ptx
from warploom.errors import RaceError
from warploom.machine.judges import Cause
from warploom.machine.proof import Reach
from warploom.ptx.emulate.product_fence import COPIES, _Watched
from warploom.ptx.findings import race_findings

FENCE = "wgmma.fence.sync.aligned;\n"
SUMS = "mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;\n"

WIDE = ADDED.replace("m64n8k16", "m64n16k16").replace("%f3}", "%f3, %f4, %f5, %f6, %f7}")
SUM_LEFT = LEFT.replace("%r10, %r11, %r12, %r13", "%f0, %f1, %f2, %f3")

CLEAN = {
    "once": FENCE + MADE + CLOSE + WAIT + STORE,
    "sums of products that follow": SUMS + FENCE + ADDED + ADDED + CLOSE + WAIT + STORE,
    "after sums were read": FENCE + MADE + CLOSE + WAIT + STORE + FENCE + MADE + CLOSE + WAIT,
    "the left matrix": FILL + FENCE + LEFT + CLOSE + WAIT + STORE_OTHER,
    "copies of a sum": SUMS + FENCE + ADDED + "mov.f32 %f9, %f0; mov.f32 %f0, %f9;" + ADDED + CLOSE + WAIT + STORE,
    "one left matrix of two": FILL + FENCE + LEFT + LEFT.replace("%f4, %f5, %f6, %f7", "%f0, %f1, %f2, %f3") + CLOSE + WAIT + STORE_OTHER,
    "two shapes, a fence": SUMS + FENCE + ADDED + FENCE + WIDE + CLOSE + WAIT + STORE,
    "two shapes of other sums": SUMS + FENCE + ADDED + WIDE.replace("%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7", "%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17").replace("%p5", "%p4") + CLOSE + WAIT + STORE,
    "a loop": f"{SUMS} mov.u32 %r5, 0;\nL: {FENCE}{ADDED}{ADDED}{CLOSE}{WAIT} add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra L; {STORE}",
    "a way that is not gone": f"{SUMS} setp.eq.u32 %p3, %t, 999; {FENCE} @%p3 mov.f32 %f0, 0f3F800000; {ADDED}{CLOSE}{WAIT}{STORE}",
}  # fmt: skip
FOUND = {
    "none at all": (MADE + CLOSE + WAIT + STORE, 10, None),
    "sums that were set without a fence": (SUMS + ADDED + CLOSE + WAIT + STORE, 11, None),
    "sums that are set anew": (FENCE + SUMS + ADDED + CLOSE + WAIT + SUMS + ADDED + CLOSE + WAIT + STORE, 16, 15),
    "the left matrix": (FILL + FENCE + "add.u32 %r10, %r10, 1;\n" + LEFT + CLOSE + WAIT + STORE_OTHER, 13, 12),
    "sums that were read": (FENCE + MADE + CLOSE + WAIT + STORE + MADE + CLOSE + WAIT, 15, 14),
    "another shape": (SUMS + FENCE + ADDED + WIDE + CLOSE + WAIT + STORE, 13, 12),
    "another shape, of a copy": (SUMS + FENCE + ADDED + "mov.f32 %f9, %f0; mov.f32 %f0, %f9;\n" + WIDE + CLOSE + WAIT + STORE, 14, 12),
    "a sum as left matrix": (FENCE + MADE + CLOSE + WAIT + SUM_LEFT + CLOSE + WAIT + STORE_OTHER, 14, 11),
    "a left matrix as sum": (FILL + FENCE + LEFT + CLOSE + WAIT + ADDED.replace("%f3", "%r13") + CLOSE + WAIT, 15, 12),
    "on one way": (f"{SUMS} setp.lt.u32 %p3, %t, 64; {FENCE} @%p3 add.f32 %f2, %f2, %f2; {ADDED}{CLOSE}{WAIT}{STORE}", 12, 12),
    "behind the fence of a loop": (f"{SUMS} mov.u32 %r5, 0; {FENCE}\nL: {ADDED}{CLOSE}{WAIT} add.f32 %f1, %f1, %f2; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra L; {STORE}", 13, 16),
}  # fmt: skip


def launch(
    body: str, races: bool | Literal["all"] = "all", **options: Any
) -> tuple[ptx.Report, ptx.LoadedModule]:
    text = HEAD.format(parameters=".param .u64 p0", body=START + body)
    module = ptx.load(text, "k.ptx")
    given = [np.full(128, -1, np.float32)]
    return module.kernel("k").launch(1, 128, given, races=races, **options), module


@pytest.mark.parametrize("name", CLEAN)
def test_no_alarm(name: str) -> None:
    assert not launch(CLEAN[name])[0].races


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    body, product, touched = FOUND[name]
    report, module = launch(body)
    (found,) = race_findings(module, report.races)
    assert found.error.cause == Cause.REGISTER.value
    assert found.error.span is not None
    assert found.error.span.line == product
    assert "wgmma.fence is missing before the product" in found.error.message
    assert "warpgroup_arrive" in found.error.advice
    if touched is not None:
        assert f"an access at line {touched}" in found.error.message


COPIED = {
    "to the left matrix": (FILL.replace("%r10", "%r9") + FENCE + "mov.b32 %r10, %r9;\n" + LEFT + CLOSE + WAIT + STORE_OTHER, 13),
    "of a sum": (SUMS + FENCE + "mov.f32 %f9, %f0;\n" + ADDED + CLOSE + WAIT + STORE, 13),
    "a constant": (FENCE + SUMS + ADDED + CLOSE + WAIT + STORE, 12),
    "a constant and its copy": (FENCE + SUMS.replace("%f1, 0f00000000", "%f1, %f0") + ADDED + CLOSE + WAIT + STORE, 12),
    "a copy of another value": (FENCE + "mov.f32 %f9, 0f00000000;" + SUMS.replace("mov.f32 %f0, 0f00000000;", "mov.f32 %f0, %f9;").replace("mov.f32 %f1", "mov.f32 %f8, %f0; mov.f32 %f1") + ADDED + CLOSE + WAIT + STORE, 12),
    "there and back": (SUMS + FENCE + ADDED + "mov.f32 %f9, %f0; mov.f32 %f0, %f9;\n" + ADDED + CLOSE + WAIT + STORE, 14),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIED)
def test_a_copy_is_an_access_by_the_manual(name: str) -> None:
    body, line = COPIED[name]
    report, module = launch(body, model="ptx")
    (found,) = race_findings(module, report.races)
    assert not found.error.breaks
    assert found.error.span is not None
    assert found.error.span.line == line


@pytest.mark.parametrize("name", COPIED)
def test_that_copies_are_undone_is_assumed(name: str) -> None:
    report, _ = launch(COPIED[name][0], prove=True)
    assert not report.races
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    assert COPIES in report.proof.assumed


def test_nothing_is_assumed_without_copies() -> None:
    report, _ = launch(CLEAN["the left matrix"], prove=True)
    assert report.proof is not None
    assert COPIES not in report.proof.assumed


def test_the_first_ends_a_launch_that_wants_one() -> None:
    with pytest.raises(RaceError, match=r"wgmma\.fence is missing"):
        launch(MADE + CLOSE + WAIT + STORE, races=True)


@pytest.mark.parametrize(
    "path",
    [
        "tests/ptx/hopper/gemm.ptx",
        "tests/without_gpu/hopper/triton_roles.ptx",
        "tests/without_gpu/hopper/gluon_ring.ptx",
    ],
)
def test_what_compilers_write_is_not_looked_at(path: str) -> None:
    """There is a fence on every way, so that nothing is to be followed while they run."""
    text = Path(path).read_text()
    for fenced in (True, False):
        kernel = ptx.load(
            text if fenced else text.replace("wgmma.fence.sync.aligned;", ""), path
        ).kernel()
        found = kernel._lookup(kernel.name)
        assert found is not None
        assert bool(_Watched(found[1]).suspect) != fenced
