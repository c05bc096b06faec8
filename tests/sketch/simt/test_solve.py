"""Filling sketches: every benchmark of the paper is found, proved, and proved again at 32 lanes."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from warploom.bench import inventor
from warploom.bench import inventor_sketches as paper
from warploom.errors import CheckError
from warploom.index.ir import Const, Expr
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Undecided, Verdict
from warploom.sketch.simt.evaluate import interpret
from warploom.sketch.simt.solve import Filled, reinstantiate, solve
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Program

SLOW = ("Mult-64 reg", "Mult-64 shmem", "(5)", "(7)", "rcr (2)", "7x7")


def found(outcome: object) -> Filled:
    assert isinstance(outcome, Found)
    assert isinstance(outcome.answer, Filled)
    return outcome.answer


def cases() -> list[object]:
    rows = inventor.rows()
    assert len(rows) == 23
    return [
        pytest.param(row, marks=[pytest.mark.slow] if row.name.endswith(SLOW) else [], id=row.name)
        for row in rows
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", cases())
def test_every_row_of_table_1_is_found_and_proved_at_both_sizes(row: inventor.Row) -> None:
    filled = found(solve(row.sketch.at(**row.sizes), optimum=row.optimum))
    assert filled.verification.verdict is Verdict.PROVED
    assert filled.optimal
    assert interpret(filled.traced, _closed(filled)) == filled.traced.goal.values
    if row.large is not None:
        large = found(reinstantiate(filled, row.sketch.at(**row.large)))
        assert large.verification.verdict is Verdict.PROVED
        assert large.statements == filled.statements


def _closed(filled: Filled) -> dict[str, Expr]:
    """The fill with `false` for the predicates of dropped statements and 0 for what they used."""
    return {name: filled.fill.get(name, Const(0)) for name in filled.traced.holes}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param("multiplication_64", marks=pytest.mark.slow), "multiplication_64_shared"],
)
def test_six_statements_are_enough_for_degree_64(name: str) -> None:
    filled = found(solve(getattr(paper, name).at(warp=4), optimum=True))
    assert filled.statements == 6
    assert filled.optimal
    assert filled.space == (2 if name == "multiplication_64" else 1)


@pytest.mark.slow
def test_what_the_paper_shows_impossible_is_impossible() -> None:
    for made in (paper.aos_sum, paper.aos_crc):
        assert isinstance(solve(made.at(s=2), spaces=(1, 2)), Impossible)
        assert found(solve(made.at(s=2))).space == 3


def test_a_small_space_does_not_make_the_optimum_proved() -> None:
    never = solve(paper.stencil_1d.at(warp=4, taps=6), spaces=(1,))
    assert isinstance(never, Impossible)
    assert never.why.startswith("spaces 1; of the largest, all statements kept:\nruled out: all ")
    assert "blocked by '" in never.why
    assert "goal cell" not in never.why  # elements of the output are named
    # Three registers of four lanes need a condition with a constant.
    assert found(solve(paper.stencil_1d.at(warp=4, taps=6))).space == 2


def test_a_spent_budget_is_undecided_not_impossible() -> None:
    outcome = solve(paper.multiplication_64.at(), optimum=True, budget=Budget(seconds=0.01))
    assert isinstance(outcome, Undecided)


def test_a_wrong_fill_is_refuted_at_the_larger_size() -> None:
    """At two lanes + and − are one; only what is right at both sizes is taken along."""
    small = found(solve(paper.stencil_1d.at(warp=2)))
    large = found(reinstantiate(small, paper.stencil_1d.at(warp=32)))
    assert large.verification.verdict is Verdict.PROVED


def test_two_different_sketches_are_not_two_sizes() -> None:
    small = found(solve(paper.aos_sum.at(warp=4)))
    with pytest.raises(CheckError, match="not one sketch"):
        reinstantiate(small, paper.aos_crc.at())


def test_spaces_are_checked() -> None:
    with pytest.raises(CheckError, match="spaces are among"):
        solve(paper.stencil_1d.at(), spaces=(0,))


def test_fills_are_listed_within_what_is_left_of_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solving = sys.modules[solve.__module__]  # the package has the function by this name
    given: list[float | None] = []

    def spy(program: Program, *, mode: str, budget: Budget, **options: Any) -> Result:
        given.extend([budget.seconds] if mode == "all" else [])
        return synthesize(program, mode=mode, budget=budget, **options)

    monkeypatch.setattr(solving, "_QUICK", 1.0)  # the first fill is quick also on a busy machine
    monkeypatch.setattr(solving, "synthesize", spy)
    assert isinstance(solve(paper.stencil_1d.at(warp=4), budget=Budget(8.0)), Found)
    (seconds,) = given
    assert seconds is not None
    assert seconds < 8.0  # not ten times what is quick
