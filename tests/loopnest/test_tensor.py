"""Products by tensor cores as a kind of dimension: right, compiled, bounded, refused in time."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from bench.common.loopnest.running import grows_along, implementations

from warploom.emit.c import c
from warploom.emit.opencl import opencl
from warploom.errors import CheckError, EmitError
from warploom.index.ir import Const
from warploom.kernel.evaluate import run
from warploom.kernel.ir import TensorKind, TensorProduct, walk
from warploom.kernel.tensor import leading_bits
from warploom.loopnest.bound import Bound
from warploom.loopnest.build import LoopNest
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, batched_matmul, doitgen, matmul, matvec, two_matmuls
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import with_tensor_cores
from warploom.loopnest.tile import products
from warploom.loopnest.trial import tried
from warploom.machine.record import H200, machine_named
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

TILES = (((2, 4), (8, 16)), ((4, 2), (2, 4)), ((2,), (8,)))
DEEP = (*TILES[:2], ((2,), (16,)))
TENSOR = "dim_kind(sum_1.k2)=TENSOR"
TAIL = Cut(tail=True)
QUICK = "partial tiles"  # one space for all that is not slow
PROGRAMS: dict[str, Program] = {
    "whole tiles": matmul(64, 32, 32, TILES),
    "partial tiles": matmul(37, 21, 43, TILES, cut=TAIL),
    "transposed": matmul(32, 16, 32, TILES, transposed="AB"),
    "strided": matmul(16, 24, 32, TILES, stride=3, cut=TAIL),
    "activated": matmul(32, 16, 16, TILES, activation="relu"),
    "bf16": matmul(37, 21, 43, DEEP, cut=TAIL),
    "bf16, whole and transposed": matmul(64, 32, 32, DEEP, transposed="A"),
}


def kind_of(name: str) -> TensorKind:
    return "bf16" if "bf16" in name else "tf32"


@cache
def space_of(name: str) -> NestSpace:
    return NestSpace(PROGRAMS[name], with_tensor_cores(H200, kind_of(name)))


def by_tensor_cores(name: str, count: int, *fixes: str) -> list[Implementation]:
    space = space_of(name)
    return list(implementations(space, count, 1, fixed(space.propagator, [TENSOR, *fixes])))


def arrays_of(name: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        each.name: leading_bits(random.standard_normal(each.elements), kind_of(name))
        for each in PROGRAMS[name].arrays
    }


def check_right(name: str, count: int, *fixes: str) -> int:
    made = by_tensor_cores(name, count, *fixes)
    for each in made:
        sums = [s.target.index for s in walk(lower(each).body) if isinstance(s, TensorProduct)]
        assert sums
        assert all(isinstance(index, Const) and index.value % 4 == 0 for index in sums)
        assert (each.levels[0], each.levels[1] % 8) == (4, 0)
        assert not tried(each).wrong
    return len(made)


@pytest.mark.slow  # the sums of a batch below are as good a sample
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_tiles_are_right(name: str) -> None:
    assert check_right(name, 12) >= 10
    assert check_right(name, 4, "stages=3", "fill=COPY") >= 3


def batch(size: int) -> Program:
    nest = LoopNest("batch")
    b, k = nest.axis("b", size, (2,), tail=True), nest.axis("k", 17, (16,), tail=True)
    m, n = nest.axis("m", 18, *TILES[0], tail=True), nest.axis("n", 9, *TILES[1], tail=True)
    left, right, out = nest.array("A", b, m, k), nest.array("B", b, k, n), nest.array("C", b, m, n)
    out[b, m, n] = nest.sum(left[b, m, k] * right[b, k, n], over=k)
    return nest.done()


@pytest.mark.slow
def test_sums_may_be_of_a_batch_as_well() -> None:
    """Each thread has sums of two matrices; which one a product is added to, a loop around says."""
    space = NestSpace(batch(3), with_tensor_cores(H200, "bf16"))
    taken = fixed(space.propagator, ["dim_kind(sum_1.k1)=TENSOR", "dim_kind(sum_1.b1)=UNROLL"])
    made = list(implementations(space, 1, 2, taken))
    assert made
    assert not any(tried(each).wrong for each in made)


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize(
    ("name", "shape"),
    [(QUICK, "m16n8k8"), pytest.param("bf16", "m16n8k16", marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_compiled_tiles_do_the_same(name: str, shape: str) -> None:
    program = PROGRAMS[name]
    (made, *_) = by_tensor_cores(name, 2, "stages=2", "fill=COPY")
    kernel = lower(made)
    first, second = arrays_of(name), arrays_of(name)
    wanted = evaluate(program, first, {})["C"]
    run(kernel, list(first.values()))
    function = EmulatedFunction(kernel)
    assert f"mma.sync.aligned.{shape}." in function.ptx
    x, y, z = (each.value for each in kernel.grid if isinstance(each, Const))
    assert not function(list(second.values()), (x, y, z)).races
    assert np.array_equal(first["C"], second["C"])
    assert np.allclose(first["C"], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_bounds_grow_along_decisions() -> None:
    space = space_of(QUICK)
    assert grows_along(space, Bound(space, H200.rates), 2, seed=5) > 0


def counted(name: str, count: int, seed: int) -> int:
    """What the bound reckons with takes place."""
    space = space_of(name)
    bound = Bound(space, H200.rates)
    taken = fixed(space.propagator, [TENSOR])
    problem = SpaceProblem(space.propagator, taken, space.branch)
    found = descents(problem, count, np.random.default_rng(seed))
    for row in np.flatnonzero(found.arrived):
        kernel = lower(Implementation(space, found.leaves, int(row)))
        report = run(kernel, list(arrays_of(name).values()))
        moved = report.global_loads + report.global_stores
        work = bound.terms(found.leaves.take(slice(row, row + 1))).work
        total = {name: float(each.sum()) * (1 - 1e-9) for name, each in work.items()}
        assert total["shared"] / 32 / 4 <= report.shared.wavefronts
        assert total["access"] / 32 <= moved.requests + report.shared.requests
        folds = work["issue"][0][bound.multiplies]
        assert 0 < float(folds.sum()) * (1 - 1e-9) / 32 <= report.operations
    return int(found.arrived.sum())


@pytest.mark.slow
def test_traffic_of_tiles_is_not_overestimated() -> None:
    assert counted(QUICK, 1, 1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [QUICK, "bf16"])
def test_traffic_of_many_tiles_is_not_overestimated(name: str) -> None:
    assert counted(name, 30, 2) >= 25


@pytest.mark.parametrize(("name", "times"), [(QUICK, 1), ("bf16", 2)])
def test_tensor_cores_lower_the_bound(name: str, times: int) -> None:
    space = space_of(name)
    bound = Bound(space, H200.rates)
    least = []
    for kind in ("TENSOR", "LOOP|UNROLL"):
        taken = fixed(space.propagator, [f"dim_kind(sum_1.k2)={kind}"])
        work = bound.terms(space.propagator.root(taken)).work["alu"][0][bound.multiplies]
        least.append(float(work.sum()))
    assert least[0] == pytest.approx(least[1] / H200.rates.tensor / times)


def test_what_tensor_cores_cannot_do_is_no_tile() -> None:
    able = {
        "matmul": (matmul(32, 32, 32), 1),
        "batched": (batched_matmul(4, 32, 32, 32), 1),
        "doitgen": (doitgen(4, 32, 32), 1),
        "a vector": (matvec(32, 32), 0),
        # What the second one multiplies is computed: rounded for tensor cores it would be wrong.
        "two in a row": (two_matmuls(32, 32, 32, 32), 1),
    }
    for name, (program, count) in able.items():
        assert len(list(products(program))) == count, name
    space = NestSpace(matvec(32, 32, (8,), (8,)), with_tensor_cores(H200))
    with pytest.raises(CheckError, match="no implementation has"):
        fixed(space.propagator, ["dim_kind(sum_1.n1)=TENSOR"])


@pytest.mark.parametrize(
    "fix",
    [
        "dim_kind(sum_1.k1)=TENSOR",  # of two elements
        "dim_kind(sum_1.m1)=TENSOR",  # nothing is folded along it
        "lowered(A_1>sum_1.array)=FALSE",
        "dim_kind(sum_1.n2)=LOOP",
        "dim_kind(sum_1.m2)=BLOCK",
    ],
)
def test_contradictions_are_found_at_once(fix: str) -> None:
    space = space_of(QUICK)
    taken = [fix] if "TENSOR" in fix else [TENSOR, fix]
    with pytest.raises(CheckError, match=r"no implementation has|contradict each other"):
        fixed(space.propagator, taken)


def test_other_languages_and_machines_refuse() -> None:
    kernel = lower(by_tensor_cores(QUICK, 1)[0])
    for emit in (c, opencl):
        with pytest.raises(EmitError, match="tensor cores"):
            emit(kernel)
    with pytest.raises(CheckError, match="no tensor cores"):
        with_tensor_cores(machine_named("k4000"))
