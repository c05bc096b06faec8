"""Ways to do accesses: every lane moves what it moved, and the best of them is the best."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from bench.common.narrowed import present

from warploom.errors import CheckError, UnsupportedError
from warploom.layout.patterns.access import IDLE, Access, Problem, check_problem
from warploom.layout.patterns.named import pattern
from warploom.layout.patterns.ways import ways_of
from warploom.layout.solver.choose import Chosen, best_way
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Reason, Undecided

NAMES = (
    "transpose:32x32:f32", "transpose:64x64:f16", "mma-a:16x64:f16", "mma-b:32x32:f16",
    "mma-c:16x64:f32", "aos:32x6:f32", "columns:32x64:f32:load=16", "transpose:32x48:f32",
)  # fmt: skip


def moved(problem: Problem, access: Access) -> list[Counter[int]]:
    """The elements of each lane, as often as it moves them. Of matrices, by the definition of
    ldmatrix: lane 4g + t has word t of row g; transposed, elements g of rows 2t and 2t + 1."""
    found = [Counter[int]() for _ in range(problem.serving.lanes)]
    if "matrix" not in access.kind:
        for lane in range(access.lanes):
            found[lane].update(x for x in access.elements[:, lane].ravel().tolist() if x != IDLE)
        return found
    per_word = 4 // problem.element_bytes
    for step in access.elements:
        for matrix in step.reshape(4, 8, -1):
            for lane in range(32) if matrix[0, 0] != IDLE else ():
                g, t = divmod(lane, 4)
                if "trans" in access.kind:
                    found[lane].update([int(matrix[2 * t, g]), int(matrix[2 * t + 1, g])])
                else:
                    found[lane].update(matrix[g, t * per_word : (t + 1) * per_word].tolist())
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_every_lane_moves_the_same(name: str) -> None:
    problem = pattern(name)
    for what in (("width", "matrices"), ("order",)):
        ways = ways_of(problem, what)
        assert ways[0].name == ""
        for way in ways:
            check_problem(way.problem)
            for before, after in zip(problem.accesses, way.problem.accesses, strict=True):
                assert moved(problem, before) == moved(problem, after), way.name


def test_transposed_words_are_loaded_as_matrices() -> None:
    """Halves of rows 2t and 2t + 1 in column g: what ldmatrix.trans gives, in two loads of half
    words where nobody uses it."""
    lane = np.arange(32)
    row = 2 * (lane % 4) * 64 + lane // 4
    rows = [row + 64 * half + 8 * step for step in range(8) for half in (0, 1)]
    access = Access("load", np.stack(rows)[:, :, None], "ld")
    problem = check_problem(Problem("mine", (8, 64), 2, (access,)))
    found = [way for way in ways_of(problem, ("matrices",)) if way.name]
    assert [way.name for way in found] == ["load by ldmatrix.trans"]
    assert found[0].problem.accesses[0].elements.shape == (2, 32, 8)
    assert moved(problem, access) == moved(problem, found[0].problem.accesses[0])


def test_the_best_way_is_the_best_of_all() -> None:
    """The same question asked of each way by itself."""
    problem = pattern("transpose:32x32:f32")
    chosen = best_way(problem, ("width", "matrices"))
    totals: list[tuple[Fraction, int]] = []
    for way in ways_of(problem, ("width", "matrices")):
        best = solve(Task(way.problem), "mixed").best
        assert best is not None
        totals.append(
            (Fraction(sum(best.score.wavefronts)), sum(a.steps for a in way.problem.accesses))
        )
    assert (present(chosen.best.wavefronts), chosen.best.instructions) == min(totals)
    assert min(totals) == (Fraction(64), 16)
    assert chosen.best.way.name == "store rows by stmatrix, load columns by 16 bytes"
    assert len(chosen.tried) == len(totals)
    assert not chosen.open


def test_an_order_of_its_own_instead_of_a_layout() -> None:
    """Rows as they are, and no conflict: each lane begins at another field."""
    problem = pattern("aos:32x8:f32")
    plain = best_way(problem, (), "none").best.wavefronts
    chosen = best_way(problem, ("order",), "none")
    assert plain == 8 + 64
    assert chosen.best.wavefronts == 16
    assert chosen.best.way.name == "load fields at step ^ (lane >> 2)"


def test_weights_count_for_the_whole_tile() -> None:
    problem = pattern("but-two:4x32")
    tried = best_way(problem, ("width",), "none").best
    best = tried.front.best
    assert best is not None
    each = zip(problem.weights, best.score.wavefronts, strict=True)
    assert tried.wavefronts == sum((w * n for w, n in each), Fraction(0))


def test_what_was_not_solved_in_time_is_said() -> None:
    with suppress(BudgetSpentError):  # raised before there is anything to tell
        question = pattern("every-bits:32x32:f32")
        assert best_way(question, (), "mixed", budget=Budget(seconds=0)).open


def test_refusals() -> None:
    problem = pattern("transpose:32x32:f32")
    with pytest.raises(UnsupportedError, match="'speed' is no decision"):
        ways_of(problem, ("speed",))
    with pytest.raises(CheckError, match="ways to do these accesses"):
        ways_of(pattern("blocks:32x32"), ("order",))


def test_a_way_that_may_take_fewer_instructions_is_open() -> None:
    """With as many wavefronts, too: of equal ones the fewest instructions are best."""
    wide, narrow = best_way(pattern("aos:32x2:f32"), ("width",), "swizzle").tried[:2]
    assert wide.wavefronts == narrow.wavefronts == wide.least
    assert wide.instructions < narrow.instructions
    stopped = replace(wide.front.asked, outcome=Undecided(Reason.SECONDS))
    unsure = replace(wide, front=replace(wide.front, asked=stopped))
    assert Chosen((narrow, unsure)).open == (unsure,)
    assert Chosen((wide, narrow)).open == ()
