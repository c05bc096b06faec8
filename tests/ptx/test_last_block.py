"""The last block adds up what all left: each thread fences, they meet, and one of them counts."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.machine.report import Report
from warploom.ptx import load
from warploom.ptx.emulate.asked import Model

BLOCKS, THREADS = 4, 64
KERNEL = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 count, .param .u64 out)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
.shared .align 4 .b32 last;
ld.param.u64 %rd1, [data];
cvta.to.global.u64 %rd1, %rd1;
ld.param.u64 %rd2, [count];
cvta.to.global.u64 %rd2, %rd2;
ld.param.u64 %rd5, [out];
cvta.to.global.u64 %rd5, %rd5;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r4, %r1, %r3, %r2;
mul.wide.u32 %rd3, %r4, 4;
add.s64 %rd3, %rd1, %rd3;
st.global.u32 [%rd3], %r4;
FIRST
MEET
setp.ne.u32 %p1, %r2, 0;
@%p1 bra COUNTED;
atom.global.add.u32 %r6, [%rd2], 1;
mov.u32 %r7, %nctaid.x;
sub.u32 %r7, %r7, 1;
setp.eq.u32 %p2, %r6, %r7;
selp.u32 %r8, 1, 0, %p2;
st.shared.u32 [last], %r8;
COUNTED:
bar.sync 0;
ld.shared.u32 %r9, [last];
setp.eq.u32 %p3, %r9, 0;
@%p3 bra DONE;
SECOND
mov.u32 %r10, 0;
mov.u32 %r11, 0;
mul.wide.u32 %rd4, %r2, 4;
add.s64 %rd6, %rd5, %rd4;
add.s64 %rd4, %rd1, %rd4;
mul.wide.u32 %rd7, %r3, 4;
SUM:
ld.global.u32 %r13, [%rd4];
add.u32 %r10, %r10, %r13;
add.s64 %rd4, %rd4, %rd7;
add.u32 %r11, %r11, 1;
setp.lt.u32 %p4, %r11, %nctaid.x;
@%p4 bra SUM;
st.global.u32 [%rd6], %r10;
DONE:
ret;
}
"""
GPU = "membar.gl;"


def run(first: str, second: str, model: Model = "practice", meet: str = "bar.sync 0;") -> Report:
    text = KERNEL.replace("FIRST", first).replace("SECOND", second).replace("MEET", meet)
    out = np.zeros(THREADS, np.uint32)
    args = [np.zeros(BLOCKS * THREADS, np.uint32), np.zeros(1, np.uint32), out]
    kernel = load(text, "k.ptx").kernel("k")
    report = kernel.launch(BLOCKS, THREADS, args, races="all", model=model)
    expected = np.arange(BLOCKS * THREADS).reshape(BLOCKS, THREADS).sum(0)
    assert np.array_equal(out, expected)
    return report


@pytest.mark.parametrize("fence", [GPU, "fence.sc.gpu;", "fence.acq_rel.gpu;"])
def test_fences_of_all_who_wrote_and_of_all_who_read_are_enough(fence: str) -> None:
    assert run(fence, fence).races == []


@pytest.mark.parametrize(
    ("first", "second"), [("", GPU), (GPU, ""), ("membar.cta;", GPU), (GPU, "membar.cta;")]
)
@pytest.mark.parametrize("model", ["practice", "ptx"])
def test_each_of_them_is_needed(first: str, second: str, model: Model) -> None:
    assert run(first, second, model).races


def test_so_is_the_barrier_between_the_fences_and_the_count() -> None:
    assert run(GPU, GPU, meet="").races


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        (GPU, GPU, True), ("fence.sc.gpu;", "fence.sc.gpu;", True),
        ("fence.acq_rel.gpu;", GPU, False), (GPU, "fence.acq_rel.gpu;", False),
    ],
)  # fmt: skip
def test_by_the_manual_only_fences_that_are_sc_have_an_order(
    first: str, second: str, *, right: bool
) -> None:
    """A pattern of release or acquire is of one thread."""
    assert (run(first, second, "ptx").races == []) is right
