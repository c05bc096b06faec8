# ruff: noqa: E501 - programs read better with a line each
"""Lanes that store one sum store values that differ where a compiler fused a product into it.

That is no race, and nothing else is forgiven: neither small distances nor other fused products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom import ptx

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 o)
{{ .reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %t, %r<20>; .reg .b64 %rd<10>; .reg .f32 %f<20>; .reg .f64 %d<9>; .shared .align 8 .b8 s[64];
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [o]; mov.u32 %t, %tid.x; and.b32 %r1, %t, 31; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd3, %rd1; mov.u32 %r19, s;
ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd3+128]; setp.eq.u32 %p1, %t, 0;
{body}
ret; }}
"""
PRODUCT = "mul.f32 %f3, %f1, %f2; mov.b32 %r2, %f3; shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1; mov.b32 %f4, %r3;"
FUSED = f"{PRODUCT} fma.rn.f32 %f5, %f1, %f2, %f4;"
REST = "".join(
    f"mov.b32 %r8, %f5; shfl.sync.bfly.b32 %r9, %r8, {step}, 31, -1; mov.b32 %f9, %r9; add.f32 %f5, %f5, %f9;\n"
    for step in (8, 4, 2, 1)
)
STORE = "st.global.f32 [%rd2], %f5;"
DOUBLE = """cvt.f64.f32 %d1, %f1; cvt.f64.f32 %d2, %f2; mul.f64 %d1, %d1, 0d3FB999999999999A; mul.f64 %d3, %d1, %d2; mov.b64 {%r2, %r3}, %d3;
shfl.sync.bfly.b32 %r4, %r2, 16, 31, -1; shfl.sync.bfly.b32 %r5, %r3, 16, 31, -1; mov.b64 %d4, {%r4, %r5}; fma.rn.f64 %d5, %d1, %d2, %d4;"""
LLVM = """cvt.f64.f32 %d1, %f1; cvt.f64.f32 %d2, %f2; mul.f64 %d3, %d1, 0d3FB999999999999A; mul.f64 %d4, %d3, %d2; mov.b64 {%r5, %r2}, %d4; mov.b64 %rd5, %d4; cvt.u32.u64 %r3, %rd5;
shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1; shfl.sync.bfly.b32 %r6, %r2, 16, 31, -1; cvt.u64.u32 %rd6, %r4; cvt.u64.u32 %rd7, %r6; shl.b64 %rd8, %rd7, 32; or.b64 %rd9, %rd6, %rd8; mov.b64 %d6, %rd9; fma.rn.f64 %d7, %d3, %d2, %d6;"""
HALF = """cvt.rn.f16.f32 %h1, %f1; cvt.rn.f16.f32 %h2, %f2; mul.f16 %h3, %h1, %h2; cvt.u32.u16 %r2, %h3;
shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1; cvt.u16.u32 %h4, %r3; fma.rn.f16 %h5, %h1, %h2, %h4;"""
ALL = "and.b32 %r14, %r1, 15; mul.wide.u32 %rd4, %r14, 8; add.u64 %rd4, %rd4, %rd2;"  # a pair of lanes, one place

CASES = {
    "a sum over the warp": (False, f"{FUSED}\n{REST}{STORE}"),
    "into shared memory": (False, f"{FUSED}\n{REST}st.shared.f32 [%r19], %f5;"),
    "what is made of the sum": (False, f"{FUSED}\nabs.f32 %f6, %f5; sqrt.rn.f32 %f7, %f6; rcp.rn.f32 %f8, %f7; {ALL} st.global.f32 [%rd4], %f8;"),
    "factors the other way round": (False, f"{PRODUCT} fma.rn.f32 %f5, %f2, %f1, %f4;\n{REST}{STORE}"),
    "squares": (False, f"{FUSED.replace('%f2', '%f1')}\n{ALL} st.global.f32 [%rd4], %f5;"),
    "doubles, by two shuffles": (False, f"{DOUBLE}\n{ALL} st.global.f64 [%rd4], %d5;"),
    "doubles, as LLVM takes them apart": (False, f"{LLVM}\n{ALL} st.global.f64 [%rd4], %d7;"),
    "halves": (False, f"{HALF}\n{ALL} st.global.b16 [%rd4], %h5;"),
    "each lane its own product": (True, f"{PRODUCT} mov.f32 %f5, %f3; {STORE}"),
    "half of the sum": (True, f"{FUSED} {STORE}"),
    "a little more in each lane": (True, f"{FUSED}\n{REST}cvt.rn.f32.u32 %f6, %r1; fma.rn.f32 %f5, %f6, 0f33000000, %f5; {STORE}"),
    "what rounding left of a product": (True, f"mul.f32 %f3, %f1, %f2; neg.f32 %f4, %f3; fma.rn.f32 %f5, %f1, %f2, %f4; {STORE}"),
    "that, and a sum": (True, f"{FUSED}\n{REST}mul.f32 %f7, %f1, %f2; neg.f32 %f8, %f7; fma.rn.f32 %f6, %f1, %f2, %f8; mul.f32 %f6, %f6, 0f49800000; add.f32 %f5, %f5, %f6; {STORE}"),
    "another product": (True, f"{PRODUCT} fma.rn.f32 %f5, %f1, %f1, %f4;\n{REST}{STORE}"),
    "a product that is not the shuffle's": (True, f"{PRODUCT.replace('mov.b32 %r2, %f3', 'mov.b32 %r2, %f1')} fma.rn.f32 %f5, %f1, %f2, %f4; {ALL} st.global.f32 [%rd4], %f5;"),
    "whole numbers one apart": (True, "st.global.u32 [%rd2], %t;"),
    "a fused sum beside another race": (True, f"{FUSED}\n{REST}{STORE}\nst.global.f32 [%rd2+8], %f1;"),
}  # fmt: skip


def run(body: str, threads: int = 32, seed: int = 3, **options: Any) -> ptx.Report:
    rng = np.random.default_rng(seed)
    kernel = ptx.load(TEXT.format(body=body), "k.ptx").kernel("k")
    given: dict[str, Any] = {"races": "all", "benign": True} | options
    return kernel.launch(
        1, threads, [rng.normal(size=64).astype(np.float32), np.zeros(64, np.float32)], **given
    )


@pytest.mark.sampled(15)
@pytest.mark.parametrize("threads", [32, 128])
@pytest.mark.parametrize("name", CASES)
def test_what_is_told_apart(name: str, threads: int) -> None:
    races, body = CASES[name]
    reports = [run(body, threads, seed) for seed in (3, 4, 5)]
    assert [bool(report.races) for report in reports] == [races] * 3
    if not races:
        assert max(len(report.rounding) for report in reports) == 1
        assert run(body, threads, benign=False).races


def test_the_other_race_is_named_and_the_sum_is_noted() -> None:
    report = run(CASES["a fused sum beside another race"][1])
    assert [race.offset for race in report.races] == [8]
    assert [race.offset for race in report.rounding] == [0]


def test_results_are_those_of_the_fused_sum() -> None:
    """What is looked at once more does not change what is computed."""
    found = []
    for options in ({"races": "all", "benign": True}, {"races": False}):
        rng, out = np.random.default_rng(3), np.zeros(64, np.float32)
        kernel = ptx.load(
            TEXT.format(body=f"{FUSED}\n{REST}@%p1 {STORE}\nst.shared.f32 [%r19], %f5;"), "k.ptx"
        ).kernel("k")
        kernel.launch(1, 32, [rng.normal(size=64).astype(np.float32), out], **options)
        found.append(out[0])
    assert found[0] == found[1] != 0
