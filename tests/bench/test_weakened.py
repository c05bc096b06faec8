"""The weakened searches find the same things, only later."""

from __future__ import annotations

from warploom.bench import inventor_sketches as paper
from warploom.bench.weakened import by_numbers, naive_candidates, solve_naive
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Undecided
from warploom.sketch.simt.evaluate import interpret
from warploom.sketch.simt.ir import Hole


def test_naive_swizzles_solve_what_one_operation_solves() -> None:
    traced = paper.multiplication_32.at(warp=4)
    outcome = solve_naive(traced, 1, Budget(60))
    assert isinstance(outcome, Found)
    assert interpret(traced, outcome.answer) == traced.goal.values


def test_naive_swizzles_of_depth_one_cannot_sum_structures_of_three() -> None:
    assert isinstance(solve_naive(paper.aos_sum.at(warp=8, s=3), 1, Budget(60)), Impossible)


def test_naive_swizzles_explode() -> None:
    assert isinstance(solve_naive(paper.aos_sum.at(s=7), 2, Budget(60)), Undecided)
    hole = Hole("h", "swizzle", 4, ("lane", "i"), (4, 4))
    counts = [len(naive_candidates(hole, depth, Budget())) for depth in (0, 1, 2)]
    assert counts[0] == 2 + 4
    assert counts[0] < counts[1] < counts[2]


def test_without_multisets_every_fill_is_tried() -> None:
    traced = paper.aos_sum.at(warp=3, s=1)
    outcome = by_numbers(traced, 1, Budget(60))
    assert isinstance(outcome, Found)
    assert interpret(traced, outcome.answer) == traced.goal.values
    assert isinstance(by_numbers(paper.aos_sum.at(warp=4, s=2), 1, Budget(60)), Impossible)
    assert isinstance(by_numbers(paper.multiplication_64.at(), 1, Budget(0.01)), Undecided)
