"""What a set in small form says of its tables, against the tables written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from warploom.search.budget import Budget
from warploom.sketch.front import load_text
from warploom.sketch.synth.bounds import edges_of
from warploom.sketch.synth.problem import Move, lower, places_seen
from warploom.sketch.term.gather import Moves

CALLS = (
    ((8, 3), (8, 3), "row_xforms"),
    ((8, 3), (8, 3), "col_xforms"),
    ((8, 3), (8, 3), "col_rots"),
    ((3, 2, 2), (3, 2, 4), "general_select{axis=2,dims=[0,2],consts=[0,1]}"),
)


def moves() -> list[Move]:
    found = []
    for shape, out, name in CALLS:
        program = load_text(
            f"x: {list(shape)} = range(0, {np.prod(shape)})\n"
            f"h: {list(out)} = ?{name}(x)\n"
            f"goal: {list(out)} = {np.zeros(out, int).tolist()}\n"
        )
        problem = lower(program, program.goals[0])
        found += [step for step in problem.steps.values() if isinstance(step, Move)]
    assert len(found) == len(CALLS)
    assert all(isinstance(move.reads, Moves) and move.count > 5 for move in found)
    return found


@pytest.mark.parametrize("number", range(len(CALLS)))
@pytest.mark.parametrize("some", [1, 3])
def test_the_small_form_says_what_the_tables_say(number: int, some: int) -> None:
    move, budget = moves()[number], Budget()
    choices = np.arange(0, move.count, some)
    tables = move.tables[choices]
    written = replace(move, reads=tables)
    assert np.array_equal(move.rows(choices), tables)
    at = np.arange(move.cells)
    assert np.array_equal(move.places(choices[:, None], at), tables)
    assert all(np.array_equal(move.column(c, choices), tables[:, c]) for c in at.tolist())
    everyone = np.arange(len(choices))
    for mine, theirs in zip(
        edges_of(move, choices, budget), edges_of(written, everyone, budget), strict=True
    ):
        assert np.array_equal(mine, theirs)
    assert move.permutes(choices, budget) == written.permutes(everyone, budget)


@pytest.mark.parametrize("number", range(len(CALLS)))
@pytest.mark.parametrize("kinds", [1, 2, 5])
def test_lines_stand_for_all_cells(number: int, kinds: int) -> None:
    """How often each choice reads each place, cells weighing differently."""
    move, budget = moves()[number], Budget()
    choices = np.arange(move.count)
    weights = np.random.default_rng(number).integers(0, kinds, move.cells).astype(np.float64)
    lines = move.lines(weights)
    here = weights if lines.cells is None else weights[lines.cells]
    (read,) = lines.blocks(move, choices, budget)
    inputs = slice(0, move.source_size - 2)  # of the constants nothing is asked
    for choice, table in enumerate(move.tables):
        sums = np.bincount(read[choice], here, lines.count)[lines.number]
        assert np.array_equal(sums[inputs], np.bincount(table, weights, move.source_size)[inputs])
    seen = places_seen(read, lines.count)[:, lines.number]
    assert kinds > 1 or np.array_equal(
        seen[:, inputs], places_seen(move.tables, move.source_size)[:, inputs]
    )


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_choices_that_read_a_wrong_place_are_dropped(number: int) -> None:
    move, random = moves()[number], np.random.default_rng(number)
    pairs = np.sort(random.choice(move.cells * move.source_size, 9, replace=False))
    for some in (pairs[:1], pairs[:3], pairs):
        cells, places = np.divmod(some, move.source_size)
        wrong = (move.tables[:, cells] == places).any(axis=1)
        left = move.without(np.arange(move.count), cells, places, Budget())
        assert left.tolist() == np.flatnonzero(~wrong).tolist()


def test_there_are_fewer_lines_than_cells() -> None:
    move = moves()[2]
    cells = move.lines().cells
    assert cells is not None
    assert len(cells) == 8 < move.cells == 24
