"""Flags in global memory that blocks wait for, in proofs."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.narrowed import of

from warploom.errors import DeviceError, Span
from warploom.machine.flag import Flags
from warploom.machine.proof import Proof, Reach
from warploom.machine.record import machine_named
from warploom.ptx import load

# The last block waits for a flag that the others set, and adds up what they left.
KERNEL = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag, .param .u32 others)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
ld.param.u64 %rd1, [data];
cvta.to.global.u64 %rd1, %rd1;
ld.param.u64 %rd2, [flag];
cvta.to.global.u64 %rd2, %rd2;
ld.param.u32 %r10, [others];
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd3, %rd1, %rd3;
setp.eq.u32 %p1, %r1, %r10;
@%p1 bra LAST;
add.u32 %r2, %r1, 7;
st.global.u32 [%rd3], %r2;
fence.acq_rel.gpu;
SET
bra DONE;
LAST:
ASK:
LOOK
fence.acq_rel.gpu;
mov.u32 %r3, 0;
mov.u32 %r4, 0;
SUM:
ld.global.u32 %r5, [%rd1];
add.u32 %r3, %r3, %r5;
add.s64 %rd1, %rd1, 4;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, %r10;
@%p2 bra SUM;
st.global.u32 [%rd3], %r3;
DONE:
ret;
}
"""
ADD = "red.relaxed.gpu.global.add.u32 [%rd2], 1;"
STORE = "st.relaxed.gpu.global.u32 [%rd2], 1;"
ALL = "ld.relaxed.gpu.global.u32 %r6, [%rd2];\nsetp.lt.u32 %p3, %r6, %r10;\n@%p3 bra ASK;"
SET_YET = "ld.acquire.gpu.global.u32 %r6, [%rd2];\nsetp.eq.u32 %p3, %r6, 0;\n@%p3 bra ASK;"
LEFT = "ld.relaxed.gpu.global.u32 %r6, [%rd2];\nsetp.ge.u32 %p3, %r6, %r10;\n@!%p3 bra ASK;"


def proved(set_: str, look: str, others: int = 3, flag: int = 0) -> Proof:
    text = KERNEL.replace("SET\n", set_ + "\n").replace("LOOK\n", look + "\n")
    return run(text, others, flag, others + 1, 1)


def run(text: str, others: int, flag: int, blocks: int, threads: int) -> Proof:
    data, flags = np.zeros(blocks, np.uint32), np.array([flag], np.uint32)
    kernel = load(text, "k.ptx").kernel("k")
    report = kernel.launch(blocks, threads, [data, flags, others], races="all", prove=True)
    assert report.proof is not None
    return report.proof


@pytest.mark.parametrize(
    ("set_", "look", "others"),
    [
        (ADD, ALL, 3), (ADD, LEFT, 3), (ADD, ALL, 1), (STORE, SET_YET, 1), (ADD, SET_YET, 1),
        (ADD, ALL.replace("lt", "ne"), 4), (ADD, ALL.replace("%r10", "3"), 3),
        (ADD, ALL.replace("lt.u32 %p3, %r6, %r10", "gt.u32 %p3, %r10, %r6"), 3),
        (STORE.replace("1;", "%r10;"), ALL, 1), (ADD, "nanosleep.u32 20;\n" + ALL, 2),
    ],
)  # fmt: skip
def test_a_flag_that_needs_all_its_writes_is_proved(set_: str, look: str, others: int) -> None:
    proof = proved(set_, look, others)
    assert proof.failed == ()
    assert proof.reach is Reach.ALL_DATA
    assert any("run at once" in each for each in proof.assumed)
    (begins,) = [each for each in proof.assumed if "at the start" in each]
    assert begins.endswith("0 in argument 1 ('flag')")


@pytest.mark.parametrize(
    ("set_", "look", "others", "flag", "said"),
    [
        (ADD, SET_YET, 3, 0, "before all have added"),
        (ADD, ALL.replace("%r10", "2"), 3, 0, "before all have added"),
        (STORE, SET_YET, 2, 0, "written more than once"),
        (ADD, ALL, 3, 1, "before all have added"),
        (STORE, SET_YET, 1, 1, "before anybody has written"),
        (ADD.replace("add.u32", "or.b32"), SET_YET, 1, 0, "plain stores, or by other atomics"),
    ],
)  # fmt: skip
def test_a_flag_that_may_let_pass_too_soon(
    set_: str, look: str, others: int, flag: int, said: str
) -> None:
    proof = proved(set_, look, others, flag)
    assert proof.reach is Reach.THIS_SCHEDULE
    assert [each for each in proof.failed if each.condition == "flags" and said in each.message]


def test_a_loop_that_does_more_than_look_is_not_proved() -> None:
    counts = ALL.replace("@%p3", "add.u32 %r7, %r7, 1;\n@%p3")
    proof = proved(ADD, "mov.u32 %r7, 0;\nASK2:\n" + counts.replace("bra ASK", "bra ASK2"))
    assert "memory" in {each.condition for each in proof.failed}


def test_the_opposite_of_a_comparison_is_not_followed() -> None:
    """The second predicate of two; nothing wrong is said of the flag itself."""
    look = SET_YET.replace("setp.eq.u32 %p3,", "setp.ne.u32 %p4|%p3,")
    proof = proved(STORE, look, 1)
    assert proof.reach is Reach.THIS_SCHEDULE
    assert not [each for each in proof.failed if each.condition == "flags"]


def test_what_a_round_leaves_behind_is_not_proved() -> None:
    text = ALL.replace("@%p3 bra ASK;", "@!%p3 bra PAST;\nmov.u32 %r7, 1;\nbra ASK;\nPAST:")
    assert "memory" in {each.condition for each in proved(ADD, text).failed}


def test_a_flag_set_from_data_is_not_proved_for_all_data() -> None:
    set_ = "ld.global.u32 %r8, [%rd3];\nmin.u32 %r8, %r8, 1;\n" + ADD.replace("1;", "%r8;")
    assert proved(set_, SET_YET, 1).reach is Reach.THIS_DATA


def without(old: str, new: str = "") -> Proof:
    """The kernel with a change, its arrays empty: what it hands over is not what is asked about."""
    text = KERNEL.replace("SET\n", ADD + "\n").replace("LOOK\n", ALL + "\n")
    text = text.replace("st.global.u32 [%rd3], %r2;", "").replace(old, new)
    text = text.replace("ld.global.u32 %r5, [%rd1];", "mov.u32 %r5, 1;")
    data, flags = np.zeros(4, np.uint32), np.zeros(1, np.uint32)
    kernel = load(text, "k.ptx").kernel("k")
    report = kernel.launch(4, 1, [data, flags, 3], races="all", prove=True)
    assert report.proof is not None
    return report.proof


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("fence.acq_rel.gpu;\nred", "red", "no release"),
        ("fence.acq_rel.gpu;\nred", "fence.acq_rel.cta;\nred", "no release"),
        ("fence.acq_rel.gpu;\nmov", "mov", "no acquire"),
        ("fence.acq_rel.gpu;\nmov", "fence.acq_rel.cta;\nmov", "no acquire"),
        ("fence.acq_rel.gpu;\nmov", "bar.sync 0;\nfence.acq_rel.gpu;\nmov", "no acquire"),
    ],
)
def test_a_flag_without_its_order_is_not_proved(old: str, new: str, said: str) -> None:
    """No data race tells of it: nothing but the flag itself is handed over."""
    proof = without(old, new)
    assert proof.reach is Reach.THIS_SCHEDULE
    assert {each.condition for each in proof.failed} == {"flags"}
    assert all(said in each.message and each.span is not None for each in proof.failed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""), ("fence.acq_rel.gpu;\nred.relaxed", "red.release"),
        ("ld.relaxed.gpu.global.u32 %r6", "ld.acquire.gpu.global.u32 %r6"),
        ("fence.acq_rel.gpu;\nred", "fence.sc.gpu;\nfence.acq_rel.cta;\nred"),
        ("fence.acq_rel.gpu;\nred", "membar.sys;\nred"),
    ],
)  # fmt: skip
def test_a_flag_with_its_order_is_proved(old: str, new: str) -> None:
    assert without(old, new).failed == ()


# -- flags of several sizes ------------------------------------------------------------------------

RELEASE = "st.release.gpu.global.u32 [%rd2], 1;"
ACQUIRE = SET_YET


@pytest.mark.parametrize(
    ("set_", "look", "size"),
    [
        (RELEASE, ACQUIRE.replace("ld.acquire.gpu.global.u32", "ld.acquire.gpu.global.u8"), 4),
        (RELEASE.replace("u32", "u8"), ACQUIRE, 4),
        ("mov.b64 %rd7, 1;\n" + RELEASE.replace("u32", "u64").replace("1;", "%rd7;"), ACQUIRE, 8),
    ],
)  # fmt: skip
def test_a_look_of_another_size_orders_nothing(set_: str, look: str, size: int) -> None:
    """By the manual it is a race with the write that it sees, whoever comes first."""
    text = KERNEL.replace("SET\n", set_ + "\n").replace("LOOK\n", look + "\n")
    flags = np.zeros(size // 4, np.uint32)
    kernel = load(text, "k.ptx").kernel("k")
    report = kernel.launch(2, 1, [np.zeros(2, np.uint32), flags, 1], races="all", prove=True)
    assert report.proof is not None
    assert report.proof.reach is Reach.THIS_SCHEDULE
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "ld.acquire" in each)
    assert line in {of(Span, race.second.label).line for race in report.races}


def test_looks_of_another_size_are_not_judged_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 256 threads polls what 256 others write, of which nobody saw anything."""
    asked: list[int] = []
    monkeypatch.setattr(Flags, "is_among", lambda *_: asked.append(1))
    look = ACQUIRE.replace("ld.acquire.gpu.global.u32", "ld.acquire.gpu.global.u8")
    text = KERNEL.replace("SET\n", RELEASE + "\n").replace("LOOK\n", look + "\n")
    text = text.replace("st.global.u32 [%rd3], %r3;", "").replace("st.global.u32 [%rd3], %r2;", "")
    data, flags = np.zeros(2, np.uint32), np.zeros(1, np.uint32)
    report = load(text, "k.ptx").kernel("k").launch(2, 256, [data, flags, 1], races="all")
    assert report.races
    assert len(asked) < 1000


# -- flags that are set back for the next launch ---------------------------------------------------

BACK = "st.relaxed.gpu.global.u32 [%rd2], 0;"


@pytest.mark.parametrize(
    "back", [BACK, BACK.replace(".relaxed.gpu", ""), "atom.exch.gpu.global.b32 %r9, [%rd2], 0;"]
)
def test_who_waits_alone_may_set_a_flag_back(back: str) -> None:
    proof = proved(ADD, ALL + "\n" + back)
    assert proof.failed == ()
    assert proof.reach is Reach.ALL_DATA


def test_a_flag_that_is_set_back_while_others_wait() -> None:
    text = KERNEL.replace("SET\n", ADD + "\n").replace("LOOK\n", ALL + "\n" + BACK + "\n")
    text = text.replace("setp.eq.u32 %p1, %r1, %r10", "setp.ge.u32 %p1, %r1, %r10")
    proof = run(text, 3, 0, 5, 1)  # two blocks wait
    assert proof.reach is Reach.THIS_SCHEDULE
    assert any(each.condition in ("flags", "order") for each in proof.failed)


@pytest.mark.parametrize(("meet", "holds"), [("", False), ("bar.sync 0;", True)])
def test_threads_that_wait_alike_meet_before_one_sets_a_flag_back(meet: str, holds: bool) -> None:
    alone = "@%p1 bra LAST;\nmov.u32 %r11, %tid.x;\nsetp.ne.u32 %p4, %r11, 0;\n@%p4 bra DONE;\n"
    text = KERNEL.replace("@%p1 bra LAST;\n", alone).replace("SET\n", ADD + "\n")
    text = text.replace("LOOK\n", f"{ALL}\nfence.acq_rel.gpu;\n{meet}\n{BACK}\n").replace(
        "st.global.u32 [%rd3], %r3;", ""
    )
    proof = run(text, 3, 0, 4, 2)
    assert (proof.reach is Reach.ALL_DATA) is holds
    assert {each.condition for each in proof.failed} == (set() if holds else {"flags"})


ROOM = ".shared .align 16 .b8 own[48000];\n.reg .pred"


@pytest.mark.parametrize(
    ("blocks", "room", "good"),
    [(528, True, True), (529, True, False), (600, False, True)],
)
def test_blocks_that_wait_for_flags_all_run_at_once(blocks: int, room: bool, good: bool) -> None:
    """An H200 runs four blocks with 48 KB beside each other."""
    text = KERNEL.replace("SET\n", ADD + "\n").replace("LOOK\n", ALL + "\n")
    text = text.replace(".reg .pred", ROOM) if room else text
    proof = run(text, blocks - 1, 0, blocks, 1)
    assert (proof.reach is Reach.ALL_DATA) is good
    assert any("all blocks of the launch run at once" in each for each in proof.assumed)
    if not good:
        (failed,) = proof.failed
        assert failed.condition == "flags"
        assert failed.span is not None
        assert "ld.relaxed.gpu" in text.splitlines()[failed.span.line - 1]


def test_blocks_of_an_unknown_machine_are_assumed_to_run_at_once() -> None:
    text = KERNEL.replace("SET\n", ADD + "\n").replace("LOOK\n", ALL + "\n")
    text = text.replace(".reg .pred", ROOM)
    data, flags = np.zeros(529, np.uint32), np.zeros(1, np.uint32)
    report = load(text, "k.ptx").kernel("k").launch(
        529, 1, [data, flags, 528], races="all", prove=True, machine=machine_named("cuda")
    )  # fmt: skip
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    assert any("all blocks of the launch run at once" in each for each in report.proof.assumed)


# -- a first look, and a loop that is left out behind it -------------------------------------------

PEEK = """ld.acquire.gpu.global.u32 %r6, [%rd2];
setp.ge.u32 %p3, %r6, %r10;
@%p3 bra PASS;
AGAIN:
nanosleep.u32 20;
ld.acquire.gpu.global.u32 %r6, [%rd2];
setp.lt.u32 %p3, %r6, %r10;
@%p3 bra AGAIN;
PASS:
"""
FIRST = PEEK[: PEEK.index(", %r6, %r10")]


@pytest.mark.parametrize(("set_", "others"), [(ADD, 3), (ADD, 1), (STORE, 1)])
@pytest.mark.parametrize("schedule", range(4))
def test_a_first_look_may_leave_out_the_loop(set_: str, others: int, schedule: int) -> None:
    """Whether it does depends on who came first, and decides nothing else."""
    text = KERNEL.replace("SET\n", set_ + "\n").replace("LOOK\n", PEEK)
    data, flags = np.zeros(others + 1, np.uint32), np.zeros(1, np.uint32)
    kernel = load(text, "k.ptx").kernel("k")
    report = kernel.launch(
        others + 1, 1, [data, flags, others], races="all", prove=True, schedule=schedule
    )
    proof = of(Proof, report.proof)
    assert proof.reach is Reach.ALL_DATA, proof.failed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("setp.ge.u32 %p3, %r6, %r10;", "setp.ge.u32 %p3, %r6, 1;"),  # it passes sooner
        (FIRST, FIRST.replace("acquire", "relaxed")),
        (FIRST, FIRST.replace("setp", "or.b32 %r6, %r6, 8;\nsetp")),
        ("nanosleep.u32 20;", "add.u32 %r5, %r5, 1;"),  # how often is told
        ("nanosleep.u32 20;", "st.global.u32 [%rd3], %r6;"),
        ("PASS:\n", "PASS:\n@%p3 add.s64 %rd3, %rd3, 4;\n"),
    ],
)  # fmt: skip
def test_a_first_look_of_another_kind_is_not_proved(old: str, new: str) -> None:
    assert old in PEEK
    text = PEEK.replace(old, new)
    use = "mul.wide.u32 %rd4, %r5, 4;\nadd.s64 %rd4, %rd4, %rd3;\nld.global.u32 %r5, [%rd4];\n"
    text = text.replace("PASS:\n", "PASS:\n" + use) if "add.u32 %r5" in new else text
    try:
        proof = proved(ADD, text, 3)
    except DeviceError:
        return
    assert proof.reach is Reach.THIS_SCHEDULE


def test_a_first_look_at_another_place_is_not_proved() -> None:
    """It may let the last block pass, whatever the flag is that the loop would look at."""
    text = PEEK.replace("@%p3 bra PASS", "mov.u64 %rd2, %rd5;\n@%p3 bra PASS")
    proof = proved(ADD, "mov.u64 %rd5, %rd2;\nmov.u64 %rd2, %rd3;\n" + text, 3)
    assert proof.reach is Reach.THIS_SCHEDULE


def test_what_is_made_of_a_flag_is_not_taken_for_it() -> None:
    """This loop lets everybody pass at once, whatever the flag is."""
    look = SET_YET.replace("setp", "or.b32 %r6, %r6, 1;\nsetp")
    assert proved(STORE, look, 1).reach is Reach.THIS_SCHEDULE
