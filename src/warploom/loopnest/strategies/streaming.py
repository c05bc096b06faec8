"""One pass: every element is read and written once, by threads side by side, in vectors.

For programs without folds: elementwise ones and stencils. Threads lie along the axis whose
neighbours are side by side in memory; what is left of the others are blocks.
"""

from __future__ import annotations

from warploom.loopnest import ir
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
)

NAME = "one-pass"
THREADS = (64, 128, 256, 512)
ROWS = (2, 4, 8)


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
    for own, rows in _tiles(wide, bool(others)):
        wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ())
        wanted[along] = own
        if others:
            wanted[others[-1]] = rows
        try:
            again = tiled(program, wanted, free)
            made.append(Variant(NAME, again, tuple(_fixes(again, along, others))))
        except NotMeantError as error:
            refused = refused or error
    if not made:
        raise refused or NotMeantError("no tiles")
    return made


def _tiles(wide: bool, has_rows: bool) -> list[tuple[Tiles, Tiles]]:
    """Returns tiles of the axis along which threads lie, and of the next one."""
    near: list[Tiles] = [(THREADS, (2, 4))] if wide else []
    near += [(THREADS,)]
    if not has_rows:
        return [(each, ()) for each in (*near, ((2, 4, 8), THREADS, (2, 4)))]
    short: list[Tiles] = [((32, 64, 128, 256), (2, 4))] if wide else []
    short.append(((32, 64, 128, 256),))
    return [(each, rows) for each in short for rows in ((), (ROWS,), (ROWS, (2, 4)))]


def _fixes(program: ir.Program, along: ir.Axis, others: list[ir.Axis]) -> list[str]:
    axis, rows = named(program, along), [named(program, each) for each in others]
    found = [f"dim_kind({each}0)=BLOCK" for each in (axis, *rows)]
    found += ["lowered=FALSE"] if program.temporaries else []
    thread = 0 if len(axis.tiles) < 3 else 1
    for each in program.instructions:
        for at, dim in enumerate(dims_of(each, axis)):
            if at == thread:
                found.append(f"dim_kind({dim})=THREAD")
            elif at < thread or not isinstance(each.action, ir.Load | ir.Store):
                found.append(f"dim_kind({dim})=UNROLL")
        for row in rows:
            for at, dim in enumerate(dims_of(each, row)):
                found.append(f"dim_kind({dim})={'THREAD' if at == 0 else 'UNROLL'}")
    return found
