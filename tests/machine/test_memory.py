"""Allocations, bounds and alignment."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from warploom.machine.memory import (
    ALIGNMENT,
    GAP,
    Fault,
    Memory,
    check,
    mark_stored,
    per_owner,
    unstored,
)


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


def test_bytes_that_nobody_stored() -> None:
    word, byte = np.dtype(np.uint32), np.dtype(np.uint8)
    region = per_owner("r", 2, 1, 8, marked=True)
    at = np.array([0, 1, 4])  # a copy is 16 bytes
    assert unstored(region, at, word).tolist() == [True, True, True]
    mark_stored(region, np.array([0, 4]), word)
    mark_stored(region, np.array([4, 5, 7]), byte)
    assert unstored(region, at, word).tolist() == [False, True, False]
    assert unstored(region, at, word, np.array([True, False, True])).tolist() == [False] * 3
    mark_stored(region, np.array([6]), byte)
    assert not unstored(region, at, word).any()


def test_memory_without_marks_takes_stores() -> None:
    region = Memory().add("r", np.zeros(8, np.uint8))
    mark_stored(region, np.array([0]), np.dtype(np.uint32))
    assert region.written is None
