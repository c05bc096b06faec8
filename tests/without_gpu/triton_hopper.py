# ruff: noqa: N803 - constants are written in capitals there
"""Triton kernels of Hopper: tensor descriptors of either side, roles of warps; needs no GPU."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def roles(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A·Bᵀ over tiles; one warpgroup copies, two multiply. Descriptors are made here."""
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    wide = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * wide
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=True):
        row, column = tile // wide * BM, tile % wide * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            left = a_desc.load([row, k * BK])
            right = b_desc.load([column, k * BK])
            total = tl.dot(left, right.T, total)
        c_desc.store([row, column], total.to(tl.float16))


@triton.jit
def hosted(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A·Bᵀ, a tile for each block, by descriptors that the host made; pipelined."""
    wide = tl.cdiv(N, BN)
    row, column = tl.program_id(0) // wide * BM, tl.program_id(0) % wide * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = a_desc.load([row, k * BK])
        right = b_desc.load([column, k * BK])
        total = tl.dot(left, right.T, total)
    c_desc.store([row, column], total.to(tl.float16))


@triton.jit
def described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `hosted`, with descriptors that the kernel makes."""
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    wide = tl.cdiv(N, BN)
    row, column = tl.program_id(0) // wide * BM, tl.program_id(0) % wide * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = a_desc.load([row, k * BK])
        right = b_desc.load([column, k * BK])
        total = tl.dot(left, right.T, total)
    c_desc.store([row, column], total.to(tl.float16))


@triton.jit
def twofold(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A·Bᵀ by plain loads, each program a cluster of two blocks (`num_ctas=2`)."""
    wide = tl.cdiv(N, BN)
    rows = tl.program_id(0) // wide * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % wide * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + inner[None, :])
        right = tl.load(b + columns[None, :] * K + k + inner[:, None])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))
