"""The space of implementations: published counts and assertions, and what its constraints mean."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import present
from tests.loopnest.small import (
    FAKE,
    Left,
    Scope,
    dim,
    inst,
    load,
    program,
    result,
    running,
    store,
)

from warploom.loopnest.choices import declare_order
from warploom.loopnest.space import NestSpace
from warploom.search.branching.problem import SpaceProblem
from warploom.search.branching.tree import count_all
from warploom.search.outcome import Found
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space

PUBLISHED = {
    (1, 0): 1, (2, 0): 5, (3, 0): 43, (4, 0): 545, (5, 0): 9211,
    (1, 1): 3, (1, 2): 12, (2, 1): 23, (2, 2): 132, (3, 1): 273, (2, 3): 900, (3, 2): 2052,
}  # fmt: skip


@pytest.mark.parametrize(("dims", "insts"), PUBLISHED)
def test_consistent_orders_are_counted(dims: int, insts: int) -> None:
    space = Space("orders")
    inner = [f"i{n}" for n in range(insts)]
    statements = space.objects("statements", [f"d{n}" for n in range(dims)] + inner)
    order = declare_order(space, statements)
    inst, other = space.objects("instructions", inner).one("inst"), statements.one("other")
    space.require(order(inst, other).is_("INNER", "BEFORE", "AFTER"))
    result = count_all(SpaceProblem(Propagator(space)))
    assert result.outcome == Found(PUBLISHED[dims, insts], complete=True)


# -- the published assertions ----------------------------------------------------------------------


def test_threads_fill_the_block() -> None:
    """Three nested THREAD dimensions of 4 and one of 512 outside one of them."""
    small = [dim(f"t{n}", 4) for n in range(3)]
    large = dim("large", 512)
    made = NestSpace(program([*small, large], [inst("i", tuple(small))]), FAKE)
    left = Left(
        made,
        *((made.kind, (each,), "THREAD") for each in small),
        (made.order, (large, small[0]), "OUTER"),
    )
    assert "THREAD" not in left(made.kind, large)
    assert all(left(made.order, each, large) == {"INNER"} for each in small)


@pytest.mark.parametrize("sizes", [(1024, 2), (2, 1024)])
def test_a_full_block_has_no_room_for_another_thread_dimension(sizes: tuple[int, int]) -> None:
    first, second = (dim(f"d{size}", size) for size in sizes)
    made = NestSpace(program([], [inst("i", (first, second))]), FAKE)
    full, other = (first, second) if sizes[0] == 1024 else (second, first)
    left = Left(made, (made.kind, (full,), "THREAD"))
    assert "THREAD" not in left(made.kind, other)


def test_three_block_dimensions_are_all() -> None:
    blocks = [dim("b0"), dim("b1", 4), dim("b2", 4)]
    fourth = dim("d", 4)
    it = inst("i", (*blocks, fourth))
    made = NestSpace(program([], [it]), FAKE)
    left = Left(made, *((made.kind, (each,), "BLOCK") for each in blocks))
    assert all(left(made.iterates, it, each) == {"TRUE"} for each in (*blocks, fourth))
    assert left(made.kind, fourth) == {"LOOP", "THREAD", "UNROLL"}
    assert left(made.order, blocks[0], blocks[1]) == {"INNER", "OUTER"}
    assert left(made.order, blocks[1], blocks[2]) == {"INNER", "OUTER"}


def test_two_nests() -> None:
    """A holds a move and a store with side effects, B a move."""
    a, b = dim("a", 4), dim("b", 4)
    move_a, move_b = inst("move a", (a,)), inst("move b", (b,))
    put = store("store", (a,), result(move_a, (), Scope.LOCAL))
    made = NestSpace(program([], [move_a, put, move_b]), FAKE)
    left = Left(made)
    assert not left(made.kind, a) & {"VECTOR", "OUTER_VECTOR"}
    assert not left(made.kind, b) & {"VECTOR", "OUTER_VECTOR"}
    assert left(made.order, move_a, b) == {"INNER", "BEFORE", "AFTER"}
    assert left(made.iterates, put, b) == {"FALSE"}


def test_a_vector_holds_one_access_of_neighbours() -> None:
    d = dim("d", 4)
    made = NestSpace(program([], [load("load", (d,))]), FAKE)
    assert "VECTOR" in Left(made)(made.kind, d)
    for second in (load("again", (d,)), inst("multiply", (d,))):
        made = NestSpace(program([], [load("load", (d,)), second]), FAKE)
        assert not Left(made)(made.kind, d) & {"VECTOR", "OUTER_VECTOR"}


@pytest.mark.parametrize(("sizes", "possible"), [((64,), True), ((4096,), False), ((), False)])
def test_only_short_dimensions_are_unrolled(sizes: tuple[int, ...], possible: bool) -> None:
    d = dim("d", *sizes)
    made = NestSpace(program([], [inst("i", (d,))]), FAKE)
    assert ("UNROLL" in Left(made)(made.kind, d)) == possible


def test_a_fold_starts_after_its_start() -> None:
    over, around, away = dim("over", 4), dim("around", 4), dim("away", 4)
    start = inst("start", ())
    total = inst(
        "total",
        (over,),
        running(start, (), (over,)),
        result(start, (), Scope.LOCAL),
        op="+",
    )
    made = NestSpace(program([around, away], [start, total]), FAKE)
    left = Left(
        made,
        (made.order, (around, total), "OUTER"),
        (made.order, (around, over), "OUTER"),
        (made.order, (away, start), "BEFORE", "AFTER"),
    )
    assert left(made.kind, over) == {"LOOP", "UNROLL"}
    assert left(made.order, over, start) == {"AFTER"}
    assert left(made.order, around, start) == {"OUTER"}
    assert left(made.iterates, total, away) == {"FALSE"}


def test_vectors_are_shared_out() -> None:
    """VECTOR of 2 and 4 fill the limit of 8: a third vector of 4 is outside them."""
    inner = [dim("v2", 2), dim("v4", 4)]
    third, loop = dim("third", 4), dim("loop", 4)
    dims = (*inner, third, loop)
    anything = replace(FAKE, vectorises=lambda inst, dim: (2, 4))
    made = NestSpace(program([], [inst("i", dims)]), anything)
    left = Left(
        made,
        *((made.kind, (each,), "VECTOR") for each in inner),
        (made.kind, (third,), "VECTOR", "OUTER_VECTOR"),
        (made.kind, (loop,), "LOOP"),
    )
    assert left(made.kind, third) == {"OUTER_VECTOR"}
    assert left(made.order, loop, third) == {"OUTER"}
    assert all(left(made.order, third, each) == {"OUTER"} for each in inner)


# -- communication ---------------------------------------------------------------------------------


def pair(scope: Scope) -> tuple[NestSpace, dict[str, Any]]:
    """A value is produced along one dimension and used along another."""
    p = dim("p", 4)
    c = dim("c", like=p)
    first = inst("producer", (p,))
    second = inst("consumer", (c,), result(first, ((p, c),), scope))
    made = NestSpace(program([], [first, second]), FAKE)
    return made, {"p": p, "c": c}


def test_registers_carry_a_value_along_merged_and_along_unrolled_dimensions() -> None:
    made, at = pair(Scope.MEMORY)
    (temporary,) = made.program.temporaries
    p, c = at["p"], at["c"]
    assert Left(made)(made.lowered, temporary) == {"TRUE", "FALSE"}
    left = Left(made, (made.kind, (p,), "LOOP"), (made.order, (p, c), "MERGED"))
    assert left(made.lowered, temporary) == {"FALSE"}
    left = Left(made, (made.kind, (p,), "UNROLL"), (made.kind, (c,), "UNROLL"))
    assert left(made.lowered, temporary) == {"FALSE"}
    left = Left(made, (made.kind, (p,), "LOOP"), (made.order, (p, c), "BEFORE"))
    assert left(made.lowered, temporary) == {"TRUE"}
    assert left(made.order, temporary.put, temporary.get) == {"BEFORE"}
    assert left(made.mem_space, temporary) == {"SHARED"}
    threads = [(made.kind, (p,), "THREAD"), (made.kind, (c,), "THREAD")]
    left = Left(made, *threads, (made.threads, (p, c), "MAPPED"))
    assert left(made.lowered, temporary) == {"FALSE"}
    left = Left(made, *threads, (made.threads, (p, c), "MAPPED_IN"))
    assert left(made.lowered, temporary) == {"TRUE"}


@pytest.mark.parametrize("scope", [Scope.LOCAL, Scope.THREAD])
def test_a_value_that_may_not_go_through_memory_stays_in_registers(scope: Scope) -> None:
    made, at = pair(scope)
    p, c = at["p"], at["c"]
    assert not made.program.temporaries
    left = Left(made, (made.kind, (p,), "LOOP"))
    assert left(made.order, p, c) == {"MERGED"}
    left = Left(made, (made.kind, (p,), "THREAD"), (made.order, (p, c), "BEFORE"))
    if scope is Scope.LOCAL:
        assert not len(left.root)
    else:
        assert left(made.threads, p, c) == {"MAPPED"}


def test_a_lowered_dimension_is_in_the_array_unless_it_is_merged() -> None:
    made, at = pair(Scope.MEMORY)
    (temporary,) = made.program.temporaries
    ((put, _),) = temporary.pairs
    loops = [(made.kind, (at[name],), "LOOP") for name in "pc"]
    left = Left(made, *loops, (made.order, (at["p"], at["c"]), "BEFORE"))
    assert left(made.in_array, put) == {"TRUE"}  # merged, p and c would be one loop as well
    assert left(made.layout, put) == {"0"}
    propagator = made.propagator
    assert propagator.range(left.root, 0, made.mem_size, temporary) == (16, 16)
    assert propagator.range(left.root, 0, made.shared_mem_used) == (16, 16)


# -- tiles, sizes, room ----------------------------------------------------------------------------


def test_tile_products_are_sets_not_ranges() -> None:
    from warploom.loopnest.kernels import axpy

    made = NestSpace(axpy(60, tiles=((2, 3, 4, 5), (2, 3, 4, 5))))
    first, second = made.program.tiles
    assert 5 in Left(made)(made.size, second)
    assert Left(made, (made.size, (first,), 4))(made.size, second) == {3, 5}
    assert Left(made, (made.size, (first,), 3))(made.size, second) == {2, 4, 5}


def test_grids_have_one_long_side() -> None:
    from warploom.loopnest.kernels import matmul

    made = NestSpace(matmul(1 << 20, 1 << 4, 4, tiles=((32, 4), (4,), (2,))))
    m, n = made.program.dims[0], next(d for d in made.program.dims if str(d) == "n0")
    tiles = [t for t in made.program.tiles if t.axis.name == "m"]
    blocks = [(made.kind, (m,), "BLOCK"), (made.kind, (n,), "BLOCK")]
    inside = Left(made, *blocks, (made.order, (m, n), "INNER"))
    assert min(inside(made.size, tiles[0])) == 8  # 8 · 4 ≥ 2²⁰ / 65535
    outside = Left(made, *blocks, (made.order, (m, n), "OUTER"))
    assert min(outside(made.size, tiles[0])) == 2
    small = [(made.size, (tiles[0],), 2), (made.size, (tiles[1],), 2)]
    assert Left(made, *blocks, *small)(made.order, m, n) == {"OUTER"}


def test_registers_and_shared_memory_have_an_end() -> None:
    from warploom.loopnest.kernels import matmul

    tiles = ((16,), (16,), (64,))
    made = NestSpace(matmul(64, 64, 64, tiles))
    fold = next(i for i in made.program.instructions if i.name == "sum_1")
    m1, n1 = (next(d for d in fold.dims if str(d) == f"sum_1.{t}") for t in ("m1", "n1"))
    running = present(fold.running)
    start = running.start
    apart = [(made.order, (s, d), "BEFORE") for s, d in running.pairs]
    wide = [(made.kind, (d,), "UNROLL") for d in (m1, n1)]
    left = Left(made, *wide, *apart)
    _, high = made.propagator.range(left.root, 0, made.result_registers, fold)
    assert high is not None
    assert high <= 255
    sizes = [left(made.size, d.tile) for d in (m1, n1)]
    assert math.prod(map(max, sizes)) >= 256  # each alone may be large
    both = Left(made, *wide, *apart, *((made.size, (d.tile,), 16) for d in (m1, n1)))
    assert not len(both.root)
    assert np.prod([len(s) for s in sizes]) > 1
    assert start is not None
