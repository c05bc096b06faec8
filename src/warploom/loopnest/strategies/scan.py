"""Scans along an axis whose neighbours lie far apart, and what comes of them side by side.

Lanes lie along the axis whose neighbours are side by side in memory. Groups of them have a few rows
each, one group after the other; what a group has goes to those behind it through shared memory, and
a loop carries on to the next rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.loopnest import ir
from warploom.loopnest.computation import Computation, Scanned
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Tiles,
    Variant,
    dims_of,
    folds_of,
    named,
    place_of,
    stores_of,
    tiled,
)

LANES = (32, 64, 128)
SHAPES = ((8, 4), (16, 4), (32, 4), (8, 8), (4, 8), (1, 8))  # groups, and rows of each


def column_variants(program: ir.Program, free: bool, name: str) -> list[Variant]:
    along, near = _axes_of(program)
    if along.tiles and not free:
        raise NotMeantError(f"axis '{along}' has tiles of yours")
    made = []
    for groups, rows in SHAPES:
        if groups * rows > 2 * along.size:
            continue
        wanted: dict[ir.Axis, Tiles] = dict.fromkeys(program.axes, ())
        wanted[near] = ([n for n in LANES if n * groups <= 1024],)
        wanted[along] = ((groups,), (rows,)) if groups > 1 else ((rows,),)
        again = tiled(program, wanted, free)
        made.append(Variant(name, again, tuple(_fixes(again, along, near, groups > 1))))
    if not made:
        raise NotMeantError(f"axis '{along}' of {along.size} has no room for its tiles")
    return made


def _axes_of(program: ir.Program) -> tuple[ir.Axis, ir.Axis]:
    """The axis that is scanned along, and that of neighbours."""
    source = Computation.of(program)
    if folds_of(program):
        raise NotMeantError("it has folds and scans")
    axes = {each.over for each in source.leaves if isinstance(each, Scanned)}
    if len(axes) != 1:
        raise NotMeantError(f"it scans along {len(axes)} axes, not one")
    (along,) = axes
    stores = stores_of(program)
    others = [axis for axis in program.axes if axis is not along]
    near = [axis for axis in others if all(place_of(each).get(axis) == 1 for each in stores)]
    if not near or any(set(each.axes) != set(program.axes) for each in stores):
        raise NotMeantError("no neighbours beside the scanned axis are side by side in memory")
    return along, near[0]


def _fixes(
    program: ir.Program, along: ir.Axis, near: ir.Axis, grouped: bool
) -> Iterator[str]:  # fmt: skip
    along, near = named(program, along), named(program, near)
    yield f"dim_kind({along}0)=LOOP"
    yield from (f"dim_kind({axis}0)=BLOCK" for axis in program.axes if axis is not along)
    if program.temporaries:
        yield "lowered=FALSE"
    lanes, groups = list[ir.Dim](), list[ir.Dim]()
    for each in program.instructions:
        lanes += dims_of(each, near)[:1]
        own = dims_of(each, along)
        groups += own[:1] if grouped else []
        yield from (f"dim_kind({dim})=UNROLL" for dim in (own[1:] if grouped else own))
    yield from (f"dim_kind({dim})=THREAD" for dim in (*lanes, *groups))
    for level in (lanes, groups):
        yield from (f"thread_mapping({level[0]},{dim})=MAPPED" for dim in level[1:])
    if groups:
        yield f"thread_mapping({groups[0]},{lanes[0]})=MAPPED_OUT"
