"""Sketches of every shape become kernels that are right on every device, whole tiles or not."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.own.variations import LENGTHS, run, through_shared, variations
from tests.tools import require

import warploom
from warploom.errors import EmitError
from warploom.pipeline.compiled import Compiled
from warploom.runtime.callable import Device

VARIATIONS = {each.name: each for each in variations()}
SAMPLE = (
    "largest neighbours",
    "two inputs crossed",
    "exclusive scan",
    "sums of 3 float32, 5 lanes",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_on_the_simulator_and_as_c(name: str) -> None:
    require("c")
    made = warploom.compile(
        VARIATIONS[name].subject, device="simulator", **VARIATIONS[name].options
    )
    for seed, n in enumerate(LENGTHS[1:3]):
        assert all(run(VARIATIONS[name], made, n, seed))
        assert all(run(VARIATIONS[name], Compiled(made.tiled, "c"), n, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIATIONS)
def test_all_of_them_on_every_device(name: str) -> None:
    variation = VARIATIONS[name]
    made = warploom.compile(variation.subject, device="simulator", **variation.options)
    assert "erdict: proved" in made.kernel.doc
    devices: tuple[Device, ...] = ("simulator", "c", "ptx")
    for device in devices:
        if device != "simulator":
            require(device)
        there = Compiled(made.tiled, device)
        for seed, n in enumerate(LENGTHS):
            assert all(run(variation, there, n, seed)), (device, n)


def test_warps_of_64_lanes_run_but_are_no_cuda() -> None:
    """Other machines have them: the simulator counts their shared accesses in two halves."""
    made = warploom.compile(through_shared, device="simulator")
    x = np.arange(128, dtype=np.float32)
    assert np.array_equal(made(x), x.reshape(2, 64)[:, ::-1].reshape(-1))
    with pytest.raises(EmitError, match="CUDA has warps of 32 lanes, the kernel has 64"):
        made.text("cuda")
