"""Whose shared memory copies reach: their mbarrier is in the block that they go to."""

from __future__ import annotations

import pytest
from tests.ptx.test_prove_ends import CLUSTER, WAIT, conditions, proved

from warploom.errors import DeviceError, KernelError
from warploom.machine.proof import Reach

# Of two blocks: the own data and mbarrier are %r9 and %r3, those of the other block %r13 and %r12.
START = f"""
shl.b32 %r8, %r1, 2;
add.u32 %r9, %r8, %r5;
st.shared.u32 [%r9], %r1;
fence.proxy.async;
{CLUSTER}
xor.b32 %r10, %r6, 1;
add.u32 %r9, %r9, 256;
add.u32 %r15, %r5, 256;
mapa.shared::cluster.u32 %r11, %r15, %r10;
mapa.shared::cluster.u32 %r12, %r3, %r10;
mapa.shared::cluster.u32 %r13, %r9, %r10;
@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
SENT
{WAIT}
{CLUSTER}"""
TOLD = "mbarrier::complete_tx::bytes"
STORE = f"st.async.weak.shared::cluster.{TOLD}.u32 [%r13], %r1, [%r12];"
SUM = f"red.async.relaxed.cluster.shared::cluster.{TOLD}.add.u32 [%r13], %r1, [%r12];"
ACROSS = f"@!%p1 cp.async.bulk.shared::cluster.shared::cta.{TOLD} [%r11], [%r5], 128, [%r12];"
INTO = f"@!%p1 cp.async.bulk.shared::cluster.global.{TOLD} [%r11], [%rd1], 128, [%r12];"


@pytest.mark.parametrize("way", [STORE, SUM, ACROSS, INTO])
def test_an_mbarrier_is_in_the_block_that_bytes_go_to(way: str) -> None:
    assert proved(START.replace("SENT", way), cluster=2).reach is Reach.ALL_DATA
    for other in (
        way.replace("%r12", "%r3"), way.replace("%r13", "%r9").replace("%r11", "%r15"),
    ):  # fmt: skip
        with pytest.raises(KernelError, match=r"mbarrier is in block (0|1) and the bytes go to"):
            proved(START.replace("SENT", other), cluster=2)


@pytest.mark.parametrize(
    "way",
    [
        ACROSS.replace("[%r5]", "[%r11]"),
        INTO.replace("shared::cluster", "shared::cta").replace("%r12", "%r3"),
        "@!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r11], 128;",
    ],
)
def test_memory_of_the_own_block_is_no_other_blocks(way: str) -> None:
    with pytest.raises(KernelError, match="address of shared::cluster where only shared::cta"):
        proved(START.replace("SENT", way), cluster=2)


def test_an_arrival_at_another_block_gives_no_state() -> None:
    arrive = "mbarrier.arrive.release.cluster{}.b64 {}, [{}];\n"
    with pytest.raises(DeviceError, match="returns no state: its destination is '_'"):
        proved(START.replace("SENT", arrive.format(".shared::cluster", "%rd8", "%r12")), cluster=2)
    generic = "cvt.u64.u32 %rd8, %r12;\ncvta.shared.u64 %rd8, %rd8;\n"
    generic += arrive.format("", "%rd7", "%rd8")
    with pytest.raises(KernelError, match="belongs to no shared memory"):
        proved(START.replace("SENT", generic), cluster=2)


@pytest.mark.parametrize("way", [STORE, SUM])
def test_stores_to_the_own_block_are_assumed_or_refused(way: str) -> None:
    """By the manual st.async and red.async go to another block; GPUs do not mind."""
    body = START.replace("SENT", way.replace("%r12", "%r3").replace("%r13", "%r9"))
    proof = proved(body, cluster=2)
    assert proof.reach is Reach.ALL_DATA
    assert any("own block" in each for each in proof.assumed)
    proof = proved(body, cluster=2, model="ptx")
    assert conditions(proof) == {"memory"}
    assert all(each.span is not None for each in proof.failed)
