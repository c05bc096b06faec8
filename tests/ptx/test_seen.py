# ruff: noqa: E501 - tables read better with a line each
"""Values that an H200 gave where the manual leaves them open: NaNs, and what `.ftz` flushes."""

from __future__ import annotations

import numpy as np
import pytest

from warploom import ptx

TEXT = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{ .reg .b16 %h<3>; .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .f64 %d<3>; .reg .b64 %p, %q; .shared .align 4 .b8 s[4];
ld.param.u64 %p, [out]; ld.param.u64 %q, [in]; ld.global.f64 %d1, [%q]; ld.global.f32 %f1, [%q]; ld.global.b32 %r1, [%q];
{body}
ret; }}
"""
DOUBLE, SINGLE = 0x7FF8000000000001, 0x7FC00001
SEEN = [
    ("abs.bf16x2 %r0, %r1;", "%r0", SINGLE, 0x7FFF0001),
    ("cvt.f32.f32 %f0, %f1;", "%f0", SINGLE, SINGLE),
    ("cvt.ftz.f32.f32 %f0, %f1;", "%f0", SINGLE, 0x7FFFFFFF),
    ("cvt.rm.ftz.f16.f32 %h0, %f1;", "%h0", 0x80000001, 0x8001),
    ("cvt.rn.ftz.f16.f32 %h0, %f1;", "%h0", 0x80000001, 0x8000),
    ("cvt.rp.ftz.f16.f32 %h0, %f1;", "%h0", 0x1, 0x1),
    ("cvt.rp.ftz.sat.f16.f32 %h0, %f1;", "%h0", 0x1, 0x1),
    *((f"cvt.{mode}.f16.f64 %h0, %d1;", "%h0", DOUBLE, 0x7E00) for mode in ("rn", "rz", "rm", "rp")),
    *((f"cvt.{mode}.sat.f16.f64 %h0, %d1;", "%h0", DOUBLE, 0) for mode in ("rn", "rz", "rm", "rp")),
    *((f"cvt.{mode}.bf16.f64 %h0, %d1;", "%h0", DOUBLE, 0x7FC0) for mode in ("rn", "rz", "rm", "rp")),
    *((f"cvt.{mode}.tf32.f32 %r0, %f1;", "%r0", SINGLE, 0x7FFFE000) for mode in ("rn", "rz", "rn.relu", "rz.relu")),
    ("cvt.rna.tf32.f32 %r0, %f1;", "%r0", SINGLE, 0x7FC00000),
    ("mov.f32 %f0, %f1; st.global.f32 [%p], %f1; red.global.add.f32 [%p], %f1; ld.volatile.global.f32 %f0, [%p];", "%f0", SINGLE, 0x7FFFFFFF),
    ("st.shared.f32 [s], %f1; atom.shared.add.f32 %f2, [s], %f1; ld.shared.f32 %f0, [s];", "%f0", SINGLE, 0x7FFFFFFF),
]  # fmt: skip


@pytest.mark.parametrize(("body", "register", "given", "seen"), SEEN)
def test_what_the_hardware_gave(body: str, register: str, given: int, seen: int) -> None:
    size = 16 if register.startswith("%h") else 32
    out, source = np.zeros(1, f"u{size // 8}"), np.array([given], np.uint64)
    if "global" in body:
        out = np.zeros(1, np.uint32)
    text = TEXT.format(body=f"{body}\nst.global.b{size} [%p], {register};")
    ptx.load(text, "k.ptx").kernel("k").launch(1, 1, [out, source])
    assert hex(int(out[0])) == hex(seen)
