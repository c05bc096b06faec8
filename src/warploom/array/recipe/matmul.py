"""The product of two matrices → blocks for groups, small blocks for threads, sums in registers.

`bm` rows and `bn` columns are a block, `rm` and `rn` of them a thread's; `tk` products are summed
in one iteration, from numbers in registers. With `staged`, a block's columns of b wait in local
memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.build import join, sizes, split
from warploom.array.language.ir import Program, Term
from warploom.array.recipe.common import HOIST, Step, cached, function_of
from warploom.array.rewrite.laws import (
    FUSE_ZIPPED_MAPS,
    HOIST_MAP,
    INTERCHANGE,
    INTERCHANGE_FIRST,
    INTERCHANGE_SECOND,
    MAP_REDUCE,
    PARTIAL_PRODUCTS,
    REDUCE_MAP,
    REDUCE_ONES,
    REGROUP_PRODUCTS,
    SPLIT_JOIN,
    TRANSPOSE_TWICE,
    copying,
    placing,
)
from warploom.array.rewrite.strategy import (
    at,
    by,
    holding,
    in_body,
    innermost,
    map_over,
    normalise,
    once,
    over_zip,
    reduce_over,
    transformed,
)
from warploom.array.types import Type, array, base

M, N, K, BM, BN, RM, RN, TK = sizes("m n k bm bn rm rn tk")
TUNED = ["bm", "bn", "rm", "rn", "tk"]


def mid_level(program: Program, staged: bool = False) -> Program:
    """The product (`workload.matmul`) in the form that is mapped."""
    number = base(program.inputs[0].type)
    steps = [*_sums(number), *_blocks(), *_registers(number, staged)]
    return transformed(program, *steps)


def _sums(number: Type) -> Iterator[Step]:
    """Every sum of products as a sum of sums of `tk` products."""

    def pieces(x: Term) -> Term:
        return join(split(TK, x))

    moved = function_of(array(number, K), pieces)
    yield "in pieces", once(by(REGROUP_PRODUCTS.with_(move_x=moved, move_y=moved)))
    yield "partial sums", once(by(PARTIAL_PRODUCTS))
    yield "pairs", normalise(FUSE_ZIPPED_MAPS)
    yield "products into the inner sum", innermost(by(REDUCE_MAP))
    yield "sums of arrays of one", once(by(REDUCE_ONES))


def _blocks() -> Iterator[Step]:
    """Maps in pieces, each time with the other map between the pieces and what is in them."""
    for size, piece in ((M, BM), (N, BN), (BM, RM), (BN, RN)):
        yield "pieces", at(map_over(size), by(SPLIT_JOIN.with_(size=piece)))
        yield "the other map between", at(map_over(piece), by(INTERCHANGE))
        yield "layout outside", HOIST


def _registers(number: Type, staged: bool) -> Iterator[Step]:
    """One sum of a block of outputs, whose rows and columns of an iteration wait in registers."""
    yield "layout outside", HOIST
    for size, law in ((RN, INTERCHANGE_SECOND), (RM, INTERCHANGE_FIRST)):
        yield "one sum of a block", at(map_over(size), by(MAP_REDUCE))
        yield "iterations outside the block", at(map_over(size), by(law))
        yield "without detours", once(by(TRANSPOSE_TWICE))
        yield "layout outside", HOIST
    iterations = reduce_over(K // TK)
    yield "products into the sum of a block", at(iterations, by(REDUCE_MAP))
    for size in (RN, RM):
        yield "sums of blocks in one nest", at(over_zip(map_over(size)), by(HOIST_MAP))
    products = holding(map_over(RM), reduce_over(TK))
    for sizes_ in ((RN, TK), (RM, TK)):
        yield "an iteration's numbers in registers", at(products, cached("private", number, sizes_))
    yield "products in registers", at(products, by(placing("private")))
    yield "copy the result", at(iterations, by(copying("global", 4)))
    if staged:
        columns = in_body(cached("local", number, (BN, K)))
        yield "columns in local memory", at(map_over(N // BN), columns)
