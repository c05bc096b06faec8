"""Kernels that are C in pieces: the evaluator's bits, counts, figures and findings."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.tools import is_here

from warploom import ptx
from warploom.errors import KernelError, UninitialisedError
from warploom.machine import fused
from warploom.machine.counters import Counters
from warploom.machine.report import Report
from warploom.ptx.emulate.tensor import tensor_map
from warploom.ptx.fast import pieces
from warploom.ptx.fast.arithmetic import compiled_arithmetic

pytestmark = pytest.mark.skipif(not is_here("c"), reason="no C compiler")

GEMM = Path(__file__).parent / "hopper" / "gemm.ptx"
REGISTERS = """.reg .b32 %r<12>; .reg .f32 %f<6>; .reg .b64 %a<5>;
.reg .pred %p<4>; .reg .b16 %h<3>;"""
# The old value of an update is read, which depends on the order: it is no C as a whole.
START = """ld.param.u64 %a0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
mad.lo.s32 %r2, %r1, SIZE, %r0; mul.wide.s32 %a1, %r2, 32; add.s64 %a1, %a0, %a1;
atom.global.add.u32 %r3, [%a0+COUNTER], 3;
mov.u32 %r4, 77; cvt.rn.f32.u32 %f0, %r2; mov.f32 %f1, 0f3FC00000; cvt.u16.u32 %h0, %r2;"""
LINES = (
    "add.s32 %rD, %rA, %rB;", "mul.lo.s32 %rD, %rA, -7;", "xor.b32 %rD, %rA, %rB;",
    "shr.u32 %rD, %rA, 3;", "mad.lo.s32 %rD, %rA, %rB, 12345;",
    "fma.rn.f32 %fE, %fG, 0f3F000000, %fH;",
    "add.rn.f32 %fE, %fG, %fH;", "mul.f32 %fE, %fG, %fH;", "cvt.rn.f32.s32 %fE, %rA;",
    "cvt.rni.s32.f32 %rD, %fG;", "setp.lt.s32 %pQ, %rA, %rB;", "setp.gt.f32 %pQ, %fG, %fH;",
    "selp.b32 %rD, %rA, %rB, %pQ;", "add.u16 %h0, %h0, 9;", "cvt.u32.u16 %rD, %h0;",
    "mov.b64 %a4, {%rA, %rB};", "cvt.u32.u64 %rD, %a4;", "min.s32 %rD, %rA, %rB;",
    "add.cc.u32 %rD, %rA, %rB;", "addc.u32 %rD, %rA, 0;", "popc.b32 %rD, %rA;",
)  # fmt: skip
END = """st.global.v4.u32 [%a1], {%r4, %r5, %r6, %r7}; cvt.u32.u16 %r8, %h0;
st.global.v4.u32 [%a1+16], {%r8, %r3, %r9, %r2}; st.global.f32 [%a1+16], %f2; ret;"""


def program(r: Random, size: int, blocks: int) -> str:
    """Lines that compute, some under predicates, in branches and loops that part lanes."""

    def some(count: int) -> str:
        out = []
        for _ in range(count):
            line = r.choice(LINES)
            for letter, choice in (("D", (4, 5, 6, 7, 8, 9)), ("A", (2, 3, 4, 5, 6, 7)),
                                   ("B", (0, 4, 5, 6)), ("E", (0, 1, 2)), ("G", (0, 1, 2)),
                                   ("H", (0, 1)), ("Q", (0, 1))):  # fmt: skip
                line = line.replace(f"r{letter}", f"r{r.choice(choice)}")
                line = line.replace(f"f{letter}", f"f{r.choice(choice)}")
                line = line.replace(f"p{letter}", f"p{r.choice(choice)}")
            guard = r.choice(("", "", "", "@%p0 ", "@!%p1 "))
            out.append(guard + line)
        return "\n".join(out)

    written = "mov.u32 %r5, 5; mov.u32 %r6, %r2; mov.u32 %r7, 0; mov.u32 %r9, 9; mov.u32 %r8, 1;"
    written += "mov.f32 %f2, 0f40400000; setp.lt.u32 %p0, %r0, 9; setp.ne.u32 %p1, %r0, 20;"
    written += "mov.b64 %a4, 1; add.cc.u32 %r11, %r2, 0;"
    body = f"""{START}
{written}
{some(8)}
and.b32 %r10, %r0, {r.choice((1, 2, 5))}; setp.eq.u32 %p2, %r10, 0; @%p2 bra ELSE;
{some(6)}
bra JOIN;
ELSE: {some(6)}
JOIN: {some(5)}
mov.u32 %r10, 0;
LOOP: {some(5)}
add.u32 %r10, %r10, 1; and.b32 %r11, %r0, 3; setp.lt.u32 %p3, %r10, %r11; @%p3 bra LOOP;
{some(4)}
{END}"""
    body = body.replace("SIZE", str(size)).replace("COUNTER", str(32 * size * blocks))
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    return f"{head}{REGISTERS}\n{body}\n}}\n"


def figures(report: Report) -> list[Any]:
    counted = [getattr(report, each.name) for each in fields(Counters)] if report.counted else []
    return [*counted, report.mix, report.races]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(12))
def test_generated_kernels(seed: int) -> None:
    r = Random(seed)
    size, blocks = r.choice((32, 48, 96)), r.choice((1, 3))
    kernel = ptx.load(program(r, size, blocks), "k.ptx").kernel("k")
    asked: dict[str, Any] = r.choice(({}, {"counters": True}, {"races": "all"}))
    results, reports = [], []
    for engine in ("numpy", "c"):
        memory = np.zeros(8 * size * blocks + 4, np.uint32)
        reports.append(kernel.launch(blocks, size, [memory], engine=engine, **asked))
        results.append(memory)
    assert "order" in kernel.why_not_fast()
    assert reports[1].in_pieces
    assert np.array_equal(results[0], results[1])
    assert figures(reports[0]) == figures(reports[1])


def test_a_value_that_is_none_is_found_all_the_same() -> None:
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    text = f"""{head}{REGISTERS} ld.param.u64 %a0, [p]; atom.global.add.u32 %r0, [%a0], 1;
    add.u32 %r1, %r9, 1; add.u32 %r1, %r1, %r0; mul.lo.s32 %r1, %r1, 3;
    st.global.u32 [%a0+4], %r1; ret; }}"""
    for engine in ("numpy", "c"):
        with pytest.raises(UninitialisedError, match="nobody wrote %r9"):
            ptx.load(text, "k.ptx").kernel("k").launch(
                1,
                32,
                [np.zeros(2, np.uint32)],
                engine=engine,
            )


def test_where_all_threads_have_one_value_it_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = pieces.Piece.run

    def noted(self: pieces.Piece, f: Any) -> bool:
        done = run(self, f)
        sizes.extend(f.regs[slot].size for slot, _ in self.writes)
        return done

    monkeypatch.setattr(pieces.Piece, "run", noted)
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    text = f"""{head}{REGISTERS} ld.param.u64 %a0, [p]; ld.global.u32 %r1, [%a0];
    add.u32 %r1, %r1, 1; mul.lo.s32 %r1, %r1, 3; xor.b32 %r1, %r1, 9;
    atom.global.add.u32 %r0, [%a0+4], %r1; st.global.u32 [%a0+8], %r0; ret; }}"""
    kernel = ptx.load(text, "k.ptx").kernel("k")
    memory = np.array([4, 0, 0], np.uint32)
    assert kernel.launch(1, 1, [memory], engine="c").in_pieces
    assert memory[1] == (4 + 1) * 3 ^ 9
    assert sizes == [1]


# -- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", ["f32", "f16"])
@pytest.mark.parametrize(
    ("kind", "bits", "depth"), [("bf16", 16, 16), ("f16", 16, 16), ("tf32", 32, 8), ("e4m3", 8, 32)]
)  # fmt: skip
def test_compiled_products(kind: str, bits: int, depth: int, result: str) -> None:
    """Any bits at all, infinities among them; and small numbers of which some are zero."""
    rng = np.random.default_rng(bits + depth)
    dtype = np.dtype(np.float32 if result == "f32" else np.float16)
    rule = fused.rule_for(90, kind, depth, warpgroup=True)
    for mask in ((1 << bits) - 1, 0x3F << max(0, bits - 8)):
        a, b = (rng.integers(0, 1 << bits, (2, side, depth)) & mask for side in (16, 24))
        a[rng.random(a.shape) < 0.3] = 0
        c = rng.standard_normal((2, 16, 24)).astype(dtype)
        with np.errstate(all="ignore"):
            wanted = fused.fused(
                fused.terms(a[:, :, None, :], kind), fused.terms(b[:, None, :, :], kind), c, result,
                rule,
            )  # fmt: skip
        found = compiled_arithmetic().fused(a, b, c, (kind, kind), result, rule)
        assert found is not None
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes()


# -- a matmul with mbarriers, tensor maps and wgmma ----------------------------------------------


def matmul(text: str, engine: Any, **asked: Any) -> tuple[Any, Report]:
    size = 128
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 1 << 15, (size, size)).astype(np.uint16) for _ in range(2))
    c = np.zeros((size, size), np.uint16)
    maps = [tensor_map(each, box=(128, 64), swizzle=128) for each in (a, b)]
    report = ptx.load(text, "gemm.ptx").kernel("gemm").launch(
        1, 384, [*maps, c, size, size, size], shared_bytes=2 * 256 * 64 * 2, engine=engine, **asked
    )  # fmt: skip
    return c, report


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"races": "all"}, {"counters": True}], ids=str)
def test_a_hopper_matmul(asked: dict[str, Any]) -> None:
    (one, by_numpy), (other, by_c) = (
        matmul(GEMM.read_text(), engine, **asked) for engine in ("numpy", "c")
    )
    assert by_c.in_pieces
    assert np.array_equal(one, other)
    assert figures(by_numpy) == figures(by_c)


MUTANTS = (
    ("bar.sync \t0;", ""),
    ("wgmma.wait_group.sync.aligned 0;", ""), ("wgmma.fence.sync.aligned;", ""),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), MUTANTS)
def test_mutants_of_the_matmul_are_found_alike(old: str, new: str) -> None:
    text = GEMM.read_text()
    assert old in text
    said = []
    for engine in ("numpy", "c"):
        try:
            said.append(str(matmul(text.replace(old, new), engine, races="all")[1].races))
        except KernelError as error:
            said.append(str(error))
    assert said[0] == said[1]
    assert said[0] != "[]"
