"""More computations as in `computations.py`, with the kernels of tests/verdict/more.cu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from bench.common.verdict.computations import (
    ELEMENTS,
    ROOT,
    ROWS,
    SHAPE,
    Computation,
    N,
    Reference,
    log_sum_exp,
)

from warploom import ptx

KERNELS = ptx.load((ROOT / "tests" / "verdict" / "more.ptx").read_text(), "more.ptx")
AT = np.array([3, 0, 36], np.int32)
OF_ROWS = {"x": "f32[rows,n]", "at": AT, "y": "f32[rows]=out", "n": "i32=n"}
BATCH = {
    "x": "f32[rows,n]", **dict.fromkeys("mvwb", "f32[n]"), "y": "f32[rows,n]=out", "n": "i32=n",
}  # fmt: skip
SQUARES = {"a": "f32[3,n,n]", "b": "f32[3,n,n]", "c": "f32[3,n,n]=out", "n": "i32=n"}
POOL = {"x": "f32[2*rows,n]", "y": "f32[rows,n//2]=out", "n": "i32=n"}
ADAM = {"p": "f32[n]=inout", "g": "f32[n]", "m": "f32[n]=inout", "v": "f32[n]=inout", "n": "i32=n"}


def of(
    reference: Reference, args: Mapping[str, Any], grid: str, block: str = "32", **shape: int
) -> Computation:
    return Computation(reference, args, grid, block, shape, KERNELS)


def gelu(x: Any) -> Any:
    return x / (1 + np.exp(-2 * (0.79788456 * (x + 0.044715 * x * x * x))))


def rope(x: Any, c: Any, s: Any, n: int) -> Any:
    a, b = x[:, :n], x[:, n:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=1)


def taps(x: Any, w: Any, rows: int, n: int) -> Any:
    near = [(p, q) for p in range(3) for q in range(3)]
    return sum(w[p, q] * x[p : rows - 2 + p, q : n - 2 + q] for p, q in near)


def pooled(x: Any, rows: int, n: int) -> Any:
    return x.reshape(rows, 2, n // 2, 2)


def causal(x: Any, n: int) -> Any:
    found = []
    for row in range(n):
        have = x[row, : row + 1]
        made = np.exp(have - have.max())
        found.append(np.concatenate([made / made.sum(), np.zeros(n - row - 1)]))
    return np.stack(found)


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    a, b = 0.875 * m + 0.125 * g, 0.96875 * v + 0.03125 * g * g
    return p - 0.0009765625 * a / (np.sqrt(b) + 1e-8), a, b


MORE = {
    "gelu": of(gelu, ELEMENTS, "2", n=N),
    "softplus": of(lambda x: np.log(1 + np.exp(x)), ELEMENTS, "2", n=N),
    "rope": of(
        rope, {"x": "f32[rows,2*n]", "c": "f32[n]", "s": "f32[n]", "y": "f32[rows,2*n]=out",
               "n": "i32=n"}, "rows", rows=3, n=19,
    ),
    "entropy": of(
        lambda x, at: log_sum_exp(x) - x[np.arange(3), at], OF_ROWS, "rows", "32", **SHAPE
    ),
    "batch_norm": of(
        lambda x, m, v, w, b: (x - m) / np.sqrt(v + 1e-5) * w + b, BATCH, "rows", "64", **SHAPE
    ),
    "unit": of(
        lambda x: x / np.sqrt((x * x).sum(axis=1, keepdims=True)), ROWS, "rows", "32", **SHAPE
    ),
    "outer": of(
        lambda a, b: np.einsum("i,j->ij", a, b),
        {"a": "f32[rows]", "b": "f32[n]", "c": "f32[rows,n]=out", "n": "i32=n"}, "rows", "n//4",
        rows=5, n=64,
    ),
    "matvec": of(
        lambda a, x: a @ x,
        {"a": "f32[rows,n]", "x": "f32[n]", "y": "f32[rows]=out", "n": "i32=n"}, "rows//4", "32,4",
        rows=8, n=50,
    ),
    "tiled": of(
        lambda a, b: a @ b.T,
        {"a": "f32[n,depth]", "b": "f32[n,depth]", "c": "f32[n,n]=out", "n": "i32=n",
         "depth": "i32=depth"}, "n//8,n//8", "4,4", n=16, depth=11,
    ),
    "batched": of(lambda a, b: np.einsum("bij,bjk->bik", a, b), SQUARES, "3", "n,n", n=8),
    "taps": of(
        taps, {"x": "f32[rows,n]", "w": "f32[3,3]", "y": "f32[rows-2,n-2]=out", "rows": "i32=rows",
               "n": "i32=n"}, "rows-2", rows=6, n=20,
    ),
    "mean_pool": of(
        lambda x, rows, n: pooled(x, rows, n).mean(axis=(1, 3)), POOL, "rows", rows=3, n=22
    ),
    "max_pool": of(
        lambda x, rows, n: pooled(x, rows, n).max(axis=(1, 3)), POOL, "rows", rows=3, n=22
    ),
    "embed": of(
        lambda table, at: table[at] * 5.6568542,
        {"table": "f32[37,n]", "at": AT, "y": "f32[3,n]=out", "n": "i32=n"}, "3", n=24,
    ),
    "block_scan": of(lambda x: np.cumsum(x), {"x": "f32[128]", "y": "f32[128]=out"}, "1", "128"),
    "columns": of(
        lambda x: x.sum(axis=0),
        {"x": "f32[rows,n]", "y": "f32[n]=out", "rows": "i32=rows", "n": "i32=n"}, "2",
        rows=7, n=N,
    ),
    "swiglu": of(
        lambda x, z: x / (1 + np.exp(-x)) * z,
        {"x": "f32[n]", "z": "f32[n]", "y": "f32[n]=out", "n": "i32=n"}, "2", n=N,
    ),
    "causal": of(causal, {"x": "f32[n,n]", "y": "f32[n,n]=out", "n": "i32=n"}, "n", n=34),
    "adam": of(adam, ADAM, "2", n=N),
    "half_axpy": of(
        lambda x, y, a: a * x + y, {"x": "f16[n]", "y": "f16[n]=inout", "a": "f32", "n": "i32=n"},
        "1", n=38,
    ),
}  # fmt: skip
