"""Whole rows: the threads of a block hold a row in registers, and fold it as often as need be.

For folds that need each other along one axis, and results along it: softmax, norms, arg-max. Scans
are such results. Lanes
lie beside each other in memory and load vectors; folds go across lanes by shuffles, across warps by
shared memory. A row that has no room in registers is read again for each fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from warploom.loopnest import ir, tiling
from warploom.loopnest.computation import Computation, Folded, Scanned
from warploom.loopnest.instructions import Instead, Remake
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

NAME = "row-per-block"
THREADS = (32, 64, 128, 256, 512, 1024)
WIDTHS = (16, 8, 4, 2, 1)
HELD = 32  # elements of a row that a thread has in registers, at most
GOOD = 8  # the number that is tried first
NEAR = 4  # elements that a thread of a short row has; then several rows share a block
ROWS: Tiles = ((2, 4, 8),)
SCANNED = (2, 4, 8)  # accesses of a thread between two meetings, in a scan of a long row


def variants(program: ir.Program, free: bool) -> list[Variant]:
    over, others = _axes_of(program)
    if over.tiles and not free:
        raise NotMeantError(f"axis '{over}' has tiles of yours")
    width = next(w for w in WIDTHS if w == 1 or _is_wide(program, over, w))
    return [_variant(program, free, over, others, shape) for shape in _shapes(over, width)]


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


def _is_wide(program: ir.Program, over: ir.Axis, width: int) -> bool:
    """Whether every access along the row is of so many neighbours."""
    ages = _ages(program, over)
    own = [(each, axis) for each in (*loads_of(program), *stores_of(program))
           for axis in ages if axis in each.axes]  # fmt: skip
    return all(can_be_vector(each, axis, width) for each, axis in own)


def _shapes(over: ir.Axis, width: int) -> Iterator[tuple[int, int, bool]]:
    """Threads, the width of an access, and whether a thread holds its part of the row."""
    fitting = [t for t in THREADS if -(-over.size // (t * width)) * width <= HELD]
    if not fitting:
        yield from ((threads, width, False) for threads in (256, 512, 1024))
        return
    usual = [t for t in fitting if t * width < 2 * over.size] or fitting[:1]
    usual.sort(key=lambda threads: abs(math.log2(over.size / (threads * GOOD))))
    yield from ((threads, width, True) for threads in usual[:4])


def _variant(
    program: ir.Program,
    free: bool,
    over: ir.Axis,
    others: list[ir.Axis],
    shape: tuple[int, int, bool],
) -> Variant:
    threads, width, is_held = shape
    tiles: list[tuple[int, ...]] = [(threads,), *([(width,)] if width > 1 else [])]
    levels = len(tiles)
    if not is_held and any(each.scanned for each in program.instructions):
        tiles.insert(0, SCANNED)  # threads meet once for all of these
    is_short = over.size <= threads * NEAR and threads == THREADS[0]
    wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ())
    if is_short and others[-1].size > 1:
        wanted[others[-1]] = ROWS
    made = tiled(program, wanted, free, {over: _cut(tiles, is_held)},
                 frozenset({over} if is_held else ()))  # fmt: skip
    fixes = _fixes(made, named(made, others[-1]), [each.name for each in others], levels)
    return Variant(NAME, made, tuple(fixes))


def _cut(tiles: Tiles, is_held: bool) -> Remake:
    """Values travel along an axis without a loop that counts tiles, so that nothing is read again;
    along others they are read once for each fold."""

    def remake(axis: ir.Axis, end: str) -> Instead:
        made = tiling.cut(f"{axis.name}{end}", axis.size, tiles, dynamic=not is_held, tail=True)
        return Instead(ir.affine(made), (made,), (made,))

    return remake


def _fixes(
    program: ir.Program, rows: ir.Axis, others: list[str], levels: int
) -> Iterator[str]:  # fmt: skip
    """Blocks are rows; the tile of the row that has threads is the first of the last `levels`."""
    yield from (f"dim_kind({name}0)=BLOCK" for name in others)
    if program.temporaries:
        yield "lowered=FALSE"
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
            *outside, lane = dims[: len(dims) - levels + 1]
            lanes.append(lane)
            yield from (f"dim_kind({dim})=UNROLL" for dim in outside)
            yield f"dim_kind({lane})=THREAD"
            yield from (f"dim_kind({dim})={_inside(each)}" for dim in dims[len(outside) + 1 :])
    yield from (f"thread_mapping({lanes[0]},{dim})=MAPPED" for dim in lanes[1:])
    yield from (f"thread_mapping({above[0]},{dim})=MAPPED" for dim in above[1:])
    if above:
        yield f"thread_mapping({above[0]},{lanes[0]})=MAPPED_OUT"


def _inside(each: ir.Instruction) -> str:
    return "VECTOR" if isinstance(each.action, ir.Load | ir.Store) else "UNROLL"
