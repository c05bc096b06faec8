"""A constant decides where a kernel goes only as its floats have it: what is rounded, or is -0 for
some inputs, is not known by its bits."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.verdict.judged import judge

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {{
  .reg .b32 %t, %r, %w; .reg .b64 %a<4>; .reg .f32 %x, %z, %u; .reg .b16 %h; .reg .pred %q;
  ld.param.u64 %a0, [p]; ld.param.u64 %a1, [q];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %a2, %t, 4, %a0; mad.wide.u32 %a3, %t, 4, %a1;
  ld.global.f32 %x, [%a2];
  {body}
  @%q add.f32 %x, %x, %x;
  st.global.f32 [%a3], %x;
  ret;
}}"""
BITS = "mov.b32 %r, %z; setp.ne.s32 %q, %r, 0;"
NOT_ONE = "setp.neu.f32 %q, %z, 0f3F800000;"
WRONG = {
    "sign of a product with 0": f"mul.f32 %z, %x, 0f00000000; {BITS}",
    "sign of a sum with that": f"fma.rn.f32 %z, %x, 0f00000000, 0f80000000; {BITS}",
    "negated 0": f"mov.f32 %u, 0f00000000; neg.f32 %z, %u; {BITS}",
    "2^24 + 1 - 2^24": "mov.f32 %u, 0f4B800000; add.f32 %z, %u, 0f3F800000; "
    f"sub.f32 %z, %z, %u; {NOT_ONE}",
    "1 + 2^-12 as f16": "mov.f32 %u, 0f3F800800; cvt.rn.f16.f32 %h, %u; cvt.f32.f16 %z, %h; "
    "setp.neu.f32 %q, %z, %u;",
    "1 + 2^-12 as tf32": "mov.f32 %u, 0f3F800800; cvt.rna.tf32.f32 %w, %u; mov.b32 %z, %w; "
    "setp.neu.f32 %q, %z, %u;",
    "subnormal": "mov.f32 %u, 0f00400000; mul.ftz.f32 %z, %u, 0f40000000; "
    "setp.neu.f32 %q, %z, 0f00800000;",
    "pair": "mov.b32 %w, 0x3C000001; add.f16x2 %w, %w, %w; add.f16x2 %r, %w, 0x64006400; "
    "sub.f16x2 %r, %r, 0x64006400; setp.ne.b32 %q, %r, %w;",
}  # fmt: skip
RIGHT = {
    "sum": f"mov.f32 %u, 0f40000000; sub.f32 %z, %u, 0f3F800000; {NOT_ONE}",
    "masked": "add.f32 %z, %x, 0fFF800000; setp.neu.f32 %q, %z, 0fFF800000;",
    "half": "mov.f32 %u, 0f3F000000; cvt.rn.f16.f32 %h, %u; cvt.f32.f16 %z, %h; "
    "setp.neu.f32 %q, %z, %u;",
    "pair": "mov.b32 %w, 0x3C004000; add.f16x2 %r, %w, %w; setp.ne.b32 %q, %r, 0x40004400;",
}


def verdict(body: str) -> str:
    args = {"x": "f32[32]", "y": "f32[32]=out"}
    return judge(TEXT.format(body=body), lambda x: x * 1, args, seed=3, others=0).verdict


@pytest.mark.parametrize("name", WRONG)
def test_what_floats_decide_otherwise_is_not_equal(name: str) -> None:
    assert verdict(WRONG[name]) == "different"


@pytest.mark.parametrize("name", RIGHT)
def test_exact_constants_decide(name: str) -> None:
    assert verdict(RIGHT[name]) == "equal"


def test_bits_of_a_given_constant_are_its_own() -> None:
    """-0 is an element as 0 is, and other bits."""
    load = f"ld.param.u64 %a2, [w]; ld.global.f32 %z, [%a2]; {BITS}"
    text = TEXT.format(body=load).replace("k(.param", "k(.param .u64 w, .param")
    args = {"w": np.full(1, -0.0, np.float32), "x": "f32[32]", "y": "f32[32]=out"}
    assert judge(text, lambda x: x * 1, args, seed=3, others=0).verdict == "different"
    args["w"] = np.zeros(1, np.float32)
    assert judge(text, lambda x: x * 1, args, seed=3, others=0).verdict == "equal"


HALF = "mov.b16 %h, 0x2E66; "  # the f16 next to 0.1


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ("cvt.rn.f16.f32 %h, %x; cvt.f32.f16 %x, %h; mul.f32 %x, %x, 0f3DCCC000;", None),
        (f"{HALF} .reg .b16 %g; cvt.rn.f16.f32 %g, %x; mul.f16 %g, %g, %h; cvt.f32.f16 %x, %g;", 1),
        ("cvt.rn.f16.f32 %h, %x; cvt.f32.f16 %x, %h; mul.f32 %x, %x, 0f3DCCCCCD;", 0),
    ],
    ids=["a single", "f16", "the single next to it"],
)
def test_constants_of_f16_are_those_that_the_kernel_has(body: str, taken: int | None) -> None:
    """A single that is near to 0.1 as an f16 is another constant."""
    text = TEXT.format(body=f"setp.ne.b32 %q, 0, 0; {body}")
    args = {"x": "f32[32]", "y": "f32[32]=out"}
    found = judge(text, lambda x: x * 0.1, args, seed=3, others=0)
    assert (found.verdict == "equal") == (taken is not None)
    if taken is not None:
        near = (np.float32(0.1), np.float16(0.1))[taken]
        assert found.shapes[0].constants == {0.1: float(near)}


def test_the_largest_magnitude_of_three_is_not_the_largest() -> None:
    text = TEXT.format(body="setp.ne.b32 %q, 0, 0; max.abs.f32 %x, %x, %x, %x;")
    text = text.replace("sm_80", "sm_100").replace(".version 8.0", ".version 8.6")
    args = {"x": "f32[32]", "y": "f32[32]=out"}
    assert judge(text, lambda x: x * 1, args, seed=3, others=0).verdict != "equal"


@pytest.mark.parametrize(("number", "verdict"), [(0.1, "equal"), (float(np.float32(0.1)), "other")])
def test_a_double_near_a_single_is_another_constant(number: float, verdict: str) -> None:
    bits = np.float64(number).view(np.uint64)
    body = f"setp.ne.b32 %q, 0, 0; .reg .f64 %d; cvt.f64.f32 %d, %x; mul.f64 %d, %d, 0d{bits:016X};"
    text = TEXT.format(body=body).replace("%tid.x;\n", "%tid.x;\n  mad.wide.u32 %a1, %t, 4, %a1;\n")
    text = text.replace("st.global.f32 [%a3], %x;", "st.global.f64 [%a3], %d;")
    args = {"x": "f32[32]", "y": "f64[32]=out"}
    found = judge(text, lambda x: x * 0.1, args, seed=3, others=0)
    assert (found.verdict == "equal") == (verdict == "equal")
    assert not found.shapes[0].constants
