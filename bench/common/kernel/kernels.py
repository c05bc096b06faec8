"""Hand-written kernels that the tests of kernel, emit and runtime share."""

from __future__ import annotations

from typing import get_args

from warploom.index.ir import Expr, Var, select
from warploom.kernel.build import Builder, ceil_div, fma, from_index
from warploom.kernel.dtype import DType, f32, i32
from warploom.kernel.ir import Kernel, ShuffleMode
from warploom.kernel.lower import Row, permute

TILE, ROWS = 32, 8


def transpose(dtype: DType = f32, pad: int = 1) -> Kernel:
    """A shared-memory tiled transpose of height × width; tiles at the edges are cut off."""
    k = Builder("transpose", block=(TILE, ROWS), doc="Transposes a height by width matrix.")
    height, width = k.scalar("height"), k.scalar("width")
    x = k.array("x", dtype, height * width, const=True)
    y = k.array("y", dtype, height * width)
    k.require(height.ge(1).and_(width.ge(1)))
    k.grid(ceil_div(width, TILE), ceil_div(height, TILE))
    tile = k.shared("tile", dtype, TILE * (TILE + pad))
    v = k.register("v", dtype)
    column = k.let("column", k.block_x * TILE + k.thread_x)
    with k.loop("r", 0, TILE, ROWS) as r:
        row = k.let("row", k.block_y * TILE + k.thread_y + r)
        k.set(v, x.at(row * width + column, when=row.lt(height).and_(column.lt(width))))
        tile[(k.thread_y + r) * (TILE + pad) + k.thread_x] = v
    k.barrier()
    out_column = k.let("out_column", k.block_y * TILE + k.thread_x)
    with k.loop("s", 0, TILE, ROWS) as s:
        out_row = k.let("out_row", k.block_x * TILE + k.thread_y + s)
        k.set(v, tile[k.thread_x * (TILE + pad) + k.thread_y + s])
        inside = out_row.lt(width).and_(out_column.lt(height))
        y.put(out_row * height + out_column, v, when=inside)
    return k.done()


def stencil(checked: bool = True) -> Kernel:
    """y[i] = (x[i] + x[i+1] + x[i+2]) / 3, neighbours fetched from other lanes.

    Unchecked, it is as a sketch gives it: a register array indexed by a condition on the lane.
    """
    k = Builder("stencil", block=64, doc="Three-point mean; lanes exchange instead of reloading.")
    n = k.scalar("n")
    x, y = k.array("x", f32, n + 2, const=True), k.array("y", f32, n)
    k.grid(ceil_div(n, 64))
    r = k.registers("r", f32, 2)
    total, v = k.register("total", f32, 0.0), k.register("v", f32)
    i = k.let("i", k.block_x * 64 + k.thread)
    with k.loop("j", 2) as j:
        place = k.let("place", i + j * 32)
        r[j] = x.at(place, when=place.lt(n + 2))
    with k.loop("d", 3) as d:
        which = k.let("which", select(k.lane.ge(d), 0, 1))
        k.set(v, k.shuffle(r[which], k.lane + d))
        k.set(total, total + v)
    y.put(i, total / 3.0, when=i.lt(n))
    return k.done() if checked else k.raw()


def aos_to_soa(dtype: DType = f32) -> Kernel:
    """Structures of three become three runs, one warp per 32 structures, all in registers."""
    size, warp = 3, 32
    k = Builder("aos3", block=128, doc="Three-element structures to three arrays, per warp.")
    n = k.scalar("n")
    x, y = k.array("x", dtype, n * size, const=True), k.array("y", dtype, n * size)
    k.grid(ceil_div(n, 128))
    first = k.let("first", k.block_x * 128 + k.warp * warp)
    a, b, c = (k.registers(name, dtype, size) for name in "abc")
    with k.loop("j", size) as j:
        place = k.let("place", first * size + j * warp + k.lane)
        a[j] = x.at(place, when=place.lt(n * size))
    rows = [Row(name, dtype, size) for name in ("a", "b")]
    k.extend(permute(rows[0], rows[1], (2 * j + k.lane) % size, "j"))
    with k.loop("j", size) as j:
        c[j] = k.shuffle(b[j], (size * k.lane + j) % warp)
    with k.loop("j", size) as j:
        struct = first + k.lane
        y.put(j * n + struct, c[j], when=struct.lt(n))
    return k.done()


def convolution() -> Kernel:
    """Constant weights, wide streaming accesses, a loop kept as it is, negative offsets."""
    k = Builder("convolution", block=64, min_blocks=4, doc="y = w * x, four outputs per thread.")
    n = k.scalar("n")
    k.require(n.ge(4).and_((n % 4).eq(0)))
    x, y = k.array("x", f32, n, const=True), k.array("y", f32, n)
    w = k.constant("w", f32, 3)
    k.grid(ceil_div(n, 256))
    i = k.let("i", (k.block_x * 64 + k.thread) * 4)
    r, v = k.registers("r", f32, 4, 0.0), k.register("v", f32)
    k.comment("neighbours wrap around")
    with k.loop("d", 3) as d, k.loop("j", 4) as j:
        k.set(v, x.at((i + j + d - 1) % n, when=i.lt(n)))
        r[j] = fma(w[d], v, r[j])
    y.put(i, r[0], when=i.lt(n), width=4, streaming=True)
    return k.done()


def warp_branch(deep: bool = True) -> Kernel:
    """Warps do different things, and exchange while they do."""
    k = Builder("warps", block=64)
    y = k.array("y", i32, 64)
    v, w = k.register("v", i32, 5), k.register("w", i32, 1)
    with k.when(k.warp.eq(0)):
        k.set(v, from_index(k.lane * 3))
        with k.loop("i", 2) as i:
            k.set(w, k.shuffle(v, k.lane + i + 1))
            k.set(v, v + w)
        if deep:
            with k.when(k.lane.lt(7)):
                k.set(w, 100)
    with k.otherwise():
        k.set(w, k.shuffle(from_index(k.lane * 5), k.lane ^ 3))
        y.put(k.thread, v, when=k.lane.lt(3))
    y.put(k.thread, v + w, when=k.warp.eq(0).or_(k.lane.ge(3)))
    return k.done()


def narrow_warps(warp_size: int) -> Kernel:
    """Every shuffle mode in warps narrower than the hardware's."""
    k = Builder("narrow", block=32, warp_size=warp_size)
    y = k.array("y", i32, 32 * 4)
    v = k.register("v", i32)
    for place, mode in enumerate(get_args(ShuffleMode)):
        by = k.lane * 3 - 2 if mode == "idx" else 1
        k.set(v, k.shuffle(from_index(k.thread * 10), by, mode))
        y[place * 32 + k.thread] = v
    return k.done()


def coordinates() -> Kernel:
    """Every built-in variable of a three-dimensional grid of three-dimensional blocks."""
    k = Builder("coordinates", block=(4, 3, 6))
    n = k.scalar("n")
    y = k.array("y", i32, n * n * 2 * 72)
    k.grid(n, n, 2)
    block = k.let("block", (k.block_z * n + k.block_y) * n + k.block_x)
    name = k.thread_x + 10 * k.thread_y + 100 * k.thread_z + 1000 * k.lane + 100_000 * k.warp
    y[block * 72 + k.thread] = from_index(name + 1_000_000 * block)
    return k.done()


def wide(dtype: DType, width: int) -> Kernel:
    """Wide loads with a predicate, through shared memory ordered by warp barriers, wide stores."""
    k = Builder("wide", block=64)
    n = k.scalar("n")
    k.require((n % width).eq(0))
    x, y = k.array("x", dtype, n, const=True), k.array("y", dtype, n)
    s = k.shared("s", dtype, 64 * width)
    k.grid(ceil_div(n, 64 * width))
    r = k.registers("r", dtype, width)
    i = k.let("i", (k.block_x * 64 + k.thread) * width)
    r[0] = x.at(i, when=i.lt(n), otherwise=7, width=width, streaming=True)
    s.put(k.thread * width, r[0], width=width)
    k.barrier("warp")
    r[0] = s.at((k.thread ^ 1) * width, width=width)
    with k.when(i.lt(n)):
        y.put(i, r[0], width=width)
    return k.done()


def tiled_product(depth: int | None, unroll: bool | None = None, off: int = 0) -> Kernel:
    """Tiles of 128 × 128, 8 × 8 results a thread; depth by scalar if None. `off` is a mistake."""
    side, deep, own = 128, 8, 8
    k = Builder("product", block=256)
    m, n = k.scalar("m"), k.scalar("n")
    k.require((m % side).eq(0).and_((n % side).eq(0)))
    k.require(m.ge(side).and_(n.ge(side)))
    length: Expr | int = depth or k.scalar("depth")
    if depth is None:
        k.require((Var("depth") % deep).eq(0).and_(Var("depth").ge(deep)))
    a = k.array("a", f32, m * length, const=True)
    b, c = k.array("b", f32, n * length, const=True), k.array("c", f32, m * n)
    k.grid(n // side, m // side)
    left, right = k.shared("left", f32, side * deep), k.shared("right", f32, side * deep)
    sums = k.registers("sums", f32, own * own, 0.0)
    r, s = k.registers("r", f32, own), k.registers("s", f32, own)
    v = k.register("v", f32)
    tx, ty = k.let("tx", k.thread % 16), k.let("ty", k.thread // 16)
    with k.loop("step", length // deep, unroll=unroll) as step:
        with k.loop("q", side * deep // 256) as q:
            at = k.let("at", q * 256 + k.thread)
            row, column = k.let("row", at // deep), k.let("column", at % deep)
            k.set(v, a[(k.block_y * side + row) * length + step * deep + column])
            left[column * side + row] = v
            k.set(v, b[(step * deep + at // side) * n + k.block_x * side + at % side + off])
            right[at] = v
        k.barrier()
        with k.loop("d", deep) as d:
            with k.loop("i", own) as i:
                r[i] = left[d * side + ty * own + i]
                s[i] = right[d * side + tx * own + i]
            with k.loop("i", own) as i, k.loop("j", own) as j:
                sums[i * own + j] = fma(r[i], s[j], sums[i * own + j])
        k.barrier()
    with k.loop("i", own) as i, k.loop("j", own) as j:
        place = (k.block_y * side + ty * own + i) * n + k.block_x * side + tx * own + j
        c[place] = sums[i * own + j]
    return k.done()
