"""Instructions on elements: what is the same function, what is not, and what is not known."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.ptx.field.launches import equal

from warploom import ptx
from warploom.ptx.field.equal import Answer

THREADS = 32
TEXT = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 Y) {{
.reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %d<9>; .reg .b16 %h<9>; .reg .pred %p<5>;
ld.param.u64 %d0, [A]; ld.param.u64 %d1, [B]; ld.param.u64 %d2, [Y];
mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4;
add.u64 %d0, %d0, %d3; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d1]; mov.b32 %r1, %f0; mov.b32 %r2, %f1;
{body}
st.global.f32 [%d2], %f9; ret;
}}"""
Reference = Callable[[Any, Any], Any]


def answer(body: str, reference: Reference) -> Answer:
    kernel = ptx.load(TEXT.format(body=body)).kernel("k")
    return equal(kernel, 1, THREADS, [(THREADS,), (THREADS,)], (THREADS,), reference)


SAME: tuple[tuple[str, Reference], ...] = (
    ("add.f32 %f9, %f0, %f1;", lambda a, b: b + a),
    ("sub.f32 %f2, %f0, %f1; mul.f32 %f9, %f2, %f2;", lambda a, b: a * a - 2 * a * b + b * b),
    ("fma.rn.f32 %f9, %f0, %f1, %f0;", lambda a, b: a * (b + 1)),
    ("div.rn.f32 %f2, %f0, %f1; mul.f32 %f9, %f2, %f1;", lambda a, b: a + 0 * b),
    ("rcp.approx.f32 %f2, %f1; mul.f32 %f9, %f2, %f0;", lambda a, b: a / b),
    ("neg.f32 %f9, %f0;", lambda a, b: b - a - b),
    ("ex2.approx.f32 %f2, %f0; ex2.approx.f32 %f3, %f1; mul.f32 %f9, %f2, %f3;",
     lambda a, b: np.exp2(a + b)),
    ("sqrt.rn.f32 %f2, %f0; rsqrt.approx.f32 %f3, %f0; mul.f32 %f9, %f2, %f3;",
     lambda a, b: a / a),
    ("max.f32 %f9, %f0, %f1;", lambda a, b: np.maximum(b, a)),
    ("min.f32 %f9, %f0, 0fFF800000;", lambda a, b: 0 * a + np.float32(-np.inf)),
    ("max.f32 %f9, %f0, 0fFF800000;", lambda a, b: a),
    ("add.f32 %f2, %f0, 0f4B800000; sub.f32 %f9, %f2, 0f4B800000;", lambda a, b: a),
    ("abs.f32 %f9, %f0;", lambda a, b: np.abs(a)),
    # Exponentials of what is not linear.
    ("mul.f32 %f2, %f0, %f1; ex2.approx.f32 %f3, %f2; ex2.approx.f32 %f9, %f3;",
     lambda a, b: np.exp2(np.exp2(a * b))),
    ("div.rn.f32 %f2, %f0, %f1; ex2.approx.f32 %f9, %f2;", lambda a, b: np.exp2(a / b)),
    ("mul.f32 %f2, %f0, %f0; ex2.approx.f32 %f3, %f2; ex2.approx.f32 %f4, %f0;"
     "mul.f32 %f5, %f4, %f4; div.rn.f32 %f9, %f5, %f3;",
     lambda a, b: np.exp2(a + a) / np.exp2(a * a)),
    ("lg2.approx.f32 %f2, %f0; sub.f32 %f9, %f2, %f2;", lambda a, b: 0 * a),
    # Moves: to halves and back, by shuffles, through memory of its own.
    ("cvt.rn.bf16x2.f32 %r3, %f0, %f1; shl.b32 %r4, %r3, 16; mov.b32 %f9, %r4;", lambda a, b: b),
    ("cvt.rn.bf16x2.f32 %r3, %f0, %f1; and.b32 %r4, %r3, -65536; mov.b32 %f9, %r4;",
     lambda a, b: a),
    ("cvt.rn.f16.f32 %h0, %f0; cvt.f32.f16 %f9, %h0;", lambda a, b: a),
    ("prmt.b32 %r3, %r1, %r2, 0x7632; shl.b32 %r4, %r3, 16; mov.b32 %f9, %r4;", lambda a, b: a),
    ("bfe.u32 %r3, %r1, 16, 16; bfi.b32 %r4, %r3, %r2, 16, 16; bfi.b32 %r3, %r1, %r4, 0, 16;"
     "mov.b32 %f9, %r3;", lambda a, b: a),
    ("shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;"
     "mov.b32 %f9, %r4;", lambda a, b: a),
    ("and.b32 %r3, %r0, 1; setp.eq.u32 %p0, %r3, 0; selp.f32 %f9, %f0, %f1, %p0;",
     lambda a, b: np.where(np.arange(THREADS) % 2 == 0, a, b)),
    ("and.b32 %r3, %r0, 1; setp.eq.u32 %p0, %r3, 0; mov.f32 %f9, %f1; @%p0 add.f32 %f9, %f0, %f1;",
     lambda a, b: b + np.where(np.arange(THREADS) % 2 == 0, a, 0.0)),
    ("setp.lt.u32 %p0, %r0, 3; mov.f32 %f9, %f1; @!%p0 bra L; mul.f32 %f9, %f0, %f1; L:",
     lambda a, b: np.where(np.arange(THREADS) < 3, a * b, b)),
    ("cvt.rn.f32.u32 %f2, %r0; mul.f32 %f9, %f2, %f0;", lambda a, b: np.arange(THREADS) * a),
)  # fmt: skip


@pytest.mark.parametrize(("body", "reference"), SAME, ids=range(len(SAME)))
def test_equal(body: str, reference: Reference) -> None:
    found = answer(body, reference)
    assert found.verdict == "equal", found
    assert found.error <= -40


DIFFERENT: tuple[tuple[str, Reference], ...] = (
    ("add.f32 %f9, %f0, %f1;", lambda a, b: a - b),
    ("mul.f32 %f2, %f0, %f0; sqrt.rn.f32 %f9, %f2;", lambda a, b: a),  # |a|
    ("mul.f32 %f9, %f0, 0f3DCCCCCD;", lambda a, b: a * np.float64(0.1000001)),
    ("max.f32 %f9, %f0, %f0;", lambda a, b: np.maximum(a, b)),
    ("ex2.approx.f32 %f9, %f0;", lambda a, b: np.exp(a)),
    ("setp.eq.u32 %p0, %r0, 31; mov.f32 %f9, %f0; @%p0 mul.f32 %f9, %f0, 0f3F800001;",
     lambda a, b: a),
    ("mov.f32 %f9, 0f00000000;", lambda a, b: a),
    ("mul.f32 %f2, %f0, %f0; ex2.approx.f32 %f9, %f2;", lambda a, b: np.exp2(a * b)),
    ("div.rn.f32 %f2, %f0, %f1; ex2.approx.f32 %f9, %f2;", lambda a, b: np.exp2(b / a)),
    ("max.f32 %f2, %f0, %f1; min.f32 %f3, %f0, %f1; sub.f32 %f9, %f2, %f3;",
     lambda a, b: np.abs(a - b)),  # the same over the reals, which is not known of extrema
)  # fmt: skip


@pytest.mark.parametrize(("body", "reference"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_different(body: str, reference: Reference) -> None:
    found = answer(body, reference)
    assert found.verdict == "different", found
    assert any(apart.any() for apart in found.apart)


UNKNOWN: tuple[tuple[str, str], ...] = (
    ("setp.gt.f32 %p0, %f0, %f1; selp.f32 %f9, %f0, %f1, %p0;", "a comparison of floats"),
    ("setp.eq.s32 %p0, %r1, 1065353216; mov.f32 %f9, %f0; @%p0 mov.f32 %f9, 0f40A00000;",
     "setp.eq.s32 of a float's bits"),
    ("and.b32 %r3, %r1, 2147483647; mov.b32 %f9, %r3;", "and.b32 of a float's bits"),
    ("xor.b32 %r3, %r1, -2147483648; mov.b32 %f9, %r3;", "xor.b32 of a float's bits"),
    ("xor.b32 %r3, %r1, %r1; cvt.rn.f32.u32 %f9, %r3;", "xor.b32 of a float's bits"),
    ("shr.u32 %r3, %r1, 31; cvt.rn.f32.u32 %f9, %r3;", "shr.u32 of a float's bits"),
    ("bfi.b32 %r3, %r1, %r2, 8, 16; mov.b32 %f9, %r3;", "bfi.b32 of a float's bits"),
    ("bfe.s32 %r3, %r1, 16, 16; mov.b32 %f9, %r3;", "bfe.s32 of a float's bits"),
    ("add.u32 %r3, %r1, 1; mov.b32 %f9, %r3;", "add.u32 of a float's bits"),
    ("cvt.rzi.s32.f32 %r3, %f0; cvt.rn.f32.s32 %f9, %r3;", "cvt.rzi.s32.f32 of a float's bits"),
    ("and.b32 %r3, %r1, 124; cvt.u64.u32 %d5, %r3; add.u64 %d0, %d0, %d5;"
     "ld.global.f32 %f9, [%d0];", "and.b32 of a float's bits"),
    ("shr.u32 %r3, %r1, 16; cvt.u64.u32 %d5, %r3; ld.param.u64 %d6, [A]; add.u64 %d6, %d6, %d5;"
     "ld.global.f32 %f9, [%d6];", "ld.global.f32 of a float's bits"),
    ("fma.rn.relu.f16 %h0, %h0, %h0, %h0; mov.f32 %f9, %f0;", "fma.rn.relu.f16"),
    # What expf does, without the clamp, with another rounding, and with a step cut short.
    ("fma.rm.f32 %f3, %f0, 0f437C0000, 0f4B400001; mov.b32 %r3, %f3; shl.b32 %r3, %r3, 23;"
     "mov.b32 %f9, %r3;", "shl.b32 of a float's bits"),
    ("fma.rn.sat.f32 %f2, %f0, 0f3BBB989D, 0f3F000000; fma.rn.f32 %f3, %f2, 0f437C0000, 0f4B400001;"
     "mov.b32 %r3, %f3; shl.b32 %r3, %r3, 23; mov.b32 %f9, %r3;", "shl.b32 of a float's bits"),
    ("fma.rn.sat.f32 %f2, %f0, 0f3BBB989D, 0f3F000000; fma.rm.f32 %f3, %f2, 0f437C0000, 0f4B400001;"
     "mov.b32 %r3, %f3; and.b32 %r3, %r3, -65536; shl.b32 %r3, %r3, 23; mov.b32 %f9, %r3;",
     "shl.b32 of a float's bits"),
    ("fma.rn.sat.f32 %f2, %f0, 0f3BBB989D, 0f3F000000; fma.rm.f32 %f3, %f2, 0f437C0000, 0f4B400001;"
     "cvt.rn.bf16.f32 %h0, %f3; mov.f32 %f9, %f0;", "a conversion of an exponent's bits"),
    ("cvt.rn.f16.f32 %h0, %f0; shl.b32 %r3, %r1, 0; cvt.u32.u16 %r4, %h0; shl.b32 %r4, %r4, 16;"
     "mov.b32 %f2, %r4; add.f32 %f9, %f2, %f0;", "a float whose bits were changed"),
    ("popc.b32 %r3, %r1; cvt.rn.f32.u32 %f9, %r3;", "popc.b32 of a float's bits"),
    ("sub.f32 %f2, %f0, %f0; div.rn.f32 %f9, %f1, %f2;", "a division by what is always zero"),
    ("red.global.add.noftz.f16x2 [%d2], %r1; mov.f32 %f9, %f0;", "f16x2 of floats"),
    ("atom.global.add.f32 %f2, [%d2], %f0; mov.f32 %f9, %f2;", "atom.global.add.f32 of floats"),
    ("match.any.sync.b32 %r3, %r1, -1; cvt.rn.f32.u32 %f9, %r3;",
     "match.any.sync.b32 of a float's bits"),
)  # fmt: skip


@pytest.mark.parametrize(("body", "why"), UNKNOWN, ids=range(len(UNKNOWN)))
def test_not_known(body: str, why: str) -> None:
    found = answer(body, lambda a, b: a)
    assert found.verdict == "unknown", found
    assert why in found.why


def random_program(r: Random) -> tuple[str, Reference]:
    """Sums, products and quotients of values so far; and the same in another order in NumPy."""
    lines: list[str] = []
    steps: list[tuple[str, int, int]] = []
    for n in range(2, 9):
        op = r.choice(("add", "sub", "mul", "mul", "div.rn"))
        x, y = r.randrange(n), r.randrange(n)
        op = "mul" if op == "div.rn" and y > 1 else op
        lines.append(f"{op}.f32 %f{n}, %f{x}, %f{y};")
        steps.append((op, x, y))

    def reference(a: Any, b: Any) -> Any:
        values = [a, b]
        for op, x, y in steps:
            u, v = values[x], values[y]
            made = {"add": lambda u, v: v + u, "sub": lambda u, v: -(v - u),
                    "mul": lambda u, v: v * u, "div.rn": lambda u, v: u * (1 / v)}[op]  # fmt: skip
            values.append(made(u, v))
        return values[-1]

    return "".join(lines) + "mov.f32 %f9, %f8;", reference


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_what_they_are_and_nothing_else(seed: int) -> None:
    r = Random(seed)
    body, reference = random_program(r)
    assert answer(body, reference).verdict == "equal"
    assert answer(body, lambda a, b: reference(a, b) + a).verdict == "different"
    assert answer(body, lambda a, b: reference(a, b) * 1.0000001).verdict == "different"
