"""Lanes that meet at shuffles, after one of them has acquired what another warp wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx

# The first warp writes and releases; lane 0 of the second acquires, and meets the others.
KERNEL = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
.shared .align 4 .b8 s[256];
.shared .align 4 .b8 flag[4];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 31;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd1, %rd1, %rd2;
mov.u32 %r3, s;
mad.lo.u32 %r4, %r2, 4, %r3;
xor.b32 %r5, %r2, 1;
mad.lo.u32 %r5, %r5, 4, %r3;
setp.ne.u32 %p1, %r2, 0;
setp.gt.u32 %p2, %r1, 31;
@!%p1 st.shared.u32 [flag], 0;
bar.sync 0;
@%p2 bra SECOND;
st.shared.u32 [%r4], %r1;
bar.warp.sync -1;
@!%p1 st.release.cta.shared.u32 [flag], 1;
bra END;
SECOND:
@%p1 bra MET;
ASK:
LOOK
setp.eq.u32 %p3, %r6, 0;
@%p3 bra ASK;
MET:
MEET
THEN
END:
ret;
}
"""
LOOK = "ld.acquire.cta.shared.u32 %r6, [flag];"
MEET = "shfl.sync.idx.b32 %r7, %r6, 0, 31, -1;"
READ = "ld.shared.u32 %r8, [%r4];\nst.global.u32 [%rd1], %r8;"
OVER = READ + "\nvote.sync.ballot.b32 %r9, %p1, -1;\nst.shared.u32 [%r5], %r2;"
OWN = "st.shared.u32 [%r4+128], %r2;\nshfl.sync.idx.b32 %r9, %r2, 0, 31, -1;\n"
OWN += "ld.shared.u32 %r8, [%r5+128];\nst.global.u32 [%rd1], %r8;"


def races(meet: str, then: str, look: str = LOOK, model: str = "practice") -> list[Any]:
    text = KERNEL.replace("LOOK", look).replace("MEET", meet).replace("THEN", then)
    text = text.replace("mov.u32 %r3, s;", "mov.u32 %r3, s;\nmov.u32 %r6, 1;")
    text = text.replace("@!%p1 st.shared.u32 [flag], 0;", "setp.ne.u32 %p4, %r1, 0;\n"
                        "@!%p4 st.shared.u32 [flag], 0;")  # fmt: skip
    kernel = ptx.load(text, "k.ptx").kernel("k")
    options: dict[str, Any] = {"model": model}
    return kernel.launch(1, 64, [np.zeros(32, np.uint32)], races="all", **options).races


@pytest.mark.parametrize("meet", [MEET, "redux.sync.add.u32 %r7, %r6, -1;", "bar.warp.sync -1;"])
def test_what_one_lane_acquired_all_know_who_met_it(meet: str) -> None:
    assert races(meet, READ) == []
    assert races(meet, OVER) == []


def test_by_the_manual_a_shuffle_orders_nothing() -> None:
    found = races(MEET, OVER, model="ptx")
    assert len(found) == 2 + 1  # what is read, and what is written over
    assert not any(race.breaks for race in found)
    assert races("bar.warp.sync -1;", READ, model="ptx") == []


@pytest.mark.parametrize(
    ("meet", "then", "look"),
    [
        ("", READ, LOOK),  # nobody met lane 0
        (MEET.replace("-1", "1").replace("shfl", "@!%p1 shfl"), READ, LOOK),
        (MEET, READ, LOOK.replace("acquire.cta", "relaxed.cta")),
        (MEET, OWN, LOOK),  # what lanes of one warp write is ordered by no shuffle
    ],
)
def test_what_is_still_a_race(meet: str, then: str, look: str) -> None:
    found = races(meet, then, look)
    assert found
    assert all(race.breaks for race in found)
