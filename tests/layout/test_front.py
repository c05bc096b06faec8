"""What comes first, what is minimised, what a spent budget leaves: the front of all classes."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from bench.common.layout.generated import cheap_best, problem_text

from warploom.layout.language import family
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.patterns.named import pattern
from warploom.layout.patterns.pattern import parse_pattern
from warploom.layout.solver.choose import best_way
from warploom.layout.solver.columns import ColumnSearch
from warploom.layout.solver.front import Front, front_of
from warploom.layout.solver.front_json import front_record
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task, is_linear
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Found, Reason, Undecided

TWO = """shape = [64, 32]
element = "f32"
[[access]]
name = "window"
steps = 4
index = "lane + step"
[[access]]
name = "columns"
steps = 4
index = "lane * 32 + step"
"""


def heavy() -> Problem:
    """Six accesses of which every linear layout makes one wait; one of them is done 50 times."""
    light = pattern("but-two:4x32")
    accesses = [
        Access(a.name, np.tile(a.elements, (50, 1, 1)) if n == 1 else a.elements, a.kind)
        for n, a in enumerate(light.accesses)
    ]
    return Problem("heavy", (128,), 4, tuple(accesses))


# -- the objective ---------------------------------------------------------------------------------


def test_all_wavefronts_of_the_tile_count() -> None:
    front = front_of(Task(heavy()), "mixed")
    assert front.best is not None
    assert front.best.cost == sum(front.best.score.wavefronts) == 224
    assert front_record(front)["objective"] == "total"
    assert front_record(front)["cost"] == 224


@pytest.mark.parametrize(("weight", "cost"), [(50.0, 5 * 4 + 4 * 50 + 4), (0.1, 5 * 4 + 0.8)])
def test_a_weight_makes_wavefronts_count_so_often(weight: float, cost: float) -> None:
    light = pattern("but-two:4x32")
    first, *others = light.accesses
    weighted = Access(first.name, first.elements, first.kind, weight)
    task = Task(Problem("weighted", light.shape, 4, (weighted, *others)))
    solved = solve(task, "xor")
    assert solved.best is not None
    assert solved.best.cost == Fraction(str(cost))  # a tenth is a tenth


def test_the_worst_access_is_that_with_the_most_wavefronts() -> None:
    solved = solve(Task(heavy(), worst=True), "xor")
    assert solved.best is not None
    assert solved.best.cost == max(solved.best.score.wavefronts) == 200


# -- cheap families first --------------------------------------------------------------------------


def spent_at_once(*_: object) -> None:
    raise BudgetSpentError(Reason.SECONDS)


def test_what_is_cheap_was_tried_when_an_expensive_search_takes_all_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ColumnSearch, "run", spent_at_once)
    front = front_of(Task(parse_pattern(TWO)), "mixed")
    assert isinstance(front.asked.outcome, Undecided)
    assert {each.klass: str(each.best and each.best.score) for each in front.others} == {
        "none": "1/32", "pad": "1.75/1", "swizzle": "1.5/1",
    }  # fmt: skip
    assert front.best is not None
    assert front.best.cost == 10
    assert front.left_out == ()


def test_generated_problems_are_not_worse_than_what_is_cheap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each with all time taken by the expensive search, counted without the solver."""
    monkeypatch.setattr(ColumnSearch, "run", spent_at_once)
    compared = 0
    for number in range(2):
        problem = parse_pattern(problem_text(number))
        front = front_of(Task(problem), "mixed")
        cheap = cheap_best(problem)
        if cheap is not None:
            assert front.best is not None, number
            assert float(front.best.cost) <= cheap + 1e-9, number
            compared += 1
    assert compared == 2


def test_the_best_so_far_is_the_limit_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    real = ColumnSearch.run

    def run(self: ColumnSearch) -> bool:
        limits.append(self.limit)
        return real(self)

    monkeypatch.setattr(ColumnSearch, "run", run)
    solve(Task(heavy()), "xor")
    assert limits[:2] == [221, 444]  # the bound, then less than the best swizzle


def test_a_bound_that_is_met_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColumnSearch, "run", spent_at_once)
    front = front_of(Task(pattern("transpose:32x32:f32")), "mixed")
    assert isinstance(front.asked.outcome, Found)


def test_a_padding_that_meets_the_bound_does_not_hide_what_wastes_nothing() -> None:
    """No swizzle does here: a linear layout of the same cost is taken."""
    task = Task(parse_pattern(TWO.replace("lane + step", "lane ^ step")))
    front = front_of(task, "mixed")
    assert isinstance(front.asked.outcome, Found)
    assert front.best is not None
    assert front.best.unused == 0


# -- what was not tried ----------------------------------------------------------------------------


def stopped_after(checks: int) -> Budget:
    """A budget that is spent when it was asked so often: the same on every machine."""
    asked = iter(range(checks))

    def ask() -> None:
        if next(asked, None) is None:
            raise BudgetSpentError(Reason.SECONDS)

    return Budget(on_check=ask)


def test_classes_that_were_not_begun_have_no_row() -> None:
    for checks in range(0, 60, 7):
        front = front_of(Task(parse_pattern(TWO)), "mixed", stopped_after(checks))
        record = front_record(front)
        assert isinstance(front.asked.outcome, Undecided), checks
        assert not set(record["classes"]) & set(record["not_tried"]), checks
        assert {*record["classes"], *record["not_tried"]} == {"none", "pad", "swizzle", "mixed"}
        for klass, row in record["classes"].items():
            complete = row["outcome"] != "undecided"
            assert row["proved"] == complete, (checks, klass)
    assert front_of(Task(parse_pattern(TWO)), "mixed", stopped_after(0)).left_out == (
        "pad", "swizzle", "mixed",
    )  # fmt: skip


def test_a_smaller_class_that_meets_the_bound_answers_for_a_larger_one() -> None:
    """Though nothing of the larger was looked at: it holds the smaller."""

    def begun(klass: str) -> Front:
        pads = 40  # as many questions as it takes to try all paddings
        return front_of(Task(pattern("transpose:32x32:f32")), klass, stopped_after(pads))

    assert isinstance(begun("mixed").asked.outcome, Found)


def test_ways_that_were_not_begun_are_told() -> None:
    chosen = best_way(pattern("transpose:32x32:f32"), ("width",), budget=stopped_after(300))
    assert chosen.left > 0
    whole = best_way(pattern("transpose:32x32:f32"), ("width",))
    assert whole.left == 0


# -- budgets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["transpose:1024x1024:f32", "transpose:512x512:u8", "stencil:34x34:f32:points=9"]
)
def test_a_budget_of_time_is_kept(name: str) -> None:
    """From the first line that is read: large problems took seconds to read and to count."""
    budget, started = Budget(seconds=0.1), time.process_time()
    with budget.governing(), suppress(BudgetSpentError):
        best_way(pattern(name), (), budget=budget)
    assert time.process_time() - started < 0.1 + 1


def test_work_in_pieces_asks_the_budget() -> None:
    """Reading, checking and counting a large pattern end when the budget does."""
    with stopped_after(3).governing(), pytest.raises(BudgetSpentError):
        Task(pattern("transpose:1024x1024:f32"))


# -- without assertions ----------------------------------------------------------------------------

BROKEN = """
import warploom.layout.solver.solve as solver
from warploom.errors import InternalError
from warploom.layout.solver.certificate import certificate
from warploom.layout.language.ir import Matrix
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.task import Task, is_linear

assert False, "assertions are on"
task = Task(pattern("but-two:4x32"))
solved = solver.solve(task, "xor")
from dataclasses import replace
for attempt in ("search", "proof"):
    try:
        if attempt == "search":
            solver.matrix_of = lambda frame, choice: Matrix(tuple(1 << b for b in range(7)), 0)
            solver.solve(Task(pattern("but-two:4x32")), "xor")
        else:
            certificate(task, replace(solved, least=solved.least + 4))
    except InternalError as error:
        print(error.message)
"""


def test_soundness_does_not_hang_on_assertions() -> None:
    """A search that lies, and a claim that it does not bear out, are noticed under `python -O`."""
    ran = subprocess.run(
        [sys.executable, "-O", "-c", BROKEN], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [
        "a linear layout costs more than the search said",
        "a linear layout costs less than the least",
    ]


# -- promises --------------------------------------------------------------------------------------


def test_what_is_promised_is_never_more_than_what_is_counted() -> None:
    """Of a linear layout it is all: groups that are translations of each other cost the same."""
    random, linear = np.random.default_rng(3), 0
    for number in range(6):
        problem = parse_pattern(problem_text(number))
        task = Task(problem)
        if task.torn is not None:
            continue
        every = [*family.swizzles(problem), *family.paddings(problem), *family.rotations(problem)]
        for place in random.integers(len(every), size=12):
            layout = every[int(place)]
            answer = task.answer(layout)
            if answer is None:
                continue
            for rows in (1, 3, 24):
                promise = task.promise(layout, rows)
                assert promise.least <= answer.cost, (number, layout)
                if is_linear(layout):
                    assert promise.least == promise.about == answer.cost, (number, layout)
                    linear += 1
    assert linear > 10
