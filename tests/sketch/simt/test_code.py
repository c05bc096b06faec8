"""Kernels of filled sketches compute what the specification says, at any length."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.bench import inventor_sketches as paper
from warploom.kernel.dtype import u32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Cell, For, Kernel, Shuffle, walk
from warploom.search.outcome import Found
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.function import SketchFunction
from warploom.sketch.simt.solve import Filled, reinstantiate, solve

Floats = npt.NDArray[np.float32]


@cache
def filled(made: SketchFunction, optimum: bool = False, /, **sizes: int) -> Filled:
    small = {
        name: min(size, 4) if name in ("warp", "rows") else size for name, size in sizes.items()
    }
    outcome = solve(made.at(**(small if made in SMALL else sizes)), optimum=optimum)
    assert isinstance(outcome, Found)
    if made not in SMALL:
        return outcome.answer
    outcome = reinstantiate(outcome.answer, made.at(**sizes))
    assert isinstance(outcome, Found)
    return outcome.answer


SMALL = (
    paper.multiplication_32,
    paper.multiplication_32_shared,
    paper.multiplication_64_shared,
    paper.convolution_2d,
)


def numbers(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).random(shape, np.float32)


@examples(6, least=2)
@given(st.integers(1, 700), st.integers(1, 5), st.integers(0, 99))
def test_stencil_and_convolution_of_any_length(length: int, warps: int, seed: int) -> None:
    x, w = numbers(seed, length + 2), numbers(seed + 1, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3)
    y = np.zeros(length, np.float32)
    run(to_kernel(filled(paper.stencil_1d, warp=32, taps=3), warps=warps), [x, y])
    np.testing.assert_allclose(y, windows.mean(axis=1), rtol=1e-5)
    run(to_kernel(filled(paper.convolution_1d, warp=32, taps=3), warps=warps), [x, y, w])
    np.testing.assert_allclose(y, windows @ w, rtol=1e-5)


@examples(6, least=2)
@given(st.integers(1, 21), st.integers(1, 40), st.integers(0, 99))
@pytest.mark.slow
def test_convolution_in_two_dimensions_of_any_size(rows: int, columns: int, seed: int) -> None:
    kernel = to_kernel(filled(paper.convolution_2d, rows=4, warp=8, taps=3), warps=2)
    x, w, y = numbers(seed, rows + 2, columns + 2), numbers(seed, 3, 3), numbers(0, rows, columns)
    sizes = {"x_rows": rows + 2, "x_columns": columns + 2, "y_rows": rows, "y_columns": columns}
    run(kernel, [x, y, w], sizes)
    want = sum(w[i, j] * x[i : i + rows, j : j + columns] for i in range(3) for j in range(3))
    np.testing.assert_allclose(y, want, rtol=1e-5)


def multiplied(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    c = np.zeros(2 * len(a), np.uint32)
    for i, value in enumerate(a):
        c[i : i + len(b)] ^= value & b
    return c


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "made", [*SMALL[:2], pytest.param(SMALL[2], marks=pytest.mark.slow)], ids=lambda made: made.name
)
@pytest.mark.slow
def test_polynomials_are_multiplied_bit_by_bit(made: SketchFunction) -> None:
    result = filled(made, True, warp=32)
    degree = result.traced.inputs[0].shape[0]
    a, b = np.random.default_rng(7).integers(0, 1 << 32, (2, 5, degree), dtype=np.uint32)
    c = np.zeros((5, 2 * degree), np.uint32)
    report = run(to_kernel(result, u32), [a.reshape(-1), b.reshape(-1), c.reshape(-1)])
    for got, left, right in zip(c, a, b, strict=True):
        np.testing.assert_array_equal(got, multiplied(left, right))
    assert (report.shuffles > 0) == (made is paper.multiplication_32)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "size", [1, 3, *(pytest.param(size, marks=pytest.mark.slow) for size in (2, 5))]
)
@pytest.mark.slow
def test_structures_are_summed_and_turned_into_runs(size: int) -> None:
    x = numbers(size, 6, 32, size)
    y = np.zeros((6, 32), np.float32)
    run(to_kernel(filled(paper.aos_sum, warp=32, s=size)), [x.reshape(-1), y.reshape(-1)])
    np.testing.assert_allclose(y, x.sum(axis=2), rtol=1e-5)
    for made in (paper.aos_crc, paper.aos_rcr):
        if made is paper.aos_rcr and size == 2:
            continue  # takes seconds; see test_solve
        z = np.zeros((6, size, 32), np.float32)
        report = run(to_kernel(filled(made, warp=32, s=size)), [x.reshape(-1), z.reshape(-1)])
        np.testing.assert_array_equal(z, x.transpose(0, 2, 1))
        for traffic in (report.loads["x"], report.stores["y"]):
            assert traffic.sectors * 32 == traffic.useful_bytes  # nothing is fetched in vain
        assert (report.shuffles > 0) == (made is paper.aos_crc and size > 1)


def test_loops_stay_loops_and_registers_have_constant_indices() -> None:
    kernel: Kernel = to_kernel(filled(paper.aos_crc, warp=32, s=5))
    loops = [s for s in walk(kernel.body) if isinstance(s, For)]
    assert all(loop.counts == range(5) for loop in loops)
    # A rotation of five registers takes three steps, not five selects each.
    report = run(kernel, [numbers(0, 160), numbers(0, 160)])
    assert report.selects == 3 * 5 * 4


def test_the_text_states_the_fill_and_its_verdict() -> None:
    kernel = to_kernel(filled(paper.stencil_1d, warp=32, taps=3))
    assert "source = (lane + i) % 32" in kernel.doc
    assert "verdict: proved" in kernel.doc
    assert [p.name for p in kernel.params] == ["x_size", "y_size", "x", "y"]
    shuffles = [s for s in walk(kernel.body) if isinstance(s, Shuffle)]
    assert len(shuffles) == 1
    assert isinstance(shuffles[0].value, Cell)
