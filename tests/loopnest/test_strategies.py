"""Strategies: which programs they are meant for, and that what they leave open has good kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from bench.common.loopnest.repeated import repeated
from bench.common.narrowed import present
from bench.loopnest.tasks import Checked
from tests.loopnest.programs import random_program

from warploom.emit.cuda import cuda
from warploom.index.ir import Const
from warploom.kernel.dtype import bf16, f32, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import If, Load, Store, walk
from warploom.loopnest.build import LoopNest, cast, choose, exp, rsqrt
from warploom.loopnest.computation import Computation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.instructions import Remake, in_parts, program_of
from warploom.loopnest.ir import Axis, Program
from warploom.loopnest.kernels import (
    Cut,
    axpy,
    batched_matmul,
    doitgen,
    gesummv,
    matmul,
    matvec,
    two_matmuls,
)
from warploom.loopnest.lower import lower
from warploom.loopnest.show import show
from warploom.loopnest.strategies.known import STRATEGIES, variants_of
from warploom.loopnest.strategies.merged import with_one_sum
from warploom.loopnest.target import everything
from warploom.loopnest.trial import some_inputs
from warploom.machine.record import H200
from warploom.pipeline.exploring import explored
from warploom.pipeline.nest import Nest
from warploom.runtime.compile import compile_cuda
from warploom.search.branching.descent import weighted_descents

TAIL = Cut(tail=True)


def row_sum(m: int, n: int) -> Program:
    nest = LoopNest("row_sum")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, y = nest.array("A", i, j), nest.array("y", i)
    y[i] = nest.sum(A[i, j], over=j)
    return nest.done()


def column_maximum(m: int, n: int) -> Program:
    nest = LoopNest("column_maximum")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, y = nest.array("A", i, j), nest.array("y", j)
    y[j] = nest.fold("max", A[i, j], over=i)
    return nest.done()


def softmax(m: int, n: int) -> Program:
    nest = LoopNest("softmax")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    top = nest.fold("max", x[i, j], over=j)
    y[i, j] = exp(x[i, j] - top) / nest.sum(exp(x[i, j] - top), over=j)
    return nest.done()


def layer_norm(m: int, n: int) -> Program:
    nest = LoopNest("layer_norm")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, y, scale = nest.array("x", i, j), nest.array("y", i, j), nest.array("scale", j)
    away = x[i, j] - nest.sum(x[i, j], over=j) * (1 / n)
    variance = nest.sum(away * away, over=j) * (1 / n)
    y[i, j] = away * rsqrt(variance + 1e-5) * scale[j]
    return nest.done()


def stencil(m: int, n: int, edge: int = 1) -> Program:
    """Results have an edge to which nothing is stored, or none."""
    nest = LoopNest("stencil")
    i, j = nest.axis("m", m - 2), nest.axis("n", n - 2)
    A, B = nest.array("A", m, n), nest.array("B", m - 2 + 2 * edge, n - 2 + 2 * edge)
    around = A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2]
    B[i + edge, j + edge] = 0.5 * A[i + 1, j + 1] + 0.125 * around
    return nest.done()


def assignment(n: int, k: int, d: int) -> Program:
    """The nearest of some centres, by its number: folds inside folds."""
    nest = LoopNest("assignment")
    i, j, p = nest.axis("n", n), nest.axis("k", k), nest.axis("d", d)
    x, centres = nest.array("x", i, p), nest.array("centres", j, p)
    label = nest.array("label", i, dtype="i32")
    away = x[i, p] - centres[j, p]
    distance = nest.sum(away * away, over=p)
    least = nest.fold("min", distance, over=j)
    label[i] = nest.fold("min", choose(distance.eq(least), nest.index(j), k), over=j)
    return nest.done()


def bilateral(h: int, w: int, side: int) -> Program:
    """Two sums over a window that ends at the edges of an image."""
    nest = LoopNest("bilateral")
    y, x = nest.axis("h", h), nest.axis("w", w)
    dy, dx = nest.axis("dy", side), nest.axis("dx", side)
    image, out = nest.array("image", y, x), nest.array("out", y, x)
    row, column = y + dy - side // 2, x + dx - side // 2
    rows = row.expr.ge(0).and_(row.expr.lt(h))
    inside = rows.and_(column.expr.ge(0)).and_(column.expr.lt(w))
    near = image.at((row, column), where=inside)
    away = near - image[y, x]
    weight = choose(inside, exp(-0.5 * away * away), 0.0)
    out[y, x] = nest.sum(weight * near, over=(dy, dx)) / nest.sum(weight, over=(dy, dx))
    return nest.done()


def haar(h: int, w: int) -> Program:
    """One level of a transform in two dimensions: four results of the same four loads."""
    nest = LoopNest("haar")
    y, x = nest.axis("h", h), nest.axis("w", w)
    image = nest.array("image", 2 * h, 2 * w)
    a, b = image[2 * y, 2 * x], image[2 * y, 2 * x + 1]
    c, d = image[2 * y + 1, 2 * x], image[2 * y + 1, 2 * x + 1]
    for name, value in (("ll", a + b + c + d), ("lh", a - b + c - d),
                        ("hl", a + b - c - d), ("hh", a - b - c + d)):  # fmt: skip
        nest.array(name, y, x)[y, x] = value * 0.5
    return nest.done()


def embedding(m: int, n: int) -> Program:
    nest = LoopNest("embedding")
    i, j = nest.axis("m", m), nest.axis("n", n)
    table, named = nest.array("table", 999, j, dtype=bf16), nest.array("named", i, dtype=i32)
    y = nest.array("y", i, j)
    y[i, j] = cast(table[named[i], j], f32)
    return nest.done()


def cumulative(m: int, n: int, over: str = "n", exclusive: bool = False) -> Program:
    nest = LoopNest("cumulative")
    i, j = nest.axis("m", m), nest.axis("n", n)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    y[i, j] = nest.scan("+", x[i, j], over=j if over == "n" else i, exclusive=exclusive)
    return nest.done()


KNOWN = [
    embedding(6, 8),
    cumulative(6, 8),
    axpy(64, cut=TAIL),
    matvec(64, 512, cut=TAIL),
    gesummv(16, 64, cut=TAIL),
    matmul(64, 64, 64, cut=TAIL, activation="sigmoid", transposed="A"),
    two_matmuls(16, 16, 16, 16, cut=TAIL, activation="relu"),
    doitgen(4, 8, 8),
]


def rebuilt(program: Program, remade: Mapping[Axis, Remake]) -> Program:
    return program_of(Computation.of(program), remade)


@pytest.mark.parametrize("program", [*KNOWN, *map(random_program, range(20))], ids=str)
def test_a_program_written_again_is_the_same(program: Program) -> None:
    again = rebuilt(program, {})
    assert show(again) == show(program)
    dims = [[str(dim) for dim in each.dims] for each in program.instructions]
    assert [[str(dim) for dim in each.dims] for each in again.instructions] == dims
    scopes = [each.scope for each in program.communications]
    assert [each.scope for each in again.communications] == scopes


def test_a_fold_in_parts_is_what_is_written_by_hand() -> None:
    program = matvec(8, 1024, cut=TAIL)
    parts = in_parts([("lane", 32), ("wide", 4)], [(2, 4, 8)])
    by_hand = matvec(8, 1024, inner=((2, 4, 8),), parts=128, cut=TAIL)
    assert show(rebuilt(program, {program.axes[1]: parts})) == show(by_hand)


@pytest.mark.parametrize("program", [row_sum(6, 24), column_maximum(24, 6)], ids=str)
def test_a_fold_in_parts_means_the_same(program: Program) -> None:
    folded = next(axis for axis in program.axes if axis.size == 24)
    again = rebuilt(program, {folded: in_parts([("lane", 3), ("wide", 4)], [])})
    arrays, numbers = some_inputs(program, np.random.default_rng(0))
    wanted, got = evaluate(program, arrays, numbers), evaluate(again, arrays, numbers)
    assert all(np.allclose(got[name], wanted[name], rtol=1e-5) for name in wanted)


WHICH = {
    "block-tile": [
        matmul(1000, 1000, 1000, cut=TAIL),
        matmul(96, 80, 20, stride=3, transposed="AB", activation="relu", cut=TAIL),
        batched_matmul(4, 32, 32, 64, cut=TAIL),
        doitgen(8, 32, 32, cut=TAIL),
    ],
    "warp-per-row": [
        matvec(5000, 7000, cut=TAIL),
        row_sum(100, 1000),
        gesummv(64, 512, cut=TAIL),
    ],
    "threads-per-column": [column_maximum(1000, 5000), cumulative(300, 100, "m")],
    "row-per-block": [
        softmax(1024, 1000),
        softmax(8, 7),
        layer_norm(30, 64),
        softmax(3, 5000),
        cumulative(8, 1000, exclusive=True),
        cumulative(3, 40000),
    ],
    "one-pass": [
        axpy(1000, cut=TAIL),
        stencil(100, 200),
        embedding(100, 1000),
        haar(64, 256),
    ],
    "thread-per-result": [assignment(300, 24, 8), assignment(50, 100, 7), bilateral(40, 100, 5)],
}


@pytest.mark.parametrize("name", WHICH)
def test_each_is_meant_for_its_programs_alone(name: str) -> None:
    for program in WHICH[name]:
        found, refused = variants_of(program, free=True)
        assert {each.strategy for each in found} == {name}
        assert set(refused) == set(STRATEGIES) - {name}


CASES = [(program, at) for group in WHICH.values() for program in group for at in range(9)]


DEFAULTS: dict[str, tuple[str, str | Program, dict[str, int]]] = {
    "matvec": ("warp-per-row", "matvec", {"m": 4096, "n": 1024}),
    "row sum": ("warp-per-row", row_sum(4096, 1024), {}),
    "softmax": ("row-per-block", softmax(2048, 1000), {}),
    "layer norm": ("row-per-block", layer_norm(4096, 96), {}),
    "embedding": ("one-pass", embedding(2048, 1024), {}),
    "cumulative sum": ("row-per-block", cumulative(2048, 1024), {}),
    "matmul": ("block-tile", "matmul", {"m": 256, "n": 256, "k": 64}),
    "assignment": ("thread-per-result", assignment(10000, 64, 16), {}),
    "bilateral": ("thread-per-result", bilateral(540, 960, 3), {}),
    "haar": ("one-pass", haar(512, 512), {}),
    "column maximum": ("threads-per-column", column_maximum(1000, 8192), {}),
}


# Threads with a row each, every other element, or windows that begin between sectors: what is
# beside that L1 has for the next load.
APART = {"assignment", "haar", "bilateral"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", DEFAULTS)
def test_the_first_answer_is_what_an_expert_would_write(name: str) -> None:
    """Without a GPU, and without a word: threads compute little that others do, there are enough of
    them, and what is loaded is loaded in whole sectors."""
    wanted, given, size = DEFAULTS[name]
    found = explored(given, size, evaluations=4, model=True, store=False)
    assert found.strategy.rpartition(" ")[0] == wanted
    assert found.trial is not None
    assert found.trial.wrong == ""
    made = present(found.nest).implementation(present(found.candidate))
    assert repeated(made) < 3
    kernel = lower(made)
    assert kernel.threads % 32 == 0
    sides = [each.value for each in kernel.grid if isinstance(each, Const)]
    assert math.prod(sides) * kernel.threads >= 4096
    assert found.nanoseconds < 30_000
    short = made.shortened(3)
    arrays, numbers = some_inputs(made.program, np.random.default_rng(1), short.sizes)
    report = run(lower(short), [*arrays.values(), *numbers.values()])
    loads = report.global_loads
    assert name in APART or loads.sectors <= 1.1 * loads.least_sectors


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("program", "at"), CASES, ids=str)
def test_what_is_left_open_is_right(program: Program, at: int) -> None:
    found, _ = variants_of(program, free=True)
    if at >= len(found):
        return
    nest = Nest(found[at].program, H200.rates, everything(H200), found[at].fixes)
    drawn = weighted_descents(nest.problem, 4, np.random.default_rng(at))
    assert drawn.arrived.all()
    trial = nest.tried(drawn.leaves.take(slice(0, 1)))
    assert not trial.wrong
    assert trial.stopped is None


@pytest.mark.parametrize("program", [row_sum(100, 1000), gesummv(64, 512, cut=TAIL)], ids=str)
def test_no_descent_of_rows_that_are_folded_is_a_dead_end(program: Program) -> None:
    """Of gesummv two of three were, and all four of seed 2."""
    first = variants_of(program, free=True)[0][0]
    nest = Nest(first.program, H200.rates, everything(H200), first.fixes)
    for seed in (2, 5):
        assert weighted_descents(nest.problem, 8, np.random.default_rng(seed)).arrived.all()


@pytest.mark.parametrize(("rows", "side"), [(8, 96), (4, 178)])
def test_rows_of_a_stencil_in_a_thread_are_loaded_once(rows: int, side: int) -> None:
    """In compiled text, where tiles divide the axes: the row above and below, and three places of
    each other one."""
    program = stencil(4 * rows + 2, 2 * side + 2)
    last = [each for each in variants_of(program, free=True)[0] if each.strategy == "one-pass"][-1]
    fixes = (*last.fixes, f"size(m1)={rows}", f"size(n1)={side}")
    nest = Nest(last.program, H200.rates, everything(H200), fixes)
    drawn = weighted_descents(nest.problem, 4, np.random.default_rng(0))
    row = int(np.flatnonzero(drawn.arrived)[0])
    kernel = lower(nest.implementation(drawn.leaves.take(slice(row, row + 1))))
    text = compile_cuda(cuda(kernel), "sm_90", contract=False).text
    assert text.count("st.global") == rows
    assert text.count("ld.global") == 3 * rows + 2
    assert "bra" not in text


RAGGED = [stencil(13, 75, edge=0), assignment(140, 5, 3), bilateral(5, 70, 3), haar(3, 70)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", RAGGED, ids=lambda program: program.name)
def test_ragged_sizes_are_right_by_three_ways(program: Program) -> None:
    """On the simulator, as PTX and as C; tiles that are whole stand apart from those that end."""
    for each in variants_of(program, free=True)[0][-2:]:
        found = Checked(each.program, fixes=each.fixes).batch(1, 2)
        assert found["run"]
        assert found["wrong"] == []


def test_whole_tiles_of_a_stencil_load_nothing_twice() -> None:
    """Though rows and columns are no multiples of tiles: what is left of them has conditions."""
    program = stencil(4 * 3 + 2 + 1, 300)
    last = variants_of(program, free=True)[0][-1]
    nest = Nest(last.program, H200.rates, everything(H200), (*last.fixes, "size(m1)=4"))
    drawn = weighted_descents(nest.problem, 4, np.random.default_rng(0))
    row = int(np.flatnonzero(drawn.arrived)[0])
    kernel = lower(nest.implementation(drawn.leaves.take(slice(row, row + 1))))
    (branch,) = (each for each in kernel.body if isinstance(each, If))
    conditions = [each.predicate for each in walk(branch.then) if isinstance(each, Load | Store)]
    assert conditions
    assert not any(conditions)
    assert kernel.body[-1] is branch
    whole = replace(kernel, body=(*kernel.body[:-1], replace(branch, otherwise=())))
    text = compile_cuda(cuda(whole), "sm_90", contract=False).text
    assert text.count("ld.global") == 3 * 4 + 2


def test_sums_that_are_added_up_are_one_sum() -> None:
    program = gesummv(6, 24, cut=TAIL)
    merged = program_of(with_one_sum(Computation.of(program)))
    assert len(merged.instructions) < len(program.instructions)
    arrays, numbers = some_inputs(program, np.random.default_rng(0))
    wanted, got = evaluate(program, arrays, numbers), evaluate(merged, arrays, numbers)
    assert np.allclose(got["y"], wanted["y"], rtol=1e-4, atol=1e-4)
    for other in (two_matmuls(4, 4, 4, 4, cut=TAIL), matmul(8, 8, 8, cut=TAIL), _product_of_sums()):
        assert with_one_sum(Computation.of(other)) is Computation.of(other)


def _product_of_sums() -> Program:
    nest = LoopNest("product_of_sums")
    i, j = nest.axis("m", 4), nest.axis("n", 8)
    A, y = nest.array("A", i, j), nest.array("y", i)
    y[i] = nest.sum(A[i, j], over=j) * nest.sum(A[i, j] * A[i, j], over=j)
    return nest.done()


def test_tiles_of_a_user_stay() -> None:
    nest = LoopNest("own")
    i, j = nest.axis("m", 640, (10,), (8,)), nest.axis("n", 320)
    k = nest.axis("k", 64, (8, 16))
    A, B, C = nest.array("A", i, k), nest.array("B", k, j), nest.array("C", i, j)
    C[i, j] = nest.sum(A[i, k] * B[k, j], over=k)
    found, _ = variants_of(nest.done(), free=False)
    assert found
    for each in found:
        tiles = {axis.name: axis.tiles for axis in each.program.axes}
        assert tiles["m"] == ((10,), (8,))
        assert tiles["k"] == ((8, 16),)
        assert len(tiles["n"]) >= 2
    assert variants_of(matmul(64, 64, 64, tiles=((4,), (4,), (4,))), free=False)[1]["block-tile"]
