"""A small pipeline as PTX: a producer that copies, two warps that add, and a ring of two places.

Of each place `full` counts the producer and its bytes, `empty` the first lanes of both warps.
"""

from __future__ import annotations

HEAD = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry ring(.param .u64 in, .param .u64 out, .param .u32 turns)
{
.reg .pred %p<9>;
.reg .b32 %r<40>;
.reg .f32 %f<4>;
.reg .b64 %rd<9>;
.shared .align 8 .b64 full[2];
.shared .align 8 .b64 empty[2];
.shared .align 16 .b8 data[512];
ld.param.u64 %rd1, [in];
cvta.to.global.u64 %rd1, %rd1;
ld.param.u64 %rd2, [out];
cvta.to.global.u64 %rd2, %rd2;
ld.param.u32 %r20, [turns];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, full;
mov.u32 %r4, empty;
mov.u32 %r5, data;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.init.shared::cta.b64 [%r3+8], 1;
mbarrier.init.shared::cta.b64 [%r4], 2;
mbarrier.init.shared::cta.b64 [%r4+8], 2;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.u32 %r6, 0;
mov.u32 %r7, 0;
mov.u32 %r8, 0;
mul.lo.u32 %r9, %r2, %r20;
mul.wide.u32 %rd3, %r9, 256;
add.s64 %rd3, %rd1, %rd3;
setp.gt.u32 %p2, %r1, 31;
@%p2 bra CONSUME;
setp.ne.u32 %p3, %r1, 0;
@%p3 bra DONE;
"""

PRODUCE = """
PRODUCE:
shl.b32 %r10, %r6, 3;
add.u32 %r11, %r3, %r10;
add.u32 %r12, %r4, %r10;
shl.b32 %r13, %r6, 8;
add.u32 %r13, %r5, %r13;
xor.b32 %r14, %r7, 1;
ASK_EMPTY:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r12], %r14;
@!%p4 bra ASK_EMPTY;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%rd3], 256, [%r11];
add.s64 %rd3, %rd3, 256;
xor.b32 %r6, %r6, 1;
setp.eq.u32 %p5, %r6, 0;
@%p5 xor.b32 %r7, %r7, 1;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p6, %r8, %r20;
@%p6 bra PRODUCE;
bra DONE;
"""

CONSUME = """
CONSUME:
mov.f32 %f1, 0f00000000;
sub.u32 %r15, %r1, 32;
and.b32 %r16, %r1, 31;
setp.eq.u32 %p7, %r16, 0;
TURN:
shl.b32 %r10, %r6, 3;
add.u32 %r11, %r3, %r10;
add.u32 %r12, %r4, %r10;
shl.b32 %r13, %r6, 8;
add.u32 %r13, %r5, %r13;
shl.b32 %r17, %r15, 2;
add.u32 %r13, %r13, %r17;
ASK_FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r11], %r7;
@!%p4 bra ASK_FULL;
ld.shared.f32 %f2, [%r13];
add.f32 %f1, %f1, %f2;
bar.warp.sync 0xffffffff;
@%p7 mbarrier.arrive.shared::cta.b64 _, [%r12];
xor.b32 %r6, %r6, 1;
setp.eq.u32 %p5, %r6, 0;
@%p5 xor.b32 %r7, %r7, 1;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p6, %r8, %r20;
@%p6 bra TURN;
mad.lo.u32 %r18, %r2, 64, %r15;
mul.wide.u32 %rd4, %r18, 4;
add.s64 %rd4, %rd2, %rd4;
st.global.f32 [%rd4], %f1;
"""

TAIL = """
DONE:
ret;
}
"""

RING = HEAD + PRODUCE + CONSUME + TAIL
WAIT_EMPTY = PRODUCE[PRODUCE.index("ASK_EMPTY:") : PRODUCE.index("mbarrier.arrive")]
WAIT_FULL = CONSUME[CONSUME.index("ASK_FULL:") : CONSUME.index("ld.shared")]
ARRIVE = "@%p7 mbarrier.arrive.shared::cta.b64 _, [%r12];\n"
FILLED = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 256;\n"
COPY = PRODUCE[PRODUCE.index("cp.async.bulk") : PRODUCE.index("add.s64")]
FENCE = "fence.mbarrier_init.release.cluster;\n"
TOGETHER = "bar.warp.sync 0xffffffff;\n"
TOKEN = "mbarrier.arrive.shared::cta.b64 %rd6, [%r12];\n"

# By name: what is replaced, by what, and what is said of it (a condition, or words of an error).
MUTANTS: dict[str, tuple[str, str, str]] = {
    "no wait for a place": (WAIT_EMPTY, "", "more than were expected"),
    "no wait for data": (WAIT_FULL, "", "data race"),
    "one answer is enough": ("@!%p4 bra ASK_FULL;\n", "", "waits"),
    "the place is asked once": ("@!%p4 bra ASK_EMPTY;\n", "", "more than were expected"),
    "no fence": (FENCE, "", "fence"),
    "no barrier": ("bar.sync 0;\n", "", "data race"),
    "no arrival": (ARRIVE, "", "deadlock"),
    "an arrival too many": (ARRIVE, ARRIVE * 2, "deadlock"),
    "the arrival comes first": (
        WAIT_FULL + "ld.shared.f32 %f2, [%r13];\n", ARRIVE + WAIT_FULL
        + "ld.shared.f32 %f2, [%r13];\n", "C3",
    ),
    "lanes do not meet": (TOGETHER, "", "data race"),
    "half of the lanes meet": (
        TOGETHER, "and.b32 %r19, %r1, 16;\nsetp.eq.u32 %p8, %r19, 0;\n"
        "@%p8 bar.warp.sync 0x0000ffff;\n", "data race",
    ),
    "too few bytes": (FILLED, FILLED.replace("256", "128"), "deadlock"),
    "too many bytes": (FILLED, FILLED.replace("256", "512"), "deadlock"),
    "bytes are not expected": (
        FILLED, "mbarrier.arrive.shared::cta.b64 _, [%r11];\n", "data race",
    ),
    "no copy": (COPY, "", "deadlock"),
    "wrong parity for places": ("xor.b32 %r14, %r7, 1;", "mov.u32 %r14, %r7;", "deadlock"),
    "wrong parity for data": (
        WAIT_FULL, "xor.b32 %r14, %r7, 1;\n" + WAIT_FULL.replace("%r7", "%r14"), "data race",
    ),
    "parity that stays": (
        "@%p5 xor.b32 %r7, %r7, 1;\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p6, %r8, %r20;\n"
        "@%p6 bra TURN;", "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p6, %r8, %r20;\n@%p6 bra TURN;",
        "data race",
    ),
    "one arrival for both warps": ("[%r4], 2", "[%r4], 1", "deadlock"),
    "three arrivals": ("[%r4+8], 2", "[%r4+8], 3", "deadlock"),
    "only one warp waits": (
        WAIT_FULL, "setp.gt.u32 %p8, %r1, 63;\n@%p8 bra PAST;\n" + WAIT_FULL + "PAST:\n",
        "data race",
    ),
    "only the first lane waits": (
        WAIT_FULL, "@!%p7 bra PAST;\n" + WAIT_FULL + "PAST:\n", "data race",
    ),
    "the last turn is not waited for": (
        WAIT_FULL, "add.u32 %r21, %r8, 1;\nsetp.eq.u32 %p8, %r21, %r20;\n@%p8 bra PAST;\n"
        + WAIT_FULL + "PAST:\n", "data race",
    ),
    "an arrival is dropped": (
        ARRIVE, ARRIVE.replace("arrive", "arrive_drop"), "more than were expected",
    ),
    "places are asked for late": (
        WAIT_EMPTY + FILLED, FILLED + WAIT_EMPTY, "more than were expected",
    ),
}  # fmt: skip


def mutant(name: str) -> str:
    old, new, _ = MUTANTS[name]
    assert RING.count(old) == 1, name
    return RING.replace(old, new)
