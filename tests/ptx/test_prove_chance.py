"""What is left to chance is not proved: who comes first, who is last, and data of one launch."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.errors import SynchronisationError
from warploom.machine.proof import Proof, Reach
from warploom.ptx import load
from warploom.ptx.prove.certificate import certificate
from warploom.trust.schedule import check_schedule

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<20>;
.shared .align 16 .b8 flag[16];
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
ld.param.u64 %rd3, [z];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u64 %rd4, flag;
cvta.shared.u64 %rd5, %rd4;
mul.wide.u32 %rd6, %r1, 4;
add.u64 %rd7, %rd3, %rd6;
"""


def proof_of(
    body: str, grid: int = 1, block: int = 1, *, cluster: int = 1, benign: bool = False
) -> Proof:
    args = [np.zeros(64, np.uint32) for _ in range(3)]
    kernel = load(f"{HEAD}{body}\nDONE:\nret;\n}}\n", "k.ptx").kernel("k")
    report = kernel.launch(
        grid, block, args, races="all", prove=True, benign=benign, cluster=cluster
    )
    assert report.proof is not None
    assert report.races == []
    return report.proof


def refused(proof: Proof, condition: str, line: str, body: str) -> None:
    """Not proved for all schedules, for one reason alone, whose line is told."""
    assert proof.reach is Reach.THIS_SCHEDULE
    at = (HEAD + body).splitlines().index(line) + 1
    told = {(each.condition, each.span.line) for each in proof.failed if each.span is not None}
    assert (condition, at) in told


# -- flags that are not followed -------------------------------------------------------------------

SHARED = """setp.ne.u32 %p1, %r1, 0;
@%p1 bra BEGIN;
st.u32 [%rd5], 0;
BEGIN: bar.sync 0;
setp.eq.u32 %p1, %r1, 32;
@%p1 bra ASK;
and.b32 %r3, %r1, 31;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra DONE;
red.relaxed.cta.add.u32 [%rd5], 1;
bra DONE;
ASK:
ld.relaxed.cta.u32 %r6, [%rd5];
setp.lt.u32 %p2, %r6, 1;
@%p2 bra ASK;
mul.wide.u32 %rd8, %r6, 4;
add.u64 %rd8, %rd8, %rd1;
st.global.u32 [%rd8], 5;"""


def test_a_flag_in_shared_memory_by_a_generic_address() -> None:
    """Two write it, one waits for either: what it sees decides where it stores."""
    line = "ld.relaxed.cta.u32 %r6, [%rd5];"
    refused(proof_of(SHARED, block=96), "memory", line, SHARED)


REMOTE = """mov.u32 %r10, %cluster_ctarank;
mov.u32 %r11, 0;
mapa.u64 %rd8, %rd5, %r11;
setp.ne.u32 %p1, %r10, 0;
@%p1 bra BEGIN;
st.u32 [%rd5], 0;
BEGIN:
barrier.cluster.arrive;
barrier.cluster.wait;
setp.eq.u32 %p1, %r10, 0;
@%p1 bra ASK;
st.relaxed.cluster.u32 [%rd8], 1;
bra MEET;
ASK:
ld.relaxed.cluster.u32 %r6, [%rd8];
setp.eq.u32 %p2, %r6, 0;
@%p2 bra ASK;
MEET:
barrier.cluster.arrive;
barrier.cluster.wait;"""


def test_a_flag_in_the_shared_memory_of_another_block() -> None:
    line = "ld.relaxed.cluster.u32 %r6, [%rd8];"
    refused(proof_of(REMOTE, 2, cluster=2), "memory", line, REMOTE)


TWO_WORDS = """setp.eq.u32 %p1, %r2, 0;
@%p1 bra ASK;
setp.eq.u32 %p1, %r2, 1;
@%p1 st.relaxed.gpu.global.u32 [%rd2], 1;
@!%p1 st.relaxed.gpu.global.u32 [%rd2+4], 1;
bra DONE;
ASK:
ld.relaxed.gpu.global.v2.u32 {%r5, %r6}, [%rd2];
setp.ne.u32 %p2, %r6, 1;
@%p2 bra ASK;
fence.acq_rel.gpu;"""


@pytest.mark.parametrize("first", ["%r5", "_"])
def test_a_flag_that_is_looked_at_with_its_neighbour(first: str) -> None:
    line = f"ld.relaxed.gpu.global.v2.u32 {{{first}, %r6}}, [%rd2];"
    body = TWO_WORDS.replace("{%r5", f"{{{first}")
    refused(proof_of(body, 3), "memory", line, body)


# -- loads of no use -------------------------------------------------------------------------------

UNUSED = """ld.global.u32 %r5, [%rd1];
ld.global.u32 %r6, [%rd2];
setp.ne.u32 %p1, %r6, 0;
selp.b32 %r7, %r5, 7, %p1;
st.global.u32 [%rd7], %r7;
setp.ne.u32 %p2, %r1, 32;
@%p2 bra DONE;
st.global.u32 [%rd1], 9;"""


def test_a_load_that_is_of_no_use_with_this_data_races_with_other_data() -> None:
    proof = proof_of(UNUSED, block=64, benign=True)
    assert proof.reach is Reach.THIS_DATA
    (only,) = proof.failed
    assert only.condition == "races"
    assert only.span is not None
    assert only.span.line == HEAD.count("\n") + 1


# -- who came first --------------------------------------------------------------------------------

COUNT = """setp.ne.u32 %p1, %r2, 0;
@%p1 bra OTHER;
st.global.u32 [%rd1], 7;
fence.acq_rel.gpu;
red.relaxed.gpu.global.add.u32 [%rd2], 1;
bra DONE;
OTHER:
FIRST
THEN"""
ADD = "atom.relaxed.gpu.global.add.u32 %r5, [%rd2], 1;"
RED = "red.relaxed.gpu.global.add.u32 [%rd2], 1;"
FENCED = "fence.acq_rel.gpu;\nld.global.u32 %r6, [%rd1];"
SET_BACK = "st.global.u32 [%rd2], 0;"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (ADD, FENCED), (ADD.replace("add.u32", "exch.b32"), FENCED), (ADD, SET_BACK),
        (RED.replace("u32", "s32"), SET_BACK),
    ],
)  # fmt: skip
def test_an_atomic_whose_result_is_not_read_orders_nothing(first: str, then: str) -> None:
    body = COUNT.replace("FIRST", first).replace("THEN", then)
    refused(proof_of(body, 2), "memory", first, body)


def test_an_atomic_of_a_vector_that_is_read_depends_on_who_came_first() -> None:
    line = "atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f1, %f2};"
    body = f".reg .f32 %f<3>;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f2, %f1;\n{line}\n"
    refused(proof_of(f"{body}st.global.f32 [%rd7], %f2;", 1), "memory", line, body)


def test_atomics_that_order_nothing_are_proved() -> None:
    body = COUNT.replace("FIRST", ADD).replace("THEN", "fence.acq_rel.gpu;")
    body = body.replace("fence.acq_rel.gpu;\nred", "red")
    assert proof_of(body, 2).reach is Reach.ALL_DATA


# -- who is last -----------------------------------------------------------------------------------

STORE = "st.volatile.global.u32 [%rd1], %r1;"
OR = "red.relaxed.gpu.global.or.b32 [%rd1], %r1;"
EXCH = "atom.exch.relaxed.gpu.global.b32 %r5, [%rd1], %r1;"
AND = "red.relaxed.gpu.global.and.b32 [%rd1], %r1;"
SHARED_STORE = "st.volatile.u32 [%rd5], %r1;"
VECTOR = "st.volatile.global.v2.u32 [%rd1], {%r2, %r1};"


@pytest.mark.parametrize(
    "last", [STORE, EXCH, SHARED_STORE, VECTOR, OR + "\n" + AND, OR + "\n" + STORE]
)
def test_what_depends_on_who_is_last_is_not_proved(last: str) -> None:
    refused(proof_of(last, block=64), "memory", last.splitlines()[-1], last)


@pytest.mark.parametrize(
    "last",
    [
        OR, STORE.replace("%r1", "7"), VECTOR.replace("%r1", "%r2"),
        STORE.replace("[%rd1]", "[%rd7]"), OR + "\nbar.sync 0;\n" + AND,
        "setp.ne.u32 %p1, %r1, 0;\nsetp.ne.u32 %p2, %r1, 33;\n@!%p1 " + STORE
        + "\nbar.sync 0;\n@!%p2 " + STORE + "\nbar.sync 0;\n" + OR,
        OR.replace("or.b32", "add.u32") + "\n" + OR.replace("or.b32", "add.s32"),
    ],
)  # fmt: skip
def test_what_is_the_same_whoever_is_last_is_proved(last: str) -> None:
    assert proof_of(last, block=64).failed == ()


def test_many_stores_and_sums_take_no_time_for_each_two() -> None:
    """32,768 threads at one place; a look at each two of them takes minutes."""
    same = STORE.replace("%r1", "7") + "\n" + OR.replace("[%rd1]", "[%rd2]")
    assert proof_of(same, 128, 256).failed == ()
    last = same + "\nbar.sync 0;\n" + AND.replace("[%rd1]", "[%rd2]")
    assert proof_of(last, 128, 256).reach is Reach.THIS_SCHEDULE


def test_stores_of_one_value_that_is_data_of_this_launch() -> None:
    body = "ld.global.u32 %r5, [%rd7];\nst.volatile.global.u32 [%rd1], %r5;"
    proof = proof_of(body, block=64)
    assert proof.reach is not Reach.ALL_DATA
    assert "data" in {each.condition for each in proof.failed}


# -- who is last, of what ends later ---------------------------------------------------------------

REDUCE = """mov.u32 %r3, flag;
st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};
fence.proxy.async;
FIRST
MEET
SECOND
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;"""
BULK = "cp.reduce.async.bulk.global.shared::cta.bulk_group.OP.u32 [%rd1], [%r3], 16;"
SUM, LEAST = BULK.replace("OP", "add"), BULK.replace("OP", "min")
OVER = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"


def bulk(first: str, meet: str, second: str) -> str:
    return REDUCE.replace("FIRST", first).replace("MEET", meet).replace("SECOND", second)


@pytest.mark.parametrize(("meet", "grid"), [("", 1), (OVER, 2), ("", 2)])
def test_bulk_reductions_of_two_kinds_in_no_order(meet: str, grid: int) -> None:
    """A thread's own are in order only when it has waited; those of two blocks are in none."""
    body = bulk(SUM, meet, LEAST)
    refused(proof_of(body, grid), "memory", LEAST, body)


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        (bulk(SUM, OVER, LEAST), 1), (bulk(SUM, OVER, SUM), 4), (bulk(SUM, "", SUM), 4),
        (bulk(SUM, OVER, "red.relaxed.gpu.global.add.u32 [%rd1], 1;"), 4),
    ],
)  # fmt: skip
def test_bulk_reductions_that_are_the_same_whoever_is_last(body: str, grid: int) -> None:
    assert proof_of(body, grid).failed == ()


def test_an_atomic_of_another_kind_while_a_reduction_is_under_way() -> None:
    other = "red.relaxed.gpu.global.min.u32 [%rd1], 1;"
    body = bulk(SUM, "", other)
    refused(proof_of(body), "memory", other, body)
    assert proof_of(bulk(SUM, OVER, other)).failed == ()


SENT = """.shared .align 8 .b64 bar;
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r3, bar;
mov.u32 %r4, flag;
mbarrier.init.shared.b64 [%r3], 1;
st.shared.u32 [%r4], 0;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u32 %r11, 0;
mapa.shared::cluster.u32 %r5, %r3, %r11;
mapa.shared::cluster.u32 %r6, %r4, %r11;
setp.eq.u32 %p1, %r10, 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], BYTES;
setp.eq.u32 %p2, %r10, 1;
@%p2 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6], 7, [%r5];
OTHER
@!%p1 bra E;
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r3], 0;
@!%p4 bra W;
E:
barrier.cluster.arrive;
barrier.cluster.wait;
AFTER"""
SENDS = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"


def sent(other: str, size: int, after: str = "") -> str:
    return SENT.replace("BYTES", str(size)).replace("OTHER", other).replace("AFTER", after)


def test_sent_reductions_of_two_kinds() -> None:
    other = f"@!%p2 {SENDS}.max.u32 [%r6], 9, [%r5];"
    body = sent(other, 8)
    refused(proof_of(body, 2, cluster=2), "memory", other, body)
    assert proof_of(sent(other.replace("max", "add"), 8), 2, cluster=2).failed == ()


def test_a_sent_reduction_and_an_atomic_in_no_order() -> None:
    """The atomic is in order with the other block's reduction only behind the wait."""
    other = "@%p1 red.relaxed.cluster.shared::cta.max.u32 [%r4], 9;"
    body = sent(other, 4)
    refused(proof_of(body, 2, cluster=2), "memory", other, body)
    assert proof_of(sent("", 4, other), 2, cluster=2).failed == ()


# -- what is reckoned with what came in no order ---------------------------------------------------

COUNTED = """mov.u32 %r5, FIRST;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra MEET;
st.shared.u32 [flag], %r5;
red.shared.add.u32 [flag], SECOND;
MEET: bar.sync 0;
ld.shared.u32 %r6, [flag];
setp.eq.u32 %p2, %r6, 1;
@%p2 bra DONE;
st.global.u32 [%rd7], 1;"""


@pytest.mark.parametrize(("first", "second"), [("%clock", "0"), ("0", "%smid"), ("%clock", "1")])
def test_a_sum_with_a_clock_depends_on_time(first: str, second: str) -> None:
    """What is added to it later does not hide that; without one, it is data at most."""
    other = COUNTED if second.isdigit() else f"mov.u32 %r7, {second};\n{COUNTED}"
    number = second if second.isdigit() else "%r7"
    body = other.replace("FIRST", first).replace("SECOND", number)
    refused(proof_of(body, block=64), "order", "@%p2 bra DONE;", body)
    plain = COUNTED.replace("FIRST", "3").replace("SECOND", "1")
    assert proof_of(plain, block=64).reach is Reach.THIS_DATA


def test_a_sum_that_is_sent_to_a_clock_depends_on_time() -> None:
    """The reduction sees what the place held before."""
    asks = "ld.shared.u32 %r9, [%r4];\nsetp.eq.u32 %p5, %r9, 1;\n@%p5 bra DONE;"
    body = sent("", 4, asks)
    proof = proof_of(body, 2, cluster=2)
    assert "order" not in {each.condition for each in proof.failed}
    clock, send = "mov.u32 %r9, %clock;\n", "@%p2 red.async"
    held = body.replace("st.shared.u32 [%r4], 0;", f"{clock}st.shared.u32 [%r4], %r9;")
    added = body.replace(send, f"{clock}{send}").replace("[%r6], 7,", "[%r6], %r9,")
    for timed in (held, added):
        refused(proof_of(timed, 2, cluster=2), "order", "@%p5 bra DONE;", timed)


STATE = """.shared .align 8 .b64 two[2];
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [two], 64;
mbarrier.init.shared.b64 [two+8], 64;
READY: bar.sync 0;
mbarrier.arrive.shared.b64 %rd8, [two];
mbarrier.arrive.shared.b64 %rd9, [two+8];
MADE
ASK: mbarrier.try_wait.shared.b64 %p2, [two], %rd10;
@!%p2 bra ASK;"""


@pytest.mark.parametrize("made", ["mov.b64 %rd10, %rd9;", "mov.b64 %rd10, 0;"])
def test_a_wait_takes_a_state_of_its_own_mbarrier_alone(made: str) -> None:
    """Another one says nothing of its phase: by the manual what happens then is undefined."""
    with pytest.raises(SynchronisationError, match="no arrival at this mbarrier gave") as found:
        proof_of(STATE.replace("MADE", made), block=64)
    assert found.value.span is not None


def test_a_state_that_is_reckoned_with_is_none() -> None:
    good = STATE.replace("MADE", "setp.eq.u32 %p3, %r1, 7;\nselp.b64 %rd10, %rd8, %rd8, %p3;")
    assert proof_of(good, block=64).reach is Reach.ALL_DATA
    body = STATE.replace("MADE", "add.u64 %rd10, %rd8, 0;")
    refused(
        proof_of(body, block=64),
        "order",
        "ASK: mbarrier.try_wait.shared.b64 %p2, [two], %rd10;",
        body,
    )


NOT_LAST = """.shared .align 8 .b64 one;
setp.ne.u32 %p1, %r1, 0;
setp.ne.u32 %p2, %r1, 32;
@%p1 bra READY;
mbarrier.init.shared.b64 [one], 2;
READY: bar.sync 0;
@!%p1 mbarrier.arrive.noComplete.shared.b64 %rd8, [one], 1;
THEN
ASK: mbarrier.try_wait.parity.shared.b64 %p3, [one], 0;
@!%p3 bra ASK;"""


def test_an_arrival_that_must_not_be_the_last_is_before_another() -> None:
    """Else it completes the phase where the other comes first, of which nothing is defined."""
    line = "@!%p1 mbarrier.arrive.noComplete.shared.b64 %rd8, [one], 1;"
    other = NOT_LAST.replace("THEN", "@!%p2 mbarrier.arrive.shared.b64 %rd9, [one];")
    refused(proof_of(other, block=64), "C4", line, other)
    own = NOT_LAST.replace("THEN", "@!%p1 mbarrier.arrive.shared.b64 %rd9, [one];")
    proof = proof_of(own, block=64)
    assert proof.reach is Reach.ALL_DATA
    assert check_schedule(certificate("k", (1, 1, 1), (64, 1, 1), proof, None)).shown
