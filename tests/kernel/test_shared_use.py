"""Patterns of a kernel's own shared arrays, and what the solver says of them."""

from __future__ import annotations

import numpy as np

from warploom.catalogue.conversion import conversion_kernel
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.kernel.shared_use import shared_problems
from warploom.layout.conversion.convert import convert
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.solver.front import front_of
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task


def transposition(pitch: int) -> Kernel:
    """32×32 words through shared memory by one warp."""
    k = Builder("transpose", block=32)
    x = k.array("x", DType.U32, 1024, const=True)
    y = k.array("y", DType.U32, 1024)
    k.grid(1)
    tile = k.shared("tile", DType.U32, 32 * pitch)
    word = k.register("word", DType.U32)
    with k.loop("row", 32) as row:
        k.set(word, x[row * 32 + k.thread])
        tile[row * pitch + k.thread] = word
    k.barrier("block")
    with k.loop("column", 32) as column:
        k.set(word, tile[k.thread * pitch + column])
        y[column * 32 + k.thread] = word
    return k.done()


def use(pitch: int) -> Task:
    x = np.arange(1024, dtype=np.uint32)
    y = np.zeros_like(x)
    found = shared_problems(transposition(pitch), [x, y])
    assert (y.reshape(32, 32) == x.reshape(32, 32).T).all()
    assert list(found) == ["tile"]
    return Task(found["tile"])


def test_a_kernel_that_conflicts_gets_a_layout() -> None:
    task = use(32)
    assert [access.name for access in task.problem.accesses] == ["st 1", "ld 1"]
    assert str(task.meter.score(np.arange(1024))) == "1/32"
    best = solve(task, "xor").best
    assert best is not None
    assert str(best.score) == str(task.bound) == "1/1"


def test_a_kernel_that_is_right_is_kept() -> None:
    task = use(33)
    assert task.problem.size == 33 * 32
    assert front_of(task, "none").kept


def test_the_solved_layout_of_a_conversion_is_kept() -> None:
    row, column = "blocked([1,4],[4,8],[1,1],[1,0])", "blocked([4,1],[8,4],[1,1],[0,1])"
    plan = convert(read_fragment(row, (32, 32)), read_fragment(column, (32, 32)), 4)
    kernel = conversion_kernel(plan, "shared")
    x = np.arange(1024, dtype=np.uint32)
    (problem,) = shared_problems(kernel, [x, np.zeros_like(x)], {"blocks": 1}).values()
    assert plan.shared is not None
    score = Task(problem).meter.score(np.arange(problem.size))
    assert score is not None
    assert sum(score.wavefronts) == sum(plan.shared.answer.score.wavefronts)
