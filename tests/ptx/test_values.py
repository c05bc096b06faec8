# ruff: noqa: E501 - programs read better with a line each
"""Values at the edges, where the manual and what the assembler makes of an instruction decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from warploom import ptx

TEXT = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %a, %o;
ld.param.u64 %a, [a]; ld.param.u64 %o, [out]; ld.global.b64 %l1, [%a]; ld.global.b64 %l2, [%a+8]; ld.global.b64 %l3, [%a+16]; ld.global.b64 %l4, [%a+24];
cvt.u32.u64 %r1, %l1; cvt.u32.u64 %r2, %l2; cvt.u32.u64 %r3, %l3; cvt.u32.u64 %r4, %l4; cvt.u16.u64 %h1, %l1; cvt.u16.u64 %h2, %l2;
mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.u64 %l0, 0;
{body}
st.global.b64 [%o], %l0; ret; }}
"""
RESULTS = {
    "r": "cvt.u64.u32 %l0, %r0;",
    "h": "cvt.u64.u16 %l0, %h0;",
    "f": "mov.b32 %r0, %f0; cvt.u64.u32 %l0, %r0;",
    "l": "",
}


def value(body: str, *given: int) -> int:
    kind = next(bank for bank in RESULTS if f"%{bank}0" in body)
    text = TEXT.format(body=body + " " + RESULTS[kind])
    sources = np.array([v % (1 << 64) for v in (*given, 0, 0, 0, 0)[:4]], np.uint64)
    out = np.zeros(1, np.uint64)
    ptx.load(text).kernel("k").launch(1, 1, [sources, out])
    return int(out[0])


ONES = {"h": 0xFFFF, "r": 0xFFFFFFFF, "l": (1 << 64) - 1}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("opcode", ["div", "rem"])
def test_by_zero(kind: str, opcode: str) -> None:
    bank = {"16": "h", "32": "r", "64": "l"}[kind[1:]]
    for a in (0, 1, 7, -5):
        assert value(f"{opcode}.{kind} %{bank}0, %{bank}1, %{bank}2;", a, 0) == ONES[bank]
    assert value(f"{opcode}.{kind} %{bank}0, %{bank}1, %{bank}2;", 17, 5) == (
        3 if opcode == "div" else 2
    )


@pytest.mark.parametrize(
    ("body", "given", "want"),
    [
        # The carry of a subtraction is set where nothing is borrowed, whoever reads it.
        ("sub.cc.u32 %r5, %r1, %r2; addc.u32 %r0, 0, 0;", (5, 3), 1),
        ("sub.cc.u32 %r5, %r1, %r2; addc.u32 %r0, 0, 0;", (3, 5), 0),
        ("sub.cc.u32 %r5, %r1, %r2; subc.u32 %r0, 9, 0;", (3, 5), 8),
        ("add.cc.u32 %r5, %r1, %r2; subc.u32 %r0, 9, 0;", (-1, 1), 9),
        ("add.cc.u32 %r5, %r1, %r2; subc.u32 %r0, 9, 0;", (1, 1), 8),
        ("sub.cc.u64 %l5, %l1, %l2; subc.cc.u64 %l5, %l1, %l2; addc.u64 %l0, 0, 0;", (4, 4), 1),
        # Positions and lengths: a byte of them for 32 bits, all of them for 64.
        ("bfe.u32 %r0, %r1, %r2, %r3;", (0xABCD, 0x104, 0x208), 0xBC),
        ("bfe.u64 %l0, %l1, %r2, %r3;", (0xABCD, 4, 8), 0xBC),
        ("bfe.u64 %l0, %l1, %r2, %r3;", (0xABCD, 0x104, 8), 0),
        ("bfe.u64 %l0, %l1, %r2, %r3;", (0xABCD, 4, 0x100), 0xABC),
        ("bfe.s64 %l0, %l1, %r2, %r3;", (-2, 0x140, 8), (1 << 64) - 1),
        ("bfi.b64 %l0, %l1, %l2, %r3, %r4;", (0xFF, 0x1111, 0x100, 8), 0x1111),
        ("bfi.b64 %l0, %l1, %l2, %r3, %r4;", (0xFF, 0x1111, 4, 0x108), 0xFF1),
        ("bfi.b32 %r0, %r1, %r2, %r3, %r4;", (0xFF, 0x1111, 0x104, 0x108), 0x1FF1),
        ("fns.b32 %r0, %r1, %r2, %r3;", (0xF0, 40, -1), 0xFFFFFFFF),
        ("fns.b32 %r0, %r1, %r2, %r3;", (0xF0, 7, -2), 6),
        ("fns.b32 %r0, %r1, %r2, %r3;", (0xF0, 32, 0), 0xFFFFFFFF),
        # Saturated, a NaN of a double is zero; else a half has its sign and upper bits.
        ("mov.b64 %d1, %l1; cvt.rn.sat.f16.f64 %h0, %d1;", (0x7FF8000000000001,), 0),
        ("mov.b64 %d1, %l1; cvt.rp.sat.f16.f64 %h0, %d1;", (0xFFF4000000000000,), 0),
        ("mov.b64 %d1, %l1; cvt.rz.f16.f64 %h0, %d1;", (0xFFF4000000000000,), 0xFF00),
        ("mov.b64 %d1, %l1; cvt.rm.sat.f16.f64 %h0, %d1;", (0x3FF4000000000000,), 0x3C00),
        # 1 / b is flushed where it is subnormal; not by .full.
        ("div.approx.f32 %f0, %f1, %f2;", (0x7F000000, 0x7F000000), 0),
        ("div.approx.ftz.f32 %f0, %f1, %f2;", (0xFF000000, 0x7E800001), 0x80000000),
        ("div.approx.f32 %f0, %f1, %f2;", (0x7F800000, 0x7F000000), 0x7FFFFFFF),
        ("div.approx.f32 %f0, %f1, %f2;", (0x7E800000, 0x7E800000), 0x3F800000),
        ("div.full.f32 %f0, %f1, %f2;", (0x7F000000, 0x7F000000), 0x3F800000),
        ("div.approx.f32 %f0, %f1, %f2;", (0x00400000, 0x00200000), 0x40000000),
        # cvt.pack, two values over what is shifted up.
        ("cvt.pack.sat.u4.s32.b32 %r0, %r1, %r2, %r3;", (20, 3, 0xABC), 0xABCF3),
        ("cvt.pack.sat.s4.s32.b32 %r0, %r1, %r2, %r3;", (-20, 3, 1), 0x183),
        ("cvt.pack.sat.u2.s32.b32 %r0, %r1, %r2, %r3;", (-1, 9, 5), 0x53),
        ("cvt.pack.sat.s2.s32.b32 %r0, %r1, %r2, %r3;", (-9, 9, 0), 0x9),
        # Packed pairs: each half says whether it holds, as 1.0 or as all ones.
        ("set.gt.f16x2.f16x2 %r0, %r1, %r2;", (0x3C004000, 0x40003C00), 0x00003C00),
        ("set.gt.u32.f16x2 %r0, %r1, %r2;", (0x40003C00, 0x3C004000), 0xFFFF0000),
        ("set.nan.bf16x2.bf16x2 %r0, %r1, %r2;", (0x7FC03F80, 0), 0x3F800000),
        ("set.num.s32.bf16x2 %r0, %r1, %r2;", (0x7FC03F80, 0), 0x0000FFFF),
        ("set.gt.u32.f16x2 %r0, %r1, %r2;", (0x00010001, 0), 0xFFFFFFFF),
        ("set.gt.ftz.u32.f16x2 %r0, %r1, %r2;", (0x00010001, 0), 0),
        ("setp.eq.u32 %p1, 1, 2; set.leu.xor.u32.f16x2 %r0, %r1, %r2, %p1;", (0x7E003C00, 0), 0xFFFF0000),
        ("setp.eq.u32 %p1, 1, 1; set.leu.xor.u32.f16x2 %r0, %r1, %r2, %p1;", (0x7E003C00, 0), 0x0000FFFF),
        ("setp.eq.u32 %p1, 1, 2; lop3.or.b32 %r5|%p1, %r1, %r2, %r3, 0x80, %p1; selp.u32 %r0, 1, 0, %p1;", (1, 1, 1), 1),
        ("setp.eq.u32 %p1, 1, 2; lop3.and.b32 %r5|%p1, %r1, %r2, %r3, 0x80, %p1; selp.u32 %r0, 1, 0, %p1;", (1, 1, 1), 0),
    ],
)  # fmt: skip
def test_edges(body: str, given: tuple[int, ...], want: int) -> None:
    assert value(body, *given) == want


@pytest.mark.parametrize("x", [0.0, 1.0, -2.5, 100.0, 1e5, 3e7, 1e20, -4e30, 1e-40])
def test_sine_and_cosine_count_iterations(x: float) -> None:
    """An argument is first multiplied by 1 / 2π in single precision, rounded towards zero."""
    bits = int(np.float32(x).view(np.uint32))
    factor = np.uint32(0x3E22F983).view(np.float32)
    iterations = np.float64(np.float32(x)) * np.float64(factor)
    single = np.float32(iterations)
    if abs(float(single)) > abs(iterations):
        single = np.nextafter(single, np.float32(0))
    part = math.fmod(float(single), 1.0) if abs(float(single)) >= 2.0**-126 else 0.0
    for name, fn in (("sin", math.sin), ("cos", math.cos)):
        got = np.uint32(value(f"{name}.approx.f32 %f0, %f1;", bits)).view(np.float32)
        assert abs(float(got) - fn(2 * math.pi * part)) < 2.0**-20


REDUCED = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{{ .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %l<4>; .reg .pred %p<2>; mov.u32 %r1, %tid.x; ld.param.u64 %l1, [a]; ld.param.u64 %l2, [out];
mul.wide.u32 %l3, %r1, 4; add.s64 %l1, %l1, %l3; add.s64 %l2, %l2, %l3; ld.global.f32 %f1, [%l1];
setp.lt.u32 %p1, %r1, 8; selp.b32 %r2, 0xff, 0xffffff00, %p1; redux.sync.{op}.f32 %f2, %f1, %r2; st.global.f32 [%l2], %f2; ret; }}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "op", ["min", "max", "min.abs", "max.abs", "min.NaN", "max.NaN", "min.abs.NaN", "max.abs.NaN"]
)
def test_reductions_of_singles(op: str) -> None:
    rng = np.random.default_rng(len(op))
    numbers = rng.integers(0, 1 << 32, (40, 32), np.uint32).view(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0], np.float32)
    numbers[:20] = edges[rng.integers(0, 8, (20, 32))]
    numbers[0, :8], numbers[1, :] = np.nan, [0.0, -0.0] * 16
    for row in numbers:
        out = np.zeros(32, np.float32)
        ptx.load(REDUCED.format(op=op)).kernel("k").launch(1, 32, [row.copy(), out])
        for part in (slice(0, 8), slice(8, 32)):
            assert out[part].view(np.uint32).tolist() == [_reduced(op, row[part])] * out[part].size


def _reduced(op: str, given: np.ndarray) -> int:
    values = [abs(float(x)) if "abs" in op else float(x) for x in given]
    numbers = [x for x in values if not math.isnan(x)]
    if not numbers or ("NaN" in op and len(numbers) < len(values)):
        return 0x7FFFFFFF
    pick = min if op.startswith("min") else max
    found = pick(numbers, key=lambda x: (x, math.copysign(1, x)))
    return int(np.float32(found).view(np.uint32))
