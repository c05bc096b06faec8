"""Copies by all threads, and ahead of who uses them: right, and as experts write them."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.loopnest.running import Seen, run_all

from warploom.kernel.ir import Barrier, For, Load, walk
from warploom.loopnest.bound import Bound
from warploom.loopnest.decided import Implementation
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, batched_matmul, gesummv, matmul
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import Target
from warploom.loopnest.trial import tried
from warploom.machine.record import H200, machine_named
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

COOPERATIVE = Target(machine_named("h200"), cooperative_copies=True, stages=(1, 2))
TAIL = Cut(tail=True)
PROGRAMS: dict[str, Program] = {
    "matmul": matmul(16, 24, 16, ((4, 2), (4, 2), (4,))),
    "matmul, partial tiles": matmul(7, 12, 10, ((4, 2), (4, 2), (4,)), cut=TAIL),
    "matmul, one iteration more": matmul(8, 8, 12, ((2, 2), (4,), (4,))),
    "matmul, by columns": matmul(8, 12, 12, ((2, 2), (4,), (4,)), transposed="AB"),
    "batched": batched_matmul(3, 4, 8, 6, tiles=(4,), batch_tiles=(2,), cut=TAIL),
    "gesummv": gesummv(6, 8, tiles=(2,), inner=(4,)),
}
COPIES = {"batched": ("A_1", "B_1"), "gesummv": ("A_1", "B_1", "x_1")}


def run_dealt(name: str, stages: int, count: int) -> Seen:
    """Implementations all of whose copies are cooperative."""
    space = NestSpace(PROGRAMS[name], COOPERATIVE)
    texts = [f"stages={stages}"]
    for load in COPIES.get(name, ("A_1", "B_1")):
        dims = [str(d) for d in space.dims if str(d).startswith(f"{load}.") and d.tile is not None]
        texts.append(f"dim_kind({dims[0]})=DEAL")
    taken = fixed(space.propagator, texts)
    seen = run_all(PROGRAMS[name], count, space=space, decisions=taken)
    assert seen.traits["DEAL"] == seen.runs
    return seen


def test_copies_that_are_dealt_out_are_right() -> None:
    assert run_dealt("matmul, one iteration more", 2, 2).runs == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("stages", [1, 2])
def test_many_copies_that_are_dealt_out_are_right(name: str, stages: int) -> None:
    assert run_dealt(name, stages, 100).runs > 70


EXPERT = """
    size(m1)=2 size(m2)=2 size(m3)=4 size(n1)=2 size(n2)=16 size(n3)=4 size(k1)=4 stages=2 padding=0
    layout(A_1>sum_1.put.k1)=3 layout(A_1>sum_1.put.m1)=2 layout(A_1>sum_1.put.m2)=1
    layout(B_1>sum_1.put.k1)=3 layout(B_1>sum_1.put.n1)=2 layout(B_1>sum_1.put.n2)=1
    dim_kind(A_1.m1)=DEAL dim_kind(B_1.n1)=DEAL dim_kind(k0)=LOOP cache=CACHE_SHARED
    dim_kind(m0)=BLOCK dim_kind(n0)=BLOCK dim_kind(sum_1.m2)=THREAD dim_kind(sum_1.n2)=THREAD
    dim_kind(sum_1.m1)=UNROLL dim_kind(sum_1.m3)=UNROLL dim_kind(sum_1.n1)=UNROLL
    dim_kind(sum_1.n3)=UNROLL dim_kind(sum_1.k1)=UNROLL
    dim_kind(A_1>sum_1.get.m3)=VECTOR dim_kind(B_1>sum_1.get.n3)=VECTOR
    dim_kind(A_1>sum_1.get.m1)=UNROLL dim_kind(B_1>sum_1.get.n1)=UNROLL
    dim_kind(A_1>sum_1.get.m2)=THREAD dim_kind(B_1>sum_1.get.n2)=THREAD
    order(A_1>sum_1.get.k1,sum_1.k1)=MERGED order(B_1>sum_1.get.k1,sum_1.k1)=MERGED
    order(A_1>sum_1.get.m1,sum_1.m1)=BEFORE order(B_1>sum_1.get.n1,sum_1.n1)=BEFORE
    dim_kind(store_C_1.n3)=VECTOR
"""


@pytest.mark.slow
def test_the_space_has_what_an_expert_writes() -> None:
    """Tiles in shared memory, twice; accesses of 16 bytes; the next tile on its way to registers
    while this one is used; one barrier for each."""
    space = NestSpace(matmul(16, 128, 16, ((2, 2, 4), (2, 16, 4), (4,))), COOPERATIVE)
    taken = fixed(space.propagator, EXPERT.split())
    problem = SpaceProblem(space.propagator, taken, space.branch)
    found = descents(problem, 2, np.random.default_rng(0))
    assert found.arrived.all()
    made = Implementation(space, found.leaves, 0)
    kernel = lower(made)
    assert kernel.threads == 32
    (loop,) = (each for each in walk(kernel.body) if isinstance(each, For) and not each.unroll)
    assert (
        sum(isinstance(each, Barrier) for each in loop.body) == 2
    )  # two iterations are written out
    loads = [each for each in walk(loop.body) if isinstance(each, Load)]
    assert {each.width for each in loads} == {4}
    assert not tried(made).wrong
    assert Bound(space, H200.rates)(found.leaves.take(slice(0, 1)))[0] > 0
