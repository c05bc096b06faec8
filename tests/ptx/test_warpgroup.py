# ruff: noqa: E501 - programs read better with a line each
"""Registers of a wgmma under way, and what its lanes and warps must agree about."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.test_async import HEAD
from tests.tools import is_here

from warploom import ptx
from warploom.errors import KernelError
from warploom.ptx.emulate.asked import EngineName

ENGINES: tuple[EngineName, ...] = ("numpy", "c") if is_here("c") else ("numpy",)
ZEROS = "".join(f" st.shared.u64 [%r1+{8 * i}], 0;" for i in range(16))
START = (
    f"and.b32 %r1, %t, 127; mul.lo.u32 %r1, %r1, 128; add.u32 %r1, %r1, %s; {ZEROS}\n"
    "fence.proxy.async.shared::cta; bar.sync 0; ld.param.u64 %l1, [p0]; mov.u64 %l2, 0;\n"
    "mul.wide.u32 %l3, %t, 4; add.u64 %l1, %l1, %l3; setp.ne.u32 %p4, 0, 0; setp.eq.u32 %p5, 0, 0;\n"
)
NAME = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
MADE = f"{NAME} {{%f0, %f1, %f2, %f3}}, %l2, %l2, %p4, 1, 1, 0, 0;\n"
OTHER = f"{NAME} {{%f4, %f5, %f6, %f7}}, %l2, %l2, %p4, 1, 1, 0, 0;\n"
ADDED = MADE.replace("%p4", "%p5")
LEFT = f"{NAME} {{%f4, %f5, %f6, %f7}}, {{%r10, %r11, %r12, %r13}}, %l2, %p4, 1, 1, 0;\n"
FILL = "mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;\n"
CLOSE = "wgmma.commit_group.sync.aligned;\n"
WAIT = "wgmma.wait_group.sync.aligned 0;\n"
ALL_BUT_ONE = "wgmma.wait_group.sync.aligned 1;\n"
STORE = "st.global.f32 [%l1], %f0;\n"
STORE_OTHER = STORE.replace("%f0", "%f4")
LAST_WARP = "shr.u32 %r2, %t, 5; setp.eq.u32 %p3, %r2, 3;"

CLEAN = {
    "waited": MADE + CLOSE + WAIT + STORE,
    "another register": MADE + CLOSE + "mov.f32 %f9, 0f40000000;" + WAIT + STORE,
    "the older group": MADE + CLOSE + OTHER + CLOSE + ALL_BUT_ONE + "mov.f32 %f0, 0f00000000;" + WAIT,
    "the left matrix afterwards": FILL + LEFT + CLOSE + WAIT + "mov.u32 %r11, 5;" + STORE_OTHER,
    "the left matrix is read": FILL + LEFT + "add.u32 %r14, %r11, 1;" + CLOSE + WAIT + STORE_OTHER,
    "the same sums": MADE + ADDED + CLOSE + WAIT + STORE,
    "another name": MADE + CLOSE + "mov.f32 %f9, %f0; mov.f32 %f0, %f9;" + WAIT + STORE,
    "nothing depends on it": ADDED + CLOSE + WAIT,
    "thrice": f"mov.u32 %r5, 0;\nL: {MADE}{CLOSE}{WAIT} add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra L; {STORE}",
}  # fmt: skip
FOUND = {
    "a sum": (MADE + CLOSE + "mov.f32 %f0, 0f40000000;" + WAIT + STORE, "mov.f32: writes %f0: wgmma of line 10 has not been waited for"),
    "a sum from memory": (MADE + CLOSE + "ld.global.f32 %f1, [%l1];" + WAIT, "ld.global.f32: writes %f1: wgmma"),
    "the newest group": (MADE + CLOSE + OTHER + CLOSE + ALL_BUT_ONE + "mov.f32 %f4, 0f00000000;" + WAIT, "writes %f4: wgmma"),
    "the left matrix": (FILL + LEFT + CLOSE + "mov.u32 %r11, 5;" + WAIT, "writes %r11: wgmma"),
    "the left matrix by a product": (FILL + LEFT + CLOSE + MADE.replace("%f3", "%r13") + WAIT, "writes %r13: wgmma"),
    "nobody closed the group": (MADE + WAIT + STORE, "%f0 is what is stored.*has not been waited for"),
    "a left matrix under way": (FILL + MADE + CLOSE + "mov.b32 %r10, %f0;" + LEFT + CLOSE + WAIT + STORE_OTHER, "%f4 is what is stored.*wgmma of line 11 has not been waited for"),
    "sums nobody wrote": (ADDED + ADDED + CLOSE + WAIT + STORE, "%f0 is what is stored.*nobody wrote %f0"),
    "a descriptor nobody wrote": (MADE.replace("%l2, %l2", "%l7, %l2"), "%l7 is an address of wgmma.*nobody wrote"),
    "lanes add or not": (ADDED + "setp.eq.u32 %p4, %t, 3;" + CLOSE + WAIT + MADE, "whether to add differs from that of the warp's first lane.*thread .3,0,0."),
    "lanes look elsewhere": ("setp.eq.u32 %p3, %t, 35; @%p3 mov.u64 %l2, 1;" + MADE, "the descriptor differs.*thread .35,0,0."),
    "a warp goes by": (f"{LAST_WARP} @%p3 bra N;\n{MADE}{CLOSE}{WAIT}N: ", "not all four warps of the warpgroup come here"),
    "a warp has ended": (f"{LAST_WARP} @%p3 ret;\n{MADE}{CLOSE}{WAIT}", "not all four warps of the warpgroup come here"),
}  # fmt: skip


def launched(body: str, engine: EngineName, threads: int = 128) -> np.ndarray:
    text = HEAD.format(parameters=".param .u64 p0", body=START + body)
    out = np.full(threads, -1, np.float32)
    ptx.load(text, "k.ptx").kernel("k").launch(1, threads, [out], engine=engine)
    return out


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CLEAN)
def test_no_alarm(name: str) -> None:
    for engine in ENGINES:
        launched(CLEAN[name], engine)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FOUND)
def test_found_by_both(name: str) -> None:
    body, message = FOUND[name]
    for engine in ENGINES:
        with pytest.raises(KernelError, match=message):
            launched(body, engine)


def test_sums_of_warps_that_wait_are_kept() -> None:
    """One warpgroup makes its product while the other stands before its own, of the same sums."""
    start = "".join(f"mov.f32 %f{i}, 0f3F800000;" for i in range(4))
    body = (
        f"{start} shr.u32 %r2, %t, 7; setp.eq.u32 %p3, %r2, 0; @%p3 bra B;\n"
        f"{ADDED}{CLOSE}{WAIT} bra E;\nB: {ADDED}{CLOSE}{WAIT}E: {STORE}"
    )
    for engine in ENGINES:
        assert (launched(body, engine, 256) == 1).all()
