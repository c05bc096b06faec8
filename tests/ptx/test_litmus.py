"""Verdicts of PTX's memory model, each as a kernel: every race is found, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.litmus import LITMUS, Litmus

from warploom import ptx
from warploom.errors import DeviceError


@pytest.mark.sampled(21)
@pytest.mark.parametrize("litmus", LITMUS, ids=lambda each: str(each.number))
def test_verdict(litmus: Litmus) -> None:
    assert litmus.found() == litmus.races, litmus.why


@pytest.mark.sampled(21)
@pytest.mark.parametrize("litmus", LITMUS, ids=lambda each: str(each.number))
def test_verdict_when_lanes_part_at_random(litmus: Litmus) -> None:
    """Whoever comes first: the verdict is the same where the flag makes the reader wait."""
    for seed in range(2):
        assert litmus.found(schedule=seed) == litmus.races, (litmus.why, seed)


def test_barriers_of_two_numbers_never_meet() -> None:
    """Number 9 of the list: the store and the load race, and neither warp ever goes on."""
    text = LITMUS[0].text.replace(
        LITMUS[0].body.replace("SP", "shared"),
        "setp.gt.u32 %p5, %t, 31; @%p5 bar.sync 2, 64; @!%p5 bar.sync 1, 64;",
    )
    with pytest.raises(DeviceError, match="never complete"):
        ptx.load(text).kernel("k").launch(1, 64, [np.zeros(64, np.uint64)], races="all")


def test_a_launch_is_after_the_launch_before() -> None:
    """Number 46: what one kernel wrote, the next may read by any way."""
    (one,) = [each for each in LITMUS if each.number == 46]
    data = np.zeros(64, np.uint64)
    writes = ptx.load(one.text).kernel("k")
    assert not writes.launch(2, 64, [data], races="all").races
    reads = ptx.load(one.text.replace("st.global.u32 [%D], %v;", "ld.global.nc.u32 %r2, [%D];"))
    assert not reads.kernel("k").launch(2, 64, [data], races="all").races
