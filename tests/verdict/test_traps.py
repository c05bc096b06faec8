"""What `warploom.judge` must never take for equal: kernels that are made to look so, and references
whose options change what they compute."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import CheckError
from warploom.ptx.field.factors import Endless, Factors
from warploom.verdict.answer import Judged
from warploom.verdict.judged import judge

KERNELS = ptx.load((Path(__file__).parent / "traps.ptx").read_text(), "traps.ptx")
X, Y, ONE = "f32[32]", "f32[32]=out", "f32[1]=out"
SEVEN = np.arange(8) < 7
C = "i32[1]=out:zeros"
Reference = Callable[..., Any]


def judged(name: str, reference: Reference, y: str = Y, **more: str) -> Judged:
    args = {"x": X, **more, "y": y}
    return judge(KERNELS.kernel(name), reference, args, seed=11).shapes[0]


def same(x: Any) -> Any:
    return x


def zeros(x: Any) -> Any:
    return np.zeros(32)


TRAPS: list[tuple[str, Reference, str, str]] = [
    ("high_power", same, Y, "different"),
    ("even", zeros, Y, "different"),
    ("root_squared", same, Y, "different"),
    ("wide", lambda x: np.full(32, 1 << 53), "i64[32]=out", "different"),
    ("nothing_over_nothing", lambda x: np.ones(32), Y, "different"),
    ("no_number", lambda x: np.ones(32), Y, "different"),
    ("all_write", lambda x: np.minimum(x[31:], -1e30), ONE, "unknown"),
    ("underflow", lambda x: x[31:] * 1e-30 * 1e-30, ONE, "different"),
    ("raised", same, Y, "different"),
    ("marked", same, Y, "different"),
    ("signless", lambda x: abs(x), Y, "unknown"),
    ("top_bits", lambda x: np.abs(x).max().reshape(1), "i32[1]=out:zeros", "different"),
    ("chopped", lambda x: np.zeros(32, int), "i32[32]=out", "unknown"),
    ("rare", same, Y, "unknown"),
    ("voted", same, Y, "unknown"),
    ("rare_lane", same, Y, "unknown"),
    ("touched", same, Y, "unknown"),
    ("unread", same, Y, "different"),
    ("own_output", same, Y, "different"),
    ("counting", same, Y, "unknown"),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "reference", "y", "verdict"), TRAPS, ids=[t[0] for t in TRAPS])
def test_traps_are_not_equal(name: str, reference: Reference, y: str, verdict: str) -> None:
    found = judged(name, reference, y)
    assert found.verdict == verdict, found.lines()
    assert found.reasons or found.counterexample


def test_a_write_of_halves_leaves_the_others_unwritten() -> None:
    assert [each.what for each in judged("halves", same).reasons] == ["unwritten"]


def test_what_differs_from_run_to_run_is_not_followed() -> None:
    """The emulator's clock may be even in all draws; a launch at an odd one shows it."""
    assert judged("clocked", same).verdict in ("unknown", "different")


@pytest.mark.parametrize("name", ["first", "chosen"])
def test_who_comes_first_is_not_known(name: str) -> None:
    found = judged(name, lambda x: (np.array([32]), x[:1]), ONE, c=C)
    assert found.verdict == "unknown"
    assert any("who came first" in each.message for each in found.reasons)


def test_rounding_is_not_looked_at() -> None:
    assert judged("cancelled", same).verdict == "equal"


OPTIONS: dict[str, tuple[str, Reference, str]] = {
    "whole": ("copy", lambda x: x.astype(np.int32), Y),
    "nearly 0": ("copy", lambda x: x + 1e-50, Y),
    "too large": ("copy", lambda x: x + 1e50, Y),
    "less one": ("spread", lambda x: x[:8].var(ddof=1).reshape(1), ONE),
    "less one, by NumPy": ("spread", lambda x: np.var(x[:8], ddof=1).reshape(1), ONE),
    "by position": ("spread", lambda x: np.var(x[:8], None, None, None, 1).reshape(1), ONE),
    "some": ("total", lambda x: np.sum(x[:8], where=SEVEN).reshape(1), ONE),
    "some reduced": ("total", lambda x: np.add.reduce(x[:8], where=SEVEN).reshape(1), ONE),
    "from five": ("total", lambda x: np.sum(x[:8], initial=5).reshape(1), ONE),
    "from zero": ("largest", lambda x: x[:8].max(initial=0).reshape(1), ONE),
    "some added": ("twice", lambda x: np.add(x, x, where=np.arange(32) < 7, out=None), Y),
    "of whole numbers": ("total", lambda x: x[:8].sum(dtype=np.int64).reshape(1), ONE),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_numpy_are_not_ignored(option: str) -> None:
    name, reference, y = OPTIONS[option]
    assert judged(name, reference, y).verdict in ("different", "unknown")


@pytest.mark.parametrize(
    ("name", "reference", "y"),
    [
        ("spread", lambda x: x[:8].var().reshape(1), ONE),
        ("total", lambda x: np.cumsum(x)[7:8], ONE),
        ("total", lambda x: np.cumsum(x.reshape(4, 8), axis=1)[0, 7:], ONE),
        ("total", lambda x: np.add.reduce(x[:8]).reshape(1), ONE),
        ("largest", lambda x: np.max(x[:8], keepdims=True), ONE),
        ("twice", lambda x: x * x**0 + x**1, Y),
    ],
)
def test_what_is_followed_of_numpy(name: str, reference: Reference, y: str) -> None:
    found = judged(name, reference, y)
    assert found.verdict == "equal", found.lines()


def test_complex_references_are_refused() -> None:
    with pytest.raises(CheckError, match="complex"):
        judged("copy", lambda x: np.asarray(x) * 1j if isinstance(x, np.ndarray) else x)


def test_factors_are_what_is_common() -> None:
    found = Factors()
    a, b = (np.array([found.number(Fraction(*each))]) for each in ((3, 4), (5, 6)))
    unit, x, y = found.common(a, b)
    assert found.listed[int(unit[0])] == Fraction(1, 12)
    assert (2 ** x[0], 2 ** y[0]) == pytest.approx((9, 10))
    assert found.listed[int(found.product(a, b)[0])] == Fraction(5, 8)
    with pytest.raises(Endless):
        found.number(Fraction(1, 1 << (1 << 15)))


def test_constants_of_coarser_types_are_no_difference() -> None:
    """The maximum is not known to be x, whatever log2(e) is taken for; and no inputs differ."""
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b32 %t; .reg .b64 %a<4>; .reg .f32 %f<3>; .reg .b16 %h;
  ld.param.u64 %a0, [p]; ld.param.u64 %a1, [q];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %a2, %t, 4, %a0; mad.wide.u32 %a3, %t, 4, %a1;
  ld.global.f32 %f0, [%a2];
  cvt.rn.f16.f32 %h, %f0;
  max.f32 %f1, %f0, 0fF149F2CA;
  mul.f32 %f1, %f1, 0f3FB8AA3B;
  ex2.approx.f32 %f2, %f1;
  st.global.f32 [%a3], %f2;
  ret;
}"""
    found = judge(text, lambda x: np.exp(x), {"x": "f32[32]", "y": "f32[32]=out"}, seed=3)
    assert found.verdict == "unknown", found
