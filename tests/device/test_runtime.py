"""Kernels on a GPU agree with NumPy, on torch and CuPy arrays as they are, and can be timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.kernel import kernels

from warploom import runtime
from warploom.errors import DeviceError
from warploom.runtime import gpu
from warploom.runtime.measure import copy_ceiling, measure, rotation

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(gpu.gpu_name() is None, reason="no GPU"),
]
SIZES = (1, 31, 32, 33, 64, 127, 500, 100_003)


def on_gpu(library: str, array: Any) -> Any:
    module = pytest.importorskip(library)
    return module.from_numpy(array).cuda() if library == "torch" else module.asarray(array)


def on_host(array: Any) -> Any:
    return array.cpu().numpy() if hasattr(array, "cpu") else array.get()


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_stencil_and_aos(library: str) -> None:
    stencil, aos = runtime.load(kernels.stencil()), runtime.load(kernels.aos_to_soa(), "cuda")
    for n in SIZES:
        x = np.random.default_rng(n).random(n + 2, dtype=np.float32)
        y = stencil(on_gpu(library, x))
        assert type(y).__module__.startswith(library)
        np.testing.assert_allclose(on_host(y), (x[:-2] + x[1:-1] + x[2:]) / 3, rtol=1e-5)
        x = np.arange(3 * n, dtype=np.float32)
        soa = on_host(aos(on_gpu(library, x)))
        assert np.array_equal(soa.reshape(3, n), x.reshape(n, 3).T)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_transpose_in_place_of_given_arrays(library: str) -> None:
    kernel = runtime.load(kernels.transpose())
    for height, width in [(1, 1), (33, 31), (500, 7), (64, 64)]:
        x = np.random.default_rng(height).random((height, width), dtype=np.float32)
        y = on_gpu(library, np.zeros((width, height), np.float32))
        assert kernel(on_gpu(library, x), y, height=height, width=width) is y
        assert np.array_equal(on_host(y), x.T)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_constant_weights_are_passed_by_value(library: str) -> None:
    weights = np.array([0.5, 2, -1], np.float32)
    x = np.random.default_rng(1).random(1000, dtype=np.float32)
    y = runtime.load(kernels.convolution())(on_gpu(library, x), weights)
    expected = sum(w * np.roll(x, 1 - d) for d, w in enumerate(weights))
    np.testing.assert_allclose(on_host(y), expected, rtol=1e-4, atol=1e-5)


def test_a_slice_that_is_not_aligned() -> None:
    cupy = pytest.importorskip("cupy")
    y = cupy.zeros(1001, "float32")[1:]
    with pytest.raises(DeviceError, match="'y' does not start at a multiple of 16 bytes"):
        runtime.load(kernels.convolution())(cupy.zeros(1000, "float32"), y, np.ones(3, np.float32))


def test_timing() -> None:
    cupy = pytest.importorskip("cupy")
    n, kernel = 1 << 24, runtime.load(kernels.aos_to_soa())
    bytes_moved = n * 3 * 4 * 2
    launches = [
        kernel.prepare(cupy.zeros(3 * n, "float32"), cupy.zeros(3 * n, "float32"))
        for _ in range(rotation(bytes_moved))
    ]
    rate = measure(launches).rate(bytes_moved)
    ceiling, _ = copy_ceiling(bytes_moved)
    assert 0.2 < rate / ceiling < 1.3
