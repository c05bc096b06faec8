"""NumPy, the evaluator, C by the system's compiler, OpenCL and the compiler's PTX all agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kernel import kernels as samples

from warploom import ptx, runtime
from warploom.runtime.compile import can_compile
from warploom.runtime.host import c_compiler

HOST_DEVICES = ("simulator", "c", "opencl", "ptx")
SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500)


def require(device: str) -> None:
    if device == "c" and c_compiler() is None:
        pytest.skip("no C compiler")
    if device == "opencl":
        cl = pytest.importorskip("pyopencl")
        if not cl.get_platforms():
            pytest.skip("no OpenCL platform")
    if device == "ptx" and not (can_compile() and hasattr(ptx, "load")):
        pytest.skip("no CUDA compiler")


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


@pytest.mark.parametrize("device", HOST_DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint8"])
def test_aos_to_soa(device: Any, dtype: str) -> None:
    require(device)
    kernel = runtime.load(samples.aos_to_soa(samples.DType(dtype)), device)
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
