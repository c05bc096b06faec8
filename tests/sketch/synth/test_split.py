"""A search in pieces gives the fills of the whole one; what was kept of it is not done again."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom.bench.published import named
from warploom.errors import WarploomError
from warploom.search.budget import Budget
from warploom.search.farm import Farm
from warploom.search.outcome import Found, Impossible, Undecided
from warploom.search.pieces import Piece
from warploom.search.store import Forgiving, Store
from warploom.sketch.front import load_text
from warploom.sketch.synth import fills, parts, split
from warploom.sketch.synth.parts import Answer
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting
from warploom.sketch.term.ir import Program

AT_ONCE = Parting(patience=0.0)

SKETCHES = {
    "sums": ("sums", {"columns": 3}),
    "two sides": ("product", {"width": 4, "level": 3}),
    "one value read twice": ("gaussian", {}),
    "a sketch without holes": ("universe-soundness-test", {}),
}

TEXTS = {
    "a hole that nothing needs": """
x: [6] = range(0, 6)
a: [3,2] = load_rep(x)
idle: [3,2] = ?row_rots(a)
b: [3,2] = ?row_rots(a)
c: [3,2] = ?col_rots(b)
goal: [3,2] = [[3, 2], [5, 4], [1, 0]]
""",
    "impossible": """
x: [6] = range(0, 6)
a: [3,2] = load_rep(x)
b: [3,2] = ?row_rots(a)
c: [3,2] = ?col_rots(b)
goal: [3,2] = [[3, 3], [5, 5], [1, 1]]
""",
}

# Every rotation of every row and column: more fills than the list of this test may have.
MANY = """
x: [12] = range(0, 12)
a: [4,3] = load_rep(x)
b: [4,3] = ?row_rots(a)
c: [4,3] = ?row_rots(b)
d: [4,3] = ?col_rots(c)
e: [4,3] = ?col_rots(d)
goal: [4,3] = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
"""


def program_of(name: str) -> Program:
    if name in TEXTS:
        return load_text(TEXTS[name])
    known, sizes = SKETCHES[name]
    build = named(known)
    assert build is not None
    return build(sizes)


def answer_of(result: Result) -> Any:
    return type(result.outcome), result.complete, result.fills.count, result.fills.choices.tolist()


@pytest.mark.parametrize("name", [*SKETCHES, *TEXTS])
def test_pieces_give_the_fills_of_the_whole(name: str) -> None:
    program = program_of(name)
    for mode in ("all", "best"):
        whole = synthesize(program, mode=mode)
        assert answer_of(synthesize(program, mode=mode, parting=AT_ONCE)) == answer_of(whole)


@pytest.mark.parametrize("listed", [1, 5, 10_000])
def test_of_more_fills_than_are_listed_the_first_and_the_cheapest(
    listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (fills, parts, split):
        monkeypatch.setattr(module, "LIST_AT_MOST", listed)
    monkeypatch.setattr("warploom.sketch.synth.solve.LIST_AT_MOST", listed)
    program = load_text(MANY)
    for mode in ("all", "best"):
        whole = synthesize(program, mode=mode)
        assert answer_of(synthesize(program, mode=mode, parting=AT_ONCE)) == answer_of(whole)


def test_what_was_done_is_kept_and_not_done_again(tmp_path: Path) -> None:
    """Stopped over and over, the search comes to its end, and gives what it gives at once."""
    program = program_of("sums")
    whole = synthesize(program)
    store = Store(tmp_path / "store.sqlite", "these")
    seen: list[Piece[Answer]] = []
    runs = 0
    while runs < 100:
        runs += 1
        done: list[Piece[Answer]] = []

        def crash(
            piece: Piece[Answer], done: list[Piece[Answer]] = done, most: int = len(seen) + 3
        ) -> None:
            done.append(piece)
            if len(done) > most:  # those that are kept come first
                raise ZeroDivisionError  # as good as a power cut: nothing of ours sees it

        try:
            result = synthesize(program, parting=replace(AT_ONCE, store=store, on_piece=crash))
            break
        except ZeroDivisionError:
            seen = done
    assert 3 < runs < 100
    assert answer_of(result) == answer_of(whole)
    cells = sorted((piece.low, piece.high) for piece in done)
    assert all(one[1] == two[0] for one, two in pairwise(cells))

    again: list[Piece[Answer]] = []
    parting = replace(AT_ONCE, store=store, on_piece=again.append)
    assert answer_of(synthesize(program, parting=parting)) == answer_of(whole)
    assert [(piece.low, piece.high) for piece in again] == [(0, cells[-1][1])]
    assert len(store.all()) == 2  # where it was parted, and all of it in one


def test_a_spent_budget_keeps_what_was_done(tmp_path: Path) -> None:
    program = program_of("sums")
    store = Store(tmp_path / "store.sqlite", "these")
    done: list[Piece[Answer]] = []
    budget = Budget()

    def enough(piece: Piece[Answer]) -> None:
        done.append(piece)
        budget._interrupt.on = len(done) == 4

    parting = replace(AT_ONCE, store=store, on_piece=enough)
    cut = synthesize(program, budget=budget, parting=parting)
    assert not cut.complete
    assert isinstance(cut.outcome, Found | Undecided)
    assert len(store.all()) == 5
    rest = synthesize(program, parting=replace(AT_ONCE, store=store))
    assert answer_of(rest) == answer_of(synthesize(program))


def test_a_store_that_fails_costs_nothing_but_what_it_would_keep(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("no store")
    told: list[WarploomError] = []
    store = Forgiving(tmp_path / "store.sqlite", told.append)
    program = program_of("sums")
    found = synthesize(program, parting=replace(AT_ONCE, store=store))
    assert answer_of(found) == answer_of(synthesize(program))
    assert len(told) == 1


def test_processes_give_the_same_fills_also_if_some_die() -> None:
    program = program_of("sums")
    farm = Farm(2)
    died = 0

    def killing(_piece: Piece[Answer]) -> None:
        nonlocal died
        if died < 2 and farm._processes:
            farm._processes[-1].kill()
            died += 1

    try:
        parting = replace(AT_ONCE, crew=farm, on_piece=killing)
        found = synthesize(program, parting=parting)
    finally:
        farm.shutdown(cancel_futures=True)
    assert died == 2
    assert answer_of(found) == answer_of(synthesize(program))


def test_what_is_soon_done_is_not_parted(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite", "these")
    found = synthesize(program_of("sums"), parting=Parting(store))
    assert isinstance(found.outcome, Found)
    assert not store.path.exists()
    none = synthesize(program_of("impossible"), parting=AT_ONCE)
    assert isinstance(none.outcome, Impossible)
    assert np.array_equal(none.fills.choices, none.fills.choices[:0])
