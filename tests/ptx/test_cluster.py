# ruff: noqa: E501 - programs read better with a line each
"""Clusters: shared memory of other blocks, their barrier, multicasts; values, order, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called

import warploom
from warploom import ptx
from warploom.errors import DeviceError, KernelError, LimitError, UnsupportedError
from warploom.machine.judges import Cause
from warploom.ptx.emulate.frame import in_grid

HEAD = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) CLUSTER
{ .reg .pred %p<9>; .reg .b16 %h<3>; .reg .b32 %r<40>; .reg .b64 %d<20>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %cluster_nctarank;
ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in];
mad.lo.u32 %r4, %r2, 32, %r0; mul.wide.u32 %d2, %r4, 4; add.u64 %d2, %d0, %d2;
mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 4, %r5; add.u32 %r7, %r1, 1; rem.u32 %r7, %r7, %r3;
"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
NEIGHBOUR = "mapa.shared::cluster.u32 %r8, %r6, %r7;"


def run(
    body: str,
    blocks: Any = 4,
    cluster: int = 2,
    given: Any = None,
    races: Any = "all",
    **options: Any,
) -> tuple[np.ndarray, Any]:
    text = HEAD.replace("CLUSTER", f".reqnctapercluster {cluster}, 1, 1")
    out = np.zeros(blocks * 32 if isinstance(blocks, int) else 0, np.uint32)
    source = np.arange(1024, dtype=np.uint32) if given is None else given
    kernel = ptx.load(f"{text}{body}\nret; }}\n", "k.ptx").kernel("k")
    report = kernel.launch(blocks, 32, [out, source], races=races, **options)
    return out.reshape(blocks, 32), report.races


def neighbours(blocks: int, cluster: int) -> np.ndarray:
    block = np.arange(blocks)
    return block // cluster * cluster + (block % cluster + 1) % cluster


@pytest.mark.parametrize("cluster", [1, 2, 4])
@pytest.mark.parametrize("generic", [False, True])
def test_a_neighbours_shared_memory(cluster: int, generic: bool) -> None:
    load = f"{NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8];"
    if generic:
        load = "cvt.u64.u32 %d5, %r6; cvta.shared.u64 %d5, %d5; mapa.u64 %d6, %d5, %r7; ld.u32 %r9, [%d6];"
    body = f"st.shared.u32 [%r6], %r4; {MEET} {load} st.global.u32 [%d2], %r9; {MEET}"
    for options in ({}, {"schedule": 3}):
        out, races = run(body, 4, cluster, **options)
        assert not races
        assert out.tolist() == (neighbours(4, cluster)[:, None] * 32 + np.arange(32)).tolist()


def test_stores_and_atomics_far_away() -> None:
    body = f"""st.shared.u32 [%r6], 0; {MEET}
    mapa.shared::cluster.u32 %r8, %r5, 0; atom.shared::cluster.add.u32 %r9, [%r8], 1; {MEET}
    ld.shared.u32 %r9, [%r5]; st.global.u32 [%d2], %r9; {NEIGHBOUR} {MEET} st.shared::cluster.u32 [%r8], %r4; {MEET}
    ld.shared.u32 %r10, [%r6]; shl.b32 %r10, %r10, 8; or.b32 %r9, %r9, %r10; st.global.u32 [%d2], %r9;"""
    out, races = run(body)
    assert not races
    before = neighbours(4, 2)[:, None] * 32 + np.arange(32)
    count = np.where(np.arange(4) % 2 == 0, 64, 0)[:, None]
    assert out.tolist() == (before << 8 | count).tolist()


def test_registers_of_clusters_and_their_shapes() -> None:
    """A cluster of 2 × 2 in a grid of 4 × 2: blocks keep their places in the grid."""
    text = (
        HEAD.replace("CLUSTER", ".reqnctapercluster 2, 2, 1")
        + """
    mov.u32 %r10, %ctaid.y; mad.lo.u32 %r11, %r10, 4, %r2; mul.wide.u32 %d5, %r11, 4; add.u64 %d5, %d0, %d5;
    mov.u32 %r12, %clusterid.x; mov.u32 %r13, %cluster_ctaid.y; mov.u32 %r14, %nclusterid.x; mov.u32 %r15, %cluster_nctaid.y;
    shl.b32 %r12, %r12, 4; or.b32 %r12, %r12, %r1; shl.b32 %r13, %r13, 8; or.b32 %r12, %r12, %r13;
    shl.b32 %r14, %r14, 12; or.b32 %r12, %r12, %r14; shl.b32 %r15, %r15, 16; or.b32 %r12, %r12, %r15; st.global.u32 [%d5], %r12; ret; }"""
    )
    out = np.zeros(8, np.uint32)
    ptx.load(text).kernel("k").launch((4, 2), 1, [out, out.copy()])
    x, y = np.arange(8) % 4, np.arange(8) // 4
    assert out.tolist() == ((x // 2) << 4 | (x % 2 + y * 2) | y << 8 | 2 << 12 | 2 << 16).tolist()


def test_which_block_an_address_is_in() -> None:
    out, _ = run(
        f"{NEIGHBOUR} getctarank.shared::cluster.u32 %r9, %r8; getctarank.shared::cluster.u32 %r10, %r6; mad.lo.u32 %r9, %r9, 16, %r10; st.global.u32 [%d2], %r9;"
    )
    assert out[:, 0].tolist() == [16, 1, 16, 1]


@pytest.mark.parametrize(
    ("meet", "races"),
    [
        (MEET, False),
        ("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;", False),
        ("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", True),
        ("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", False),
        ("fence.acq_rel.cta; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", True),
        ("bar.sync 0;", True),
        ("fence.acq_rel.cluster;", True),
    ],
)  # fmt: skip
def test_order(meet: str, races: bool) -> None:
    """Number 35 of the digest's list, and what orders nothing between blocks."""
    body = f"st.shared.u32 [%r6], %r4; {meet} {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9; {MEET}"
    assert bool(run(body, check=False)[1]) is races


def test_an_arrival_far_away_and_a_wait_at_home() -> None:
    """Each block writes into its neighbour, arrives at the neighbour's mbarrier, waits at its own."""
    body = f"""setp.eq.u32 %p1, %r0, 0; mov.u32 %r10, bar; @%p1 mbarrier.init.shared.b64 [%r10], 32; fence.mbarrier_init.release.cluster; {MEET}
    {NEIGHBOUR} st.shared::cluster.u32 [%r8], %r4; mapa.shared::cluster.u32 %r11, %r10, %r7;
    mbarrier.arrive.SEM.cluster.shared::cluster.b64 _, [%r11];
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r10], 0; @!%p2 bra W;
    ld.shared.u32 %r9, [%r6]; st.global.u32 [%d2], %r9; {MEET}"""
    out, races = run(body.replace("SEM", "release"))
    assert not races
    assert out.tolist() == (neighbours(4, 2)[:, None] * 32 + np.arange(32)).tolist()
    assert run(body.replace("SEM", "relaxed"))[1]


MULTICAST = f"""setp.eq.u32 %p1, %r0, 0; mov.u32 %r10, bar; @%p1 mbarrier.init.shared.b64 [%r10], 1; fence.mbarrier_init.release.cluster; {MEET}
@%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r10], 128;
{MEET} setp.eq.and.u32 %p3, %r1, 0, %p1; mov.b16 %h0, MASK; mul.wide.u32 %d6, %r2, 128; add.u64 %d6, %d1, %d6;
@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d6], 128, [%r10], %h0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10], 0; @!%p2 bra W;
ld.shared.u32 %r9, [%r6]; st.global.u32 [%d2], %r9; {MEET}"""


def test_one_copy_for_the_whole_cluster() -> None:
    out, races = run(MULTICAST.replace("MASK", "3"))
    assert not races
    first = np.arange(4) // 2 * 2
    assert out.tolist() == (first[:, None] * 32 + np.arange(32)).tolist()


@pytest.mark.parametrize(
    ("mask", "message"), [("4", "does not fit a cluster"), ("0", "does not fit")]
)
def test_masks_that_no_cluster_has(mask: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run(MULTICAST.replace("MASK", mask))


def test_a_copy_from_block_to_block() -> None:
    body = f"""setp.eq.u32 %p1, %r0, 0; mov.u32 %r10, bar; @%p1 mbarrier.init.shared.b64 [%r10], 1; fence.mbarrier_init.release.cluster;
    add.u32 %r12, %r6, 512; st.shared.u32 [%r12], %r4; fence.proxy.async; {MEET} @%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r10], 128; {MEET}
    add.u32 %r12, %r5, 512; mapa.shared::cluster.u32 %r8, %r5, %r7; mapa.shared::cluster.u32 %r11, %r10, %r7;
    @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r12], 128, [%r11];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10], 0; @!%p2 bra W;
    ld.shared.u32 %r9, [%r6]; st.global.u32 [%d2], %r9; {MEET}"""
    out, races = run(body)
    assert not races
    assert out.tolist() == (neighbours(4, 2)[:, None] * 32 + np.arange(32)).tolist()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mapa.shared::cluster.u32 %r8, %r6, 2;", "there is no block 2 in a cluster of 2"),
        (f"{NEIGHBOUR} ld.shared::cta.u32 %r9, [%r8];", "out-of-bounds"),
        ("mov.u32 %r8, 0x9000000; ld.shared::cluster.u32 %r9, [%r8];", "no block of the cluster"),
        (f"st.shared.u32 [%r6], 1; setp.eq.u32 %p1, %r1, 1; @%p1 exit; {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9;", "which has ended"),
        ("barrier.cluster.wait.aligned;", "without having arrived"),
        ("barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;", "arrives again"),
        ("setp.eq.u32 %p1, %r1, 1; @%p1 bra W; barrier.cluster.arrive; barrier.cluster.wait; bra E; W: bar.sync 1, 64; E:", "never complete"),
        (f"{MEET} {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9;", "never written"),
    ],
)  # fmt: skip
def test_wrong(body: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run(body, races=False)


def test_threads_that_left_are_not_waited_for() -> None:
    body = f"setp.gt.u32 %p1, %r0, 7; @%p1 exit; {MEET} st.global.u32 [%d2], 5;"
    assert run(body)[0].sum() == 4 * 8 * 5


def test_launches_that_a_driver_refuses() -> None:
    with pytest.raises(DeviceError, match="not made of clusters"):
        run("", blocks=3)
    with pytest.raises(DeviceError, match="at most 16"):
        run("", blocks=32, cluster=32)
    kernel = ptx.load(HEAD.replace("CLUSTER", ".reqnctapercluster 2, 1, 1") + "ret; }").kernel("k")
    with pytest.raises(DeviceError, match="made for clusters"):
        kernel.launch(4, 32, [np.zeros(4), np.zeros(4)], cluster=4)


def test_a_cluster_that_the_launch_asks_for() -> None:
    body = f"st.shared.u32 [%r6], %r4; {MEET} {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9; {MEET}"
    text = HEAD.replace("CLUSTER", "") + body + "ret; }"
    out = np.zeros(64, np.uint32)
    ptx.load(text).kernel("k").launch(2, 32, [out, out.copy()], cluster=2)
    assert out[:2].tolist() == [32, 33]


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (1, 2, 3), (2, 2, 3)])
def test_blocks_of_a_cluster_run_one_after_the_other(cluster: tuple[int, int, int]) -> None:
    grid = (4, 2, 6)
    number = np.arange(48).reshape(grid[::-1])
    sides = [
        x for side, own in zip(grid[::-1], cluster[::-1], strict=True) for x in (side // own, own)
    ]
    wanted = number.reshape(sides).transpose(0, 2, 4, 1, 3, 5).reshape(-1)
    np.testing.assert_array_equal(in_grid(np.arange(48), grid, cluster), wanted)


def test_the_largest_grids_end_at_their_limit() -> None:
    """Nothing is made for all blocks at once, and no number of a block is cut to 32 bits."""
    for grid, races, error in (
        ((2147483646, 1, 1), False, LimitError), ((2147483646, 65535, 65535), False, LimitError),
        ((2147483646, 65535, 65535), "all", UnsupportedError),
    ):  # fmt: skip
        with pytest.raises(error):
            run("mov.u32 %r9, %ctaid.z;", grid, races=races, seconds=0.2)


@pytest.mark.parametrize(
    "order", [".explicitcluster .reqnctapercluster 2, 1, 1", ".reqnctapercluster 2, 1, 1 .explicitcluster"]
)  # fmt: skip
def test_a_cluster_that_cuda_text_has(order: str) -> None:
    """nvcc writes both directives for `__cluster_dims__`."""
    body = f"st.shared.u32 [%r6], %r4; {MEET} {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9; {MEET}"
    out = np.zeros(64, np.uint32)
    warploom.emulate(HEAD.replace("CLUSTER", order) + body + "ret; }")[2, 32](out, out.copy())
    assert out[:2].tolist() == [32, 33]


def test_a_cluster_that_the_caller_of_emulate_gives(tmp_path: Path) -> None:
    body = f"st.shared.u32 [%r6], %r4; {MEET} {NEIGHBOUR} ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9; {MEET}"
    text = HEAD.replace("CLUSTER", ".explicitcluster") + body + "ret; }"
    out = np.zeros(64, np.uint32)
    with pytest.raises(DeviceError, match="needs a cluster size"):
        warploom.emulate(text)[2, 32](out, out.copy())
    warploom.emulate(text, cluster=2)[2, 32](out, out.copy())
    assert out[:2].tolist() == [32, 33]
    file = tmp_path / "k.ptx"
    file.write_text(text)
    words = [
        "ptx",
        "run",
        str(file),
        "--grid",
        "2",
        "--arg",
        "u32[64]=zeros",
        "--arg",
        "u32[64]=zeros",
    ]
    assert called(words).exit_code == 2
    assert called([*words, "--cluster", "2"]).exit_code == 0
    assert called([*words, "--cluster", "2,x"]).exit_code == 2


@pytest.mark.parametrize("arrives", ["cta", "cluster"])
@pytest.mark.parametrize("waits", ["cta", "cluster"])
def test_an_arrival_at_a_peer_has_the_scope_that_is_written(arrives: str, waits: str) -> None:
    """The second block writes its own memory and tells the first, which reads it there."""
    body = f"""
setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [bar], 32; @!%p1 fence.mbarrier_init.release.cluster;
{MEET} mov.u32 %r12, bar; setp.eq.u32 %p2, %r1, 0; @%p2 bra FIRST;
st.shared.u32 [%r6], %r4; mapa.shared::cluster.u32 %r13, %r12, 0;
mbarrier.arrive.release.{arrives}.shared::cluster.b64 _, [%r13]; bra DONE;
FIRST: mbarrier.try_wait.parity.acquire.{waits}.shared::cta.b64 %p3, [bar], 0; @!%p3 bra FIRST;
mapa.shared::cluster.u32 %r8, %r6, 1; ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d2], %r9;
DONE: {MEET}
"""
    _, races = run(body, blocks=2)
    wide = arrives == waits == "cluster"
    assert [race.cause for race in races] == ([] if wide else [Cause.SCOPE])
