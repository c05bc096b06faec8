"""The direct convolution → the mid-level expression of Mogers et al. (CC 2022), by rewriting.

Groups of kernels, tiles of windows, groups and tiles within them; for each small block of outputs,
partial sums over parts of the kernel's rows and of the channels meet in local memory, computed in
registers from weights and pixels that were fetched before. Sizes of all parts are symbols.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.build import join, map_, sizes, split, transpose
from warploom.array.language.ir import Lambda, Program, Term, is_concrete
from warploom.array.recipe.common import HOIST, Step, cached, deep, flat, function_of, swapped
from warploom.array.rewrite.law import Applied
from warploom.array.rewrite.laws import (
    CLEANING,
    FUSE_ZIPPED_MAPS,
    HOIST_MAP,
    INTERCHANGE,
    INTERCHANGE_FIRST,
    INTERCHANGE_SECOND,
    JOIN_JOIN,
    JOIN_ZIP,
    JOIN_ZIP_MAPS,
    MAP_REDUCE,
    MERGE_REDUCTIONS,
    PARTIAL_PRODUCTS,
    REDUCE_MAP,
    REDUCE_ONES,
    REGROUP_PRODUCTS,
    SPLIT_JOIN,
    SPLIT_MAP,
    TILE_2D,
    TRANSPOSE_TWICE,
    copying,
    placing,
)
from warploom.array.rewrite.strategy import (
    Pattern,
    at,
    by,
    holding,
    in_body,
    innermost,
    map_over,
    normalise,
    of_shape,
    once,
    over_zip,
    reduce_over,
    transformed,
)
from warploom.array.types import Type, array, base
from warploom.index.ir import Expr

OH, OW, C, K, KH, KW = sizes("OH OW C K kh kw")
# Kernels of a group, per thread, in a cache; rows and columns of a tile, per thread, in a cache.
KGS, SK, KCS = sizes("kgs sk kcs")
TH, SY, ICY = sizes("th sy icy")
TW, SX, ICX = sizes("tw sx icx")
# Channels of a tile, in a cache; rows and columns of a part of the kernel.
TD, ICD, WTH, WTW = sizes("td icd wth wtw")
PARTS, CHUNKS = KH // WTH, TD // ICD
ITERATIONS, PRODUCTS = C * KW // (TD * WTW), ICD * WTH * WTW
TUNED = ["kgs", "sk", "kcs", "th", "sy", "icy", "tw", "sx", "icx", "td", "icd", "wth", "wtw"]


def mid_level(program: Program) -> Program:
    """The convolution (`workload.convolution`) in the form that is mapped."""
    number = base(program.inputs[0].type)
    steps = [*_partial_sums(number), *_outer_tiles(), *_blocks(), *_registers(number)]
    return transformed(program, *steps)


def _partial_sums(number: Type) -> Iterator[Step]:
    """Every sum of products as sums of sums: over parts of rows and chunks of channels, over
    iterations, over the products of one iteration."""
    moved = _order_of_products(number)
    yield "one row of pairs", normalise(JOIN_ZIP_MAPS, JOIN_ZIP)
    yield "in another order", once(by(REGROUP_PRODUCTS.with_(move_x=moved, move_y=moved)))
    yield "without detours", normalise(*CLEANING)
    for part in ("parts of rows", "chunks of channels", "iterations"):
        yield f"partial sums: {part}", innermost(by(PARTIAL_PRODUCTS))
        yield f"pairs: {part}", normalise(FUSE_ZIPPED_MAPS)
    yield "one sum over parts and chunks", once(by(MERGE_REDUCTIONS))
    yield "products into the innermost sum", innermost(by(REDUCE_MAP))
    yield "sums over iterations, of arrays of one", innermost(by(REDUCE_ONES))
    yield "layout outside", HOIST
    yield "partial sums in one row", once(by(JOIN_JOIN))
    yield "the last sum, of arrays of one", once(by(REDUCE_ONES))
    yield "layout outside", HOIST


def _order_of_products(number: Type) -> Lambda:
    """[C·kh·kw] in the order parts of rows, chunks, iterations, channels, rows, columns."""

    def window(plane: Term) -> Term:
        return map_(transpose, split(WTH, map_(lambda row: split(WTW, row), plane)))

    def moved(x: Term) -> Term:
        cube = split(KH, split(KW, x))
        parts = deep(3, window)(map_(lambda tile: split(ICD, tile), split(TD, cube)))
        return flat(deep(2, join)(swapped(2, 3, 1, 0, 1)(parts)))

    return function_of(array(number, C * KH * KW), moved)


def _inwards(size: Expr) -> Iterator[Step]:
    """A map over kernels goes inside the maps over rows and columns."""
    for _ in range(2):
        yield f"inwards: {size}", at(map_over(size), by(INTERCHANGE))
    yield "layout outside", HOIST


def _outwards(rows: Expr, columns: Expr) -> Iterator[Step]:
    """The map over kernels inside maps over rows and columns comes out."""
    yield "out of columns", at(map_over(columns), by(INTERCHANGE))
    yield "layout outside", HOIST
    yield "out of rows", at(map_over(rows), by(INTERCHANGE))
    yield "layout outside", HOIST


def _tiled(
    kernels: Pattern, by_kernels: Expr, rows: Pattern, tile: tuple[Expr, Expr]
) -> Iterator[Step]:
    """Kernels in groups, then windows in tiles, then kernels outside again."""
    yield "groups of kernels", at(kernels, by(SPLIT_JOIN.with_(size=by_kernels)))
    yield from _inwards(by_kernels)
    yield "tiles", at(rows, by(TILE_2D.with_(rows=tile[0], columns=tile[1])))
    yield from _outwards(*tile)


def _outer_tiles() -> Iterator[Step]:
    yield from _outwards(OH, OW)
    yield from _tiled(map_over(K), KGS, map_over(OH), (TH, TW))
    yield from _tiled(map_over(KGS), SK, map_over(TH), (SY, SX))


def _blocks() -> Iterator[Step]:
    """A block of outputs: partial sums of the whole block, then the last sum of each output."""
    partial = PARTS * CHUNKS
    yield "copy the result", at(reduce_over(partial), by(copying("global", 2)))

    def partial_sums(term: Term) -> bool:
        return of_shape(partial, 1)(term) and is_concrete(term)

    yield "last sums after all", at(
        map_over(SX), by(Applied(SPLIT_MAP).hinting(f=partial_sums))
    )  # fmt: skip
    for size in (SY, SK):
        yield "last sums after all", at(map_over(size), by(HOIST_MAP))
    yield "layout outside", HOIST
    for part in ("parts of rows", "chunks of channels"):
        yield from _out_of_block(f"{part} outside the block")
    yield "an array of pairs", at(map_over(PARTS), by(HOIST_MAP))
    for size, law in ((SX, INTERCHANGE_FIRST), (SY, INTERCHANGE_FIRST), (SK, INTERCHANGE_SECOND)):
        yield "one sum of a block", at(map_over(size), by(MAP_REDUCE))
        yield "iterations outside the block", at(map_over(size), by(law))
        yield "without detours", once(by(TRANSPOSE_TWICE))
        yield "layout outside", HOIST
    yield "products into the sum of a block", at(reduce_over(ITERATIONS), by(REDUCE_MAP))
    for size in (SX, SY, SK):
        yield "sums of blocks in one nest", at(over_zip(map_over(size)), by(HOIST_MAP))


def _out_of_block(name: str) -> Iterator[Step]:
    for size, law in ((SX, INTERCHANGE_FIRST), (SY, INTERCHANGE_FIRST), (SK, INTERCHANGE_SECOND)):
        yield name, at(map_over(size), by(law))
        yield "layout outside", HOIST


def _registers(number: Type) -> Iterator[Step]:
    """What one thread does in an iteration: small groups and tiles, weights and pixels in
    registers."""
    dot = reduce_over(PRODUCTS)
    yield from _tiled(
        holding(map_over(SK), dot), KCS, holding(map_over(SY), dot), (ICY, ICX)
    )  # fmt: skip
    yield "products in registers", at(map_over(SK // KCS), by(placing("private")))
    columns = map_over(SX // ICX)
    pixels, weights = (ICY, ICX, ICD, WTH, WTW), (KCS, ICD, WTH, WTW)
    yield "pixels in registers", at(columns, in_body(cached("private", number, pixels, 2, 1, 3, 2)))
    yield "weights in registers", at(columns, in_body(cached("private", number, weights, 1, 2)))
    yield "partial sums in local memory", at(reduce_over(ITERATIONS), by(copying("local", 5)))
