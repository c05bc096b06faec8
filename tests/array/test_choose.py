"""Blocks that are tried: all fit and divide, and the model knows what is plainly bad."""

from __future__ import annotations

import pytest
from bench.common.array.blocked import Blocks
from bench.common.array.blocks import candidates, registers, seconds

from warploom.array.workload import VGG_16, Convolution
from warploom.machine.record import H200


@pytest.mark.parametrize("name", ["conv1_1", "conv3_1", "conv5_1"])
def test_all_fit_and_divide(name: str) -> None:
    layer = VGG_16[name]
    found = candidates(layer, H200)
    assert len(found) > 100
    products = layer.kernel_height * layer.kernel_width * layer.channels
    for blocks in found[::20]:
        blocks.check(products // blocks.bk)
        assert blocks.shared_bytes <= H200.shared_bytes
        across, up = blocks.threads
        assert registers(blocks) * across * up * blocks.slices <= H200.block_registers
    times = seconds(layer, found, H200).tolist()
    assert times == sorted(times)


def test_few_groups_share_their_products() -> None:
    """14 pixels a side are too few blocks for a GPU: the products are split over groups."""
    layer = Convolution(14, 14, 512, 512)
    alone, shared = Blocks(64, 64, 16, 8, 8), Blocks(64, 64, 16, 8, 8, parts=9)
    together, by_itself = seconds(layer, [shared, alone], H200)
    assert together < by_itself
    assert candidates(layer, H200)[0].parts > 1


def test_threads_share_a_sum_where_groups_may_not() -> None:
    """Without memory between kernels a small block has more threads for each sum."""
    layer = Convolution(14, 14, 512, 512)
    best = candidates(layer, H200, memory=0)[0]
    assert best.parts == 1
    assert best.slices > 1
