"""The declarations are strong enough for loop nests: published counts and assertions."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from tests.search.nest import Dim, Inst, Nest, matmul, order_space

from warploom.search.branching.candidate import Candidates, decision
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem, in_order
from warploom.search.branching.tree import count_all
from warploom.search.outcome import Found
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.ir import Choice


def stirling(n: int, k: int) -> int:
    """Ways to part n things into k classes."""
    if n == k:
        return 1
    if k == 0 or k > n:
        return 0
    return k * stirling(n - 1, k) + stirling(n - 1, k - 1)


def orders(dims: int, insts: int) -> int:
    """Forests of merged dimensions with instructions as leaves, in closed form."""
    total = 0
    for k in range(dims + 1):
        ways = math.comb(k + insts + 1, insts) * math.comb(2 * k + insts, k)
        shapes = stirling(dims, k) * math.factorial(k) * math.factorial(insts) * ways
        total += shapes // (k + insts + 1)
    return total


PUBLISHED = {
    (1, 0): 1, (2, 0): 5, (3, 0): 43, (4, 0): 545, (5, 0): 9211,
    (1, 1): 3, (1, 2): 12, (2, 1): 23, (2, 2): 132, (3, 1): 273, (2, 3): 900, (3, 2): 2052,
}  # fmt: skip


@pytest.mark.parametrize(("dims", "insts"), PUBLISHED)
def test_consistent_orders_are_counted(dims: int, insts: int) -> None:
    space, _ = order_space(dims, insts)
    result = count_all(SpaceProblem(Propagator(space)))
    assert result.outcome == Found(PUBLISHED[dims, insts], complete=True)
    assert orders(dims, insts) == PUBLISHED[dims, insts]


@pytest.mark.parametrize(("dims", "insts"), [(6, 0), (4, 2), (3, 3)])
def test_larger_counts_follow_the_closed_form(dims: int, insts: int) -> None:
    result = count_all(SpaceProblem(Propagator(order_space(dims, insts)[0])))
    assert result.outcome == Found(orders(dims, insts), complete=True)
    assert result.statistics.pruned == {}  # order alone has no dead ends


def test_orders_alone_never_lead_to_a_dead_end() -> None:
    problem = SpaceProblem(Propagator(order_space(8, 4)[0]))
    found = descents(problem, 100, np.random.default_rng(3))
    assert found.arrived.all()


# -- the published assertions ----------------------------------------------------------------------


class Fixed:
    """A nest after some decisions, and what is left."""

    def __init__(self, nest: Nest, *decisions: tuple[Any, ...]) -> None:
        self.nest = nest
        self.propagator = Propagator(nest.space)
        made = [decision(choice, objects, *values) for choice, objects, *values in decisions]
        self.root: Candidates = self.propagator.root(made)
        assert len(self.root) == 1

    def __call__(self, choice: Choice, *objects: Dim | Inst) -> set[Any]:
        return set(self.propagator.domain(self.root, 0, choice, *objects).values)


def test_threads_fill_the_block() -> None:
    """Three nested THREAD dimensions of 4 and one of 512 outside one of them."""
    small = [Dim(f"t{n}", (4,)) for n in range(3)]
    large = Dim("large", (512,))
    nest = Nest([*small, large], [Inst("i", tuple(small))])
    left = Fixed(
        nest,
        *((nest.kind, (dim,), "THREAD") for dim in small),
        (nest.order, (large, small[0]), "OUTER"),
    )
    assert "THREAD" not in left(nest.kind, large)
    assert all(left(nest.order, dim, large) == {"INNER"} for dim in small)


@pytest.mark.parametrize("sizes", [(1024, 2), (2, 1024)])
def test_a_full_block_has_no_room_for_another_thread_dimension(sizes: tuple[int, int]) -> None:
    first, second = (Dim(f"d{size}", (size,)) for size in sizes)
    nest = Nest([first, second], [Inst("i", (first, second))])
    full, other = (first, second) if sizes[0] == 1024 else (second, first)
    left = Fixed(nest, (nest.kind, (full,), "THREAD"))
    assert "THREAD" not in left(nest.kind, other)


def test_three_block_dimensions_are_all() -> None:
    blocks = [Dim("b0"), Dim("b1", (4,)), Dim("b2", (4,))]
    fourth = Dim("d", (4,))
    inst = Inst("i", (*blocks, fourth))
    nest = Nest([*blocks, fourth], [inst])
    left = Fixed(nest, *((nest.kind, (dim,), "BLOCK") for dim in blocks))
    assert all(left(nest.iterates, inst, dim) == {"TRUE"} for dim in (*blocks, fourth))
    assert left(nest.kind, fourth) == {"LOOP", "THREAD", "UNROLL"}
    assert left(nest.order, blocks[0], blocks[1]) <= {"INNER", "OUTER"}
    assert left(nest.order, blocks[1], blocks[2]) == {"INNER", "OUTER"}


def test_two_nests() -> None:
    """A holds a move and a store with side effects, B a move."""
    a, b = Dim("a", (4,)), Dim("b", (4,))
    move_a, move_b = Inst("move a", (a,)), Inst("move b", (b,))
    store = Inst("store", (a,), side_effects=True)
    nest = Nest([a, b], [move_a, store, move_b])
    left = Fixed(nest)
    assert not left(nest.kind, a) & {"INNER_VECTOR", "OUTER_VECTOR"}
    assert not left(nest.kind, b) & {"INNER_VECTOR", "OUTER_VECTOR"}
    assert left(nest.order, move_a, b) == {"INNER", "BEFORE", "AFTER"}
    assert left(nest.iterates, store, b) == {"FALSE"}


def test_a_vector_holds_one_instruction() -> None:
    dim = Dim("d", (4,))
    load = Inst("load", (dim,), vector_dims=(dim,))
    nest = Nest([dim], [load])
    assert "INNER_VECTOR" in Fixed(nest)(nest.kind, dim)
    again = Inst("load again", (dim,), vector_dims=(dim,))
    for second in (again, Inst("multiply", (dim,))):
        nest = Nest([dim], [load, second])
        assert not Fixed(nest)(nest.kind, dim) & {"INNER_VECTOR", "OUTER_VECTOR"}


@pytest.mark.parametrize(("sizes", "possible"), [((64,), True), ((4096,), False), ((), False)])
def test_only_short_dimensions_are_unrolled(sizes: tuple[int, ...], possible: bool) -> None:
    dim = Dim("d", sizes)
    nest = Nest([dim], [Inst("i", (dim,))])
    assert ("UNROLL" in Fixed(nest)(nest.kind, dim)) == possible


def test_a_reduction_starts_after_its_initialisation() -> None:
    over, around, away = Dim("over", (4,)), Dim("around", (4,)), Dim("away", (4,))
    init = Inst("init", ())
    total = Inst("total", (over,), reduces=(over,), init="init")
    nest = Nest([over, around, away], [init, total])
    left = Fixed(
        nest,
        (nest.order, (around, total), "OUTER"),
        (nest.order, (around, over), "OUTER"),
        (nest.order, (away, init), "BEFORE", "AFTER"),
    )
    assert left(nest.kind, over) == {"LOOP", "UNROLL"}
    assert left(nest.order, over, init) == {"AFTER"}
    assert left(nest.order, around, init) == {"OUTER"}
    assert left(nest.iterates, total, away) == {"FALSE"}


def test_vectors_are_shared_out() -> None:
    """INNER_VECTOR of 2 and 4 fill the limit of 8: a third vector of 4 is outside them."""
    inner = [Dim("v2", (2,)), Dim("v4", (4,))]
    third, loop = Dim("third", (4,)), Dim("loop", (4,))
    dims = (*inner, third, loop)
    nest = Nest(list(dims), [Inst("i", dims, vector_dims=dims)])
    left = Fixed(
        nest,
        *((nest.kind, (dim,), "INNER_VECTOR") for dim in inner),
        (nest.kind, (third,), "INNER_VECTOR", "OUTER_VECTOR"),
        (nest.kind, (loop,), "LOOP"),
    )
    assert left(nest.kind, third) == {"OUTER_VECTOR"}
    assert left(nest.order, loop, third) == {"OUTER"}
    assert all(left(nest.order, third, dim) == {"OUTER"} for dim in inner)


@pytest.mark.slow
def test_a_matmul_sized_space_is_descended_in_batches() -> None:
    """27 statements; a descent ends in a solution or, not too often, at a dead end."""
    nest = Nest(*matmul())
    propagator = Propagator(nest.space)
    branch = in_order(propagator, [nest.size, nest.kind, nest.threads, nest.order])
    found = descents(SpaceProblem(propagator, branch=branch), 32, np.random.default_rng(0))
    assert propagator.is_decided(found.leaves.take(found.arrived)).all()
    assert found.arrived.mean() > 0.5


@pytest.mark.slow
def test_a_descent_of_a_matmul_sized_space_takes_less_than_a_tenth_of_a_second() -> None:
    """On one core, in a batch of 64; measured: 15 ms on a busy Neoverse N1."""
    nest = Nest(*matmul())
    propagator = Propagator(nest.space)
    branch = in_order(propagator, [nest.size, nest.kind, nest.threads, nest.order])
    started = time.process_time()
    descents(SpaceProblem(propagator, branch=branch), 64, np.random.default_rng(0))
    assert (time.process_time() - started) / 64 < 0.1
