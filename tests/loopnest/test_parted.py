"""A fold in two kernels: the two mean what the one does, on NumPy, on the simulator and in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import present

import warploom
from warploom.errors import CheckError, UnsupportedError
from warploom.index.evaluate import evaluate as evaluated
from warploom.kernel.evaluate import run
from warploom.loopnest.build import LoopNest, exp
from warploom.loopnest.computation import Computation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, batched_matmul, matmul, matvec
from warploom.loopnest.parted import NotPartedError, Parted, parted
from warploom.loopnest.strategies.form import Variant
from warploom.loopnest.strategies.known import variants_of
from warploom.loopnest.target import everything
from warploom.loopnest.trial import some_inputs
from warploom.machine.record import H200
from warploom.pipeline.drawn import Asked, leaves_of
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.search.branching.candidate import Candidates

TAIL = Cut(tail=True)
NAME = "split-over-blocks"


def columns(op: str, m: int, n: int) -> Program:
    nest = LoopNest("columns")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, y = nest.array("A", i, j), nest.array("y", j)
    y[j] = nest.fold(op, exp(A[i, j]), over=i)  # type: ignore[arg-type]
    return nest.done()


def scaled(m: int, n: int, k: int) -> Program:
    """C = α·(2·A·B) + β·D, and the same array read inside and outside of the sum."""
    nest = LoopNest("scaled")
    i, j, over = nest.axis("m", m), nest.axis("n", n), nest.axis("k", k)
    alpha, beta = nest.parameter("alpha"), nest.parameter("beta")
    A, B = nest.array("A", i, over), nest.array("B", over, j)
    D, C = nest.array("D", i, j), nest.array("C", i, j)
    C[i, j] = alpha * nest.sum(A[i, over] * B[over, j], over=over) + beta * D[i, j]
    return nest.done()


def from_ten(m: int, k: int) -> Program:
    """The array `shares` and the axis `share` are the user's."""
    nest = LoopNest("from_ten")
    i, over = nest.axis("share", m), nest.axis("k", k)
    A, y = nest.array("shares", i, over), nest.array("y", i)
    y[i] = nest.sum(A[i, over], over=over) + 10.0
    return nest.done()


def padded(m: int, n: int) -> Program:
    nest = LoopNest("padded")
    i, j = nest.axis("m", m), nest.axis("n", n)
    A, y = nest.array("A", i, n), nest.array("y", i)
    y[i] = nest.sum(A.at((i, (j + 3) % n), where=j.expr.le(n - 7)), over=j)
    return nest.done()


PROGRAMS = [
    matmul(12, 16, 60, activation="relu", cut=TAIL),
    matmul(12, 16, 60, transposed="AB", stride=2, cut=TAIL),
    batched_matmul(3, 4, 8, 20, cut=TAIL),
    matvec(10, 80, cut=TAIL),
    columns("+", 40, 6),
    columns("max", 40, 6),
    scaled(8, 8, 20),
    from_ten(6, 40),
    padded(6, 40),
]


def in_turn(made: Parted) -> list[Program]:
    return [program_of(each, published=False) for each in (made.parts, made.after)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
@pytest.mark.parametrize("count", [2, 5, 10])
def test_parts_put_together_are_the_fold(program: Program, count: int) -> None:
    given = Computation.of(program)
    if any(axis.size % count for each in program.instructions for axis in
           {dim.axis for dim in each.over}):  # fmt: skip
        with pytest.raises(NotPartedError, match=f"no {count} parts of one length"):
            parted(given, count)
        return
    made = parted(given, count)
    arrays, numbers = some_inputs(program, np.random.default_rng(count))
    wanted = evaluate(program, arrays, numbers)
    given_there = {**arrays, made.between.name: np.full(made.between.elements, np.nan, np.float32)}
    for each in in_turn(made):
        given_there |= evaluate(each, given_there, numbers)
    for name, right in wanted.items():
        assert np.allclose(given_there[name], right, rtol=1e-4, atol=1e-4)


def two_sums() -> Program:
    nest = LoopNest("two_sums")
    i, j = nest.axis("m", 4), nest.axis("n", 8)
    A, y = nest.array("A", i, j), nest.array("y", i)
    y[i] = nest.sum(A[i, j], over=j) * nest.sum(A[i, j] * A[i, j], over=j)
    return nest.done()


def used_along() -> Program:
    nest = LoopNest("used_along")
    i, j = nest.axis("m", 4), nest.axis("n", 8)
    A, y = nest.array("A", i, j), nest.array("y", i, j)
    y[i, j] = A[i, j] / nest.sum(A[i, j], over=j)
    return nest.done()


def squares_once() -> Program:
    nest = LoopNest("squares_once")
    i, j = nest.axis("m", 4), nest.axis("n", 8)
    A, y = nest.array("A", i, j), nest.array("y", i)
    y[i] = nest.sum(nest.value(A[i, j] * A[i, j]), over=j)
    return nest.done()


@pytest.mark.parametrize(("program", "why"), [
    (two_sums(), "no single fold"),
    (used_along(), "used along it"),
    (squares_once(), "more than loads"),
])  # fmt: skip
def test_what_has_no_parts_is_refused(program: Program, why: str) -> None:
    with pytest.raises(NotPartedError, match=why):
        parted(Computation.of(program), 2)


def variants(program: Program) -> list[Variant]:
    found, refused = variants_of(program, free=True)
    assert NAME not in refused
    return [each for each in found if each.strategy == NAME]


def decided(nest: Nest, seed: int) -> Candidates:
    drawn = leaves_of(nest, Asked(6, (seed,)))
    row = int(np.flatnonzero(drawn.arrived)[0])
    return drawn.leaves.take(slice(row, row + 1))


LARGE = [
    matmul(24, 40, 1024, activation="relu", cut=TAIL),
    matvec(12, 2048, cut=TAIL),
    columns("max", 1024, 40),
    scaled(16, 16, 1024),
]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("program", LARGE, ids=lambda each: each.name)
def test_its_kernels_are_right_and_have_no_races(program: Program) -> None:
    """On the simulator, one after the other: what is between them is no number before."""
    whole = Nest(program, H200.rates, everything(H200))
    variant = variants(program)[-1]
    nest = nest_by(recipe_of(variant, whole))
    leaf = decided(nest, 1)
    kernels = nest.lowered(leaf)
    assert len(kernels) == 2
    arrays, numbers = some_inputs(program, np.random.default_rng(1))
    wanted = evaluate(program, arrays, numbers)
    there = {name: each.copy() for name, each in arrays.items()}
    for kernel in kernels:
        for each in kernel.arrays:
            size = int(evaluated(each.size, {}))
            there.setdefault(each.name, np.full(size, np.nan, np.float32))
        given: dict[str, Any] = {**there, **numbers}
        report = run(kernel, [given[each.name] for each in kernel.params])
        assert not report.races
    for name, right in wanted.items():
        assert np.allclose(there[name], right, rtol=1e-3, atol=1e-3)
    assert nest.least_of(leaf) > float(nest.bound(leaf)[0])
    assert nest.predicted_time(leaf) >= nest.least_of(leaf)


def test_it_is_meant_for_few_results_of_long_folds() -> None:
    assert {each.program.axes[0].size for each in variants(matmul(1536, 384, 4096, cut=TAIL))} == {
        4, 8, 16,
    }  # fmt: skip
    for program, why in [
        (matmul(2048, 2048, 2048, cut=TAIL), "results are enough"),
        (matmul(64, 64, 512, cut=TAIL), "is not long"),
        (matmul(64, 64, 2053, cut=TAIL), "no equal parts"),
        (matvec(5000, 7000, cut=TAIL), "results are enough"),
    ]:
        assert why in variants_of(program, free=True)[1][NAME]
    assert "tiles of yours" in variants_of(matmul(64, 64, 4096, cut=TAIL), free=False)[1][NAME]


@pytest.mark.slow
def test_a_user_has_both_kernels() -> None:
    size = {"m": 24, "n": 32, "k": 1024}
    found = warploom.explore(
        "matmul", size, model=True, evaluations=1, store=False, strategy=NAME, seed=1
    )
    assert found.strategy.startswith(NAME)
    assert [each.name for each in found.kernels] == ["matmul_parts", "matmul_after"]
    assert str(found).startswith("matmul: ")
    assert "the next kernel equals" in str(found.trial)
    assert "then another kernel" in str(found)
    with pytest.raises(UnsupportedError, match="'matmul' has 2 kernels"):
        _ = found.kernel
    text = found.text("cuda", name="product")
    assert text.count("__global__") == 2
    arrays, _ = some_inputs(found.program, np.random.default_rng(0))
    A, B = (arrays[name].reshape(shape) for name, shape in (("A", (24, 1024)), ("B", (1024, 32))))
    for device in ("simulator", "c"):
        function = warploom.compile(found, device=device)
        C = function(A, B)
        assert np.allclose(C, A @ B, rtol=1e-3, atol=1e-3)
        own = np.zeros((24, 32), np.float32)
        function(A, B, own)
        assert (own == C).all()
    with pytest.raises(CheckError):
        warploom.explore("matmul", {"m": 64, "n": 64, "k": 64}, model=True, strategy=NAME)
    assert present(found.nest).whole is found.program
