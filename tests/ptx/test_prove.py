"""One run that stands for all schedules: kernels that are proved, and mutants that are not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from bench.common.ptx.agreement import from_ptx
from bench.common.ptx.phases import Case, Op, explore, schedule
from bench.common.ptx.phases_drawn import draw
from tests.ptx.pipeline import ARRIVE, MUTANTS, RING, WAIT_FULL, mutant

from warploom.errors import DeadlockError, DeviceError, WarploomError
from warploom.machine.proof import Proof, Reach
from warploom.machine.report import Report
from warploom.ptx import load, tensor_map
from warploom.ptx.emulate.asked import Model

GEMM = Path(__file__).parent / "hopper" / "gemm.ptx"


def proof_of(report: Report) -> Proof:
    assert report.proof is not None
    return report.proof


def conditions(report: Report) -> set[str]:
    return {each.condition for each in proof_of(report).failed}


def run_ring(kernel: str, turns: int = 6, model: Model = "practice") -> Report:
    x, y = np.arange(2 * turns * 64, dtype=np.float32), np.zeros(128, np.float32)
    found = load(kernel, "ring.ptx").kernel("ring")
    report = found.launch(
        2, 96, [x, y, turns], races=True, prove=True, seconds=20, model=model
    )  # fmt: skip
    assert np.array_equal(y, x.reshape(2, turns, 64).sum(1).reshape(-1))
    return report


def refused(run: Callable[[], Report], said: str) -> None:
    """A fault is found, or a condition is named with its place."""
    found = ""
    try:
        proof = proof_of(run())
    except WarploomError as error:
        found = str(error)
    else:
        assert proof.reach is Reach.THIS_SCHEDULE
        assert all(each.span is not None for each in proof.failed)
        found = " ".join(each.condition for each in proof.failed)
    assert said in found


def launched(kernel: str, args: list[Any], threads: int = 32, **options: Any) -> Report:
    found = load(kernel, "k.ptx").kernel("k")
    return found.launch(1, threads, args, races=True, prove=True, **options)


def test_a_ring_is_proved_for_all_schedules_and_all_data() -> None:
    proof = proof_of(run_ring(RING))
    assert proof.reach is Reach.ALL_DATA
    assert proof.failed == ()
    assert proof.text == "proved for all schedules and all data of this launch shape"
    assert [each for each in proof.assumed if "part ways" in each]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTANTS)
def test_no_mutant_of_the_ring_is_proved(name: str) -> None:
    model: Model = "ptx" if name == "no fence" else "practice"
    refused(lambda: run_ring(mutant(name), model=model), MUTANTS[name][2])


def test_a_deadlock_names_waits_that_are_passed_without_a_yes() -> None:
    """Who hangs waits for those that did not wait: at the line of the latter the fault is."""
    text = RING.replace(ARRIVE, "")
    with pytest.raises(DeadlockError) as stuck:
        run_ring(text)
    assert "without a yes" not in str(stuck.value)
    text = text.replace("@!%p4 bra ASK_FULL;\n", "")
    with pytest.raises(DeadlockError, match="without a yes") as stuck:
        run_ring(text)
    line = next(n for n, each in enumerate(text.split("\n"), 1) if "[%r11], %r7" in each)
    assert f"the wait at line {line} may be passed" in str(stuck.value)


PEEK = WAIT_FULL.replace("ASK_FULL:\n", "").replace("@!%p4 bra ASK_FULL", "@%p4 bra PAST")
SPUN = "mov.u32 %r30, 1;\nbra ASK_FULL;\nGONE:\n"


def test_a_wait_that_is_tried_once_before() -> None:
    """`if (!try_wait(…)) wait(…)`: a yes leaves out the wait for the same phase, and no other."""
    peek = RING.replace(WAIT_FULL, PEEK + WAIT_FULL + "PAST:\n")
    assert proof_of(run_ring(peek, 3)).reach is Reach.ALL_DATA
    other = PEEK.replace("%r11", "%r12")
    refused(lambda: run_ring(RING.replace(WAIT_FULL, other + WAIT_FULL + "PAST:\n")), "")
    early = RING.replace(WAIT_FULL, PEEK.replace("@%p4", "bar.warp.sync 0xffffffff;\n@%p4")
                         + WAIT_FULL + "PAST:\n")  # fmt: skip
    assert "waits" in conditions(run_ring(early, 3))


def test_what_is_done_after_a_no_decides_nothing() -> None:
    """A register tells whether the loop went round: a branch on it is one on who comes first."""
    spun = WAIT_FULL.replace("@!%p4 bra ASK_FULL;\n", "@%p4 bra GONE;\n" + SPUN)
    text = RING.replace(WAIT_FULL, "mov.u32 %r30, 0;\n" + spun)
    assert proof_of(run_ring(text, 3)).reach is Reach.ALL_DATA
    branch = "setp.ne.u32 %p8, %r30, 0;\n@%p8 bra ODD;\nODD:\n"
    text = RING.replace(WAIT_FULL, "mov.u32 %r30, 0;\n" + spun + branch)
    assert "order" in conditions(run_ring(text, 3))


# -- the matmul ------------------------------------------------------------------------------------


@cache
def gemm_text() -> str:
    return GEMM.read_text()


def run_gemm(kernel: str, model: Model = "practice") -> Report:
    size = 256
    a, b = (_bf16(np.random.default_rng(at).integers(-1, 2, (size, size))) for at in (0, 1))
    c = np.zeros((size, size), np.uint16)
    maps = [tensor_map(each, box=(128, 64), swizzle=128) for each in (a, b)]
    found = load(kernel, "gemm.ptx").kernel("gemm")
    report = found.launch(
        2, 384, [*maps, c, size, size, size], shared_bytes=2 * 256 * 64 * 2, races=True,
        prove=True, model=model,
    )  # fmt: skip
    assert np.array_equal(c, _bf16(_f32(a) @ _f32(b).T))
    return report


def _bf16(x: Any) -> Any:
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _f32(x: Any) -> Any:
    return (x.astype(np.uint32) << 16).view(np.float32)


def test_a_hopper_matmul_is_proved() -> None:
    proof = proof_of(run_gemm(gemm_text()))
    assert proof.reach is Reach.ALL_DATA
    assert len(proof.assumed) == 3
    assert proof.agents == 24  # of 768 threads


GEMM_MUTANTS = {
    "no fence": ("fence.mbarrier_init.release.cluster;", "", "fence"),
    "no barrier": ("bar.sync \t0;", "", "data race"),
    "a product is waited for too late": (
        "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;", "missing wait",
    ),
    "the last product is not waited for": (
        "wgmma.wait_group.sync.aligned 0;", "", "has not been waited for",
    ),
    "no groups": ("wgmma.commit_group.sync.aligned;", "", "missing wait"),
    "no arrivals": ("mbarrier.arrive.shared::cta.b64", "// ", "deadlock"),
    "a yes is not waited for": ("bra W;", "bra D;", "never written"),
    "no bytes are expected": (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%", "mbarrier.arrive.shared::cta.b64 _, [%",
        "more than were expected",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", GEMM_MUTANTS)
def test_no_mutant_of_the_matmul_is_proved(name: str) -> None:
    old, new, said = GEMM_MUTANTS[name]
    assert old in gemm_text()
    refused(lambda: run_gemm(gemm_text().replace(old, new), "ptx"), said)


@pytest.mark.slow
def test_a_fence_that_no_gpu_needs() -> None:
    """By the manual copies see an mbarrier only behind a fence; by practice it is an assumption."""
    text = gemm_text().replace("fence.mbarrier_init.release.cluster;", "")
    proof = proof_of(run_gemm(text))
    assert proof.reach is Reach.ALL_DATA
    assert any("own block without a fence" in each for each in proof.assumed)


# -- all schedules of small programs ---------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(20))
def test_what_is_accepted_as_ptx_has_the_same_phases_in_every_schedule(seed: int) -> None:
    r, accepted = Random(100 + seed), 0
    for _ in range(8):
        case = draw(r)
        if from_ptx(case) != set():  # not proved, or a deadlock, or an arrival too many
            continue
        accepted += 1
        runs = (schedule(case, r) for _ in range(50))
        log, _ = next(run for run in runs if run is not None)
        assert explore(case, log) in ("same", "too many"), case
    assert accepted >= 1


@pytest.mark.parametrize(
    "threads",
    [
        ((Op("counted", 0),), (Op("arrive", 0),)),
        ((Op("counted", 1), Op("arrive", 0), Op("arrive", 1)), ()),
        ((Op("later", 0), Op("arrive", 0), Op("arrive", 0)),),
    ],
)
def test_an_arrival_that_comes_in_another_phase_than_its_own_is_not_proved(threads: Any) -> None:
    """Found by random programs: nobody waits, so the run itself brings it in the phase after."""
    failed = from_ptx(Case(threads, (1, 1)))
    assert failed == {"C1"}


# -- what depends on data and on who comes first ---------------------------------------------------

BODY = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 8 .b8 place[256];
ld.param.u64 %rd1, [p];
cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
mov.u32 %r7, place;
shl.b32 %r8, %r1, 2;
add.u32 %r7, %r7, %r8;
BODY
ret;
}
"""
# By name: the lines, for what they are proved, and the condition that is in the way of more.
DECIDED: dict[str, tuple[str, Reach, str]] = {
    "a sum": (
        "ld.global.u32 %r2, [%rd3]; add.u32 %r2, %r2, 1; st.global.u32 [%rd3], %r2;",
        Reach.ALL_DATA, "",
    ),
    "a choice of values": (
        "ld.global.u32 %r2, [%rd3]; setp.gt.u32 %p1, %r2, 3; selp.u32 %r3, 1, 2, %p1;"
        "@%p1 mov.u32 %r3, 5; st.global.u32 [%rd3], %r3;", Reach.ALL_DATA, "",
    ),
    "a branch on data": (
        "ld.global.u32 %r2, [%rd3]; setp.gt.u32 %p1, %r2, 3; @%p1 bra PAST;"
        "st.global.u32 [%rd3], %r1; PAST:", Reach.THIS_DATA, "data",
    ),
    "a predicate on data": (
        "ld.global.u32 %r2, [%rd3]; setp.gt.u32 %p1, %r2, 3; @%p1 st.global.u32 [%rd3], %r1;",
        Reach.THIS_DATA, "data",
    ),
    "an address from data": (
        "ld.global.u32 %r2, [%rd3]; and.b32 %r2, %r2, 0; mul.wide.u32 %rd4, %r2, 4;"
        "add.s64 %rd4, %rd1, %rd4; ld.global.u32 %r3, [%rd4];", Reach.THIS_DATA, "data",
    ),
    "through shared memory": (
        "ld.global.u32 %r2, [%rd3]; st.shared.u32 [%r7], %r2; ld.shared.u32 %r3, [%r7];"
        "setp.gt.u32 %p1, %r3, 3; @%p1 st.global.u32 [%rd3], %r1;", Reach.THIS_DATA, "data",
    ),
    "own bytes of shared memory": (
        "ld.global.u32 %r2, [%rd3]; st.shared.u32 [%r7+128], %r2; st.shared.u32 [%r7], %r1;"
        "ld.shared.u32 %r3, [%r7]; setp.gt.u32 %p1, %r3, 3; @%p1 st.global.u32 [%rd3], %r1;",
        Reach.ALL_DATA, "",
    ),
    "by a shuffle": (
        "ld.global.u32 %r2, [%rd3]; shfl.sync.bfly.b32 %r3, %r2, 1, 31, 0xffffffff;"
        "setp.gt.u32 %p1, %r3, 3; @%p1 st.global.u32 [%rd3], %r1;", Reach.THIS_DATA, "data",
    ),
    "lanes of a shuffle from data": (
        "ld.global.u32 %r2, [%rd3]; and.b32 %r2, %r2, 1;"
        "shfl.sync.idx.b32 %r3, %r1, %r2, 31, 0xffffffff; st.global.u32 [%rd3], %r3;",
        Reach.THIS_DATA, "data",
    ),
    "an election among lanes from data": (
        "ld.global.u32 %r2, [%rd3]; not.b32 %r2, %r2; elect.sync %r3|%p1, %r2;"
        "@%p1 st.global.u32 [%rd3], %r1;", Reach.THIS_DATA, "data",
    ),
    "an election among who is active": (
        "activemask.b32 %r2; elect.sync %r3|%p1, %r2; @%p1 st.global.u32 [%rd3], %r1;",
        Reach.THIS_SCHEDULE, "order",
    ),
    "an election": (
        "elect.sync %r3|%p1, -1; @%p1 st.global.u32 [%rd3], %r1;", Reach.ALL_DATA, "",
    ),
    "a clock": (
        "mov.u32 %r2, %clock; setp.gt.u32 %p1, %r2, 3; @%p1 st.global.u32 [%rd3], %r1;",
        Reach.THIS_SCHEDULE, "order",
    ),
    "the multiprocessor": (
        "mov.u32 %r2, %smid; add.u32 %r2, %r2, 1; setp.gt.u32 %p1, %r2, 0; @%p1 bra PAST;"
        "st.global.u32 [%rd3], %r1; PAST:", Reach.THIS_SCHEDULE, "order",
    ),
    "who is active": (
        "activemask.b32 %r2; setp.gt.u32 %p1, %r2, 0; @%p1 st.global.u32 [%rd3], %r1;",
        Reach.THIS_SCHEDULE, "order",
    ),
    "a ticket": (
        "atom.global.add.u32 %r2, [%rd1], 1; mul.wide.u32 %rd4, %r2, 0; add.s64 %rd4, %rd3, %rd4;"
        "add.s64 %rd4, %rd4, 128; st.global.u32 [%rd4], %r1;", Reach.THIS_SCHEDULE, "order",
    ),
    "a sum by atomics": ("red.global.add.u32 [%rd1], 1;", Reach.ALL_DATA, ""),
    "a flag": (
        "ld.relaxed.gpu.global.u32 %r2, [%rd3]; st.global.u32 [%rd3+128], %r2;",
        Reach.THIS_SCHEDULE, "memory",
    ),
    "a carry": (
        "ld.global.u32 %r2, [%rd3]; add.cc.u32 %r3, %r2, %r2; addc.u32 %r4, 0, 0;"
        "setp.gt.u32 %p1, %r4, 0; @%p1 st.global.u32 [%rd3], %r1;", Reach.THIS_DATA, "data",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_what_is_decided_by_data_or_by_who_comes_first(name: str) -> None:
    lines, reach, condition = DECIDED[name]
    body = BODY.replace("BODY", lines.replace(";", ";\n").replace("PAST:", "PAST:\n"))
    report = launched(body, [np.zeros(128, np.uint32)])
    assert proof_of(report).reach is reach
    assert conditions(report) == ({condition} if reach is not Reach.THIS_SCHEDULE else
                                  conditions(report) | {condition}) - {""}  # fmt: skip


@pytest.mark.parametrize(
    "together",
    [
        "shfl.sync.idx.b32 %r4, %r1, 0, 31, -1", "vote.sync.any.pred %p2, %p3, -1",
        "redux.sync.add.u32 %r4, %r1, -1", "match.any.sync.b32 %r4, %r1, -1",
        "elect.sync %r4|%p2, -1", "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r1",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd6, %rd7}, {%rd5}, {%rd5}, "
        "{%rd6, %rd7}",
    ],
)  # fmt: skip
def test_what_lanes_do_together_is_decided_by_its_predicate(together: str) -> None:
    """Of other data some lanes would be missing."""
    start = "setp.eq.u32 %p3, %r1, 0; mov.b64 %rd5, 0; mov.b64 %rd6, 0; mov.b64 %rd7, 0;"
    for predicate, reach in (("%r2", Reach.THIS_DATA), ("%r1", Reach.ALL_DATA)):
        made = f"ld.global.u32 %r2, [%rd3]; setp.lt.u32 %p1, {predicate}, 99; @%p1 {together};"
        body = BODY.replace("BODY", (start + made).replace(";", ";\n"))
        assert proof_of(launched(body, [np.zeros(128, np.uint32)])).reach is reach


def test_a_reduction_at_a_barrier_takes_in_what_others_bring_elsewhere() -> None:
    """Warps meet at one barrier from two places: what the one has loaded decides for the other."""
    lines = (
        "setp.ge.u32 %p2, %r1, 32; @%p2 bra OTHER; mov.pred %p1, 0;"
        "barrier.cta.red.or.pred %p3, 0, %p1; @%p3 bra SET; bra DONE;"
        "SET: st.global.u32 [%rd3+256], %r1; bra DONE;"
        "OTHER: ld.global.u32 %r2, [%rd3]; setp.ne.u32 %p1, %r2, 0;"
        "barrier.cta.red.or.pred %p2, 0, %p1; DONE:"
    )
    body = BODY.replace("BODY", lines.replace(";", ";\n").replace("DONE:", "DONE:\n"))
    report = launched(body, [np.zeros(128, np.uint32)], 64)
    assert proof_of(report).reach is Reach.THIS_DATA
    constant = body.replace("setp.ne.u32 %p1, %r2, 0", "setp.ne.u32 %p1, %r1, 64")
    assert proof_of(launched(constant, [np.zeros(128, np.uint32)], 64)).reach is Reach.ALL_DATA


def test_a_break_point_is_decided_by_its_predicate() -> None:
    made = "ld.global.u32 %r2, [%rd3];\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 brkpt;\n"
    report = launched(BODY.replace("BODY", made), [np.zeros(128, np.uint32)])
    assert conditions(report) == {"data"}


def test_a_proof_needs_races() -> None:
    kernel = load(BODY.replace("BODY", ""), "k.ptx").kernel("k")
    with pytest.raises(DeviceError, match="a proof needs races"):
        kernel.launch(1, 32, [np.zeros(128, np.uint32)], prove=True)


# -- what tells who came late, in other words than a branch ------------------------------------


def test_a_predicate_in_a_loop_that_waits_tells_of_a_no() -> None:
    """`@!p mov r, 1` while an answer is no: r says whether there was one."""
    marked = WAIT_FULL.replace("@!%p4 bra ASK_FULL", "@!%p4 mov.u32 %r30, 1;\n@!%p4 bra ASK_FULL")
    text = RING.replace(WAIT_FULL, "mov.u32 %r30, 0;\n" + marked)
    assert proof_of(run_ring(text, 3)).reach is Reach.ALL_DATA
    branch = "setp.ne.u32 %p8, %r30, 0;\n@%p8 bra ODD;\nODD:\n"
    text = RING.replace(WAIT_FULL, "mov.u32 %r30, 0;\n" + marked + branch)
    assert "order" in conditions(run_ring(text, 3))


ASKED = """
mov.u32 %r1, %tid.x; mov.u32 %r2, m; setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [%r2], 1;
READY: bar.sync 0;
@%p1 bra ASK;
mbarrier.arrive.shared.b64 _, [%r2];
ASK: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
MADE
@GO bra ASK;
"""
# By what is made of the answer, and the predicate of going round: whether it says no.
MADE: dict[tuple[str, str], bool] = {
    ("selp.u32 %r3, 0, 256, %p2; cvt.u32.u8 %r3, %r3; setp.ne.u32 %p3, %r3, 0;", "%p3"): False,
    ("selp.u32 %r3, 0, 129, %p2; cvt.u32.u8 %r3, %r3; setp.eq.u32 %p3, %r3, 129;", "%p3"): True,
    ("selp.u32 %r3, 0, 129, %p2; cvt.s32.s8 %r3, %r3; setp.eq.s32 %p3, %r3, -127;", "%p3"): True,
    ("selp.u32 %r3, 0, 129, %p2; cvt.s32.s8 %r3, %r3; setp.eq.s32 %p3, %r3, 129;", "%p3"): False,
    ("selp.u32 %r3, 0, 1, %p2; mov.b32 {%h1, %h2}, %r3; setp.ne.u16 %p3, %h2, 0;", "%p3"): False,
    ("selp.b64 %d1, 0, 1, %p2; mov.b64 {%r3, %r4}, %d1; setp.ne.u32 %p3, %r4, 0;", "%p3"): False,
    ("selp.u32 %r3, 1, 0, %p2; setp.ne.u32 %p3|%p4, %r3, 0;", "!%p4"): False,
    ("selp.u32 %r3, 1, 0, %p2; setp.ne.u32 %p3|%p4, %r3, 0;", "%p4"): True,
    ("selp.u32 %r3, 1, 0, %p2; setp.ne.u32 %p3|%p4, %r3, 0;", "!%p3"): True,
    ("selp.b32 %r3, 0, 0x80000000, %p2; setp.ne.f32 %p3, %r3, 0f00000000;", "%p3"): False,
    ("selp.s32 %r3, -1, 0, %p2; setp.ne.s32 %p3, %r3, -1;", "%p3"): True,
    ("selp.u16 %h1, 1, 0, %p2; cvt.u32.u16 %r3, %h1; xor.b32 %r3, %r3, 1;"
     "setp.ne.u32 %p3, %r3, 0;", "%p3"): True,
}  # fmt: skip


@pytest.mark.parametrize(("made", "go"), MADE)
def test_what_is_made_of_an_answer_is_followed_bit_by_bit(made: str, go: str) -> None:
    """A loop that a no leaves, too, waits for nothing; here the first answer is a yes, or where a
    yes would go round for ever, a no."""
    head = LAST[: LAST.index(".shared")].replace("%p<4>", "%p<5>")
    head += ".reg .b16 %h<4>;\n.shared .align 8 .b64 m;\n"
    body = ASKED.replace("MADE", made.replace(";", ";\n")).replace("GO", go)
    body = body.replace("mbarrier.arrive", "//") if go == "!%p4" else body
    report = launched(head + body + "ret;\n}\n", [np.zeros(1, np.int32)])
    assert conditions(report) == (set() if MADE[made, go] else {"waits", "order"})


LAST = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<9>; .reg .pred %p<4>; .reg .b64 %d<3>;
.shared .align 4 .b32 w;
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, w;
FIRST
bar.sync 0;
ld.shared.u32 %r4, [%r3];
setp.eq.u32 %p1, %r4, 77;
@%p1 bra DONE;
DONE:
ret;
}
"""


@pytest.mark.parametrize(
    "first",
    [
        "st.volatile.shared.u32 [%r3], %r2;",
        "and.b32 %r5, %r2, 1; setp.eq.u32 %p2, %r5, 1;\n@%p2 bra ADD;\n"
        "red.shared.max.u32 [%r3], 10; bra MEET;\nADD: red.shared.min.u32 [%r3], 3;\nMEET:",
    ],
)
def test_what_stays_last_is_decided_by_order(first: str) -> None:
    """Strong stores and atomics do not race, and yet who comes last decides what is there."""
    zero = "mov.u32 %r6, 5; setp.eq.u32 %p3, %r1, 0;\n@%p3 st.shared.u32 [%r3], %r6;\nbar.sync 0;\n"
    report = launched(LAST.replace("FIRST", zero + first), [np.zeros(1, np.int32)], 64)
    assert conditions(report) & {"order", "memory"}
    assert proof_of(report).reach is Reach.THIS_SCHEDULE


BRANCH = """ld.global.u32 %r3, [%rd5];
setp.ne.u32 %p2, %r3, 0;
@%p2 st.global.u32 [%rd4], %r3;
"""
MORE = {
    "a load that is never done": "mov.u32 %r9, s;\nsetp.gt.u32 %p1, %r1, 100;\n"
    "@%p1 ld.shared.u32 %r2, [%r9];\n@%p1 st.global.u32 [%rd4], %r2;\n" + BRANCH,
    "a store that releases": BRANCH + "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r2, 1;\n"
    "@%p1 st.release.gpu.global.u32 [%rd1+256], %r2;\n",
    "a wait for no launch": "griddepcontrol.wait;\n" + BRANCH,
}
ONE = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
.shared .align 4 .b32 s[64];
ld.param.u64 %rd1, [p];
ld.param.u64 %rd2, [q];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
BODY
ret;
}
"""


@pytest.mark.parametrize("name", MORE)
def test_what_has_no_part_in_what_is_decided_is_no_reason(name: str) -> None:
    """A branch on data that were loaded is for this data, in all schedules."""
    args = [np.zeros(128, np.uint32), np.zeros(64, np.uint32)]
    proof = proof_of(launched(ONE.replace("BODY", MORE[name]), args))
    assert proof.reach is Reach.THIS_DATA, proof.failed
    assert any("no launch before" in each for each in proof.assumed) is ("launch" in name)


def test_a_load_that_is_done_by_some_is_followed() -> None:
    """What it sees decides, and was stored by who came last."""
    body = "mov.u32 %r9, s;\nst.volatile.shared.u32 [%r9], %r1;\nbar.sync 0;\n"
    body += "setp.lt.u32 %p1, %r1, 9;\nmov.u32 %r2, 0;\n@%p1 ld.shared.u32 %r2, [%r9];\n"
    body += "setp.gt.u32 %p2, %r2, 7;\n@%p2 st.global.u32 [%rd4], %r2;\n"
    args = [np.zeros(128, np.uint32), np.zeros(64, np.uint32)]
    assert proof_of(launched(ONE.replace("BODY", body), args, 64)).reach is Reach.THIS_SCHEDULE
