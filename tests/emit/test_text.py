"""Details of the texts: literals, parentheses, comments, what a language cannot say."""

from __future__ import annotations

import pytest

from warploom.emit import emit
from warploom.emit.cuda import cuda
from warploom.emit.dialect import CUDA, C
from warploom.emit.literal import number_text
from warploom.emit.parts import comment_lines
from warploom.emit.value import ValuePrinter
from warploom.errors import EmitError
from warploom.index.ir import Var, select
from warploom.index.show import c_text
from warploom.kernel.build import Builder, cast, choose, exp, fma, from_index, rsqrt
from warploom.kernel.dtype import DType, f32, f64, i32, i64, u8, u32, u64
from warploom.kernel.ir import Cell, Operation, Value

a, b = Cell("a", None, f32), Cell("b", None, f32)
m, n = Cell("m", None, u32), Cell("n", None, u32)
s = Cell("s", None, u8)
i, j = Cell("i", None, i32), Cell("j", None, i32)
lane = Var("lane")


def text(value: Value, dialect: object = CUDA) -> str:
    return ValuePrinter(dialect, c_text, lambda cell: cell.name).text(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (a + b * a, "a + b * a"),
        ((a + b) * a, "(a + b) * a"),
        (a - (b - a), "a - (b - a)"),
        (a - b - a, "a - b - a"),
        (a / (b * a), "a / (b * a)"),
        (-(a + b), "-(a + b)"),
        (m & n ^ m, "(m & n) ^ m"),
        (m ^ n ^ m, "m ^ n ^ m"),
        ((m + n) << 3, "(m + n) << 3u"),
        (~m, "~m"),
        (a.min(b), "fminf(a, b)"),
        (m.max(n), "max(m, n)"),
        (fma(a, b, a), "fmaf(a, b, a)"),
        (fma(m, n, m), "m * n + m"),
        (choose(lane.lt(3), a, b) + a, "(lane < 3 ? a : b) + a"),
        (choose(lane.lt(3), a, choose(lane.eq(5), b, a)), "lane < 3 ? a : lane == 5 ? b : a"),
        (choose(lane.lt(3), choose(lane.eq(5), b, a), a), "lane < 3 ? (lane == 5 ? b : a) : a"),
        (cast(i32, a + b), "i32_from_f32(a + b)"),
        (cast(f64, a), "(double)a"),
        (i + j, "(int)((unsigned int)i + (unsigned int)j)"),
        (i * 3 - j, "(int)((unsigned int)i * 3u - (unsigned int)j)"),
        (-i, "(int)(0u - (unsigned int)i)"),
        (i << 3, "(int)((unsigned int)i << 3)"),
        (fma(i, j, i), "(int)((unsigned int)i * (unsigned int)j + (unsigned int)i)"),
        (i / 3, "i / 3"),
        (i / j, "divide_i32(i, j)"),
        (i / -1, "divide_i32(i, -1)"),
        (abs(i), "abs_i32(i)"),
        (abs(m), "m"),
        (abs(a), "fabsf(a)"),
        (exp(a) + rsqrt(b), "expf(a) + rsqrtf(b)"),
        (choose(a.lt(b), a, b + a), "a < b ? a : b + a"),
        (choose((a + b).ne(choose(lane, a, b)), a, b), "a + b != (lane ? a : b) ? a : b"),
        (from_index(lane + 1, f32), "(float)(lane + 1)"),
        (s + s, "(unsigned char)((unsigned int)s + (unsigned int)s)"),
        (s ^ s, "(unsigned char)(s ^ s)"),
        (s.min(s), "(unsigned char)(min(s, s))"),
    ],
)
def test_values(value: Value, expected: str) -> None:
    assert text(value) == expected


def test_c_has_no_integer_minimum() -> None:
    assert text(Operation("min", (m, n)), C) == "m < n ? m : n"


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (0.1, f32, "0.1f"),
        (1 / 3, f64, "0.3333333333333333"),
        (1e30, f32, "1e+30f"),
        (-2.0, f32, "-2.0f"),
        (7, u32, "7u"),
        (2**64 - 1, u64, "18446744073709551615ull"),
        (-(2**31), i32, "(-2147483647 - 1)"),
        (-(2**63), i64, "(-9223372036854775807ll - 1)"),
        (float("inf"), f64, "(double)INFINITY"),
        (float("-inf"), f32, "-(float)INFINITY"),
        (float("nan"), f32, "(float)NAN"),
        (-0.0, f64, "-0.0"),
    ],
)
def test_literals(number: float, dtype: DType, expected: str) -> None:
    assert number_text(number, dtype, C)[1] == expected


def test_a_language_by_name() -> None:
    kernel = Builder("k", block=32).done()
    assert emit(kernel, "cuda") == cuda(kernel)
    with pytest.raises(EmitError, match="no language 'fortran'"):
        emit(kernel, "fortran")


def test_comments_cannot_swallow_code() -> None:
    assert comment_lines("a\\\nb\x00c\r") == ["// a", "// b c"]


def test_cuda_has_warps_of_32() -> None:
    with pytest.raises(EmitError, match="warps of 32 lanes, the kernel has 64"):
        cuda(Builder("k", block=64, warp_size=64).done())


def test_narrow_warps_use_their_own_mask() -> None:
    k = Builder("k", block=32, warp_size=4)
    v = k.register("v", f32, 0.0)
    k.set(v, k.shuffle(v, k.lane + 1))
    assert "__shfl_sync(0xfu << (thread & 28), v, lane + 1, 4)" in cuda(k.done())


def test_a_warp_barrier_of_a_narrow_warp_names_its_lanes() -> None:
    k = Builder("k", block=64, warp_size=8)
    k.barrier("warp")
    assert "__syncwarp(0xffu << (thread & 24));" in cuda(k.done())
    k = Builder("k", block=64)
    k.barrier("warp")
    assert "__syncwarp();" in cuda(k.done())


def test_a_wide_load_reads_all_before_it_writes() -> None:
    k = Builder("k", block=32)
    x = k.array("x", f32, 128, const=True)
    r = k.registers("r", f32, 2, 1.0)
    r[0] = x.at(k.lane * 2, when=k.lane.lt(3), otherwise=r[0] + r[1], width=2)
    for language in ("cuda", "opencl", "c"):
        text = emit(k.done(), language)
        assert "r[0] + r[1];" in text.replace(" : 0", "")
        assert text.count("r[0] + r[1]") == 1


def test_loops_as_far_as_a_scalar_says() -> None:
    k = Builder("k", block=32)
    n = k.scalar("n")
    v = k.register("v", f32, 0.0)
    with k.loop("i", 1, select(n.lt(3), n, 3), 2):
        k.set(v, v + 1.0)
    for language in ("cuda", "opencl", "c"):
        text = emit(k.done(), language)
        assert "for (int i = 1; i < (n < 3 ? n : 3); i += 2) {" in text
        assert "unroll" not in text


def test_too_wide_an_access() -> None:
    k = Builder("k", block=32)
    x = k.array("x", f64, 128, const=True)
    r = k.registers("r", f64, 4)
    r[0] = x.at(k.lane * 4, width=4)
    with pytest.raises(EmitError, match="16 bytes"):
        cuda(k.done())
