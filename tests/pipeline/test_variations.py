"""Sketches of every shape become kernels that are right on every device, whole tiles or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pipeline.own.variations import Variation, through_shared, variations
from tests.tools import require

import warploom
from warploom.errors import EmitError
from warploom.kernel.dtype import coded, decoded
from warploom.pipeline.compiled import Compiled
from warploom.runtime.callable import Device

LENGTHS = (7, 33, 131, 256)
VARIATIONS = {each.name: each for each in variations()}
SAMPLE = (
    "largest neighbours",
    "two inputs crossed",
    "exclusive scan",
    "sums of 3 float32, 5 lanes",
)


def run(variation: Variation, made: Compiled, n: int, seed: int) -> list[bool]:
    """Whole numbers, so that sums are exact, small enough for every type."""
    dtype = made.tiled.dtype
    draw = np.random.default_rng(seed)
    numbers = [draw.integers(0, 9, shape) for shape in variation.shapes(n)]
    kind = np.float32 if dtype.is_code else dtype.numpy
    wanted = variation.expected(n, *(each.astype(kind) for each in numbers))
    given: list[Any] = [each.astype(kind) for each in numbers]
    outputs: list[Any] = [np.full(each.shape, 99, kind) for each in wanted]
    if dtype.is_code:
        given, outputs = ([coded(each, dtype) for each in some] for some in (given, outputs))
    made(*given, *outputs)
    if dtype.is_code:
        outputs = [decoded(each, dtype) for each in outputs]
    return [np.array_equal(got, want) for got, want in zip(outputs, wanted, strict=True)]


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
