"""Launches that overlap: what a launch may touch before the one before it has ended."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import warploom
from warploom import ptx
from warploom.errors import DeviceError, RaceError
from warploom.machine.judges import Cause
from warploom.machine.proof import Reach
from warploom.machine.report import Report
from warploom.ptx.findings import race_findings

HEAD = """.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{ .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 tile[256]; .shared .align 8 .b64 bar;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3; setp.ge.u32 %p1, %r1, 32; setp.ne.u32 %p2, %r1, 0;
"""  # noqa: E501
WAIT, START = "griddepcontrol.wait;\n", "griddepcontrol.launch_dependents;\n"
WRITE = "st.global.u32 [%rd5], %r4;\n"  # its element of b
READ = "ld.global.u32 %r5, [%rd4];\n"  # its element of a
COPY = """@%p2 bra C; mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar];
C: bar.sync 0; L: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra L;
"""


def run(body: str, a: Any, b: Any, blocks: int = 1, **options: Any) -> Report:
    kernel = ptx.load(f"{HEAD}{body}ret; }}\n", "k.ptx").kernel("k")
    return kernel.launch(blocks, 64, [a, b], **{"races": "all", **options})


def after(first: str, second: str, **options: Any) -> Report:
    """The second launch reads what the first one writes."""
    x, y, z = np.zeros((3, 128), np.uint32)
    before = run(first, x, y, blocks=2, dependents=True)
    assert not before.races
    return run(second, y, z, after=before, **options)


SECONDS = {
    "no wait": (READ, 1),
    "waits": (WAIT + READ, 0),
    "waits too late": (READ + WAIT, 1),
    "one warp waits": ("@!%p1 griddepcontrol.wait;\n" + READ, 1),
    "one warp waits, the others meet it": ("@!%p1 griddepcontrol.wait;\nbar.sync 0;\n" + READ, 0),
    "only its own": (WRITE, 0),
    "a copy before the wait": (COPY + WAIT, 1),
    "a copy behind the wait": (WAIT + COPY, 0),
}


@pytest.mark.parametrize("name", SECONDS)
def test_who_reads_must_have_waited(name: str) -> None:
    second, races = SECONDS[name]
    report = after(START + WRITE, second, prove=True)
    assert [race.cause for race in report.races] == [Cause.GRID] * races
    assert report.proof is not None
    assert report.proof.reach is (Reach.THIS_SCHEDULE if races else Reach.ALL_DATA)


def test_a_finding_names_both_lines() -> None:
    report = after(START + WRITE, READ)
    (finding,) = race_findings(ptx.load(f"{HEAD}{READ}ret; }}\n", "k.ptx"), report.races)
    assert "missing wait" in finding.error.message
    assert "griddepcontrol.wait is missing" in finding.error.message
    assert "cudaGridDependencySynchronize" in finding.error.advice


def test_what_is_overwritten_must_have_been_read() -> None:
    x, y = np.zeros((2, 128), np.uint32)
    before = run(START + READ, x, y, blocks=2, dependents=True)
    (race,) = run(WRITE, y, x, after=before).races
    assert (race.first.words, race.second.words) == ("read", "write")
    assert not run(WAIT + WRITE, y, x, after=before).races
    assert not run(READ, x, y, after=before).races  # two that read


def test_sums_may_meet() -> None:
    """As atomics of one launch may; a plain load of such a sum may not."""
    add = "red.relaxed.gpu.global.add.u32 [%rd2], 1;\n"
    assert not after(START + add, add.replace("%rd2", "%rd1")).races
    assert after(START + add, READ).races


def test_parts_of_arrays_are_found_by_their_place() -> None:
    whole = np.zeros(256, np.uint32)
    before = run(START + WRITE, whole[:64], whole[64:], dependents=True)
    assert run(READ, whole[64:128], whole[:64], after=before).races
    assert run(READ, whole, np.zeros(64, np.uint32), blocks=2, after=before).races
    assert not run(READ, whole[128:], np.zeros(64, np.uint32), after=before).races


def test_the_launch_before_the_one_before() -> None:
    """That a launch has ended says that the one before has, too, only if it waited."""
    x, y, z, w = np.zeros((4, 128), np.uint32)
    first = run(START + WRITE, x, y, blocks=2, dependents=True)
    for middle, races in ((WRITE, 1), (WRITE + "@!%p1 griddepcontrol.wait;\n", 0)):
        second = run(START + middle, x, z, dependents=True, after=first)
        assert not second.races
        assert len(run(WAIT + READ, y, w, after=second).races) == races


def test_what_is_refused() -> None:
    x, y = np.zeros((2, 64), np.uint32)
    with pytest.raises(DeviceError, match="need races"):
        run(WRITE, x, y, dependents=True, races=False)
    with pytest.raises(DeviceError, match="no launch that another may overlap"):
        run(READ, y, x, after=run(WRITE, x, y))


def test_emulate_takes_launches_that_overlap() -> None:
    """Harmless races are looked for again: what another launch loaded is none of this one's."""
    x, y = np.zeros((2, 128), np.uint32)
    first = f"{HEAD}{START}{READ}st.global.u32 [%rd5], %r5;\nret; }}\n"
    before = warploom.emulate(first, dependents=True)[2, 64](x, y)
    bare, waiting = (f"{HEAD}{wait}{WRITE}ret; }}\n" for wait in ("", WAIT))
    with pytest.raises(RaceError, match=r"griddepcontrol\.wait is missing"):
        warploom.emulate(bare, after=before)[1, 64](y, x)
    warploom.emulate(waiting, after=before)[1, 64](y, x)


def test_fidelity_says_whether_other_launches_were_given() -> None:
    x, y = np.zeros((2, 64), np.uint32)
    assert "griddepcontrol" in run(WAIT + WRITE, x, y).fidelity
    assert "griddepcontrol" not in after(START + WRITE, WAIT + READ).fidelity


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_what_each_thread_knows(seed: int) -> None:
    """Random steps of two warps: an access is wrong unless its warp waited before, or met one that
    had waited, in the order of the steps."""
    r = Random(seed)
    for _ in range(6):
        body, wrong, knows = "", False, [False, False]
        for number in range(r.randrange(1, 7)):
            warp, what = r.randrange(2), r.choice(["wait", "meet", "read", "write"])
            if what == "meet":
                body += "bar.sync 0;\n"
                knows = [any(knows)] * 2
                continue
            step = {"wait": WAIT, "read": READ, "write": "st.global.u32 [%rd4], %r4;\n"}[what]
            others = "!" if warp else ""  # lanes of the second warp have %p1
            body += f"@{others}%p1 bra S{number};\n"
            body += f"{step}S{number}: bar.warp.sync -1;\n"
            knows[warp] |= what == "wait"
            wrong |= what != "wait" and not knows[warp]
        assert bool(after(START + WRITE, body).races) is wrong, body


FLAG = "setp.eq.u32 %p4, %r2, 0; @%p4 bra SET;\nASK: ld.acquire.gpu.global.u32 %r5, [%rd2];\n"
FLAG += "setp.eq.u32 %p5, %r5, 0; @%p5 bra ASK;\nbra END;\n"
FLAG += "SET: st.release.gpu.global.u32 [%rd2], 1;\nEND:\n"
STRONG = {
    "an atomic": ("red.relaxed.gpu.global.add.u32 [%rd2], 1;\n", True),
    "a strong store": ("st.relaxed.gpu.global.u32 [%rd2], 1;\n", True),
    "behind the wait": (WAIT + "st.relaxed.gpu.global.u32 [%rd2], 1;\n", False),
    "somewhere else": ("st.relaxed.gpu.global.u32 [%rd1], 1;\n", False),
}


@pytest.mark.parametrize("name", STRONG)
def test_flags_of_a_launch_that_another_writes_are_not_proved(name: str) -> None:
    """The blocks of the first launch may be let go by what the second one writes."""
    second, fails = STRONG[name]
    x, y, z = np.zeros((3, 128), np.uint32)
    kernel = ptx.load(f"{HEAD}{FLAG}ret; }}\n", "k.ptx").kernel("k")
    before = kernel.launch(2, 1, [x, y], races="all", prove=True, dependents=True)
    assert before.proof is not None
    assert before.proof.reach is Reach.ALL_DATA
    assert any("no launch that overlaps" in each for each in before.proof.assumed)
    kernel = ptx.load(f"{HEAD}{second}ret; }}\n", "k.ptx").kernel("k")
    report = kernel.launch(1, 1, [z, y], races="all", prove=True, after=before)
    assert report.proof is not None
    assert not report.races
    assert {each.condition for each in report.proof.failed} == ({"overlap"} if fails else set())
    assert all(each.span is not None for each in report.proof.failed)
    assert (report.proof.reach is Reach.ALL_DATA) is not fails


def test_a_kernel_that_lets_the_next_begin_rests_on_its_flags_alone() -> None:
    """Whether or not another launch is given."""
    for start, told in (("", False), (START, True)):
        kernel = ptx.load(f"{HEAD}{start}{FLAG}ret; }}\n", "k.ptx").kernel("k")
        proof = kernel.launch(2, 1, [*np.zeros((2, 128), np.uint32)], races="all", prove=True).proof
        assert proof is not None
        assert proof.reach is Reach.ALL_DATA
        assert any("no launch that overlaps" in each for each in proof.assumed) is told
