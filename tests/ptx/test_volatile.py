# ruff: noqa: E501 - programs read better with a line each
"""`volatile` is relaxed in PTX, so that flags and warps that rely on it do not race; taken as weak, as
C++ has it, they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.cli.calls import called

import warploom
from warploom import ptx
from warploom.errors import DeviceError, KernelError
from warploom.without_gpu.fixture import Gpu

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{ .reg .pred %p<4>; .reg .b32 %t, %r<9>; .reg .b64 %rd<4>; .shared .align 4 .b8 s[256];
ld.param.u64 %rd1, [a]; mov.u32 %t, %tid.x; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %t, 4; add.u64 %rd2, %rd2, %rd1; shl.b32 %r2, %t, 2; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;
"""

# One block sets a flag, the other spins on it: no fence, nothing but the flag is shared.
FLAG = """setp.ne.u32 %p1, %r1, 0; @%p1 bra W; st.volatile.global.u32 [%rd1], 1; bra E;
W: ld.volatile.global.u32 %r4, [%rd1]; setp.eq.u32 %p1, %r4, 0; @%p1 bra W; E: ret; }"""
# The same with data behind the flag, for which that was never enough.
DATA = """setp.ne.u32 %p1, %r1, 0; @%p1 bra W; st.global.u32 [%rd1+4], 5; st.volatile.global.u32 [%rd1], 1; bra E;
W: ld.volatile.global.u32 %r4, [%rd1]; setp.eq.u32 %p1, %r4, 0; @%p1 bra W; ld.global.u32 %r5, [%rd1+4]; st.global.u32 [%rd1+8], %r5; E: ret; }"""
# The sum of a warp as it was written before lanes could part.
WARP = """st.volatile.shared.u32 [%r2], %t;
setp.lt.u32 %p1, %t, 16; @!%p1 bra E;
ld.volatile.shared.u32 %r4, [%r2+64]; ld.volatile.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.volatile.shared.u32 [%r2], %r5;
ld.volatile.shared.u32 %r4, [%r2+32]; ld.volatile.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.volatile.shared.u32 [%r2], %r5;
st.global.u32 [%rd2], %r5; E: ret; }"""
# The same with a barrier of the warp between any two steps, and a thread's own place read back.
ORDERED = """st.volatile.shared.u32 [%r2], %t; bar.warp.sync -1;
setp.lt.u32 %p1, %t, 16; @%p1 ld.volatile.shared.u32 %r4, [%r2+64]; bar.warp.sync -1;
@%p1 st.volatile.shared.u32 [%r2], %r4; @%p1 ld.volatile.shared.u32 %r5, [%r2]; @%p1 st.global.u32 [%rd2], %r5; ret; }"""


def run(body: str, **options: Any) -> ptx.Report:
    kernel = ptx.load(HEAD + body, "k.ptx").kernel("k")
    return kernel.launch(2 if "W:" in body else 1, 32 if "W:" not in body else 1,
                         [np.zeros(64, np.uint32)], races="all", **options)  # fmt: skip


@pytest.mark.parametrize("engine", ["numpy", "c"])
@pytest.mark.parametrize(
    ("body", "relaxed", "weak"),
    [(FLAG, False, True), (DATA, True, True), (WARP, False, True), (ORDERED, False, False)],
    ids=["flag", "data", "warp", "ordered"],
)
def test_volatile_as_it_is_asked_for(body: str, relaxed: bool, weak: bool, engine: Any) -> None:
    assert bool(run(body, engine=engine).races) == relaxed
    assert bool(run(body, engine=engine, volatile="weak").races) == weak
    assert bool(run(body, engine=engine, volatile="weak", benign=True).races) == weak


def test_what_else_is_strong_stays_so() -> None:
    for word in ("relaxed.gpu", "mmio.relaxed.sys"):
        body = FLAG.replace("volatile", word)
        assert not run(body, volatile="weak").races


def test_everywhere_it_can_be_said(tmp_path: Any) -> None:
    text = HEAD + WARP
    warploom.emulate(text)[1, 32](np.zeros(64, np.uint32))
    with pytest.raises(KernelError, match="data race"):
        warploom.emulate(text, volatile="weak")[1, 32](np.zeros(64, np.uint32))
    with pytest.raises(pytest.fail.Exception, match="data race"):
        Gpu(volatile="weak").launch(text, (1, 32), np.zeros(64, np.uint32))
    with pytest.raises(DeviceError, match='write "relaxed" or "weak"'):
        run(FLAG, volatile="strong")
    file = tmp_path / "k.ptx"
    file.write_text(text)
    words = ["ptx", "run", str(file), "--block", "32", "--arg", "u32[64]=zeros", "--races"]
    assert called(words).exit_code == 0
    assert called([*words, "--volatile", "weak"]).exit_code == 1
    assert called([*words, "--volatile", "strong"]).exit_code == 2
