"""Sums over the blocks of a cluster: what they mean, what is refused, what CUDA says of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warploom.emit.cuda import cuda
from warploom.errors import CheckError
from warploom.index.ir import Const, Var
from warploom.kernel import ir
from warploom.kernel.build import Builder
from warploom.kernel.check import check
from warploom.kernel.dtype import bf16, f32
from warploom.kernel.evaluate import BATCH_THREADS, run
from warploom.kernel.ir import ClusterSum, Kernel
from warploom.kernel.work import work_of

COUNT, BLOCKS, CLUSTERS = 20, 3, 2  # five units for three blocks
SHARE = 2 * 4


def sums(clusters: int = CLUSTERS) -> Kernel:
    """Each thread of each block has numbers by block and register; what a block gets is stored."""
    k = Builder("sums", block=128)
    x = k.array("x", bf16, 64 * 64, const=True)
    k.array("y", f32, clusters * BLOCKS * SHARE)
    k.grid(clusters * BLOCKS)
    k.cluster(BLOCKS)
    k.roles(40, 232)
    k.tensor_map("x_map", x, (64, 64), (64, 64), 128)
    k.shared("tile", bf16, 64 * 64, align=1024)
    k.shared("parts", f32, (BLOCKS - 1) * SHARE * 128)
    held = k.registers("held", f32, COUNT)
    with k.ring("t", 1, 1) as (_, stage):
        k.add(ir.Fill("x_map", (Const(0), Const(0)), "tile", stage * 64 * 64))
    for at in range(COUNT):
        k.set(held[at], ir.FromIndex(k.block_x * 100 + at, f32))
    total = k.registers("total", f32, SHARE)
    target, value = (ir.Cell(name, Const(0), f32) for name in ("total", "held"))
    k.add(ClusterSum(target, value, COUNT, "parts", BLOCKS))
    with k.when(k.thread.eq(5)):
        for at in range(SHARE):
            k.add(ir.Store("y", k.block_x * SHARE + at, total[at]))
    return k.done()


def wanted(clusters: int) -> Any:
    block, at = np.arange(clusters * BLOCKS), np.arange(COUNT)
    whole = (block[:, None] * 100 + at).reshape(clusters, BLOCKS, COUNT).sum(axis=1)
    padded = np.zeros((clusters, BLOCKS * SHARE), np.float32)
    padded[:, :COUNT] = whole
    return padded.reshape(-1)


@pytest.mark.parametrize("clusters", [CLUSTERS, BATCH_THREADS // 128 // BLOCKS + 2])
def test_each_block_gets_a_share_and_zeros_behind_the_last(clusters: int) -> None:
    """Also where not all blocks are looked at together: those of a cluster are."""
    out = np.zeros(clusters * BLOCKS * SHARE, np.float32)
    run(sums(clusters), [np.zeros(64 * 64, np.uint16), out])
    np.testing.assert_array_equal(out, wanted(clusters))


def changed(change: Callable[[ClusterSum], tuple[ir.Stmt, ...]]) -> Kernel:
    kernel = sums()
    body = [each for stmt in kernel.body
            for each in (change(stmt) if isinstance(stmt, ClusterSum) else (stmt,))]  # fmt: skip
    return replace(kernel, body=tuple(body))


def looped(stmt: ClusterSum) -> tuple[ir.Stmt, ...]:
    return (ir.loop("again", 2, stmt),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: (s, s), "more than once"),
        (looped, "more than once"),
        (lambda s: (replace(s, blocks=2),), "where a cluster has 3"),
        (lambda s: (replace(s, count=18),), "a multiple of 4"),
        (lambda s: (replace(s, count=24),), "has 20 registers"),
        (lambda s: (replace(s, array="tile"),), "used by a Fill"),
        (lambda s: (replace(s, target=replace(s.value)),), "overwrites"),
        (lambda s: (ir.Store("parts", Var("lane"), s.value), s), "used by a Store"),
        (lambda s: (ir.If(Var("lane").lt(3), (s,)),), "sum over a cluster stands under"),
        (lambda s: (ir.If((Var("block_x") % 3).lt(2), (s,)),), "may differ between blocks"),
    ],
)
def test_what_is_wrong_is_refused(
    change: Callable[[ClusterSum], tuple[ir.Stmt, ...]], said: str
) -> None:
    check(sums())
    with pytest.raises(CheckError, match=said):
        check(changed(change))


def test_parts_have_room() -> None:
    kernel = sums()
    body = [replace(each, size=each.size - 1) if isinstance(each, ir.Shared) and each.dtype is f32
            else each for each in kernel.body]  # fmt: skip
    with pytest.raises(CheckError, match="needs 2048 elements"):
        check(replace(kernel, body=tuple(body)))


def test_the_text_counts_the_bytes_of_each_share() -> None:
    """Two units for the first two blocks, one for the last, from two others and 128 threads."""
    text = cuda(sums())
    each = 16 * 128 * 2
    assert f"* {each}" in text
    assert text.count("_send_f32(") == 1 + BLOCKS  # its definition, and a share of each block
    assert "barrier.cluster.arrive.release.aligned" in text
    work = work_of(sums())
    assert work.wavefronts == 2 * (BLOCKS - 1) * SHARE * 4
