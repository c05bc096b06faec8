# ruff: noqa: N803 - constants are written in capitals there
"""More computations, those of `more.cu`, written for Triton; see `triton_kernels.py`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gelu(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    u = 0.79788456 * (v + 0.044715 * v * v * v)
    if KIND == 2:
        made = v * tl.sigmoid(1.702 * v)
    else:
        made = v / (1 + tl.exp(-2 * u if KIND == 0 else -u))
    tl.store(y + i, made, mask=i < n)


@triton.jit
def softplus(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if KIND == 2:
        made = tl.maximum(v, 0.0)
    else:
        made = tl.log((1.001 if KIND == 1 else 1.0) + tl.exp(v))
    tl.store(y + i, made, mask=i < n)


@triton.jit
def rope(x, c, s, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * 2 * n
    i = tl.arange(0, BLOCK)
    inside = i < n
    a, b = tl.load(x + row + i, mask=inside), tl.load(x + row + n + i, mask=inside)
    cosine, sine = tl.load(c + i, mask=inside), tl.load(s + i, mask=inside)
    tl.store(y + row + i, a * cosine - b * sine, mask=inside)
    if KIND == 0:
        tl.store(y + row + n + i, a * sine + b * cosine, mask=inside)
    elif KIND == 1:
        tl.store(y + row + n + i, a * cosine + b * sine, mask=inside)
    else:
        tl.store(y + row + n + i, b, mask=inside)


@triton.jit
def entropy(x, at, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    top = tl.max(v, 0)
    target = tl.load(x + row * n + tl.load(at + (0 if KIND == 1 else row)))
    if KIND == 2:
        tl.store(y + row, top - target)
    else:
        tl.store(y + row, top + tl.log(tl.sum(tl.exp(v - top), 0)) - target)


@triton.jit
def batch_norm(x, m, v, w, b, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < n
    at = tl.program_id(0) * n + i
    scale = tl.rsqrt(tl.load(v + i, mask=inside, other=1.0) + (1e-6 if KIND == 1 else 1e-5))
    scale *= tl.load(w + i, mask=inside)
    made = (tl.load(x + at, mask=inside) - tl.load(m + i, mask=inside)) * scale
    if KIND != 2:
        made += tl.load(b + i, mask=inside)
    tl.store(y + at, made, mask=inside)


@triton.jit
def unit(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=1.0 if KIND == 1 else 0.0)
    length = tl.sqrt(n.to(tl.float32)) if KIND == 2 else tl.sqrt(tl.sum(v * v, 0))
    tl.store(y + row * n + i, v / length, mask=i < n)


@triton.jit
def outer(a, b, c, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    s = tl.load(a + (0 if KIND == 2 else row))
    v = tl.load(b + (i ^ (i == 63).to(tl.int32) if KIND == 1 else i), mask=i < n)
    tl.store(c + row * n + i, s * v, mask=i < n)


@triton.jit
def matvec(a, x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Four rows a program."""
    row = tl.program_id(0) * 4 + tl.arange(0, 4)
    total = tl.zeros((4,), tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        part = tl.load(a + row[:, None] * n + i[None, :], mask=(i < n)[None, :], other=0.0)
        v = tl.load(x + (i - first if KIND == 1 else i), mask=i < n, other=0.0)
        total += tl.sum(part * v[None, :], 1)
    tl.store(y + (row & -2 if KIND == 2 else row), total)


@triton.jit
def tiled(a, b, c, n, depth, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, 16)
    inside = (k < (depth - 1 if KIND == 2 else depth))[None, :]
    left = tl.load(a + i[:, None] * depth + k[None, :], mask=inside, other=0.0)
    right = tl.load(b + j[:, None] * depth + k[None, :], mask=inside, other=0.0)
    made = tl.sum(left[:, None, :] * right[None, :, :], 2)
    tl.store(c + i[:, None] * n + j[None, :], tl.trans(made) if KIND == 1 else made)


@triton.jit
def batched(a, b, c, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(0) * n * n
    i, j, k = tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    left = tl.load(a + batch + i[:, None] * n + k[None, :])
    right = tl.load(b + (0 if KIND == 1 else batch) + k[:, None] * n + j[None, :])
    made = tl.sum(left[:, :, None] * right[None, :, :], 1)
    if KIND == 2:
        made = tl.where(tl.program_id(0) == 2, right, made)
    tl.store(c + batch + i[:, None] * n + j[None, :], made)


@triton.jit
def taps(x, w, y, rows, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n - 2
    total = tl.zeros((BLOCK,), tl.float32)
    for p in tl.static_range(3):
        for q in tl.static_range(2 if KIND == 2 else 3):
            scale = tl.load(w + (q * 3 + p if KIND == 1 else p * 3 + q))
            total += scale * tl.load(x + (row + p) * n + i + q, mask=inside, other=0.0)
    tl.store(y + row * (n - 2) + i, total, mask=inside)


@triton.jit
def pooled(x, row, n, i):
    inside = i < n // 2
    at = x + 2 * row * n + 2 * i
    a, b = tl.load(at, mask=inside), tl.load(at + 1, mask=inside)
    return inside, a, b, tl.load(at + n, mask=inside), tl.load(at + n + 1, mask=inside)


@triton.jit
def mean_pool(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside, a, b, c, d = pooled(x, row, n, i)
    total = a + b + c + (c if KIND == 1 else d)
    tl.store(y + row * (n // 2) + i, a if KIND == 2 else total / 4, mask=inside)


@triton.jit
def max_pool(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside, a, b, c, d = pooled(x, row, n, i)
    below = tl.maximum(c, c if KIND == 1 else d)
    made = a + b if KIND == 2 else tl.maximum(tl.maximum(a, b), below)
    tl.store(y + row * (n // 2) + i, made, mask=inside)


@triton.jit
def embed(table, at, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    place = row if KIND == 2 else tl.load(at + row)
    v = tl.load(table + place * n + i, mask=i < n)
    tl.store(y + row * n + i, v * (5.65 if KIND == 1 else 5.6568542), mask=i < n)


@triton.jit
def block_scan(x, y, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    made = tl.cumsum(v, 0)
    if KIND == 1:
        made = made - v
    elif KIND == 2:
        made = tl.where(i < 32, made, v)
    tl.store(y + i, made)


@triton.jit
def columns(x, y, rows, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(1 if KIND == 1 else 0, rows):
        total += tl.load(x + (0 if KIND == 2 else k * n) + i, mask=i < n, other=0.0)
    tl.store(y + i, total, mask=i < n)


@triton.jit
def swiglu(x, z, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v, gate = tl.load(x + i, mask=i < n), tl.load(z + i, mask=i < n)
    if KIND == 1:
        made = gate * tl.sigmoid(gate) * v
    else:
        made = v * tl.sigmoid(v) * (1.0 if KIND == 2 else gate)
    tl.store(y + i, made, mask=i < n)


@triton.jit
def causal(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    have = (i < row) | ((i == row) & (row < 33)) if KIND == 1 else i <= row
    v = tl.load(x + row * n + i, mask=(i < n) & have, other=-float("inf"))
    made = tl.exp(v - tl.max(v, 0))
    made = made / tl.sum(made, 0)
    if KIND == 2:
        made = tl.where(have, 1.0, 0.0) / (row + 1)
    tl.store(y + row * n + i, made, mask=i < n)


@triton.jit
def adam(p, g, m, v, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    d = tl.load(g + i, mask=inside)
    a = 0.875 * tl.load(m + i, mask=inside) + 0.125 * d
    b = 0.96875 * tl.load(v + i, mask=inside) + (0.03 if KIND == 1 else 0.03125) * d * d
    step = 0.0009765625 * a / (tl.sqrt(b) + 1e-8)
    if KIND == 2:
        step = 0.0009765625 * d
    tl.store(p + i, tl.load(p + i, mask=inside) - step, mask=inside)
    tl.store(m + i, a, mask=inside)
    tl.store(v + i, b, mask=inside)


@triton.jit
def half_axpy(x, y, a, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v, before = tl.load(x + i, mask=inside).to(tl.float32), tl.load(y + i, mask=inside)
    scale = a.to(tl.int32).to(tl.float32) if KIND == 2 else a
    made = scale * v + (before.to(tl.float32) if KIND != 1 else before.to(tl.float32) * a)
    tl.store(y + i, made.to(tl.float16), mask=inside)
