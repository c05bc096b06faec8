# ruff: noqa: E501 - programs read better with a line each
"""Bulk copies of no bytes, prefetches, discards, and who may touch an mbarrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ptx.test_async import BEGIN, WAIT, run

from warploom import ptx
from warploom.errors import KernelError
from warploom.machine.proof import Reach

LOADED = "ld.param.u64 %l1, [p0];\n"
IN = (
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 0;\n"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%l1], 0, [bar];\n"
    + WAIT.format(n=0, parity=0)
)
OUT = (
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%l1], [tile], 0;\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
)


def words(size: int = 64) -> Any:
    return np.arange(size, dtype=np.uint32)


@pytest.mark.parametrize("body", [IN, OUT])
def test_a_copy_of_no_bytes_ends(body: str) -> None:
    array = words()
    report = run(BEGIN + LOADED + body, [array], races="all")
    assert report.races == []
    np.testing.assert_array_equal(array, words())


def test_no_phase_waits_for_a_copy_of_no_bytes() -> None:
    """So what its thread did before is not known to those that waited for the phase."""
    proof = run(BEGIN + LOADED + IN, [words()], races="all", prove=True).proof
    assert proof is not None
    assert proof.reach is Reach.THIS_SCHEDULE
    assert "copy of no bytes" in proof.failed[0].message


@pytest.mark.parametrize(
    "touch",
    [
        "ld.shared.u64 %l1, [bar];", "@%p1 ld.shared.u8 %r1, [bar+7];", "@%p1 st.shared.u32 [bar+4], 0;",
        "@%p1 atom.shared.add.u32 %r1, [bar], 0;", "cvta.shared.u64 %l2, bar; ld.u32 %r1, [%l2];",
    ],
)  # fmt: skip
def test_only_operations_on_mbarriers_touch_one_that_is_alive(touch: str) -> None:
    with pytest.raises(KernelError, match="mbarrier that is alive"):
        run(
            BEGIN.replace("bar.sync 0;", "mov.b64 %l2, bar;")
            + touch.replace("cvta.shared.u64 %l2, bar", "cvta.shared.u64 %l2, %l2"),
            [],
        )
    ended = "bar.sync 0; @%p1 mbarrier.inval.shared.b64 [bar]; bar.sync 0; mov.b64 %l2, bar; @%p1 st.shared.u64 [bar], 7; bar.sync 0;"
    run(BEGIN + ended + touch.replace("cvta.shared.u64 %l2, bar", "cvta.shared.u64 %l2, %l2"), [])


def test_an_arrival_counts_at_least_one() -> None:
    for count in ("0", "1048576"):
        with pytest.raises(KernelError, match="arrivals at once"):
            run(
                f"@%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 mbarrier.arrive.shared.b64 %l1, [bar], {count};",
                [],
            )


PREFETCH = "cp.async.bulk.prefetch.L2.global [%l1{}], {};"
BOX = "mov.u32 %r1, {}; mov.u32 %r2, 0; cp.async.bulk.prefetch.tensor.2d.L2.global.tile [p0, {{%r1, %r2}}];"


def test_prefetches_change_nothing() -> None:
    array = words(256)
    report = run(LOADED + PREFETCH.format("", 1024), [array], races="all", prove=True)
    assert report.races == []
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    run(BOX.format(-4), [ptx.tensor_map(array.reshape(16, 16), (4, 8))], races="all")
    np.testing.assert_array_equal(array, words(256))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LOADED + PREFETCH.format("+8", 16), "no multiple of 16"), (LOADED + PREFETCH.format("", 24), "no multiple of 16"),
        (LOADED + PREFETCH.format("+1008", 32), "out-of-bounds access of 32 bytes"),
    ],
)  # fmt: skip
def test_a_prefetch_of_what_cannot_be_copied(body: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run(body, [words(256)])


def test_a_prefetch_of_a_box_that_cannot_be_copied() -> None:
    box = ptx.tensor_map(words(256).reshape(16, 16), (4, 8))
    for body, message in (
        (BOX.format(1), "first coordinate, 1, is not at a multiple"),
        (BOX.format(0).replace("{%r1, %r2}", "{%r1}").replace("2d", "1d"), "1 coordinates for a map of rank 2"),
    ):  # fmt: skip
        with pytest.raises(KernelError, match=message):
            run(body, [box])
    with pytest.raises(KernelError, match="no tensor map"):
        run(LOADED + BOX.format(0).replace("[p0", "[%l1"), [words(256)])


DISCARD = LOADED + "@%p1 discard.global.L2 [%l1+{}], 128;\n"


def test_a_discard_is_a_write_of_what_is_not_known() -> None:
    array = words()
    proof = run(DISCARD.format(0), [array], races="all", prove=True).proof
    assert proof is not None
    assert "what memory holds after this" in proof.failed[0].message
    both = (
        DISCARD.format(0)
        + "setp.eq.u32 %p2, %t, 1; @%p2 ld.global.u32 %r1, [%l1+64]; st.global.u32 [%l1+128], %r1;"
    )
    assert run(both.replace("st.global", "@%p2 st.global"), [array], races="all").races != []
    for offset, message in (
        (64, "misaligned access of 128 bytes"),
        (256, "out-of-bounds access of 128 bytes"),
    ):
        with pytest.raises(KernelError, match=message):
            run(DISCARD.format(offset), [array])


def test_bulk_stores_to_what_cannot_be_written() -> None:
    fixed = words()
    fixed.flags.writeable = False
    store = OUT.replace(", 0;\n", ", 16;\n")
    with pytest.raises(KernelError, match="which is constant"):
        run(
            BEGIN + "mov.u32 %r1, 0; st.shared.u32 [tile], %r1; bar.sync 0;" + LOADED + store,
            [fixed],
        )
