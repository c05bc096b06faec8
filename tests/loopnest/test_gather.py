"""Loads of what data name, and scans: what they mean, what is known of them, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom.errors import CheckError
from warploom.kernel.arithmetic import Numbers
from warploom.kernel.dtype import DType, bf16, f32, i32, u32
from warploom.kernel.ir import Load, Shuffle, walk
from warploom.kernel.work import work_of
from warploom.loopnest.bound import Bound
from warploom.loopnest.build import LoopNest, cast
from warploom.loopnest.computation import Computation
from warploom.loopnest.evaluate import evaluate, evaluate_at
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower
from warploom.loopnest.show import show
from warploom.loopnest.space import NestSpace
from warploom.loopnest.strategies.known import variants_of
from warploom.loopnest.target import everything
from warploom.loopnest.trial import named_below, some_inputs
from warploom.machine.record import H200
from warploom.pipeline.nest import Nest
from warploom.pipeline.timed_nest import some_points
from warploom.search.branching.descent import weighted_descents


def embedding(rows: int = 12, width: int = 8, otherwise: float = 0) -> Program:
    nest = LoopNest("embedding")
    i, j = nest.axis("i", rows), nest.axis("j", width)
    table, named = nest.array("table", 50, j), nest.array("named", i, dtype=i32)
    y = nest.array("y", i, j)
    y[i, j] = table.at((named[i], j), otherwise=otherwise)
    return nest.done()


def scanned(op: Any, dtype: DType, exclusive: bool, along: int = 1) -> Program:
    nest = LoopNest("scanned")
    i, j = nest.axis("i", 5), nest.axis("j", 7)
    x, y = nest.array("x", i, j, dtype=dtype), nest.array("y", i, j, dtype=dtype)
    y[i, j] = nest.scan(op, x[i, j], over=(i, j)[along], exclusive=exclusive)
    return nest.done()


def whole(program: Program) -> Program:
    return program_of(Computation.of(program), published=False)


# -- what data name --------------------------------------------------------------------------------


def test_a_name_of_nothing_gives_what_is_said_for_it() -> None:
    for program in (embedding(otherwise=7), whole(embedding(otherwise=7))):
        arrays, _ = some_inputs(program, np.random.default_rng(0))
        named = arrays["named"]
        named[:3] = [-1, 50, 49]
        inside = (named >= 0) & (named < 50)
        rows = arrays["table"].reshape(50, 8)[np.where(inside, named, 0)]
        wanted = np.where(inside[:, None], rows, 7)
        assert np.array_equal(evaluate(program, arrays)["y"].reshape(12, 8), wanted)
        points = {program.axes[0]: np.array([1, 2, 5])}
        where, got = evaluate_at(program, arrays, {}, points)["y"]
        assert np.array_equal(got, wanted.reshape(-1)[where])
        assert "table[named" in show(program)


def test_inputs_name_rows_that_there_are_and_some_that_are_not() -> None:
    program = embedding(rows=4000)
    assert list(named_below(program, False).values()) == [50]
    named = some_inputs(program, np.random.default_rng(0))[0]["named"]
    inside = ((named >= 0) & (named < 50)).mean()
    assert 0.9 < inside < 0.97
    assert {-1, 50} <= set(named.tolist())


def test_the_bound_counts_nothing_of_what_may_name_nothing() -> None:
    """The same without the loads of the table has the same bytes and sectors."""
    program = whole(embedding(rows=1 << 14, width=1 << 10))
    space = NestSpace(program, everything(H200))
    bound = Bound(space, H200.rates)
    loads = [str(bound.facts.insts[at]) for at in np.flatnonzero(bound.is_load)]
    assert loads == ["store_y_1.1"]  # of what names
    assert bound.dram.sum() + H200.rates.l2_bytes == pytest.approx(4 * (1 << 24) + 4 * (1 << 14))


def test_rows_that_data_name_are_read_in_whole_vectors() -> None:
    program = embedding(rows=4096, width=1024)
    found = next(each for each in variants_of(program, free=True)[0])
    nest = Nest(found.program, H200.rates, everything(H200), found.fixes)
    drawn = weighted_descents(nest.problem, 4, np.random.default_rng(0))
    widths = set()
    for row in np.flatnonzero(drawn.arrived):
        kernel = lower(nest.implementation(drawn.leaves.take(slice(row, row + 1))))
        loads = [each for each in walk(kernel.body) if isinstance(each, Load)]
        widths |= {each.width for each in loads if each.array == "table"}
        work = work_of(kernel)
        assert work.touched <= 1.1 * (2 * 4 * (1 << 22) + 4 * 4096)
    assert max(widths) == 4


# -- scans -----------------------------------------------------------------------------------------

ACCUMULATED: dict[str, Callable[..., Numbers]] = {
    "+": np.cumsum, "*": np.cumprod, "min": np.minimum.accumulate, "max": np.maximum.accumulate,
}  # fmt: skip


@pytest.mark.parametrize("op", ACCUMULATED)
@pytest.mark.parametrize("dtype", [f32, u32], ids=repr)
@pytest.mark.parametrize("along", [0, 1])
def test_a_scan_is_what_numpy_accumulates(op: str, dtype: DType, along: int) -> None:
    program = scanned(op, dtype, False, along)
    arrays, _ = some_inputs(program, np.random.default_rng(0))
    x = arrays["x"].reshape(5, 7)
    wanted = ACCUMULATED[op](x, axis=along).astype(dtype.numpy)
    got = evaluate(program, arrays)["y"].reshape(5, 7)
    assert np.allclose(got, wanted, rtol=1e-6)
    before = evaluate(scanned(op, dtype, True, along), arrays)["y"].reshape(5, 7)
    first = {"+": 0, "*": 1, "min": np.inf, "max": -np.inf}
    if dtype is u32:
        first |= {"min": (1 << 32) - 1, "max": 0}
    start, rest = np.split(np.moveaxis(before, along, 0), [1])
    assert (start == first[op]).all()
    assert np.allclose(rest, np.moveaxis(wanted, along, 0)[:-1], rtol=1e-6)


def test_a_part_of_a_scan_is_not_looked_at_alone() -> None:
    program = scanned("+", f32, False)
    arrays, _ = some_inputs(program, np.random.default_rng(0))
    with pytest.raises(CheckError, match="all of axis 'j' is needed"):
        evaluate_at(program, arrays, {}, {program.axes[1]: np.array([0, 6])})
    assert program.axes[1] not in some_points(program, np.random.default_rng(0), most=4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("op", "dtype"), [("+", f32), ("max", i32), ("min", f32)])
@pytest.mark.parametrize("axis", [0, 1])
def test_threads_scan_beside_each_other(op: Any, dtype: DType, exclusive: bool, axis: int) -> None:
    """Lanes by shuffles, warps through shared memory, iterations by what is carried: one kernel of
    each strategy's, beside what the program means."""
    nest = LoopNest("scanned")
    i, j = nest.axis("i", 600), nest.axis("j", 3000)
    x, y = nest.array("x", i, j, dtype=dtype), nest.array("y", i, j, dtype=dtype)
    y[i, j] = nest.scan(op, x[i, j] + x[i, j], over=(i, j)[axis], exclusive=exclusive)
    found = variants_of(nest.done(), free=True)[0]
    assert {each.strategy for each in found} == {("threads-per-column", "row-per-block")[axis]}
    for each in found[:2]:
        made = Nest(each.program, H200.rates, everything(H200), each.fixes)
        drawn = weighted_descents(made.problem, 2, np.random.default_rng(0))
        assert drawn.arrived.all()
        leaf = drawn.leaves.take(slice(0, 1))
        assert not made.tried(leaf).wrong
        stmts = list(walk(lower(made.implementation(leaf)).body))
        assert any(isinstance(stmt, Shuffle) for stmt in stmts) == (axis == 1)


# -- refusals --------------------------------------------------------------------------------------


def _float_subscript(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    nest.array("y", i)[i] = x[x[i, 0], 0]


def _scatter(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    named = nest.array("named", i, dtype=i32)
    nest.array("y", 9, j)[named[i], j] = x[i, j]


def _two_axes(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    down = nest.scan("+", nest.scan("+", x[i, j], over=j), over=i)
    nest.array("y", i, j)[i, j] = down


def _several(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    nest.scan("+", x[i, j], over=(i, j))  # type: ignore[arg-type]


def _codes(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    nest.scan("+", cast(x[i, j], bf16), over=j)


def _bits(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    nest.scan("&", x[i, j], over=j)


def _in_place(nest: LoopNest, i: Any, j: Any, x: Any) -> None:
    named = nest.array("named", i, dtype=i32)
    x[i, j] = x[named[i], j] * 2.0


REFUSED: dict[str, tuple[Callable[..., None], str, str]] = {
    "float": (_float_subscript, "a subscript of f32", "cast(value, i32)"),
    "scatter": (_scatter, "data decide where 'y' is stored to", "fold over all that name"),
    "two axes": (_two_axes, "'scan_2' scans over 'i' and 'scan_1' over 'j'", "not dynamic"),
    "several": (_several, "a scan over", "along one axis"),
    "codes": (_codes, "a scan by '\\+' is of bf16", "cast it to f32"),
    "bits": (_bits, "there is no scan of f32 by '&'", "use +"),
    "in place": (_in_place, "'x' is loaded and stored to", "two arrays"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_the_nearest_thing(name: str) -> None:
    write, said, advice = REFUSED[name]
    nest = LoopNest("refused")
    i, j = nest.axis("i", 4), nest.axis("j", 8)
    x = nest.array("x", i, j)

    def written() -> None:
        write(nest, i, j, x)
        nest.done()

    with pytest.raises(CheckError, match=said) as error:
        written()
    assert error.value.span is not None
    assert advice in (error.value.advice or "")
