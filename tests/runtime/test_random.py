"""Random kernels: every target computes what the evaluator computes, bit for bit.

A sample of fixed seeds; bench/kernel/random_kernels.py runs thousands.
"""

from __future__ import annotations

from typing import Any

import pytest
from bench.common.kernel.random_kernels import random_kernel
from bench.common.kernel.random_runs import TOGETHER, differences, fate, looked_at
from tests.sampled import rounds
from tests.tools import require

from warploom.kernel.ir import For, If, Kernel, Load, Registers, Shuffle, Store, walk

SAMPLE = {d: range(3000, 3000 + rounds(n)) for d, n in {"c": 12, "ptx": 12, "opencl": 3}.items()}


@pytest.mark.parametrize("device", SAMPLE)
def test_a_sample_agrees(device: Any) -> None:
    require(device)
    seeds, size = SAMPLE[device], TOGETHER[device]
    for first in range(0, len(seeds), size):
        assert differences(seeds[first : first + size], device) == []


def test_barriers_in_nested_conditions_on_opencl() -> None:
    """PoCL 3 once let only the first thread go on after the conditions of this kernel."""
    require("opencl")
    assert differences([5004, 5005], "opencl") == []


def test_an_index_out_of_range_is_refused() -> None:
    found = {fate(seed) for seed in range(3000, 3010)}
    assert "accepted" not in found
    assert "refused with a thread that leaves" in found


def test_a_piece_of_the_long_run() -> None:
    """Which lists what differs, and what becomes of broken kernels."""
    piece = looked_at("c", 3000, 2)
    assert (piece["kernels"], piece["disagreements"]) == (2, [])
    assert sum(looked_at("broken", 3000, 3)["fates"].values()) == 3


def test_the_sample_has_everything() -> None:
    """What the seeds are to cover does occur in them."""
    kernels = [random_kernel(seed) for seed in range(3000, 3030)]
    stmts = [stmt for kernel in kernels for stmt in walk(kernel.body)]
    assert any(isinstance(each, Shuffle) for each in stmts)
    assert any(isinstance(each, For) and each.counts is None for each in stmts)
    assert any(
        isinstance(each, Load) and each.width > 1 and each.otherwise is not None for each in stmts
    )
    assert any(isinstance(each, Store) and each.predicate is not None for each in stmts)
    assert any(isinstance(each, If) and each.otherwise for each in stmts)
    assert any(_reused(kernel) for kernel in kernels)
    types = {each.dtype for each in stmts if isinstance(each, Registers)}
    assert len(types) == 10


def _reused(kernel: Kernel) -> bool:
    """Whether one name is declared with two types."""
    declared = [each for each in walk(kernel.body) if isinstance(each, Registers)]
    return len({(each.name, each.dtype) for each in declared}) > len(
        {each.name for each in declared}
    )
