"""The lower bound: published figures, growing along decisions, and never more than was counted."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench.common.loopnest.running import grows_along, inputs
from tests.loopnest.programs import random_program

from warploom.errors import ParseError
from warploom.kernel.dtype import f32, i32
from warploom.kernel.evaluate import run
from warploom.loopnest.bound import Bound
from warploom.loopnest.build import LoopNest, cast, exp, maximum
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Load, Program
from warploom.loopnest.kernels import Cut, axpy, matmul
from warploom.loopnest.lower import lower
from warploom.loopnest.must_facts import MustFacts
from warploom.loopnest.sector import distinct_bytes
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import Target
from warploom.machine.rates import Rates, rates_record
from warploom.machine.record import H200, KNOWN, machine_named
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

K4000 = machine_named("k4000").rates
PAPER = Target(machine_named("k4000"), caches=("NO_CACHE", "CACHE_GLOBAL"), paddings=(0,))
PROPER = Cut(proper=True)


def terms(program: Program) -> dict[str, float]:
    """In milliseconds, of the whole space."""
    space = NestSpace(program, PAPER)
    found = Bound(space, K4000).explain(space.propagator.root())
    return {each.resource: each.nanoseconds / 1e6 for each in found}


def test_axpy_is_bounded_by_memory() -> None:
    """Published: 5.157 ms of L2 reads, 2.59 of stores, 3.20 of lines, 5.97 of memory."""
    found = terms(axpy(1 << 26, cut=PROPER))
    assert found["l2_read"] == pytest.approx(5.157, abs=5e-4)
    assert found["l2_store"] == pytest.approx(2.59, abs=5e-3)
    assert found["lines"] == pytest.approx(3.20, abs=1e-2)
    assert found["dram"] == pytest.approx(5.97, abs=5e-3)
    assert max(found.values()) == found["dram"]


def test_a_matmul_is_bounded_by_arithmetic() -> None:
    """Published: 1.725 ms."""
    found = terms(matmul(1024, 1024, 1024, cut=PROPER))
    assert found["alu"] == pytest.approx(1.725, abs=5e-4)
    assert max(found.values()) == found["alu"]


def test_every_bound_says_why() -> None:
    space = NestSpace(matmul(1024, 1024, 1024), PAPER)
    bound = Bound(space, K4000)
    root = space.propagator.root()
    first = bound.explain(root)[0]
    assert first.nanoseconds == pytest.approx(bound(root)[0])
    assert str(first) == "1.725 ms by alu: 1.074e+09 by sum_1"
    assert {each for each in KNOWN if "rates" in vars(machine_named(each))} == {"k4000", "h200"}
    assert machine_named("h200").rates is H200.rates


def test_rates_that_were_measured_are_read_from_a_file(tmp_path: Path) -> None:
    """As bench/machine/characterise_device.py writes them."""
    file = tmp_path / "gpu.json"
    file.write_text(json.dumps(rates_record(K4000) | {"measured": {"fma_cycles": 4.0}}))
    assert machine_named(str(file)).rates == K4000
    file.write_text("[]")
    with pytest.raises(ParseError, match="is no record of rates"):
        machine_named(str(file))
    with pytest.raises(ParseError, match="cannot read the machine"):
        machine_named(str(tmp_path / "none.json"))


@cache
def space_to_descend() -> NestSpace:
    return NestSpace(matmul(64, 96, 32))


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("rates", [K4000, H200.rates], ids=lambda rates: rates.name)
def test_bounds_grow_along_decisions(rates: Rates) -> None:
    space = space_to_descend()
    assert grows_along(space, Bound(space, rates), 2, seed=4) > 100


@pytest.mark.slow
@pytest.mark.parametrize("rates", [K4000, H200.rates], ids=lambda rates: rates.name)
def test_bounds_grow_along_many_decisions(rates: Rates) -> None:
    space = space_to_descend()
    assert grows_along(space, Bound(space, rates), 6, seed=4) > 300


def below_what_is_counted(program: Program, count: int, seed: int) -> int:
    """The traffic that the bound of an implementation reckons with is traffic that takes place."""
    space = NestSpace(program)
    bound, unlined = Bound(space, K4000), Bound(space, replace(K4000, line_bytes=None))
    arrays, numbers = inputs(program, seed)
    wanted = evaluate(program, arrays, numbers)
    problem = SpaceProblem(space.propagator, branch=space.branch)
    found = descents(problem, count, np.random.default_rng(seed))
    for row in np.flatnonzero(found.arrived):
        made = Implementation(space, found.leaves, int(row))
        given = [wanted.get(each.name, arrays[each.name]) for each in program.arrays]
        report = run(lower(made), [*given, *numbers.values()])
        work = bound.terms(found.leaves.take(slice(row, row + 1))).work
        total = {name: float(each.sum()) * (1 - 1e-9) for name, each in work.items()}
        assert total["l2_read"] <= report.global_loads.sectors
        assert total["l2_store"] <= report.global_stores.sectors
        assert total["shared"] / 32 / 4 <= report.shared.wavefronts
        assert total["lines"] <= report.global_loads.sectors
        both = report.global_loads + report.global_stores
        plain = unlined.terms(found.leaves.take(slice(row, row + 1))).work["access"]
        assert float(plain.sum()) * (1 - 1e-9) / 32 <= both.requests + report.shared.requests
        assert float(work["alu"].sum()) * (1 - 1e-9) / 32 <= report.operations + report.selects
    return int(found.arrived.sum())


@pytest.mark.slow
def test_traffic_is_not_overestimated() -> None:
    assert sum(below_what_is_counted(random_program(seed), 2, seed) for seed in range(3)) >= 5
    assert below_what_is_counted(matmul(8, 8, 8, ((4, 2), (4,), (4,))), 1, 1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, *range(500, 600, 10)])
def test_traffic_of_many_implementations_is_not_overestimated(first: int) -> None:
    seeds = range(first, first + 10)
    assert sum(below_what_is_counted(random_program(seed), 10, seed) for seed in seeds) > 75


@pytest.mark.slow
def test_traffic_of_many_matmuls_is_not_overestimated() -> None:
    assert below_what_is_counted(matmul(8, 8, 8, ((4, 2), (4,), (4,))), 200, 1) > 150


def test_integers_are_added_three_at_a_time() -> None:
    """On the GPUs that `hoists` is said of: y = x + x' + x'' is one instruction, a sum no chain."""
    nest = LoopNest("integers")
    i, j = nest.axis("i", 64, 4), nest.axis("j", 8, 4)
    a, b = nest.array("a", i, dtype=i32), nest.array("b", i, j, dtype=i32)
    y, z = nest.array("y", i, dtype=i32), nest.array("z", i, dtype=i32)
    y[i] = a[i] + nest.index(i) + 3
    z[i] = nest.sum(b[i, j], over=j)
    space = NestSpace(nest.done())
    root = space.propagator.root()
    found = Bound(space, H200.rates).terms(root)
    plain = Bound(space, replace(H200.rates, hoists=False)).terms(root)
    names = [str(inst) for inst in space.insts]
    for name in ("value_1", "value_1.add_1"):
        at = names.index(name)
        assert 0 < found.work["issue"][0, at] == pytest.approx(plain.work["issue"][0, at] / 2)
    assert plain.blocks["a fold"].any()
    assert not found.blocks["a fold"].any()


def _again(kind: str) -> Program:
    """Something that a compiler may do less often than the program says, and the same without."""
    nest = LoopNest(kind)
    i, j = nest.axis("i", 64, 4), nest.axis("j", 4, dynamic=False)
    x, w, y = nest.array("x", 80), nest.array("w", j), nest.array("y", i)
    match kind:
        case "windows":
            y[i] = nest.sum(x[i + j] * w[j], over=j)
        case "windows of something":
            y[i] = nest.sum(exp(x[i + j]) * w[j], over=j)
        case "neighbours":
            y[i] = x[i] + x[i + 1] + x[i + 2]
        case "twice":
            y[i] = exp(x[i]) * exp(x[i])
        case "the other way round":
            y[i] = exp(x[i] * x[i + 1]) + exp(x[i + 1] * x[i])
        case "again and again":
            y[i] = maximum(maximum(x[i] * -1.0, 0.0), 0.0)
        case "nothing":
            y[i] = exp(x[i] * 1.0) + 0.0
        case "known before":
            y[i] = nest.sum(x[i + j] * exp(cast(nest.index(j), f32)), over=j)
    return nest.done()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "resource", "said"),
    [
        ("windows", "access", {"x_1": 64}),  # not 256
        ("windows of something", "alu", {"sum_1.exp_1": 64}),
        ("neighbours", "access", {"x_1": 64, "x_2": 0, "x_3": 0}),  # in part the same
        ("twice", "access", {"x_1": 64, "x_2": 0}),
        ("twice", "alu", {"value_1.exp_1": 64, "value_1.exp_2": 0}),
        ("the other way round", "alu", {"value_1.multiply_2": 0, "value_1.exp_2": 0}),
        ("nothing", "alu", {"value_1.exp_1": 64, "value_1.multiply_1": 0, "value_1": 0}),
        ("known before", "alu", {"sum_1.exp_1": 0}),
        ("again and again", "alu", {"value_1.multiply_1": 0, "value_1.max_1": 64, "value_1": 0}),
    ],
)
def test_what_a_compiler_may_have_already_is_not_counted(
    kind: str, resource: str, said: dict[str, int]
) -> None:
    """With 4 of i in a row in registers: windows and neighbours overlap there, and nothing forces
    a compiler to load an element twice, nor to compute what it has computed."""
    space = NestSpace(_again(kind))
    decisions = fixed(space.propagator, ["dim_kind(i0)=BLOCK", "size=4", "dim_kind=BLOCK|UNROLL"])
    root = space.propagator.root(decisions)
    assert len(root)
    work = Bound(space, H200.rates).terms(root).work[resource][0]
    plain = Bound(space, replace(H200.rates, hoists=False)).terms(root).work[resource][0]
    unit = H200.rates.cost("exp", True).alu if resource == "alu" else 1.0
    for name, count in said.items():
        at = [str(inst) for inst in space.insts].index(name)
        assert work[at] == pytest.approx(count * 32 * unit)
        assert work[at] < plain[at] or count == 64


def _folded(kind: str, iterations: int) -> Program:
    nest = LoopNest("folded")
    i, j = nest.axis("i", 64, 4), nest.axis("j", iterations, 4)
    dtype = i32 if "integers" in kind else f32
    x, y = nest.array("x", i, dtype=dtype), nest.array("y", i, dtype=dtype)
    match kind:
        case "indices that are integers":
            y[i] = nest.sum(nest.index(j) * 3, over=j) + x[i]
        case "integers times an index":
            y[i] = nest.sum(x[i] * nest.index(j), over=j)
        case "the greatest":
            y[i] = nest.fold("max", x[i], over=j)
        case _:
            y[i] = nest.sum(x[i], over=j)
    return nest.done()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "grows"),
    [
        ("integers", False),
        ("indices that are integers", False),
        ("integers times an index", False),
        ("the greatest", False),
        ("floats", True),
    ],
)
def test_folds_that_have_a_short_form_take_no_time(kind: str, grows: bool) -> None:
    """Compilers write n * x for a sum of n integers x, and the greatest of many x is x; floats are
    rounded every time."""
    few, many = (
        Bound(space, H200.rates)(space.propagator.root())[0]
        for space in (NestSpace(_folded(kind, iterations)) for iterations in (16, 1 << 16))
    )
    assert (many > 100 * few) == grows
    assert (many == few) != grows


def test_elements_of_one_sector_need_not_be_neighbours() -> None:
    """Rows of six floats: an element and the one below it are 24 bytes apart, in one sector of 32
    where the first is at its begin."""
    nest = LoopNest("columns")
    i, j = nest.axis("i", 8, 8), nest.axis("j", 6)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    y[i, j] = exp(x[i, j])
    space = NestSpace(nest.done())
    decisions = fixed(space.propagator, ["size=8", "dim_kind(i0)=LOOP", "dim_kind(j0)=BLOCK"])
    threads = fixed(space.propagator, [f"dim_kind({d}.i1)=THREAD" for d in ("x_1", "store_y_1")])
    root = space.propagator.root([*decisions, *threads])
    work = Bound(space, K4000).terms(root).work["l2_store"]
    assert 0 < work.sum() <= 24  # two at a time, not 48


def interlocked(first: int, second: int) -> Program:
    """Elements at multiples of one stride, and of another that begins where those end."""
    nest = LoopNest("interlocked")
    i, j = nest.axis("i", 2, (2,)), nest.axis("j", 12, (4,))
    x, y = nest.array("x", first + 11 * second + 1), nest.array("y", j)
    y[j] = nest.sum(x[i * first + j * second], over=i)
    return nest.done()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strides", [(8, 9), (1, 1), (8, 7), (1, 2)])
def test_sectors_of_interlocked_strides_are_counted_once(strides: tuple[int, int]) -> None:
    """x[0], x[8], x[9], x[17], …: the last of each pair is beside the first of the next."""
    program = interlocked(*strides)
    (access,) = (i.action.access for i in program.instructions if isinstance(i.action, Load))
    places = {strides[0] * i + strides[1] * j for i in range(2) for j in range(12)}
    assert distinct_bytes(access, 32) <= 32 * len({place // 8 for place in places})
    assert below_what_is_counted(program, 6, 1) >= 4


def test_registers_that_a_compiler_may_use_again_leave_room() -> None:
    """All is loaded, then computed, then stored: written so it is 193 registers, but one element
    after another does with a few. Sums over a loop have to be there all the time."""
    space = NestSpace(
        axpy(1 << 20, tiles=((256,), (64,))), Target(machine_named("h200"), unroll=64)
    )
    names = [f"{name}_1" for name in ("x", "y", "value", "store_z")]
    fixes = [f"dim_kind({name}.n2)=UNROLL" for name in names]
    fixes += [f"dim_kind({name}.n1)=THREAD" for name in names]
    fixes += [f"order({a}.n2,{b}.n2)=BEFORE" for a, b in pairwise(names)]
    root = space.propagator.root(fixed(space.propagator, fixes))
    bound = Bound(space, H200.rates)
    known = MustFacts(bound.facts, root)
    assert known.low(space.registers)[0] > 190
    assert bound._room(known)[0] == H200.rates.processors * (H200.rates.processor_threads // 256)
    space = NestSpace(matmul(64, 64, 64, (((4,), (16,)), ((4,), (8,)), ())), Target())
    over = ["dim_kind(k0)=LOOP", "dim_kind(m0)=BLOCK", "dim_kind(n0)=BLOCK"]
    names = [f"{name}.{d}2" for d in "mn" for name in ("sum_1.start", "sum_1", "store_C_1")]
    fixes = [f"dim_kind({name})=UNROLL" for name in names]
    fixes += [f"order(sum_1.{d}2,store_C_1.{d}2)=BEFORE" for d in "mn"]
    root = space.propagator.root(fixed(space.propagator, [*over, *fixes]))
    bound = Bound(space, H200.rates)
    assert bound._registers(MustFacts(bound.facts, root))[0] == 16 * 8


def test_a_program_without_tiles_and_loops_has_a_bound() -> None:
    nest = LoopNest("one")
    x, y = nest.array("x", 4), nest.array("y", 4)
    y[2] = exp(x[1])
    space = NestSpace(nest.done())
    assert (Bound(space, H200.rates)(space.propagator.root()) > 0).all()


def test_what_a_condition_leaves_out_is_not_counted() -> None:
    """Of a triangle half is loaded: all of it was in the bound, which then was none."""
    nest, n = LoopNest("triangle"), 1 << 14
    i, j = nest.axis("i", n, (2,)), nest.axis("j", n, (2,))
    x, y = nest.array("x", i, j), nest.array("y", i)
    y[i] = nest.sum(x.at((i, j), where=j.expr.le(i.expr)), over=j)
    bound = Bound(NestSpace(nest.done()), H200.rates)
    half = 4 * n * (n + 1) / 2
    assert 0.95 * half < bound.dram.sum() + H200.rates.l2_bytes <= half + 4 * n
    assert 0.95 * half < 32 * bound.sectors_read.sum() <= half
