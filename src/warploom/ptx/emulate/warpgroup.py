"""wgmma: four warps multiply 64 rows by matrices in shared memory that descriptors describe.

Each warp makes its sixteen rows. A descriptor has, in units of sixteen bytes, where a matrix
starts and how far its parts are from each other, and how rows are swizzled. Results are there at
once, but hold no value for the kernel until it has waited for their group.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span, UninitialisedError
from warploom.machine import fused as arithmetic
from warploom.machine.async_completion import Completion, Completions
from warploom.machine.judges import Practice
from warploom.machine.race import Race, RaceDetector
from warploom.machine.semantics import Kind, Semantics
from warploom.ptx.emulate import fragment
from warploom.ptx.emulate import poison as undefined
from warploom.ptx.emulate.access import SHARED, Site, race_error, tallied
from warploom.ptx.emulate.context import Context, Fetch, Step, constant
from warploom.ptx.emulate.flight import WARPS, Flight, Product
from warploom.ptx.emulate.frame import WARP, Frame
from warploom.ptx.emulate.lanes import per_warp
from warploom.ptx.emulate.mbarrier import site_of
from warploom.ptx.emulate.product import (
    BITS,
    Fused,
    Multiply,
    as_result,
    failing,
    multiply,
    signed,
    vector,
    write_warps,
)
from warploom.ptx.emulate.shape import Compile
from warploom.ptx.emulate.skeleton import Skeleton
from warploom.ptx.ir import Immediate, Instruction, Operand, Register, Vector

Array = npt.NDArray[Any]
ROWS = 16  # of each warp
UNIT = 16  # bytes of a place of races
_MODES = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes of a swizzled row
_CAUSE = "wgmma of line {} has not been waited for"


def offsets(descriptor: int, rows: Array, depth: int, size: int, transposed: bool) -> Array:
    """Byte addresses of the elements (row, k) of a matrix in shared memory."""
    start = (descriptor & 0x3FFF) << 4
    leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (16, 32))
    mode = descriptor >> 62 & 3
    width = _MODES[mode]
    r, k = rows[:, None], np.arange(depth)[None, :]
    if transposed:
        inner, line = r * size, k
        if mode == 0:
            place = inner // 16 * stride + line // 8 * leading + line % 8 * 16 + inner % 16
        else:
            place = inner // width * leading + line // 8 * stride + line % 8 * width + inner % width
    else:
        inner, line = k * size, r
        if mode == 0:
            place = line // 8 * stride + inner // 16 * leading + line % 8 * 16 + inner % 16
        else:
            place = line // 8 * stride + line % 8 * width + inner
    place = start + place
    found: Array = place ^ ((place >> 7 & width // 16 - 1) << 4)
    return found


class _Operands:
    """What an instruction names: registers of d and a, descriptors, and its small numbers."""

    def __init__(self, ctx: Context, ins: Instruction) -> None:
        words = ins.modifiers
        shape = re.match(r"m64n(\d+)k(\d+)", next(w for w in words if w.startswith("m64n")))
        assert shape is not None
        self.columns, self.depth = int(shape[1]), int(shape[2])
        kinds = [w for w in words if w in BITS or w in ("f32", "s32")]
        self.result, self.kinds = kinds[0], (kinds[1], kinds[2])
        self.bits = BITS[kinds[1]]
        operands = ins.operands
        self.stores = [ctx.write(each, "b32") for each in vector(operands[0])]
        self.before = [ctx.read(each, "b32") for each in vector(operands[0])]
        self.slots = [ctx.slot(each) for each in vector(operands[0]) if isinstance(each, Register)]
        self.in_registers = isinstance(operands[1], Vector)
        read = "b32" if self.in_registers else "b64"
        self.left = [ctx.read(each, read) for each in vector(operands[1])]
        self.left_slots = [ctx.slot(x) for x in vector(operands[1]) if isinstance(x, Register)]
        self.left_slots *= self.in_registers
        self.right = ctx.read(operands[2], "b64")
        self.adds: Fetch = _truth(ctx, operands[3]) if len(operands) > 3 else _always()
        rest = [each.value for each in operands[4:] if isinstance(each, Immediate)]
        self.signs = (rest[0] < 0, rest[1] < 0) if len(rest) > 1 else (False, False)
        turned = rest[2:]
        if any(abs(sign) != 1 for sign in rest[:2]) or any(bit not in (0, 1) for bit in turned):
            raise ctx.fail(f"{ins.name}: signs are 1 or -1, and transpositions 0 or 1", ins)
        self.turned = (False, bool(turned[0])) if self.in_registers and turned else (
            (bool(turned[0]), bool(turned[1])) if len(turned) > 1 else (False, False)
        )  # fmt: skip


def _always() -> Fetch:
    return constant(np.array([True]))


def _truth(ctx: Context, operand: Operand) -> Fetch:
    if isinstance(operand, Immediate):
        return constant(np.array([operand.value != 0]))
    return ctx.read(operand, "pred")


def multiplier(named: _Operands, saturates: bool) -> Multiply:
    a, b = named.kinds
    if named.result == "s32":
        return lambda x, y, c: arithmetic.whole(signed(x, a), signed(y, b), c, saturates)
    rule = arithmetic.rule_for(90, a, named.depth, warpgroup=True)
    return Fused(named.kinds, named.result, rule)


def mma_async(ctx: Context, ins: Instruction) -> Step:
    named = _Operands(ctx, ins)
    by = multiplier(named, "satfinite" in ins.modifiers)
    packed = 32 // named.bits
    left_places = fragment.left(ROWS, named.depth, packed)
    places = fragment.result(ROWS, named.columns)
    fail, site = failing(ctx, ins), site_of(ctx, ins, 16, Semantics(Kind.READ, asynchronous=True))
    cause = _CAUSE.format(ctx.module.span(ins).line)

    def fetched(
        f: Frame, threads: Array, fetch: Fetch, which: int, reads: list[tuple[int, Tile]]
    ) -> Array:
        """A matrix out of shared memory, for each warp; what is read is added to `reads`."""
        descriptors = _common(f, threads, fetch, "the descriptor", fail).tolist()
        size, turned = named.bits // 8, named.turned[which]
        parts, known = [], dict[tuple[int, Tile], Array]()
        for thread, descriptor in zip(threads[:, 0].tolist(), descriptors, strict=True):
            if int(descriptor) >> 49 & 7:
                raise fail(f, "a descriptor with a base offset, which is not supported", thread)
            warp = thread % f.batch.block_size // WARP % WARPS
            first, rows = (0, named.columns) if which else (ROWS * warp, ROWS)
            tile = _tile(int(descriptor), first, rows, named.depth, size, turned)
            key = int(f.batch.block_of[thread]), tile  # many warps read the same
            if key not in known:
                known[key] = _read(f, site, thread, tile, size)
            parts.append(known[key])
            reads.append((thread, tile))
        return np.stack(parts)

    def step(f: Frame) -> None:
        threads = fragment.warps_of(f, fail)
        _check_group(f, threads, fail)
        if f.batch.check:
            _flight(f).come(f, id(ins), threads, fail)
        if f.batch.skeleton is not None:
            _note_products(f, f.batch.skeleton, threads, ctx.module.span(ins))
        reads: list[tuple[int, Tile]] = []
        if named.in_registers:
            raw = fragment.gathered(f, [read(f) for read in named.left], threads, named.bits)
            a = fragment.elements(raw, left_places)
        else:
            a = fetched(f, threads, named.left[0], 0, reads)
        b = fetched(f, threads, named.right, 1, reads)
        _reading(f, site, reads)
        a, b = (_turned(x, named, at) for at, x in enumerate((a, b)))
        raw = fragment.gathered(f, [read(f) for read in named.before], threads, 64)
        c = fragment.elements(as_result(raw, named.result), places)
        adds = _common(f, threads, named.adds, "whether to add", fail)
        c = np.where(adds[:, None, None], c, c.dtype.type(0))
        made = multiply(a, b, c, by, f.batch.arithmetic)
        lacks = _lacks(f, named, threads[adds]) if f.undefined else {}
        write_warps(f, threads, named.stores, fragment.scattered(made, places, 32))
        _pending(f, named, cause, lacks)

    return step


def _common(
    f: Frame, threads: Array, fetch: Fetch, what: str, fail: Callable[[Frame, str, int], Exception]
) -> Array:  # fmt: skip
    """What all lanes of a warp must agree about, for each warp."""
    each = f.widen(fetch(f))[threads]
    apart = each != each[:, :1]
    if apart.any():
        thread = int(threads[apart][0])
        raise fail(f, f"{what} differs from that of the warp's first lane", thread)
    common: Array = each[:, 0]
    return common


def _check_group(f: Frame, threads: Array, fail: Callable[[Frame, str, int], Exception]) -> None:
    """A warpgroup has four warps; where a block ends sooner, its last warps are in none."""
    size = f.batch.block_size
    outside = threads[:, 0] % size >= size // (WARPS * WARP) * (WARPS * WARP)
    if outside.any():
        thread = int(threads[outside, 0][0])
        raise fail(f, f"the block of {size} threads has no whole warpgroup here", thread)


def _turned(codes: Array, named: _Operands, which: int) -> Array:
    """Codes with their signs turned, if the instruction says so."""
    if not named.signs[which]:
        return codes
    turned: Array = codes ^ codes.dtype.type(1 << named.bits - 1)
    return turned


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """Where the elements of a matrix lie in shared memory, and the units that they touch."""

    at: Array
    units: Array
    last: int


@lru_cache(maxsize=1 << 8)
def _tile(descriptor: int, first: int, rows: int, depth: int, size: int, turned: bool) -> Tile:
    at = offsets(descriptor, np.arange(first, first + rows), depth, size, turned)
    return Tile(at, np.unique(at // UNIT) * UNIT, int(at.max()))


def _read(f: Frame, site: Site, thread: int, tile: Tile, size: int) -> Array:
    region = f.batch.shared
    if tile.last + size > region.size:
        message = f"out-of-bounds access, {tile.last} bytes into {region.name}"
        raise site.error(f, f"{message} ({region.size} bytes)", thread)
    place = _base(f, thread) + tile.at
    if region.written is not None and not region.written[place].all():
        message = "reads shared memory that was never written"
        raise site.error(f, message, thread, UninitialisedError)
    values: Array = region.view(np.dtype(f"u{size}"))[place // size]
    return values


def _base(f: Frame, thread: int) -> int:
    """Where the shared memory of a thread's block begins."""
    origin = f.batch.shared.origin
    return 0 if origin is None else int(origin[thread])


def _warpgroup_of(f: Frame, threads: Array) -> Array:
    """The number of each thread's warpgroup in the batch; a block may end within one."""
    size, most = f.batch.block_size, WARPS * WARP
    found: Array = threads // size * -(-size // most) + threads % size // most
    return found


def _reading(f: Frame, site: Site, reads: list[tuple[int, Tile]]) -> None:
    """For races: a product reads until it is waited for; whoever of its warpgroup waits knows.

    Told apart are the warpgroups of a block, and those of several blocks noted together.
    """
    races = f.batch.races
    if races is None:
        return
    flight, size = _flight(f), f.batch.shared.data.size
    every = np.array([thread for thread, _ in reads])
    numbers = _warpgroup_of(f, every)
    sources = np.array([flight.source(races, group) for group in numbers.tolist()])
    own = every % f.batch.block_size // (WARPS * WARP)
    for group in np.unique(own).tolist():
        some = np.flatnonzero(own == group)
        tiles = [reads[number][1].units for number in some.tolist()]
        counts = [tile.size for tile in tiles]
        who = np.repeat(every[some], counts)
        based = [tile + _base(f, thread) for tile, thread in zip(tiles, every[some].tolist(),
                                                                 strict=True)]  # fmt: skip
        completion = Completions(np.repeat(sources[some], counts), flight.closed[who])
        semantics = replace(site.semantics, under_way=True, told=1 + group)
        found = races.access(
            SHARED, size, who, np.concatenate(based), UNIT, semantics, site.span,
            completion=completion,
        )  # fmt: skip
        if races.strict:
            numbered = zip(every[some].tolist(), based, sources[some].tolist(), strict=True)
            for thread, tile, source in numbered:
                told = Completion(source, int(flight.closed[thread]))
                found += _by_other_lanes(races, thread, tile, size, semantics, site, told)
        elif races.judges.tells:
            _known_to_all(races, zip(every[some].tolist(), based, strict=True), semantics)
        if found and not races.every:
            raise race_error(f, site, found[0])


def _by_other_lanes(
    races: RaceDetector, thread: int, tile: Array, size: int, semantics: Semantics, site: Site,
    told: Completion,
) -> list[Race]:  # fmt: skip
    """A product is of all lanes of a warp, of which the first was looked at: by the manual each
    must know what is read."""
    found: list[Race] = []
    for other in races.vector.others(np.arange(thread, thread + WARP)):
        who = np.full(tile.size, other)
        of = (SHARED, size, who, tile, UNIT, semantics, site.span)
        found += races.access(*of, completion=told)
    return found


def _known_to_all(
    races: RaceDetector, reads: Iterable[tuple[int, Array]], semantics: Semantics
) -> None:
    """Whether all lanes know what is read, of which the first was looked at; else that a product
    is of all of them is relied on. Most often they do: all are asked at once."""
    asked = [
        (np.full(tile.size, other), tile)
        for thread, tile in reads
        for other in races.vector.others(np.arange(thread, thread + WARP))
    ]
    if not asked:
        return
    together = [np.concatenate(each) for each in zip(*asked, strict=True)]
    if races.is_known(SHARED, together[0], together[1], UNIT, semantics):
        return
    for who, tile in asked:
        if not races.is_known(SHARED, who, tile, UNIT, semantics):
            races.judges.relied.add(Practice.TOGETHER)


# -- groups -----------------------------------------------------------------------------------


def _flight(f: Frame) -> Flight:
    if f.batch.flight is None:
        f.batch.flight = Flight(np.zeros(f.n, np.int64))
    found: Flight = f.batch.flight
    return found


def _lacks(f: Frame, named: _Operands, adding: Array) -> dict[int, Array]:
    """By slot, why a sum will be poison: what it is added to is, or a part of the left matrix; a
    sum under way is a value, but for what it lacks itself."""
    adds = np.zeros(f.n, bool)
    adds[adding.reshape(-1)] = True
    left = [f.undefined[slot] for slot in named.left_slots if slot in f.undefined]
    common = np.zeros(f.n, np.int32)
    if left:
        common = per_warp(f.batch, np.maximum, np.where(f.full_mask(), np.maximum.reduce(left), 0))
    out: dict[int, Array] = {}
    products = [one for one in reversed(_flight(f).under_way) if one.frame is f]
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)  # sums of the same products
    for slot in named.slots:
        alike[tuple(n for n, one in enumerate(products) if slot in one.sums)].append(slot)
    for holding, slots in alike.items():
        later, parts = _newest(f, [products[number] for number in holding])
        own = np.where(later, 0, np.stack([f.undefined.get(slot, common) for slot in slots]))
        for row, slot in enumerate(slots):
            for product, mine in parts:
                if slot in product.lacks:
                    own[row, mine] = product.lacks[slot][mine]
        causes = np.maximum(np.where(adds, own, 0), common)
        some = np.asarray(causes.any(axis=1)).tolist()
        out |= {slot: row for slot, row, any_ in zip(slots, causes, some, strict=True) if any_}
    return out


def _newest(f: Frame, products: list[Product]) -> tuple[Array, list[tuple[Product, Array]]]:
    """Threads of which a product is under way, and of each the newest, of those given."""
    later = np.zeros(f.n, bool)  # threads whose newest product was seen; others may be ahead
    parts = []
    for product in products:
        parts.append((product, product.threads & ~later))
        later = later | product.threads
    return later, parts


def _pending(f: Frame, named: _Operands, cause: str, lacks: dict[int, Array]) -> None:
    """The registers of a result hold no value until their group is waited for."""
    if not f.batch.check:
        return
    number = np.full(f.n, undefined.cause_number(f, cause), np.int32)
    undefined.note_all(f, named.slots, f.full_mask(), number)
    _flight(f).add(f, named.slots, named.left_slots, cause, lacks)


def _note_products(f: Frame, skeleton: Skeleton, threads: Array, span: Span) -> None:
    """For the skeleton: these warps, a row each, make their parts of products."""
    closed = _flight(f).closed
    for row in threads:
        group = int(_warpgroup_of(f, row[:1])[0])
        skeleton.multiply(row, group, int(closed[row[0]]), span)


def _note_waited(f: Frame, skeleton: Skeleton, newest: int, span: Span) -> None:
    """For the skeleton: the running warps have waited for all but so many groups."""
    warps, closed = f.batch.warp_of[f.index], _flight(f).closed
    for warp in np.unique(warps).tolist():
        mine = f.index[warps == warp]
        group = int(_warpgroup_of(f, mine[:1])[0])
        skeleton.multiplied(mine, group, int(closed[mine[0]]) - newest - 1, span)


def groups(ctx: Context, ins: Instruction) -> Step:
    """wgmma.fence, commit_group and wait_group N."""
    span, fail = ctx.module.span(ins), failing(ctx, ins)

    def come(f: Frame) -> None:
        if f.batch.check:
            _flight(f).come(f, id(ins), fragment.warps_of(f, fail), fail)

    if "fence" in ins.modifiers:
        return come
    newest = (
        ins.operands[0].value if ins.operands and isinstance(ins.operands[0], Immediate) else None
    )
    if newest is not None:
        if newest < 0:
            raise ctx.fail(f"{ins.name} leaves {newest} groups", ins)
        newest = min(newest, _MOST_GROUPS)

    def step(f: Frame) -> None:
        come(f)
        here, flight = f.full_mask(), _flight(f)
        if newest is None:
            flight.closed = flight.closed + here
            return
        if f.batch.skeleton is not None:
            _note_waited(f, f.batch.skeleton, newest, span)
        for frame, slots, ended, lacks in flight.wait(here, newest):
            undefined.note_all(frame, slots, ended, lacks)
        if f.batch.races is not None:
            flight.tell(f.batch.races, f.index, _warpgroup_of(f, f.index), newest)

    return step


_MOST_GROUPS = 1 << 31  # that a wait may leave: as many as there can be
_KINDS: dict[str, Callable[[Context, Instruction], Step]] = {"mma_async": mma_async}


def wgmma(ctx: Context, ins: Instruction) -> Step:
    kind = _KINDS.get(ins.modifiers[0])
    return groups(ctx, ins) if kind is None else tallied(ctx, ins, kind(ctx, ins))


TABLE: dict[str, Compile] = {"wgmma": wgmma}
