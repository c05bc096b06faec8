"""What products of warpgroups depend on: their factors, their sums, and whether these are kept."""

from __future__ import annotations

import pytest
from tests.ptx.test_prove_ends import proved

from warploom.machine.proof import Reach

SUMS = ", ".join(f"%f{number}" for number in range(4))
PRODUCT = f"""
.reg .f32 %f<9>;
shl.b32 %r8, %r1, 2;
add.u32 %r9, %r8, %r5;
st.shared.u32 [%r9], 0;
fence.proxy.async;
bar.sync 0;
shr.u32 %r8, %r5, 4;
cvt.u64.u32 %rd3, %r8;
or.b64 %rd3, %rd3, 0x0000000800080000;
mov.u32 %r10, 0;
mov.f32 %f0, 0f00000000;
mov.f32 %f1, %f0;
mov.f32 %f2, %f0;
mov.f32 %f3, %f0;
GIVEN
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{SUMS}}}, {{%r10, %r10, %r10, %r10}}, %rd3, %p3, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
USED
"""  # noqa: E501 - an instruction
KEPT = "setp.eq.u32 %p3, %r1, 999;\n"
BRANCH = "setp.gt.f32 %p4, %f0, 0f00000000;\n@%p4 bra ON;\nON:\n"
NUMBER = "cvt.rn.f32.u32 %f0, %r11;\n"


@pytest.mark.parametrize(
    ("given", "used", "reach"),
    [
        (KEPT, "", Reach.ALL_DATA), (KEPT, BRANCH, Reach.THIS_DATA),
        (f"mov.u32 %r11, %clock;\n{KEPT}{NUMBER}", "", Reach.ALL_DATA),
        (f"mov.u32 %r11, %clock;\n{KEPT}{NUMBER}", BRANCH, Reach.THIS_SCHEDULE),
        ("mov.u32 %r11, %clock;\nsetp.eq.u32 %p3, %r11, 999;", BRANCH, Reach.THIS_SCHEDULE),
        (f"mov.u32 %r10, %smid;\n{KEPT}", BRANCH, Reach.THIS_SCHEDULE),
        ("ld.global.u32 %r11, [%rd1];\nsetp.eq.u32 %p3, %r11, 0;", "", Reach.ALL_DATA),
        ("ld.global.u32 %r11, [%rd1];\nsetp.eq.u32 %p3, %r11, 0;", BRANCH, Reach.THIS_DATA),
    ],
)  # fmt: skip
def test_what_a_product_depends_on(given: str, used: str, reach: Reach) -> None:
    body = PRODUCT.replace("GIVEN", given).replace("USED", used)
    assert proved(body, threads=128).reach is reach


@pytest.mark.parametrize("value", ["%clock", "7"])
def test_a_product_depends_on_what_lies_in_shared_memory(value: str) -> None:
    body = PRODUCT.replace("GIVEN", KEPT).replace("USED", BRANCH)
    body = body.replace(
        "st.shared.u32 [%r9], 0;", f"mov.u32 %r11, {value};\nst.shared.u32 [%r9], %r11;"
    )
    reach = Reach.THIS_DATA if value.isdigit() else Reach.THIS_SCHEDULE
    assert proved(body, threads=128).reach is reach
