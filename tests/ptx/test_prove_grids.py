# ruff: noqa: E501 - programs read better with a line each
"""Proofs of kernels whose grid meets, as `grid.sync()` of cooperative groups is compiled."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.test_prove_ends import conditions

from warploom.errors import DeadlockError, UnsupportedError
from warploom.machine.proof import Proof, Reach
from warploom.ptx import load
from warploom.ptx.emulate.asked import Model
from warploom.ptx.prove.certificate import certificate

BLOCKS, THREADS = 4, 64
HEAD = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out)
{
.reg .pred %p<9>;
.reg .b32 %r<30>;
.reg .b64 %rd<20>;
.shared .align 4 .b32 s;
ld.param.u64 %rd1, [data];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %envreg2;
mov.u32 %r2, %envreg1;
cvt.u64.u32 %rd3, %r1;
cvt.u64.u32 %rd4, %r2;
bfi.b64 %rd5, %rd4, %rd3, 32, 32;
add.s64 %rd6, %rd5, 4;
mov.u32 %r3, %tid.x;
mov.u32 %r4, %ctaid.x;
mov.u32 %r5, %nctaid.x;
mad.lo.u32 %r6, %r4, 64, %r3;
mul.wide.u32 %rd7, %r6, 4;
add.s64 %rd7, %rd1, %rd7;
xor.b32 %r7, %r6, 255;
mul.wide.u32 %rd8, %r7, 4;
add.s64 %rd8, %rd1, %rd8;
mul.wide.u32 %rd9, %r6, 4;
add.s64 %rd9, %rd2, %rd9;
setp.ne.u32 %p1, %r3, 0;
setp.eq.u32 %p2, %r4, 0;
mov.u32 %r8, 0x80000001;
sub.u32 %r9, %r8, %r5;
selp.b32 %r10, %r9, 1, %p2;
mov.u32 %r15, 0;
"""
# Whatever block comes first or last, thread 0 of each adds, and waits for the bit to turn.
SYNC = """
barrier.sync 0;
@%p1 bra MET{n};
atom.add.release.gpu.u32 %r{old}, [%rd6], %r10;
ASK{n}:
ld.acquire.gpu.u32 %r12, [%rd6];
xor.b32 %r13, %r12, %r{old};
setp.gt.s32 %p3, %r13, -1;
@%p3 bra ASK{n};
MET{n}:
barrier.sync 0;
"""
LOOP = SYNC.format(n=0, old=11)
WRITE, READ = (
    "st.global.u32 [%rd7], %r6;",
    "ld.global.u32 %r14, [%rd8];\nst.global.u32 [%rd9], %r14;",
)
TWICE = f"TURN:\n{WRITE}\n{LOOP}\n{READ}\nSYNC\nadd.u32 %r15, %r15, 1;\nsetp.lt.u32 %p4, %r15, 3;\n@%p4 bra TURN;\n"


def second() -> str:
    """The same again, with registers of its own."""
    again = SYNC.format(n=1, old=16)
    for number in (12, 13):
        again = again.replace(f"%r{number}", f"%r{number + 5}")
    return again.replace("%p3", "%p5")


def proved(body: str, model: Model = "practice") -> Proof:
    kernel = load(HEAD + body + "\nret;\n}\n", "k.ptx").kernel("k")
    given = [np.zeros(BLOCKS * THREADS, np.uint32) for _ in range(2)]
    report = kernel.launch(BLOCKS, THREADS, given, races="all", prove=True, model=model)
    assert report.proof is not None
    return report.proof


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    "body", [WRITE + LOOP + READ, TWICE.replace("SYNC", second()),
             (WRITE + LOOP + READ).replace("gt.s32 %p3, %r13, -1", "ge.s32 %p3, %r13, 0"),
             (WRITE + LOOP + READ).replace("gt.s32 %p3, %r13, -1", "lt.s32 %p3, %r13, 0").replace("@%p3", "@!%p3")],
)  # fmt: skip
def test_a_grid_that_meets(body: str, model: Model) -> None:
    proof = proved(body, model)
    assert proof.reach is Reach.ALL_DATA
    assert not [each for each in proof.assumed if "blocks" in each]  # a driver sees to that


@pytest.mark.parametrize(
    ("body", "failed"),
    [
        (WRITE + READ, {"races"}),
        (TWICE.replace("SYNC", ""), {"races"}),  # a later round writes what others still read
        (WRITE + LOOP.replace("barrier.sync 0;\n", "", 1) + READ, {"races"}),
        ((WRITE + LOOP + READ).replace("add.release", "add.relaxed"), {"memory", "order", "data", "races"}),
        ((WRITE + LOOP + READ).replace("ld.acquire", "ld.relaxed"), {"memory", "order", "data", "races"}),
        (WRITE + LOOP.replace("ASK0:", "st.global.u32 [%rd9], %r11;\nASK0:") + READ, {"memory", "order", "data"}),  # who came first
        (WRITE + LOOP.replace("MET0:", "st.global.u32 [%rd9], %r12;\nMET0:") + READ, {"memory", "order", "data"}),
        (WRITE + LOOP.replace("xor.b32", "or.b32") + READ, {"memory", "order", "data"}),
        ("@!%p1 st.global.u32 [%rd6], 0;\nbarrier.sync 0;\n" + WRITE + LOOP + READ, {"races", "flags"}),
    ],
)  # fmt: skip
def test_what_is_no_meeting_of_the_grid(body: str, failed: set[str]) -> None:
    proof = proved(body)
    assert proof.reach is not Reach.ALL_DATA
    assert conditions(proof) <= failed
    assert conditions(proof) & {"races", "order", "flags"}


@pytest.mark.parametrize(
    "other", ["setp.eq.u32 %p2, %r4, 9;\n", "setp.lt.u32 %p2, %r4, 2;\n"]
)  # fmt: skip
def test_what_is_added_turns_the_bit_with_the_last_alone(other: str) -> None:
    """Nobody adds the half, or two of them do."""
    body = f"{other}selp.b32 %r10, %r9, 1, %p2;\n{WRITE}{LOOP}{READ}"
    try:
        assert "flags" in conditions(proved(body))
    except DeadlockError as error:
        assert "line" in str(error)  # noqa: PT017 - either is right


def test_a_loop_that_looks_beside_what_is_added() -> None:
    """The word beside it never turns, so that from the second time on nobody waits."""
    again = second()
    assert proved(LOOP + again).reach is Reach.ALL_DATA
    beside = again.replace("ASK1:", "sub.s64 %rd6, %rd6, 4;\nASK1:")
    assert conditions(proved(LOOP + beside)) == {"flags"}


def test_a_block_that_does_not_come() -> None:
    with pytest.raises(DeadlockError):
        proved("setp.eq.u32 %p6, %r4, 2;\n@%p6 bra OUT;\n" + WRITE + LOOP + "OUT:")


def test_a_barrier_in_memory_of_ones_own_is_refused() -> None:
    """What it holds at first is not a driver's to say."""
    body = (WRITE + LOOP + READ).replace("[%rd6]", "[%rd2+1020]").replace("[%rd9]", "[%rd1]")
    proof = proved(body.replace("st.global.u32 [%rd1], %r14;", ""))
    assert conditions(proof) == {"flags"}
    assert any("this loop is not understood" in each.message for each in proof.failed)


def test_there_is_no_certificate_yet() -> None:
    proof = proved(WRITE + LOOP + READ)
    with pytest.raises(UnsupportedError, match=r"grid\.sync"):
        certificate("k", (BLOCKS, 1, 1), (THREADS, 1, 1), proof, None)
