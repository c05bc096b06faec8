"""Forms of instructions in the fast engine: one of each kind, with the evaluator's bits.

Every form of every pure instruction is in `bench/ptx/engine.py`; a kernel is a compilation, so many
instructions stand in one here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bench.common.ptx.spelling import THREADS, inputs, instruction, parts, program, spelled
from tests.tools import is_here

from warploom import ptx
from warploom.ptx.table import OPCODES

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")

FORMS = (
    "cvt.rn.f16.u64", "cvt.rm.f16.s64", "cvt.rp.bf16.u64", "cvt.rz.bf16.s16", "cvt.rz.f32.u64",
    "cvt.rm.f32.s64", "cvt.rp.f64.s64", "cvt.rz.f64.u64", "cvt.rm.sat.f16.s8", "cvt.rn.sat.f64.s64",
    "cvt.rp.sat.f32.u32", "cvt.rn.f16.f64", "cvt.rm.bf16.f64", "cvt.rp.sat.f16.f64",
    "cvt.rm.f16.f32", "cvt.rn.sat.f16.f32", "cvt.rp.bf16.f16", "cvt.rpi.sat.f64.f64",
    "cvt.ftz.f64.f32", "cvt.sat.f64.f16", "cvt.rna.satfinite.tf32.f32", "cvt.rn.relu.tf32.f32",
    "cvt.rz.satfinite.tf32.f32", "cvt.rn.satfinite.relu.e4m3x2.f32",
    "cvt.rn.satfinite.e5m2x2.f16x2", "cvt.rn.satfinite.e2m3x2.f32", "cvt.rn.satfinite.e2m1x2.f32",
    "cvt.rn.relu.f16x2.e3m2x2", "cvt.rn.f16x2.e4m3x2", "cvt.rn.f16x2.e2m1x2", "cvt.rp.ue8m0x2.f32",
    "cvt.rz.satfinite.ue8m0x2.bf16x2", "cvt.rn.bf16x2.ue8m0x2", "cvt.rs.f16x2.f32",
    "cvt.rs.relu.satfinite.bf16x2.f32", "cvt.rs.satfinite.e2m1x4.f32",
    "cvt.rs.satfinite.e4m3x4.f32", "cvt.pack.sat.s16.s32", "cvt.pack.sat.u4.s32.b32",
    "set.neu.or.bf16x2.bf16x2", "set.lt.ftz.u32.f16x2", "setp.geu.xor.f16x2", "lop3.or.b32",
    "lop3.and.b32", "fns.b32", "tanh.approx.bf16x2", "ex2.approx.f16x2",
    "rsqrt.approx.ftz.f64", "rsqrt.approx.f64", "rcp.approx.ftz.f64",
)  # fmt: skip


def edgier(given: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Where bits are random: doubles next to halves and halfway between them, integers of any
    length."""
    chance = np.random.default_rng(11)
    last = slice(THREADS - 240, THREADS)
    shape = given[2][:, last].shape
    steps = chance.integers(0, 0x7C00, shape).astype(np.float64)  # of halves, as they are counted
    halves = np.ldexp(1024 + steps % 1024, (steps // 1024).astype(np.int64) - 25)
    halves[:, 1::2] *= 1 + 2.0**-11
    bits = halves.view(np.uint64) + chance.integers(-1, 2, shape).astype(np.uint64)
    given[2][:, last] = bits | chance.integers(0, 2, shape).astype(np.uint64) << np.uint64(63)
    given[1][:, last] >>= chance.integers(0, 32, shape).astype(np.uint32)
    return given


def both(kernel: ptx.Kernel, grid: int, block: int, given: list[Any], out: Any) -> list[Any]:
    found = []
    for engine in ("numpy", "c"):
        made = out.copy()
        report = kernel.launch(grid, block, [*given, made], engine=engine)
        assert report.engine == engine, kernel.fast.why_not
        found.append(made)
    return found


def test_one_of_each_kind() -> None:
    every = {
        ".".join((record.name, *parts(row))): instruction(record, form, parts(row))
        for record in OPCODES.values() if record.name in {name.split(".")[0] for name in FORMS}
        for form in record.forms for row in spelled(form)
    }  # fmt: skip
    kernel = ptx.load(program([every[name] for name in FORMS]), "forms.ptx").kernel("k")
    found = both(kernel, 1, THREADS, edgier(inputs()), np.zeros((len(FORMS), THREADS), np.uint64))
    same = (found[0] == found[1]).all(axis=1)
    assert [name for name, good in zip(FORMS, same, strict=True) if not good] == []
    assert found[0].any(axis=1).all()


HEAD = ".version 8.5\n.target {}\n.address_size 64\n.visible .entry k(.param .u64 out)\n"
OWN = """ld.param.u64 %a, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
mad.lo.u32 %r0, %r1, %r2, %r0; mad.wide.u32 %a, %r0, {}, %a;
"""


def test_functions_of_every_half() -> None:
    text = HEAD.format("sm_90") + (
        "{ .reg .b64 %a; .reg .b32 %r<5>; .reg .b16 %h<5>;"
        + OWN.format(8)
        + "cvt.u16.u32 %h0, %r0;"
        "ex2.approx.f16 %h1, %h0; tanh.approx.f16 %h2, %h0; ex2.approx.ftz.bf16 %h3, %h0;"
        "tanh.approx.bf16 %h4, %h0; st.global.v4.b16 [%a], {%h1, %h2, %h3, %h4}; ret; }"
    )
    kernel = ptx.load(text, "halves.ptx").kernel("k")
    found = both(kernel, 64, 1024, [], np.zeros((1 << 16, 4), np.uint16))
    assert (found[0] != found[1]).sum(axis=0).tolist() == [0, 0, 0, 0]


PREDICATES = """{ .reg .b64 %a; .reg .b32 %r<20>; .reg .pred %p<9>;""" + OWN.format(24) + """
ld.global.v2.u32 {%r3, %r4}, [%a]; setp.lt.s32 %p1, %r3, 0; mov.u32 %r5, 77;
setp.le.and.f16x2 %p2|%p3, %r3, %r4, %p1; selp.u32 %r6, 1, 0, %p2; selp.u32 %r7, 2, 0, %p3;
setp.neu.xor.bf16x2 %p2|%p3, %r4, %r3, %p1; selp.u32 %r8, 4, 0, %p2; selp.u32 %r9, 8, 0, %p3;
lop3.and.b32 %r10|%p4, %r3, %r4, 255, 0x80, %p1; selp.u32 %r11, 16, 0, %p4;
add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; add.u32 %r6, %r6, %r9; add.u32 %r6, %r6, %r11;
@%p1 activemask.b32 %r5; @!%p2 activemask.b32 %r9;
st.global.v2.u32 [%a+8], {%r5, %r6}; st.global.v2.u32 [%a+16], {%r9, %r10}; ret; }
"""  # fmt: skip


def test_results_of_two_and_lanes_under_a_predicate() -> None:
    kernel = ptx.load(HEAD.format("sm_90") + PREDICATES).kernel("k")
    given = np.random.default_rng(6).integers(0, 1 << 32, (3 * 45, 6), np.uint32)
    given[::3, 0] = given[::3, 1]  # pairs that are equal
    found = both(kernel, 3, 45, [], given)
    assert found[0].tolist() == found[1].tolist()
    assert np.unique(found[0][:, 3]).size > 8


JOINED = """{ .reg .b64 %a; .reg .b32 %r<20>; .reg .pred %p<9>;""" + OWN.format(16) + """
ld.global.u32 %r3, [%a]; setp.lt.s32 %p1, %r3, 0; and.b32 %r4, %r3, 63; mov.u32 %r9, 0;
setp.eq.u32 %p2, %r4, 7; @%p2 exit;
AGAIN: barrier.red.popc.u32 %r5, 0, %p1; setp.gt.s32 %p3, %r3, -2040000000;
barrier.red.and.pred %p4, 0, %p3; selp.u32 %r6, 1000, 0, %p4;
bar.red.or.pred %p4, 1, !%p3; selp.u32 %r7, 2000, 0, %p4; bar.red.popc.u32 %r8, 0, !%p1;
bar.red.popc.u32 %r10, 0, %p1;
mad.lo.u32 %r9, %r9, 3, %r8; add.u32 %r9, %r9, %r5; add.u32 %r3, %r3, 123456789;
setp.lt.s32 %p1, %r3, 0; and.b32 %r4, %r9, 3; setp.ne.u32 %p5, %r4, 0; @%p5 bra AGAIN;
add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r5;
st.global.u32 [%a+4], %r6; st.global.u32 [%a+8], %r8; st.global.u32 [%a+12], %r9; ret; }
"""  # fmt: skip


@pytest.mark.parametrize("cores", [1, 3])
def test_barriers_that_reduce(cores: int) -> None:
    """Some threads have left; warps go through a loop of them as long as what they count says."""
    kernel = ptx.load(HEAD.format("sm_90") + JOINED).kernel("k")
    given = np.random.default_rng(7).integers(0, 1 << 32, (9 * 75, 4), np.uint32)
    found = []
    for engine in ("numpy", "c"):
        data = given.copy()
        report = kernel.launch(9, 75, [data], engine=engine, cores=cores)
        assert report.engine == engine, kernel.fast.why_not
        found.append((data.tolist(), report.mix))
    assert found[0] == found[1]


QUADS = """{{ .reg .b64 %a; .reg .b32 %r<40>;""" + OWN.format(96) + """
ld.global.v4.u32 {{%r3, %r4, %r5, %r6}}, [%a]; ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%a+16];
ld.global.v4.u32 {{%r14, %r15, %r16, %r17}}, [%a+32];
mma.sync.aligned.m8n8k4.{0}.f32.f16.f16.f32 {{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}},
  {{%r3, %r4}}, {{%r5, %r6}}, {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}};
mma.sync.aligned.m8n8k4.{0}.f16.f16.f16.f16 {{%r30, %r31, %r32, %r33}}, {{%r3, %r4}}, {{%r5, %r6}},
  {{%r10, %r11, %r12, %r13}};
st.global.v4.u32 [%a+48], {{%r20, %r21, %r22, %r23}};
st.global.v4.u32 [%a+64], {{%r24, %r25, %r26, %r27}};
st.global.v4.u32 [%a+80], {{%r30, %r31, %r32, %r33}}; ret; }}
"""  # fmt: skip


@pytest.mark.parametrize(("target", "order"), [("sm_70", "row.col"), ("sm_90", "col.row")])
def test_products_of_eight_lanes(target: str, order: str) -> None:
    kernel = ptx.load(HEAD.format(target) + QUADS.format(order)).kernel("k")
    given = np.random.default_rng(8).integers(0, 1 << 32, (4 * 64, 24), np.uint32)
    few = np.random.default_rng(9).standard_normal((2 * 64, 24)).astype(np.float32)
    given[: 2 * 64] = few.view(np.uint32)  # sums that are numbers
    given[: 2 * 64, :4] = few[:, :8].astype(np.float16).view(np.uint32)
    found = both(kernel, 4, 64, [], given)
    assert found[0].tolist() == found[1].tolist()
