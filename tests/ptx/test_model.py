# ruff: noqa: E501 - programs read better with a line each
"""What the manual forbids and what GPUs get wrong: the same kernels judged by both models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ptx import test_async as single
from tests.ptx import test_cluster as clusters

from warploom.errors import DeviceError
from warploom.machine.judges import Cause

# Each block writes into its neighbour's shared memory, arrives there, and waits at home.
HANDED_ON = f"""setp.eq.u32 %p1, %r0, 0; mov.u32 %r10, bar; @%p1 mbarrier.init.shared.b64 [%r10], 32; fence.mbarrier_init.release.cluster; {clusters.MEET}
{clusters.NEIGHBOUR} {{first}} mapa.shared::cluster.u32 %r11, %r10, %r7;
mbarrier.arrive.{{arrive}}shared::cluster.b64 _, [%r11];
W: mbarrier.try_wait.parity.{{wait}}shared::cta.b64 %p2, [%r10], 0; @!%p2 bra W;
{{then}} {clusters.MEET}"""
WRITTEN = {
    "first": "st.shared::cluster.u32 [%r8], %r4;",
    "then": "ld.shared.u32 %r9, [%r6]; st.global.u32 [%d2], %r9;",
}
READ = {
    "first": f"st.shared.u32 [%r6], %r4; {clusters.MEET} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9;",
    "then": "st.shared.u32 [%r6], 7;",
}


def causes(races: list[Any]) -> set[tuple[Cause, bool]]:
    return {(each.cause, each.breaks) for each in races}


def far(body: str, **options: Any) -> set[tuple[Cause, bool]]:
    return causes(clusters.run(body, **options)[1])


@pytest.mark.parametrize(
    ("arrive", "wait"),
    [
        ("", ""),
        ("", "acquire.cluster."),
        ("release.cluster.", ""),
        ("release.cluster.", "acquire.cta."),
    ],
)
def test_a_scope_that_does_not_reach_the_other_block(arrive: str, wait: str) -> None:
    """What was written is then not seen (cutlass #3324); what was read has been, on every GPU."""
    written, read = (HANDED_ON.format(arrive=arrive, wait=wait, **each) for each in (WRITTEN, READ))
    for model in ("practice", "ptx"):
        assert far(written, model=model) == {(Cause.SCOPE, True)}
    assert far(read) == set()
    assert far(read, model="ptx") == {(Cause.SCOPE, False)}


@pytest.mark.parametrize("body", [WRITTEN, READ])
def test_scopes_that_reach(body: dict[str, str]) -> None:
    text = HANDED_ON.format(arrive="release.cluster.", wait="acquire.cluster.", **body)
    assert far(text, model="ptx") == set()


INITIALISED = f"""setp.eq.u32 %p1, %r0, 0; mov.u32 %r10, bar; @%p1 mbarrier.init.shared.b64 [%r10], 32; {{}} barrier.cluster.arrive{{}}; barrier.cluster.wait;
mapa.shared::cluster.u32 %r11, %r10, %r7; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; {clusters.MEET}"""


@pytest.mark.parametrize(
    ("fence", "arrive", "missing"),
    [("", "", False), ("", ".relaxed", True), ("fence.mbarrier_init.release.cluster;", ".relaxed", False), ("fence.acq_rel.cluster;", ".relaxed", False),
     ("fence.acq_rel.cta;", ".relaxed", True)],
)  # fmt: skip
def test_an_mbarrier_that_another_block_uses(fence: str, arrive: str, missing: bool) -> None:
    """A relaxed barrier of the cluster orders nothing, but what a fence stands before."""
    found = far(INITIALISED.format(fence, arrive))
    assert found == ({(Cause.INIT, True)} if missing else set())


@pytest.mark.parametrize(
    ("fence", "missing"), [("", True), ("fence.mbarrier_init.release.cluster;", False)]
)
def test_an_mbarrier_that_what_another_block_sends_tells(fence: str, missing: bool) -> None:
    """A store under way counts there: the fence orders it as it does an arrival."""
    told = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];"
    sent = "@%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8], %r4, [%r11];"
    begun = INITIALISED.format(fence, ".relaxed")
    body = begun.replace(told, f"{clusters.NEIGHBOUR} {sent} {told}")
    found = far(body, check=False)
    assert found == ({(Cause.INIT, True)} if missing else set())


def test_a_fence_behind_initialisations_orders_nothing_else() -> None:
    body = f"st.shared.u32 [%r6], %r4; fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait; {clusters.NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9; {clusters.MEET}"
    assert far(body, check=False) == {(Cause.ORDER, True)}


def near(body: str, model: Any = "practice") -> set[tuple[Cause, bool]]:
    source, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    return causes(single.run(body, [source, out], races="all", model=model).races)


COPIED = (
    "ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1];\n@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 128;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%l1], 128, [bar];\nJ:\n"
    + single.WAIT.format(n=0, parity=0)
    + "\n"
)


@pytest.mark.parametrize(
    ("fence", "missing"),
    [("", True), ("fence.mbarrier_init.release.cluster;", False), ("fence.proxy.async;", False)],
)
def test_an_mbarrier_that_copies_tell(fence: str, missing: bool) -> None:
    body = f"@%p1 mbarrier.init.shared.b64 [bar], 1; {fence} bar.sync 0;\n{COPIED}"
    assert near(body) == set()
    assert near(body, "ptx") == ({(Cause.INIT, False)} if missing else set())


@pytest.mark.parametrize(
    ("fence", "missing"), [("", True), ("fence.proxy.async.shared::cta;", False)]
)
def test_a_copy_over_what_was_read(fence: str, missing: bool) -> None:
    again = "@!%p1 bra K; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 128;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%l1], 128, [bar];\nK:\n"
    body = f"@%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;\n{COPIED}"
    body += f"shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1]; mul.wide.u32 %l7, %t, 4; add.u64 %l7, %l2, %l7; st.global.u32 [%l7], %r2; {fence} bar.sync 0;\n"
    body += again + single.WAIT.format(n=1, parity=1)
    assert near(body) == set()
    assert near(body, "ptx") == ({(Cause.PROXY, False)} if missing else set())


def test_there_are_two_models() -> None:
    with pytest.raises(DeviceError, match="model='cuda'"):
        near("bar.sync 0;", "cuda")
