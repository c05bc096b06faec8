# ruff: noqa: N803, RUF005 - constants are written in capitals there, and lists are joined
"""A Gluon matmul of Hopper, with roles of warps and a ring of tiles; needs Gluon, and no GPU."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def copies(a_desc, b_desc, a_ring, b_ring, full, empty, wide, tiles, steps, STAGES: gl.constexpr):
    row_size: gl.constexpr = a_desc.block_shape[0]
    column_size: gl.constexpr = b_desc.block_shape[0]
    inner: gl.constexpr = a_desc.block_shape[1]
    size: gl.constexpr = a_desc.block_type.nbytes + b_desc.block_type.nbytes
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = tile // wide * row_size, tile % wide * column_size
        for k in range(steps):
            slot, turn = count % STAGES, count // STAGES
            mbarrier.wait(empty.index(slot), turn & 1 ^ 1)
            mbarrier.expect(full.index(slot), size)
            tma.async_load(a_desc, [row, k * inner], full.index(slot), a_ring.index(slot))
            tma.async_load(b_desc, [column, k * inner], full.index(slot), b_ring.index(slot))
            count += 1


@gluon.jit
def products(
    c_desc, a_ring, b_ring, tile_out, full, empty, wide, tiles, steps, STAGES: gl.constexpr
):
    rows: gl.constexpr = c_desc.block_shape[0]
    columns: gl.constexpr = c_desc.block_shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, columns, 16]
    )
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        total = gl.zeros((rows, columns), gl.float32, layout)
        for _ in range(steps):
            slot = count % STAGES
            mbarrier.wait(full.index(slot), count // STAGES & 1)
            right = b_ring.index(slot).permute((1, 0))
            total = warpgroup_mma(a_ring.index(slot), right, total, is_async=True)
            total = warpgroup_mma_wait(num_outstanding=0, deps=(total,))
            mbarrier.arrive(empty.index(slot), count=1)
            count += 1
        tma.store_wait(pendings=0)
        tile_out.store(total.to(c_desc.dtype))
        fence_async_shared()
        tma.async_store(c_desc, [tile // wide * rows, tile % wide * columns], tile_out)
    tma.store_wait(pendings=0)


@gluon.jit
def ring(a_desc, b_desc, c_desc, M, N, K, STAGES: gl.constexpr, num_warps: gl.constexpr):
    """C = A·Bᵀ over tiles: one warp copies into a ring, four multiply."""
    wide = gl.cdiv(N, c_desc.block_shape[1])
    tiles = gl.cdiv(M, c_desc.block_shape[0]) * wide
    steps = gl.cdiv(K, a_desc.block_shape[1])
    a_sides: gl.constexpr = [STAGES] + a_desc.block_type.shape
    b_sides: gl.constexpr = [STAGES] + b_desc.block_type.shape
    a_ring = gl.allocate_shared_memory(a_desc.dtype, a_sides, a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, b_sides, b_desc.layout)
    tile_out = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [
            (products, (c_desc, a_ring, b_ring, tile_out, full, empty, wide, tiles, steps, STAGES)),
            (copies, (a_desc, b_desc, a_ring, b_ring, full, empty, wide, tiles, steps, STAGES)),
        ],
        [1],
        [40],
    )
