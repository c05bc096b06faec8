"""Propagation against CP-SAT, where it is installed: larger random spaces, exactly judged."""

from __future__ import annotations

import pytest
from tests.search.cpsat import judge
from tests.search.spaces import random_space


def removed(seed: int, most: int, objects: int) -> int:
    return judge(random_space(seed, most, objects), seed)[0]


def test_cp_sat_confirms_what_is_removed() -> None:
    assert sum(removed(seed, 20_000, 4) for seed in range(2000, 2025)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(4))
def test_cp_sat_confirms_what_is_removed_from_many_spaces(hundred: int) -> None:
    seeds = range(3000 + 100 * hundred, 3100 + 100 * hundred)
    assert sum(removed(seed, 10**7, 5) for seed in seeds) > 100
