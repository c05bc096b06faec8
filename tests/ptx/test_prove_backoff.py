"""Waits that sleep longer and longer, by a counter and a clock, as those of libcu++ do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ptx.test_prove import launched, proof_of

from warploom.machine.proof import Reach

# A few rounds without sleep, then so long as the time that went by says.
KERNEL = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %l<20>;
.shared .align 8 .b64 bar;
.shared .align 16 .b32 tile[64];
ld.param.u64 %l1, [p];
ld.param.u64 %l2, [q];
mov.u32 %r1, %tid.x;
mov.u32 %r2, bar;
mov.u64 %l10, 0;
mov.u32 %r7, 0;
mov.u64 %l8, 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r2], 64;
READY:
bar.sync 0;
shl.b32 %r3, %r1, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
cvt.u64.u32 %l3, %r3;
add.u64 %l4, %l1, %l3;
ld.global.u32 %r5, [%l4];
st.shared.u32 [%r4], %r5;
mbarrier.arrive.shared::cta.b64 %l5, [%r2], 1;
mov.u64 %l6, %globaltimer;
mbarrier.try_wait.shared.b64 %p2, [%r2], %l5;
selp.b32 %r6, 1, 0, %p2;
setp.ne.s32 %p3, %r6, 0;
@%p3 bra DONE;
mov.u32 %r7, 0;
AGAIN:
setp.lt.s32 %p4, %r7, 2;
@%p4 bra COUNT;
bra.uni TIME;
COUNT:
add.s32 %r7, %r7, 1;
bra.uni ASK;
TIME:
mov.u64 %l7, %globaltimer;
sub.s64 %l8, %l7, %l6;
setp.lt.s64 %p5, %l8, 4000;
@%p5 bra SHORT;
nanosleep.u32 1000;
bra.uni ASK;
SHORT:
setp.lt.s64 %p6, %l8, 40;
@%p6 bra ASK;
cvt.u32.u64 %r8, %l8;
nanosleep.u32 %r8;
// HERE
ASK:
mbarrier.try_wait.shared.b64 %p7, [%r2], %l5;
selp.b32 %r9, 1, 0, %p7;
setp.eq.s32 %p8, %r9, 0;
@%p8 bra AGAIN;
DONE:
xor.b32 %r10, %r3, 252;
mov.u32 %r12, tile;
add.u32 %r10, %r10, %r12;
ld.shared.u32 %r11, [%r10];
add.u64 %l9, %l2, %l3;
st.global.u32 [%l9], %r11;
END:
ret;
}
"""


def run(text: str, **options: Any) -> Any:
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    return launched(text, [x, y], threads=64, **options)


@pytest.mark.parametrize("schedule", [None, 1, 2, 3])
def test_a_clock_decides_only_how_long_to_sleep(schedule: int | None) -> None:
    proof = proof_of(run(KERNEL, schedule=schedule))
    assert proof.failed == ()
    assert proof.reach is Reach.ALL_DATA


# What is done while it waits, or tells afterwards how long that took: what is written so, and the
# condition that fails.
AWAY = "add.u64 %l9, %l2, %l3;"
TELLS = {
    "a branch by a count": ("DONE:", "DONE:\nsetp.gt.u32 %p4, %r7, 1;\n@%p4 bra END;", "order"),
    "an address by the time": (
        AWAY, AWAY + "\nand.b64 %l8, %l8, 4;\nadd.u64 %l9, %l9, %l8;", "order",
    ),
    "an address by which way it went": (AWAY, AWAY + "\nadd.u64 %l9, %l9, %l10;", "order"),
    "a way out by the time": ("@%p5 bra SHORT;", "@%p5 bra DONE;", "waits"),
    "an exit by the time": ("@%p5 bra SHORT;", "@%p5 exit;", "waits"),
    "a store while it waits": ("// HERE", "st.global.u32 [%l2], %r8;", "waits"),
    "a loop within": ("// HERE", "@%p6 bra SHORT;", "waits"),
    "another wait on some ways": (
        "// HERE", "mbarrier.try_wait.shared.b64 %p7, [%r2], %l5;", "waits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TELLS)
def test_what_tells_how_long_a_wait_took_is_not_proved(name: str) -> None:
    old, new, failed = TELLS[name]
    assert old in KERNEL
    text = KERNEL.replace(old, new).replace("// HERE", "mov.u64 %l10, 4;")
    proof = proof_of(run(text))
    assert failed in {each.condition for each in proof.failed}
    assert proof.reach is Reach.THIS_SCHEDULE
