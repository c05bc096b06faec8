"""Matrix instructions: against whole numbers written apart, and what PTX says of fragments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.ptx.matrix_kernels import (
    HEAD,
    PRODUCTS,
    WIDTH,
    Product,
    module_text,
    moves,
    packed,
)
from tests.ptx.dot_exact import add, dot, read
from tests.tools import is_here

from warploom import ptx
from warploom.errors import DeviceError
from warploom.machine import fused

WARPS = 8


def codes(words: np.ndarray, kind: str) -> np.ndarray:
    """By warp, lane and number."""
    width = WIDTH[kind]
    rows = words.reshape(-1, 1)
    shifts = np.arange(max(1, 32 // width), dtype=rows.dtype) * rows.dtype.type(width)
    mask = rows.dtype.type((1 << width) - 1)
    return (rows >> shifts & mask).reshape(WARPS, 32, -1)


def spot(form: Product, operand: str, lane: int, i: int) -> tuple[int, int]:
    """(row or column, k) of value i of a lane: PTX's tables, one by one."""
    group, thread = lane // 4, lane % 4
    kind = form.kinds[1]
    per = max(1, 32 // WIDTH[kind])
    m = form.sizes[0]
    register, inside = divmod(i, per)
    if operand == "c":
        return group + 8 * (i // 2), 2 * thread + i % 2
    if operand == "b":
        return group, thread * per + inside + register * 4 * per
    if m == 8:
        return group, thread * per + inside
    return group + 8 * (register % 2), thread * per + inside + 4 * per * (register // 2)


def matrix(form: Product, operand: str, values: np.ndarray) -> list[dict[tuple[int, int], int]]:
    return [
        {
            spot(form, operand, lane, i): int(values[warp, lane, i])
            for lane in range(32)
            for i in range(values.shape[2])
        }
        for warp in range(WARPS)
    ]


def run(form: Product, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    args = form.inputs(WARPS, seed)
    kernel = ptx.load(module_text([form]), "mma.ptx").kernel(form.name)
    kernel.launch(WARPS // 4, 128, args)
    return args[:3], args[3]


def expected(form: Product, a: list[int], b: list[int], c: int) -> int:
    result, *kinds = form.kinds
    if result == "s32":

        def whole(x: int, kind: str) -> int:
            half = 1 << WIDTH[kind] - 1
            return x - 2 * half if kind[0] == "s" and x >= half else x

        total = sum(whole(x, kinds[0]) * whole(y, kinds[1]) for x, y in zip(a, b, strict=True))
        total += whole(c, "s32")
        if form.extra:
            total = min(max(total, -(2**31)), 2**31 - 1)
        return total & 0xFFFFFFFF
    if WIDTH[kinds[0]] == 8:
        x, y = (
            [read(v, kind, "f16") for v in values]
            for values, kind in zip((a, b), kinds, strict=True)
        )
        total = 0
        for chosen in ((0, 1), (2, 3)):
            part = [k for k in range(len(a)) if k % 4 in chosen]
            total = dot([x[k] for k in part], [y[k] for k in part], total, result)
        return add(c, total, result)
    return dot([read(x, kinds[0]) for x in a], [read(y, kinds[1]) for y in b], c, result)


PLAIN = [form for form in PRODUCTS if form.shape != "m8n8k4" and form.kinds[0] != "f64"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", PLAIN, ids=lambda form: form.name)
def test_every_bit_is_that_of_whole_numbers(form: Product) -> None:
    (a, b, c), d = run(form, 3)
    sides = [matrix(form, *each) for each in
             (("a", codes(a, form.kinds[1])), ("b", codes(b, form.kinds[2])),
              ("c", codes(c, form.kinds[0])), ("c", codes(d, form.kinds[0])))]  # fmt: skip
    m, n, k = form.sizes
    rng = np.random.default_rng(1)
    for warp in range(WARPS):
        for _ in range(6):
            row, column = int(rng.integers(m)), int(rng.integers(n))
            left = [sides[0][warp][row, i] for i in range(k)]
            right = [sides[1][warp][column, i] for i in range(k)]
            want = expected(form, left, right, sides[2][warp][row, column])
            assert sides[3][warp][row, column] == want, (warp, row, column, left, right)


def test_doubles_are_chains_of_fma() -> None:
    rng = np.random.default_rng(0)
    for form in PRODUCTS:
        if form.kinds[0] != "f64":
            continue
        a, b, c, d = form.inputs(WARPS, 1)
        for each in (a, b, c):
            each[:] = rng.integers(-50, 50, each.size).astype(np.float64).view(np.uint64)
        kernel = ptx.load(module_text([form]), "mma.ptx").kernel(form.name)
        kernel.launch(WARPS // 4, 128, [a, b, c, d])
        m, n, k = form.sizes
        for warp in range(WARPS):
            x, y, z, w = (
                _doubles(form, operand, each, warp)
                for operand, each in (("a", a), ("b", b), ("c", c), ("c", d))
            )
            for row in range(m):
                for column in range(n):
                    total = z[row, column] + sum(x[row, i] * y[column, i] for i in range(k))
                    assert w[row, column] == total


def _doubles(form: Product, operand: str, words: np.ndarray, warp: int) -> dict[Any, Any]:
    values = words.view(np.float64).reshape(WARPS, 32, -1)[warp]
    return {
        spot(form, operand, lane, i): values[lane, i]
        for lane in range(32)
        for i in range(values.shape[1])
    }


def test_products_of_volta() -> None:
    """Four quads of eight lanes each, in every order of rows; small whole numbers are exact."""
    rng = np.random.default_rng(0)
    for form in PRODUCTS:
        if form.shape != "m8n8k4" or form.kinds[0] == "f64":
            continue
        a, b = (rng.integers(-3, 4, (32, 4)).astype(np.float16) for _ in range(2))
        dtype = np.float32 if form.kinds[0] == "f32" else np.float16
        c = rng.integers(-9, 9, (32, 8)).astype(dtype)
        d = np.zeros((32, 8), dtype)
        kernel = ptx.load(module_text([form]), "mma.ptx").kernel(form.name)
        kernel.launch(1, 32, [a, b, c, d])
        by_row = [word == "row" for word in form.layout.split(".")]
        for quad in range(4):
            lanes = [lane for lane in range(32) if lane // 4 % 4 == quad]
            x, y, z, w = np.zeros((8, 4)), np.zeros((4, 8)), np.zeros((8, 8)), np.zeros((8, 8))
            for lane in lanes:
                low, high = lane % 4, 4 * (lane // 16)
                for i in range(4):
                    x[(low + high, i) if by_row[0] else (i + high, low)] = a[lane, i]
                    y[(low, i + high) if by_row[1] else (i, low + high)] = b[lane, i]
                for i in range(8):
                    at = (low + high, i)
                    if dtype == np.float32:
                        at = ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
                    z[at], w[at] = c[lane, i], d[lane, i]
            assert np.array_equal(w, x @ y + z), form.name


def moved(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    source, out = rng.integers(0, 1 << 16, 512).astype(np.uint16), np.zeros(512, np.uint16)
    kernel = ptx.load(HEAD + moves()[name], "moves.ptx").kernel(name)
    kernel.launch(1, 32, [source, out], races=True)
    return source.reshape(32, 16), out.reshape(32, 16)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", "_trans"])
def test_matrices_are_loaded_and_stored_by_rows(count: int, trans: str) -> None:
    source, out = moved(f"ldmatrix_x{count}{trans}")
    for lane in range(32):
        for number in range(count):
            for half in range(2):
                row, column = lane // 4, 2 * (lane % 4) + half
                if trans:
                    row, column = column, row
                assert out[lane, 2 * number + half] == source[(8 * number + row) * 5 % 32, column]
    source, out = moved(f"stmatrix_x{count}{trans}")
    for lane in range(32):
        for number in range(count):
            for half in range(2):
                row, column = lane // 4, 2 * (lane % 4) + half
                if trans:
                    row, column = column, row
                assert out[(8 * number + row) * 5 % 32, column] == source[lane, 2 * number + half]


def test_a_matrix_is_transposed_in_registers() -> None:
    source, out = moved("movmatrix")
    before, after = np.zeros((8, 8), np.uint16), np.zeros((8, 8), np.uint16)
    for lane in range(32):
        for half in range(2):
            before[lane // 4, 2 * (lane % 4) + half] = source[lane, half]
            after[lane // 4, 2 * (lane % 4) + half] = out[lane, half]
    assert np.array_equal(after, before.T)


def test_what_a_warp_cannot_do_alone() -> None:
    form = PRODUCTS[0]
    kernel = ptx.load(module_text([form]), "mma.ptx").kernel(form.name)
    with pytest.raises(DeviceError, match="not all 32 lanes"):
        kernel.launch(1, 40, form.inputs(8, 0))
    text = HEAD + moves()["ldmatrix_x4"].replace("add.u32 %r8, %r8, %s;", "add.u32 %r8, %r8, 8;")
    with pytest.raises(DeviceError, match="no multiple of 16"):
        ptx.load(text).kernel("ldmatrix_x4").launch(1, 32, [np.zeros(512, np.uint16)] * 2)


def test_older_machines_have_smaller_groups() -> None:
    """1 + 2⁻²⁴·8 in two groups of eight on sm_80, in one of sixteen on sm_90."""
    a = np.array([[0x3C00] + [0] * 7 + [0x0400] * 8])  # 1, then 2⁻¹⁴
    b = np.array([[0x3C00] + [0] * 7 + [0x1400] * 8])  # 1, then 2⁻¹⁰
    c = np.zeros(1, np.float32)
    results = {
        machine: fused.fused(
            fused.terms(a, "f16"), fused.terms(b, "f16"), c, "f32",
            fused.rule_for(machine, "f16", 16),
        )[0]
        for machine in (70, 80, 90)
    }  # fmt: skip
    assert results[90] == np.float32(1 + 2.0**-21)
    assert fused.rule_for(80, "f16", 16).group == 8
    assert results[70] == np.float32(1)


def test_packing_is_little_endian() -> None:
    assert packed(np.array([[1, 2, 3, 4]], np.uint64), "s8").tolist() == [0x04030201]


def as_c(form: Product) -> bool:
    """Whether the fast engine takes it; then its bits are the evaluator's, on hard numbers."""
    kernel = ptx.load(HEAD + form.text(), "k.ptx").kernel(form.name)
    if kernel.why_not_fast():
        return False
    results = []
    for engine in ("numpy", "c"):
        args = form.inputs(4, 7)
        report = kernel.launch(1, 128, args, engine=engine)
        results.append(args[-1])
    assert report.engine == "c"
    assert results[0].tobytes() == results[1].tobytes(), form.name
    return True


@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
def test_products_of_small_numbers_as_c() -> None:
    chosen = [form for form in PRODUCTS if form.kinds[1] == "e4m3" and form.kinds[0] == "f16"]
    assert as_c(chosen[-1])


@pytest.mark.slow
@pytest.mark.skipif(not is_here("c"), reason="no C compiler")
def test_products_as_c() -> None:
    assert all(as_c(form) for form in PRODUCTS)
