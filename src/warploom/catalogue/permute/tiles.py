"""Tiles of a movement whose neighbours in x are no neighbours in y: which there are, what each
costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product

from warploom.catalogue.permute.convert import Conversion
from warploom.catalogue.permute.cost import SECTOR, Work
from warploom.catalogue.permute.cuts import ONE, WHOLE, Cut, cut, numbered, prefixes, side_by_side
from warploom.catalogue.permute.launch import (
    Candidate,
    Part,
    Place,
    beyond,
    counted,
    part,
    tile_part,
)
from warploom.catalogue.permute.problem import MOST_OFFSET, Axis, Movement
from warploom.catalogue.permute.requests import of_tile
from warploom.catalogue.permute.tile import WindowTile, pitch_of
from warploom.catalogue.permute.vector import CHUNK, Vectors

# Settled from the record of the whole space on an H200 (bench/results/layout_transpose.json).
_VECTORS = {
    8: Vectors(8, 32, 64, 512, 16),
    4: Vectors(4, 64, 64, 512, 16, whole=True),
    2: Vectors(2, 128, 128, 512, 4),
    1: Vectors(1, 128, 256, 256, 4),
}
# Where x and y have room in a large GPU's cache: bench/results/permute/probe_3.json, probe_4.json.
_CACHED = {
    1: Vectors(1, 64, 64, 64, 4, streaming=(False, True)),
    2: Vectors(2, 64, 32, 128, 4, streaming=(False, True)),
}
CACHED_BYTES = 32 << 20  # of both
_MOST_BYTES = 32 << 10
MANY_BLOCKS = 1200  # fewer are not enough for all multiprocessors to end together
FEW_BLOCKS = 264  # two for each multiprocessor of a large GPU: below, tiles are smaller
SHARED_BYTES = 48 << 10  # of a block
SIDES = (16, 32, 64, 128, 256)
SHORT = 8  # of a side of x that is no longer
FEWER = 4  # chunks along p than along q: then those of p come first
LINEAR = 128  # steps of a whole row that is read as a part of a longer run


def reading(moved: Movement) -> list[Axis]:
    """The axes along which x is read, in the order of its memory."""
    return sorted((axis for axis in moved.axes if axis.read), key=lambda axis: abs(axis.read))


def candidates(place: Place) -> Iterator[Candidate]:
    """Tiles of a movement that reads and writes side by side, along different axes."""
    moved = place.moved
    read = reading(moved)
    if not read or read[0] is moved.axes[0] or (read[0].read, moved.axes[0].write) != (1, 1):
        return
    if moved.to is None and is_aligned(place, read[0]):
        yield from _vectors(place, read[0])
    if all(axis.read >= 0 for axis in moved.axes):
        for p, q in _digits(moved, read):
            yield from _tiles(place, p, q)


# -- 16 bytes at a time ----------------------------------------------------------------------------


def is_aligned(place: Place, p: Axis) -> bool:
    """Whether all rows begin at a multiple of 16 bytes, in x and in y."""
    moved = place.moved
    q, wide = moved.axes[0], CHUNK // moved.bytes
    if moved.bytes not in _VECTORS or (place.x_late | place.y_late) % CHUNK:
        return False
    numbers = [p.size, q.size, p.write, q.read, moved.first_read, moved.first_write]
    numbers += [n for axis in moved.axes if axis not in (p, q) for n in (axis.read, axis.write)]
    return min(axis.read for axis in moved.axes) >= 0 and all(n % wide == 0 for n in numbers)


def _vectors(place: Place, p: Axis) -> Iterator[Candidate]:
    moved, q = place.moved, place.moved.axes[0]
    usual = _VECTORS[moved.bytes]
    few = moved.count < MANY_BLOCKS * usual.p * usual.q
    shapes = vector_shapes(moved.bytes)
    if moved.bytes in _CACHED and 2 * moved.count * moved.bytes <= CACHED_BYTES:
        usual = _CACHED[moved.bytes]
        shapes = (usual,)
    for spec in shapes:
        p_cut, q_cut = cut((p,), spec.p, spec.wide), cut((q,), spec.q, spec.wide)
        if p_cut is None or q_cut is None:
            continue
        blocks = p_cut.chunks * q_cut.chunks * moved.count // (p.size * q.size)
        if (blocks >= FEW_BLOCKS and few) or spec == usual:
            total = moved.count * moved.bytes
            held = spec.p * spec.q * moved.bytes // spec.threads // 4
            work = Work(
                "vector", moved.bytes, total, total / blocks,
                side_by_side(p_cut, q_cut) * moved.bytes, math.inf, 0.0, held,
            )  # fmt: skip
            make = partial(vector_part, spec, place, p_cut, q_cut)
            yield Candidate(work, spec, make)


@lru_cache(maxsize=8)
def vector_shapes(size: int) -> tuple[Vectors, ...]:
    """The tile that is best for large matrices, and others: smaller ones, longer on a side."""
    usual = _VECTORS[size]
    found = [usual]
    for p, q in product(SIDES, SIDES):
        bytes, least = p * q * size, min(p, q) * size
        if min(least, p * size // 2) < 64 or not 1 <= 4 * q * usual.p / (p * usual.q) <= 16:
            continue
        for threads, beside in product((512, 256, 128), (usual.beside, 16, 8, 4, 2)):
            spec = replace(usual, p=p, q=q, beside=beside, threads=threads)
            if 32 <= bytes // threads <= 128 and bytes <= _MOST_BYTES and spec.fits:
                found.append(spec)
                break
    return tuple(dict.fromkeys(found))


def vector_part(spec: Vectors, place: Place, p: Cut, q: Cut) -> Part:
    """The same movement of words of 16 bytes: sizes of sides stay in elements."""
    moved, wide = place.moved, spec.wide
    held = {*p.digits, *q.digits}
    others = [axis for axis in moved.axes if axis not in held]
    grid = counted([q.outer(), p.outer(), *others], spec.grid)
    spec = replace(spec, grid=len(grid), beyond=beyond(grid))
    made = part(spec, place, grid, {"p": p, "q": q})
    strides = {key for key in made.scalars if key.startswith(("read", "write", "first"))}
    strides |= {"p_write0", "q_read0"}
    scalars = {k: v // wide if k in strides else v for k, v in made.scalars.items()}
    for name in ("x_size", "y_size"):
        scalars[name] = scalars[name] // wide * spec.words
    return replace(made, scalars=scalars)


# -- windows of any rows ---------------------------------------------------------------------------


def _digits(
    moved: Movement, read: Sequence[Axis]
) -> Iterator[tuple[tuple[Axis, ...], tuple[Axis, ...]]]:
    """The axes of both sides of a tile, the innermost first: as many as lie side by side."""
    for p, q in product(prefixes(read, "read"), prefixes(moved.axes, "write")):
        if not set(p) & set(q):
            yield p, q


def _tiles(place: Place, p: tuple[Axis, ...], q: tuple[Axis, ...]) -> Iterator[Candidate]:
    p_digits, q_digits = numbered(p, plain=False), numbered(q, plain=False)
    for tile in _shapes(place, p_digits, q_digits):
        if tile.shared_bytes > SHARED_BYTES:
            continue
        p_cut = cut(p_digits, tile.p)
        q_cut = cut(q_digits, tile.q, max(tile.align, tile.out), tile.align - 1)
        if p_cut is None or q_cut is None or tile.p * abs(p[0].write) >= MOST_OFFSET:
            continue
        tile = replace(tile, p_first=FEWER * p_cut.chunks < q_cut.chunks)
        make = partial(tile_part, tile, place, p_cut, q_cut)
        yield Candidate(_work(place, tile, p_cut, q_cut), tile, make)


def _shapes(place: Place, p: tuple[Axis, ...], q: tuple[Axis, ...]) -> Iterator[WindowTile]:
    """Tiles with both sides no larger than the axes need."""
    moved = place.moved
    size, word = moved.bytes, max(1, 4 // moved.bytes)
    out = max(1, 4 // moved.written_bytes)
    align = max(out, SECTOR // moved.written_bytes)
    usual = WindowTile(
        size, 1, 1, align=align, out=out, p_digits=len(p), q_digits=len(q), to=_to(moved)
    )
    count = math.prod(axis.size for axis in p)
    for q_side in _sides(math.prod(axis.size for axis in q) + align - 1, 32 * out):
        short = [SHORT] if count + word - 1 <= SHORT else []
        for side in (*short, *_sides(count + word - 1, 32 * word)):
            p_side = side - (word - 1)
            tile = replace(usual, p=p_side, q=q_side)
            if word == 1:
                yield tile
                continue
            tile = replace(tile, wide=word)
            yield tile
            if len(q) == 1:
                yield replace(tile, residue=q[0].read % word)
        if count <= LINEAR and _goes_on(p, q):
            wide = 4 if size < 8 else 1
            yield replace(usual, p=count, q=q_side, wide=wide, linear=True)


def _to(moved: Movement) -> Conversion | None:
    return None if moved.to is None else moved.to.to


def _sides(count: int, most: int) -> list[int]:
    """Sides of tiles, up to the first that has all steps."""
    found = []
    for side in SIDES:
        if side <= 8 * most:
            found.append(side)
        if side >= count:
            break
    return found


def _goes_on(p: Sequence[Axis], q: Sequence[Axis]) -> bool:
    """Whether rows of x follow each other."""
    expected = math.prod(axis.size for axis in p)
    for axis in q:
        if axis is ONE:
            continue
        if axis.read != expected:
            return False
        expected *= axis.size
    return True


def _work(place: Place, tile: WindowTile, p: Cut, q: Cut) -> Work:
    moved, size = place.moved, place.moved.bytes
    blocks = p.chunks * q.chunks * moved.count // (p.count * q.count)
    rows = min(tile.rows, q.chunk + tile.align - 1)
    total = math.ceil(moved.count * moved.mean_bytes)
    return Work(
        "linear" if tile.linear else "tile", size, total, total / blocks,
        side_by_side(p, q, more=tile.align - 1) * size, _ends(place, p, q),
        tile.threads * _instructions(tile, rows), _held(tile, rows),
        (tile.p_digits > 1) + (tile.q_digits > 1), (rows - q.chunk) / q.chunk,
        of_tile(tile, p, q),
    )  # fmt: skip


def _held(tile: WindowTile, rows: int) -> int:
    """Registers of a thread that wait for memory."""
    words = tile.passes * tile.times
    if tile.linear:
        words = -(-rows * tile.p // (tile.wide * tile.threads))
    return words * max(1, tile.wide * tile.bytes // 4)


def _instructions(tile: WindowTile, rows: int) -> float:
    """How many a thread has, about as compilers make them."""
    words = tile.passes * tile.times
    if tile.linear:
        words = -(-rows * tile.p // (tile.wide * tile.threads))
    load = 5 + 3 * (tile.q_digits > 1) + 2 * (tile.wide > 1)
    if tile.in_parts:
        load += 1 + 2 * tile.wide
    stores = tile.lines * -(-tile.q // (tile.along * tile.out))
    store = 5 + 2 * max(tile.out, pitch_of(tile)[1] - tile.out)
    lines = 20 * tile.classes + 25 * tile.lines * (tile.p_digits > 1)
    return 90 + words * load + stores * store + lines


def _ends(place: Place, p: Cut, q: Cut) -> float:
    """Bytes from one sector of y that two blocks write to the next. Lines of a block that follow
    each other meet in the cache."""
    moved, size = place.moved, place.moved.written_bytes
    begins = [place.y_late + moved.first_write * size, q.count * size]
    begins += [axis.write * size for axis in moved.axes if axis not in q.digits]
    if all(begin % SECTOR == 0 for begin in begins):
        return math.inf
    first = next((axis for axis in p.digits if axis is not ONE), ONE)
    beside = min(first.size, p.chunk) if first.write == q.count else 1
    return q.count * size * beside


def strided(place: Place) -> Candidate:
    """The tile that takes whatever there is, element by element."""
    moved = place.moved
    read = reading(moved)
    p_axes = read[:1] or [ONE]
    q_axes = [axis for axis in moved.axes if axis not in p_axes][:1] or [ONE]
    p, q = (numbered(each, plain=True) for each in (p_axes, q_axes))
    tile = WindowTile(
        moved.bytes, 32, 32, strided=True, p_digits=len(p), q_digits=len(q), grid=9, to=_to(moved)
    )
    p_cut, q_cut = cut(p, tile.p) or WHOLE, cut(q, tile.q) or WHOLE
    return Candidate(None, tile, partial(tile_part, tile, place, p_cut, q_cut))
