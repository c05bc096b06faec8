"""NumPy, the evaluator, C by the system's compiler, OpenCL and the compiler's PTX all agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.kernel import kernels as samples
from tests.tools import require

from warploom import runtime
from warploom.kernel.dtype import DType

HOST_DEVICES = ("simulator", "c", "opencl", "ptx")
SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500)


def random(size: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(size).integers(0, 200, size).astype(dtype)


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_transpose(device: Any) -> None:
    require(device)
    kernel = runtime.load(samples.transpose(), device)
    for height, width in [(1, 1), (32, 32), (33, 31), (64, 40), (5, 100), (100, 3)]:
        x, y = random(height * width), np.full(height * width, -1, np.float32)
        kernel(x, y, height=height, width=width)
        assert np.array_equal(y.reshape(width, height), x.reshape(height, width).T)


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_stencil(device: Any) -> None:
    require(device)
    kernel = runtime.load(samples.stencil(), device)
    for n in SIZES:
        x = random(n + 2)
        y = kernel(x)
        np.testing.assert_allclose(y, (x[:-2] + x[1:-1] + x[2:]) / 3, rtol=1e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("device", HOST_DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint8"])
def test_aos_to_soa(device: Any, dtype: str) -> None:
    require(device)
    kernel = runtime.load(samples.aos_to_soa(DType(dtype)), device)
    for n in SIZES:
        x = random(3 * n, dtype)
        y = kernel(x)
        assert y.dtype == x.dtype
        assert np.array_equal(y.reshape(3, n), x.reshape(n, 3).T)


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_convolution_with_constant_weights(device: Any) -> None:
    require(device)
    kernel = runtime.load(samples.convolution(), device)
    weights = np.array([0.5, 2, -1], np.float32)
    for n in (4, 8, 256, 260, 1000):
        x = random(n)
        y = kernel(x, weights)
        expected = sum(w * np.roll(x, 1 - d) for d, w in enumerate(weights))
        np.testing.assert_allclose(y, expected, rtol=1e-5)


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_warps_that_branch_by_themselves(device: Any) -> None:
    require(device)
    kernel = samples.warp_branch()
    results = []
    for each in ("simulator", device):
        y = np.zeros(64, np.int32)
        runtime.load(kernel, each)(y)
        results.append(y.tolist())
    assert results[0] == results[1]


@pytest.mark.sampled(2, each="device")
@pytest.mark.parametrize("device", HOST_DEVICES)
@pytest.mark.parametrize("warp_size", [2, 4, 8, 16, 32])
def test_narrow_warps(device: Any, warp_size: int) -> None:
    require(device)
    y = np.zeros(128, np.int32)
    runtime.load(samples.narrow_warps(warp_size), device)(y)
    lane = np.arange(32) % warp_size
    first = np.arange(32) - lane
    up, down = np.maximum(lane - 1, 0), np.minimum(lane + 1, warp_size - 1)
    expected = [first + source for source in ((lane * 3 - 2) % warp_size, up, down, lane ^ 1)]
    assert np.array_equal(y, np.concatenate(expected) * 10)


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_coordinates(device: Any) -> None:
    require(device)
    n, thread = 3, np.arange(72)
    y = np.zeros(n * n * 2 * 72, np.int32)
    runtime.load(samples.coordinates(), device)(y, n=n)
    name = thread % 4 + 10 * (thread // 4 % 3) + 100 * (thread // 12)
    name += 1000 * (thread % 32) + 100_000 * (thread // 32)
    expected = name + 1_000_000 * np.arange(n * n * 2)[:, None]
    assert np.array_equal(y.reshape(-1, 72), expected)


@pytest.mark.sampled(1, each="device")
@pytest.mark.parametrize("device", HOST_DEVICES)
@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("int64", 2), ("uint8", 4)])
def test_wide_accesses(device: Any, dtype: str, width: int) -> None:
    require(device)
    kernel = runtime.load(samples.wide(DType(dtype), width), device)
    for threads in (1, 2, 63, 64, 65, 130):
        x = random(threads * width, dtype)
        y = kernel(x)
        padded = np.full(-(-threads // 2) * 2 * width, 7, dtype)
        padded[: x.size] = x
        swapped = padded.reshape(-1, 2, width)[:, ::-1].reshape(-1)[: x.size]
        assert np.array_equal(y, swapped)
