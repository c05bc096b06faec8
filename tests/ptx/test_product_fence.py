# ruff: noqa: E501 - programs read better with a line each
"""wgmma.fence: registers that are touched, and then belong to a product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.ptx.test_async import HEAD
from tests.ptx.test_warpgroup import ADDED, CLOSE, FILL, LEFT, MADE, START, STORE, STORE_OTHER, WAIT

from warploom import ptx
from warploom.errors import RaceError
from warploom.machine.judges import Cause
from warploom.ptx.emulate.product_fence import _Watched
from warploom.ptx.findings import race_findings

FENCE = "wgmma.fence.sync.aligned;\n"
SUMS = "mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;\n"

CLEAN = {
    "once": FENCE + MADE + CLOSE + WAIT + STORE,
    "sums of products that follow": SUMS + FENCE + ADDED + ADDED + CLOSE + WAIT + STORE,
    "after sums were read": FENCE + MADE + CLOSE + WAIT + STORE + FENCE + MADE + CLOSE + WAIT,
    "the left matrix": FILL + FENCE + LEFT + CLOSE + WAIT + STORE_OTHER,
    "copies of a sum": SUMS + FENCE + ADDED + "mov.f32 %f9, %f0; mov.f32 %f0, %f9;" + ADDED + CLOSE + WAIT + STORE,
    "a loop": f"{SUMS} mov.u32 %r5, 0;\nL: {FENCE}{ADDED}{ADDED}{CLOSE}{WAIT} add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra L; {STORE}",
    "a way that is not gone": f"{SUMS} setp.eq.u32 %p3, %t, 999; {FENCE} @%p3 mov.f32 %f0, 0f3F800000; {ADDED}{CLOSE}{WAIT}{STORE}",
}  # fmt: skip
FOUND = {
    "none at all": (MADE + CLOSE + WAIT + STORE, 10, None),
    "sums that were set": (FENCE + SUMS + ADDED + CLOSE + WAIT + STORE, 12, 11),
    "the left matrix": (FENCE + FILL + LEFT + CLOSE + WAIT + STORE_OTHER, 12, 11),
    "sums that were read": (FENCE + MADE + CLOSE + WAIT + STORE + MADE + CLOSE + WAIT, 15, 14),
    "a copy of another value": (FENCE + "mov.f32 %f9, 0f00000000;" + SUMS.replace("mov.f32 %f0, 0f00000000;", "mov.f32 %f0, %f9;").replace("mov.f32 %f1", "mov.f32 %f8, %f0; mov.f32 %f1") + ADDED + CLOSE + WAIT + STORE, 12, 11),
    "on one way": (f"{SUMS} setp.lt.u32 %p3, %t, 64; {FENCE} @%p3 mov.f32 %f2, 0f3F800000; {ADDED}{CLOSE}{WAIT}{STORE}", 12, 12),
    "behind the fence of a loop": (f"{SUMS} mov.u32 %r5, 0; {FENCE}\nL: {ADDED}{CLOSE}{WAIT} add.f32 %f1, %f1, %f2; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra L; {STORE}", 13, 16),
}  # fmt: skip


def launch(body: str, races: bool | str = "all") -> tuple[ptx.Report, object]:
    text = HEAD.format(parameters=".param .u64 p0", body=START + body)
    module = ptx.load(text, "k.ptx")
    report = module.kernel("k").launch(1, 128, [np.full(128, -1, np.float32)], races=races)  # type: ignore[arg-type]
    return report, module


@pytest.mark.parametrize("name", CLEAN)
def test_no_alarm(name: str) -> None:
    assert not launch(CLEAN[name])[0].races


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    body, product, touched = FOUND[name]
    report, module = launch(body)
    (found,) = race_findings(module, report.races)  # type: ignore[arg-type]
    assert found.error.cause == Cause.REGISTER.value
    assert found.error.span is not None
    assert found.error.span.line == product
    assert "wgmma.fence is missing before the product" in found.error.message
    assert "warpgroup_arrive" in found.error.advice
    if touched is not None:
        assert f"an access at line {touched}" in found.error.message


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
