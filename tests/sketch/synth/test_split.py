"""A search in pieces gives the fills of the whole one; what was kept of it is not done again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom.bench.published import named
from warploom.errors import WarploomError
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.search.storage.store import Forgiving, Key, Store
from warploom.search.workers import pieces
from warploom.search.workers.farm import Farm
from warploom.search.workers.pieces import Piece
from warploom.sketch.front import load_text
from warploom.sketch.synth import engine, fills, frontier, parts, split
from warploom.sketch.synth.engine import Engine
from warploom.sketch.synth.parts import Answer
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.rows import Rows
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.split import Parting
from warploom.sketch.term.ir import Program

AT_ONCE = Parting(patience=0.0)


@pytest.fixture
def every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is written at once, and not with those of the next second."""
    monkeypatch.setattr(parts, "KEEP_EVERY", 0.0)
    monkeypatch.setattr(parts, "KEEP_SHARE", 0.0)


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


@pytest.mark.sampled(3)
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


@pytest.mark.slow
@pytest.mark.usefixtures("every_piece")
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


@pytest.fixture
def heavy_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cells, each of which takes too long: they are divided wherever that can be."""
    monkeypatch.setattr(frontier, "CELLS", 4)
    monkeypatch.setattr(frontier, "PARTS", 3)
    monkeypatch.setattr(pieces, "HEAVY", 0)
    monkeypatch.setattr(pieces, "LONGEST", 0.0)


def with_time(
    engine: Engine, position: int, rows: Rows, _seconds: float
) -> frontier.Frontier | None:
    return frontier.divided(engine, position, rows, 10.0)


@pytest.mark.usefixtures("heavy_cells")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*SKETCHES, *TEXTS])
def test_divided_cells_give_the_fills_of_the_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell is over its limit at once; where states are looked for, there is time."""
    monkeypatch.setattr(split, "divided", with_time)
    program = program_of(name)
    made: list[Piece[Answer]] = []
    parting = replace(AT_ONCE, on_piece=made.append)
    for mode in ("all", "best"):
        whole = synthesize(program, mode=mode)
        assert answer_of(synthesize(program, mode=mode, parting=parting)) == answer_of(whole)
    if name == "sums":
        assert any(piece.division is not None for piece in made)


@pytest.mark.usefixtures("heavy_cells", "every_piece")
def test_of_divided_cells_what_was_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended over and over, as by a power cut: what is in the store at that moment is all there is.
    In the end each cell was done once, and one that was divided in its parts."""
    monkeypatch.setattr(split, "divided", with_time)
    program, store = program_of("sums"), Store(tmp_path / "store.sqlite", "these")
    kept: set[tuple[Any, int]] = set()
    for _ in range(200):
        done: set[tuple[Any, int]] = set()
        count = 0

        def crash(
            piece: Piece[Answer],
            done: set[tuple[Any, int]] = done,
            kept: set[tuple[Any, int]] = kept,
        ) -> None:
            nonlocal count
            cells = {(piece.line, cell) for cell in range(piece.low, piece.high)}
            assert not cells & done
            done |= cells
            count += bool(cells - kept)
            if count > 2:
                raise ZeroDivisionError

        try:
            result = synthesize(program, parting=replace(AT_ONCE, store=store, on_piece=crash))
            break
        except ZeroDivisionError:
            assert kept <= done
            kept = done
    assert any(line for line, _ in kept)
    assert answer_of(result) == answer_of(synthesize(program))


def test_pieces_are_written_in_batches(tmp_path: Path) -> None:
    """One write in a while; a copy of the store at any moment goes on to the same fills."""
    program = program_of("sums")
    writes: list[int] = []

    class Counting(Store):
        def add(self, key: Callable[[int], Key], values: Sequence[Any], number: int = 0) -> None:
            super().add(key, values, number)
            writes.append(sum(high - low for v in values for _, low, high in v["ranges"]))
            shutil.copy(self.path, tmp_path / f"copy{len(writes)}.sqlite")

    done: list[Piece[Answer]] = []
    store = Counting(tmp_path / "store.sqlite", "these")
    parting = replace(AT_ONCE, store=store, on_piece=done.append)
    whole = answer_of(synthesize(program, parting=parting))
    assert len(writes) < len(done) / 4
    assert sum(writes) == sum(piece.high - piece.low for piece in done)
    for number in range(1, len(writes) + 1):
        again = Store(tmp_path / f"copy{number}.sqlite", "these")
        seen: list[Piece[Answer]] = []
        parting = replace(AT_ONCE, store=again, on_piece=seen.append)
        assert answer_of(synthesize(program, parting=parting)) == whole
        assert sum(piece.high - piece.low for piece in seen) == sum(writes)


@pytest.mark.usefixtures("heavy_cells", "every_piece")
@pytest.mark.parametrize("mark", ["3:0000000000000000", "99:x", "", "0:ab"])
def test_cells_that_were_divided_otherwise_are_done_again(tmp_path: Path, mark: str) -> None:
    rows = half_done(tmp_path / "store.sqlite")
    store = Store(tmp_path / "store.sqlite", "these")
    key, value = rows[2]
    store.put(key, {**value, "ranges": [[[[0, mark, 7]], 0, 3]]})
    program = program_of("sums")
    found = synthesize(program, parting=replace(AT_ONCE, store=store))
    assert answer_of(found) == answer_of(synthesize(program))


@pytest.mark.usefixtures("every_piece")
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


@pytest.mark.slow
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


# -- pieces that are not what was kept -------------------------------------------------------------


def half_done(path: Path) -> list[tuple[Key, Any]]:
    """A store with some pieces of a search, each with its key."""
    put: list[tuple[Key, Any]] = []

    class Listening(Store):
        def put(self, key: Key, value: Any) -> None:
            put.append((key, value))
            super().put(key, value)

        def add(self, key: Callable[[int], Key], values: Sequence[Any], number: int = 0) -> None:
            put.extend((key(len(put) - 1 + at), value) for at, value in enumerate(values))
            super().add(key, values, number)

    budget = Budget()
    done: list[Piece[Answer]] = []

    def enough(piece: Piece[Answer]) -> None:
        done.append(piece)
        budget._interrupt.on = len(done) == 4

    parting = replace(AT_ONCE, store=Listening(path, "these"), on_piece=enough)
    synthesize(program_of("sums"), budget=budget, parting=parting)
    return put


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cells below": lambda kept: {**kept, "ranges": [[[], -1, 1]]},
    "cells that are not there": lambda kept: {**kept, "ranges": [[[], 0, 10**6]]},
    "no cell": lambda kept: {**kept, "ranges": [[[], 1, 1]]},
    "no cells": lambda kept: {**kept, "ranges": []},
    "half a range": lambda kept: {**kept, "ranges": [[[], 1]]},
    "a line that is none": lambda kept: {**kept, "ranges": [[[[0, 1]], 0, 1]]},
    "a line of a cell that is not there": lambda kept: {
        **kept,
        "ranges": [[[[10**6, "1:a", 4]], 0, 1]],
    },
    "a count that is less": lambda kept: {**kept, "count": -1},
    "a count that is more": lambda kept: {**kept, "count": kept["count"] + 1},
    "a huge count": lambda kept: {**kept, "count": 10**40},
    "another hole": lambda kept: {**kept, "holes": 3},
    "a choice that is not there": lambda kept: {**kept, "count": 1, "first": [[0, 10**6]]},
    "a choice below": lambda kept: {**kept, "count": 1, "first": [[0, -1]]},
    "half a choice": lambda kept: {**kept, "count": 1, "first": [[0, 0.5]]},
    "no choice": lambda kept: {**kept, "count": 1, "first": [[0, True]]},
    "ragged": lambda kept: {**kept, "count": 2, "first": [[0, 0], [0]]},
    "a huge choice": lambda kept: {**kept, "count": 1, "first": [[0, 10**30]]},
    "a text": lambda kept: {**kept, "cheap": "cheap"},
    "no seconds": lambda kept: {**kept, "seconds": None},
    "no tallies": lambda kept: {**kept, "tallies": [[1]]},
    "tallies of nothing": lambda kept: {**kept, "tallies": [[0, 1, 1, []]]},
    "a list": lambda _: [1],
    "nothing of it": lambda _: {},
    "one less": lambda kept: {name: kept[name] for name in kept if name != "first"},
}


@pytest.mark.usefixtures("every_piece")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WRONG)
def test_a_malformed_piece_is_done_again(tmp_path: Path, name: str) -> None:
    rows = half_done(tmp_path / "store.sqlite")
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "these", told.append)
    key, value = rows[2]
    store.put(key, WRONG[name](value))
    program = program_of("sums")
    found = synthesize(program, parting=replace(AT_ONCE, store=store))
    assert answer_of(found) == answer_of(synthesize(program))
    assert len(told) == 1
    assert "it is computed again" in told[0].message


@pytest.mark.sampled(3)
@pytest.mark.parametrize("position", [10**6, -1, 0, "1", None, True, [2]])
def test_a_frontier_that_is_none_is_chosen_again(tmp_path: Path, position: object) -> None:
    rows = half_done(tmp_path / "store.sqlite")
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "these", told.append)
    assert set(rows[0][1]) == {"position"}
    store.put(rows[0][0], {"position": position})
    program = program_of("sums")
    found = synthesize(program, parting=replace(AT_ONCE, store=store))
    assert answer_of(found) == answer_of(synthesize(program))
    assert len(told) == 1


def test_ctrl_c_with_a_store_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pressed while one piece of work takes all the seconds that a search has before parting: both
    are seen at the next look, and what the user did is the reason."""
    seconds_of = engine.of_cpu

    def pressed(budget: Budget, seconds: float, error: Exception) -> Callable[[], None]:
        check = seconds_of(budget, seconds, error)

        def press_and_check() -> None:
            budget._interrupt.on = True
            check()

        return press_and_check

    monkeypatch.setattr(split, "of_cpu", pressed)
    parting = replace(AT_ONCE, store=Store(tmp_path / "store.sqlite", "these"))
    result = synthesize(program_of("sums"), parting=parting)
    assert isinstance(result.outcome, Found | Undecided)
    assert result.stopped is Reason.INTERRUPTED
