"""Whole rows: the threads of a block hold a row in registers, and fold it as often as need be.

For folds that need each other along one axis, and results along it: softmax, norms, arg-max. Scans
are such results. Lanes
lie beside each other in memory and load vectors; folds go across lanes by shuffles, across warps by
shared memory. A row that has no room in registers is read again for each fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from warploom.kernel.ir import Value
from warploom.loopnest import ir, tiling
from warploom.loopnest.computation import Computation, Folded, Scanned
from warploom.loopnest.instructions import Instead, Remake, program_of
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Tiles,
    Variant,
    can_be_vector,
    dims_of,
    loads_of,
    named,
    place_of,
    stores_of,
    tiled,
)
from warploom.loopnest.strategies.online import Pieces, in_pieces
from warploom.loopnest.target import is_aligned
from warploom.machine.record import CUDA

NAME = "row-per-block"
WARP, MOST_THREADS = 32, 1024
LONG = (256, 512, 1024)  # threads, where they do not hold a row
WIDTHS = (16, 8, 4, 2, 1)
HELD = 32  # elements of a row that a thread has in registers, at most
GOOD = 24  # the number that is tried first
BUSY = 0.75  # of what threads could hold, unless nothing else fits
SHAPES = 4
PIECES = 16  # of a long row, which a thread folds one by one and then together
TOGETHER = (4, 2, 1)  # accesses for a piece, on their way at once
NEAR = 4  # elements that a thread of a short row has; then several rows share a block
ROWS: Tiles = ((2, 4, 8),)
SCANNED = (2, 4, 8)  # accesses of a thread between two meetings, in a scan of a long row


def variants(program: ir.Program, free: bool) -> list[Variant]:
    over, others = _axes_of(program)
    if over.tiles and not free:
        raise NotMeantError(f"axis '{over}' has tiles of yours")
    own = _accesses(program, over)
    width = next(w for w in WIDTHS if w == 1 or all(can_be_vector(*each, w) for each in own))
    skew = _skew(own, others, width) if over.size > WARP * NEAR else None
    shapes = [] if skew is None else _shapes(over.size, skew.width, skew)
    if not shapes or shapes[0].held:
        others_too = _shapes(over.size, width, None)
        # What is the same for all rows is no wide access beside rows that begin anywhere.
        shapes = [*others_too, *shapes] if _beside(own, others) else [*shapes, *others_too]
    made, refused = list[Variant](), None
    for shape in shapes:
        try:
            way = _online if shape.together else _variant
            made.append(way(program, free, over, others, shape))
        except NotMeantError as error:
            refused = error
    if not made:
        raise refused or NotMeantError("no number of threads suits the rows")
    return made


@dataclass(frozen=True, slots=True)
class _Shape:
    """Threads of a block, the elements of an access, and whether a thread holds its part of the
    row; with a skew accesses are aligned though rows are not."""

    threads: int
    width: int
    held: bool
    skew: ir.Skew | None = None
    together: int = 0  # accesses of a piece, where pieces are folded as they are read, once


def _axes_of(program: ir.Program) -> tuple[ir.Axis, list[ir.Axis]]:
    """The axis of the rows, and those of which each index is a row."""
    source = Computation.of(program)
    folds = [each for each in source.leaves if isinstance(each, Folded)]
    scans = [each for each in source.leaves if isinstance(each, Scanned)]
    axes = {axis for each in folds for axis in each.over} | {each.over for each in scans}
    if len(axes) != 1:
        raise NotMeantError(f"it folds over {len(axes)} axes, not one")
    (over,) = axes
    again = any(over in store.access.axes for store in source.stores)
    if len(folds) + len(scans) < 2 and not again:
        raise NotMeantError("rows are folded once, and not used again")
    others = [axis for axis in source.axes if axis is not over]
    if not others or len(others) > 3:
        raise NotMeantError(f"{len(others)} axes beside the rows, not one to three")
    if any(set(source.free(each)) != set(others) for each in folds):
        raise NotMeantError("not every fold has a result for each row")
    if any(set(source.free(each)) != {*others, over} for each in scans):
        raise NotMeantError("not every scan is one of each row")
    along = [each for each in (*loads_of(program), *stores_of(program)) if over.name in
             {axis.name for axis in each.axes}]  # fmt: skip
    if not any(place_of(each).get(axis) == 1 for each in along for axis in _ages(program, over)):
        raise NotMeantError(f"neighbours along '{over}' are not side by side in memory")
    return over, others


def _ages(program: ir.Program, over: ir.Axis) -> list[ir.Axis]:
    """The axis, and what it is called where it is looped over again."""
    ages = {axis for each in program.instructions for axis in each.axes}
    rows = {axis for axis in Computation.of(program).axes if axis is not over}
    return [axis for axis in program.axes if axis in ages and axis.size == over.size
            and axis.name not in {row.name for row in rows}]  # fmt: skip


def _accesses(program: ir.Program, over: ir.Axis) -> list[tuple[ir.Instruction, ir.Axis]]:
    """What is loaded and stored along the row, each with the axis that the row is there."""
    return [(each, axis) for each in (*loads_of(program), *stores_of(program))
            for axis in _ages(program, over) if axis in each.axes]  # fmt: skip


def _beside(own: Sequence[tuple[ir.Instruction, ir.Axis]], others: Sequence[ir.Axis]) -> set[str]:
    """By which names rows go where something is loaded beside them that is the same for all rows:
    where rows begin anywhere that is no wide access, and neighbours are of neighbouring threads."""
    rows, found = {axis.name for axis in others}, set[str]()
    for each, axis in own:
        parts = [part.access for part in ir.leaves(_value_of(each)) if isinstance(part, ir.Element)]
        along = [{other.name for other in part.axes} for part in parts if axis in part.axes]
        found |= {axis.name for names in along if not rows & names}
    return found


def _value_of(each: ir.Instruction) -> Value:
    assert isinstance(each.action, ir.Load | ir.Store)
    if isinstance(each.action, ir.Store):
        return each.action.value
    return ir.Element(each.name, None, each.dtype, each.action.access)


def _skew(
    own: Sequence[tuple[ir.Instruction, ir.Axis]], others: Sequence[ir.Axis], width: int
) -> ir.Skew | None:
    """By how much iterations have to begin before a row, so that accesses of the widest kind are
    aligned: of what is stored, or else of what is loaded first. None if they are anyway."""
    names = {axis.name for axis in others}
    for each, axis in reversed(own):
        assert isinstance(each.action, ir.Load | ir.Store)
        access = each.action.access
        away = {other.name: f for other, f in access.near.factors.items() if other is not axis}
        most = CUDA.access_bytes // each.dtype.bytes
        if access.near.factors.get(axis) != 1 or access.named or not away or access.where:
            continue
        if not away.keys() <= names or most <= width:
            continue
        near = tuple((name, factor % most) for name, factor in away.items() if factor % most)
        return ir.Skew(near, access.near.offset % most, most)
    return None


def _shapes(size: int, width: int, skew: ir.Skew | None) -> list[_Shape]:
    """Those that hold a row, the likeliest first; if none can, those that read it again."""
    accesses = -(-(size + (0 if skew is None else skew.most)) // width)
    fitting: list[tuple[float, float, int]] = []
    for each in range(1, HELD // width + 1):
        threads = -(-accesses // (each * WARP)) * WARP
        is_whole = -(-accesses // threads) == each and (each > 1 or threads == accesses)
        if threads <= MOST_THREADS and is_whole:
            busy = accesses / (each * threads)
            fitting.append((busy, abs(math.log2(each * width / GOOD)), threads))
    if accesses <= WARP:  # a warp is enough, with narrower accesses where it is not full
        narrow = next(w for w in WIDTHS if w == 1 or (w <= width and size >= w * WARP))
        return [_Shape(WARP, narrow, True, skew)]
    if not fitting:
        once = [_Shape(n, width, False, skew, some) for n in LONG for some in TOGETHER
                if accesses <= n * some * PIECES]  # fmt: skip
        return [*once[:SHAPES], *(_Shape(n, width, False, skew) for n in LONG)]
    usual = [each for each in fitting if each[0] >= BUSY] or [max(fitting)]
    usual.sort(key=lambda each: each[1])
    return [_Shape(threads, width, True, skew) for _, _, threads in usual[:SHAPES]]


def _variant(
    program: ir.Program,
    free: bool,
    over: ir.Axis,
    others: list[ir.Axis],
    shape: _Shape,
) -> Variant:
    threads, width, is_held = shape.threads, shape.width, shape.held
    tiles: list[tuple[int, ...]] = [(threads,), *([(width,)] if width > 1 else [])]
    levels = len(tiles)
    if not is_held and any(each.scanned for each in program.instructions):
        tiles.insert(0, SCANNED)  # threads meet once for all of these
    is_short = over.size <= threads * NEAR and threads == WARP
    wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ())
    if is_short and others[-1].size > 1:
        wanted[others[-1]] = ROWS
    plain = set[str]()
    if shape.skew is not None and not is_held:
        plain = _beside(_accesses(program, over), others)
    made = tiled(program, wanted, free, {over: _cut(tiles, shape, plain)},
                 frozenset({over} if is_held else ()))  # fmt: skip
    if shape.skew is not None:
        _check_known(made, shape.skew)
    names = [each.name for each in others]
    fixes = _fixes(made, named(made, others[-1]), names, dict.fromkeys(plain, 1), levels)
    return Variant(NAME, _in_registers(made), tuple(fixes))


def _online(
    program: ir.Program,
    free: bool,
    over: ir.Axis,
    others: list[ir.Axis],
    shape: _Shape,
) -> Variant:
    """What is folded is read once, in pieces; what is stored along the row reads it again."""
    source = Computation.of(program)
    cut = _pieces(over, shape, {axis.name for axis in source.axes})
    made = program_of(in_pieces(source, cut), published=False)
    tiles: Tiles = [(shape.threads,), *([(shape.width,)] if shape.width > 1 else [])]
    wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ())
    plain = _beside(_accesses(made, over), others) if shape.skew is not None else set()
    remade = {over: _cut(tiles, shape, plain)} if over in made.axes else {}
    made = tiled(made, wanted, free, remade)
    if shape.skew is not None:
        _check_known(made, shape.skew)
    names = [each.name for each in others]
    piece, lane = (axis.name for axis in cut.which)
    own = {axis.name: 0 for axis in cut.axes} | {lane: 1} | dict.fromkeys(plain, 1)
    fixes = [*_fixes(made, named(made, others[-1]), names, own, len(tiles))]
    pieces = [dim for each in made.instructions for dim in each.dims if dim.axis.name == piece
              and any(axis.name == cut.within[-1].name for axis in each.axes)]  # fmt: skip
    fixes += [f"order({pieces[0]},{dim})=MERGED" for dim in pieces[1:]]
    if remade:
        fixes.append(f"order({pieces[0]},{over.name}0)=BEFORE")
    return Variant(NAME, _in_registers(made), tuple(fixes))


def _pieces(over: ir.Axis, shape: _Shape, taken: set[str]) -> Pieces:
    """Pieces are of neighbours, and of others as far on as all threads have such: each access of a
    warp is of one line after the other."""

    def axis(end: str, size: int, skew: ir.Skew | None = None) -> ir.Axis:
        name = f"{over.name}{end}"
        while name in taken:
            name += "_"
        return ir.Axis(name, size, ((size,),), False, False, skew, False)

    span = over.size + (0 if shape.skew is None else shape.skew.most)
    once = shape.threads * shape.width
    piece = axis("piece", -(-span // (once * shape.together)))
    lane, some = axis("lane", shape.threads), axis("part", shape.together)
    near = axis("near", shape.width, shape.skew)
    at = piece * (once * shape.together) + some * once + lane * shape.width + near
    return Pieces(over, at, (piece, lane), (some, near), shape.skew)


def _in_registers(program: ir.Program) -> ir.Program:
    """Without arrays that values could go through: each thread has what it needs. The space of
    what is left is much smaller."""
    found = tuple(
        each if each.temporary is None
        else replace(each, scope=ir.Scope.THREAD, temporary=None)
        for each in program.communications
    )  # fmt: skip
    return replace(program, communications=found)


def _check_known(program: ir.Program, skew: ir.Skew) -> None:
    """What stands along rows is to know which row it is: by loops of its own, or as the row is the
    block's."""
    rows = [axis for axis in program.axes if axis.name in dict(skew.factors)]
    for each in program.instructions:
        if any(axis.skew for axis in each.axes) and any(
            axis.tiles and axis not in each.axes for axis in rows
        ):
            raise NotMeantError(f"'{each}' is the same for several rows, which begin anywhere")


def _cut(tiles: Tiles, shape: _Shape, plain: set[str]) -> Remake:
    """Values travel along an axis without a loop that counts tiles, so that nothing is read again;
    along others they are read once for each fold. By names that are `plain` threads lie beside each
    other, each with one element."""

    def remake(axis: ir.Axis, end: str) -> Instead:
        name = f"{axis.name}{end}"
        own, skew = ([(shape.threads,)], None) if name in plain else (tiles, shape.skew)
        made = tiling.cut(name, axis.size, own, dynamic=not shape.held, tail=True, skew=skew)
        return Instead(ir.affine(made), (made,), (made,))

    return remake


def _fixes(
    program: ir.Program,
    rows: ir.Axis,
    others: list[str],
    own: Mapping[str, int],
    levels: int,
) -> Iterator[str]:
    """Blocks are rows; the tile of the row that has threads is the first of the last `levels`, of
    some axes of so many as is said of them."""
    yield from (f"dim_kind({name}0)=BLOCK" for name in others)
    ages = [axis for axis in program.axes if axis.dynamic and axis.name not in others]
    yield from (f"order({one}0,{other}0)=BEFORE" for one, other in pairwise(sorted(
        ages, key=lambda axis: (len(axis.name), axis.name))))  # fmt: skip
    lanes: list[ir.Dim] = []
    above: list[ir.Dim] = []
    for each in program.instructions:
        for axis in each.axes:
            dims = dims_of(each, axis)
            if axis.name in others:
                above += dims if axis is rows else []
                yield from (f"dim_kind({dim})=THREAD" for dim in dims)
                continue
            if axis.dynamic:
                yield f"dim_kind({axis}0)=LOOP"
            first = len(dims) - own.get(axis.name, levels)
            yield from (f"dim_kind({dim})=UNROLL" for dim in dims[:first] if first < len(dims))
            for dim in dims[first : first + 1]:
                lanes.append(dim)
                yield f"dim_kind({dim})=THREAD"
            near = dims[first + 1 :] if first < len(dims) else dims
            if axis.skew is not None and 0 < first < len(dims) - 1 and _computes(each):
                # All neighbours are inside, or some are not: that is asked once for them.
                yield from (f"order({dim},{near[-1]})=OUTER" for dim in dims[:first])
            yield from (f"dim_kind({dim})={_inside(each, dim, program)}" for dim in near)
    yield from (f"thread_mapping({lanes[0]},{dim})=MAPPED" for dim in lanes[1:])
    yield from (f"thread_mapping({above[0]},{dim})=MAPPED" for dim in above[1:])
    if above:
        yield f"thread_mapping({above[0]},{lanes[0]})=MAPPED_OUT"


def _computes(each: ir.Instruction) -> bool:
    return isinstance(each.action, ir.Compute)


def _inside(each: ir.Instruction, dim: ir.Dim, program: ir.Program) -> str:
    """One access where neighbours are aligned. Where rows begin anywhere, what is the same for all
    of them is not."""
    if not isinstance(each.action, ir.Load | ir.Store):
        return "UNROLL"
    (tile,) = [tile for tile in program.tiles if tile is dim.tile]
    return "VECTOR" if is_aligned(each.action.access, dim, tile.sizes[0]) else "UNROLL"
