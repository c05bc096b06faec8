"""Sectors and useful bytes against counting with sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.machine.coalesce import SECTOR_BYTES, Traffic, traffic


@given(st.integers(0, 10_000), st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 60))
@examples(60)
def test_against_sets(seed: int, width: int, spread: int) -> None:
    random = np.random.default_rng(seed)
    addresses = random.integers(0, spread, (3, 32)) * width
    active = random.random((3, 32)) < random.random()
    rows = [row[mask].tolist() for row, mask in zip(addresses, active, strict=True)]
    expected = Traffic(
        sum(1 for row in rows if row),
        sum(len({address // SECTOR_BYTES for address in row}) for row in rows),
        sum(len(set(row)) * width for row in rows),
        sum(-(-len(set(row)) * width // SECTOR_BYTES) for row in rows),
    )
    assert traffic(addresses, width, active) == expected


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32), (0, 1)])
def test_strides(stride: int, sectors: int) -> None:
    lanes = np.arange(32, dtype=np.int64)[None]
    assert traffic(lanes * 4 * stride, 4, np.ones((1, 32), bool)).sectors == sectors


def test_nothing_moved_is_perfect() -> None:
    idle = traffic(np.zeros((2, 32), np.int64), 4, np.zeros((2, 32), bool))
    assert (idle, idle.efficiency) == (Traffic(), 1.0)


def test_wider_than_a_sector() -> None:
    lanes = np.arange(4, dtype=np.int64)[None] * 64
    assert traffic(lanes, 64, np.ones((1, 4), bool)).sectors == 8
