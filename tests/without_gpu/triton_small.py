# ruff: noqa: N803 - constants are written in capitals there
"""Triton kernels whose blocks have fewer elements than threads, one row a program.

Threads without an element of their own repeat what another does: they load too, and hold the same
sums, but for the rounding of products that the compiler fuses. The last ten have races.
"""

from __future__ import annotations

import triton
import triton.language as tl

# -- element by element, in place -----------------------------------------------------------------


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i))


@triton.jit
def axpy(x, y, n, a, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    inside = c < n
    tl.store(y + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def bump(x, n, BLOCK: tl.constexpr):
    """One number a program, which all threads load."""
    row = tl.program_id(0)
    tl.store(x + row, tl.load(x + row) + 1)


@triton.jit
def relu(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=0.0)
    tl.store(x + i, tl.where(v > 0, v, 0.0), mask=c < n)


@triton.jit
def silu(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=0.0)
    tl.store(x + i, v * tl.sigmoid(v), mask=c < n)


@triton.jit
def dropout(x, n, p, seed, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=0.0)
    tl.store(x + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0), mask=c < n)


@triton.jit
def rotary(x, cosine, sine, n, BLOCK: tl.constexpr):
    """Both halves of a row, turned against each other."""
    c = tl.arange(0, BLOCK)
    inside = c < n // 2
    first = x + tl.program_id(0) * n + c
    second = first + n // 2
    u, v = tl.load(first, mask=inside), tl.load(second, mask=inside)
    t, s = tl.load(cosine + c, mask=inside), tl.load(sine + c, mask=inside)
    tl.store(first, u * t - v * s, mask=inside)
    tl.store(second, v * t + u * s, mask=inside)


@triton.jit
def swap(x, n, BLOCK: tl.constexpr):
    """Both halves of a row change places: each thread holds both."""
    c = tl.arange(0, BLOCK)
    inside = c < n // 2
    first = x + tl.program_id(0) * n + c
    u, v = tl.load(first, mask=inside), tl.load(first + n // 2, mask=inside)
    tl.store(first, v, mask=inside)
    tl.store(first + n // 2, u, mask=inside)


@triton.jit
def adam(p, g, m, v, n, rate, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    inside = c < n
    slope = tl.load(g + i, mask=inside)
    first = 0.9 * tl.load(m + i, mask=inside) + 0.1 * slope
    second = 0.99 * tl.load(v + i, mask=inside) + 0.01 * slope * slope
    tl.store(m + i, first, mask=inside)
    tl.store(v + i, second, mask=inside)
    step = rate * first / (tl.sqrt(second) + 1e-6)
    tl.store(p + i, tl.load(p + i, mask=inside) - step, mask=inside)


@triton.jit
def swiglu(a, b, out, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    u = tl.load(a + i, mask=c < n, other=0.0)
    tl.store(out + i, u * tl.sigmoid(u) * tl.load(b + i, mask=c < n, other=0.0), mask=c < n)


@triton.jit
def swiglu_back(dc, a, b, n, BLOCK: tl.constexpr):
    """The gradients take the places of the inputs."""
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    inside = c < n
    d = tl.load(dc + i, mask=inside, other=0.0)
    u = tl.load(a + i, mask=inside, other=0.0)
    w = tl.load(b + i, mask=inside, other=0.0)
    s = tl.sigmoid(u)
    tl.store(a + i, d * (u * s * (1 - s) + s) * w, mask=inside)
    tl.store(b + i, d * u * s, mask=inside)


@triton.jit
def huber(x, y, loss, n, BLOCK: tl.constexpr):
    """The loss of each row; its gradient takes the place of the input."""
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < n
    d = tl.load(x + row * n + c, mask=inside, other=0.0)
    d = d - tl.load(y + row * n + c, mask=inside, other=0.0)
    size = tl.abs(d)
    tl.store(loss + row, tl.sum(tl.where(size < 1, 0.5 * d * d, size - 0.5), 0))
    tl.store(x + row * n + c, tl.where(size < 1, d, tl.where(d > 0, 1.0, -1.0)), mask=inside)


# -- rows -----------------------------------------------------------------------------------------


@triton.jit
def softmax(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(x + i, v / tl.sum(v, 0), mask=c < n)


@triton.jit
def softmax_back(y, dy, dx, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    u = tl.load(y + i, mask=c < n, other=0.0)
    d = tl.load(dy + i, mask=c < n, other=0.0)
    tl.store(dx + i, u * (d - tl.sum(u * d, 0)), mask=c < n)


@triton.jit
def softmax_back_in_place(y, dy, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    u = tl.load(y + i, mask=c < n, other=0.0)
    d = tl.load(dy + i, mask=c < n, other=0.0)
    tl.store(dy + i, u * (d - tl.sum(u * d, 0)), mask=c < n)


@triton.jit
def log_softmax(x, most, norm, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    i = row * n + c
    v = tl.load(x + i, mask=c < n, other=-float("inf"))
    top = tl.max(v, 0)
    total = tl.log(tl.sum(tl.exp(v - top), 0))
    tl.store(most + row, top)
    tl.store(norm + row, total)
    tl.store(x + i, v - top - total, mask=c < n)


@triton.jit
def layernorm(x, weight, bias, out, mean, rstd, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < n
    v = tl.load(x + row * n + c, mask=inside, other=0.0)
    middle = tl.sum(v, 0) / n
    centred = tl.where(inside, v - middle, 0.0)
    scaled = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + 1e-5)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scaled)
    w, b = tl.load(weight + c, mask=inside), tl.load(bias + c, mask=inside)
    tl.store(out + row * n + c, centred * scaled * w + b, mask=inside)


@triton.jit
def layernorm_in_place(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=0.0)
    centred = tl.where(c < n, v - tl.sum(v, 0) / n, 0.0)
    tl.store(x + i, centred / tl.sqrt(tl.sum(centred * centred, 0) / n + 1e-5), mask=c < n)


@triton.jit
def layernorm_back(dy, x, weight, mean, rstd, dw, n, BLOCK: tl.constexpr):
    """The gradient takes the place of `dy`; that of the weights is added up."""
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < n
    d = tl.load(dy + row * n + c, mask=inside, other=0.0)
    v = tl.load(x + row * n + c, mask=inside, other=0.0)
    scaled = tl.load(rstd + row)
    h = tl.where(inside, (v - tl.load(mean + row)) * scaled, 0.0)
    wd = tl.load(weight + c, mask=inside, other=0.0) * d
    first, second = tl.sum(h * wd, 0) / n, tl.sum(wd, 0) / n
    tl.store(dy + row * n + c, (wd - (h * first + second)) * scaled, mask=inside)
    tl.atomic_add(dw + c, d * h, mask=inside)


@triton.jit
def rmsnorm(x, weight, out, rstd, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < n
    v = tl.load(x + row * n + c, mask=inside, other=0.0)
    scaled = tl.rsqrt(tl.sum(v * v, 0) / n + 1e-6)
    tl.store(rstd + row, scaled)
    tl.store(out + row * n + c, v * scaled * tl.load(weight + c, mask=inside), mask=inside)


@triton.jit
def rmsnorm_in_place(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=0.0)
    tl.store(x + i, v * tl.rsqrt(tl.sum(v * v, 0) / n + 1e-6), mask=c < n)


@triton.jit
def rmsnorm_back(dy, x, weight, rstd, dot, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < n
    v = tl.load(x + row * n + c, mask=inside, other=0.0)
    m = tl.load(dy + row * n + c, mask=inside, other=0.0)
    m = m * tl.load(weight + c, mask=inside, other=0.0)
    scaled = tl.load(rstd + row)
    total = tl.sum(m * v, 0)
    tl.store(dot + row, total)
    tl.store(dy + row * n + c, scaled * (m - scaled * scaled / n * total * v), mask=inside)


@triton.jit
def cross_entropy(x, labels, loss, n, BLOCK: tl.constexpr):
    """The loss of each row; the gradient takes the place of the logits."""
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < n
    label = tl.load(labels + row)
    v = tl.load(x + row * n + c, mask=inside, other=-float("inf"))
    top = tl.max(v, 0)
    powers = tl.exp(v - top)
    total = tl.sum(powers, 0)
    own = tl.sum(tl.where(c == label, v, 0.0), 0)
    tl.store(loss + row, tl.log(total) + top - own)
    tl.store(x + row * n + c, powers / total - tl.where(c == label, 1.0, 0.0), mask=inside)


@triton.jit
def divergence(p, q, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    u = tl.load(p + row * n + c, mask=c < n, other=1.0)
    w = tl.load(q + row * n + c, mask=c < n, other=1.0)
    tl.store(out + row, tl.sum(u * (tl.log(u) - tl.log(w)), 0))


@triton.jit
def squares(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0)
    tl.store(out + row, tl.sum(v * v, 0))


@triton.jit
def dot(x, y, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0)
    tl.store(out + row, tl.sum(v * tl.load(y + row * n + c, mask=c < n, other=0.0), 0))


@triton.jit
def cosine(x, y, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0)
    w = tl.load(y + row * n + c, mask=c < n, other=0.0)
    length = tl.sqrt(tl.sum(v * v, 0)) * tl.sqrt(tl.sum(w * w, 0))
    tl.store(out + row, tl.sum(v * w, 0) / length)


@triton.jit
def variance(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0)
    d = tl.where(c < n, v - tl.sum(v, 0) / n, 0.0)
    tl.store(out + row, tl.sum(d * d, 0) / n)


@triton.jit
def unit(x, lengths, n, BLOCK: tl.constexpr):
    """Rows of length one, in place."""
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0)
    length = tl.sqrt(tl.sum(v * v, 0))
    tl.store(lengths + row, length)
    tl.store(x + row * n + c, v / length, mask=c < n)


@triton.jit
def long_squares(x, out, n, BLOCK: tl.constexpr):
    """Rows longer than a block: sums of products, block by block."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        c = first + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + c, mask=c < n, other=0.0)
        total += v * v
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def argmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, 0))


@triton.jit
def cumsum(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    tl.store(x + i, tl.cumsum(tl.load(x + i, mask=c < n, other=0.0), 0), mask=c < n)


@triton.jit
def columns(x, y, out, n, BLOCK: tl.constexpr):
    """Sums of products down the columns of a tile of four rows."""
    r = tl.arange(0, 4)
    c = tl.arange(0, BLOCK)
    at = (tl.program_id(0) * 4 + r[:, None]) * n + c[None, :]
    inside = c[None, :] < n
    v, w = tl.load(x + at, mask=inside, other=0.0), tl.load(y + at, mask=inside, other=0.0)
    tl.store(out + tl.program_id(0) * n + c, tl.sum(v * w, 0), mask=c < n)


@triton.jit
def matvec(a, x, out, n, BLOCK: tl.constexpr):
    """Four rows a program."""
    r = tl.program_id(0) * 4 + tl.arange(0, 4)
    c = tl.arange(0, BLOCK)
    inside = c[None, :] < n
    v = tl.load(a + r[:, None] * n + c[None, :], mask=inside, other=0.0)
    w = tl.load(x + c, mask=c < n, other=0.0)
    tl.store(out + r, tl.sum(v * w[None, :], 1))


# -- with races -----------------------------------------------------------------------------------


@triton.jit
def racy_shift(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    tl.store(x + i, tl.load(x + i + 1, mask=c < n - 1), mask=c < n - 1)


@triton.jit
def racy_reverse(x, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = x + tl.program_id(0) * n
    tl.store(row + c, tl.load(row + n - 1 - c, mask=c < n), mask=c < n)


@triton.jit
def racy_last(x, out, n, BLOCK: tl.constexpr):
    """Every program stores its own sum to one place."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + c, mask=c < n, other=0.0)
    tl.store(out, tl.sum(v * v, 0))


@triton.jit
def racy_total(x, out, n, BLOCK: tl.constexpr):
    """A sum over all programs without an atomic."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + c, mask=c < n, other=0.0)
    tl.store(out, tl.load(out) + tl.sum(v, 0))


@triton.jit
def racy_weights(dy, x, dw, n, BLOCK: tl.constexpr):
    """Gradients of weights added up over rows without a lock."""
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    d = tl.load(dy + i, mask=c < n) * tl.load(x + i, mask=c < n)
    tl.store(dw + c, tl.load(dw + c, mask=c < n) + d, mask=c < n)


@triton.jit
def racy_pairs(x, out, n, BLOCK: tl.constexpr):
    """Two elements to one place."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + c, mask=c < n, other=0.0)
    tl.store(out + tl.program_id(0) * n + c // 2, v, mask=c < n)


@triton.jit
def racy_stencil(x, n, BLOCK: tl.constexpr):
    """Neighbours are read while their owners write them."""
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    inside = (c > 0) & (c < n - 1)
    left, right = tl.load(x + i - 1, mask=inside), tl.load(x + i + 1, mask=inside)
    tl.store(x + i, (left + right) / 2, mask=inside)


@triton.jit
def racy_passed_on(x, out, n, BLOCK: tl.constexpr):
    """What was stored is read by other threads of the program, without a barrier."""
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    tl.store(x + i, 2.0 * c, mask=c < n)
    tl.store(out + i, tl.load(x + tl.program_id(0) * n + (c + 17) % n, mask=c < n), mask=c < n)


@triton.jit
def racy_halo(x, n, BLOCK: tl.constexpr):
    """The first element of the next program's row."""
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    after = tl.load(x + (row + 1) * n)
    v = tl.load(x + row * n + c, mask=c < n)
    tl.store(x + row * n + c, v + after, mask=c < n)


@triton.jit
def racy_dots(x, y, out, n, BLOCK: tl.constexpr):
    """Products that differ by more than their rounding, to one place."""
    c = tl.arange(0, BLOCK)
    i = tl.program_id(0) * n + c
    v = tl.load(x + i, mask=c < n, other=0.0) * tl.load(y + i, mask=c < n, other=0.0)
    tl.store(out + tl.program_id(0) + c * 0, v + tl.sum(v, 0), mask=c < n)
