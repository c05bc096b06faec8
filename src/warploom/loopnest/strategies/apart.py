"""Split over blocks: parts of long folds by blocks of their own, put together by a second kernel.

For few results of a long fold, whose blocks would leave much of a GPU idle. What computes the parts
has the tiles of another strategy: that of products, of columns or of rows. What puts them together
has a thread for some neighbours, does all that comes after the fold, and is decided whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from warploom.loopnest import ir
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.parted import NotPartedError, Parted, parted
from warploom.loopnest.strategies import matrix, product, reduction
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Room,
    Tiles,
    Variant,
    can_be_vector,
    dims_of,
    folds_of,
    named,
    place_of,
    stores_of,
    tiled,
)

NAME = "split-over-blocks"
LONG = 1024  # terms of a fold
COLUMNS, ROWS = 1 << 13, 1 << 10  # results of folds that are no products
TILE = 128  # side of a tile of results, and columns of a block
EACH = (2, 4, 1)  # blocks that a processor may have
WHOLE = 8  # terms of a tile of the fold
MOST = 16  # parts
SEVERAL = 3  # ways to tile, of each number of parts
LANES, WIDTH, WARPS = 32, 4, 4  # of the second kernel


def variants(program: ir.Program, free: bool, room: Room) -> list[Variant]:
    folds = folds_of(program)
    if len(folds) != 1 or len({dim.axis for dim in folds[0].over}) != 1:
        raise NotMeantError("it is no single fold over one axis")
    over = folds[0].over[0].axis
    if over.size < LONG:
        raise NotMeantError(f"a fold of {over.size} terms is not long")
    if over.tiles and not free:
        raise NotMeantError(f"axis '{over}' has tiles of yours")
    blocks, processors = _blocks(program), room.processors
    if 2 * blocks > processors * EACH[0]:
        raise NotMeantError(f"{blocks} blocks of results are enough")
    most = _most(folds[0], room)
    counts = _counts(over.size, [processors * each / blocks for each in EACH], most)
    if not counts:
        raise NotMeantError(f"axis '{over}' of {over.size} has no equal parts")
    found: list[Variant] = []
    refused: NotMeantError | None = None
    for count in counts:
        try:
            found += _variants(Computation.of(program), count, free, room)
        except NotMeantError as error:
            refused = refused or error
    if not found:
        raise refused or NotMeantError("no tiles")
    return found


def _most(fold: ir.Instruction, room: Room) -> int:
    """The most parts that there is room for."""
    if room.between is None:
        return MOST
    over = {dim.axis for dim in fold.over}
    results = math.prod(axis.size for axis in fold.axes if axis not in over)
    most = room.between // (results * fold.dtype.bytes)
    if most < 2:
        raise NotMeantError(f"{room.between} bytes hold less than two parts of the results")
    return min(MOST, most)


def _counts(size: int, wished: Sequence[float], most: int) -> list[int]:
    """Into how many parts: divisors, the nearest to each wish, by which tiles are whole."""
    parts = [n for n in range(2, most + 1) if size % n == 0 and size // n % WHOLE == 0]
    parts = parts or [n for n in range(2, most + 1) if size % n == 0]
    nearest = [min(parts, key=lambda n: max(n / wish, wish / n)) for wish in wished if parts]
    return list(dict.fromkeys(nearest))


def _blocks(program: ir.Program) -> int:
    """How many blocks have the results, if each makes as many as is good for it."""
    with suppress(NotMeantError):
        return matrix.blocks(program)
    try:
        found = product.product_of(program)
    except NotMeantError:
        return _blocks_of_others(program)
    sides = (found.rows.size, found.columns.size)
    others = math.prod(axis.size for axis in found.others)
    return others * math.prod(-(-size // TILE) for size in sides)


def _blocks_of_others(program: ir.Program) -> int:
    found = reduction.reduction_of(program)
    results = math.prod(axis.size for axis in (found.results, *found.others))
    most, each = (ROWS, 1) if reduction.is_row(found) else (COLUMNS, TILE)
    if results > most:
        raise NotMeantError(f"{results} results are enough for all blocks")
    return -(-results // each)


def _variants(source: Computation, count: int, free: bool, room: Room) -> list[Variant]:
    try:
        made = parted(source, count)
    except NotPartedError as error:
        raise NotMeantError(str(error)) from None
    first = program_of(made.parts, published=False)
    after = _after(made)
    return [
        replace(each, strategy=NAME, after=after) for each in _first(first, free, room)[:SEVERAL]
    ]


def _first(program: ir.Program, free: bool, room: Room) -> list[Variant]:
    """The ways to tile what computes the parts."""
    with suppress(NotMeantError):
        return matrix.variants(program, free, room)
    try:
        return product.variants(program, free)
    except NotMeantError:
        found = reduction.reduction_of(program)
    if reduction.is_row(found):
        return reduction.row_variants(program, free)
    return reduction.column_variants(program, free)


# -- what puts the parts together ------------------------------------------------------------------


def _after(made: Parted) -> Variant:
    program = program_of(made.after, published=False)
    (store, *_), rows = stores_of(program), [axis for axis in program.axes if axis.dynamic]
    along = next((axis for axis in rows if place_of(store).get(axis) == 1), rows[-1])
    others = [axis for axis in rows if axis is not along]
    if len(others) > 2:
        raise NotMeantError("more than three axes beside the fold")
    is_wide = can_be_vector(store, along, WIDTH) and along.size >= 2 * WIDTH
    lanes = _power_in(along.size // (WIDTH if is_wide else 1), LANES)
    own: Tiles = [] if lanes < 2 else [(lanes,), (WIDTH,)] if is_wide else [(lanes,)]
    wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ()) | {along: own}
    if others and others[-1].size >= WARPS:
        wanted[others[-1]] = [(WARPS,)]
    again = tiled(program, wanted, True)
    return Variant(NAME, again, tuple(_fixes(again, named(again, along), others)))


def _power_in(size: int, most: int) -> int:
    return min(most, 1 << max(0, size.bit_length() - 1))


def _fixes(program: ir.Program, along: ir.Axis, others: list[ir.Axis]) -> Iterator[str]:
    rows = [named(program, each) for each in others]
    yield from (f"dim_kind({axis}0)=BLOCK" for axis in (along, *rows))
    if program.temporaries:
        yield "lowered=FALSE"
    lanes: list[ir.Dim] = []
    warps: list[ir.Dim] = []
    for each in program.instructions:
        is_access = isinstance(each.action, ir.Load | ir.Store)
        for axis in program.axes:
            for at, dim in enumerate(dims_of(each, axis)):
                if axis in (along, *rows) and at == 0:
                    (lanes if axis is along else warps).append(dim)
                    yield f"dim_kind({dim})=THREAD"
                else:
                    vector = is_access and axis is along and can_be_vector(each, along, WIDTH)
                    yield f"dim_kind({dim})={'VECTOR' if vector else 'UNROLL'}"
    for dims in (lanes, warps):
        yield from (f"thread_mapping({dims[0]},{dim})=MAPPED" for dim in dims[1:])
    if lanes and warps:
        yield f"thread_mapping({warps[0]},{lanes[0]})=MAPPED_OUT"
