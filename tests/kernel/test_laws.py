"""Rewrites keep the meaning: run(before) == run(after)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel import kernels

from warploom.errors import CheckError, UnsupportedError
from warploom.index.ir import Const, Expr, Var, select
from warploom.kernel.build import Builder, from_index
from warploom.kernel.check import check
from warploom.kernel.dtype import i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import If, Kernel, Shuffle, walk
from warploom.kernel.laws import distribute
from warploom.kernel.predicate import predicate_exchanges

SIZE = 4
LANE = Var("lane")


def output(kernel: Kernel) -> list[int]:
    y = np.full(64, -1, np.int32)
    run(kernel, [y])
    return y.tolist()


def reads(index: Expr) -> Kernel:
    """y = r[index] for a register array r that differs by thread."""
    k = Builder("reads", block=64)
    y = k.array("y", i32, 64)
    r = k.registers("r", i32, SIZE)
    with k.loop("j", SIZE) as j:
        r[j] = from_index(k.thread * 10 + j)
    total = k.register("total", i32, 0)
    with k.loop("i", 3):
        at = k.let("at", index)
        k.set(total, total * 7 + r[at])
    y[k.thread] = total
    return k.raw()


leaves = st.sampled_from(
    [Const(0), Const(1), Const(3), LANE % SIZE, Var("i"), (LANE + Var("i")) % 4]
)
conditions = st.sampled_from([LANE.lt(5), LANE.ge(Var("i")), (LANE & 1).eq(0), Var("i").eq(1)])
indices = st.recursive(
    leaves, lambda inner: st.builds(select, conditions, inner, inner), max_leaves=6
)


@given(indices)
@settings(max_examples=40, deadline=None)
def test_distributed_reads_are_the_same(index: Expr) -> None:
    before = reads(index)
    after = distribute(before)
    check(after)  # every index is known after unrolling
    assert output(before) == output(after)


def test_a_select_of_registers_becomes_a_select_of_values() -> None:
    before, after = kernels.stencil(checked=False), kernels.stencil()
    with pytest.raises(CheckError, match="not known after unrolling"):
        check(before)
    x = np.arange(102, dtype=np.float32) ** 2
    results = []
    for kernel in (before, after):
        y = np.zeros(100, np.float32)
        run(kernel, [x, y])
        results.append(y)
    assert np.array_equal(*results)


@pytest.mark.parametrize("deep", [False, True])
def test_predicated_exchanges_are_the_same(deep: bool) -> None:
    before = kernels.warp_branch(deep)
    after = predicate_exchanges(before)
    assert output(before) == output(after)
    branches = [stmt for stmt in walk(after.body) if isinstance(stmt, If)]
    assert not any(isinstance(each, Shuffle) for each in walk(tuple(branches)))


def test_uniform_branches_stay() -> None:
    k = Builder("uniform", block=64)
    n = k.scalar("n")
    v = k.register("v", i32, 5)
    with k.when(k.block_x.lt(n)):
        k.set(v, k.shuffle(v, 0))
    kernel = k.done()
    assert predicate_exchanges(kernel) == kernel


def test_one_name_in_both_branches_is_not_supported() -> None:
    k = Builder("names", block=64)
    v = k.register("v", i32, 5)
    with k.when(k.warp.eq(0)):
        k.let("a", k.lane + 1)
        k.set(v, k.shuffle(v, Var("a")))
    with k.otherwise():
        k.let("a", k.lane + 2)
    with pytest.raises(UnsupportedError, match="'a' is declared in both branches"):
        predicate_exchanges(k.done())
