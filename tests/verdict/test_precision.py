"""The precision contract: accumulators and roundings, hard inputs, and limits as verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.verdict.computations import COMPUTATIONS
from bench.common.verdict.precise import COUNTED, KERNELS, NARROWED
from bench.common.verdict.triton_computations import written

from warploom import ptx
from warploom.errors import WarploomError
from warploom.verdict.judged import judge
from warploom.verdict.precision import distance

QUICK = ("row_sum", "dot", "taps", "tensor", "lost")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in COUNTED]
)
def test_roundings_are_as_counted_by_hand(name: str) -> None:
    found = COUNTED[name].judged(name)
    assert found.verdict == "equal"
    (seen,) = found.shapes[0].precision
    assert seen.roundings == COUNTED[name].roundings
    assert set(seen.accumulators or ()) <= {"f32"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NARROWED]
)
def test_sums_in_bf16_are_named_at_their_line(name: str) -> None:
    found = COUNTED[name].judged(f"{name}_bf16", accumulate="float32")
    assert found.verdict == "different"
    (reason,) = found.shapes[0].reasons
    assert reason.what == "accumulator"
    assert "held in bf16" in reason.message
    assert reason.span is not None
    assert "bf16" in (found.shapes[0].precision[0].accumulators or ())
    # Without a limit it is said, and equal.
    assert COUNTED[name].judged(f"{name}_bf16").verdict == "equal"


def test_a_result_in_bf16_is_no_accumulator() -> None:
    found = COUNTED["horner"].judged("horner", accumulate="float32")
    assert found.verdict == "equal"
    assert found.shapes[0].precision[0].accumulators == ()


def test_what_cancels_is_beyond_a_limit_with_inputs_that_show_it() -> None:
    found = COUNTED["lost"].judged("lost", ulps=4)
    assert found.verdict == "different"
    seen = found.shapes[0].precision[0]
    assert seen.cancelled > 20
    assert (seen.ulps or 0) > 1e6
    example = found.counterexample
    assert example is not None
    x, y = example.arrays["x"], np.zeros(32, np.float32)
    KERNELS.kernel("lost").launch(1, 32, [x, y])
    assert y[example.index] == example.kernel != example.reference


def test_a_limit_that_is_kept_is_equal() -> None:
    found = COMPUTATIONS["saxpy"].judged("saxpy", ulps=0.5, accumulate="f64")
    assert found.verdict == "equal", found
    assert found.shapes[0].precision[0].ulps == pytest.approx(0.5, abs=0.02)


def test_f32_is_not_as_wide_as_f64() -> None:
    found = COUNTED["dot"].judged("dot", accumulate="float64")
    assert found.verdict == "different"


def test_what_a_maximum_makes_of_nan_is_said() -> None:
    found = COMPUTATIONS["relu"].judged("relu", precision=True)
    (seen,) = found.shapes[0].precision
    assert any("NaN" in each and "finite" in each for each in seen.special)
    assert "37 results" in str(found)


def test_what_is_not_followed_has_distances_alone() -> None:
    found = written("softplus").judged("softplus", precision=True)
    assert found.verdict == "unknown"
    (seen,) = found.shapes[0].precision
    assert seen.accumulators is None
    assert seen.record()["roundings"] is None
    assert seen.ulps is not None


@pytest.mark.parametrize(
    ("limits", "said"),
    [({"accumulate": "float33"}, "held in 'float33'"), ({"ulps": -1}, "-1 ulps"),
     ({"ulps": float("nan")}, "nan ulps")],
)  # fmt: skip
def test_bad_limits(limits: Any, said: str) -> None:
    with pytest.raises(WarploomError) as caught:
        COMPUTATIONS["relu"].judged("relu", **limits)
    assert said in str(caught.value)


def test_distances_are_in_units_in_the_last_place() -> None:
    wanted = np.array([1.0, 1.0, 4.0, 0.0, 1e39, 1.0])
    found = np.array([1 + 2.0**-23, 1.0, 4 + 2.0**-21, 2.0**-126, np.inf, np.nan])
    none = np.zeros(6)
    far = distance(found, wanted, none, none, "f32")
    assert far[:4].tolist() == [1, 0, 1, 1]
    assert np.isnan(far[4])
    assert far[5] == np.inf
    # As far as the inputs move it is one unit.
    moved = np.full(6, 0.5)
    assert distance(np.array([1.5] * 6), np.ones(6), moved, none, "f32").tolist() == [1] * 6
    # Where the reference is not known so well, nothing is.
    assert np.isnan(distance(found, wanted, none, np.full(6, 1.0), "f32")).all()


WIDENED = """
.version 7.8
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 p, .param .u64 q) {
  .reg .b32 %r1; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 8;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+4];
  {BODY}
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f1;
  ret;
}"""


@pytest.mark.parametrize(
    ("body", "factor", "roundings", "accumulators"),
    [
        ("add.f32 %f1, %f1, %f2;", 1, 1, ()),
        ("add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f2; sub.f32 %f1, %f1, %f2;", 1, 3, ("f32",)),
        ("add.f32 %f1, %f1, %f2; mul.f32 %f1, %f1, 0f40800000;", 4, 1, ()),
        ("add.f32 %f1, %f1, %f2; mul.f32 %f1, %f1, 0f40400000;", 3, 2, ()),
        ("cvt.f64.f32 %d1, %f1; cvt.f64.f32 %d2, %f2; add.f64 %d1, %d1, %d2; "
         "add.f64 %d1, %d1, %d2; sub.f64 %d1, %d1, %d2; cvt.rn.f32.f64 %f1, %d1;", 1, 4, ("f64",)),
        ("fma.rn.f32 %f1, %f1, 0f40000000, 0f00000000; fma.rn.f32 %f1, %f2, 0f40000000, %f1;",
         2, 1, ()),
        ("add.f32 %f1, %f1, %f2; neg.f32 %f1, %f1; neg.f32 %f1, %f1; abs.f32 %f3, %f1; "
         "max.f32 %f3, %f3, %f1;", 1, 1, ()),
    ],
)  # fmt: skip
def test_what_is_exact_is_no_rounding(
    body: str, factor: float, roundings: int, accumulators: tuple[str, ...]
) -> None:
    kernel = ptx.load(WIDENED.replace("{BODY}", body), "sums.ptx").kernel("sums")
    args = {"x": "f32[32,2]", "y": "f32[32]=out"}
    found = judge(kernel, lambda x: factor * x.sum(axis=1), args)
    assert found.verdict == "equal", found
    (seen,) = found.shapes[0].precision
    assert (seen.roundings, seen.accumulators) == (roundings, accumulators)


@pytest.mark.parametrize("way", ["cut", "half", "scaled", "moved", "divided"])
def test_sums_are_held_as_narrowly_after_what_only_scales_or_moves_them(way: str) -> None:
    args = {"x": "f32[32,8]", "y": "f32[32]=out"}
    found = judge(
        KERNELS.kernel(f"hidden_{way}"), lambda x: x.sum(1), args, seed=5, others=0,
        accumulate="float32",
    )  # fmt: skip
    (reason,) = found.shapes[0].reasons
    assert "held in bf16" in reason.message


def test_a_lower_half_that_is_cut_off_is_a_rounding() -> None:
    args = {"x": "f32[64]", "y": "bf16[32]=out"}
    kernel = KERNELS.kernel("cut_at_its_end")
    found = judge(kernel, lambda x: x[:32] + x[32:], args, seed=5, others=0)
    assert found.verdict == "equal"
    assert found.shapes[0].precision[0].roundings == 2
