"""What statements of `warpgroup.py` mean: boxes and factors by where descriptors say they lie.

A block is looked at after another, and a warp group after another: a box is gathered from the view
that its map is of, a product computed as `machine/fused.py` has it, and so are sums in between.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError
from warploom.kernel import ir
from warploom.kernel.descriptor import STEP_BYTES, box_offsets, swizzled, tile_offsets, view_of
from warploom.kernel.dtype import DType, coded
from warploom.kernel.tensor import DEPTH, MACHINE
from warploom.kernel.warpgroup import GROUP, Fill, Hopper, MapParam, Ring, Tile
from warploom.layout.conversion.fragment import mma_operand
from warploom.machine.fused import fused, rule_for, terms, whole
from warploom.machine.semantics import Kind

if TYPE_CHECKING:
    from warploom.kernel.evaluate import Batch

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
OfWarps: TypeAlias = (
    ir.LoadMatrix | ir.StoreMatrix | ir.ClusterSum | ir.SharedSum | ir.Unpack | ir.Interleave
)
ROWS = 64  # of a product
WARP_ROWS = 16


def hopper(batch: Batch, stmt: Hopper, active: Mask) -> None:
    match stmt:
        case Ring():
            _ring(batch, stmt, active)
        case ir.PingPong():
            _turn(batch, stmt, active)
        case ir.OrderedBarrier():
            pass  # it says when, not what
        case Fill():
            _fill(batch, stmt, active)
        case ir.BulkStore():
            _bulk_store(batch, stmt, active)
        case ir.WarpgroupProduct():
            _product(batch, stmt, active)
        case _:
            _of_warps(batch, stmt, active)


def _of_warps(batch: Batch, stmt: OfWarps, active: Mask) -> None:
    match stmt:
        case ir.LoadMatrix():
            _load_matrix(batch, stmt, active)
        case ir.StoreMatrix():
            _store_matrix(batch, stmt, active)
        case ir.ClusterSum():
            _cluster_sum(batch, stmt, active)
        case ir.SharedSum():
            _shared_sum(batch, stmt, active)
        case ir.Unpack():
            _unpack(batch, stmt, active)
        case ir.Interleave():
            _interleave(batch, stmt, active)


def _ring(batch: Batch, stmt: Ring, active: Mask) -> None:
    for name in stmt.sums:
        np.copyto(batch.registers[name], 0, where=active)
    count = batch.spread(batch.index(stmt.count, active))
    turns, at = batch.turns.setdefault(stmt.stage, np.zeros((batch.shape[0], 1), np.int64)), 0
    while (going := active & (at < count)).any():
        batch.env[stmt.var], batch.env[stmt.stage] = at, turns % stmt.stages
        batch.enter(stmt.body, going)
        turns += going.any(axis=1, keepdims=True)
        at += 1


def _turn(batch: Batch, stmt: ir.PingPong, active: Mask) -> None:
    turns = batch.turns.setdefault("", np.zeros((batch.shape[0], 1), np.int64))
    group = np.arange(batch.kernel.threads) // GROUP
    own = active & (group == turns % (batch.kernel.threads // GROUP))
    turns += active.any(axis=1, keepdims=True)
    batch.enter(stmt.body, own)


# -- boxes -----------------------------------------------------------------------------------------


def _view(batch: Batch, map: MapParam) -> Array:
    integers = {n: v for n, v in batch.binding.scalars.items() if isinstance(v, int)}
    found: Array = view_of(map, batch.arrays[map.array], integers)
    return found


def _places(batch: Batch, stmt: Fill | ir.BulkStore, active: Mask) -> list[tuple[int, list[int]]]:
    """Blocks that take part, and the element and coordinates in each."""
    parts = [batch.spread(batch.index(each, active)) for each in (stmt.index, *stmt.at)]
    found = []
    for block in np.flatnonzero(active.any(axis=1)):
        thread = int(np.argmax(active[block]))
        found.append((int(block), [int(each[block, thread]) for each in parts]))
    return found


def _cells(batch: Batch, name: str, block: int, first: int, map: MapParam) -> Ints:
    """The cells of the pool that the elements of a box lie in, as the box has its axes."""
    memory = batch.pool.arrays[name]
    size = memory.data.itemsize
    lies = swizzled(first * size + box_offsets(map.box, size), map.swizzle) // size
    cells: Ints = lies + memory.first + block * memory.row
    return cells


def _inside(
    map: MapParam, at: list[int], shape: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:  # fmt: skip
    """The part of a box that is inside the view: there, and in the box."""
    low = [max(0, first) for first in at]
    sides = zip(low, at, map.box, shape, strict=True)
    high = [max(begin, min(first + side, most)) for begin, first, side, most in sides]
    there = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    here = tuple(slice(a - c, b - c) for a, b, c in zip(low, high, at, strict=True))
    return there, here


def _map(batch: Batch, name: str) -> MapParam:
    return next(each for each in batch.kernel.maps if each.name == name)


def _fill(batch: Batch, stmt: Fill, active: Mask) -> None:
    map = _map(batch, stmt.map)
    view, memory = _view(batch, map), batch.pool.arrays[stmt.array]
    boxes = 1 if stmt.split is None else batch.kernel.cluster
    for block, (first, *at) in _places(batch, stmt, active):
        for number in range(boxes):
            cells = _cells(batch, stmt.array, block, first + number * map.elements, map)
            begins = list(at)
            if stmt.split is not None:
                begins[stmt.split] += number * map.box[stmt.split]
            there, here = _inside(map, begins, view.shape)
            box = np.zeros(map.box, view.dtype)
            box[here] = view[there]
            memory.data[cells] = box
            for granules in batch.pool.granules(memory, cells, 1):
                batch.pool.owner[granules] = memory.number


def _bulk_store(batch: Batch, stmt: ir.BulkStore, active: Mask) -> None:
    """All meet before; they store together, and all meet again."""
    meet = group_barrier if stmt.scope == "group" else _meet
    meet(batch, active)
    map = _map(batch, stmt.map)
    view, memory = _view(batch, map), batch.pool.arrays[stmt.array]
    flat = batch.arrays[map.array]
    numbers = np.lib.stride_tricks.as_strided(np.arange(flat.size), view.shape, [
        each // flat.itemsize * 8 for each in view.strides
    ])  # fmt: skip
    for first in range(0, batch.kernel.threads, GROUP if stmt.scope == "group" else 1 << 30):
        own = active.copy()
        if stmt.scope == "group":
            own[:, np.arange(batch.kernel.threads) // GROUP != first // GROUP] = False
        for block, (begin, *at) in _places(batch, stmt, own):
            cells = _cells(batch, stmt.array, block, begin, map)
            _check_set(batch, stmt.array, cells)
            there, here = _inside(map, at, view.shape)
            who = block * batch.kernel.threads + np.flatnonzero(own[block])
            _note(batch, stmt, stmt.array, who, cells.reshape(-1), Kind.READ)
            _note(batch, stmt, map.array, who, numbers[there].reshape(-1), Kind.WRITE)
            flat[numbers[there]] = memory.data[cells[here]]
    meet(batch, active)


def _check_set(batch: Batch, name: str, cells: Ints) -> None:
    """What is read of a shared array as a whole was written to it."""
    memory = batch.pool.arrays[name]
    for granules in batch.pool.granules(memory, cells, 1):
        if (batch.pool.owner[granules] != memory.number).any():
            raise DeviceError(f"'{batch.kernel.name}': '{name}' is read where nothing was stored")


def _note(
    batch: Batch, stmt: ir.BulkStore, name: str, who: Ints, elements: Ints, kind: Kind
) -> None:  # fmt: skip
    """Threads touch elements; which of them touches which says nothing, as all meet."""
    if batch.races is None:
        return
    memory = batch.pool.arrays.get(name)
    flat = batch.arrays[name] if memory is None else memory.data
    for at in range(0, len(elements), len(who)):
        some = elements[at : at + len(who)]
        found = batch.races.access(
            batch.stored[name], flat.nbytes, who[: len(some)], some * flat.itemsize,
            flat.itemsize, kind, id(stmt),
        )  # fmt: skip
        if found:
            batch.fail_race(name, found[0], flat.itemsize)


def group_barrier(batch: Batch, active: Mask) -> None:
    """Whole warp groups meet."""
    batch.report.barriers += int(active.any(axis=1).sum())
    if batch.races is not None:
        threads = np.flatnonzero(active)
        batch.races.vector.meet(threads, threads // GROUP)


def _meet(batch: Batch, active: Mask) -> None:
    if batch.races is not None:
        batch.races.block_barrier(np.flatnonzero(active.any(axis=1)))


def _cluster_sum(batch: Batch, stmt: ir.ClusterSum, active: Mask) -> None:
    """Blocks of a cluster are beside each other, and in one batch."""
    first = int(batch.register_index(stmt.value, active, stmt.count))
    to = int(batch.register_index(stmt.target, active, stmt.registers))
    held = batch.registers[stmt.value.name][first : first + stmt.count]
    target = batch.registers[stmt.target.name]
    each = stmt.registers
    for block in np.flatnonzero(active.any(axis=1)):
        rank = int(batch.blocks[block]) % stmt.blocks
        others = [at for at in range(stmt.blocks) if at != rank]
        share = slice(rank * each, min((rank + 1) * each, stmt.count))
        total = held[share, block]
        for other in others:
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + held[share, block - rank + other]
        target[to : to + each, block] = 0
        target[to : to + len(total), block] = total
    batch.report.operations += int(active.any(axis=1).sum()) * batch.kernel.threads // 32


# -- products --------------------------------------------------------------------------------------


def _product(batch: Batch, stmt: ir.WarpgroupProduct, active: Mask) -> None:
    first = int(batch.register_index(stmt.target, active, stmt.columns // 2))
    held = batch.registers[stmt.target.name][first : first + stmt.columns // 2]
    begins = {each: batch.spread(batch.index(each.index, active)) for each in stmt.tiles}
    a_first = 0
    if isinstance(stmt.a, ir.Cell):
        a_first = int(batch.register_index(stmt.a, active, DEPTH[stmt.kind] // 2))
    rows, columns = _sums_of(stmt.columns)
    for block in np.flatnonzero(active.any(axis=1)):
        for begin in range(0, batch.kernel.threads, GROUP):
            if not active[block, begin]:
                continue
            own = slice(begin, begin + GROUP)
            total = np.zeros((ROWS, stmt.columns), held.dtype)
            total[rows, columns] = held[:, block, own]
            if isinstance(stmt.a, ir.Cell):
                a = _held_factor(batch, stmt, int(block), own, a_first)
            else:
                at = int(begins[stmt.a][block, begin])
                a = _factor(batch, stmt.a, int(block), at, ROWS)
            b = _factor(batch, stmt.b, int(block), int(begins[stmt.b][block, begin]), stmt.columns)
            made = _sums(a, b, total, stmt.kind)
            held[:, block, own] = made[rows, columns]
    batch.report.operations += int(active.any(axis=1).sum()) * batch.kernel.threads // 32


@cache
def _sums_of(columns: int) -> tuple[Ints, Ints]:
    """The row and column of each register of the target, by register and thread."""
    i, thread = np.arange(columns // 2)[:, None], np.arange(GROUP)[None, :]
    lane, warp = thread % 32, thread // 32
    rows = WARP_ROWS * warp + lane // 4 + 8 * (i // 2 % 2)
    return rows, 8 * (i // 4) + lane % 4 * 2 + i % 2


def _held_factor(
    batch: Batch, stmt: ir.WarpgroupProduct, block: int, own: slice, first: int
) -> Array:  # fmt: skip
    """A factor in registers: each warp has 16 rows of it."""
    assert isinstance(stmt.a, ir.Cell)
    depth = DEPTH[stmt.kind]
    held = batch.registers[stmt.a.name][first : first + depth // 2, block, own]
    places = mma_operand((WARP_ROWS, depth), 0, depth // 8, (1, 1)).elements[0]
    found = np.zeros((GROUP // 32, WARP_ROWS * depth), held.dtype)
    found[:, places.reshape(-1)] = held.T.reshape(GROUP // 32, -1)
    return found.reshape(ROWS, depth)


def _factor(batch: Batch, tile: Tile, block: int, first: int, rows: int) -> Array:
    """(rows, k): the bits of a factor in shared memory."""
    memory = batch.pool.arrays[tile.array]
    size = memory.data.itemsize
    offsets = first * size + tile_offsets(tile, rows, size)
    cells = swizzled(offsets, tile.swizzle) // size + memory.first + block * memory.row
    _check_set(batch, tile.array, cells)
    found: Array = memory.data[cells]
    return found


def _sums(a: Array, b: Array, total: Array, kind: ir.TensorKind) -> Array:
    x, y = a[:, None, :], b[None, :, :]
    if kind in ("i8", "u8"):
        return whole(x.astype(np.int64), y.astype(np.int64), total, False)
    if kind == "tf32":
        x, y = (np.ascontiguousarray(each).view(np.uint32) for each in (x, y))
    rule = rule_for(MACHINE, kind, DEPTH[kind], warpgroup=True)
    with np.errstate(invalid="ignore", over="ignore"):
        return fused(terms(x, kind), terms(y, kind), total, "f32", rule)


def depth_of(dtype: DType) -> int:
    """How far a product goes along k."""
    return STEP_BYTES // dtype.bytes


# -- matrices of a warp ----------------------------------------------------------------------------


def _element_places(
    batch: Batch, stmt: ir.LoadMatrix | ir.StoreMatrix, active: Mask
) -> list[tuple[Ints, int]]:  # fmt: skip
    """For each register, in order: where its element lies, from the rows that lanes give; and how
    many elements one access has."""
    given = batch.spread(batch.index(stmt.index, active))
    thread = np.arange(batch.kernel.threads)
    warp, lane = thread // 32 * 32, thread % 32
    g, t = lane // 4, lane % 4
    found = []
    for j in range(stmt.count):
        if stmt.transposed:
            found += [(given[:, warp + 8 * j + 2 * t + e] + g, 1) for e in range(2)]
        else:
            own = stmt.own if isinstance(stmt, ir.LoadMatrix) else 2
            found.append((given[:, warp + 8 * j + g] + own * t, own))
    return found


@lru_cache(maxsize=256)  # one object for one statement, by which races are told apart
def _as_load(stmt: ir.LoadMatrix, width: int) -> ir.Load:
    return ir.Load(stmt.target, stmt.array, stmt.index, width=width)


@lru_cache(maxsize=256)
def _as_store(stmt: ir.StoreMatrix, width: int) -> ir.Store:
    return ir.Store(stmt.array, stmt.index, stmt.value, width=width)


def _load_matrix(batch: Batch, stmt: ir.LoadMatrix, active: Mask) -> None:
    batch.register_index(stmt.target, active, stmt.own * stmt.count)
    register = 0
    for places, width in _element_places(batch, stmt, active):
        flat, cells = batch.touch(_as_load(stmt, width), places, active, writes=False)
        for offset in range(width):
            value = flat[np.where(active, cells + offset, 0)]
            batch.write_register(stmt.target, value, active, register)
            register += 1


def _store_matrix(batch: Batch, stmt: ir.StoreMatrix, active: Mask) -> None:
    first = int(batch.register_index(stmt.value, active, 2 * stmt.count))
    held = batch.registers[stmt.value.name][first : first + 2 * stmt.count]
    register = 0
    for places, width in _element_places(batch, stmt, active):
        flat, cells = batch.touch(_as_store(stmt, width), places, active, writes=True)
        for offset in range(width):
            flat[cells[active] + offset] = held[register][active]
            register += 1


# -- weights, and sums of clusters -----------------------------------------------------------------


def _unpack(batch: Batch, stmt: ir.Unpack, active: Mask) -> None:
    many = 4 // stmt.source.dtype.bytes
    first = int(batch.register_index(stmt.source, active, many))
    held = batch.registers[stmt.source.name][first : first + many]
    own = np.uint64(8 * stmt.source.dtype.bytes)
    word = np.zeros(batch.shape, np.uint64)
    for at, part in enumerate(held):
        bits = part.astype(np.uint64) & np.uint64((1 << int(own)) - 1)
        word |= bits << (np.uint64(at) * own)
    batch.register_index(stmt.target, active, stmt.count)
    high = 1 << (stmt.bits - 1) if stmt.signed else 0
    for register, field in enumerate(stmt.order):
        bits = word >> np.uint64(field * stmt.bits) & np.uint64((1 << stmt.bits) - 1)
        numbers = (bits.astype(np.int64) ^ high) - high - stmt.zero
        batch.write_register(stmt.target, coded(numbers, stmt.target.dtype), active, register)
    batch.report.operations += int(active.reshape(-1, 32).any(axis=1).sum())


def _interleave(batch: Batch, stmt: ir.Interleave, active: Mask) -> None:
    first = int(batch.register_index(stmt.source, active, stmt.count))
    batch.register_index(stmt.target, active, stmt.count)
    held = batch.registers[stmt.source.name][first : first + stmt.count].copy()
    for register, other in enumerate(stmt.order):
        batch.write_register(stmt.target, held[other], active, register)
    batch.report.operations += int(active.reshape(-1, 32).any(axis=1).sum())


def _shared_sum(batch: Batch, stmt: ir.SharedSum, active: Mask) -> None:
    """Each block writes its own part alone, and reads what all stored before they met."""
    _meet(batch, active)
    memory, many = batch.pool.arrays[stmt.array], batch.kernel.cluster
    blocks = np.arange(batch.shape[0])[:, None]
    cells = memory.first + np.arange(stmt.count) + blocks * memory.row
    _check_set(batch, stmt.array, cells)
    held = memory.data[cells].reshape(-1, many, stmt.count)
    total = held[:, 0]
    for block in range(1, many):
        total = total + held[:, block]
    share = stmt.count // many
    for rank in range(many):
        own = slice(rank * share, (rank + 1) * share)
        memory.data[cells[rank::many, own]] = total[:, own]
    _meet(batch, active)
