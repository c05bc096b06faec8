"""What nobody wrote is no value: not in copies, sizes and counts, nor in lanes and local memory."""

from __future__ import annotations

import pytest
from tests.ptx.test_prove_ends import CLUSTER, WAIT, proved

from warploom.errors import UninitialisedError
from warploom.machine.proof import Reach

OUT = """
@!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 128;
@!%p1 cp.async.bulk.commit_group;
@!%p1 cp.async.bulk.wait_group 0;
"""
SUM = OUT.replace("cp.async.bulk.global", "cp.reduce.async.bulk.global").replace(
    "group [%rd1]", "group.add.u32 [%rd1]"
)
FILL = "shl.b32 %r8, %r1, 2;\nadd.u32 %r9, %r8, %r5;\n{}st.shared.u32 [%r9], %r1;\n"
FILL += "fence.proxy.async;\nbar.sync 0;\n"
HALF = "setp.lt.u32 %p2, %r1, 16;\n"


@pytest.mark.parametrize("way", [OUT, SUM])
def test_a_tile_that_leaves_shared_memory_was_written(way: str) -> None:
    assert proved(FILL.format("") + way).reach is Reach.ALL_DATA
    for body in (way, HALF + FILL.format("@%p2 ") + way):
        with pytest.raises(UninitialisedError, match=r"cp\..*reads shared memory that was never"):
            proved(body)


# To the other block, from what it has in the first 128 bytes into the bytes from 256 on.
SEND = f"""
shl.b32 %r8, %r1, 2;
add.u32 %r9, %r8, %r5;
WRITTEN
fence.proxy.async;
{CLUSTER}
xor.b32 %r10, %r6, 1;
mapa.shared::cluster.u32 %r11, %r5, %r10;
mapa.shared::cluster.u32 %r12, %r3, %r10;
add.u32 %r11, %r11, 256;
add.u32 %r13, %r11, %r8;
@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
SENT
{WAIT}
ld.shared.u32 %r14, [%r9+256];
setp.eq.u32 %p5, %r14, 0;
@%p5 bra ON;
ON:
{CLUSTER}"""
TOLD = "shared::cluster.mbarrier::complete_tx::bytes"
BULK = "@!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
BULK += "[%r11], [%r5], 128, [%r12];"
WROTE = "st.shared.u32 [%r9], %r1;"


@pytest.mark.parametrize(
    ("written", "sent", "good"),
    [
        (WROTE, BULK, True), ("", BULK, False),
        ("", f"st.async.weak.{TOLD}.u32 [%r13], %r1, [%r12];", True),
        ("", f"st.async.weak.{TOLD}.u32 [%r13], %r19, [%r12];", False),
        ("ld.shared.u32 %r19, [%r9];", f"st.async.weak.{TOLD}.u32 [%r13], %r19, [%r12];", False),
        ("st.shared.u32 [%r9+256], 1;",
         f"red.async.relaxed.cluster.{TOLD}.add.u32 [%r13], %r1, [%r12];", True),
        ("", f"red.async.relaxed.cluster.{TOLD}.add.u32 [%r13], %r1, [%r12];", False),
    ],
)  # fmt: skip
def test_what_is_sent_holds_values_where_the_source_does(
    written: str, sent: str, good: bool
) -> None:
    body = SEND.replace("WRITTEN", written).replace("SENT", sent)
    if good:
        assert proved(body, cluster=2).reach is not None
        return
    with pytest.raises(UninitialisedError, match="never written: %p5 is the predicate of bra"):
        proved(body, cluster=2)


NOTHING = "ld.shared.u32 %r19, [%r5];\n"
INTO = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    "body",
    [
        f"@!%p1 {INTO} [%r5], [%rd1], %r19, [%r3];",
        "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r19;",
        "@!%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], %r19;",
        "add.u32 %r19, %r19, 1;\n@!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3], %r19;",
        "add.u32 %r19, %r19, 1;\n@!%p1 mbarrier.init.shared::cta.b64 [%r3+8], %r19;",
        "mbarrier.test_wait.parity.shared::cta.b64 %p4, [%r3], %r19;",
        "cp.async.ca.shared.global [%r5], [%rd1], 4, %r19;",
    ],
)
def test_sizes_counts_and_parities_hold_values(body: str) -> None:
    with pytest.raises(UninitialisedError, match=r"%r19 is an operand of (cp|mbarrier)"):
        proved(NOTHING + "bar.sync 0;\n" + body)


@pytest.mark.parametrize("ways", ["%r19, 31", "0, %r19"])
@pytest.mark.parametrize("use", ["st.global.u32 [%rd1], %r8;", "@%p2 st.global.u32 [%rd1], 1;"])
def test_where_a_shuffle_reads_holds_a_value(ways: str, use: str) -> None:
    shuffle = f"shfl.sync.idx.b32 %r8|%p2, %r1, {ways}, 0xffffffff;\n"
    with pytest.raises(UninitialisedError, match="reads shared memory that was never written"):
        proved(NOTHING + shuffle + use)
    assert proved(NOTHING + shuffle).reach is Reach.ALL_DATA


LOCAL = ".local .align 16 .b8 own[32];\nmov.u64 %rd3, own;\ncvta.local.u64 %rd4, %rd3;\n"


@pytest.mark.parametrize("load", ["ld.local.u32 %r8, [own+4];", "ld.u32 %r8, [%rd4+4];"])
@pytest.mark.parametrize(
    ("store", "good"),
    [
        ("", False), ("st.local.u32 [own], 1;", False), ("st.local.u32 [own+4], 1;", True),
        ("st.u32 [%rd4+4], 1;", True), ("st.local.u32 [own+4], %r19;", False),
        ("st.u32 [%rd4+4], %r19;", False), ("st.local.u16 [own+4], 1;", False),
    ],
)  # fmt: skip
def test_local_memory_that_nobody_wrote_decides_nothing(load: str, store: str, good: bool) -> None:
    body = LOCAL + f"{store}\n{load}\nsetp.eq.u32 %p5, %r8, 1;\n@%p5 bra ON;\nON:\n"
    if good:
        proved(body)
        return
    with pytest.raises(UninitialisedError, match="reads local memory that was never written"):
        proved(body)
    with pytest.raises(UninitialisedError, match="local memory"):
        proved(LOCAL + f"{store}\n{load}\nst.global.u32 [%rd1], %r8;")


def test_what_was_an_mbarrier_holds_no_value() -> None:
    """Until something is stored there."""
    end = "@!%p1 mbarrier.inval.shared::cta.b64 [%r3];\nbar.sync 0;\nSTORE\n"
    body = "bar.sync 0;\n" + end + "ld.shared.u32 %r8, [%r3];\nst.global.u32 [%rd1], %r8;"
    with pytest.raises(UninitialisedError, match="reads shared memory that was never written"):
        proved(body.replace("STORE", ""), threads=1)
    proved(body.replace("STORE", "st.shared.u32 [%r3], 7;"), threads=1)
