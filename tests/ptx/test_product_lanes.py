# ruff: noqa: E501 - programs read better with a line each
"""wgmma is of whole warps: what only some lanes have waited for, before it reads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.test_async import HEAD
from tests.ptx.test_prove_ends import conditions
from tests.ptx.test_warpgroup import CLOSE, MADE, STORE, WAIT

from warploom import ptx
from warploom.machine.judges import Practice
from warploom.machine.proof import Proof, Reach
from warploom.ptx.emulate.asked import Model

# A copy fills the tile, and a product reads it; in between SOME lanes wait.
BODY = f"""@%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
ld.param.u64 %l1, [p0]; ld.param.u64 %l4, [p1]; mul.wide.u32 %l3, %t, 4; add.u64 %l4, %l4, %l3; mov.u64 %l2, 0;
setp.ne.u32 %p4, 0, 0; and.b32 %r3, %t, 31; setp.ne.u32 %p3, %r3, FIRST;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16384;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%l1], 16384, [bar];
SKIP
W: mbarrier.try_wait.parity.acquire.cta.shared.b64 %p2, [bar], 0; @!%p2 bra W;
N: MEET
wgmma.fence.sync.aligned;
{MADE}{CLOSE}{WAIT}
""" + STORE.replace("%l1", "%l4")
ONE = "@%p3 bra N;"


def proved(first: int, skip: str, meet: str, model: Model) -> Proof:
    body = BODY.replace("FIRST", str(first)).replace("SKIP", skip).replace("MEET", meet)
    text = HEAD.format(parameters=".param .u64 p0, .param .u64 p1", body=body)
    given = [np.zeros(16384, np.uint8), np.zeros(128, np.float32)]
    report = ptx.load(text, "k.ptx").kernel("k").launch(
        1, 128, given, races="all", prove=True, model=model
    )  # fmt: skip
    assert report.proof is not None
    return report.proof


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("skip", "meet"), [("", ""), (ONE, "bar.warp.sync -1;"), (ONE, "bar.sync 0;")]
)
def test_all_lanes_know_of_the_copy(skip: str, meet: str, model: Model) -> None:
    for first in (0, 5) if skip else (0,):
        proof = proved(first, skip, meet, model)
        assert proof.reach is Reach.ALL_DATA
        assert Practice.TOGETHER.value not in proof.assumed


def test_only_the_first_lane_knows() -> None:
    """By the manual a product orders nothing between its lanes."""
    proof = proved(0, ONE, "", "practice")
    assert proof.reach is Reach.ALL_DATA
    assert Practice.TOGETHER.value in proof.assumed
    assert conditions(proved(0, ONE, "", "ptx")) == {"races"}


@pytest.mark.parametrize("model", ["practice", "ptx"])
def test_only_another_lane_knows(model: Model) -> None:
    assert conditions(proved(5, ONE, "", model)) == {"races"}
