# ruff: noqa: E501 - programs read better with a line each
"""What orders memory and what does not, in kernels of two threads: one writes, one reads."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.narrowed import of

from warploom import ptx
from warploom.errors import DeviceError, Span

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{{ .reg .pred %p<3>; .reg .b32 %t, %r<6>; .reg .b64 %rd<3>; .shared .align 4 .b8 d[8];
mov.u32 %t, %tid.x; mov.u32 %r5, %ctaid.x; ld.param.u64 %rd1, [a]; setp.eq.u32 %p1, %t, {writer}; setp.eq.u32 %p2, %t, {reader};
{body}
ret; }}
"""
WARP, BLOCK = 1, 40  # the reader: in the writer's warp, or in another
WRITE, READ = "@%p1 st.shared.u32 [d], %t;", "@%p2 ld.shared.u32 %r1, [d];"
EITHER = "setp.gt.u32 %p2, %t, 31; @%p2 bra B;\n{first}\nbra E;\nB: {second}\nE:"


def report(body: str, reader: int, threads: int = 64) -> ptx.Report:
    text = TEXT.format(body=body, writer=0, reader=reader)
    kernel = ptx.load(text, "k.ptx").kernel("k")
    return kernel.launch(1, threads, [np.zeros(8, np.uint32)], races="all", check=False)


@pytest.mark.parametrize(
    ("races", "reader", "body"),
    [
        (True, WARP, f"{WRITE}\n{READ}"),
        (False, WARP, f"{WRITE}\nbar.warp.sync -1;\n{READ}"),
        (True, WARP, f"{WRITE}\nand.b32 %r4, %t, 31; setp.ne.u32 %p2, %r4, 1; @%p2 bar.warp.sync 0xfffffffd; setp.eq.u32 %p2, %t, 1;\n{READ}"),
        (True, WARP, f"{WRITE}\nshfl.sync.idx.b32 %r2, %t, 0, 31, -1;\n{READ}"),
        (True, WARP, f"{WRITE}\nvote.sync.ballot.b32 %r2, %p1, -1; match.any.sync.b32 %r2, %t, -1; redux.sync.add.u32 %r2, %t, -1;\n{READ}"),
        (True, WARP, f"{WRITE}\nactivemask.b32 %r2;\n{READ}"),
        (False, WARP, "@%p1 ld.shared.u32 %r1, [d];\nbar.warp.sync -1;\n@%p2 st.shared.u32 [d], %t;"),
        (False, BLOCK, f"{WRITE}\nbar.sync 0;\n{READ}"),
        (False, BLOCK, EITHER.format(first="@%p1 st.shared.u32 [d], %t; bar.arrive 1, 64;", second="bar.sync 1, 64; ld.shared.u32 %r1, [d];")),
        (True, BLOCK, EITHER.format(first="bar.arrive 1, 64; @%p1 st.shared.u32 [d], %t;", second="bar.sync 1, 64; ld.shared.u32 %r1, [d];")),
        (True, BLOCK, f"{WRITE}\nbar.warp.sync -1;\n{READ}"),
        (True, BLOCK, f"{WRITE}\nmembar.cta;\n{READ}"),
        (True, BLOCK, f"{WRITE}\nbar.sync 1, 32;\n{READ}"),  # each warp for itself
        (False, BLOCK, "@%p1 st.volatile.shared.u32 [d], %t;\n@%p2 ld.volatile.shared.u32 %r1, [d];"),
        (False, BLOCK, "@%p1 st.relaxed.cta.shared.u32 [d], %t;\n@%p2 atom.shared.add.u32 %r1, [d], 1;"),
        (True, BLOCK, "@%p1 st.shared.u32 [d], %t;\n@%p2 atom.shared.add.u32 %r1, [d], 1;"),
        (True, BLOCK, "@%p1 atom.shared.add.u32 %r1, [d], 1;\n@%p2 ld.shared.u32 %r1, [d];"),
        (False, BLOCK, "atom.shared.add.u32 %r1, [d], 1;"),
        (True, BLOCK, "st.shared.u32 [d], 1;"),  # all threads, one value
        (False, BLOCK, "@%p1 st.shared.u8 [d+1], %t;\n@%p2 ld.shared.u8 %r1, [d+2];"),
        (True, BLOCK, "@%p1 st.shared.u8 [d+1], %t;\n@%p2 ld.shared.u32 %r1, [d];"),
        (False, BLOCK, "setp.gt.u32 %p2, %t, 32; @%p2 ret;\n@%p1 st.shared.u32 [d], %t;\nbar.sync 0;\nsetp.eq.u32 %p2, %t, 32;\n@%p2 ld.shared.u32 %r1, [d];"),
    ],
)  # fmt: skip
def test_what_orders_memory(races: bool, reader: int, body: str) -> None:
    assert bool(report(body, reader).races) == races


HANDED = """@%p1 st.shared.u32 [d], 7;
SET
@!%p2 bra E;
L: LOOK
setp.eq.u32 %p2, %r1, 0; @%p2 bra L;
AFTER
ld.shared.u32 %r2, [d];
E:"""
LOOK = "ld.acquire.gpu.global.u32 %r1, [%rd1+4];"


@pytest.mark.parametrize(
    ("races", "set_", "look", "after"),
    [
        (False, "@%p1 st.release.gpu.global.v2.u32 [%rd1], {1, 1};", LOOK, ""),
        (False, "membar.gl; @%p1 st.volatile.global.v4.u32 [%rd1], {1, 1, 1, 1};", LOOK, ""),
        (False, "@%p1 st.release.gpu.global.u32 [%rd1+4], 1;", "ld.acquire.gpu.global.v2.u32 {%r3, %r1}, [%rd1];", ""),
        (False, "@%p1 st.release.gpu.global.u32 [%rd1+4], 1;", "ld.volatile.global.v2.u32 {%r3, %r1}, [%rd1];", "membar.gl;"),
        (True, "@%p1 st.relaxed.gpu.global.v2.u32 [%rd1], {1, 1};", LOOK, ""),
        (True, "@%p1 st.release.gpu.global.v2.u32 [%rd1], {1, 1};", LOOK.replace("acquire", "relaxed"), ""),
        (True, "@%p1 st.release.gpu.global.v2.u32 [%rd1+8], {1, 1}; @%p1 st.relaxed.gpu.global.v2.u32 [%rd1], {1, 1};", LOOK, ""),
    ],
)  # fmt: skip
def test_a_vector_releases_and_acquires_by_each_of_its_words(
    races: bool, set_: str, look: str, after: str
) -> None:
    body = HANDED.replace("SET", set_).replace("LOOK", look).replace("AFTER", after)
    assert bool(report(body, BLOCK).races) == races


def test_branches_of_one_warp_meet_at_barriers_of_their_own() -> None:
    """What stands behind the two barriers runs at the same time, though one half goes first."""
    split = "setp.gt.u32 %p2, %t, 15; @%p2 bra B;\n{first}\nbra E;\nB: {second}\nE:"
    before = split.format(
        first="@%p1 st.shared.u32 [d], 1; bar.warp.sync -1;",
        second="bar.warp.sync -1; ld.shared.u32 %r1, [d];",
    )
    after = split.format(
        first="bar.warp.sync -1; @%p1 st.shared.u32 [d], 1;",
        second="bar.warp.sync -1; ld.shared.u32 %r1, [d];",
    )
    assert not report(before, WARP, 32).races
    assert report(after, WARP, 32).races


def test_every_pair_of_instructions_once() -> None:
    body = "st.shared.u32 [d], %t;\nld.shared.u32 %r1, [d];\nmov.u32 %r3, 0;\nL: st.shared.u32 [d+4], %t;\nadd.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra L;"
    found = report(body, WARP).races
    lines = sorted(
        sorted(of(Span, each.label).line for each in (race.first, race.second)) for race in found
    )
    assert lines == [[7, 7], [7, 8], [10, 10]]


def test_races_between_blocks_whichever_run_together() -> None:
    text = TEXT.format(
        body="setp.eq.u32 %p1, %t, 0; @%p1 st.global.u32 [%rd1], %t;", writer=0, reader=1
    )
    kernel = ptx.load(text, "k.ptx").kernel("k")
    for batch_threads in (1, 1 << 14):
        with pytest.raises(
            DeviceError, match=r"an earlier write by block \(\d,0,0\), thread \(0,0,0\)"
        ):
            kernel.launch(3, 64, [np.zeros(8, np.uint32)], races=True, batch_threads=batch_threads)
    kernel.launch(1, 64, [np.zeros(8, np.uint32)], races=True)


def test_a_third_warp_may_do_something_else() -> None:
    """Two warps meet at a barrier of their own while the third is already past the kernel's end."""
    body = "setp.gt.u32 %p2, %t, 63; @%p2 bra E;\n@%p1 st.shared.u32 [d], %t;\nbar.sync 1, 64;\nsetp.eq.u32 %p2, %t, 40; @%p2 ld.shared.u32 %r1, [d];\nE: st.global.u32 [%rd1], 1;"
    text = TEXT.format(
        body=body.replace("[%rd1], 1", "[%rd2], 1").replace(
            "E: ", "E: mad.wide.u32 %rd2, %t, 4, %rd1; "
        ),
        writer=0,
        reader=40,
    )
    out = np.zeros(96, np.uint32)
    result = ptx.load(text).kernel("k").launch(1, 96, [out], races="all")
    assert not result.races
    assert out.all()
