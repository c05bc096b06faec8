"""What is said of a launch is refused where it is not understood, with one error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from warploom.errors import DeviceError
from warploom.ptx import load

KERNEL = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
BODY
st.global.u32 [%rd3], %r1;
ret;
}
"""


def launch(args: Any = None, body: str = "", **options: Any) -> Any:
    kernel = load(KERNEL.replace("BODY", body), "k.ptx").kernel("k")
    return kernel.launch(2, 64, [np.zeros(64, np.uint32), 1] if args is None else args, **options)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("schedule", "0:99@0", "no warp 99; a block has 2"),
        ("schedule", "0:0@0,99:0@0", "no block 99; the grid has 2"),
        ("batch_threads", 0, "a batch of 0 threads"), ("batch_threads", "x", "a batch of 'x'"),
        ("batch_threads", 1.5, "a batch of 1.5"), ("counters", "x", "counters='x'"),
        ("check", None, "check=None"), ("benign", 2, "benign=2"), ("prove", "x", "prove='x'"),
        ("dependents", 1, "dependents=1"), ("machine", "h200", "machine='h200'"),
    ],
)  # fmt: skip
def test_options_that_mean_nothing(option: str, value: Any, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        launch(**{option: value})


@pytest.mark.parametrize("schedule", ["0:1@0", "1:0@3", ""])
def test_schedules_of_warps_that_are_there(schedule: str) -> None:
    assert launch(schedule=schedule).threads == 64


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (5, "arguments are a int"), ("xy", "arguments are a str"),
        ({}, "arguments are a dict"), (np.zeros(2), "arguments are a ndarray"),
        ([np.array([1, "a"], object), 1], "holds objects of Python"),
        ([np.zeros(64, ">i4"), 1], "of another byte order"),
        ([np.zeros(64, [("a", ">i4")]), 1], "of another byte order"),
    ],
)  # fmt: skip
def test_arguments_that_no_kernel_can_take(args: Any, said: str) -> None:
    with pytest.raises(DeviceError, match=said) as caught:
        launch(args)
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__


def test_arguments_that_are_nothing() -> None:
    kernel = load(KERNEL.replace("BODY", ""), "k.ptx").kernel("k")
    nothing: Any = None
    with pytest.raises(DeviceError, match="arguments are a NoneType"):
        kernel.launch(1, 32, nothing)


@pytest.mark.parametrize(
    "body",
    [
        "mov.b32 %r2, 1e300;", ".reg .f32 %f1;\nmov.f32 %f1, 0f7F800001;",
        ".reg .f64 %d1;\nmov.f64 %d1, 0f7F800001;", ".reg .f32 %f1;\nmov.f32 %f1, 1e300;",
    ],
)  # fmt: skip
def test_constants_beyond_their_type_warn_of_nothing(body: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert launch(body=body).threads == 64
