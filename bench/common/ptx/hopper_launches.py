"""How the kernels of `hopper/` are compiled and launched, and what they have to compute.

Each launch has at least two tiles, and its ring goes round at least four times in every block.
Factors are small whole numbers, so that every sum is exact in bf16.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.ptx.hopper_cases import FOLDER, Case, Launch
from bench.common.without_gpu.hopper import FOLDER as KEPT
from bench.common.without_gpu.hopper import kept, problem, product

from warploom.ptx import tensor_map

Array = Any
STAGES = range(2, 8)
GEMM = Path("tests/ptx/hopper/gemm.ptx")


def bf16(values: Array) -> Array:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def factors(m: int, n: int, k: int) -> tuple[Array, Array]:
    """A and B, both with k innermost."""
    r = np.random.default_rng(30)
    return r.integers(-1, 2, (m, k)), r.integers(-1, 2, (n, k))


def matmul(
    m: int, n: int, k: int, boxes: tuple[int, int], *, grid: int, block: int = 384,
    shared_bytes: int, stored: tuple[int, int] | None = None,
) -> Launch:  # fmt: skip
    """C = A · Bᵀ by a kernel that takes maps of A and B, with boxes of so many rows, then C; or a
    map of C with boxes of the size `stored`, too."""
    a, b = factors(m, n, k)
    c = np.zeros((m, n), np.uint16)
    maps = [
        tensor_map(bf16(each), box=(rows, 64), swizzle=128)
        for each, rows in zip((a, b), boxes, strict=True)
    ]
    to = c if stored is None else tensor_map(c, box=stored, swizzle=128)
    return Launch(grid, block, [*maps, to, m, n, k], c, bf16(a @ b.T), shared_bytes)


def ring(stages: int) -> Launch:
    """Two blocks with two tiles each; 2·ST turns for a tile, so four rounds of the ring."""
    return matmul(256, 128, 64 * 2 * stages, (128, 64), grid=2, shared_bytes=stages * 24576)


def gemm() -> Launch:
    """The digest's matmul, as PTX with a ring of two."""
    return matmul(256, 256, 256, (128, 128), grid=2, shared_bytes=2 * 256 * 64 * 2)


def pingpong() -> Launch:
    """A block with four tiles, two for each consumer; four turns for a tile in a ring of three."""
    return matmul(
        128, 128, 64 * 4, (64, 64), grid=1, shared_bytes=3 * 16384 + 8192, stored=(64, 64)
    )


def multicast() -> Launch:
    """A cluster of two blocks with two tiles each; six turns for a tile in a ring of three."""
    return matmul(256, 128, 64 * 6, (128, 32), grid=2, shared_bytes=3 * 24576)


def store_epilogue() -> Launch:
    """A block with two tiles; six turns for a tile in a ring of three."""
    return matmul(
        128, 128, 64 * 6, (128, 64), grid=1, shared_bytes=3 * 24576 + 16384, stored=(64, 64)
    )


def stream_k() -> Launch:
    """Five blocks of eight turns in a ring of two share two tiles: two others add to each."""
    m, n, k, blocks = 64, 128, 64 * 20, 5
    a, b = factors(m, n, k)
    c, locks = np.zeros((m, n), np.uint16), np.zeros(2, np.uint32)
    maps = [tensor_map(bf16(each), box=(64, 64), swizzle=128) for each in (a, b)]
    partial_sums = np.zeros((blocks, 64 * 64), np.float32)
    args = [*maps, c, partial_sums, locks, m, n, k]
    return Launch(blocks, 256, args, c, bf16(a @ b.T), 2 * 16384 + 16384)


def single(values: Array) -> Array:
    return (values.astype(np.uint32) << 16).view(np.float32)


def near(out: Array, expected: Array) -> bool:
    """By the rounding of bf16, of sums that are not exact."""
    return bool(np.allclose(single(out), expected, atol=0.01))


def attention() -> Launch:
    """A block with two heads; four turns for each in rings of two."""
    heads, queries, keys = 2, 128, 256
    r = np.random.default_rng(31)
    sides = (queries, keys, keys)
    q, k, v = (bf16(r.standard_normal((heads, each, 64))) for each in sides)
    out = np.zeros((heads, queries, 64), np.uint16)
    maps = [
        tensor_map(each.reshape(-1, 64), box=(rows, 64), swizzle=128)
        for each, rows in zip((q, k, v), (128, 64, 64), strict=True)
    ]
    weights = np.exp2(np.einsum("hqd,hkd->hqk", single(q), single(k)) * np.float32(0.18))
    weights /= weights.sum(-1, keepdims=True)
    expected = np.einsum("hqk,hkd->hqd", weights, single(v))
    args = [*maps, out, heads, queries, keys, np.float32(0.18)]
    return Launch(1, 384, args, out, expected, 128 * 128 + 4 * 8192, right=near)


def compiled(name: str, steps: int) -> Launch:
    """What Triton or Gluon compiled: a block with two tiles of so many steps."""
    one = kept(name)
    rows, columns, inner = one.tile
    given = problem(rows, 2 * columns, steps * inner)
    grid = one.grid(rows, 2 * columns, 1)
    return Launch(
        grid, one.record["threads"], one.args(given, grid), given["c"], product(given),
        one.record["shared"], one.record["cluster"],
    )  # fmt: skip


def _cases() -> list[Case]:
    return [
        Case("gemm", GEMM, gemm),
        *(Case(f"ring {n}", FOLDER / "ring.cu", partial(ring, n), (f"-DST={n}",)) for n in STAGES),
        Case("pingpong", FOLDER / "pingpong.cu", pingpong, ("-DST=3",)),
        Case("store_epilogue", FOLDER / "store_epilogue.cu", store_epilogue),
        Case("stream_k", FOLDER / "stream_k.cu", stream_k),
        Case("attention", FOLDER / "attention.cu", attention),
        *(
            Case(name, KEPT / f"{name}.ptx", partial(compiled, name, 6), (), ("practice",), True)
            for name in ("triton_roles", "gluon_ring")
        ),
        Case("multicast", FOLDER / "multicast.cu", multicast, ("-DST=3",)),
    ]


CASES = {case.name: case for case in _cases()}
