"""Requests word by word: they are what the model counts."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.errors import CheckError
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.picture import request_of


@pytest.mark.parametrize(
    "name", ["transpose:32x32:f32", "ldmatrix:64x64:f16", "bitonic:1x1024:f32"]
)
def test_wavefronts_are_the_models(name: str) -> None:
    task = Task(pattern(name))
    plain = np.arange(task.problem.size)
    for number, access in enumerate(task.problem.accesses):
        counted = task.meter.by_step(number, plain)
        for step in range(min(3, access.steps)):
            drawn = request_of(task, plain, number, step, "plain")
            assert drawn.wavefronts == counted[step]
            assert max(each.wavefront for each in drawn.wanted) < drawn.wavefronts


def test_what_is_not_there() -> None:
    task = Task(pattern("transpose:32x32:f32"))
    with pytest.raises(CheckError, match="no access 2"):
        request_of(task, np.arange(1024), 2, 0, "")
    with pytest.raises(CheckError, match="no step 32"):
        request_of(task, np.arange(1024), 0, 32, "")
