"""`warploom.judge`: forty computations, each right, subtly wrong, and made to pass a harness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench.common.verdict.computations import COMPUTATIONS, KERNELS, N
from bench.common.verdict.more_computations import MORE
from bench.common.verdict.replay import shows

from warploom.errors import CheckError, ParseError, WarploomError
from warploom.verdict.judged import judge

# What is not followed yet, by a word of the reason.
ALL = {**COMPUTATIONS, **MORE}
UNKNOWN = {"scatter_add": "who came first"}
# By what these are found; all others have inputs on which the result differs.
FAULTS = {
    "dot_wrong": "race", "transpose_wrong": "race", "scatter_add_wrong": "race",
    "tensor_gamed": "reads output", "scatter_add_gamed": "fault", "heat_gamed": "unwritten",
    "scan_gamed": "writes input", "matvec_gamed": "unwritten",
    "batched_gamed": "reads output",
}  # fmt: skip
QUICK = ("gelu", "adam", "relu", "softmax", "row_sum", "tensor", "gather")
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ALL]
WRONG = [
    pytest.param(name, kind, marks=() if quick else pytest.mark.slow)
    for number, name in enumerate(ALL)
    for kind in ("wrong", "gamed")
    for quick in [f"{name}_{kind}" in FAULTS or number % 5 == 0]
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_right_is_equal(name: str) -> None:
    found = ALL[name].judged(name)
    if name in UNKNOWN:
        assert found.verdict == "unknown"
        assert any(UNKNOWN[name] in each.message for each in found.shapes[0].reasons)
        return
    assert found.verdict == "equal", found
    assert (found.shapes[0].error or 0) <= -40
    assert not found.shapes[0].reasons


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "kind"), WRONG)
def test_what_is_wrong_or_gamed_is_different(name: str, kind: str) -> None:
    full = f"{name}_{kind}"
    found = ALL[name].judged(full)
    assert found.verdict == "different", found
    assert shows(ALL[name], full, found)
    if full in FAULTS:
        assert FAULTS[full] in {each.what for each in found.shapes[0].reasons}
        return
    example = found.counterexample
    assert example is not None
    assert example.kernel != example.reference


def test_what_one_launch_leaves_for_the_next_is_found() -> None:
    found = COMPUTATIONS["rms_norm"].judged("rms_norm_gamed")
    assert found.verdict == "different"
    reasons = [each.message for each in found.shapes[0].reasons]
    assert any("a second launch" in each for each in reasons)


def test_several_shapes_are_judged_and_the_worst_decides() -> None:
    found = COMPUTATIONS["row_sum"].judged("row_sum_gamed", shape={"rows": 2, "n": [32, 40]})
    assert [each.verdict for each in found.shapes] == ["equal", "different"]
    assert found.verdict == "different"
    assert found.record()["shapes"][0]["shape"] == {"rows": 2, "n": 32}


def test_constants_are_taken_for_floats_and_listed() -> None:
    found = COMPUTATIONS["layer_norm"].judged("layer_norm").shapes[0]
    assert found.constants == {1e-5: float(np.float32(1e-5))}


def test_whole_numbers_stay_and_are_named() -> None:
    found = COMPUTATIONS["gather"].judged("gather").shapes[0]
    assert found.fixed == ("at",)


def test_the_limit_of_time_leaves_it_unknown() -> None:
    found = COMPUTATIONS["softmax"].judged("softmax", seconds=0.0)
    assert found.verdict == "unknown"
    assert found.shapes[0].reasons[0].what == "limit"


X, Y = "f32[n]", "f32[n]=out"


@pytest.mark.parametrize(
    ("args", "reference", "said"),
    [
        ({"x": X, "y": Y, "n": "i32"}, lambda x: x, "has no value"),
        ({"x": "g32[n]", "y": Y, "n": "i32=n"}, lambda x: x, "is not an argument"),
        ({"x": "f32[m]", "y": Y, "n": "i32=n"}, lambda x: x, "'m' has no value"),
        ({"x": "f32[0]", "y": Y, "n": "i32=n"}, lambda x: x, "0 elements"),
        ({"x": "i32[n]", "y": Y, "n": "i32=n"}, lambda x: x, "does not say what the array holds"),
        ({"x": X, "y": "f32[n]", "n": "i32=n"}, lambda x: x, "no argument is an output"),
        ({"x": X, "y": Y, "n": "i32=n+1"}, lambda x: x, "they differ"),
        ({"x": X, "y": Y}, lambda x: x, "takes 3 arguments, 2 are given"),
        ({"x": X, "y": Y, "n": "i32=n"}, lambda z: z, "has the parameter 'z'"),
        ({"x": X, "y": Y, "n": "i32=n"}, lambda x: x[1:], "gives 'y' the shape (36,)"),
        ({"x": X, "y": Y, "n": "i32=n"}, lambda x: (x, x), "returns 2 results"),
        ({"x": X, "y": Y, "n": "i32=n"}, lambda x: 1 / 0 * x, "ZeroDivisionError"),
        ({"x": X, "y": Y, "n": "i32=n"}, 5, "is no reference"),
        ([X, Y], lambda x: x, "the arguments are a list"),
        ({1: X, "y": Y}, lambda x: x, "an argument is called 1"),
    ],
)  # fmt: skip
def test_what_is_said_wrongly_is_one_error(
    args: Any, reference: Callable[..., Any], said: str
) -> None:
    with pytest.raises(WarploomError) as caught:
        judge(KERNELS.kernel("relu"), reference, args, grid=2, shape={"n": N})
    assert said in str(caught.value)


@pytest.mark.parametrize("kernel", [None, 5, b"text"])
def test_what_is_no_kernel_is_an_error(kernel: Any) -> None:
    with pytest.raises(CheckError, match="is no kernel"):
        judge(kernel, lambda x: x, {"x": X, "y": Y})


@pytest.mark.parametrize(
    "shape", [{"n": 0}, {"n": []}, {"n": "4"}, {"n": range(1, 100)}, "n=5", {5: 5}]
)
def test_bad_sizes(shape: Any) -> None:
    with pytest.raises((ParseError, CheckError)):
        judge(KERNELS.kernel("relu"), lambda x: x, {"x": X, "y": Y, "n": "i32=n"}, shape=shape)


def test_bad_seeds() -> None:
    with pytest.raises(CheckError):
        COMPUTATIONS["relu"].judged("relu", seed=-1)


def test_a_launch_out_of_bounds_is_different_with_its_line() -> None:
    args = {"x": "f32[n]", "y": "f32[n]=out", "m": "i32=n+1"}
    found = judge(KERNELS.kernel("relu"), lambda x: x, args, grid=2, shape={"n": N})
    assert found.verdict == "different"
    assert "out-of-bounds" in str(found)


def test_a_kernel_that_reads_its_output_is_named_with_what_to_say() -> None:
    args = {"x": "f32[n]", "y": "f32[n]=out", "a": "f32", "n": "i32=n"}
    found = judge(KERNELS.kernel("saxpy"), lambda x, a: a * x, args, grid=2, shape={"n": N})
    (reason,) = found.shapes[0].reasons
    assert reason.what == "reads output"
    assert "it reads its output: ld.global.f32: reads 'y' that was never written" in reason.message
    assert "y=…=inout" in reason.advice
