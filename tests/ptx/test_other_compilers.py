"""PTX as clang, numba and Triton write it runs and computes what its source says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom import ptx

GOLDEN = Path(__file__).parent / "golden"


def load(name: str) -> ptx.LoadedModule:
    path = GOLDEN / name
    return ptx.load(path.read_bytes().decode(), path.name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_clang(rng: np.random.Generator) -> None:
    module = load("clang/kernels.ptx")
    x, y = rng.random(300, np.float32), rng.random(300, np.float32)
    want = (np.float64(2) * x + y).astype(np.float32)
    module.kernel("axpy").launch(3, 128, [np.float32(2), x, y, 300])
    np.testing.assert_array_equal(y, want)
    values = rng.integers(0, 99, 256, dtype=np.int32)
    out = np.zeros_like(values)
    module.kernel("reverse").launch(2, 128, [values, out], races=True)
    assert out.tolist() == values.reshape(2, 128)[:, ::-1].reshape(-1).tolist()
    base, exponent = (
        rng.integers(1, 4, 100).astype(np.float64),
        rng.integers(0, 20, 100, dtype=np.int32),
    )
    powers = np.zeros(100)
    module.kernel("powers").launch(2, 32, [base, exponent, powers, 100])
    assert powers.tolist() == (base**exponent).tolist()
    module.kernel("classify").launch(1, 256, [values, out, 250])
    classes = [_classify(int(v)) for v in values[:250]]
    assert out[:250].tolist() == classes


def _classify(v: int) -> int:
    return {0: 10, 1: v * 3, 2: v // 7, 3: v % 5, 4: -v, 5: 99}.get(v & 7, v >> 2)


def as_numba(array: np.ndarray) -> list[Any]:
    """An array as numba passes it: meminfo, parent, items, item size, data, size, stride."""
    return [None, None, array.size, array.itemsize, array, array.size, array.itemsize]


def test_numba(rng: np.random.Generator) -> None:
    x, y = rng.random(100, np.float32), rng.random(100, np.float32)
    want = (np.float64(3) * x + y).astype(np.float32)
    load("numba/axpy.ptx").kernel().launch(4, 32, [np.float32(3), *as_numba(x), *as_numba(y)])
    np.testing.assert_array_equal(y, want)
    values = rng.integers(0, 99, 256).astype(np.float32)
    sums = np.zeros(4, np.float32)
    load("numba/blocksum.ptx").kernel().launch(
        4, 64, [*as_numba(values), *as_numba(sums)], races=True
    )
    assert sums.tolist() == values.reshape(4, 64).sum(axis=1).tolist()


def test_triton(rng: np.random.Generator) -> None:
    x, y, out = (rng.random(1000, np.float32) for _ in range(3))
    kernel = load("triton/add.ptx").kernel()
    scratch: list[Any] = [None] * (len(kernel.function.parameters) - 4)
    kernel.launch(4, 128, [x, y, out, 1000, *scratch])
    np.testing.assert_array_equal(out, x + y)
    rows = rng.normal(size=(5, 100)).astype(np.float32)
    out = np.zeros_like(rows)
    kernel = load("triton/softmax.ptx").kernel()
    scratch = [None] * (len(kernel.function.parameters) - 3)
    kernel.launch(5, 128, [rows, out, 100, *scratch], shared_bytes=1024)
    powers = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_tensor_cores_multiply() -> None:
    kernel = load("triton/matmul.ptx").kernel()
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, (32, 32)).astype(np.float16) for _ in range(2))
    out = np.zeros((32, 32), np.float32)
    scratch: list[Any] = [None] * (len(kernel.function.parameters) - 4)
    kernel.launch((1, 1), 128, [a, b, out, 32, *scratch], shared_bytes=16384)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
