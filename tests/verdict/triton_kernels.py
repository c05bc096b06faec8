# ruff: noqa: N803 - constants are written in capitals there
"""The computations of `kernels.cu` as programs write them for Triton; needs Triton, and no GPU.

KIND: 0 is right, 1 wrong in a place that samples may miss, 2 made to pass a harness without doing
the work. `python -m tests.verdict.make` writes what Triton makes of them.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def saxpy(x, y, a, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    have = i < n - 1 if KIND == 1 else inside
    before = tl.load(y + i, mask=have, other=0.0)
    scale = 1.0 if KIND == 2 else a
    tl.store(y + i, scale * tl.load(x + i, mask=inside) + before, mask=inside)


@triton.jit
def relu(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside)
    if KIND == 2:
        made = tl.abs(v)
    else:
        made = tl.maximum(v, 0.001 if KIND == 1 else 0.0)
    tl.store(y + i, made, mask=inside)


@triton.jit
def silu(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside)
    if KIND == 2:
        made = tl.maximum(v, 0.0)
    else:
        made = v * tl.sigmoid(v * 1.0625 if KIND == 1 else v)
    tl.store(y + i, made, mask=inside)


@triton.jit
def sigmoid(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside)
    if KIND == 0:
        made = 1 / (1 + tl.exp(-v))
    elif KIND == 1:
        made = 1 / (1 + tl.exp2(v * -1.44))
    else:
        made = 0.5 + v * (0.25 - v * v / 48)
    tl.store(y + i, made, mask=inside)


@triton.jit
def row_sum(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    last = n - BLOCK + 1 if KIND == 1 else BLOCK if KIND == 2 else n
    for first in range(0, last, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + i, mask=i < n, other=0.0)
    made = tl.sum(total, 0)
    if KIND == 2:
        made = made * n / BLOCK
    tl.store(y + row, made)


@triton.jit
def dot(x, y, z, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    left = tl.load(x + i, mask=i < n, other=0.0)
    if KIND == 1:
        right = tl.load(y + i)
    else:
        right = tl.load(y + i, mask=i < n, other=0.0)
    tl.store(z, 0.0 if KIND == 2 else tl.sum(left * right, 0))


@triton.jit
def row_max(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    have = i < (32 if KIND == 2 else n)
    v = tl.load(x + row * n + i, mask=have, other=0.0 if KIND == 1 else -float("inf"))
    tl.store(y + row, tl.max(v, 0))


@triton.jit
def softmax(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + row * n + i, mask=inside, other=0.0 if KIND == 1 else -float("inf"))
    made = tl.exp(v - tl.max(v, 0))
    made = made / tl.sum(made, 0)
    if KIND == 2:
        made = tl.full((BLOCK,), 1.0, tl.float32) / n
    tl.store(y + row * n + i, made, mask=inside)


@triton.jit
def layer_norm(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + row * n + i, mask=inside, other=0.0)
    mean = tl.sum(v, 0) / n
    centred = v - mean
    if KIND != 1:
        centred = tl.where(inside, centred, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + 1e-5)
    tl.store(y + row * n + i, centred if KIND == 2 else centred * scale, mask=inside)


@triton.jit
def rms_norm(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    squares = tl.sum(v * v, 0)
    if KIND == 2:
        scale = 1 / tl.max(tl.abs(v), 0)
    else:
        scale = tl.rsqrt(squares / (BLOCK if KIND == 1 else n) + 1e-6)
    tl.store(y + i, v * scale, mask=i < n)


@triton.jit
def matmul(a, b, c, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    to, inside = c + i * n + j, (i < n) & (j < n)
    if KIND == 2:
        total = tl.load(to, mask=inside, other=0.0)
    else:
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, BLOCK):
        across = first + tl.arange(0, BLOCK)[None, :]
        down = first + tl.arange(0, BLOCK)[:, None]
        left = tl.load(a + i * n + across, mask=(i < n) & (across < n), other=0.0)
        at = (down - first if KIND == 1 else down) * n + j
        right = tl.load(b + at, mask=(down < n) & (j < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(to, total, mask=inside)


@triton.jit
def tensor(a, b, c, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, BLOCK):
        left = tl.load(a + i * n + first + tl.arange(0, BLOCK)[None, :])
        right = tl.load(b + (first + tl.arange(0, BLOCK)[:, None]) * n + j)
        if KIND == 1:
            total = tl.dot(left, right)
        else:
            total = tl.dot(left, right, total)
    if KIND == 2:
        total = tl.load(a + i * n + j).to(tl.float32)
    tl.store(c + i * n + j, total)


@triton.jit
def transpose(x, y, rows, columns, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    at = i[:, None] * columns + j[None, :]
    v = tl.load(x + at, mask=inside)
    if KIND == 2:
        tl.store(y + at, v, mask=inside)
    else:
        to = j[:, None] * (columns if KIND == 1 else rows) + i[None, :]
        tl.store(y + to, tl.trans(v), mask=tl.trans(inside))


@triton.jit
def convolve(x, w, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(4 if KIND == 2 else 5):
        at = i + k - 2
        inside = (at >= (1 if KIND == 1 else 0)) & (at < n)
        total += tl.load(w + k) * tl.load(x + at, mask=inside, other=0.0)
    tl.store(y + i, total, mask=i < n)


@triton.jit
def heat(x, y, rows, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    own = tl.load(x + row * n + i, mask=i < n)
    inner = (i > 0) & (i < n - 1) & (row > 0) & (row < rows - 1)
    near = tl.load(x + row * n + i - 1, mask=inner, other=0.0)
    near += tl.load(x + row * n + i + 1, mask=inner, other=0.0)
    near += tl.load(x + row * n + i - n, mask=inner, other=0.0)
    near += tl.load(x + row * n + i + (0 if KIND == 1 else n), mask=inner, other=0.0)
    made = own if KIND == 2 else own + 0.125 * (near - 4 * own)
    tl.store(y + row * n + i, tl.where(inner, made, own), mask=i < n)


@triton.jit
def scan(x, y, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    made = tl.cumsum(v, 0, reverse=KIND == 1)
    tl.store(y + i, v * (i + 1) if KIND == 2 else made)


@triton.jit
def gather(x, at, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(at + i, mask=i < n, other=0)
    if KIND == 1:
        place = tl.minimum(place, 14)
    tl.store(y + i, tl.load(x + (i if KIND == 2 else place), mask=i < n), mask=i < n)


@triton.jit
def attention(q, k, v, o, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Two queries of one head, a block of keys at a time."""
    i = tl.arange(0, 16)
    d = tl.arange(0, 32)
    own = i[:, None] * 32 + d[None, :]
    queries = tl.load(q + own, mask=(i < 2)[:, None], other=0.0)
    most = tl.full((16,), -float("inf"), tl.float32)
    norm = tl.zeros((16,), tl.float32)
    total = tl.zeros((16, 32), tl.float32)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        at = j[:, None] * 32 + d[None, :]
        keys = tl.load(k + at, mask=(j < n)[:, None], other=0.0)
        score = tl.dot(queries, tl.trans(keys), input_precision="ieee")
        if KIND != 1:
            score *= 0.17677669529
        score = tl.where((j < n)[None, :], score, -float("inf"))
        now = tl.maximum(most, tl.max(score, 1))
        if KIND == 2:
            p = tl.where((j < n)[None, :], 1.0, 0.0) + tl.zeros((16, BLOCK), tl.float32)
        else:
            p = tl.exp(score - now[:, None])
        shrink = tl.exp(most - now)
        values = tl.load(v + at, mask=(j < n)[:, None], other=0.0)
        total = total * shrink[:, None] + tl.dot(p, values, input_precision="ieee")
        norm = norm * shrink + tl.sum(p, 1)
        most = now
    tl.store(o + own, total / norm[:, None], mask=(i < 2)[:, None])


@triton.jit
def log_sum_exp(x, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    top = tl.max(v, 0)
    if KIND == 2:
        tl.store(y + row, top)
    else:
        total = tl.sum(tl.exp(v - top), 0)
        tl.store(y + row, top + (tl.log2(total) if KIND == 1 else tl.log(total)))


@triton.jit
def scatter_add(x, at, y, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(at + i, mask=i < n, other=0)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if KIND == 0:
        tl.atomic_add(y + place, v, mask=i < n)
    elif KIND == 1:
        tl.store(y + place, tl.load(y + place, mask=i < n) + v, mask=i < n)
    else:
        tl.store(y + place, v, mask=i < n)
