"""Other shapes than those that were stated."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.verdict.computations import COMPUTATIONS, KERNELS

from warploom.errors import CheckError
from warploom.verdict.elsewhere import other_shapes
from warploom.verdict.judged import judge

STATED = {"rows": 2, "n": 32}


def test_a_size_that_is_written_into_the_kernel_is_found_and_said() -> None:
    found = COMPUTATIONS["row_sum"].judged("row_sum_gamed", shape=STATED)
    assert found.verdict == "equal"
    assert [each.found for each in found.others] == ["different", "different"]
    assert "also launched at rows=5, n=34: different: y[3] is" in str(found)
    assert "232 bytes into 'x'" in str(found)
    again = COMPUTATIONS["row_sum"].judged("row_sum_gamed", shape=STATED, general=True)
    assert again.verdict == "different"


def test_what_holds_elsewhere_is_said_with_the_shapes() -> None:
    found = COMPUTATIONS["row_sum"].judged("row_sum", shape=STATED, general=True, others=4)
    assert found.verdict == "equal"
    assert [each.found for each in found.others] == ["alike"] * 4
    shapes = [each["shape"] for each in found.record()["others"]]
    assert len({tuple(each.values()) for each in shapes}) == 4
    assert STATED not in shapes


def test_other_shapes_are_larger_and_smaller() -> None:
    draw = np.random.default_rng(1)
    found = other_shapes([{"n": 100}], 6, draw)
    assert all(each["n"] > 100 for each in found[::2])
    assert all(each["n"] < 100 for each in found[1::2])
    assert other_shapes([{}], 2, draw) == []
    assert {each["n"] for each in other_shapes([{"n": 1}], 16, draw)} == {2, 3, 4}


def test_arrays_that_were_given_have_no_other_shapes() -> None:
    assert COMPUTATIONS["gather"].judged("gather").others == ()


def test_what_cannot_be_launched_elsewhere_is_said() -> None:
    args = {"x": "f32[n]", "y": "f32[n]=out", "n": "i32=n"}

    def relu(x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)[:37]

    found = judge(KERNELS.kernel("relu"), relu, args, grid="2", shape={"n": 37}, seed=1, others=1)
    assert found.verdict == "equal"
    (other,) = found.others
    assert other.found == "not tried"
    assert "the shape (37,)" in other.why


@pytest.mark.parametrize("count", [-1, 17, "2"])
def test_bad_counts(count: int) -> None:
    with pytest.raises(CheckError):
        COMPUTATIONS["relu"].judged("relu", others=count)
