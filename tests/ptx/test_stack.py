# ruff: noqa: E501 - programs read better with a line each
"""alloca: bytes that no other variable of the thread has, until a function returns or gives back."""

from __future__ import annotations

import numpy as np
import pytest

from warploom import ptx
from warploom.errors import DeviceError

HEAD = """.version 8.0
.target sm_80
.address_size 64
.func (.param .u32 back) f(.param .u32 n)
{ .reg .b32 %r<9>; .reg .b64 %l<9>; ld.param.u32 %r1, [n]; cvt.u64.u32 %l1, %r1; alloca.u64 %l2, %l1, 32;
st.local.u32 [%l2], %r1; ld.local.u32 %r2, [%l2]; and.b32 %r3, %r2, 0; cvt.u32.u64 %r4, %l2; add.u32 %r4, %r4, %r3;
st.param.u32 [back], %r4; ret; }
"""
KERNEL = """.visible .entry k(.param .u64 out)
{ .reg .pred %p; .reg .b32 %t, %r<20>; .reg .b64 %o, %l<20>; .local .align 8 .b8 own[8];
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 32, %o; setp.lt.u32 %p, %t, 3;
BODY
ret; }
"""


def run(body: str, threads: int = 6) -> np.ndarray:
    out = np.zeros((threads, 8), np.uint32)
    text = HEAD + KERNEL.replace("BODY", body)
    report = ptx.load(text, "k.ptx").kernel("k").launch(1, threads, [out], engine="c")
    assert report.engine == "numpy"
    return out


def test_each_has_its_own_bytes() -> None:
    """Sizes by thread, an alignment, a predicate, and a variable that lies elsewhere."""
    out = run("""
    st.local.u32 [own], 77; mul.lo.u32 %r1, %t, 4; add.u32 %r1, %r1, 4; cvt.u64.u32 %l1, %r1;
    alloca.u64 %l2, %l1; mov.u64 %l3, 9; @%p alloca.u64 %l3, 4, 16; alloca.u64 %l4, 8, 64;
    st.local.u32 [%l2], %t; st.local.u32 [%l4], 5; st.local.u32 [%l4+4], 6; @%p st.local.u32 [%l3], 7;
    ld.local.u32 %r2, [%l2]; ld.local.u32 %r3, [%l4]; ld.local.u32 %r4, [own];
    cvt.u32.u64 %r5, %l2; cvt.u32.u64 %r6, %l3; cvt.u32.u64 %r7, %l4;
    st.global.v4.u32 [%o], {%r2, %r3, %r4, %r5}; st.global.v2.u32 [%o+16], {%r6, %r7};
    """)
    thread = np.arange(6)
    assert out[:, 0].tolist() == thread.tolist()
    assert set(out[:, 1]) == {5}
    assert set(out[:, 2]) == {77}
    assert set(out[:, 3]) == {0}
    second = np.where(thread < 3, 16, 9)
    assert out[:, 4].tolist() == second.tolist()
    assert set(out[:, 5]) == {64}


def test_what_is_given_back_is_taken_again() -> None:
    out = run("""
    alloca.u64 %l1, 8; stacksave.u64 %l2; alloca.u64 %l3, 100; stackrestore.u64 %l2; alloca.u64 %l4, 4;
    cvt.u32.u64 %r1, %l1; cvt.u32.u64 %r2, %l3; cvt.u32.u64 %r3, %l4;
    { .param .u32 back; .param .u32 n; st.param.u32 [n], 40; call (back), f, (n); ld.param.u32 %r4, [back]; }
    alloca.u64 %l5, 4; cvt.u32.u64 %r5, %l5;
    st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4}; st.global.u32 [%o+16], %r5;
    """)
    assert out[:, :5].tolist() == [[0, 8, 8, 32, 16]] * 6


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("alloca.u64 %l1, 1000; alloca.u64 %l1, 32;", "alloca of 32 bytes, 24 of 1024 are left"),
        ("alloca.u64 %l1, -1;", "18446744073709551615 bytes"),
        ("alloca.u64 %l1, 8, 12;", "a power of two"),
        ("stackrestore.u64 64;", "0x40 is no place that stacksave gave"),
        ("alloca.u64 %l1, 8; st.local.u32 [%l1+2000], 1;", "out-of-bounds"),
    ],
)
def test_what_is_refused(body: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        run(body)
