"""Block tile: a block of results in registers, factors through shared memory.

For every sum over one axis of a product of two loads: matrix products of any shape, strided,
transposed and batched. All threads of a block copy the tiles of both factors, and each thread has a
block of results. Sizes, stages, padding, unrolling, widths and mappings are left open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from warploom.loopnest import ir
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Tiles,
    Variant,
    can_be_vector,
    dims_of,
    folds_of,
    named,
    place_of,
    stores_of,
    thread_counts,
    tiled,
)

NAME = "block-tile"
LARGE = 1 << 16  # results: enough for several groups of neighbours in a thread
SLICES = (2, 4, 8)
LONG = 64  # rows and columns that have room for these
BLOCK_DIMS = 3
INNER = (4, 8, 16, 32)
OTHER_INNER = (10, 12, 20)


@dataclass(frozen=True, slots=True, eq=False)
class FoldedProduct:
    """A sum of products of `a`, which has rows, and `b`, which has columns, stored along those."""

    fold: ir.Instruction
    a: ir.Instruction
    b: ir.Instruction
    rows: ir.Axis
    columns: ir.Axis
    inner: ir.Axis
    others: tuple[ir.Axis, ...]  # batches, and more rows or columns
    store: ir.Instruction


def product_of(program: ir.Program) -> FoldedProduct:
    """The product that a program is, or why it is none."""
    folds = folds_of(program)
    if len(folds) != 1:
        raise NotMeantError(f"it has {len(folds)} folds, not one sum of products")
    (fold,) = folds
    a, b = _factors(fold)
    over = list(dict.fromkeys(dim.axis for dim in fold.over))
    if len(over) != 1:
        raise NotMeantError("the sum is over more than one axis")
    stores = stores_of(program)
    if len(stores) != 1:
        raise NotMeantError(f"it has {len(stores)} stores")
    free = [axis for axis in fold.axes if axis is not over[0]]
    rows = [axis for axis in free if axis not in b.axes]
    columns = [axis for axis in free if axis not in a.axes]
    if not rows or not columns:
        raise NotMeantError("a factor has no axis that the other one has not")
    near = place_of(stores[0])
    if any(near.get(axis) == 1 for axis in rows):  # what lies side by side is called columns
        a, b, rows, columns = b, a, columns, rows
    row, column = _longest(rows), _longest(columns)
    others = tuple(axis for axis in program.axes if axis not in (row, column, over[0]))
    if len(others) + 2 > BLOCK_DIMS:
        raise NotMeantError(f"more than {BLOCK_DIMS} axes beside the sum")
    return FoldedProduct(fold, a, b, row, column, over[0], others, stores[0])


def _factors(fold: ir.Instruction) -> tuple[ir.Instruction, ir.Instruction]:
    match fold.action:
        case ir.Compute("fma", (ir.Result(a), ir.Result(b), ir.Running())) if (
            a is not b and isinstance(a.action, ir.Load) and isinstance(b.action, ir.Load)
        ):
            return a, b
    raise NotMeantError("what is folded is no product of two loads")


def _longest(axes: list[ir.Axis]) -> ir.Axis:
    """Returns the longest, the innermost of equally long ones."""
    return max(reversed(axes), key=lambda axis: axis.size)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Tiles of rows, columns and the sum. Where all is `near`, accesses are four neighbours wide;
    where it is `sliced`, several threads have parts of each sum of a block."""

    rows: Tiles
    columns: Tiles
    inner: Tiles
    near: bool = False
    sliced: bool = False


def variants(program: ir.Program, free: bool) -> list[Variant]:
    found = product_of(program)
    return _variants(program, free, found, _tiles(found))


def sliced_variants(program: ir.Program, free: bool) -> list[Variant]:
    """Block tiles each of whose sums several threads have parts of."""
    found = product_of(program)
    (few, many), inner = _counts(found), (SLICES, (8, 16))
    columns: tuple[Tiles, ...] = ((many, (4,)), ((2,), many, (4,)))
    cuts = [_Sides(((2,), few, (4,)), own, inner, near=True, sliced=True) for own in columns]
    return _variants(program, free, found, cuts)


def _counts(found: FoldedProduct) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return thread_counts(found.rows.size, 4), thread_counts(found.columns.size, 4)


def _variants(
    program: ir.Program, free: bool, found: FoldedProduct, cuts: list[_Sides]
) -> list[Variant]:
    made: list[Variant] = []
    refused: NotMeantError | None = None
    for cut in cuts:
        try:
            made.append(_variant(program, free, found, cut))
        except NotMeantError as error:
            refused = refused or error
    if not made:
        raise refused or NotMeantError("no tiles")
    return made


def _tiles(found: FoldedProduct) -> list[_Sides]:
    rows, columns = found.rows.size, found.columns.size
    few, many = _counts(found)
    inner = _inner(found.inner.size)
    flat: list[Tiles] = [(few, (2, 4, 8)), (many, (2, 4, 8))]
    listed: list[_Sides] = []
    results = rows * columns * math.prod(axis.size for axis in found.others)
    is_large = results > LARGE and min(rows, columns) >= LONG
    if is_large:
        near: list[Tiles] = [((2,), few, (4,)), (few, (4,))]
        beside: list[Tiles] = [((2,), many, (4,)), (many, (4,))]
        listed = [_Sides(r, c, (inner,), near=True) for r in near for c in beside]
        if place_of(found.a).get(found.inner, 0) > 1 and place_of(found.a)[found.rows] > 1:
            wide = ((2,), (8, 16, 32, 64), (4,))  # reading the first factor costs most
            listed += [_Sides(rows_, wide, (inner,), near=True) for rows_ in near]
    listed.append(_Sides(flat[0], flat[1], (inner,)))
    if not is_large:
        listed.append(_Sides(flat[0], flat[1], ((4, 8, 16), (2, 4, 8))))
    return listed


def _inner(size: int) -> tuple[int, ...]:
    """Tiles that divide the sum, and where these are short also one that does not."""
    dividing = {n for n in (*INNER, *OTHER_INNER) if size % n == 0}
    if len(dividing.intersection(INNER)) == len(INNER):
        return INNER
    return tuple(sorted(dividing if max(dividing, default=0) >= 16 else {*dividing, 8, 16}))


def _variant(
    program: ir.Program,
    free: bool,
    found: FoldedProduct,
    cut: _Sides,
) -> Variant:
    wanted: dict[ir.Axis, Tiles] = {
        found.rows: cut.rows, found.columns: cut.columns, found.inner: cut.inner
    }  # fmt: skip
    wanted |= dict.fromkeys(found.others, ())
    made = tiled(program, wanted, free)
    if any(named(made, axis).tiles for axis in found.others):
        raise NotMeantError("a batch has tiles")
    again = product_of(made)
    is_wide = can_be_vector(again.store, again.columns)
    return Variant(NAME, made, tuple(_fixes(made, again, cut, is_wide)))


def _fixes(program: ir.Program, p: FoldedProduct, cut: _Sides, is_wide: bool) -> list[str]:
    """Threads have neighbours; with a third level of tiles several groups of these, apart from each
    other."""
    found, near = [f"dim_kind({p.inner}0)=LOOP"], cut.near
    found += [f"dim_kind({axis}0)=BLOCK" for axis in (p.rows, p.columns, *p.others)]
    found += [f"cache({load})=CACHE_SHARED" for load in (p.a, p.b)]
    for made in program.temporaries:
        word = "TRUE" if made.name.partition(">")[0] in (p.a.name, p.b.name) else "FALSE"
        found.append(f"lowered({made})={word}")
    for load, axis in ((p.a, p.rows), (p.b, p.columns)):
        found += _through_shared(p, load, axis, near)
    inner = dims_of(p.fold, p.inner)
    if cut.sliced:
        found.append(f"dim_kind({inner.pop(0)})=THREAD")
    found += [f"dim_kind({dim})=UNROLL|LOOP" for dim in inner]
    for each in program.instructions:
        if each not in (p.fold, p.a, p.b):
            found += _in_registers(p, each)
    if near:
        found += ["stages=2|3|4", f"cache({p.store})=CACHE_SHARED"]
    if near and all(place_of(load).get(p.inner) == 1 for load in (p.a, p.b)):
        found.append("fill=REGISTERS")  # rows become columns: a copy would be of single elements
    last = dims_of(p.store, p.columns)[-1]
    if is_wide:
        found.append(f"dim_kind({last})={'VECTOR' if near else 'VECTOR|UNROLL'}")
    return [*found, *_one_order(p, p.fold)]


def _thread(each: ir.Instruction, axis: ir.Axis) -> ir.Dim | None:
    dims = dims_of(each, axis)
    return dims[-2] if len(dims) > 1 else None


def _through_shared(p: FoldedProduct, load: ir.Instruction, axis: ir.Axis, near: bool) -> list[str]:
    put, get = f"{load}>{p.fold}.put", f"{load}>{p.fold}.get"
    own, inner = dims_of(p.fold, axis), dims_of(p.fold, p.inner)
    found = [f"dim_kind({dims_of(load, axis)[0]})=DEAL"]
    ranked = [dim.tile for dim in (*inner, *own)]
    found += [f"layout({put}.{tile})={len(ranked) - 1 - at}" for at, tile in enumerate(ranked)]
    found += [f"order({get}.{dim.tile},{dim})=MERGED" for dim in inner]
    for dim in own:
        if dim is _thread(p.fold, axis):
            found += [f"dim_kind({dim})=THREAD", f"dim_kind({get}.{dim.tile})=THREAD"]
            continue
        last = "VECTOR" if near else "UNROLL|VECTOR"
        kinds = last if dim is own[-1] else "UNROLL"
        found += [f"dim_kind({dim})=UNROLL", f"dim_kind({get}.{dim.tile})={kinds}",
                  f"order({get}.{dim.tile},{dim})=BEFORE"]  # fmt: skip
    return found


def _in_registers(p: FoldedProduct, each: ir.Instruction) -> list[str]:
    """What comes after the sum, and what is loaded for it, has the threads of the sum."""
    found = []
    for axis in (p.rows, p.columns):
        thread = _thread(each, axis)
        found += [f"dim_kind({thread})=THREAD"] if thread is not None else []
        own = [dim for dim in dims_of(each, axis) if dim is not thread]
        is_access = isinstance(each.action, ir.Load | ir.Store)
        for dim in own:
            if not (is_access and axis is p.columns and dim is own[-1]):
                found.append(f"dim_kind({dim})=UNROLL")
    return [*found, *_one_order(p, each)]


def _one_order(p: FoldedProduct, each: ir.Instruction) -> list[str]:
    """Unrolled loops in one order: another one is the same text, otherwise sorted."""
    free = [dim for axis in (p.rows, p.columns) for dim in dims_of(each, axis)
            if dim is not _thread(each, axis)]  # fmt: skip
    return [f"order({a},{b})=OUTER" for a, b in pairwise(free)]
