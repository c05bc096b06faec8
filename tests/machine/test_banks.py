"""Passes through the banks of shared memory against counting with sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.machine.banks import BANKS, bank_use


def passes(addresses: list[int], width: int) -> int:
    """One group of lanes: the fullest bank decides."""
    words = {address // 4 + i for address in addresses for i in range(max(1, width // 4))}
    banks = [word % BANKS for word in words]
    return max((banks.count(bank) for bank in set(banks)), default=0)


def pairs(row: list[int | None]) -> bool:
    """Whether lanes ask in equal pairs, with one partner for all."""

    def agree(a: int | None, b: int | None) -> bool:
        return a is None or b is None or a == b

    return any(all(agree(row[i], row[i ^ k]) for i in range(32)) for k in (1, 2))


@given(
    st.integers(0, 10_000), st.sampled_from([1, 4, 8, 16]), st.integers(1, 300), st.booleans(),
    st.sampled_from([0, 1, 2]),
)  # fmt: skip
@examples(80)
def test_against_sets(seed: int, width: int, spread: int, load: bool, together: int) -> None:
    random = np.random.default_rng(seed)
    addresses = random.integers(0, spread, (2, 32)) * width
    if together:
        addresses = addresses[:, np.arange(32) & ~together]
    active = random.random((2, 32)) < random.random()
    use = bank_use(addresses, width, active, load=load)
    groups: list[list[int]] = []
    for row, mask in zip(addresses.tolist(), active.tolist(), strict=True):
        wanted = [address if on else None for address, on in zip(row, mask, strict=True)]
        lanes = 32 // max(1, width // 4)
        if load and width > 4 and pairs(wanted):
            lanes *= 2
        starts = range(0, 32, lanes)
        groups += [[a for a in wanted[at : at + lanes] if a is not None] for at in starts]
    assert use.wavefronts == sum(passes(group, width) for group in groups)
    assert use.ideal == sum(1 for group in groups if group)
    assert use.requests == sum(1 for mask in active if mask.any())


def test_wider_accesses_are_several_requests() -> None:
    lanes = np.arange(32, dtype=np.int64)[None]
    use = bank_use(lanes * 32, 32, lanes >= 0, load=False)
    assert (use.requests, use.wavefronts, use.ideal) == (2, 16, 8)


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 0), (2, 1), (32, 31), (33, 0), (0, 0)])
def test_strides(stride: int, conflicts: int) -> None:
    lanes = np.arange(32, dtype=np.int64)[None]
    assert bank_use(lanes * 4 * stride, 4, np.ones((1, 32), bool)).conflicts == conflicts
