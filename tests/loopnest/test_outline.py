"""Implementations counted in outline do what their kernels do."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from warploom.kernel.work import work_of
from warploom.loopnest.lower import lower, outlined
from warploom.machine.record import H200
from warploom.machine.times import predicted
from warploom.pipeline.drawn import Asked, leaves_of
from warploom.pipeline.exploring import nest_of
from warploom.pipeline.nest import Nest
from warploom.pipeline.strategic import strategies_of

SAME = ("blocks", "threads", "arithmetic", "special", "requests", "wavefronts", "sectors")


def some(name: str, sizes: dict[str, int], count: int, strategy: int = 0):  # type: ignore[no-untyped-def]
    nest = nest_of(name, sizes)
    variants = strategies_of(nest, None, "default", free=True).variants
    own = Nest(variants[strategy].program, nest.rates, nest.target, variants[strategy].fixes)
    drawn = leaves_of(own, Asked(count, (1, 2)))
    for row in np.flatnonzero(drawn.arrived):
        yield own.implementation(drawn.leaves.take(slice(int(row), int(row) + 1)))


@pytest.mark.parametrize("name", ["matvec", "gesummv"])
@pytest.mark.sampled(1)
def test_without_a_pipeline_counts_are_the_same(name: str) -> None:
    for made in some(name, {"m": 700, "n": 500} if name == "matvec" else {"m": 512, "n": 512}, 4):
        outline, kernel = work_of(outlined(made)), work_of(lower(made))
        for each in SAME:
            assert getattr(outline, each) == pytest.approx(getattr(kernel, each)), each


@pytest.mark.slow
def test_a_pipeline_is_counted_nearly_as_it_is() -> None:
    seen = 0
    for made in some("matmul", {"m": 256, "n": 256, "k": 64}, 6):
        outline, kernel = work_of(outlined(made)), work_of(lower(made))
        assert outline.arithmetic == kernel.arithmetic
        times = [float(predicted(each, H200).nanoseconds) for each in (outline, kernel)]
        assert 0.7 < times[0] / times[1] < 1.5
        seen += asdict(outline)["shared_bytes"] > 0
    assert seen
