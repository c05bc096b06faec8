"""A first question before a loop that waits, and loops that do not ask the same in each round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ptx.test_prove import launched, proof_of

from warploom.machine.proof import Reach

# The first warp waits for what the third one stores; the second one has an mbarrier of its own.
# That of the third is the second mbarrier, at which an answer is always no in this run.
KERNEL = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %l<9>;
.shared .align 8 .b64 bars[2];
.shared .align 16 .b32 tile[2];
ld.param.u64 %l1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r2, bars;
mov.u32 %r3, tile;
add.u32 %r4, %r2, 8;
shr.u32 %r5, %r1, 5;
and.b32 %r6, %r1, 31;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r2], 1;
mbarrier.init.shared::cta.b64 [%r4], 1;
READY:
bar.sync 0;
setp.ne.u32 %p2, %r5, 0;
@%p2 bra TELL;
mov.u32 %r7, FIRST;
ASKED
PAST:
ld.shared.b32 %r8, [%r3+4];
mul.wide.u32 %l2, %r1, 4;
add.u64 %l3, %l1, %l2;
st.global.b32 [%l3], %r8;
bra DONE;
TELL:
setp.ne.u32 %p3, %r6, 0;
@%p3 bra DONE;
sub.u32 %r9, %r5, 1;
mad.lo.u32 %r10, %r9, 4, %r3;
mad.lo.u32 %r11, %r9, 8, %r2;
st.shared.b32 [%r10], %r1;
mbarrier.arrive.shared::cta.b64 _, [%r11];
DONE:
ret;
}
"""
ASK = "mbarrier.try_wait.parity.WORD.shared::cta.b64 %p4, [%r7], 0;\n"
PEEK = ASK.replace("WORD", "HOW") + "BETWEEN@%p4 bra PAST;\n"
LOOP = "AGAIN:\n" + ASK.replace("WORD", "acquire.cta") + "@!%p4 bra AGAIN;\n"


def run(asked: str, first: str = "%r4", **options: Any) -> Any:
    text = KERNEL.replace("ASKED", asked).replace("FIRST", first)
    return proof_of(launched(text, [np.zeros(32, np.uint32)], threads=96, **options))


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("how", "between", "first", "right"),
    [
        ("acquire.cta", "", "%r4", True),
        ("relaxed.cta", "", "%r4", False),  # who gets a yes here has acquired nothing
        ("acquire.cluster", "", "%r4", False),
        ("acquire.cta", "add.u32 %r7, %r7, 8;\n", "%r2", False),  # a yes of the other mbarrier
    ],
)
def test_a_first_question_asks_as_the_loop_does(
    how: str, between: str, first: str, right: bool, model: Any
) -> None:
    peek = PEEK.replace("HOW", how).replace("BETWEEN", between)
    proof = run(peek + LOOP, first, model=model)
    assert (proof.reach is Reach.ALL_DATA) == right
    assert right or "waits" in conditions_of(proof)


def conditions_of(proof: Any) -> set[str]:
    return {each.condition for each in proof.failed}


def test_each_round_asks_the_same() -> None:
    """A yes of the first round would be one of another mbarrier."""
    assert run(LOOP).reach is Reach.ALL_DATA
    changed = LOOP.replace("@!%p4", "mov.u32 %r7, %r4;\n@!%p4")
    assert "waits" in conditions_of(run(changed, "%r2"))
    assert run(LOOP.replace("AGAIN:\n", "AGAIN:\nmov.u32 %r7, %r4;\n"), "%r2").failed == ()
