"""The bound beside what a compiler makes of implementations: NVRTC's PTX, counted by the emulator.

A compiler does less than a kernel says: it undoes short loops, takes out of loops what they only
repeat, and lets a thread that alone stores something alone load it. A bound must know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from bench.common.loopnest.running import inputs
from tests.loopnest.programs import random_program

from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.index.ir import Const
from warploom.kernel.dtype import DType, f32, f64, i32, i64
from warploom.kernel.ir import Barrier, For, Kernel, Value, walk
from warploom.loopnest.bound import Bound
from warploom.loopnest.build import LoopNest, cast, exp, maximum, minimum
from warploom.loopnest.decided import Implementation
from warploom.loopnest.ir import Compute, Program
from warploom.loopnest.kernels import axpy, gesummv, matmul, matvec
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import everything
from warploom.machine.record import H200, machine_named
from warploom.machine.report import Report
from warploom.ptx import load
from warploom.runtime.compile import compile_cuda
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

pytest.importorskip("cuda.bindings.nvrtc")


def counted(kernel: Kernel, program: Program, seed: int) -> Report:
    arrays, numbers = inputs(program, seed)
    outputs = {a.name: np.zeros_like(arrays[a.name]) for a in program.arrays}
    given = [arrays.get(a.name, outputs[a.name]).copy() for a in program.arrays]
    grid = [each.value for each in kernel.grid if isinstance(each, Const)]
    text = compile_cuda(cuda(kernel), "sm_90", contract=False).text
    function = load(text).kernel(function_name(kernel, "cuda"))
    values = [np.float32(each) for each in numbers.values()]
    return function.launch((grid[0], grid[1], grid[2]), kernel.block, [*given, *values],
                           counters=True)  # fmt: skip


@cache
def space_of(program: Program) -> NestSpace:
    return NestSpace(program, everything(machine_named("h200")))


def below_what_is_compiled(
    program: Program, count: int, seed: int, *fixes: str, skipped: int = 0
) -> int:
    """How many implementations were looked at."""
    space = space_of(program)
    bound = Bound(space, H200.rates)
    decisions = tuple(fixed(space.propagator, fixes))
    problem = SpaceProblem(space.propagator, decisions, space.branch)
    found = descents(problem, count, np.random.default_rng(seed))
    rows = np.flatnonzero(found.arrived)[skipped:]
    for row in rows:
        report = counted(lower(Implementation(space, found.leaves, int(row))), program, seed)
        work = bound.terms(found.leaves.take(slice(row, row + 1))).work
        total = {name: float(each.sum()) * (1 - 1e-9) for name, each in work.items()}
        moved = report.global_loads + report.global_stores
        assert total["access"] / 32 <= moved.requests + report.shared.requests
        assert total["l2_store"] <= report.global_stores.sectors
        assert total["shared"] / 128 <= report.shared.wavefronts
        compared = sum(report.mix.get(each, 0) for each in ("min", "max"))
        actions = [inst.action for inst in space.insts]
        if all(each.op in ("max", "move") for each in actions if isinstance(each, Compute)):
            assert total["alu"] <= compared
    return len(rows)


SMALL = {
    "axpy": axpy(2048, tiles=((256, 64, 32), (4, 2))),
    "matmul": matmul(16, 16, 16, ((4, 2), (4,), (8,))),
    "matvec": matvec(64, 64),
    "gesummv": gesummv(32, 32),
}
# Of axpy: x goes to shared memory once in every iteration of y's loop.
AGAIN = (
    "dim_kind(n0)=BLOCK", "size(n1)=256", "size(n2)=4", "dim_kind(y_1.n1)=LOOP",
    "dim_kind(x_1.n1)=THREAD", "dim_kind(x_1.n2)=LOOP", "order(y_1.n1,x_1.n2)=OUTER",
)  # fmt: skip
# All threads of y load x, compute, and leave it to the first of them to store.
LEFT_TO_ONE = (
    "dim_kind(n0)=BLOCK", "size(n1)=64", "size(n2)=2", "dim_kind(y_1.n1)=THREAD",
    "dim_kind(x_1.n1)=LOOP", "dim_kind(value_1.n1)=UNROLL", "dim_kind(store_z_1.n1)=UNROLL",
)  # fmt: skip


def test_compilers_are_told_that_one_block_has_to_have_room() -> None:
    """Else they wait for each load before they ask for the next, to save registers. Where threads
    meet in a loop other blocks do something meanwhile."""
    told = set()
    for name in ("matvec", "matmul"):
        space = space_of(SMALL[name])
        problem = SpaceProblem(space.propagator, (), space.branch)
        found = descents(problem, 12, np.random.default_rng(2))
        for row in np.flatnonzero(found.arrived):
            kernel = lower(Implementation(space, found.leaves, int(row)))
            loops = [each for each in walk(kernel.body) if isinstance(each, For)]
            again = any(isinstance(e, Barrier) for loop in loops for e in walk(loop.body))
            assert (f"__launch_bounds__({kernel.threads}, 1)" in cuda(kernel)) is not again
            told.add(again)
    assert told == {True, False}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("fixes", "skipped"), [(AGAIN, 1), (LEFT_TO_ONE, 0)], ids=["again", "left to one"]
)
def test_what_a_compiler_does_once_is_counted_once(fixes: Sequence[str], skipped: int) -> None:
    """Of `AGAIN` the second that is drawn: it has a short loop as well, which is undone."""
    assert below_what_is_compiled(SMALL["axpy"], 2, 1, *fixes, skipped=skipped) == 2 - skipped


@pytest.mark.slow
@pytest.mark.parametrize("fixes", [AGAIN, LEFT_TO_ONE], ids=["again", "left to one"])
def test_what_a_compiler_does_once_is_counted_once_by_others(fixes: Sequence[str]) -> None:
    assert below_what_is_compiled(SMALL["axpy"], 4, 1, *fixes) == 4


def _threads(*names: str) -> tuple[str, ...]:
    return tuple(f"dim_kind({name})=THREAD" for name in names)


def beyond_by_blocks() -> tuple[Program, tuple[str, ...]]:
    """Blocks of which some are beyond the end of i; these load nothing of x[j], either."""
    nest = LoopNest("beyond")
    i, j = nest.axis("i", 5, (8,), tail=True), nest.axis("j", 32, (32,), dynamic=False)
    x, z = nest.array("x", j), nest.array("z", i, j)
    z[i, j] = x[j] * 2.0
    merged = tuple(f"order(x_1.j1,{name}.j1)=MERGED" for name in ("store_z_1", "value_1"))
    blocks = ("dim_kind(i0)=BLOCK", "dim_kind(store_z_1.i1)=BLOCK")
    return nest.done(), (*merged, *blocks, *_threads("x_1.j1", "value_1.j1", "store_z_1.j1"))


def beyond_by_warps() -> tuple[Program, tuple[str, ...]]:
    """The second warp has nothing to do."""
    nest = LoopNest("tail")
    i = nest.axis("i", 32, (33,), tail=True)
    x, z = nest.array("x", i), nest.array("z", i)
    z[i] = x[i] + 1.0
    return nest.done(), ("dim_kind(i0)=BLOCK", *_threads("x_1.i1", "value_1.i1", "store_z_1.i1"))


def beyond_by_iterations() -> tuple[Program, tuple[str, ...]]:
    """33 iterations of 64: the others are not there when it is compiled."""
    nest = LoopNest("fold")
    i, k = nest.axis("i", 32, (32,), dynamic=False), nest.axis("k", 33, (64,), tail=True)
    x, z = nest.array("x", k, i), nest.array("z", i)
    z[i] = nest.fold("max", x[k, i], over=k)
    fixes = ("order(x_1.k1,fold_1.k1)=MERGED", "dim_kind(k0)=LOOP", "dim_kind(x_1.k1)=UNROLL")
    return nest.done(), (*fixes, *_threads("x_1.i1", "fold_1.i1", "store_z_1.i1"))


def part_of_another() -> tuple[Program, tuple[str, ...]]:
    nest = LoopNest("subset")
    i, j = nest.axis("i", 64, (32,)), nest.axis("j", 4, (4,), dynamic=False)
    a, z = nest.array("A", i, j), nest.array("z", i, j)
    z[i, j] = a[i, j] + a[i, 0]
    own = tuple(f"dim_kind({name}.j1)=UNROLL" for name in ("A_1", "value_1", "store_z_1"))
    return nest.done(), (
        "dim_kind(i0)=BLOCK", *own, *_threads("A_1.i1", "A_2.i1", "value_1.i1", "store_z_1.i1"),
    )  # fmt: skip


def dealt_to_oneself() -> tuple[Program, tuple[str, ...]]:
    nest = LoopNest("copy")
    i = nest.axis("i", 64, (32,))
    x, z = nest.array("x", 128), nest.array("z", i)
    z[i] = x[i + 1] + 1.0
    return nest.done(), (
        "dim_kind(i0)=BLOCK", "dim_kind(x_1.i1)=DEAL", *_threads("value_1.i1", "store_z_1.i1"),
    )  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "made",
    [beyond_by_blocks, beyond_by_warps, beyond_by_iterations, part_of_another, dealt_to_oneself],
)
def test_what_is_not_done_is_not_counted(
    made: Callable[[], tuple[Program, tuple[str, ...]]],
) -> None:
    program, fixes = made()
    assert below_what_is_compiled(program, 4, 1, *fixes) >= 1


@pytest.mark.slow
def test_what_is_compiled_does_no_less_than_the_bound_says() -> None:
    """The random program has one thread that gets back what it put itself into shared memory."""
    assert below_what_is_compiled(random_program(24), 4, 24) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("seed", [7, *range(100, 110)])
def test_what_is_compiled_of_many_does_no_less(name: str, seed: int) -> None:
    assert below_what_is_compiled(SMALL[name], 10, seed) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(700, 760))
def test_what_is_compiled_of_random_programs_does_no_less(seed: int) -> None:
    below_what_is_compiled(random_program(seed), 4, seed)


def chain(step: Callable[[Value], Value], dtype: DType, count: int) -> Program:
    nest = LoopNest("chain")
    i = nest.axis("n", 512, (64,))
    x, y = nest.array("x", i, dtype=dtype), nest.array("y", i, dtype=dtype)
    value: Value = x[i]
    for _ in range(count):
        value = step(value)
    y[i] = value
    return nest.done()


CHAINS: dict[str, tuple[Callable[[Value], Value], DType]] = {
    "integer + 3": (lambda v: v + 3, i32),
    "3 - integer": (lambda v: 3 - v, i32),
    "integer · 5 - 1": (lambda v: v * 5 - 1, i32),
    "-integer": (lambda v: -v, i32),
    "f32 → f64 → f32": (lambda v: cast(cast(v, f64), f32), f32),
    "i32 → i64 → i32": (lambda v: cast(cast(v, i64), i32), i32),
    "i32 → f64 → i32": (lambda v: cast(cast(v, f64), i32), i32),
    "least of integer and 7": (lambda v: minimum(v, 7), i32),
    "greatest of float and 7": (lambda v: maximum(v, 7), f32),
    "bits": (lambda v: (v ^ 5) & 1023, i32),
    "shift": (lambda v: v << 1, i32),
    "float + 3": (lambda v: v + 3, f32),
    "float · 3": (lambda v: v * 3, f32),
    "-float": (lambda v: -v, f32),
    "|float|": (abs, f32),
    "exp": (lambda v: exp(v), f32),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_costs_no_more_than_what_is_left_of_it(name: str) -> None:
    """Sixty conversions there and back took less than their bound once, and 200 integers + 3."""
    step, dtype = CHAINS[name]
    program = chain(step, dtype, 60)
    space = space_of(program)
    bound = Bound(space, H200.rates)
    fixes = ("dim_kind(n0)=BLOCK", "dim_kind(x_1.n1)=THREAD", "order(x_1.n1,store_y_1.n1)=MERGED")
    problem = SpaceProblem(space.propagator, tuple(fixed(space.propagator, fixes)), space.branch)
    leaf = descents(problem, 1, np.random.default_rng(0)).leaves
    report = counted(lower(Implementation(space, leaf, 0)), program, 0)
    issued = float(bound.terms(leaf).work["issue"].sum())
    assert issued * (1 - 1e-9) <= report.thread_instructions
