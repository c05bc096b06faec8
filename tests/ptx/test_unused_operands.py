"""Operands that a constant says are of no use: nothing depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.errors import UninitialisedError
from warploom.machine.proof import Reach
from warploom.ptx import load

KERNEL = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 out)
{
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 16 .b8 s[256];
ld.param.u64 %rd1, [p];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
cvt.u64.u32 %rd3, %r2;
add.s64 %rd4, %rd2, %rd3;
ld.global.u32 %r3, [%rd1];
MAKE
mov.u32 %r5, s;
add.u32 %r5, %r5, %r4;
st.shared.u32 [%r5], %r1;
st.global.u32 [%rd4], %r4;
ret;
}
"""
UNUSED = (
    "prmt.b32 %r4, %r2, OTHER, 0x3210;", "prmt.b32 %r4, OTHER, %r2, 0x7654;",
    "lop3.b32 %r4, %r2, OTHER, OTHER, 0xF0;", "lop3.b32 %r4, OTHER, %r2, OTHER, 0xCC;",
    "lop3.b32 %r4, OTHER, OTHER, %r2, 0xAA;",
)  # fmt: skip
USED = (
    "prmt.b32 %r4, %r2, OTHER, 0x4210;", "prmt.b32 %r4, OTHER, %r2, 0x3654;",
    "prmt.b32.f4e %r4, %r2, OTHER, 0;", "lop3.b32 %r4, %r2, OTHER, %r2, 0xFC;",
)  # fmt: skip


def run(make: str, other: str, engine: Any = "numpy", **options: Any) -> Any:
    text = KERNEL.replace("MAKE", make.replace("OTHER", other))
    out = np.zeros(64, np.uint32)
    arrays = [np.zeros(1, np.uint32), out]
    report = load(text, "k.ptx").kernel("k").launch(1, 64, arrays, engine=engine, **options)
    assert out.tolist() == list(range(0, 256, 4))
    return report


@pytest.mark.parametrize("make", UNUSED)
def test_an_address_does_not_depend_on_bytes_that_are_not_taken(make: str) -> None:
    proof = run(make, "%r3", races="all", prove=True).proof
    assert proof.reach is Reach.ALL_DATA


@pytest.mark.parametrize("make", USED)
def test_an_address_depends_on_bytes_that_are_taken(make: str) -> None:
    proof = run(make, "%r3", races="all", prove=True).proof
    assert proof.reach is Reach.THIS_DATA


@pytest.mark.parametrize("make", UNUSED)
def test_a_word_of_which_no_byte_is_taken_needs_no_value(make: str) -> None:
    run(make, "%r8")


@pytest.mark.parametrize("make", USED)
def test_a_word_of_which_a_byte_is_taken_needs_a_value(make: str) -> None:
    with pytest.raises(UninitialisedError, match="nobody wrote %r8"):
        run(make, "%r8")


def test_compiled_code_has_the_same_answer() -> None:
    run(UNUSED[0], "%r8", "c")
    with pytest.raises(UninitialisedError):
        run(USED[0], "%r8", "c")
