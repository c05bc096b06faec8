"""Launches of kernels that others' compilers made, and what NumPy says they give.

One table for both: kept PTX (`kept/`, run by `make test`) and live compilers (`make accept`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

Args = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """`make(rng, dtype, size)` gives arguments by name, the name of the result, and its values."""

    name: str
    settings: dict[str, int]
    grid: Callable[[Args], tuple[int, ...]]
    make: Callable[[np.random.Generator, Any, int], tuple[Args, str, Any]]
    dtypes: tuple[str, str] = ("float32", "float16")
    sizes: tuple[int, int] = (777, 129)
    tolerance: tuple[float, float] = (2e-6, 2e-3)  # of each type
    options: tuple[tuple[str, int], ...] = ()

    def close(self, found: Any, wanted: Any, dtype: str) -> None:
        if np.dtype(dtype).kind in "iu":
            np.testing.assert_array_equal(found, wanted)
            return
        bound = self.tolerance[self.dtypes.index(dtype)]
        wide = found.astype(np.float64)
        np.testing.assert_allclose(wide, wanted.astype(np.float64), rtol=bound, atol=bound)


def _rows(rng: np.random.Generator, dtype: Any, size: int) -> Any:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-50, 50, (5, size)).astype(dtype)
    return rng.normal(size=(5, size)).astype(dtype)


def _add(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    x, y = (_rows(rng, dtype, size)[0] for _ in range(2))
    return {"x": x, "y": y, "out": np.zeros_like(x), "n": size}, "out", x + y


def _softmax(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    x = _rows(rng, dtype, size)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    args = {"x": x, "out": np.zeros_like(x), "columns": size}
    return args, "out", powers / powers.sum(axis=1, keepdims=True)


def _layernorm(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    x = _rows(rng, dtype, size)
    weight, bias = (_rows(rng, dtype, size)[0] for _ in range(2))
    wide = x.astype(np.float64)
    scale = np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    wanted = (wide - wide.mean(axis=1, keepdims=True)) / scale * weight + bias
    args = {"x": x, "weight": weight, "bias": bias, "out": np.zeros_like(x), "columns": size,
            "eps": 1e-5}  # fmt: skip
    return args, "out", wanted


def _dropout(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    x = _rows(rng, dtype, size)[0]
    p, seed = 0.3, 7
    kept = philox(seed, np.arange(size)) > np.float32(p)
    wanted = np.where(kept, x.astype(np.float64) / (1 - p), 0.0)
    args = {"x": x, "out": np.ones_like(x), "n": size, "p": p, "seed": seed}
    return args, "out", wanted


def philox(seed: int, offset: Any) -> Any:
    """Triton's `rand`: ten rounds of Philox 4×32, the first word as a number below one."""
    c = [offset.astype(np.uint64), *(np.zeros_like(offset, np.uint64) for _ in range(3))]
    keys, low = [seed, 0], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(keys[0]), second & low,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(keys[1]), first & low,
        ]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    word = c[0].astype(np.uint32).view(np.int32)
    return np.where(word < 0, -(word + 1), word).astype(np.float32) * np.float32(4.6566127342e-10)


def _matmul(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    m, n, k = size, size - 16, 80
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    args = {"a": a, "b": b, "c": np.zeros((m, n), np.float32), "M": m, "N": n, "K": k}
    return args, "c", a.astype(np.float64) @ b.astype(np.float64)


def _attention(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    q, k, v = (rng.normal(size=(size, 32)).astype(dtype) for _ in range(3))
    wide = [each.astype(np.float64) for each in (q, k, v)]
    score = wide[0] @ wide[1].T * 0.25
    powers = np.exp(score - score.max(axis=1, keepdims=True))
    wanted = powers / powers.sum(axis=1, keepdims=True) @ wide[2]
    args = {"q": q, "k": k, "v": v, "out": np.zeros((size, 32), np.float32), "length": size,
            "scale": 0.25}  # fmt: skip
    return args, "out", wanted


def _scan(rng: np.random.Generator, dtype: Any, size: int) -> tuple[Args, str, Any]:
    x = _rows(rng, dtype, size)
    return {"x": x, "out": np.zeros_like(x), "columns": size}, "out", np.cumsum(x, axis=1, dtype=(
        np.float64 if np.dtype(dtype).kind == "f" else dtype))  # fmt: skip


def _rowwise(_: Args) -> tuple[int, ...]:
    return (5,)


def _blocked(block: int) -> Callable[[Args], tuple[int, ...]]:
    return lambda args: (ceil(args["n"] / block),)


TRITON = (
    Case("add", {"BLOCK": 256}, _blocked(256), _add, ("float32", "int64"), tolerance=(0, 0)),
    Case("softmax", {"BLOCK": 1024}, _rowwise, _softmax),
    Case("layernorm", {"BLOCK": 1024}, _rowwise, _layernorm, tolerance=(1e-5, 1e-2)),
    Case("dropout", {"BLOCK": 256}, _blocked(256), _dropout, tolerance=(1e-6, 2e-3)),
    Case("matmul", {"BM": 64, "BN": 32, "BK": 32},
         lambda a: (ceil(a["M"] / 64), ceil(a["N"] / 32)), _matmul, ("float16", "float32"),
         (100, 40), (1e-4, 3e-2)),
    Case("attention", {"BQ": 64, "BK": 32, "D": 32}, lambda a: (ceil(a["length"] / 64),),
         _attention, ("float16", "float32"), (100, 40), (5e-3, 1e-2)),
    Case("scan", {"BLOCK": 1024}, _rowwise, _scan, ("float32", "int32"), tolerance=(3e-5, 0)),
)  # fmt: skip


def _axpy(rng: np.random.Generator, dtype: Any) -> tuple[list[Any], Any, Any]:
    x, y = (rng.normal(size=1000).astype(dtype) for _ in range(2))
    a = np.dtype(dtype).type(2.5)
    wide = a * x.astype(np.longdouble) + y
    return [a, x, y], y, wide.astype(dtype)


def _block_sums(rng: np.random.Generator, dtype: Any) -> tuple[list[Any], Any, Any]:
    x = rng.integers(-9, 9, 1000).astype(dtype)
    out = np.zeros(16, dtype)
    return [x, out], out, np.append(x, np.zeros(24, dtype)).reshape(16, 64).sum(axis=1)


def _histogram(rng: np.random.Generator, dtype: Any) -> tuple[list[Any], Any, Any]:
    x = rng.integers(0, 17, 1000).astype(dtype)
    bins = np.zeros(17, dtype)
    return [x, bins], bins, np.bincount(x, minlength=17)


def _logistic(rng: np.random.Generator, dtype: Any) -> tuple[list[Any], Any, Any]:
    x = rng.normal(size=1000).astype(dtype)
    out = np.zeros_like(x)
    return [x, out], out, 1 / (1 + np.exp(-x.astype(np.float64)))


def _transpose(rng: np.random.Generator, dtype: Any) -> tuple[list[Any], Any, Any]:
    x = rng.normal(size=(30, 21)).astype(dtype)
    out = np.zeros((21, 30), dtype)
    return [x, out], out, x.T.copy()


@dataclass(frozen=True)
class NumbaCase:
    """`make(rng, dtype)` gives the arguments, the result among them, and what it should be."""

    make: Callable[[np.random.Generator, Any], tuple[list[Any], Any, Any]]
    dtype: str
    shape: tuple[Any, Any]
    tolerance: float = 0.0


NUMBA = {
    "axpy": NumbaCase(_axpy, "float32", (16, 64), 1e-6),
    "axpy_f64": NumbaCase(_axpy, "float64", (16, 64), 1e-15),
    "transpose": NumbaCase(_transpose, "float32", ((4, 3), (8, 8))),
    "block_sums": NumbaCase(_block_sums, "float64", (16, 64)),
    "block_sums_f32": NumbaCase(_block_sums, "float32", (16, 64)),
    "histogram": NumbaCase(_histogram, "int32", (16, 64)),
    "histogram_i64": NumbaCase(_histogram, "int64", (16, 64)),
    "logistic": NumbaCase(_logistic, "float64", (3, 64), 1e-13),
    "logistic_f32": NumbaCase(_logistic, "float32", (3, 64), 2e-6),
}
