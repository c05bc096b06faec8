"""A thread for each result: whatever a result is folded of, its thread folds by itself.

For programs with folds that no other strategy is meant for, such as folds inside folds, windows,
and several folds over several axes. Threads lie along the axis whose neighbours are side by side in
memory, so that a warp stores, and mostly loads, neighbours; each may have a few results. What is
needed again along a short axis stays in registers.
"""

from __future__ import annotations

from itertools import combinations, product

from warploom.loopnest import ir, tiling
from warploom.loopnest.computation import Computation, Folded
from warploom.loopnest.instructions import Instead, Remake
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Tiles,
    Variant,
    dims_of,
    folds_of,
    loads_of,
    named,
    place_of,
    stores_of,
    tiled,
)

NAME = "thread-per-result"
THREADS = (32, 64, 128, 256)
OWN: Tiles = ((2, 4),)
HELD = 64  # values along an axis that a thread has in registers


def variants(program: ir.Program, free: bool) -> list[Variant]:
    if not folds_of(program):
        raise NotMeantError("it has no folds")
    source = Computation.of(program)
    results = set(source.stores[0].access.axes)
    if any(set(store.access.axes) != results for store in source.stores):
        raise NotMeantError("stores are along different axes")
    if not results or len(results) > 3:
        raise NotMeantError(f"{len(results)} axes of results, not one to three")
    over = {axis for each in source.leaves if isinstance(each, Folded) for axis in each.over}
    if over & results:
        raise NotMeantError("results are along an axis that is folded")
    along = _along(program, source.in_order(frozenset(results)))
    others = [axis for axis in source.in_order(frozenset(results)) if axis is not along]
    again = [axis for axis in source.in_order(frozenset(over)) if _is_folded_again(source, axis)]
    made = []
    refused = NotMeantError("no tiles")
    for held, own in product(([again, []] if again else [[]]), ((), OWN)):
        try:
            made.append(_variant(program, free, along, others, own, held))
        except NotMeantError as error:  # a short axis has no room for several results of a thread
            refused = error
    if not made:
        raise refused
    return made


def _along(program: ir.Program, results: list[ir.Axis]) -> ir.Axis:
    """Returns the axis of results along which neighbours are side by side: in what is stored, or
    else in what is loaded; otherwise the longest."""
    for accesses in (stores_of(program), loads_of(program)):
        near = [a for a in results if any(place_of(each).get(a) == 1 for each in accesses)]
        if near:
            return near[0]
    return max(results, key=lambda axis: axis.size)


def _is_folded_again(source: Computation, axis: ir.Axis) -> bool:
    """Whether an axis is short, and a fold along it needs another one along it."""
    is_short = axis.size <= HELD and not axis.tiles
    return is_short and any(source.ended(each.value).get(axis, 0) > 1 for each in source.stores)


def _held(axis: ir.Axis, end: str) -> Instead:
    made = tiling.cut(f"{axis.name}{end}", axis.size, [(axis.size,)], dynamic=False)
    return Instead(ir.affine(made), (made,), (made,))


def _variant(
    program: ir.Program,
    free: bool,
    along: ir.Axis,
    others: list[ir.Axis],
    own: Tiles,
    held: list[ir.Axis],
) -> Variant:
    wanted: dict[ir.Axis, Tiles] = dict.fromkeys(others, ())
    threads = THREADS if along.size >= THREADS[0] else (along.size,)
    wanted[along] = (threads, *own)
    remade: dict[ir.Axis, Remake] = dict.fromkeys(held, _held)
    made = tiled(program, wanted, free, remade, frozenset(held))
    results = [named(made, each) for each in (along, *others)]
    return Variant(NAME, made, tuple(_fixes(made, results)))


def _fixes(program: ir.Program, results: list[ir.Axis]) -> list[str]:
    """`results` begins with the axis along which threads lie."""
    found = [f"dim_kind({axis}0)=BLOCK" for axis in results]
    found += ["lowered=FALSE"] if program.temporaries else []
    for each in program.instructions:
        for axis in each.axes:
            dims = dims_of(each, axis)
            if axis is results[0]:
                found += [f"dim_kind({dims[0]})=THREAD"] if dims else []
                dims = dims[1:]
            found += [f"dim_kind({dim})={_inside(each)}" for dim in dims]
    loops = {dim: None for each in program.instructions for dim in each.dims
             if dim.tile is None and dim.axis not in results}  # fmt: skip
    found += [f"dim_kind({dim})=LOOP|UNROLL" for dim in loops]
    for one, other in combinations(loops, 2):  # no fold is done once for each step of another
        if not any({one, other} <= set(each.dims) for each in program.instructions):
            found.append(f"order({one},{other})=BEFORE|AFTER|MERGED")
    return found


def _inside(each: ir.Instruction) -> str:
    return "UNROLL|VECTOR" if isinstance(each.action, ir.Load | ir.Store) else "UNROLL"
