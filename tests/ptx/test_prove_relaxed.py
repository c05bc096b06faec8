"""What relaxed arrivals and waits, and those of copies, hand on: by the manual nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ptx.test_prove_ends import CLUSTER, conditions, proved

ASK = """
LABEL:
mbarrier.try_wait.parity.HOWshared::cta.b64 %p4, [%r3+WHERE], ODD;
@!%p4 bra LABEL;
"""
NAMES = iter(f"ASK{number}" for number in range(1000))


def ask(where: int, odd: int = 0, how: str = "") -> str:
    text = ASK.replace("LABEL", next(NAMES)).replace("WHERE", str(where))
    return text.replace("ODD", str(odd)).replace("HOW", how)


def arrive(where: int, how: str = "") -> str:
    return f"mbarrier.arrive.{how}shared::cta.b64 _, [%r3+{where}];\n"


# The first thread sees a phase of the first mbarrier, and tells the second warp by the other one,
# which then arrives in the next phase of the first.
TURN = """
bar.sync 0;
setp.eq.u32 %p2, %r1, 32;
@%p2 bra SECOND;
@%p1 bra DONE;
mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
RELAX = "relaxed.cta."
COPIED = "cp.async.ca.shared.global [%r5], [%rd1], 16;\n"
AFTER = COPIED + "cp.async.mbarrier.arrive.noinc.shared.b64 [%r3+8];\n"


def turn(tell: str, hear: str) -> str:
    first = ask(0) + tell + "bra DONE;\nSECOND:\n"
    return TURN + first + hear + arrive(0) + ask(0, 1) + "DONE:\n"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("tell", "hear", "right"),
    [
        (arrive(8), "", True), (arrive(8, RELAX), "", False),
        (arrive(8), RELAX, False),
        ("fence.acq_rel.cta;\n" + arrive(8, RELAX), "", True),
        (arrive(8, RELAX) + "fence.acq_rel.cta;\n", "", False),
        (arrive(8), RELAX + "fence", True),
        (AFTER, "", True),  # copies begin after what their thread has seen
    ],
)  # fmt: skip
def test_what_a_phase_is_seen_by_is_told_by_a_release(
    tell: str, hear: str, right: bool, model: Any
) -> None:
    """Else the arrival of the second may be counted in the first phase, by the manual."""
    wait = ask(8, how=hear.removesuffix("fence")) + "fence.acq_rel.cta;\n" * hear.endswith("fence")
    proof = proved(turn(tell, wait), threads=64, model=model)
    good = right or model == "practice"
    assert conditions(proof) == (set() if good else {"C1", "C2", "C3"})
    assert all(each.span is not None for each in proof.failed)


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(("tell", "right"), [(arrive(8), True), (AFTER, False)])
def test_bytes_that_are_expected_are_told_by_a_release(tell: str, right: bool, model: Any) -> None:
    """That copies are done says nothing of what their thread did to another mbarrier."""
    expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 16;\n"
    brings = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 16;\n"
    body = TURN.replace("mbarrier.arrive.shared::cta.b64 _, [%r3];\n", expect) + tell + brings
    body += "bra DONE;\nSECOND:\n" + ask(8) + arrive(0) + ask(0) + "DONE:\n"
    proof = proved(body, threads=64, model=model)
    assert conditions(proof) == (set() if right or model == "practice" else {"C4"})


def test_a_relaxed_wait_orders_what_its_thread_does_at_the_same_mbarrier() -> None:
    """It sees the phase that is complete, and the next one comes later."""
    body = "bar.sync 0;\n@%p1 bra DONE;\n" + arrive(0, RELAX) + ask(0, 0, RELAX)
    body += arrive(0, RELAX) + ask(0, 1, RELAX) + "DONE:\n"
    assert not proved(body, threads=32, model="ptx").failed


MEETS = {"bar.warp.sync -1;": True, "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;": False}


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize("meets", MEETS)
def test_an_exchange_of_lanes_hands_on_nothing(meets: str, model: Any) -> None:
    """One lane sees a phase, and another one arrives in the next: by the manual a barrier of the
    warp has to be between them."""
    body = "bar.sync 0;\n@%p1 bra MEET;\n" + arrive(0) + ask(0) + f"MEET:\n{meets}\n"
    body += "setp.ne.u32 %p2, %r1, 1;\n@%p2 bra DONE;\n" + arrive(0) + ask(0, 1) + "DONE:\n"
    proof = proved(body, threads=32, model=model)
    good = MEETS[meets] or model == "practice"
    assert conditions(proof) == (set() if good else {"C1", "C2", "C3"})


STORES = "st.shared.b32 [%r5+64], %r1;\n"
READS = "ld.shared.b32 %r9, [%r5+AT];\n"


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(("at", "right"), [("0", True), ("64", False)])
def test_an_arrival_when_copies_are_done_releases_those_alone(
    at: str, right: bool, model: Any
) -> None:
    body = TURN + STORES + AFTER + ask(8) + "bra DONE;\nSECOND:\n" + ask(8)
    body += READS.replace("AT", at) + "DONE:\n"
    proof = proved(body, threads=64, model=model)
    assert conditions(proof) == (set() if right or model == "practice" else {"races"})


# -- ends ------------------------------------------------------------------------------------------

# A thread of the second block touches the first one's memory, and another one of that block hears
# of it and arrives.
TOUCH = """
mapa.shared::cluster.u32 %r7, %r5, 0;
mapa.shared::cluster.u32 %r8, %r3, 0;
MEET
setp.eq.u32 %p2, %r6, 0;
@%p2 bra LAST;
setp.eq.u32 %p3, %r1, 32;
@%p3 bra SECOND;
@%p1 bra LAST;
DOES
bra LAST;
SECOND:
HEARS
LAST:
END
"""
END = "barrier.cluster.arrive.HOWaligned;\nbarrier.cluster.wait.acquire.aligned;\n"
FAR_STORE = "st.shared::cluster.b32 [%r7], %r6;\n"
FAR_LOAD = "ld.shared::cluster.b32 %r9, [%r7];\n"
FAR_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];\n"
FENCE = "fence.acq_rel.cluster;\n"


def touched(does: str, hears: str, how: str) -> str:
    text = TOUCH.replace("MEET", CLUSTER).replace("DOES", does).replace("HEARS", hears)
    return text.replace("END", END.replace("HOW", how))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("does", "hears", "right"),
    [
        (FAR_STORE + arrive(8), ask(8), False),
        (FAR_LOAD + arrive(8), ask(8), False),
        (FAR_STORE + arrive(8), ask(8) + FENCE, True),  # the second one releases it
        (FAR_STORE + FENCE + arrive(8), ask(8), True),
        (FAR_ARRIVE, "", False),
        (FAR_ARRIVE + FENCE, "", True),
    ],
)  # fmt: skip
def test_a_relaxed_end_of_others_who_heard_of_an_access(
    does: str, hears: str, right: bool, model: Any
) -> None:
    text = touched(does, hears, "relaxed.")
    assert conditions(proved(text, threads=64, cluster=2, model=model)) == (
        set() if right else {"exit"}
    )
    assert not proved(text.replace("relaxed.", ""), threads=64, cluster=2, model=model).failed


# The second block's other thread hears of what the first did by a local mbarrier, and tells the
# first block, which ends then.
TELLS = "mbarrier.arrive.HOW.shared::cluster.b64 _, [%r8];\n"


@pytest.mark.parametrize("model", ["practice", "ptx"])
@pytest.mark.parametrize(
    ("local", "how", "wait", "right"),
    [
        ("", "release.cluster", "acquire.cluster.", "both"),
        ("", "relaxed.cluster", "acquire.cluster.", ""),
        ("relaxed.cta.", "release.cluster", "acquire.cluster.", ""),
        ("", "release.cluster", "relaxed.cluster.", ""),
        ("", "release.cluster", "", "practice"), ("", "release.cta", "acquire.cluster.", ""),
    ],
)  # fmt: skip
def test_an_access_is_released_all_the_way_to_the_end(
    local: str, how: str, wait: str, right: str, model: Any
) -> None:
    """By practice a wait in the scope of a block is enough, which is told."""
    hears = ask(8) + TELLS.replace("HOW", how)
    text = touched(FAR_STORE + arrive(8, local), hears, "").replace(END.replace("HOW", ""), "")
    waits = "@!%p2 bra NEXT;\n" + ask(0, 0, wait) + "bra LAST;\nNEXT:"
    text = text.replace("@%p2 bra LAST;", waits)
    proof = proved(text, threads=64, cluster=2, model=model)
    assert conditions(proof) == (set() if right in ("both", model) else {"exit"})
    assumed = any("in the scope of a block at an mbarrier" in each for each in proof.assumed)
    assert assumed == (right == model == "practice")
