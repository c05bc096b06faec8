"""Verdicts of PTX's memory model, each as a kernel: every race is found, and nothing else is said."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.litmus import LITMUS, Litmus

from warploom import ptx


@pytest.mark.parametrize("litmus", LITMUS, ids=lambda each: str(each.number))
def test_verdict(litmus: Litmus) -> None:
    assert litmus.found() == litmus.races, litmus.why


@pytest.mark.parametrize("litmus", LITMUS, ids=lambda each: str(each.number))
def test_verdict_when_lanes_part_at_random(litmus: Litmus) -> None:
    """Whoever comes first: the verdict is the same where the flag makes the reader wait."""
    for seed in range(2):
        assert litmus.found(schedule=seed) == litmus.races, (litmus.why, seed)
