"""Both engines find exactly the fills that brute force finds, in the same order."""

from __future__ import annotations

import pytest
from bench.common.sketch.brute import all_fills
from bench.common.sketch.generate import Pick, seeded, sketch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampled import rounds

from warploom.search.outcome import Found, Impossible, Verdict
from warploom.sketch.synth import (
    bounds,
    choices,
    demand,
    engine,
    expand,
    flow,
    join,
    pairs,
    problem,
    rows,
    solve,
    viability,
)
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Program
from warploom.sketch.term.verify import verify

ENGINES = (
    ("default", None, False),
    ("pairs", None, False),
    ("pairs", None, True),
    ("pairs", 1, False),
)

# Every limit of the search, so small that each is met all the time.
SMALL_LIMITS = [
    (bounds, "MAX_SWEEPS", 1),
    (bounds, "MAX_FOLD_WORDS", 6),
    (bounds, "WORDS_AT_ONCE", 3),
    (bounds, "MARKS_AT_ONCE", 20),
    (choices, "TRIE_LEVELS", 1),
    (choices, "TRIE_CHOICES", 4),
    (choices, "EXPAND_AT_ONCE", 5),
    (choices, "SCAN_AT_ONCE", 12),
    (demand, "MAX_HIT_SLOTS", 9),
    (engine, "EXPAND_AT_ONCE", 5),
    (engine, "VALUES_AT_ONCE", 16),
    (engine, "PAIRS_AT_ONCE", 30),
    (expand, "VALUES_AT_ONCE", 16),
    (expand, "AHEAD_FROM", 2),
    (expand, "AHEAD_SAMPLE", 2),
    (expand, "AHEAD_CELLS", 2),
    (expand, "AHEAD_COST", 0),
    (join, "MAX_GROUP_PAIRS", 6),
    (join, "MAX_CODE_PAIRS", 4),
    (join, "CELLS_TO_TRY", 2),
    (join, "CELLS_TO_USE", 1),
    (problem, "TABLE_AT_ONCE", 40),
    (rows, "COMPARED_AT_ONCE", 10),
    (rows, "MOST_PARTS", 2),
    (solve, "BATCH_BYTES", 64),
    (flow, "MARKS_AT_ONCE", 8),
    (flow, "WORDS_AT_ONCE", 8),
    (viability, "WORDS_AT_ONCE", 8),
    (pairs, "STATES_AT_ONCE", 30),
]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL_LIMITS:
        monkeypatch.setattr(module, name, value)


def agree(program: Program, engines: tuple[tuple[str, int | None, bool], ...] = ENGINES) -> None:
    goal = program.goals[0]
    wanted = all_fills(program, goal)
    for name, fuel, single in engines:
        result = synthesize(program, engine=name, fuel=fuel, single=single)
        assert [tuple(row) for row in result.fills.choices.tolist()] == wanted, (name, fuel, single)
        assert result.fills.count == len(wanted)
        assert result.complete
        assert isinstance(result.outcome, Found if wanted else Impossible)
        assert all(verdict.verdict is Verdict.PROVED for verdict in result.verdicts)
        assert len(result.verdicts) == len(wanted)
        assert result.stats.states >= 0
        assert 0 <= result.stats.never_visited <= 1


@pytest.mark.slow
@given(st.data())
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_drawn_sketches(data: st.DataObject) -> None:
    def pick(below: int) -> int:
        return data.draw(st.integers(0, below - 1)) if below > 1 else 0

    agree(sketch(pick))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, 200, 100))
def test_random_sketches(first: int) -> None:
    for seed in range(first, first + rounds(50)):
        agree(sketch(seeded(seed)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(1000, 1100, 50))
@pytest.mark.usefixtures("small_limits")
def test_random_sketches_with_small_limits(first: int) -> None:
    for seed in range(first, first + rounds(25)):
        agree(sketch(seeded(seed)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(2000, 2200, 100))
def test_sets_of_several_words(first: int) -> None:
    """Larger arrays, few choices: values and goal cells no longer fit one machine word."""
    for seed in range(first, first + rounds(50)):
        agree(sketch(seeded(seed), scale=16), ENGINES[:1])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 500))
def test_many_random_sketches(first: int) -> None:
    for seed in range(first, first + 500):
        agree(sketch(seeded(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 22_000, 500))
@pytest.mark.usefixtures("small_limits")
def test_many_random_sketches_with_small_limits(first: int) -> None:
    for seed in range(first, first + 500):
        agree(sketch(seeded(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30_000, 31_000, 500))
def test_many_sets_of_several_words(first: int) -> None:
    for seed in range(first, first + 500):
        agree(sketch(seeded(seed), scale=8))


def test_the_sample_has_what_it_should_have() -> None:
    """Solvable and unsolvable, folds, dead holes, values used twice, several fills, …"""
    seen: dict[str, int] = {}
    for seed in range(200):
        program = sketch(seeded(seed))
        fills = all_fills(program, program.goals[0])
        users = [arg for step in program.steps for arg in getattr(step, "args", ())]
        used = set(users)
        facts = {
            "solvable": bool(fills),
            "unsolvable": not fills,
            "several fills": len(fills) > 1,
            "fold": any(getattr(step, "fold", None) is not None for step in program.steps),
            "used twice": len(users) > len(used),
            "dead hole": any(h not in used and h < len(program.steps) - 1 for h in program.holes),
            "three holes": len(program.holes) == 3,
            "zero in the goal": any(type(v).__name__ == "Zero" for v in program.goals[0].values),
        }
        for fact, holds in facts.items():
            seen[fact] = seen.get(fact, 0) + holds
    assert min(seen.values()) >= 5, seen


@pytest.mark.parametrize("first", [0, 30])
def test_wrong_fills_are_refuted(first: int) -> None:
    """Any fill that is not in the answer is refuted, with a cell."""
    for seed in range(first, first + 30):
        program = sketch(seeded(seed))
        right = set(all_fills(program, program.goals[0]))
        pick: Pick = seeded(seed)
        for _ in range(5):
            sizes = [len(program.steps[hole].gathers) for hole in program.holes]  # type: ignore[union-attr]
            fill = tuple(pick(n) for n in sizes)
            verdict = verify(program, program.goals[0], fill)
            assert bool(verdict) == (fill in right)
            assert (verdict.cell is None) == (fill in right)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_two_runs_are_equal(seed: int) -> None:
    program = sketch(seeded(seed))
    for name in ("default", "pairs"):
        one, two = (synthesize(program, engine=name) for _ in range(2))
        assert one.fills.choices.tolist() == two.fills.choices.tolist()
        assert one.stats.holes == two.stats.holes
