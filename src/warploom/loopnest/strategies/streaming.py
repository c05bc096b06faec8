"""One pass: every element is read and written once, by threads side by side, in vectors.

For programs without folds: elementwise ones and stencils. Threads lie along the axis whose
neighbours are side by side in memory; what is left of the others are blocks. Of a stencil a thread
also has several rows of one column: what neighbours need of each other is loaded once. Threads
whose rows all lie inside have no conditions (`schedule/whole.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from warploom.kernel.ir import Value
from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Kept, Loaded
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Tiles,
    Variant,
    can_be_vector,
    dims_of,
    folds_of,
    loads_of,
    named,
    place_of,
    stores_of,
    tiled,
    wide_sizes,
)

NAME = "one-pass"
THREADS = (64, 128, 256, 512)
ROWS = (2, 4, 8)
HELD = (2, 4, 8, 16)  # rows of a thread, or fewer that divide the axis
WARP, MOST_THREADS = 32, 512
BUSY = 0.9  # of the lanes of warps, at least


def variants(program: ir.Program, free: bool) -> list[Variant]:
    if folds_of(program):
        raise NotMeantError("it has folds")
    stores = stores_of(program)
    every = set(stores[0].axes)
    if any(set(each.axes) != every for each in stores):
        raise NotMeantError("stores are along different axes")
    near = [axis for axis in program.axes if place_of(stores[0]).get(axis) == 1]
    if not near or len(program.axes) > 3:
        raise NotMeantError("no axis whose neighbours are side by side, or more than three axes")
    along, others = near[0], [axis for axis in program.axes if axis is not near[0]]
    accesses = [*stores, *loads_of(program)]
    wide = any(can_be_vector(each, along) for each in accesses if along in each.axes)
    made: list[Variant] = []
    refused: NotMeantError | None = None
    sizes = wide_sizes(accesses) if wide else ()
    ways = [(own, rows, False) for own, rows in _tiles(sizes, bool(others))]
    if others and _shares_rows(program, others[-1]):
        size = others[-1].size
        held = [n for n in range(2, HELD[-1] + 1) if n <= size and (n in HELD or size % n == 0)]
        ways += [(_lanes(along.size), [tuple(held)], True)] if held else []
    for own, rows, is_held in ways:
        wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ())
        wanted[along] = own
        if others:
            wanted[others[-1]] = rows
        try:
            again = tiled(program, wanted, free)
            made.append(Variant(NAME, again, tuple(_fixes(again, along, others, is_held))))
        except NotMeantError as error:
            refused = refused or error
    if not made:
        raise refused or NotMeantError("no tiles")
    return made


def _shares_rows(program: ir.Program, rows: ir.Axis) -> bool:
    """Whether some array is loaded in several rows at once."""
    places = defaultdict[ir.Array, set[int]](set)
    for each in Computation.of(program).leaves:
        if isinstance(each, Loaded):
            place = each.access.place
            factor = {str(axis): f for axis, f in place.factors.items()}.get(str(rows), 0)
            if factor:
                places[each.access.array].add(place.offset // factor)
    return any(len(each) > 1 for each in places.values())


def _is_shared(program: ir.Program) -> bool:
    """Whether several stores are of the same element."""
    loaded = [set(_loaded(each.value)) for each in Computation.of(program).stores]
    return any(one & other for one, other in combinations(loaded, 2))


def _loaded(value: Value) -> Iterator[Loaded]:
    for each in ir.leaves(value):
        if isinstance(each, Loaded):
            yield each
        elif isinstance(each, Kept):
            yield from _loaded(each.value)


def _lanes(size: int) -> Tiles:
    """As many threads as divide the axis, if they are nearly whole warps."""
    dividing = [n for n in range(WARP, MOST_THREADS + 1)
                if size % n == 0 and n >= BUSY * WARP * -(-n // WARP)]  # fmt: skip
    return [tuple(sorted({*dividing, *(n for n in (64, 128, 256) if n <= size)}))]


def _tiles(wide: tuple[int, ...], has_rows: bool) -> list[tuple[Tiles, Tiles]]:
    """Returns tiles of the axis along which threads lie, and of the next one; `wide` are how many
    neighbours an access may have."""
    near: list[Tiles] = [(THREADS, wide)] if wide else []
    near += [(THREADS,)]
    if not has_rows:
        return [(each, ()) for each in (*near, ((2, 4, 8), THREADS, wide or (2, 4)))]
    short: list[Tiles] = [((32, 64, 128, 256), wide)] if wide else []
    short.append(((32, 64, 128, 256),))
    return [(each, rows) for each in short for rows in ((), (ROWS,), (ROWS, (2, 4)))]


def _inside(each: ir.Instruction, axis: ir.Axis, level: int) -> str:
    """How a thread goes over its neighbours: by one access where that is possible."""
    if not isinstance(each.action, ir.Load | ir.Store):
        return "UNROLL"
    wide = all(can_be_vector(each, axis, width) for width in axis.tiles[level])
    return "VECTOR" if wide else "UNROLL|VECTOR"


def _fixes(program: ir.Program, along: ir.Axis, others: list[ir.Axis], held: bool) -> list[str]:
    """`held`: all rows of a tile are a thread's."""
    axis, rows = named(program, along), [named(program, each) for each in others]
    found = [f"dim_kind({each}0)=BLOCK" for each in (axis, *rows)]
    found += ["lowered=FALSE"] if program.temporaries else []
    if held or _is_shared(program):  # what streams is kept for nobody, and each load of it stays
        found += [f"cache({each})=CACHE_SHARED" for each in stores_of(program)]
    thread = 0 if len(axis.tiles) < 3 else 1
    for each in program.instructions:
        for at, dim in enumerate(dims_of(each, axis)):
            if at == thread:
                found.append(f"dim_kind({dim})=THREAD")
            else:  # not threads again: all stores are done by the same ones
                found.append(
                    f"dim_kind({dim})={_inside(each, axis, at) if at > thread else 'UNROLL'}"
                )
        for row in rows:
            for at, dim in enumerate(dims_of(each, row)):
                found.append(f"dim_kind({dim})={'UNROLL' if held or at else 'THREAD'}")
                if not held and at == 0:  # neighbours in memory are neighbours in a warp
                    lane = dims_of(each, axis)[thread]
                    found.append(f"thread_mapping({dim},{lane})=MAPPED_OUT")
    return found
