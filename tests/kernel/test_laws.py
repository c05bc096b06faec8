"""Rewrites keep the meaning: run(before) == run(after)."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.kernel import kernels
from bench.common.kernel.random_kernels import arguments, random_kernel
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var, select
from warploom.kernel.build import Builder, cast, from_index
from warploom.kernel.check import check
from warploom.kernel.dtype import f32, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import If, Kernel, Let, Registers, Shuffle, walk
from warploom.kernel.laws import distribute
from warploom.kernel.predicate import exchanges, predicate_exchanges

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
@examples(40)
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
    assert np.array_equal(results[0], results[1])


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


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 24), marks=pytest.mark.slow)])
@pytest.mark.parametrize("everywhere", [False, True])
def test_random_kernels_mean_the_same_with_exchanges_taken_out(
    everywhere: bool, seeds: range
) -> None:
    for seed in seeds:
        before = random_kernel(seed)
        after = predicate_exchanges(before, everywhere)
        results = []
        for kernel in (before, after):
            given = arguments(kernel, seed)
            run(kernel, given)
            results.append([each.tobytes() for each in given if isinstance(each, np.ndarray)])
        assert results[0] == results[1]
        branches = tuple(each for each in walk(after.body) if isinstance(each, If))
        assert not (everywhere and any(map(exchanges, branches)))


def test_one_name_in_both_branches() -> None:
    k = Builder("names", block=64)
    y, v = k.array("y", i32, 64), k.register("v", i32, 5)
    with k.when(k.warp.eq(0)):
        k.let("a", k.lane + 1)
        r = k.register("r", i32, 1)
        k.set(r, k.shuffle(from_index(k.thread), Var("a")))
        k.set(v, r)
    with k.otherwise():
        k.let("a", k.lane + 2)
        w = k.register("r", f32, 0.5)
        k.set(v, k.shuffle(cast(i32, w * 4.0), Var("a")))
    y[k.thread] = v
    kernel = k.done()
    made = predicate_exchanges(kernel)
    declared = [each.name for each in walk(made.body) if isinstance(each, Let | Registers)]
    assert len(set(declared)) == len(declared)
    assert output(made) == output(kernel) == [*range(1, 32), 0, *[2] * 32]


def same_on(kernel: Kernel, *launches: tuple[int, ...]) -> bool:
    """Whether taking exchanges out of conditions changes nothing."""
    for scalars in launches:
        results = []
        for each in (kernel, predicate_exchanges(kernel)):
            out = np.zeros(int(scalars[0]), np.int32)
            run(each, [*scalars, out])
            results.append(out.tolist())
        if results[0] != results[1]:
            return False
    return True


def test_warps_that_loop_differently() -> None:
    k = Builder("loops", block=128)
    size, n = k.scalar("size"), k.scalar("n")
    k.require(size.eq(128))
    y = k.array("y", i32, size)
    v, w = k.register("v", i32), k.register("w", i32)
    k.set(v, from_index(k.thread))
    with k.loop("i", k.warp, n + 2 * k.warp, 2) as i:
        k.set(w, k.shuffle(v, k.lane + i))
        with k.when(k.lane.lt(9)):
            k.set(v, v + w)
    y[k.thread] = v
    assert same_on(k.done(), (128, -3), (128, 0), (128, 1), (128, 2), (128, 7))


def test_what_a_condition_kept_from_being_computed_stays_defined() -> None:
    k = Builder("guarded", block=64)
    size, m = k.scalar("size"), k.scalar("m")
    k.require(size.eq(64))
    y, v = k.array("y", i32, size), k.register("v", i32, 7)
    with k.when(k.warp.lt(m)):
        q = k.let("q", k.thread % m)
        k.set(v, k.shuffle(from_index(k.thread) / (from_index(q) + 1), q))
    y[k.thread] = v
    assert same_on(k.done(), (64, -2), (64, 0), (64, 1), (64, 2), (64, 5))


def test_a_register_that_a_condition_keeps_in_range_is_touched_under_it_only() -> None:
    k = Builder("kept", block=64)
    y, r, v = k.array("y", i32, 64), k.registers("r", i32, 2, initial=7), k.register("v", i32, 0)
    with k.loop("i", 0, 2 * 10**8, step=10**8) as i, k.when(i.lt(2)):
        k.set(v, k.shuffle(v + 1, (k.lane + 1) % 32))
        k.set(r[i], v + from_index(k.thread))
    y[k.thread] = v + r[0] + r[1]
    before, after = np.zeros(64, np.int32), np.zeros(64, np.int32)
    run(k.done(), [before])
    run(predicate_exchanges(k.done(), everywhere=True), [after])  # no index leaves the registers
    assert np.array_equal(before, after)
