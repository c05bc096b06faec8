"""`warploom.judge` on the forty computations as kernels of Triton (`triton/`)."""

from __future__ import annotations

import pytest
from bench.common.verdict.replay import shows
from bench.common.verdict.triton_computations import ALL, FOLDER, KINDS, SETTINGS, kernels, written

# What is not followed, by words of the reason: logf of libdevice, and sums by atomics at places
# that are loaded.
LOG = "a comparison of floats"
UNKNOWN = {"log_sum_exp": LOG, "softplus": LOG, "entropy": LOG, "scatter_add": "who came first"}
# By what these are found; all others have inputs on which the result differs.
FAULTS = {
    "dot_wrong": "fault", "matmul_gamed": "fault", "transpose_wrong": "unwritten",
    "scatter_add_wrong": "race", "scatter_add_gamed": "race", "matvec_gamed": "race",
}  # fmt: skip
RIGHT = [
    pytest.param(name, marks=() if n % 8 == 0 else pytest.mark.slow) for n, name in enumerate(ALL)
]
WRONG = [
    pytest.param(f"{name}_{kind}", marks=() if n % 8 == 1 else pytest.mark.slow)
    for n, name in enumerate(ALL)
    for kind in ("wrong", "gamed")
]


def test_each_computation_has_a_text_with_three_kernels() -> None:
    assert sorted(SETTINGS) == sorted(ALL) == sorted(path.stem for path in FOLDER.iterdir())
    for name in ALL:
        module, launches = kernels(name)
        assert [*launches] == [name + kind for kind in KINDS]
        assert sorted(module.kernels) == sorted(launches)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_equal(name: str) -> None:
    found = written(name).judged(name)
    if name in UNKNOWN:
        assert found.verdict == "unknown"
        assert any(UNKNOWN[name] in each.message for each in found.shapes[0].reasons)
        return
    assert found.verdict == "equal", found
    assert (found.shapes[0].error or 0) <= -40
    assert not found.shapes[0].reasons


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.sampled(6)
def test_what_is_wrong_or_gamed_is_different(name: str) -> None:
    found = written(name).judged(name)
    assert found.verdict == "different", found
    assert shows(written(name), name, found)
    if name in FAULTS:
        assert FAULTS[name] in {each.what for each in found.shapes[0].reasons}
    else:
        assert found.counterexample is not None


def test_sums_that_lanes_round_in_another_way_are_no_race() -> None:
    """All lanes store the sum to one place: of each the product that is fused is another."""
    found = written("dot").judged("dot")
    assert found.verdict == "equal"
    assert found.shapes[0].schedule.startswith("proved for all schedules")
