"""Counting, listing in order and least cost on the graph of fills, against all fills listed."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import numpy as np
import pytest
from bench.common.sketch.brute import all_fills
from bench.common.sketch.generate import seeded, sketch
from tests.sampled import rounds

from warploom.search.budget import Budget
from warploom.sketch.synth import derivations as module
from warploom.sketch.synth import solve
from warploom.sketch.synth.cost import Prices
from warploom.sketch.synth.derivations import Derivations, derivations
from warploom.sketch.synth.engine import Engine
from warploom.sketch.synth.problem import lower
from warploom.sketch.synth.rows import Origin
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Program

UNLIMITED = Budget()


def found_by_search(program: Program, batch: int = 1 << 20) -> Derivations:
    problem = lower(program, program.goals[0])
    engine = Engine(problem, Budget(), batch)
    finals = list(engine.solutions()) if engine.prepare() else []
    return derivations(problem, finals, engine.shared)


def as_tuples(choices: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in choices.tolist()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [64, 1 << 20])
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_the_first_fills_in_order(first: int, batch: int) -> None:
    """All of them, however many are asked for; small batches make several graphs."""
    seen, count = 0, rounds(100)
    for seed in range(first, first + count):
        program = sketch(seeded(seed))
        wanted = all_fills(program, program.goals[0])
        found = found_by_search(program, batch)
        assert found.count() == len(wanted)
        for limit in (1, 2, 3, len(wanted) // 2, len(wanted) - 1):
            if 0 < limit < len(wanted):
                assert as_tuples(found.first(limit, UNLIMITED)) == wanted[:limit]
                seen += 1
        assert as_tuples(found.first(len(wanted), UNLIMITED)) == wanted
    assert seen > count // 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_every_fill_comes_in_order(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with keys that are sorted instead of computed."""
    monkeypatch.setattr(module, "EXACT", 3)
    for seed in range(first, first + rounds(100)):
        program = sketch(seeded(seed))
        wanted = all_fills(program, program.goals[0])
        found = found_by_search(program)
        assert found.count() == len(wanted)
        if wanted and program.holes:
            assert list(islice(found._in_order(UNLIMITED), len(wanted) + 1)) == wanted


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_the_cheapest_fills(first: int) -> None:
    for seed in range(first, first + rounds(100)):
        program = sketch(seeded(seed))
        fills = all_fills(program, program.goals[0])
        prices = random.Random(seed)
        table: dict[tuple[int, int], int] = {}

        def price(hole: int, choice: int, table: Any = table, prices: Any = prices) -> int:
            return table.setdefault((hole, choice), prices.randrange(4))

        found = found_by_search(program).cheapest(price)
        total = {f: sum(price(h, c) for h, c in zip(program.holes, f, strict=True)) for f in fills}
        best = [fill for fill in fills if total[fill] == min(total.values())]
        assert found.count() == len(best)
        assert as_tuples(found.first(len(best), UNLIMITED)) == best
        assert as_tuples(found.first(1, UNLIMITED)) == best[:1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, 200, 100))
def test_the_best_fill_is_the_best_of_all(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though only a few can be listed. Here a choice costs as many operations as its number."""

    def price(_: Prices, fill: dict[int, int]) -> tuple[int, int]:
        return sum(choice % 3 for choice in fill.values()), 0

    monkeypatch.setattr(solve, "LIST_AT_MOST", 2)
    monkeypatch.setattr(Prices, "of", price)
    several = 0
    for seed in range(first, first + 100):
        program = sketch(seeded(seed))
        wanted = all_fills(program, program.goals[0])
        if len(wanted) > 2:
            result = synthesize(program, mode="best")
            fill = tuple(result.fills.choices[0].tolist())
            least = min(sum(c % 3 for c in other) for other in wanted)
            assert fill == next(w for w in wanted if sum(c % 3 for c in w) == least)
            several += 1
    assert several > 10


def test_counts_beyond_machine_words() -> None:
    """A hundred and twenty holes of 64 choices that lead to one state."""
    origin = Origin(1, np.arange(2))
    for hole in range(120):
        origin = Origin(
            1, np.array([0, 64]), ((origin, np.zeros(64, np.int64)),), {hole: np.arange(64)}
        )
    found = Derivations(tuple(range(120)), (origin,))
    assert found.count() == 64**120
    listed = found.first(100, UNLIMITED)
    assert (listed[:, -2:] @ [64, 1]).tolist() == list(range(100))
    assert not listed[:, :-2].any()
    dearest_is_best = found.cheapest(lambda hole, choice: -choice)
    assert dearest_is_best.count() == 1
    assert as_tuples(dearest_is_best.first(1, UNLIMITED)) == [(63,) * 120]


def test_a_spent_budget_still_gives_one_fill() -> None:
    origin = Origin(1, np.array([0, 64]), (), {0: np.arange(64)})
    both = Origin(1, np.array([0, 64]), ((origin, np.zeros(64, np.int64)),), {1: np.arange(64)})
    found = Derivations((0, 1), (both,))
    spent = Budget(megabytes=1.0)
    assert as_tuples(found.first(100, spent)) == [(0, 0)]
    late = found.first(1000, Budget(seconds=0.0))
    assert 1 <= len(late) < 1000
    assert as_tuples(late) == as_tuples(found.first(len(late), UNLIMITED))
