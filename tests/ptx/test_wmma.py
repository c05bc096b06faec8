# ruff: noqa: E501 - programs read better with a line each
"""wmma: loaded, multiplied and stored in every layout; values as mma gives them, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError
from warploom.machine import fused
from warploom.ptx.emulate.asked import EngineName

TEXT = """.version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{{ .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .f64 %g<20>; .reg .b64 %p<9>;
ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c]; ld.param.u64 %p3, [d];
wmma.load.a.sync.aligned.{la}.{shape}.global.{kind} {a}, [%p0], {sa};
wmma.load.b.sync.aligned.{lb}.{shape}.global.{kind} {b}, [%p1], {sb};
wmma.load.c.sync.aligned.{lc}.{shape}.{total} {c}, [%p2], {sc};
wmma.mma.sync.aligned.{la}.{lb}.{shape}.{types} {c}, {a}, {b}, {c};
wmma.store.d.sync.aligned.{lc}.{shape}.{total} [%p3], {c}, {sc};
ret; }}
"""


def registers(bank: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{bank}{first + at}" for at in range(count)) + "}"


# shape, type of factors, of results, registers of a, b, c
CASES = [
    ((16, 16, 16), "f16", "f32", 8, 8, 8), ((8, 32, 16), "f16", "f32", 8, 8, 8),
    ((32, 8, 16), "f16", "f16", 8, 8, 4), ((16, 16, 16), "bf16", "f32", 4, 4, 8),
    ((8, 32, 16), "bf16", "f32", 2, 8, 8), ((16, 16, 8), "tf32", "f32", 4, 4, 8),
    ((16, 16, 16), "s8", "s32", 2, 2, 8), ((32, 8, 16), "u8", "s32", 4, 1, 8),
    ((8, 8, 4), "f64", "f64", 1, 1, 2),
]  # fmt: skip
RAW = {"f16": "u2", "bf16": "u2", "tf32": "u4", "s8": "u1", "u8": "u1", "f64": "f8"}
TOTALS = {"f32": "f4", "f16": "f2", "s32": "i4", "f64": "f8"}


def factors(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    if kind in ("s8", "u8"):
        return rng.integers(0, 256, shape).astype("u1")
    values = rng.normal(size=shape) * 2.0 ** rng.integers(-6, 6, shape)
    if kind == "f64":
        return values
    if kind == "f16":
        return values.astype("f2").view("u2")
    words = values.astype("f4").view("u4")
    return (words >> 16).astype("u2") if kind == "bf16" else words


def wanted(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str, total: str) -> np.ndarray:
    """By the arithmetic of the machine; of tf32 two steps of four."""
    x, y = a[:, None, :], b.T[None, :, :]
    if kind == "f64":
        return fused.doubles_by_fma(x, y, c)
    if total == "s32":
        wide = [v.view("i1" if kind == "s8" else "u1").astype(np.int64) for v in (x, y)]
        return fused.whole(wide[0], wide[1], c, False)
    rule = fused.Rule(25, 4 if kind == "tf32" else 16)
    return fused.fused(fused.terms(x, kind), fused.terms(y, kind), c, total, rule)


def launched(case: tuple[Any, ...], iteration: int, engine: EngineName) -> None:
    """Loaded, multiplied and stored; the bits of `iteration` say which matrices lie by rows."""
    (m, n, k), kind, total, *held = case
    rng = np.random.default_rng(m + k)
    a, b = factors(rng, kind, (m, k)), factors(rng, kind, (k, n))
    c = (rng.normal(size=(m, n)) * 9).astype(TOTALS[total])
    types = {"f16": f"{total}.{total}"}.get(kind, f"{total}.{kind}.{kind}.{total}")
    bank = {"f64": "g"}.get(kind, "r")
    sums = {"f32": "f", "f64": "g"}.get(total, "r")
    by_row = [bool(iteration >> at & 1) for at in range(3)]
    la, lb, lc = ("row" if row else "col" for row in by_row)
    given = [v if row else np.ascontiguousarray(v.T)
             for v, row in zip((a, b, c), by_row, strict=True)]  # fmt: skip
    sa, sb, sc = (v.shape[1] for v in given)
    text = TEXT.format(
        target="sm_90", shape=f"m{m}n{n}k{k}", kind=kind, total=total, types=types, la=la, lb=lb,
        lc=lc, sa=sa, sb=sb, sc=sc, a=registers(bank, 4, held[0]),
        b=registers(bank, 4 + held[0], held[1]), c=registers(sums, 20 if sums != "g" else 10, held[2]),
    )  # fmt: skip
    out = np.zeros_like(given[2])
    kernel = ptx.load(text, "k.ptx").kernel("k")
    report = kernel.launch(
        1, 32, [*given, out], races="all" if engine == "numpy" else False, engine=engine
    )
    assert not report.races
    assert report.engine == engine
    found = out if by_row[2] else out.T
    assert found.tobytes() == wanted(a, b, c, kind, total).astype(c.dtype).tobytes()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_as_mma(case: tuple[Any, ...]) -> None:
    for iteration in range(8):
        launched(case, iteration, "numpy")


@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
def test_as_c() -> None:
    launched(CASES[5], 5, "c")
    launched(CASES[8], 2, "c")


@pytest.mark.slow
@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_all_as_c(case: tuple[Any, ...]) -> None:
    for iteration in (0, 3, 6):
        launched(case, iteration, "c")


def test_lanes_that_disagree_or_are_missing() -> None:
    body = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{ .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %p<4>; .reg .pred %q;
ld.param.u64 %p0, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %p1, %r1, 4; STEP
wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%p0], 16; ret; }"""
    for step, message in (
        ("add.u64 %p0, %p0, %p1;", "different addresses"),
        ("setp.gt.u32 %q, %r1, 30; @%q exit;", "not all 32 lanes"),
    ):
        kernel = ptx.load(body.replace("STEP", step)).kernel("k")
        with pytest.raises(DeviceError, match=message):
            kernel.launch(1, 32, [np.zeros(999, np.float32)])


def test_a_policy_is_a_number_that_hints_take() -> None:
    text = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{ .reg .b32 %r<9>; .reg .b64 %p<4>;
ld.param.u64 %p0, [a]; createpolicy.fractional.L2::evict_last.b64 %p1, 0f3F000000;
createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %p2;
ld.global.L2::cache_hint.u32 %r1, [%p0], %p1; st.global.L2::cache_hint.u32 [%p0+4], %r1, %p2; ret; }"""
    data = np.array([7, 0], np.uint32)
    ptx.load(text).kernel("k").launch(1, 1, [data])
    assert data.tolist() == [7, 7]
