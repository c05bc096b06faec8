# ruff: noqa: N803 - constants are written in capitals there
"""Triton kernels as people write them; needs Triton, and no GPU."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    v = v / tl.sum(v, 0)
    tl.store(out + row * columns + i, v.to(out.dtype.element_ty), mask=i < columns)


@triton.jit
def layernorm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    v = tl.load(x + row * columns + i, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / columns
    centred = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    w = tl.load(weight + i, mask=inside).to(tl.float32)
    b = tl.load(bias + i, mask=inside).to(tl.float32)
    y = centred * scale * w + b
    tl.store(out + row * columns + i, y.to(out.dtype.element_ty), mask=inside)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside)
    kept = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(kept, v / (1 - p), 0.0).to(v.dtype), mask=inside)


@triton.jit
def matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        left = tl.load(
            a + i[:, None] * K + first + k[None, :],
            mask=(i[:, None] < M) & (first + k[None, :] < K), other=0.0,
        )  # fmt: skip
        right = tl.load(
            b + (first + k[:, None]) * N + j[None, :],
            mask=(first + k[:, None] < K) & (j[None, :] < N), other=0.0,
        )  # fmt: skip
        total = tl.dot(left, right, total)
    tl.store(
        c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty),
        mask=(i[:, None] < M) & (j[None, :] < N),
    )  # fmt: skip


@triton.jit
def attention(q, k, v, out, length, scale, BQ: tl.constexpr, BK: tl.constexpr, D: tl.constexpr):
    """Flash attention of one head: softmax(q kᵀ scale) v, a block of keys at a time."""
    rows = tl.program_id(0) * BQ + tl.arange(0, BQ)
    d = tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + d[None, :], mask=rows[:, None] < length, other=0.0)
    most = tl.full((BQ,), -1e30, tl.float32)
    norm = tl.zeros((BQ,), tl.float32)
    total = tl.zeros((BQ, D), tl.float32)
    for first in range(0, length, BK):
        columns = first + tl.arange(0, BK)
        inside = columns[:, None] < length
        keys = tl.load(k + columns[:, None] * D + d[None, :], mask=inside, other=0.0)
        score = tl.dot(queries, tl.trans(keys)) * scale
        score = tl.where(columns[None, :] < length, score, -1e30)
        now = tl.maximum(most, tl.max(score, 1))
        p = tl.exp(score - now[:, None])
        shrink = tl.exp(most - now)
        values = tl.load(v + columns[:, None] * D + d[None, :], mask=inside, other=0.0)
        total = total * shrink[:, None] + tl.dot(p.to(values.dtype), values)
        norm = norm * shrink + tl.sum(p, 1)
        most = now
    total = total / norm[:, None]
    tl.store(
        out + rows[:, None] * D + d[None, :], total.to(out.dtype.element_ty),
        mask=rows[:, None] < length,
    )  # fmt: skip


@triton.jit
def scan(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=0)
    tl.store(out + row * columns + i, tl.cumsum(v, 0), mask=i < columns)
