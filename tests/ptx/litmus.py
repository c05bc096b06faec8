# ruff: noqa: E501 - programs read better with a line each
"""Small kernels with a verdict on the order of memory: two threads, data D, a flag F.

`W` the threads are of one warp, `B` of one block, `G` of two blocks. D lies at byte 0 and F at byte 64, in
shared memory or in the argument. `races` names what races.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom import ptx

FLAG = 64
TEXT = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a)
{{ .reg .pred %p<6>; .reg .b32 %t, %c, %v, %w, %r<6>; .reg .b64 %D, %F, %x<6>; .shared .align 128 .b8 s[512];
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; ld.param.u64 %D, [a]; cvta.to.global.u64 %D, %D;
{base}
add.u64 %F, %D, 64; mov.u32 %v, 7; mov.u32 %w, 0;
setp.eq.u32 %p1, %t, {first}; setp.eq.u32 %p2, %c, 0; and.pred %p1, %p1, %p2;
setp.eq.u32 %p2, %t, {second}; setp.eq.u32 %p3, %c, {block}; and.pred %p2, %p2, %p3;
{body}
E: ret; }}
"""
ROLES = "@%p1 bra A; @%p2 bra B; {rest}\nbra E;\nA: {one}\nbra E;\nB: {two}\nbra E;"
SPIN = "L{n}: ld.{how} %r1, [%F]; setp.ne.u32 %p4, %r1, 1; @%p4 bra L{n};"


@dataclass(frozen=True)
class Litmus:
    number: int
    where: str  # W, B, G
    space: str
    body: str
    races: frozenset[str]
    why: str

    @property
    def text(self) -> str:
        second = {"W": 1, "B": 40, "G": 0}[self.where]
        base = "mov.u64 %D, s;" if self.space == "shared" else ""
        return TEXT.format(
            base=base, first=0, second=second, block=int(self.where == "G"),
            body=self.body.replace("SP", self.space),
        )  # fmt: skip

    def found(self, **options: Any) -> set[str]:
        kernel = ptx.load(self.text, f"litmus{self.number}.ptx").kernel("k")
        blocks = 2 if self.where == "G" else 1
        report = kernel.launch(
            blocks, 64, [np.zeros(64, np.uint64)], races="all", check=False, **options
        )
        return {"D" if race.offset < FLAG else "F" for race in report.races}


def roles(one: str, two: str, rest: str = "") -> str:
    """Each thread has a text of its own."""
    return ROLES.format(one=one, two=two, rest=rest)


def in_line(one: str, between: str, two: str) -> str:
    return f"@%p1 {one}\n{between}\n@%p2 {two}"


def spin(how: str) -> str:
    return SPIN.format(how=how, n=0)


ST, LD = "st.SP.u32 [%D], %v;", "ld.SP.u32 %r2, [%D];"
_FLAGGED = [
    # number, where, space, T1's signal, T2's wait, races, why
    (14, "B", "shared", "fence.acq_rel.cta; st.volatile.SP.u32 [%F], 1;", spin("volatile.SP.u32") + "fence.acq_rel.cta;", "", "fences around a volatile flag"),
    (15, "B", "shared", "st.volatile.SP.u32 [%F], 1;", spin("volatile.SP.u32"), "D", "volatile is relaxed"),
    (16, "B", "shared", "st.SP.u32 [%F], 1;", spin("SP.u32"), "DF", "weak accesses"),
    (17, "G", "global", "st.release.gpu.SP.u32 [%F], 1;", spin("acquire.gpu.SP.u32"), "", "release and acquire"),
    (18, "G", "global", "st.release.cta.SP.u32 [%F], 1;", spin("acquire.gpu.SP.u32"), "DF", "the scope of a block excludes the other"),
    (19, "B", "global", "st.release.cta.SP.u32 [%F], 1;", spin("acquire.cta.SP.u32"), "", "one block"),
    (20, "G", "global", "fence.acq_rel.gpu; st.relaxed.gpu.SP.u32 [%F], 1;", spin("relaxed.gpu.SP.u32") + "fence.acq_rel.gpu;", "", "fences"),
    (21, "G", "global", "fence.acq_rel.cta; st.relaxed.gpu.SP.u32 [%F], 1;", spin("relaxed.gpu.SP.u32") + "fence.acq_rel.gpu;", "D", "the fence's scope is too small"),
    (22, "G", "global", "fence.acq_rel.gpu; st.SP.u32 [%F], 1;", spin("relaxed.gpu.SP.u32") + "fence.acq_rel.gpu;", "DF", "a weak write"),
    (23, "G", "global", "st.release.gpu.SP.u32 [%F], 1;", spin("relaxed.gpu.SP.u32"), "D", "no acquire"),
    (24, "G", "global", "atom.SP.add.u32 %r3, [%F], 1;", "L0: atom.SP.add.u32 %r1, [%F], 0; setp.ne.u32 %p4, %r1, 1; @%p4 bra L0;", "D", "atomics alone order nothing"),
    (25, "G", "global", "fence.acq_rel.gpu; atom.SP.add.u32 %r3, [%F], 1;", "L0: atom.SP.add.u32 %r1, [%F], 0; setp.ne.u32 %p4, %r1, 1; @%p4 bra L0; fence.acq_rel.gpu;", "", "the last block's sum"),
    (26, "G", "global", "fence.acq_rel.gpu; red.SP.add.u32 [%F], 1;", "L0: atom.SP.add.u32 %r1, [%F], 0; setp.ne.u32 %p4, %r1, 1; @%p4 bra L0; fence.acq_rel.gpu;", "", "red may release"),
    (27, "G", "global", "st.release.gpu.SP.u32 [%F], 1;", "mov.u32 %r4, 0;\nL0: red.SP.add.u32 [%F], 0; add.u32 %r4, %r4, 1; setp.lt.u32 %p4, %r4, 9; @%p4 bra L0; fence.acq_rel.gpu;", "D", "red never acquires"),
]  # fmt: skip


def _flagged() -> list[Litmus]:
    return [
        Litmus(number, where, space, roles(ST + signal, wait + LD), frozenset(races), why)
        for number, where, space, signal, wait, races, why in _FLAGGED
    ]


_CHAIN = (
    "setp.eq.u32 %p5, %t, 33; setp.eq.u32 %p3, %c, 1; and.pred %p5, %p5, %p3; @%p5 bra C; bra E;\n"
    "C: {third}\nbra E;"
)
BOTH_WARPS = "setp.gt.u32 %p5, %t, 31; @%p5 bra B2;\n@%p1 {one}\nbra E2;\nB2: {two}\nE2:"

_DIRECT: list[tuple[int, str, str, str, str, str]] = [
    (1, "W", "shared", in_line(ST, "", LD), "D", "the warp is no scope"),
    (2, "W", "shared", in_line(ST, "bar.warp.sync -1;", LD), "", "a barrier of the warp"),
    (3, "W", "shared", in_line(ST, "and.b32 %r4, %t, 31; setp.ne.u32 %p5, %r4, 1; @%p5 bar.warp.sync 0xfffffffd;", LD), "D", "the mask leaves the reader out"),
    (4, "W", "shared", in_line(ST, "shfl.sync.idx.b32 %r4, %t, 0, 31, -1;", LD), "D", "a shuffle orders no memory"),
    (5, "W", "shared", in_line(ST, "vote.sync.ballot.b32 %r4, %p1, -1; match.any.sync.b32 %r4, %t, -1; redux.sync.add.u32 %r4, %t, -1;", LD), "D", "nor do votes, matches and reductions"),
    (6, "W", "shared", in_line(ST, "activemask.b32 %r4;", LD), "D", "nor does running together"),
    (7, "W", "shared", in_line(LD, "bar.warp.sync -1;", ST), "", "a read before a write"),
    (8, "B", "shared", in_line(ST, "bar.sync 0;", LD), "", "a barrier of the block"),
    (10, "B", "shared", BOTH_WARPS.format(one=ST + " bar.arrive 1, 64;", two="bar.sync 1, 64; @%p2 " + LD), "", "arriving is enough for the writer"),
    (11, "B", "shared", BOTH_WARPS.format(one="mov.u32 %r4, 0; bar.arrive 1, 64; @%p1 " + ST, two="bar.sync 1, 64; @%p2 " + LD), "D", "the store comes after the arrival"),
    (12, "B", "shared", in_line(ST, "bar.warp.sync -1;", LD), "D", "another warp"),
    (13, "B", "shared", in_line(ST, "membar.cta;", LD), "D", "a fence alone pairs with nothing"),
    (28, "G", "global", roles(ST + "st.release.gpu.SP.u32 [%F], 1;", "L0: ld.acquire.gpu.SP.u32 %r1, [%F]; setp.ne.u32 %p4, %r1, 2; @%p4 bra L0;" + LD, _CHAIN.format(third="L1: atom.relaxed.gpu.SP.cas.b32 %r1, [%F], 1, 2; setp.ne.u32 %p4, %r1, 1; @%p4 bra L1;")), "", "a chain through an atomic"),
    (29, "G", "global", roles(ST + "st.release.gpu.SP.u32 [%F], 1;", "L0: ld.acquire.gpu.SP.u32 %r1, [%F+4]; setp.ne.u32 %p4, %r1, 1; @%p4 bra L0;" + LD, _CHAIN.format(third="L1: ld.relaxed.gpu.SP.u32 %r1, [%F]; setp.ne.u32 %p4, %r1, 1; @%p4 bra L1; st.relaxed.gpu.SP.u32 [%F+4], 1;")), "D", "the third thread has neither acquire nor release"),
    (30, "G", "global", roles("atom.SP.add.u32 %r1, [%D], 1;", "atom.SP.add.u32 %r1, [%D], 1;"), "", "atomics of the grid"),
    (31, "G", "global", roles("atom.relaxed.cta.SP.add.u32 %r1, [%D], 1;", "atom.relaxed.gpu.SP.add.u32 %r1, [%D], 1;"), "D", "one scope excludes the other"),
    (32, "G", "global", roles("atom.SP.add.u32 %r1, [%D], 1;", LD), "D", "a weak read"),
    (33, "G", "global", roles("st.relaxed.gpu.SP.u32 [%D], 1;", "ld.relaxed.gpu.SP.u64 %x1, [%D];"), "D", "two sizes"),
    (34, "G", "global", in_line(ST, "bar.sync 0;", LD), "D", "barriers are of a block"),
    (38, "B", "shared", in_line("cp.async.ca.shared.global [s], [%x0], 4;", "cp.async.wait_all;", LD), "D", "the wait is for the copying thread only"),
    (39, "B", "shared", in_line("cp.async.ca.shared.global [s], [%x0], 4;", "cp.async.wait_all; bar.sync 0;", LD), "", "waited for, then a barrier"),
    (40, "B", "shared", in_line("cp.async.ca.shared.global [s], [%x0], 4;", "bar.sync 0;", LD), "D", "nobody waited"),
    (45, "G", "global", roles(ST + "st.release.gpu.SP.u32 [%F], 1;", spin("acquire.gpu.SP.u32") + "ld.global.nc.u32 %r2, [%D];"), "D", "the read-only way"),
    (46, "G", "global", roles(ST, "mov.u32 %r2, 0;"), "", "two kernels: the second launch reads"),
    (47, "G", "global", roles("st.SP.u32 [%D], 1; fence.sc.gpu; ld.SP.u32 %r1, [%D+4];", "st.SP.u32 [%D+4], 1; fence.sc.gpu; ld.SP.u32 %r1, [%D];"), "D", "plain accesses, ordered one way at most"),
    (47, "G", "global", roles("st.relaxed.gpu.SP.u32 [%D], 1; fence.sc.gpu; ld.relaxed.gpu.SP.u32 %r1, [%D+4];", "st.relaxed.gpu.SP.u32 [%D+4], 1; fence.sc.gpu; ld.relaxed.gpu.SP.u32 %r1, [%D];"), "", "relaxed accesses of one size and scope are apart by nothing"),
    (48, "B", "shared", "st.SP.u32 [%D], %v;", "D", "the same value: a race by the model"),
    (49, "B", "shared", roles("st.SP.u8 [%D], %v;", "st.SP.u8 [%D+1], %v;"), "", "bytes beside each other"),
]  # fmt: skip


def _direct() -> list[Litmus]:
    copied = "ld.param.u64 %x0, [a]; add.u64 %x0, %x0, 128;\n"
    return [
        Litmus(
            number, where, space, (copied if "%x0" in body else "") + body, frozenset(races), why
        )
        for number, where, space, body, races, why in _DIRECT
    ]


LITMUS = sorted([*_flagged(), *_direct()], key=lambda each: each.number)
