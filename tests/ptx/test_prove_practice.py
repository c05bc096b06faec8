"""What a proof by practice says that it assumes: each rule of GPUs that mattered, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ptx.test_prove_aligned import ENDS
from tests.ptx.test_prove_aligned import LOAD as READ_ENDED
from tests.ptx.test_prove_aligned import STORE as STORE_ENDING
from tests.ptx.test_prove_ends import WAIT, conditions, proved
from tests.ptx.test_prove_places import ACROSS, INTO, START, STORE, SUM

from warploom.machine.judges import Practice
from warploom.machine.proof import Reach

READ = "ld.shared.u32 %r14, [%r9];\n"
FAR = WAIT.replace("try_wait.parity", "try_wait.parity.acquire.cluster")
# A block copies over what its threads have read.
OVER = """
shl.b32 %r8, %r1, 2;
add.u32 %r9, %r8, %r5;
st.shared.u32 [%r9], %r1;
ld.shared.u32 %r10, [%r9+8];
FENCE
bar.sync 0;
@%p1 bra ASK;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 128, [%r3];
"""


def told(body: str, rule: Practice, **options: Any) -> bool:
    """Whether a proof by practice assumes a rule; the manual refuses what needs one."""
    proof = proved(body, **options)
    assert proof.reach is Reach.ALL_DATA
    needed = {each for each in proof.assumed if each in {one.value for one in Practice}}
    assert needed in (set(), {rule.value})
    by_manual = proved(body, model="ptx", **options)
    assert (by_manual.reach is Reach.ALL_DATA) == (not needed)
    assert conditions(by_manual) <= {"races", "aligned"}
    return bool(needed)


@pytest.mark.parametrize("way", [STORE, SUM, ACROSS, INTO])
def test_a_wait_in_the_scope_of_the_block_for_what_another_sent(way: str) -> None:
    sent = START.replace("SENT", way).replace(WAIT, WAIT + READ)
    assert told(sent, Practice.NARROW, cluster=2)
    assert not told(sent.replace(WAIT, FAR), Practice.NARROW, cluster=2)


def test_a_copy_over_what_was_read() -> None:
    body = OVER.replace("st.shared.u32 [%r9], %r1;\n", "").replace("[%r9+8]", "[%r9]") + WAIT
    fill = "shl.b32 %r8, %r1, 2;\nadd.u32 %r9, %r8, %r5;\nst.shared.u32 [%r9], %r1;\n"
    fill += "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
    assert told(fill + body.replace("FENCE", ""), Practice.OVERTAKES)
    assert not told(fill + body.replace("FENCE", "fence.proxy.async;"), Practice.OVERTAKES)


def test_threads_that_end_before_a_barrier() -> None:
    body = ENDS.replace("MEET", "bar.sync")
    memory = body.replace("STORE", STORE_ENDING).replace("LOAD", READ_ENDED)
    for each in (memory, body.replace("STORE", "").replace("LOAD", "")):
        assert told(each, Practice.ENDED, threads=64)
    assert not told(memory.replace("@%p2 exit;\n", ""), Practice.ENDED, threads=64)
