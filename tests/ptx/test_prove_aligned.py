"""What is .aligned is executed by whole warps and warpgroups; threads that end, and registers."""

from __future__ import annotations

import pytest
from tests.ptx.test_prove_ends import CLUSTER, conditions, proved

from warploom.errors import SynchronisationError
from warploom.machine.proof import Reach
from warploom.ptx.emulate.asked import Model

MODELS: tuple[Model, ...] = ("ptx", "practice")
ARRIVE, WAIT = CLUSTER.rstrip("\n").split("\n")
HALF = "setp.gt.u32 %p2, %r1, 15;\n"
APART = "@%p2 bra OTHER;\n{0}\nbra SAME;\nOTHER:\n{0}\nSAME:\n"
CONVERGED = "lanes of a warp that part ways"

# -- lanes that come apart -------------------------------------------------------------------------

BROKEN = {
    "arrivals of halves": (HALF + f"@%p2 {ARRIVE}\n@!%p2 {ARRIVE}\n{WAIT}", "different instr"),
    "arrivals on two ways": (HALF + APART.format(ARRIVE) + WAIT, "different instructions"),
    "waits on two ways": (HALF + ARRIVE + "\n" + APART.format(WAIT), "different instructions"),
    "waits of halves": (HALF + f"{ARRIVE}\n@%p2 {WAIT}\n@!%p2 {WAIT}", "lanes of (one|the) warp"),
    "bar.sync": (HALF + APART.format("bar.sync 1, 32;"), "different instructions"),
    "bar.arrive": (HALF + APART.format("bar.arrive 1, 32;") + "bar.sync 0;", "different instr"),
    "wgmma.fence of half": (HALF + "@%p2 wgmma.fence.sync.aligned;", "not all 32 lanes"),
    "wgmma.commit_group of half": (HALF + "@%p2 wgmma.commit_group.sync.aligned;", "lanes?"),
    "wgmma.wait_group of half": (HALF + "@%p2 wgmma.wait_group.sync.aligned 0;", "32 lanes"),
    "setmaxnreg of half": (HALF + "@%p2 setmaxnreg.dec.sync.aligned.u32 64;", "lanes of the warp"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_lanes_of_a_warp_come_together_to_what_is_aligned(name: str) -> None:
    body, said = BROKEN[name]
    with pytest.raises(SynchronisationError, match=said):
        proved(body, threads=128, cluster=2)


@pytest.mark.parametrize(
    "word", ["wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;",
             "wgmma.wait_group.sync.aligned 0;"],
)  # fmt: skip
def test_all_warps_of_a_warpgroup_come(word: str) -> None:
    one = "setp.gt.u32 %p2, %r1, 31;\n@%p2 bra PAST;\n" + word + "\nPAST:\n"
    with pytest.raises(SynchronisationError, match="not all four warps"):
        proved(one, threads=128)
    assert proved(word, threads=128).reach is Reach.ALL_DATA


def test_warps_of_a_warpgroup_come_in_one_order() -> None:
    """Each comes to both instructions, one of them to the second one first."""
    first, second = "wgmma.fence.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n"
    turns = "mov.u32 %r8, 0;\nsetp.gt.u32 %p2, %r1, 31;\nxor.b32 %r9, %r1, %r1;\n"
    turns += "@%p2 mov.u32 %r9, 1;\nAGAIN:\nsetp.eq.u32 %p3, %r9, 0;\n@%p3 bra FIRST;\n"
    turns += second + "bra ON;\nFIRST:\n" + first + "ON:\nxor.b32 %r9, %r9, 1;\n"
    turns += "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p4, %r8, 2;\n@%p4 bra AGAIN;\n"
    with pytest.raises(SynchronisationError, match="in other orders"):
        proved(turns, threads=128)


def test_without_the_word_lanes_may_come_apart() -> None:
    arrive, wait = ARRIVE.replace(".aligned", ""), WAIT.replace(".aligned", "")
    body = (
        HALF + APART.format(arrive) + APART.format(wait).replace("OTHER", "X").replace("SAME", "Y")
    )
    assert proved(body, cluster=2).reach is Reach.ALL_DATA


@pytest.mark.parametrize(
    ("body", "model", "assumed"),
    [
        (CLUSTER, "practice", True), (CLUSTER.replace(".aligned", ""), "practice", False),
        ("bar.sync 0;", "practice", False), ("bar.sync 0;", "ptx", True),
        ("barrier.sync 0;", "ptx", False),
    ],
)  # fmt: skip
def test_that_lanes_meet_again_is_assumed_where_it_matters(
    body: str, model: Model, assumed: bool
) -> None:
    proof = proved(body, cluster=2, model=model)
    assert proof.reach is Reach.ALL_DATA
    assert any(each.startswith(CONVERGED) for each in proof.assumed) is assumed


LACKS = "mask of members does not name the lane that executes it"
STOP = "mov.u32 %r8, %r1;\n"


@pytest.mark.parametrize("last", ["", STOP])
@pytest.mark.parametrize(
    "sync", ["bar.warp.sync 1;", HALF + "@%p2 bar.warp.sync 1;",
             HALF + APART.format("bar.warp.sync 0xffff;")],
)  # fmt: skip
def test_a_mask_names_the_lane_that_executes_it(sync: str, last: str) -> None:
    """Also where nothing follows but the end of the kernel."""
    with pytest.raises(SynchronisationError, match=LACKS):
        proved(sync + "\n" + last)


@pytest.mark.parametrize("last", ["", STOP])
def test_lanes_that_ended_have_come_to_what_their_warp_waits_for(last: str) -> None:
    """By the manual they have to come to bar.warp.sync; GPUs do not wait for them."""
    body = HALF + "@%p2 exit;\nbar.warp.sync {};\n" + last
    assert proved(body.format("0xffff"), model="ptx").reach is Reach.ALL_DATA
    proof = proved(body.format(-1))
    assert proof.reach is Reach.ALL_DATA
    assert any(each.startswith("lanes that ended have come") for each in proof.assumed)
    proof = proved(body.format(-1), model="ptx")
    assert conditions(proof) == {"aligned"}
    assert all(each.span is not None for each in proof.failed)


# -- threads that end ------------------------------------------------------------------------------

ENDS = """
shl.b32 %r8, %r1, 2;
add.u32 %r9, %r8, %r5;
setp.gt.u32 %p2, %r1, 31;
STORE
@%p2 exit;
MEET 0;
LOAD
"""
STORE, LOAD = "@%p2 st.shared.u32 [%r9], %r1;", "ld.shared.u32 %r10, [%r9+128];"


@pytest.mark.parametrize(
    ("meet", "memory", "failed"),
    [
        ("bar.sync", False, {"aligned"}), ("bar.sync", True, {"aligned", "races"}),
        ("barrier.sync", False, set()), ("barrier.sync", True, {"races"}),
    ],
)  # fmt: skip
def test_threads_that_end_before_a_barrier(meet: str, memory: bool, failed: set[str]) -> None:
    """By the manual they let the others go, which orders nothing that they did; GPUs do."""
    body = ENDS.replace("MEET", meet)
    body = body.replace("STORE", STORE * memory).replace("LOAD", LOAD * memory)
    assert conditions(proved(body, threads=64, model="ptx")) == failed
    assert proved(body, threads=64).reach is Reach.ALL_DATA


@pytest.mark.parametrize(("last", "failed"), [(31, set()), (15, {"aligned"})])
def test_threads_that_end_before_the_barrier_of_a_cluster(last: int, failed: set[str]) -> None:
    """Whole warps may be gone, by the manual, too."""
    body = f"setp.gt.u32 %p2, %r1, {last};\n@%p2 exit;\n" + CLUSTER
    assert conditions(proved(body, threads=64, cluster=2, model="ptx")) == failed
    assert proved(body, threads=64, cluster=2).reach is Reach.ALL_DATA


# -- setmaxnreg ------------------------------------------------------------------------------------

LESS, MORE = (f"setmaxnreg.{each}.sync.aligned.u32 " for each in ("dec", "inc"))
BOUND = ".maxntid 128, 1, 1\n.maxnreg 128"
TWO = f"setp.gt.u32 %p2, %r1, 63;\n@%p2 bra B;\n{LESS}64;\nbra C;\nB:\n{LESS}64;\nC:\n"


@pytest.mark.parametrize(
    ("body", "failed"),
    [
        (f"{LESS}64;\n{MORE}128;", {"aligned"}), (f"{LESS}64;\nbar.sync 0;\n{MORE}128;", set()),
        (f"{LESS}64;\nbar.warp.sync -1;\n{MORE}128;", {"aligned"}), (TWO, {"aligned"}),
    ],
)  # fmt: skip
def test_a_warpgroup_sets_its_registers_together(body: str, failed: set[str]) -> None:
    """By the manual: it meets before it does so again. GPUs do not need that."""
    proof = proved(body, BOUND, threads=128, model="ptx")
    assert conditions(proof) == failed
    assert all(each.span is not None for each in proof.failed)
    proof = proved(body, BOUND, threads=128)
    assert proof.reach is Reach.ALL_DATA
    again = MORE in body and bool(failed)
    assert any("needs no meeting" in each for each in proof.assumed) is again


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (".maxnreg 100", "compiled for 96 registers"), (".reqntid 128", "for 248 registers"),
        (".reqntid 512", "for 128 registers"), ("", "nobody waits for registers"),
    ],
)  # fmt: skip
def test_what_is_assumed_of_registers(bound: str, said: str) -> None:
    threads = 512 if "512" in bound else 128
    proof = proved(LESS + "64;", bound, threads=threads)
    assert any(said in each for each in proof.assumed)


SPLIT = f"setp.gt.u32 %p2, %r1, 127;\n@%p2 bra B;\nFIRST\nbra C;\nB:\n{MORE}240;\nC:\n"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("threads", "first", "good"),
    [(256, f"{MORE}240;", True), (384, f"{LESS}24;", True), (384, f"{LESS}104;", False),
     (384, "", False), (512, f"{MORE}240;", False)],
)  # fmt: skip
def test_no_more_registers_are_asked_for_than_a_machine_has(
    model: Model, threads: int, first: str, good: bool
) -> None:
    """Of a kernel that bounds none, too."""
    body = SPLIT.replace("FIRST", first)
    proof = proved(body, threads=threads, model=model)
    assert any("nobody waits for registers" in each for each in proof.assumed)
    assert conditions(proof) == (set() if good else {"registers"})
    assert all(each.span is not None for each in proof.failed)


def test_who_is_elected_is_assumed() -> None:
    proof = proved("elect.sync _|%p2, 0xffffffff;\n@%p2 st.shared.u32 [%r5], %r1;")
    assert proof.reach is Reach.ALL_DATA
    assert any(each.startswith("elect.sync picks the lowest") for each in proof.assumed)
