"""Beyond the paper: copies past the registers in several stages, swizzles, copies in any order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from bench.common.loopnest.running import inputs, run_all

from warploom.emit.cuda import cuda
from warploom.errors import CheckError
from warploom.index.ir import Const
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Barrier, Kernel, Store, walk
from warploom.loopnest.bound import Bound
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, gesummv, matmul
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import everything
from warploom.machine.banks import BankUse
from warploom.machine.record import H200
from warploom.machine.report import Report
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

# Seven iterations of the loop over k: whole rounds of no number of stages.
PRODUCT = matmul(4, 4, 14, ((2,), (4,), ((2,),)))
COOPERATIVE = (
    "dim_kind(A_1.m1)=DEAL",
    "dim_kind(B_1.n1)=DEAL",
    "dim_kind(k0)=LOOP",
    "lowered=TRUE",
)
TAIL = Cut(tail=True)
PROGRAMS: dict[str, tuple[Program, Sequence[str]]] = {
    "product": (PRODUCT, COOPERATIVE),
    "partial tiles": (matmul(7, 6, 18, ((4,), (4,), ((4,),)), cut=TAIL), COOPERATIVE),
    "one iteration": (matmul(4, 4, 4, ((2,), (2,), ((4,),))), COOPERATIVE),
    "two products": (
        gesummv(4, 12, tiles=(2,), inner=((2,),)),
        [f"dim_kind({load}.{t})=DEAL" for load, t in (("A_1", "m1"), ("B_1", "m1"), ("x_1", "n1"))],
    ),
}


@cache
def space_of(program: Program) -> NestSpace:
    return NestSpace(program, everything(H200))


def made_with(program: Program, *fixes: str, seed: int = 0) -> Implementation:
    space = space_of(program)
    taken = fixed(space.propagator, list(fixes))
    problem = SpaceProblem(space.propagator, taken, space.branch)
    found = descents(problem, 4, np.random.default_rng(seed))
    return Implementation(space, found.leaves, int(np.flatnonzero(found.arrived)[0]))


def run_of(program: Program, kernel: Kernel) -> tuple[Report, bool]:
    """What a kernel did, and whether it was right."""
    arrays, numbers = inputs(program)
    wanted = evaluate(program, arrays, numbers)
    given = arrays | {name: np.full_like(each, 77) for name, each in wanted.items()}
    report = run(kernel, [*(given[each.name] for each in program.arrays), *numbers.values()])
    right = all(np.allclose(given[n], each, 1e-4, 1e-4) for n, each in wanted.items())
    return report, right


def waits(kernel: Kernel) -> list[int]:
    return [s.waits for s in walk(kernel.body) if isinstance(s, Barrier) and s.waits is not None]


def test_copies_past_the_registers_are_right() -> None:
    stages = 3
    made = made_with(PRODUCT, *COOPERATIVE, f"stages={stages}", "fill=COPY")
    kernel = lower(made)
    report, right = run_of(PRODUCT, kernel)
    assert right
    assert not report.races
    groups = waits(kernel)
    assert groups.count(stages - 2) >= stages  # one in each iteration that is written out
    assert any(isinstance(each, Store) and each.ahead for each in walk(kernel.body))
    assert cuda(kernel).count("cp.async.ca") + cuda(kernel).count("cp.async.cg") > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_many_copies_past_the_registers_are_right(name: str, stages: int) -> None:
    program, fixes = PROGRAMS[name]
    space = space_of(program)
    taken = fixed(space.propagator, [*fixes, f"stages={stages}", "fill=COPY"])
    assert run_all(program, 40, space=space, decisions=taken).runs > 20


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_the_compiled_copies_are_right() -> None:
    """By the emulator, on the compiler's own PTX, with copies that end later."""
    made = made_with(PRODUCT, *COOPERATIVE, "stages=4", "fill=COPY", "swizzle=PLAIN")
    arrays, _ = inputs(PRODUCT)
    wanted = evaluate(PRODUCT, arrays, {})["C"]
    kernel = lower(made)
    function = EmulatedFunction(kernel)
    assert "cp.async.wait_group" in function.ptx
    arrays["C"][:] = 77
    x, y, z = (each.value for each in kernel.grid if isinstance(each, Const))
    report = function([arrays[each.name] for each in PRODUCT.arrays], (x, y, z))
    assert not report.races
    assert np.allclose(arrays["C"], wanted, 1e-4, 1e-4)


def test_ways_and_stages_go_together() -> None:
    space = space_of(PRODUCT)

    def possible(*fixes: str) -> bool:
        try:
            return len(space.propagator.root(fixed(space.propagator, list(fixes)))) > 0
        except CheckError:
            return False

    assert possible("stages=3", "fill=COPY", *COOPERATIVE)
    assert not possible("stages=3", "fill=REGISTERS", *COOPERATIVE)
    assert not possible("stages=1", "fill=COPY", *COOPERATIVE)
    a, b = (f"{each}>sum_1.array" for each in ("A_1", "B_1"))
    assert not possible(f"stages({a})=2", f"stages({b})=3", "fill=COPY", *COOPERATIVE)
    assert possible(f"stages({a})=1", f"stages({b})=3", f"fill({b})=COPY", *COOPERATIVE)


def test_a_bound_holds_for_both_ways() -> None:
    """What is open may still become a copy that takes no instruction to store."""
    space = space_of(PRODUCT)
    bound = Bound(space, H200.rates)
    open_ = space.propagator.root(fixed(space.propagator, [*COOPERATIVE, "stages=2"]))
    whole = float(bound(open_)[0])
    for fill in ("COPY", "REGISTERS"):
        one = space.propagator.root(
            fixed(space.propagator, [*COOPERATIVE, "stages=2", f"fill={fill}"])
        )
        assert whole <= float(bound(one)[0])
    shares = bound.terms(open_).work["issue"][0]
    put = next(at for at, inst in enumerate(space.insts) if str(inst) == "A_1>sum_1.put")
    assert shares[put] == 0


# -- where cells lie -------------------------------------------------------------------------------

TILES = matmul(32, 32, 16, (((8,), (4,)), ((8,), (4,)), ((16,),)), stride=32)
EXPERT = """
    dim_kind(A_1.m1)=DEAL dim_kind(B_1.n1)=DEAL dim_kind(k0)=LOOP stages=1 padding=0
    layout(A_1>sum_1.put.k1)=2 layout(A_1>sum_1.put.m1)=1 layout(B_1>sum_1.put.k1)=2
    layout(B_1>sum_1.put.n1)=1 dim_kind(m0)=BLOCK dim_kind(n0)=BLOCK dim_kind(sum_1.m1)=THREAD
    dim_kind(sum_1.n1)=THREAD dim_kind(sum_1.m2)=UNROLL dim_kind(sum_1.n2)=UNROLL
    dim_kind(A_1>sum_1.get.m2)=VECTOR dim_kind(B_1>sum_1.get.n2)=VECTOR
    dim_kind(A_1>sum_1.get.m1)=THREAD dim_kind(B_1>sum_1.get.n1)=THREAD cache=CACHE_SHARED
"""
IN_MEMORY = ("order(A_1.m1,A_1.m2)=OUTER", "order(A_1.m2,A_1.k1)=OUTER")
IN_ARRAY = ("order(A_1.k1,A_1.m1)=OUTER", "order(A_1.m1,A_1.m2)=OUTER")


def banks_of(*fixes: str) -> BankUse:
    """How A's array is used by an expert's product whose A has one element in each sector."""
    report, right = run_of(TILES, lower(made_with(TILES, *EXPERT.split(), *fixes)))
    assert right
    return report.banks["A_1_sum_1_array"]


def test_a_strided_copy_need_not_conflict() -> None:
    """In the order of memory a warp puts along a column of the array; where elements have no
    neighbours in memory it may as well put along its rows. A swizzle spares most of it, too."""
    plain = banks_of(*IN_MEMORY, "swizzle=PLAIN")
    swizzled = banks_of(*IN_MEMORY, "swizzle=XOR")
    in_rows = banks_of(*IN_ARRAY, "swizzle=PLAIN")
    assert in_rows.conflicts == 0 < swizzled.conflicts < plain.conflicts
    assert in_rows.requests == plain.requests


def test_copies_of_neighbours_stay_in_the_order_of_memory() -> None:
    near = NestSpace(matmul(32, 64, 32, (((8,), (4,)), ((16,), (4,)), ((16,),))), everything(H200))
    root = near.propagator.root(fixed(near.propagator, ["dim_kind(A_1.m1)=DEAL"]))
    dims = {str(dim): dim for dim in near.dims}
    left = near.propagator.domain(root, 0, near.order, dims["A_1.m2"], dims["A_1.k1"]).values
    assert list(left) == ["OUTER"]


def test_a_swizzle_only_exchanges_cells() -> None:
    made = made_with(TILES, *EXPERT.split(), "swizzle=XOR")
    for temporary in made.lowered:
        swizzle = made.swizzle_of(temporary)
        assert swizzle is not None
        size = np.prod(made.lengths(temporary))
        cells = np.arange(size)
        moved = cells ^ ((cells >> swizzle.shift) & (((1 << swizzle.bits) - 1) << swizzle.base))
        assert sorted(moved) == list(cells)
        assert (moved[::4] % 4 == 0).all()  # pieces of 16 bytes stay whole
