"""What a proof says of clusters, ends of blocks, registers and barriers of some threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.errors import DeadlockError, KernelError
from warploom.machine.proof import Proof, Reach
from warploom.ptx import load

HEAD = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
DIRECTIVES
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
.shared .align 16 .b64 full[2];
.shared .align 16 .b8 data[512];
ld.param.u64 %rd1, [p];
cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, %tid.x;
mov.u32 %r3, full;
mov.u32 %r5, data;
mov.u32 %r6, %cluster_ctarank;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.init.shared::cta.b64 [%r3+8], 1;
fence.mbarrier_init.release.cluster;
READY:
"""
CLUSTER = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
WAIT = """
ASK:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3], 0;
@!%p4 bra ASK;
"""


def proved(body: str, directives: str = "", threads: int = 32, **options: Any) -> Proof:
    text = HEAD.replace("DIRECTIVES", directives) + body + "\nret;\n}\n"
    blocks = int(np.prod(options.get("cluster", 1)))
    kernel = load(text, "k.ptx").kernel("k")
    args = [np.zeros(1024, np.uint8)]
    report = kernel.launch(blocks, threads, args, races="all", prove=True, **options)
    assert report.proof is not None
    return report.proof


def conditions(proof: Proof) -> set[str]:
    return {each.condition for each in proof.failed}


# -- clusters --------------------------------------------------------------------------------------

# The second block arrives at the mbarrier of the first, which waits for it.
REMOTE = (
    """
mapa.shared::cluster.u32 %r7, %r3, 0;
setp.eq.u32 %p2, %r6, 0;
@%p2 bra FIRST;
@!%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
bra DONE;
FIRST:
"""
    + WAIT
    + "DONE:\n"
)


def test_a_block_that_waits_for_its_peer_is_proved() -> None:
    assert proved(CLUSTER + REMOTE, cluster=2).reach is Reach.ALL_DATA


def test_blocks_of_a_cluster_meet_before_they_reach_each_other() -> None:
    """Without its barrier the arrival may come before the peer has initialised."""
    relaxed = CLUSTER.replace(".release", "").replace(".acquire", "")
    assert proved(relaxed + REMOTE, cluster=2).reach is Reach.ALL_DATA
    assert "init" in conditions(proved("bar.sync 0;\n" + REMOTE + CLUSTER, cluster=2))


def test_a_peer_that_may_have_ended_is_named() -> None:
    """The first block waits for nothing: it may be gone when the arrival comes."""
    alone = REMOTE.replace(WAIT, "nanosleep.u32 100;\n")
    proof = proved(CLUSTER + alone, cluster=2)
    assert conditions(proof) == {"exit"}
    (failed,) = proof.failed
    assert "may have ended" in failed.message
    assert failed.span is not None
    again = proved(CLUSTER + alone + CLUSTER, cluster=2)
    assert again.reach is Reach.ALL_DATA


def test_memory_of_a_peer_that_may_have_ended_is_named() -> None:
    read = "st.shared.u32 [%r5], %r1;\nMEET\nxor.b32 %r8, %r6, 1;\n"
    read += "mapa.shared::cluster.u32 %r7, %r5, %r8;\nld.shared::cluster.u32 %r9, [%r7];\n"
    read = read.replace("MEET", CLUSTER)
    assert conditions(proved(read, threads=1, cluster=2)) == {"exit"}
    assert proved(read + CLUSTER, threads=1, cluster=2).reach is Reach.ALL_DATA


# The second block touches the first one's memory, and both meet, or the first waits for an arrival.
TOUCHED = """
mapa.shared::cluster.u32 %r7, %r5, 0;
mapa.shared::cluster.u32 %r8, %r3, 0;
@!%p1 st.shared.b32 [%r5], %r1;
setp.eq.u32 %p2, %r6, 0;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
@%p2 bra FIRST;
TOUCH
TELL
bra DONE;
FIRST:
HEAR
DONE:
END
"""
STORES = "@!%p1 st.shared::cluster.b32 [%r7], %r6;"
BESIDE = "setp.eq.u32 %p3, %r1, 5;\n" + STORES.replace("!%p1", "%p3") + "\nbar.sync 0;"
LOADS = "@!%p1 ld.shared::cluster.b32 %r9, [%r7];"
TELLS = "@!%p1 mbarrier.arrive.HOW.shared::cluster.b64 _, [%r8];"
HEARS = WAIT.replace("parity", "parity.acquire.cluster")
BY_ALL = ("", "", "barrier.cluster.arrive.HOW.aligned;\nbarrier.cluster.wait.acquire.aligned;")
BY_ONE = (TELLS, HEARS, "")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("touch", "told", "how", "right"),
    [
        (STORES, BY_ALL, "release", "both"), (STORES, BY_ALL, "relaxed", ""),
        (LOADS, BY_ALL, "relaxed", ""),
        (STORES + "\nfence.acq_rel.cluster;", BY_ALL, "relaxed", "both"),
        (STORES + "\nfence.acq_rel.cta;", BY_ALL, "relaxed", ""),
        (STORES, BY_ONE, "release.cluster", "both"), (STORES, BY_ONE, "relaxed.cluster", ""),
        (STORES, BY_ONE, "release.cta", ""), (LOADS, BY_ONE, "release.cta", "practice"),
        (BESIDE, BY_ONE, "release.cluster", "both"),
        (BESIDE, BY_ONE, "relaxed.cluster", ""),
        ("", BY_ONE, "relaxed.cluster", "both"),  # of the arrival itself its phase tells
    ],
)  # fmt: skip
def test_who_says_that_memory_of_a_peer_was_touched_releases_it(
    touch: str, told: tuple[str, str, str], how: str, right: str, model: Any
) -> None:
    """A relaxed arrival may be seen while what came before it is under way."""
    text = TOUCHED.replace("TOUCH", touch)
    for name, part in zip(("TELL", "HEAR", "END"), told, strict=True):
        text = text.replace(name, part.replace("HOW", how))
    proof = proved(text, cluster=2, model=model)
    assert conditions(proof) == (set() if right in ("both", model) else {"exit"})


@pytest.mark.parametrize(("meet", "failed"), [("bar.sync 0;\n", {"begin"}), (CLUSTER, set())])
def test_memory_of_a_peer_that_may_not_have_begun_is_named(meet: str, failed: set[str]) -> None:
    """Nobody else touches what is stored to, so that no race tells of it."""
    reach = "xor.b32 %r8, %r6, 1;\nmapa.shared::cluster.u32 %r7, %r5, %r8;\n"
    store = "setp.eq.u32 %p2, %r6, 0;\n@%p2 st.shared::cluster.u32 [%r7], %r1;\n"
    proof = proved(meet + reach + store + CLUSTER, threads=1, cluster=2)
    assert conditions(proof) == failed
    assert all("may not have begun" in each.message and each.span for each in proof.failed)


# -- copies and ends -------------------------------------------------------------------------------

COPY = """
bar.sync 0;
@%p1 bra LATER;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 256, [%r3];
LATER:
"""
STORE = """
@%p1 bra LATER;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 16;
cp.async.bulk.commit_group;
WAIT
LATER:
"""


def test_a_copy_that_nobody_waits_for_is_named() -> None:
    assert conditions(proved(COPY)) == {"exit"}
    assert proved(COPY + WAIT).reach is Reach.ALL_DATA


def test_a_copy_out_of_shared_memory_is_waited_for() -> None:
    first = "st.shared.v4.b32 [%r5], {%r1, %r1, %r1, %r1};\nfence.proxy.async.shared::cta;\n"
    for wait, failed in (
        ("cp.async.bulk.wait_group.read 0;", set()), ("cp.async.bulk.wait_group 0;", set()),
        ("", {"exit"}), ("cp.async.bulk.wait_group.read 1;", {"exit"}),
    ):  # fmt: skip
        assert conditions(proved(first + STORE.replace("WAIT", wait), threads=1)) == failed


BEGUN = "cp.async.ca.shared.global [%r5], [%rd1], 16;\n"
TOLD = "bar.sync 0;\n" + BEGUN + "cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];\n"


@pytest.mark.parametrize(
    ("body", "waited"),
    [
        (BEGUN, False), (BEGUN + "cp.async.commit_group;\n", False), (TOLD, False),
        (BEGUN + BEGUN.replace("[%r5]", "[%r5+16]") + "cp.async.wait_all;\n", True),
        (BEGUN + "cp.async.commit_group;\ncp.async.wait_group 1;\n", False),
        (TOLD + WAIT, True), (TOLD + "cp.async.wait_all;\n", False),
    ],
)  # fmt: skip
def test_a_plain_copy_that_nobody_waits_for(body: str, waited: bool) -> None:
    """The manual does not say that it ends before its block does; by practice that is assumed."""
    proof = proved(body, threads=1, model="ptx")
    assert conditions(proof) == (set() if waited else {"exit"})
    assert all(each.span is not None for each in proof.failed)
    proof = proved(body, threads=1)
    assert proof.failed == ()
    assert any("under way when its block ends" in each for each in proof.assumed) is not waited


# -- one thread initialises, before all others -----------------------------------------------------


def test_an_mbarrier_is_initialised_before_it_is_used() -> None:
    """Lanes of one warp: without a barrier the others may ask too soon."""
    arrives = "mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
    body = "bar.sync 0;\n@!%p1 " + arrives + WAIT
    assert proved(body).reach is Reach.ALL_DATA
    early = "@!%p1 " + arrives + WAIT
    assert "init" in conditions(proved(early))


# -- barriers of some threads ----------------------------------------------------------------------

TURNS = """
setp.gt.u32 %p2, %r1, 31;
@%p2 bra SECOND;
bar.arrive 1, 64;
bar.sync 2, 64;
AGAIN
bra DONE;
SECOND:
bar.sync 1, 64;
bar.arrive 2, 64;
bar.sync 1, 64;
DONE:
"""


def test_turns_by_named_barriers() -> None:
    good = TURNS.replace("AGAIN", "bar.arrive 1, 64;")
    assert proved(good, threads=64).reach is Reach.ALL_DATA
    unordered = TURNS.replace("AGAIN", "bar.arrive 1, 64;\nbar.sync 2, 64;")
    unordered = unordered.replace("bar.sync 1, 64;\nDONE", "bar.arrive 2, 64;\nDONE")
    proof = proved(unordered, threads=64)
    assert conditions(proof) == {"barrier"}
    assert "barrier 2" in proof.failed[0].message


# -- registers -------------------------------------------------------------------------------------

ROLES = """
setp.gt.u32 %p2, %r1, 127;
@%p2 bra MORE;
LESS
bra DONE;
MORE:
setmaxnreg.inc.sync.aligned.u32 COUNT;
mbarrier.arrive.shared::cta.b64 _, [%r3+8];
DONE:
"""
BOUND = ".maxntid 256, 1, 1\n.minnctapersm 1"


def test_registers_come_from_those_that_give_them_back() -> None:
    """256 threads begin with 248 each, as an assembler gives at most 255 in units of eight."""
    gives = "setmaxnreg.dec.sync.aligned.u32 LEFT;\n"
    body = "bar.sync 0;\n" + ROLES.replace("COUNT", "256")
    body = body.replace("mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n", "")
    proof = proved(body.replace("LESS", gives.replace("LEFT", "240")), BOUND, threads=256)
    assert not proof.failed
    assert any("248 registers" in each for each in proof.assumed)
    for less in (gives.replace("LEFT", "248"), ""):
        with pytest.raises(DeadlockError, match="registers that never come back"):
            proved(body.replace("LESS", less), BOUND, threads=256)


def test_registers_that_come_back_too_late() -> None:
    """The one waits for an arrival of the other before it gives registers back."""
    less = WAIT.replace("[%r3]", "[%r3+8]") + "setmaxnreg.dec.sync.aligned.u32 240;\n"
    arrive = "setp.eq.u32 %p3, %r1, 128;\n@%p3 mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"
    body = ROLES.replace("LESS", less).replace("COUNT", "256")
    body = body.replace("mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n", arrive)
    with pytest.raises(DeadlockError, match="wait at line 38 for registers") as caught:
        proved("bar.sync 0;\n" + body, BOUND, threads=256)
    assert caught.value.span is not None
    assert caught.value.span.line == 38
    advice = str(caught.value.advice)
    assert "setmaxnreg.inc waits until" in advice
    assert "full" not in advice  # the mbarrier is right: who should arrive there waits


@pytest.mark.parametrize("word", ["maxnreg 128", "maxntid 512"])
def test_what_a_thread_starts_with(word: str) -> None:
    body = "bar.sync 0;\nsetmaxnreg.dec.sync.aligned.u32 64;\n"
    proof = proved(body, f".{word}", threads=128)
    assert "the kernel is compiled for 128 registers of a thread" in proof.assumed


LENT = """
setp.lt.u32 %p2, %r1, 128;
@%p2 bra MORE;
setmaxnreg.dec.sync.aligned.u32 64;
MEET
setmaxnreg.inc.sync.aligned.u32 128;
bra DONE;
MORE:
setmaxnreg.inc.sync.aligned.u32 192;
setmaxnreg.dec.sync.aligned.u32 128;
MEET
DONE:
"""


def test_registers_that_are_lent() -> None:
    """They are taken back when the borrower has had them; else it may never get any."""
    bound = ".maxntid 256, 1, 1\n.maxnreg 128"
    good = "bar.sync 0;\n" + LENT.replace("MEET", "bar.sync 1;")
    assert not proved(good, bound, threads=256).failed
    proof = proved("bar.sync 0;\n" + LENT.replace("MEET", ""), bound, threads=256, schedule=0)
    assert conditions(proof) == {"registers"}
    assert "may be held or waited for at once" in proof.failed[0].message


# -- mbarriers that are made invalid ---------------------------------------------------------------

AGAIN = "mbarrier.init.shared::cta.b64 [%r3], 1;\nbar.sync 0;\n"
ONCE = "bar.sync 0;\n@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];\n" + WAIT
INVAL = "@!%p1 mbarrier.inval.shared::cta.b64 [%r3];\n"


def test_an_mbarrier_is_made_invalid_after_its_uses() -> None:
    assert proved(ONCE + "bar.sync 0;\n" + INVAL, threads=64).reach is Reach.ALL_DATA
    again = ONCE + "bar.sync 0;\n" + INVAL + "@!%p1 " + AGAIN
    again += ONCE.replace("ASK", "ASK2") + "bar.sync 0;\n" + INVAL
    assert proved(again, threads=64).reach is Reach.ALL_DATA


def test_an_mbarrier_that_is_made_invalid_too_soon() -> None:
    """Another warp may still wait for it."""
    proof = proved(ONCE + "nanosleep.u32 20;\n" + INVAL, threads=64, schedule=2)
    assert "mbarrier" in conditions(proof)
    assert any("while it is still used" in each.message for each in proof.failed)


# -- mbarriers that are written over ---------------------------------------------------------------

OVER = {
    "by another thread": "setp.ne.u32 %p2, %r1, 5;\n@!%p2 st.shared.u64 [%r3], 0;\n",
    "by itself, in part": "@!%p1 st.shared.u8 [%r3+7], 0;\n",
    "by a generic address": "cvt.u64.u32 %rd4, %r3;\ncvta.shared.u64 %rd4, %rd4;\n"
    "@!%p1 st.u32 [%rd4], 0;\n",
    "by an atomic": "@!%p1 red.shared.add.u32 [%r3], 0;\n",
    "by a copy": "@!%p1 cp.async.ca.shared.global [%r3], [%rd1], 16;\ncp.async.wait_all;\n",
    "by a bulk copy": "@%p1 bra PAST;\nmbarrier.init.shared.b64 [%r5], 1;\n"
    "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 16;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 16, [%r5];\n"
    "PAST:\nbar.sync 0;\n" + WAIT.replace("ASK", "ASK3").replace("%r3", "%r5"),
}


@pytest.mark.parametrize("way", OVER)
def test_an_mbarrier_that_is_written_over_while_it_is_alive(way: str) -> None:
    """By the manual only operations on mbarriers may touch it, until it is made invalid."""
    with pytest.raises(KernelError, match="touches an mbarrier that is alive") as told:
        proved("bar.sync 0;\n" + OVER[way] + ONCE, threads=64)
    assert told.value.span is not None


def test_what_is_beside_an_mbarrier_or_behind_its_end_may_be_written() -> None:
    gone = "@!%p1 mbarrier.inval.shared::cta.b64 [%r3+8];\nbar.sync 0;\n"
    gone += "setp.ne.u32 %p2, %r1, 5;\n@!%p2 st.shared.u64 [%r3+8], 0;\n"
    beside = "@!%p1 st.shared.u64 [%r5], 0;\n"
    assert proved(gone + beside + ONCE, threads=64).reach is Reach.ALL_DATA


def test_an_mbarrier_of_which_all_dropped_lacks_no_bytes() -> None:
    """That it is not proved has one reason, at the drop."""
    body = "bar.sync 0;\n@!%p1 mbarrier.arrive_drop.shared::cta.b64 _, [%r3];\n"
    (failed,) = proved(body).failed
    assert failed.condition == "mbarrier"
    assert "arrive_drop" in failed.message
