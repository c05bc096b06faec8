"""Kernels by hand in which a shuffle would be wrong, and near ones in which it is right."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from warploom.errors import ParseError
from warploom.ptx.shuffle import Launch, check, confirm, rewrite
from warploom.search.outcome import Verdict

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 pool[];
.func helper() { ret; }
.func (.param .b32 o) other(.reg .b32 i)
{ .reg .b32 %t; xor.b32 %t, i, 1; st.param.b32 [o], %t; ret; }
.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 OUT, .param .u32 N)
{
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .b64 %rd<32>;
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [OUT]; ld.param.u32 %r1, [N];
    cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; cvta.to.global.u64 %rd3, %rd3;
    mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.y;
    mad.lo.s32 %r6, %r3, %r4, %r2; mad.lo.s32 %r6, %r5, 96, %r6;
    mul.wide.s32 %rd4, %r6, 4;
    add.s64 %rd5, %rd1, 4096; add.s64 %rd5, %rd5, %rd4;
    add.s64 %rd6, %rd2, 4096; add.s64 %rd6, %rd6, %rd4;
    add.s64 %rd7, %rd3, 4096; add.s64 %rd7, %rd7, %rd4;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
"""
TAIL = """
    add.f32 %f9, %f1, %f2; add.f32 %f9, %f9, %f3;
    st.global.f32 [%rd7], %f9;
    ret;
}
"""

# name: body. None of these may be changed.
LEFT_ALONE = {
    "a register that an earlier iteration may have set, set again between two reads": """
    mov.u32 %r8, 0;
LOOP:
    setp.gt.u32 %p1, %r8, 0; selp.b32 %r9, %r20, 0, %p1; mul.wide.u32 %rd8, %r9, 4;
    add.s64 %rd9, %rd5, %rd8; ld.global.nc.f32 %f1, [%rd9];
    and.b32 %r10, %r8, 1; setp.eq.u32 %p2, %r10, 1;
    @%p2 bra JOIN;
    add.u32 %r20, %r8, 5;
JOIN:
    selp.b32 %r11, %r20, 0, %p1; mul.wide.u32 %rd10, %r11, 4;
    add.s64 %rd11, %rd5, %rd10; ld.global.nc.f32 %f2, [%rd11];
    fma.rn.f32 %f3, %f3, 0f40400000, %f1; fma.rn.f32 %f3, %f3, 0f40400000, %f2;
    add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, %r1;
    @%p3 bra LOOP;""",
    "a selection of long numbers by a short one": """
    mov.u64 %rd8, 4294967296; mov.u64 %rd9, 17179869184;
    slct.u64.s32 %rd10, %rd8, %rd9, 1; slct.u64.s32 %rd11, %rd9, %rd8, 1;
    shr.u64 %rd10, %rd10, 30; shr.u64 %rd11, %rd11, 30;
    add.s64 %rd10, %rd5, %rd10; add.s64 %rd11, %rd5, %rd11;
    ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd11];""",
    "a store that may alias": """
    ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd6], %f1; ld.global.f32 %f2, [%rd5+4];""",
    "a store to the same array": """
    ld.global.f32 %f1, [%rd5]; add.f32 %f3, %f1, %f1; st.global.f32 [%rd5], %f3;
    ld.global.f32 %f2, [%rd5];""",
    "a store near in the same array": """
    ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd5+64], %f1; ld.global.f32 %f2, [%rd5+4];""",
    "a store by a generic address": """
    ld.global.f32 %f1, [%rd5]; st.f32 [%rd6], %f1; ld.global.f32 %f2, [%rd5+4];""",
    "a read-only load that is written all the same": """
    ld.global.nc.f32 %f1, [%rd5]; st.global.f32 [%rd5+4], %f1; ld.global.nc.f32 %f2, [%rd5+4];""",
    "an atomic": """
    ld.global.f32 %f1, [%rd5]; atom.global.add.f32 %f3, [%rd5+4], %f1;
    ld.global.f32 %f2, [%rd5+4];""",
    "a reduction": """
    ld.global.f32 %f1, [%rd5]; red.global.add.f32 [%rd6], %f1; ld.global.f32 %f2, [%rd5+4];""",
    "the atomic itself": """
    ld.global.f32 %f1, [%rd5]; atom.global.add.f32 %f2, [%rd5], 0f3F800000;""",
    "volatile": """
    ld.volatile.global.f32 %f1, [%rd5]; ld.volatile.global.f32 %f2, [%rd5+4];""",
    "relaxed": """
    ld.relaxed.gpu.global.f32 %f1, [%rd5]; ld.relaxed.gpu.global.f32 %f2, [%rd5+4];""",
    "a barrier with a writer": """
    ld.global.f32 %f1, [%rd5]; bar.sync 0; ld.global.f32 %f2, [%rd5+4];""",
    "a fence": """
    ld.global.nc.f32 %f1, [%rd5]; membar.gl; ld.global.nc.f32 %f2, [%rd5+4];""",
    "a newer fence": """
    ld.global.f32 %f1, [%rd5]; fence.acq_rel.gpu; ld.global.f32 %f2, [%rd5+4];""",
    "a call": """
    ld.global.f32 %f1, [%rd5]; call helper; ld.global.f32 %f2, [%rd5+4];""",
    "a source under a condition": """
    setp.lt.s32 %p1, %r2, 9; @%p1 bra SKIP;
    ld.global.nc.f32 %f1, [%rd5];
SKIP: ld.global.nc.f32 %f2, [%rd5+4];""",
    "a predicated source": """
    setp.lt.s32 %p1, %r2, 9; @%p1 ld.global.nc.f32 %f1, [%rd5]; ld.global.nc.f32 %f2, [%rd5+4];""",
    "two sources on two ways": """
    setp.lt.s32 %p1, %r2, 9; @%p1 bra OTHER;
    ld.global.nc.f32 %f1, [%rd5]; bra JOIN;
OTHER: ld.global.nc.f32 %f1, [%rd5+8];
JOIN: ld.global.nc.f32 %f2, [%rd5+4];""",
    "a store on the other way, by lanes that run ahead": """
    ld.global.f32 %f1, [%rd6]; setp.lt.s32 %p1, %r2, 9; @%p1 bra OTHER;
    st.global.f32 [%rd6+-4], %f1; bra JOIN;
OTHER: ld.global.f32 %f2, [%rd6+4];
JOIN:""",
    "an address that depends on the way": """
    mov.b64 %rd10, %rd5; setp.lt.s32 %p1, %r2, 9; @%p1 bra JOIN;
    add.s64 %rd10, %rd5, 8;
JOIN: ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd10+4];""",
    "an address under a predicate": """
    mov.b64 %rd10, %rd5; setp.lt.s32 %p1, %r2, 9; @%p1 add.s64 %rd10, %rd5, 8;
    ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd10+4];""",
    "a stride that differs between lanes": """
    mov.u32 %r10, %r2; and.b32 %r12, %r2, 7; add.s32 %r12, %r12, 1;
LOOP: mul.wide.s32 %rd10, %r10, 4; add.s64 %rd11, %rd1, %rd10;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];
    add.s32 %r10, %r10, %r12; setp.lt.s32 %p1, %r10, 300; @%p1 bra LOOP;""",
    "a pointer chase": """
    and.b32 %r10, %r2, 31;
LOOP: mul.wide.s32 %rd10, %r10, 4; add.s64 %rd11, %rd5, %rd10;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];
    add.s64 %rd12, %rd2, %rd10; ld.global.nc.u32 %r11, [%rd12];
    and.b32 %r11, %r11, 15; add.s32 %r10, %r10, %r11; add.s32 %r10, %r10, 1;
    setp.lt.s32 %p1, %r10, 90; @%p1 bra LOOP;""",
    "a source of the iteration before": """
    mov.u32 %r10, 0; mov.b64 %rd10, %rd5;
LOOP: ld.global.nc.f32 %f2, [%rd10+4]; add.f32 %f3, %f3, %f2;
    ld.global.nc.f32 %f1, [%rd10+512]; add.s64 %rd10, %rd10, 512; add.s32 %r10, %r10, 1;
    setp.lt.s32 %p1, %r10, 3; @%p1 bra LOOP;""",
    "lanes in different iterations": """
    mov.u32 %r10, 0; mov.b64 %rd10, %rd5;
LOOP: add.s32 %r10, %r10, 1; add.s64 %rd10, %rd10, 128;
    and.b32 %r11, %r10, 1; and.b32 %r12, %r2, 1; setp.eq.s32 %p1, %r11, %r12;
    setp.lt.s32 %p2, %r10, 6; and.pred %p1, %p1, %p2; @%p1 bra LOOP;
    ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd10+4]; add.f32 %f3, %f3, %f2;
    setp.lt.s32 %p2, %r10, 6; @%p2 bra LOOP;""",
    "after a loop that lanes leave at different iterations": """
    mov.u32 %r10, 0; mov.b64 %rd10, %rd5; and.b32 %r11, %r2, 3;
LOOP: add.s32 %r10, %r10, 1; add.s64 %rd10, %rd10, 256;
    setp.le.s32 %p1, %r10, %r11; @%p1 bra LOOP;
    ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd10+4];""",
    "an index by bfe": """
    bfe.u32 %r10, %r2, 1, 4; mul.wide.u32 %rd10, %r10, 4; add.s64 %rd11, %rd1, %rd10;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];""",
    "an index by shuffle": """
    activemask.b32 %r11; shfl.sync.bfly.b32 %r10, %r2, 1, 31, %r11;
    mul.wide.u32 %rd10, %r10, 4; add.s64 %rd11, %rd1, %rd10;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];""",
    "an index by lane mask and popc": """
    mov.u32 %r10, %lanemask_lt; popc.b32 %r11, %r10; mul.wide.u32 %rd10, %r11, 4;
    add.s64 %rd11, %rd1, %rd10;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];""",
    "an index by half the lane": """
    mov.u32 %r10, %laneid; shr.u32 %r10, %r10, 1; mul.wide.u32 %rd10, %r10, 4;
    add.s64 %rd11, %rd1, %rd10;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];""",
    "an index by xor": """
    xor.b32 %r10, %r2, 1; mul.wide.u32 %rd10, %r10, 4; add.s64 %rd11, %rd1, %rd10;
    mul.wide.u32 %rd12, %r2, 4; add.s64 %rd13, %rd1, %rd12;
    ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd13];""",
    "a loaded index": """
    ld.global.nc.u32 %r10, [%rd5]; and.b32 %r10, %r10, 255; mul.wide.u32 %rd10, %r10, 4;
    add.s64 %rd11, %rd2, %rd10; ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];""",
    "a distance that is no whole lane": """
    ld.global.nc.f32 %f1, [%rd5]; shl.b64 %rd10, %rd4, 1; add.s64 %rd10, %rd1, %rd10;
    ld.global.nc.f32 %f2, [%rd10]; ld.global.nc.f32 %f3, [%rd10+4];""",
    "32 lanes away": """
    ld.global.nc.f32 %f1, [%rd5]; ld.global.nc.f32 %f2, [%rd5+128];""",
    "a distance that a parameter decides": """
    mul.wide.s32 %rd10, %r1, 4; add.s64 %rd11, %rd5, %rd10;
    ld.global.nc.f32 %f1, [%rd5]; ld.global.nc.f32 %f2, [%rd11];""",
    "memory that each lane has for itself": """
    { .local .align 4 .b8 own[256]; mov.u64 %rd10, own; cvta.local.u64 %rd10, %rd10;
    mul.wide.u32 %rd12, %r2, 0; and.b32 %r10, %r2, 7; mul.wide.u32 %rd11, %r10, 4;
    add.s64 %rd11, %rd10, %rd11; cvt.rn.f32.u32 %f4, %r2; st.f32 [%rd11], %f4;
    st.f32 [%rd11+4], %f4; ld.f32 %f1, [%rd11]; ld.f32 %f2, [%rd11+4]; }""",
    "other widths": """
    ld.global.nc.f32 %f1, [%rd5]; ld.global.nc.u16 %h1, [%rd5+4]; cvt.rn.f32.u16 %f2, %h1;""",
    "other types": """
    ld.global.nc.f32 %f1, [%rd5]; ld.global.nc.b32 %f2, [%rd5+4];""",
    "other spaces": """
    mov.u32 %r10, pool; shl.b32 %r11, %r2, 2; add.s32 %r10, %r10, %r11;
    ld.shared.f32 %f1, [%r10]; ld.global.f32 %f2, [%rd5+4];""",
    "shared memory written between": """
    mov.u32 %r10, pool; shl.b32 %r11, %r2, 2; add.s32 %r10, %r10, %r11;
    ld.shared.f32 %f1, [%r10]; st.shared.f32 [%r10], %f1; ld.shared.f32 %f2, [%r10+4];""",
    "a value that was overwritten in its own address": """
    ld.global.nc.u32 %r10, [%rd5]; ld.global.nc.u64 %rd10, [%rd1]; mov.b64 %rd11, %rd5;
    ld.global.nc.u64 %rd11, [%rd1];""",
}

# More of them: each was changed once, and computed something else.
LEFT_ALONE |= {
    "an index that a barrier counts": """
    mov.u32 %r10, 0; setp.lt.s32 %p1, %r2, 5; mul.wide.u32 %rd10, %r10, 4;
    add.s64 %rd10, %rd10, %rd5; ld.global.nc.f32 %f1, [%rd10]; bar.red.popc.u32 %r10, 0, %p1;
    mul.wide.u32 %rd11, %r10, 4; add.s64 %rd11, %rd11, %rd5; ld.global.nc.f32 %f2, [%rd11];""",
    "a branch that a barrier decides": """
    setp.ne.s32 %p2, %r2, %r2; setp.lt.s32 %p1, %r2, 5; bar.red.or.pred %p2, 0, %p1;
    ld.global.f32 %f1, [%rd5]; add.f32 %f1, %f1, %f1; @!%p2 bra NO; st.global.f32 [%rd5], %f1;
NO: ld.global.f32 %f2, [%rd5];""",
    "one register loaded twice": """
    shl.b64 %rd10, %rd4, 1; add.s64 %rd10, %rd10, %rd1;
    ld.global.v2.f32 {%f1, %f1}, [%rd10]; ld.global.v2.f32 {%f2, %f3}, [%rd10];""",
    "8 bits that wrap, widened twice": """
    shl.b32 %r11, %r2, 3; cvt.s8.s32 %h1, %r11; cvt.s32.s16 %r10, %h1; add.s32 %r10, %r10, 128;
    mul.wide.s32 %rd10, %r10, 4; add.s64 %rd10, %rd10, %rd1;
    ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd10+32];""",
    "two variables of one name": """
    cvt.rn.f32.u32 %f4, %r2;
    { .shared .align 4 .f32 buf[128]; mov.u32 %r11, buf; mad.lo.u32 %r11, %r2, 4, %r11; }
    { .shared .align 4 .f32 buf[128]; mov.u32 %r12, buf; mad.lo.u32 %r12, %r2, 4, %r12;
    ld.shared.f32 %f1, [%r11]; ld.shared.f32 %f2, [%r12]; }""",
    "a parameter of a call with the name of one of the kernel": """
    { .param .b32 N; mov.u32 %r20, %r2; call (N), other, (%r20); ld.param.b32 %r10, [N]; }
    add.s32 %r10, %r10, %r2; mul.wide.s32 %rd10, %r10, 4; add.s64 %rd10, %rd10, %rd1;
    ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd10+4];""",
    "read-only memory written by a pointer that is chosen": """
    add.s64 %rd10, %rd1, %rd4; ld.global.nc.f32 %f1, [%rd10]; setp.lt.s32 %p1, %r2, 9;
    selp.b64 %rd11, %rd1, %rd2, %p1; add.s64 %rd11, %rd11, %rd4; st.global.f32 [%rd11], %f3;
    ld.global.nc.f32 %f2, [%rd10];""",
}

# name: (body, shuffles by lane distance). These are right to change.
CHANGED = {
    "next lane": (
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+4];",
        {1: 1},
    ),
    "both sides": (
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+4]; ld.global.f32 %f3, [%rd5+-4];",
        {-1: 1, 1: 1},
    ),
    "the same address": (
        "ld.global.f32 %f1, [%rd5]; mov.f32 %f3, %f1; ld.global.f32 %f2, [%rd5];",
        {0: 1},
    ),
    "31 lanes": ("ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+124];", {31: 1}),
    "backwards": (
        """neg.s64 %rd10, %rd4; add.s64 %rd10, %rd10, %rd1; add.s64 %rd10, %rd10, 8192;
        ld.global.f32 %f1, [%rd10]; ld.global.f32 %f2, [%rd10+4];""",
        {-1: 1},
    ),
    "read-only memory and a store to another pointer": (
        "ld.global.nc.f32 %f1, [%rd5]; st.global.f32 [%rd6], %f1; ld.global.nc.f32 %f2, [%rd5+4];",
        {1: 1},
    ),
    "read-only memory and a barrier": (
        "ld.global.nc.f32 %f1, [%rd5]; bar.sync 0; ld.global.nc.f32 %f2, [%rd5+4];",
        {1: 1},
    ),
    "a store far away in the same array": (
        """add.s64 %rd10, %rd1, %rd4; mul.wide.u32 %rd11, %r2, 4; add.s64 %rd12, %rd1, %rd11;
        ld.global.f32 %f1, [%rd12]; st.global.f32 [%rd12+65536], %f1;
        ld.global.f32 %f2, [%rd12+4];""",
        {1: 1},
    ),
    "lanes that left early": (
        """setp.gt.s32 %p1, %r2, 50; @%p1 ret; setp.eq.s32 %p2, %r2, 7; @%p2 exit;
        ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+4];""",
        {1: 1},
    ),
    "some lanes only": (
        """and.b32 %r10, %r2, 3; setp.eq.s32 %p1, %r10, 1; @%p1 bra SKIP;
        ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+4];
        SKIP:""",
        {1: 1},
    ),
    "a source before the branch": (
        """ld.global.nc.f32 %f1, [%rd5]; and.b32 %r10, %r2, 32; setp.eq.s32 %p1, %r10, 0;
        @%p1 bra SKIP; ld.global.nc.f32 %f2, [%rd5+4];
        SKIP:""",
        {1: 1},
    ),
    "an ordinary source before the branch": (
        """mul.wide.u32 %rd11, %r2, 4; add.s64 %rd12, %rd3, %rd11; mov.b64 %rd7, %rd12;
        ld.global.f32 %f1, [%rd12+65536]; and.b32 %r10, %r2, 32; setp.eq.s32 %p1, %r10, 0;
        @%p1 bra SKIP; ld.global.f32 %f2, [%rd12+65540];
        SKIP:""",
        {1: 1},
    ),
    "a loop that all lanes run alike": (
        """mov.u32 %r10, 0; mov.b64 %rd10, %rd5;
        LOOP: ld.global.f32 %f1, [%rd10]; ld.global.f32 %f2, [%rd10+4];
        add.f32 %f3, %f3, %f1; sub.f32 %f3, %f3, %f2; add.s64 %rd10, %rd10, 384;
        add.s32 %r10, %r10, 1; setp.lt.s32 %p1, %r10, 5; @%p1 bra LOOP;""",
        {1: 1},
    ),
    "a loop that lanes leave one by one": (
        """mov.u32 %r10, 0; mov.b64 %rd10, %rd5; and.b32 %r12, %r2, 7;
        LOOP: ld.global.f32 %f1, [%rd10]; ld.global.f32 %f2, [%rd10+4];
        add.f32 %f3, %f3, %f1; sub.f32 %f3, %f3, %f2; add.s64 %rd10, %rd10, 384;
        add.s32 %r10, %r10, 1; setp.lt.s32 %p1, %r10, %r12; @%p1 bra LOOP;""",
        {1: 1},
    ),
    "an index of 16 bits that wraps": (
        """mul.lo.s32 %r10, %r2, 2048; add.s32 %r10, %r10, %r1; cvt.u16.u32 %h1, %r10;
        cvt.u64.u16 %rd10, %h1; and.b64 %rd10, %rd10, -1; add.s64 %rd10, %rd1, %rd10;
        and.b64 %rd10, %rd10, -4;
        ld.global.f32 %f3, [%rd10];
        cvt.u16.u32 %h2, %r2; mul.lo.s16 %h3, %h2, 2044; cvt.u64.u16 %rd11, %h3;
        add.s64 %rd12, %rd1, %rd11;
        ld.global.nc.f32 %f1, [%rd12]; ld.global.nc.f32 %f2, [%rd12+2044];""",
        {1: 1},
    ),
    "a sum of 16 bits that wraps beside one of 64 bits that does not": (
        """mul.lo.s32 %r10, %r2, 4; cvt.u16.u32 %h1, %r10; add.u16 %h2, %h1, -20;
        cvt.u64.u16 %rd10, %h2; add.s64 %rd10, %rd10, %rd1; cvt.u64.u16 %rd11, %h1;
        add.s64 %rd11, %rd11, %rd1;
        ld.global.nc.f32 %f1, [%rd11+48]; ld.global.nc.f32 %f2, [%rd10+64];""",
        {-1: 1},
    ),
    "loops in a loop that all lanes run alike": (
        """mov.u32 %r10, 0; mov.b64 %rd10, %rd5;
        OUTER: mov.u32 %r11, 0; mov.b64 %rd11, %rd10;
        INNER: ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];
        add.f32 %f3, %f3, %f1; sub.f32 %f3, %f3, %f2; add.s64 %rd11, %rd11, 4;
        add.s32 %r11, %r11, 1; setp.lt.s32 %p1, %r11, %r1; @%p1 bra INNER;
        add.s64 %rd10, %rd10, 128; add.s32 %r10, %r10, 1; setp.lt.s32 %p1, %r10, 3;
        @%p1 bra OUTER;""",
        {1: 1},
    ),
    "the lane number": (
        """mov.u32 %r10, %laneid; mul.wide.u32 %rd10, %r10, 4; add.s64 %rd11, %rd1, %rd10;
        ld.global.nc.f32 %f1, [%rd11]; ld.global.nc.f32 %f2, [%rd11+4];""",
        {1: 1},
    ),
    "an or that carries nothing": (
        """shl.b32 %r10, %r2, 1; or.b32 %r11, %r10, 1; mul.wide.u32 %rd10, %r10, 4;
        mul.wide.u32 %rd11, %r11, 4; add.s64 %rd10, %rd10, %rd1; add.s64 %rd11, %rd11, %rd1;
        ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd11+4];""",
        {1: 1},
    ),
    "the same function of the next index": (
        """add.s32 %r9, %r2, 1; shr.u32 %r10, %r2, 1; shr.u32 %r11, %r9, 1;
        mul.wide.u32 %rd10, %r10, 4; add.s64 %rd10, %rd10, %rd1;
        mul.wide.u32 %rd11, %r11, 4; add.s64 %rd11, %rd11, %rd1;
        ld.global.nc.f32 %f1, [%rd10]; ld.global.nc.f32 %f2, [%rd11];""",
        {1: 1},
    ),
    "64 bits": (
        """shl.b64 %rd9, %rd4, 1; add.s64 %rd10, %rd9, %rd1; ld.global.u64 %rd11, [%rd10+8];
        ld.global.u64 %rd12, [%rd10]; sub.s64 %rd11, %rd11, %rd12; add.s64 %rd9, %rd9, %rd3;
        st.global.u64 [%rd9], %rd11; ret;""",
        {-1: 1},
    ),
    "16 bits": (
        """shr.s64 %rd10, %rd4, 1; mul.wide.s32 %rd10, %r6, 2; add.s64 %rd10, %rd10, %rd1;
        ld.global.u16 %h1, [%rd10]; ld.global.u16 %h2, [%rd10+6]; cvt.rn.f32.u16 %f1, %h1;
        cvt.rn.f32.u16 %f2, %h2;""",
        {3: 1},
    ),
    "8 bits, signed": (
        """cvt.s64.s32 %rd10, %r6; add.s64 %rd10, %rd10, %rd1;
        ld.global.s8 %r10, [%rd10]; ld.global.s8 %r11, [%rd10+2]; cvt.rn.f32.s32 %f1, %r10;
        cvt.rn.f32.s32 %f2, %r11;""",
        {2: 1},
    ),
    "generic addresses": (
        "ld.f32 %f1, [%rd5]; ld.f32 %f2, [%rd5+4];",
        {1: 1},
    ),
    "vectors": (
        """shl.b64 %rd10, %rd4, 2; add.s64 %rd10, %rd10, %rd1;
        ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd10];
        ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd10+16];
        add.f32 %f1, %f1, %f5; add.f32 %f2, %f2, %f6; add.f32 %f3, %f7, %f8;""",
        {1: 1},
    ),
    "shared memory after a barrier": (
        """mov.u32 %r10, pool; shl.b32 %r11, %r2, 2; add.s32 %r10, %r10, %r11;
        ld.global.f32 %f4, [%rd5]; st.shared.f32 [%r10], %f4; bar.sync 0;
        ld.shared.f32 %f1, [%r10]; ld.shared.f32 %f2, [%r10+4];""",
        {1: 1},
    ),
    "an unreachable store": (
        """ld.global.f32 %f1, [%rd5]; setp.lt.u32 %p1, %r2, 2000; @%p1 bra ON;
        st.global.f32 [%rd5+4], %f1;
        ON: ld.global.f32 %f2, [%rd5+4];""",
        {1: 1},
    ),
}

SHAPES = (
    ((2, 1, 1), (64, 1, 1)), ((3, 1, 1), (48, 1, 1)), ((1, 1, 1), (16, 8, 1)),
    ((2, 1, 1), (33, 2, 1)), ((1, 1, 1), (5, 4, 3)), ((1, 1, 1), (96, 2, 1)),
    ((1, 1, 1), (1, 1, 1)),
)  # fmt: skip


def launches() -> list[Launch]:
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 1 << 24, 1 << 16, dtype=np.int32) for _ in range(2)]
    out = np.zeros(1 << 16, np.int32)
    return [Launch(grid, block, (*data, out, 3), 8192) for grid, block in SHAPES]


def text_of(body: str) -> str:
    return HEAD + body + TAIL


def assert_agrees(original: str, rewritten: str) -> None:
    report = check(original, rewritten, launches={"k": launches()})
    assert report.mismatch is None
    assert report.skipped == 0


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_is_left_alone(name: str) -> None:
    text = text_of(LEFT_ALONE[name])
    result = rewrite(text, select="all")
    assert result.text == text
    assert result.kernels[0].shuffles == 0
    assert not result.kernels[0].refusal


@pytest.mark.sampled(6)
@pytest.mark.parametrize("variant", ["corner", "predicated"])
@pytest.mark.parametrize("name", CHANGED)
def test_is_changed_and_computes_the_same(name: str, variant: str) -> None:
    body, deltas = CHANGED[name]
    text = text_of(body)
    result = rewrite(text, select="all", variant=variant)
    assert result.kernels[0].deltas == deltas
    assert_agrees(text, result.text)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["corner", "predicated", "no-corner", "no-load"])
def test_ptxas_accepts_every_result(variant: str, tmp_path: Path) -> None:
    """They are one text, which ptxas reads once."""
    heads, kernels = set(), []
    for number, (body, _) in enumerate(CHANGED.values()):
        text = rewrite(text_of(body), select="all", variant=variant).text
        head, entry, rest = text.partition(".entry k(")
        heads.add(head)
        kernels.append(f"{entry[:-1]}{number}({rest}")
    (head,) = heads
    file, out = tmp_path / "all.ptx", tmp_path / "out"
    file.write_text(head + "\n.visible ".join(kernels))
    done = subprocess.run(
        ["ptxas", "-arch=sm_80", str(file), "-o", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assembled = out.read_bytes()
    assert all(f".text.k{number}\0".encode() in assembled for number in range(len(kernels)))


def test_a_shuffle_without_corners_is_noticed() -> None:
    text = text_of(CHANGED["next lane"][0])
    wrong = rewrite(text, select="all", variant="no-corner").text
    assert check(text, wrong, launches={"k": launches()}).mismatch is not None


def test_the_reason_is_given() -> None:
    text = text_of(LEFT_ALONE["a store that may alias"])
    reasons = [c.why for c in rewrite(text, select="all").kernels[0].candidates]
    assert any("overwritten" in reason for reason in reasons)


@pytest.mark.parametrize(
    "text", ["\x00\x01", ".version 8.0\n.target sm_80\n.entry k() {", "}" * 50, "{" * 5000]
)
def test_what_is_not_ptx_is_one_located_error(text: str) -> None:
    with pytest.raises(ParseError) as error:
        rewrite(text, "bad.ptx")
    assert error.value.span is not None


def test_a_machine_without_shuffles_gets_none() -> None:
    text = text_of(CHANGED["next lane"][0]).replace("sm_80", "sm_20")
    result = rewrite(text, select="all")
    assert result.text == text
    assert "sm_20" in result.kernels[0].refusal


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CHANGED)
def test_z3_agrees(name: str) -> None:
    pytest.importorskip("z3")
    result = rewrite(text_of(CHANGED[name][0]), select="all")
    assert Verdict.REFUTED not in confirm(result)["k"]


# Instructions with too few operands, too many, or no type: nothing is known of what they compute.
@pytest.mark.parametrize(
    "line",
    [
        "add.s32 %r10;", "and.b32 %r10, %r2;", "xor.b32 %r10, %r2, %r2, %r2;",
        "cvta.global.u64 %rd10;",
        "mul.wide.s32 %rd10, %r2;", "shl.b32 %r10, %r2;", "shr.u32 %r10;", "cvt %rd10, %r10;",
        "cvt.u64.u32 %rd10;", "selp.b32 %r10, %r2;", "setp.lt.s32 %p1, %r2;", "ld.global.f32 %f1;",
        "st.global.f32;", "atom.add.global.f32 %f1;", "shl %r10, %r2, 3;", "mov.b32 %r10;",
        "mad.lo.s32 %r10, %r2, %r2;", "neg.s32 %r10;", "not.b32 %r10;",
    ],
)  # fmt: skip
def test_wrong_operands_are_no_fault_of_ours(line: str) -> None:
    assert rewrite(text_of(line), select="all").kernels[0].shuffles == 0


LARGE = {
    "products of sums": "".join(
        "mul.lo.s32 %r2, %r2, %r2; add.s32 %r2, %r2, %r6;" for _ in range(200)
    ) + "mul.wide.s32 %rd10, %r2, 4; add.s64 %rd10, %rd10, %rd1; ld.global.nc.f32 %f1, [%rd10];",
    "choices of choices": "".join(
        f"setp.lt.s32 %p2, %r2, {i}; and.pred %p1, %p1, %p2; or.pred %p3, %p3, %p1;"
        f"@%p3 add.s64 %rd5, %rd5, {i};" for i in range(200)
    ) + "ld.global.nc.f32 %f1, [%rd5]; ld.global.nc.f32 %f2, [%rd5+4];",
    "loops in loops": "".join(f"L{i}: add.f32 %f1, %f1, %f1;" for i in range(2000))
    + "".join(f"@%p1 bra L{i};" for i in range(1999, -1, -1)),
    "blocks with a load": "".join(f"L{i}: ld.global.f32 %f1, [%rd5+{4 * i}];" for i in range(1500)),
    "one load again and again": "".join(
        f"@%p1 bra L{i}; ld.global.nc.f32 %f1, [%rd5]; L{i}:" for i in range(1000)
    ),
}  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LARGE)
def test_large_kernels_take_no_more_than_their_share(name: str) -> None:
    started = time.process_time()
    rewrite(text_of(LARGE[name]), select="all")
    assert time.process_time() - started < 30
