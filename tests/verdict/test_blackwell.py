"""Arithmetic that sm_100 has: pairs of f32 in one register, and extrema of three."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom.verdict.judged import judge

TEXT = """
.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b32 %t; .reg .b64 %a<4>, %x, %y; .reg .f32 %f<6>;
  ld.param.u64 %a0, [p]; ld.param.u64 %a1, [q];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %a2, %t, 8, %a0; mad.wide.u32 %a3, %t, 8, %a1;
  ld.global.b64 %x, [%a2];
  BODY
  st.global.b64 [%a3], %y;
  ret;
}"""
PAIRS = "fma.rn.f32x2 %y, %x, %x, %x;"
THREE = """mov.b64 {%f0, %f1}, %x; add.f32 %f2, %f0, %f1;
  max.f32 %f3, %f0, %f1, %f2; min.f32 %f4, %f2, %f0, %f1; mov.b64 %y, {%f3, %f4};"""


def extrema(x: Any) -> Any:
    a, b = x[:, 0], x[:, 1]
    most = np.maximum(np.maximum(a, b), a + b)
    return np.stack([most, np.minimum(np.minimum(a + b, a), b)], axis=1)


@pytest.mark.parametrize(
    ("body", "reference", "verdict"),
    [
        (PAIRS, lambda x: x * x + x, "equal"),
        (PAIRS, lambda x: x * x[:, ::-1] + x, "different"),
        (PAIRS, lambda x: x[:, ::-1] * x[:, ::-1] + x[:, ::-1], "different"),
        (THREE, extrema, "equal"),
        (THREE, lambda x: extrema(x)[:, ::-1], "different"),
        (THREE, lambda x: np.stack([np.maximum(x[:, 0], x[:, 1])] * 2, axis=1), "different"),
    ],
)
def test_pairs_and_threes(body: str, reference: Callable[..., Any], verdict: str) -> None:
    args = {"x": "f32[32,2]", "y": "f32[32,2]=out"}
    assert judge(TEXT.replace("BODY", body), reference, args, seed=5).verdict == verdict
