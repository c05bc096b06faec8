# ruff: noqa: E501 - programs read better with a line each
"""Tensor maps that a kernel writes: their fields, what is refused, and which fences they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ptx.test_async import BEGIN, HEAD, WAIT, run

from warploom import ptx
from warploom.errors import KernelError
from warploom.machine.judges import Cause
from warploom.machine.proof import Proof, Reach
from warploom.machine.race import Race

ZERO = "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; add.u32 %r1, %r1, 1024; mov.u32 %r2, 0; st.shared.u32 [%r1], %r2; bar.warp.sync -1;\n"
REPLACE = "tensormap.replace.tile.{}.shared::cta.b1024.{} [tile+1024], {};"
FIELDS = {
    "global_address": ("b64", "%l1"), "rank": ("b32", "1"), "box_dim:0": ("b32", "0, 8"), "box_dim:1": ("b32", "1, 4"),
    "global_dim:0": ("b32", "0, 24"), "global_dim:1": ("b32", "1, 40"), "global_stride": ("b64", "0, 96"),
    "element_stride:0": ("b32", "0, 1"), "element_stride:1": ("b32", "1, 1"), "elemtype": ("b32", "2"), "swizzle_mode": ("b32", "0"),
}  # fmt: skip
ROOM = "ld.param.u64 %l6, [p1];\n"  # where maps are kept in global memory
COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l6], [tile+1024], 128;\n"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [{}], 128; bar.sync 0;\n"
LOAD = (
    "mov.u32 %r4, 8; mov.u32 %r5, 3; @!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 128;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%l6, {%r4, %r5}], [bar];\nJ:\n"
    + WAIT.format(n=0, parity=0)
    + "\nld.param.u64 %l2, [p2]; shl.b32 %r1, %t, 2; add.u32 %r2, %s, %r1; ld.shared.u32 %r3, [%r2]; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l2, %l7; st.global.u32 [%l7], %r3;"
)


def fields(**other: str) -> str:
    """One lane fills in a map; `other` replaces values."""
    lines = []
    for name, (kind, value) in FIELDS.items():
        lines.append(
            REPLACE.format(name.split(":")[0], kind, other.get(name.replace(":", "_"), value))
        )
    return "ld.param.u64 %l1, [p0]; @!%p1 bra F;\n" + "\n".join(lines) + "\nF: bar.warp.sync -1;\n"


def launch(middle: str, edits: str = "", **options: Any) -> tuple[list[Race], bool]:
    """The races, and whether the box came."""
    array, out = np.arange(40 * 24, dtype=np.uint32).reshape(40, 24), np.zeros((4, 8), np.uint32)
    rooms = np.zeros(256, np.uint8)
    report = run(
        BEGIN + ZERO + (edits or fields()) + ROOM + middle + LOAD,
        [array, rooms, out],
        **{"races": "all", **options},
    )
    return report.races, bool(np.array_equal(out, array[3:7, 8:16]))


def test_a_map_made_from_nothing() -> None:
    assert launch(COPY + ACQUIRE.format("%l6")) == ([], True)


def test_a_map_of_the_host_with_another_address() -> None:
    """The usual way: all but the address stays."""
    first, second = (np.arange(40 * 24, dtype=np.uint32).reshape(40, 24) + n for n in (0, 7000))
    words = "mov.b64 %l4, p0; add.u64 %l4, %l4, 0; shl.b32 %r1, %t, 2; cvt.u64.u32 %l5, %r1; add.u64 %l4, %l4, %l5;"
    copied = "ld.param.u32 %r2, [%l4]; add.u32 %r1, %r1, %s; st.shared.u32 [%r1+1024], %r2; bar.warp.sync -1;"
    edit = (
        "ld.param.u64 %l1, [p3]; @%p1 "
        + REPLACE.format("global_address", "b64", "%l1")
        + " bar.warp.sync -1;\n"
    )
    out = np.zeros((4, 8), np.uint32)
    run(
        BEGIN + words + copied + edit + ROOM + COPY + ACQUIRE.format("%l6") + LOAD,
        [ptx.tensor_map(first, (4, 8)), np.zeros(128, np.uint8), out, second], races="all",
    )  # fmt: skip
    np.testing.assert_array_equal(out, second[3:7, 8:16])


@pytest.mark.parametrize(
    ("middle", "missing"),
    [
        (COPY, True),  # never acquired
        (COPY + ACQUIRE.format("%l6+128"), True),  # another map is
        ("shl.b32 %r1, %t, 2; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l6, %l7; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1+1024]; st.global.u32 [%l7], %r2; bar.sync 0;"
         + ACQUIRE.format("%l6"), True),  # never released
        (COPY + "fence.proxy.async; bar.sync 0;\n", True),  # the fence of another way
        ("shl.b32 %r1, %t, 2; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l6, %l7; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1+1024]; st.global.u32 [%l7], %r2;"
         "fence.proxy.tensormap::generic.release.gpu; bar.sync 0;" + ACQUIRE.format("%l6"), False),
    ],
)  # fmt: skip
def test_fences_of_a_map(middle: str, missing: bool) -> None:
    races, _ = launch(middle)
    assert bool(races) == missing
    assert all(each.fence for each in races)


MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
RANK = "mov.u32 %r18, %cluster_ctarank; setp.ne.u32 %p3, %r18, 0;\n"
OF_CLUSTER = ("cluster", "gpu", "sys")


def across(release: str, acquire: str, *, late: bool = True) -> list[Race]:
    """The races where the first block makes a map, and the second uses it; `late`: what acquires it
    is the block that uses it."""
    taken = ACQUIRE.format("%l6").replace("gpu", acquire).replace("bar.sync 0; ", "")
    middle = (MEET + "@%p3 bra N;\n" + taken + "N: " + MEET) if not late else MEET
    body = f"{RANK}{BEGIN}fence.mbarrier_init.release.cluster; bar.sync 0;\n{ROOM}@%p3 bra M;\n{ZERO}{fields()}"
    body += f"{COPY.replace('gpu', release)}M: {middle}@!%p3 bra OUT;\n{taken * late}{LOAD}\nOUT: {MEET}"
    array, out = np.arange(40 * 24, dtype=np.uint32).reshape(40, 24), np.zeros((4, 8), np.uint32)
    kernel = ptx.load(
        HEAD.format(parameters=".param .u64 p0, .param .u64 p1, .param .u64 p2", body=body), "k.ptx"
    ).kernel("k")
    given = [array, np.zeros(256, np.uint8), out]
    report = kernel.launch(2, 32, given, races="all", cluster=2)
    assert np.array_equal(out, array[3:7, 8:16])
    return report.races


@pytest.mark.parametrize("release", ["cta", *OF_CLUSTER])
@pytest.mark.parametrize("acquire", ["cta", *OF_CLUSTER])
def test_scopes_of_a_map_hold_both_threads(release: str, acquire: str) -> None:
    found = across(release, acquire)
    assert bool(found) is ("cta" in (release, acquire))
    assert all(each.cause is Cause.MAP for each in found)


@pytest.mark.parametrize("acquire", OF_CLUSTER)
def test_a_map_that_another_block_has_acquired(acquire: str) -> None:
    """Each multiprocessor keeps maps that it has read."""
    found = across("gpu", acquire, late=False)
    assert [each.cause for each in found] == [Cause.MAP]


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (fields(rank="7"), "7 is no rank"), (fields(box_dim_0="0, 300"), "300 is no box"), (fields(elemtype="13"), "13 is no kind"),
        (fields(element_stride_1="1, 2"), r"elements are \[1, 2\] apart"), (fields(global_stride="0, 100"), "a stride is no multiple of 16"),
        (fields(box_dim_0="0, 3"), "a row of its box is 12 bytes"), (fields(global_dim_1="1, 0"), r"sides \[24, 0\]"),
        (fields(swizzle_mode="1", box_dim_0="0, 16"), "swizzled by 32"), (fields(elemtype="11"), "rounds to tf32"),
        (fields().replace("[tile+1024]", "[tile+1040]"), "no multiple of 128"), (fields().replace("[tile+1024]", "[tile+2048]"), "never written"),
    ],
)  # fmt: skip
def test_fields_that_no_map_has(edits: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        launch(COPY + ACQUIRE.format("%l6"), edits)


def test_bytes_that_are_no_map() -> None:
    scribbled = ZERO.replace("mov.u32 %r2, 0;", "mov.u32 %r2, 77;")
    with pytest.raises(KernelError, match="no tensor map"):
        launch(COPY + ACQUIRE.format("%l6"), scribbled + fields())


@pytest.mark.parametrize("waits", [True, False])
def test_a_map_is_read_until_its_copy_is_done(waits: bool) -> None:
    """A copy that nobody has waited for may fetch half of the map that is written next."""
    begun, waited = LOAD.split("\nJ:\n")
    again = f"{begun}\nJ:\n{waited}\n{COPY}" if waits else f"{begun}\nJ:\n{COPY}{waited}"
    array, out = np.arange(40 * 24, dtype=np.uint32).reshape(40, 24), np.zeros((4, 8), np.uint32)
    text = BEGIN + ZERO + fields() + ROOM + COPY + ACQUIRE.format("%l6") + again
    report = run(text, [array, np.zeros(256, np.uint8), out], races="all", prove=True)
    assert [race.cause for race in report.races] == ([] if waits else [Cause.WAIT])
    assert waits or report.races[0].first.words == "asynchronous read"


def test_a_map_is_read_until_its_store_is_waited_for() -> None:
    """With `.read`, too, which waits for all that is read."""
    store = (
        "fence.proxy.async; bar.sync 0; mov.u32 %r4, 8; mov.u32 %r5, 3; @!%p1 bra S;\n"
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%l6, {%r4, %r5}], [tile];\n"
        "cp.async.bulk.commit_group; WAITS\nS: bar.sync 0;\n"
    )
    array = np.zeros((40, 24), np.uint32)
    filled = "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; mov.u32 %r2, 7; st.shared.u32 [%r1], %r2;\n"
    for waits, races in (("cp.async.bulk.wait_group.read 0;", 0), ("", 1)):
        text = BEGIN + ZERO + fields() + ROOM + COPY + ACQUIRE.format("%l6") + filled
        text += store.replace("WAITS", waits) + COPY
        report = run(text, [array, np.zeros(256, np.uint8)], races="all")
        assert len(report.races) == races


# -- for what a run stands ------------------------------------------------------------------------

WORDS = "shl.b32 %r1, %t, 2; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l6, %l7; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1+1024]; st.global.u32 [%l7], %r2; fence.proxy.tensormap::generic.release.gpu; bar.sync 0;\n"
FOUND = (  # the words of a map that the launch finds in memory
    "ld.param.u64 %l6, [p1]; shl.b32 %r1, %t, 2; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l6, %l7; add.u32 %r1, %r1, %s;\n"
    "ld.global.u32 %r2, [%l7+128]; st.shared.u32 [%r1+1024], %r2; bar.warp.sync -1;\n"
)
EDITED = FOUND + "@%p1 " + REPLACE.format("box_dim", "b32", "1, 4") + " bar.warp.sync -1;\n"
IN_PLACE = (
    "@%p1 "
    + REPLACE.format("box_dim", "b32", "1, 4")
    .replace("shared::cta", "global")
    .replace("tile+1024", "%l6")
    + "\n"
)


def proved(edits: str, middle: str) -> Proof:
    array, out = np.arange(40 * 24, dtype=np.uint32).reshape(40, 24), np.zeros((4, 8), np.uint32)
    rooms = np.zeros(256, np.uint8)
    build = BEGIN + ZERO + fields() + ROOM + COPY + COPY.replace("[%l6]", "[%l6+128]")
    run(build, [array, rooms, out])
    assert rooms[:128].any()
    assert np.array_equal(rooms[:128], rooms[128:])
    text = BEGIN + edits + ROOM + middle + ACQUIRE.format("%l6") + LOAD
    report = run(text, [array, rooms, out], races="all", prove=True)
    assert np.array_equal(out, array[3:7, 8:16])
    assert report.proof is not None
    return report.proof


@pytest.mark.parametrize("way", [COPY, WORDS])
def test_a_map_that_is_made_of_numbers_is_for_all_data(way: str) -> None:
    assert proved(ZERO + fields(), way).reach is Reach.ALL_DATA


@pytest.mark.parametrize(
    ("edits", "middle"),
    [
        ("", ""), (FOUND, COPY), (FOUND, WORDS), (EDITED, COPY),
        ("", IN_PLACE + "fence.proxy.tensormap::generic.release.gpu; bar.sync 0;\n"),
    ],
)  # fmt: skip
def test_what_a_map_holds_is_data(edits: str, middle: str) -> None:
    proof = proved(edits, middle)
    assert proof.reach is Reach.THIS_DATA
    assert {each.condition for each in proof.failed} == {"data"}
    told = [
        each for each in proof.failed if each.message.startswith("a tensor map depends on data")
    ]
    assert told
    assert all(each.span is not None for each in told)


def test_a_map_among_the_parameters_is_part_of_the_shape() -> None:
    """Though its copies tell an mbarrier, again and again."""
    array, out = np.arange(40 * 24, dtype=np.uint32).reshape(40, 24), np.zeros((4, 8), np.uint32)
    again = (
        LOAD.split("\nld.param.u64 %l2")[0]
        .replace("%l6", "%l8")
        .replace("J", "K")
        .replace("W0", "W1")
        .replace(", 0; @!", ", 1; @!")
    )
    body = (
        BEGIN
        + "mov.b64 %l8, p0; mov.u64 %l6, %l8;\n"
        + LOAD.replace(
            "\nld.param.u64 %l2, [p2]", f"\nbar.sync 0;\n{again}\nld.param.u64 %l2, [p1]"
        )
    )
    report = run(body, [ptx.tensor_map(array, (4, 8)), out], races="all", prove=True)
    assert np.array_equal(out, array[3:7, 8:16])
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
