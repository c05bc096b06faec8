"""Random kernels: every target computes what the evaluator computes, bit for bit.

A sample of fixed seeds; the full run (`-m slow`) leaves bench/results/kernel_random.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.kernel.random_kernels import random_kernel
from tests.runtime.random_runs import BROKEN, KERNELS, differences, fate, full_run, save
from tests.tools import require

from warploom.kernel.ir import For, If, Kernel, Load, Registers, Shuffle, Store, walk

RECORD = Path(__file__).resolve().parents[2] / "bench" / "results" / "kernel_random.json"
SAMPLE = {"c": range(3000, 3016), "ptx": range(3000, 3016), "opencl": range(3000, 3003)}


@pytest.mark.parametrize("device", SAMPLE)
def test_a_sample_agrees(device: Any) -> None:
    require(device)
    assert differences(SAMPLE[device], device) == []


def test_an_index_out_of_range_is_refused() -> None:
    fates = {fate(seed) for seed in range(3000, 3020)}
    assert "accepted" not in fates
    assert "refused with a thread that leaves" in fates


def test_the_sample_has_everything() -> None:
    """What the seeds are to cover does occur in them."""
    kernels = [random_kernel(seed) for seed in range(3000, 3030)]
    stmts = [stmt for kernel in kernels for stmt in walk(kernel.body)]
    assert any(isinstance(each, Shuffle) for each in stmts)
    assert any(isinstance(each, For) and each.counts is None for each in stmts)
    assert any(isinstance(each, Load) and each.width > 1 and each.otherwise for each in stmts)
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


@pytest.mark.slow
def test_all_agree_and_leave_a_record() -> None:
    devices = []
    for device in SAMPLE:
        require(device)
        devices.append(device)
    record = full_run(devices)
    save(record, RECORD)
    assert not any(record["disagreements"].values())
    assert record["kernels"] == KERNELS
    assert sum(record["broken"].values()) == BROKEN
    assert "accepted" not in record["broken"]
