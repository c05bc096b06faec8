"""Passes through the banks of shared memory against counting with sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.machine.banks import BANKS, bank_use


def passes(addresses: list[int], width: int) -> int:
    """One group of lanes: the fullest bank decides."""
    words = {address // 4 + i for address in addresses for i in range(max(1, width // 4))}
    banks = [word % BANKS for word in words]
    return max((banks.count(bank) for bank in set(banks)), default=0)


@given(st.integers(0, 10_000), st.sampled_from([1, 4, 8, 16]), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_against_sets(seed: int, width: int, spread: int) -> None:
    random = np.random.default_rng(seed)
    addresses = random.integers(0, spread, (2, 32)) * width
    active = random.random((2, 32)) < random.random()
    lanes = 32 // max(1, width // 4)
    groups = [
        [int(row[i]) for i in range(first, first + lanes) if mask[i]]
        for row, mask in zip(addresses, active, strict=True)
        for first in range(0, 32, lanes)
    ]
    use = bank_use(addresses, width, active)
    assert use.wavefronts == sum(passes(group, width) for group in groups)
    assert use.ideal == sum(1 for group in groups if group)
    assert use.requests == sum(1 for mask in active if mask.any())


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 0), (2, 1), (32, 31), (33, 0), (0, 0)])
def test_strides(stride: int, conflicts: int) -> None:
    lanes = np.arange(32, dtype=np.int64)[None]
    assert bank_use(lanes * 4 * stride, 4, np.ones((1, 32), bool)).conflicts == conflicts
