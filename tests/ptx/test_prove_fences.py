"""Fences between ways to memory hold for the state space, the scope and the map that they name.

So do operations on mbarriers, of the own block and of others.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.test_async import HEAD
from tests.ptx.test_prove_ends import CLUSTER, WAIT, conditions, proved
from tests.ptx.test_tensor_map_edit import ACQUIRE, COPY, ROOM, ZERO, fields, launch

from warploom import ptx
from warploom.errors import DeviceError, KernelError
from warploom.machine.judges import Cause
from warploom.ptx.emulate.asked import Model

MODELS: tuple[Model, ...] = ("ptx", "practice")
ASYNC = "fence.proxy.async"

# -- state spaces ----------------------------------------------------------------------------------

OUT = """
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
"""
FROM_SHARED = "st.shared.v4.b32 [%r5], {%r1, %r1, %r1, %r1};\nFENCE;\n" + OUT
FROM_GLOBAL = (
    "bar.sync 0;\nst.global.v4.b32 [%rd1], {%r1, %r1, %r1, %r1};\nFENCE;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 16, [%r3];\n"
    + WAIT
)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("body", "word", "covers"),
    [
        (FROM_SHARED, "", True), (FROM_SHARED, ".shared::cta", True),
        (FROM_SHARED, ".shared::cluster", True), (FROM_SHARED, ".global", False),
        (FROM_GLOBAL, "", True), (FROM_GLOBAL, ".shared::cta", False),
        (FROM_GLOBAL, ".shared::cluster", False), (FROM_GLOBAL, ".global", True),
    ],
)  # fmt: skip
def test_a_fence_is_for_its_state_space(body: str, word: str, covers: bool, model: Model) -> None:
    proof = proved(body.replace("FENCE", ASYNC + word), threads=1, model=model)
    assert conditions(proof) == (set() if covers else {"races"})


TO_PEER = f"""
setp.eq.u32 %p2, %r6, 1;
mapa.shared::cluster.u32 %r7, %r5, 1;
{CLUSTER}@%p2 bra MEET;
st.shared::cluster.v4.b32 [%r7], {{%r1, %r1, %r1, %r1}};
NEAR
MEET:
{CLUSTER}@!%p2 bra DONE;
BEYOND
{OUT}DONE:
{CLUSTER}"""


@pytest.mark.parametrize(
    ("near", "beyond", "covers"),
    [
        (ASYNC, "", True), (f"{ASYNC}.shared::cluster", "", True),
        (f"{ASYNC}.shared::cta", "", False), ("", f"{ASYNC}.shared::cta", True),
        (f"{ASYNC}.global", f"{ASYNC}.global", False),
    ],
)  # fmt: skip
def test_a_fence_for_the_own_block_is_for_its_memory_alone(
    near: str, beyond: str, covers: bool
) -> None:
    """A thread writes the memory of its peer, which copies it out."""
    body = TO_PEER.replace("NEAR", near and near + ";").replace("BEYOND", beyond and beyond + ";")
    assert conditions(proved(body, threads=1, cluster=2)) == (set() if covers else {"races"})


# The fence for mbarriers tells of them alone; one for global memory tells nothing of them.
COPIED = """
FENCE
bar.sync 0;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5+16], [%rd1], 16, [%r5];
""" + WAIT.replace("[%r3]", "[%r5]")


@pytest.mark.parametrize(
    ("fence", "failed"),
    [
        ("fence.mbarrier_init.release.cluster;", set()), (f"{ASYNC};", set()),
        (f"{ASYNC}.shared::cta;", set()), (f"{ASYNC}.global;", {"races", "fence"}),
        ("", {"races", "fence"}),
    ],
)  # fmt: skip
def test_a_copy_sees_an_mbarrier_by_a_fence_of_its_memory(fence: str, failed: set[str]) -> None:
    body = "mbarrier.init.shared::cta.b64 [%r5], 1;" + COPIED.replace("FENCE", fence)
    assert conditions(proved(body, threads=1, model="ptx")) == failed


# -- fence.mbarrier_init ---------------------------------------------------------------------------

RELAXED = CLUSTER.replace(".release", ".relaxed")
TOLD = f"""
mapa.shared::cluster.u32 %r7, %r5, 0;
setp.eq.u32 %p2, %r6, 0;
@!%p2 bra MEET;
FIRST
MEET:
{RELAXED}@%p2 bra DONE;
SECOND
DONE:
{CLUSTER}"""


@pytest.mark.parametrize(
    ("first", "second", "failed"),
    [
        ("mbarrier.init.shared::cta.b64 [%r5], 1;\nfence.mbarrier_init.release.cluster;",
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];", set()),
        ("fence.mbarrier_init.release.cluster;\nmbarrier.init.shared::cta.b64 [%r5], 1;",
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];", {"races", "fence"}),
        ("st.shared.u32 [%r5], 1;\nfence.mbarrier_init.release.cluster;",
         "ld.shared::cluster.u32 %r8, [%r7];", {"races"}),
        ("ld.shared.u32 %r8, [%r5];\nfence.mbarrier_init.release.cluster;",
         "st.shared::cluster.u32 [%r7], 1;", {"races"}),
        ("st.global.u32 [%rd1], 1;\nfence.mbarrier_init.release.cluster;",
         "ld.global.u32 %r8, [%rd1];", {"races"}),
    ],
)  # fmt: skip
def test_a_fence_of_initialisations_tells_of_nothing_else(
    first: str, second: str, failed: set[str]
) -> None:
    body = TOLD.replace("FIRST", first).replace("SECOND", second)
    if "ld.shared.u32" in first:
        body = "st.shared.u32 [%r5], 0;\n" + CLUSTER + body
    for model in MODELS:
        assert conditions(proved(body, threads=1, cluster=2, model=model)) == failed


# -- tensor maps -----------------------------------------------------------------------------------

MAP_FENCE = "fence.proxy.tensormap::generic"


@pytest.mark.parametrize(
    ("release", "acquire", "missing"),
    [("gpu", "gpu", False), ("cta", "cta", False), ("cta", "gpu", False), ("sys", "cta", False)],
)
def test_scopes_of_a_map_within_a_block(release: str, acquire: str, missing: bool) -> None:
    """Threads of one block are in each scope."""
    copy = COPY.replace("release.gpu", f"release.{release}")
    races, right = launch(copy + ACQUIRE.format("%l6").replace("acquire.gpu", f"acquire.{acquire}"))
    assert (bool(races), right) == (missing, True)


def test_a_map_has_128_bytes() -> None:
    for wrong in (COPY.replace("128;", "64;") + ACQUIRE.format("%l6"),
                  COPY + ACQUIRE.format("%l6").replace("128", "256")):  # fmt: skip
        with pytest.raises(DeviceError, match="128"):
            launch(wrong)


# The first block makes a map; the second one takes it and copies by it.
FAR = f"""
mov.u32 %r8, %cluster_ctarank;
setp.eq.u32 %p3, %r8, 0;
@%p1 mbarrier.init.shared.b64 [bar], 1;
{ROOM}@!%p3 bra MET;
{ZERO}{fields()}{COPY}MET:
{CLUSTER}@%p3 bra OVER;
{ACQUIRE.format("%l6")}@!%p1 bra OVER;
mov.u32 %r4, 8;
mov.u32 %r5, 3;
mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 128;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile],
 [%l6, {{%r4, %r5}}], [bar];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra W;
OVER:
"""


@pytest.mark.parametrize(
    ("release", "acquire", "missing"),
    [
        ("gpu", "gpu", False), ("cluster", "sys", False), ("cta", "gpu", True),
        ("gpu", "cta", True), ("cluster", "cluster", False),
    ],
)  # fmt: skip
def test_scopes_of_a_map_across_blocks(release: str, acquire: str, missing: bool) -> None:
    body = FAR.replace("release.gpu", f"release.{release}")
    body = body.replace("acquire.gpu", f"acquire.{acquire}")
    text = HEAD.format(parameters=".param .u64 p0, .param .u64 p1", body=body)
    args = [np.arange(40 * 24, dtype=np.uint32), np.zeros(256, np.uint8)]
    kernel = ptx.load(text, "k.ptx").kernel("k")
    report = kernel.launch(2, 32, args, cluster=2, races="all")
    assert [each.cause for each in report.races] == [Cause.MAP] * missing


# -- mbarriers of two blocks -----------------------------------------------------------------------

SENT = f"""
mapa.shared::cluster.u32 %r7, %r5, 0;
mapa.shared::cluster.u32 %r8, %r3, 0;
setp.eq.u32 %p2, %r6, 0;
{CLUSTER}@%p2 bra FIRST;
@!%p1 SEND
bra DONE;
FIRST:
@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
ASK:
mbarrier.try_wait.parity.HOW.shared::cta.b64 %p4, [%r3], 0;
@!%p4 bra ASK;
ld.shared.u32 %r9, [%r5];
DONE:
{CLUSTER}"""
STORED = (
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r7], {%r1, %r1, %r1, %r1}, "
    "[%r8];"
)
MULTICAST = (
    "mov.u16 %h1, 3;\n"
    "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
    "@!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%r5], [%rd1], 16, [%r3], %h1;\n" + WAIT.replace("ASK", "OWN")
)  # fmt: skip
SOURCES = {"st.async": STORED, "multicast": MULTICAST}


@pytest.mark.parametrize("way", SOURCES)
@pytest.mark.parametrize(
    ("how", "by_manual", "by_practice"),
    [
        ("acquire.cluster", True, True), ("acquire.cta", False, True),
        ("relaxed.cluster", False, False),
    ],
)  # fmt: skip
def test_a_wait_for_what_another_block_sent(
    way: str, how: str, by_manual: bool, by_practice: bool
) -> None:
    """What another block sent is there for who acquires in the scope of the cluster."""
    body = ".reg .b16 %h<2>;\n" + SENT.replace("HOW", how)
    body = body.replace("SEND", SOURCES[way])
    for model, holds in zip(MODELS, (by_manual, by_practice), strict=True):
        found = conditions(proved(body, cluster=2, model=model))
        assert found == (set() if holds else {"races"})


@pytest.mark.parametrize("how", ["acquire.cta", "acquire.cluster"])
def test_a_wait_for_what_the_own_block_copied(how: str) -> None:
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    body = "bar.sync 0;\n@%p1 bra ASK;\n"
    body += "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
    body += f"{copy}[%r5], [%rd1], 16, [%r3];\n"
    wait = WAIT.replace("parity.", f"parity.{how}.")
    body += wait + "ld.shared.u32 %r9, [%r5];\n"
    assert not proved(body, model="ptx").failed


GENERIC = "cvt.u64.u32 %rd5, %r7;\ncvta.shared.u64 %rd5, %rd5;\n"
AT_PEER = {
    "mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r7], 1;": KernelError,
    "mbarrier.test_wait.parity.b64 %p4, [%rd5], 1;": KernelError,
    "mbarrier.arrive.shared::cluster.b64 %rd3, [%r7];": DeviceError,
    "mbarrier.arrive.b64 %rd3, [%rd5];": KernelError,
    "mbarrier.arrive.noComplete.b64 %rd3, [%rd5], 1;": KernelError,
    "mbarrier.inval.b64 [%rd5];": KernelError,
    "mbarrier.init.b64 [%rd5+16], 1;": KernelError,
}


@pytest.mark.parametrize("ins", AT_PEER)
def test_what_may_not_be_done_at_the_mbarrier_of_a_peer(ins: str) -> None:
    """Only arrivals without a state, and bytes that are expected or come."""
    body = f"mapa.shared::cluster.u32 %r7, %r3, 1;\n{GENERIC}{CLUSTER}@!%p1 {ins}\n{CLUSTER}"
    with pytest.raises(AT_PEER[ins]):
        proved(body, cluster=2)


# -- relaxed waits ---------------------------------------------------------------------------------

# The first block of the cluster reads what the second one, or its own other warp, put into its
# shared memory before an arrival.
RELAXED = """
mapa.shared::cluster.u32 %r7, %r3, 0;
mapa.shared::cluster.u32 %r8, %r5, 0;
setp.eq.u32 %p2, %r6, SENDER;
setp.eq.and.u32 %p3, %r1, 32, %p2;
@%p3 st.shared::cluster.b32 [%r8], %r1;
@%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
setp.eq.u32 %p2, %r6, 0;
setp.eq.and.u32 %p3, %r1, 0, %p2;
@!%p3 bra DONE;
ASK:
mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p4, [%r3], 0;
@!%p4 bra ASK;
FENCE
ld.shared.b32 %r9, [%r5];
st.global.b32 [%rd1], %r9;
DONE:
"""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("fence", "sender", "right"),
    [
        ("fence.acq_rel.cluster;", 1, True), ("fence.acq_rel.cluster;", 0, True),
        ("fence.acq_rel.gpu;", 1, True), ("fence.acq_rel.cta;", 0, True),
        ("fence.acq_rel.cta;", 1, False), ("", 0, False), ("", 1, False),
    ],
)  # fmt: skip
def test_a_relaxed_wait_acquires_at_a_fence_behind_it(
    fence: str, sender: int, right: bool, model: Model
) -> None:
    body = CLUSTER + RELAXED.replace("FENCE", fence).replace("SENDER", str(sender)) + CLUSTER
    proof = proved(body, threads=64, cluster=2, model=model)
    assert conditions(proof) == (set() if right else {"races"})
