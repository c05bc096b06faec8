"""Split-K: few results of a long sum of products, of which each thread of a block folds a part.

A block has a small tile of results, every thread all of them in registers; threads lie along the
sum, so that neighbours read neighbours. Of more results a block has a tile as `product.py` has, and
several threads each of them. What they have is put together across the threads, in one order: the
same numbers give the same sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from warploom.loopnest import ir
from warploom.loopnest.strategies.form import (
    NotMeantError,
    Variant,
    can_be_vector,
    dims_of,
    named,
    place_of,
    tiled,
)
from warploom.loopnest.strategies.product import FoldedProduct, product_of, sliced_variants

NAME = "split-k"
FEW, SOME = 1 << 16, 1 << 20  # results: with more of them, blocks of tiles are enough for a GPU
LONG = 1024  # terms of a sum
LONGER = 4  # times a side of the results
THREADS = (128, 256, 512)
SIDES = (2, 4, 8)


def variants(program: ir.Program, free: bool) -> list[Variant]:
    found = product_of(program)
    results = math.prod(axis.size for axis in (found.rows, found.columns, *found.others))
    if results >= SOME:
        raise NotMeantError(f"{results} results are enough for all blocks")
    if found.inner.size < LONG:
        raise NotMeantError(f"a sum of {found.inner.size} terms is not long")
    if results > FEW:
        return [replace(each, strategy=NAME) for each in sliced_variants(program, free)]
    _check_meant(found)
    made = []
    for inner in ((THREADS,), (THREADS, (2, 4))):
        wanted = {found.rows: (SIDES,), found.columns: (SIDES,), found.inner: inner}
        again = tiled(program, wanted | dict.fromkeys(found.others, ()), free)
        made.append(Variant(NAME, again, tuple(_fixes(again, product_of(again)))))
    return made


def _check_meant(found: FoldedProduct) -> None:
    length, side = found.inner.size, max(found.rows.size, found.columns.size)
    if length < LONGER * side:
        raise NotMeantError(f"a sum of {length} terms is not long for {side} results along a side")
    near = [place_of(each).get(axis) for each in (found.a, found.b)
            for axis in (found.inner, found.columns)]  # fmt: skip
    if 1 not in near:
        raise NotMeantError("neighbours of the sum or of a row are not side by side in memory")


def _fixes(program: ir.Program, p: FoldedProduct) -> Iterator[str]:
    yield f"dim_kind({p.inner}0)=LOOP"
    yield from (f"dim_kind({axis}0)=BLOCK" for axis in (p.rows, p.columns, *p.others))
    if program.temporaries:
        yield "lowered=FALSE"
    for each in program.instructions:
        for at, dim in enumerate(dims_of(each, named(program, p.inner))):
            yield f"dim_kind({dim})={'UNROLL' if at else 'THREAD'}"
        is_access = isinstance(each.action, ir.Load | ir.Store)
        for axis in (p.rows, p.columns):
            wide = is_access and can_be_vector(each, axis, 2)
            kind = "UNROLL|VECTOR" if wide else "UNROLL"
            yield from (f"dim_kind({dim})={kind}" for dim in dims_of(each, axis))
