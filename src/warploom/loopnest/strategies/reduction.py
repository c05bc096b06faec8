"""Folds in parts: the threads of a block fold parts of an axis beside each other, then these.

*Warp per row*: where neighbours along the folded axis lie side by side in memory, lanes read them
in vectors. *Threads per column*: where neighbours along another axis do, threads lie along that
one, and groups of them have every so manieth row. The parts meet in shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warploom.errors import UnsupportedError
from warploom.loopnest import ir
from warploom.loopnest.instructions import in_parts
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

ROW, COLUMN = "warp-per-row", "threads-per-column"
LANES = (32, 128, 16)  # wished for, the first most
GROUPS = (32, 16, 8)
WIDTHS = (16, 8, 4, 2, 1)
ENOUGH = 1 << 16  # threads for a GPU
SHORT = 64  # elements of a column


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A fold over one axis; `results` is the axis that its blocks share out."""

    fold: ir.Instruction
    over: ir.Axis
    results: ir.Axis
    others: tuple[ir.Axis, ...]
    loads: tuple[ir.Instruction, ...]  # along the folded axis


def reduction_of(program: ir.Program) -> Reduction:
    folds = folds_of(program)
    if len(folds) != 1:
        raise NotMeantError(f"it has {len(folds)} folds, not one")
    (fold,) = folds
    over = list(dict.fromkeys(dim.axis for dim in fold.over))
    if len(over) != 1:
        raise NotMeantError("the fold is over more than one axis")
    free = [axis for axis in program.axes if axis is not over[0]]
    if not free or len(free) > 3:
        raise NotMeantError(f"{len(free)} axes beside the fold, not one to three")
    loads = tuple(each for each in loads_of(program) if over[0] in each.axes)
    if not any(set(free) <= set(each.axes) for each in loads):
        raise NotMeantError("no load is along all axes: results share what they read")
    if len(stores_of(program)) != 1:
        raise NotMeantError("more than one store")
    results = _along(loads, free)
    others = tuple(axis for axis in free if axis is not results)
    return Reduction(fold, over[0], results, others, loads)


def _along(loads: Sequence[ir.Instruction], free: list[ir.Axis]) -> ir.Axis:
    """The free axis along which neighbours are side by side, or the longest."""
    near = [axis for axis in free if any(place_of(each).get(axis) == 1 for each in loads)]
    return near[0] if near else max(free, key=lambda axis: axis.size)


def is_row(found: Reduction) -> bool:
    return any(place_of(each).get(found.over) == 1 for each in found.loads
               if found.results in each.axes)  # fmt: skip


# -- rows ------------------------------------------------------------------------------------------


def row_variants(program: ir.Program, free: bool) -> list[Variant]:
    found = reduction_of(program)
    if not is_row(found):
        raise NotMeantError(f"neighbours along '{found.over}' are not side by side in memory")
    _check_free(found, free)
    width = next(w for w in WIDTHS if w == 1 or _is_wide(found, w))
    counts = _counts(found.over.size // width, LANES)
    if not counts:
        raise NotMeantError(f"axis '{found.over}' of {found.over.size} has no equal parts")
    made = []
    for lanes in counts:
        parts = [("lane", lanes), *([("wide", width)] if width > 1 else [])]
        rows: Tiles = ([1 << bit for bit in range(1, 6) if (1 << bit) * lanes <= 1024], (2, 4))
        if lanes > 64:
            rows = ((2, 4),)
        made.append(_in_parts(program, free, found, parts, rows, ROW))
    return made


def _is_wide(found: Reduction, width: int) -> bool:
    along = [each for each in found.loads if place_of(each).get(found.over) == 1]
    return all(can_be_vector(each, found.over, width) for each in along)


def _counts(size: int, wished: Sequence[int]) -> list[int]:
    """Divisors of a size, the nearest to each wish."""
    divisors = [n for n in range(4, min(size, 256) + 1) if size % n == 0]
    nearest = [min(divisors, key=lambda n: max(n / w, w / n)) for w in wished if divisors]
    return list(dict.fromkeys(nearest))


def _check_free(found: Reduction, free: bool) -> None:
    if found.over.tiles and not free:
        raise NotMeantError(f"axis '{found.over}' has tiles of yours")


# -- columns ---------------------------------------------------------------------------------------


def column_variants(program: ir.Program, free: bool) -> list[Variant]:
    found = reduction_of(program)
    if is_row(found) or all(place_of(each).get(found.results) != 1 for each in found.loads):
        raise NotMeantError("no neighbours beside the folded axis are side by side in memory")
    _check_free(found, free)
    counts = _counts(found.over.size, GROUPS)
    if not counts:
        raise NotMeantError(f"axis '{found.over}' of {found.over.size} has no equal parts")
    made = [_alone(program, free, found)] if _are_many(found) else []
    for groups in counts:
        threads = [n for n in (8, 16, 20, 24, 32, 40, 48, 64, 128) if n * groups <= 1024]
        tiles: list[Tiles] = [(threads,)]
        if all(can_be_vector(each, found.results) for each in found.loads
               if found.results in each.axes):  # fmt: skip
            tiles.append((threads, wide_sizes(found.loads)))
        made += [_in_parts(program, free, found, [("part", groups)], columns, COLUMN)
                 for columns in tiles]  # fmt: skip
    return made


def _are_many(found: Reduction) -> bool:
    """Whether there are threads enough if each folds a column alone, and that is soon done."""
    columns = math.prod(axis.size for axis in (found.results, *found.others))
    return columns >= ENOUGH and found.over.size <= SHORT


def _alone(program: ir.Program, free: bool, found: Reduction) -> Variant:
    wanted: dict[ir.Axis, Tiles] = dict.fromkeys(found.others, ())
    made = tiled(program, wanted | {found.results: ((64, 128, 256),), found.over: ()}, free)
    results, over = named(made, found.results), named(made, found.over)
    fixes = [
        f"dim_kind({axis}0)=BLOCK" for axis in (results, *(named(made, a) for a in found.others))
    ]
    fixes += [f"dim_kind({over}0)=LOOP", *(["lowered=FALSE"] if made.temporaries else [])]
    fixes += [f"dim_kind({dims_of(each, results)[0]})=THREAD" for each in made.instructions
              if dims_of(each, results)]  # fmt: skip
    return Variant(COLUMN, made, tuple(fixes))


# -- both ------------------------------------------------------------------------------------------


def _in_parts(
    program: ir.Program,
    free: bool,
    found: Reduction,
    parts: Sequence[tuple[str, int]],
    results: Tiles,
    name: str,
) -> Variant:
    taken = {axis.name for axis in program.axes}
    parts = [(f"{part}s" if part in taken else part, size) for part, size in parts]
    total = 1
    for _, size in parts:
        total *= size
    iterations = found.over.size // total
    inner = [n for n in (2, 4, 5, 7, 8, 16) if iterations % n == 0] or [2, 4, 8]
    remade = {found.over: in_parts(parts, [[n for n in inner if n <= iterations]]
                                   if iterations > 1 else [])}  # fmt: skip
    wanted: dict[ir.Axis, Tiles] = {found.results: results}
    wanted |= dict.fromkeys(found.others, ())
    try:
        made = tiled(program, wanted, free, remade)
    except UnsupportedError as error:
        raise NotMeantError(error.message) from None
    folded = [named(made, found.over), *(_axis(made, part) for part, _ in parts)]
    return Variant(name, made, tuple(_fixes(made, found, folded, name)))


def _axis(program: ir.Program, name: str) -> ir.Axis:
    return next(axis for axis in program.axes if axis.name == name)


def _fixes(
    program: ir.Program, found: Reduction, folded: Sequence[ir.Axis], name: str
) -> list[str]:
    iterations, across, *wide = folded
    results = named(program, found.results)
    folds = folds_of(program)
    first, last = folds[0], folds[-1]
    decided = [f"dim_kind({results}0)=BLOCK", f"dim_kind({iterations}0)=LOOP"]
    decided += [f"dim_kind({axis.name}0)=BLOCK" for axis in found.others]
    if program.temporaries:
        decided += ["padding=0", "stages=1"]
    meets = f"{folds[-2]}>{last}"
    for made in program.temporaries:
        decided.append(f"lowered({made})={'TRUE' if made.name.startswith(meets) else 'FALSE'}")
    for each in program.instructions:
        decided += _kinds(each, last, results, across, wide)
    decided += [f"dim_kind({dim})=UNROLL" for dim in dims_of(first, iterations)]
    rows, lanes = dims_of(first, results)[0], dims_of(first, across)[0]
    after = dims_of(last, results)[0]
    decided.append(f"thread_mapping({rows},{after})=MAPPED")
    inside = "MAPPED_OUT" if name == ROW else "MAPPED_IN"
    decided.append(f"thread_mapping({rows},{lanes})={inside}")
    # All loops along results are one level of threads, and all along parts another: two descents
    # of three ended where nothing said so.
    for axis, level in ((results, rows), (across, lanes)):
        others = [dims_of(each, axis)[0] for each in program.instructions
                  if each is not last and dims_of(each, axis)]  # fmt: skip
        decided += [f"thread_mapping({level},{dim})=MAPPED" for dim in others if dim is not level]
    return decided


def _kinds(
    each: ir.Instruction,
    last: ir.Instruction,
    results: ir.Axis,
    across: ir.Axis,
    wide: Sequence[ir.Axis],
) -> list[str]:
    """Threads are along parts and along the outermost tile of results; all else is unrolled."""
    decided = []
    is_load = isinstance(each.action, ir.Load)
    for at, dim in enumerate(dims_of(each, results)):
        if at == 0:
            decided.append(f"dim_kind({dim})=THREAD")
        elif not isinstance(each.action, ir.Load | ir.Store):
            decided.append(f"dim_kind({dim})=UNROLL")
    kind = "UNROLL|LOOP" if each is last else "THREAD"
    decided += [f"dim_kind({dim})={kind}" for dim in dims_of(each, across)]
    for axis in wide:
        vector = is_load and can_be_vector(each, axis, axis.size)
        decided += [f"dim_kind({dim})={'VECTOR' if vector else 'UNROLL'}"
                    for dim in dims_of(each, axis)]  # fmt: skip
    return decided
