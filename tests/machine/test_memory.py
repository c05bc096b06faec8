"""Allocations, bounds and alignment."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from warploom.machine.memory import ALIGNMENT, GAP, Fault, Memory, check, first_unwritten


def test_allocations_lie_apart_and_aligned() -> None:
    memory = Memory()
    regions = [
        memory.add(f"r{i}", np.zeros(size, np.uint8)) for i, size in enumerate((1, 300, 0, 8))
    ]
    for first, second in pairwise(regions):
        assert second.base % ALIGNMENT == 0
        assert second.base - (first.base + first.size) >= GAP
    for region in regions:
        assert memory.find(region.base + max(0, region.size - 1)) is region
        assert memory.find(region.base + region.size + 8) is region
    assert memory.find(regions[1].base - 8) is regions[1]
    assert memory.find(0) is regions[0]


def offsets(*values: int) -> np.ndarray:
    return np.array(values, np.int64).view(np.uint64)


def test_check() -> None:
    region = Memory().add("r", np.zeros(16, np.uint8))
    assert check(region, offsets(0, 12, 4), 4, None).tolist() == [0, 3, 1]
    for bad, message in (
        (16, "out-of-bounds"),
        (13, "out-of-bounds"),
        (-4, "4 bytes before"),
        (2, "misaligned"),
    ):
        with pytest.raises(Fault) as caught:
            check(region, offsets(0, 4, bad), 4, None)
        assert caught.value.position == 2
        assert message in caught.value.what
    active = np.array([True, True, False])
    assert check(region, offsets(0, 4, 999), 4, active).tolist()[:2] == [0, 1]


def test_unwritten_bytes() -> None:
    region = Memory().add("r", np.zeros(8, np.uint8))
    region.written = np.array([1, 1, 1, 1, 1, 1, 0, 1], np.uint8)
    assert first_unwritten(region, np.array([0]), np.dtype(np.uint32), None) is None
    assert first_unwritten(region, np.array([0, 1]), np.dtype(np.uint32), None) == 1
    assert (
        first_unwritten(region, np.array([0, 1]), np.dtype(np.uint32), np.array([True, False]))
        is None
    )
