"""Modes, budgets, interruption, order, cost and statistics."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from warploom.bench.published import published_sketch
from warploom.errors import SearchError
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided, Verdict
from warploom.sketch.build import Sketch
from warploom.sketch.front import load_text
from warploom.sketch.synth import choices
from warploom.sketch.synth.cost import cost_of
from warploom.sketch.synth.demand import Cover
from warploom.sketch.synth.expand import _covers
from warploom.sketch.synth.fills import Fills, oracle_states
from warploom.sketch.synth.problem import Move, lower, source_rows
from warploom.sketch.synth.result import raw_space, search_tree
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.subterms import subterms_of
from warploom.sketch.term.ir import Goal, Program, Symbol

ENGINES = ["default", "pairs"]


def rotations() -> Program:
    """Two rotations of four cells that undo each other: four fills out of sixteen."""
    return load_text(
        "x: [4,1] = range(0, 4)\n"
        "a: [4,1] = ?col_rots_no_group(x)\n"
        "b: [4,1] = ?col_rots_no_group(a)\n"
        "goal: [4,1] id\n"
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_modes(engine: str) -> None:
    program = rotations()
    everything = synthesize(program, engine=engine)
    assert everything.fills.count == len(everything.fills) == 4
    assert everything.verdict is Verdict.PROVED
    fills = [everything.fills.as_dict(i) for i in range(4)]
    first = synthesize(program, engine=engine, mode="first")
    assert len(first.fills) == 1
    assert first.fills.as_dict(0) in fills
    assert isinstance(first.outcome, Found)
    assert not first.outcome.complete
    assert first.stopped is None
    best = synthesize(program, engine=engine, mode="best")
    prices = [cost_of(program, fill) for fill in fills]
    assert cost_of(program, best.fills.as_dict(0)) == min(prices)
    assert best.fills.as_dict(0) == fills[prices.index(min(prices))]


def test_a_program_is_not_kept_alive_by_its_prices() -> None:
    program = rotations()
    synthesize(program, mode="best")
    cost_of(program, dict.fromkeys(program.holes, 0))
    left = weakref.ref(program.steps[program.holes[0]].gathers)  # type: ignore[union-attr]
    del program
    gc.collect()
    assert left() is None


def test_the_best_fill_does_nothing_where_that_is_right() -> None:
    best = synthesize(rotations(), mode="best")
    assert best.described(0) == {"a": "id", "b": "id"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_closed_program_is_only_checked(engine: str) -> None:
    right = load_text("x: [2] = [0, 1]\ny: [2] = identity(x)\ngoal: [2] = [0, 1]\n")
    result = synthesize(right, engine=engine)
    assert result.fills.count == 1
    assert result.fills.as_dict(0) == {}
    assert result.stats.factor is None
    wrong = load_text("x: [2] = [0, 1]\ny: [2] = identity(x)\ngoal: [2] = [1, 0]\n")
    assert isinstance(synthesize(wrong, engine=engine).outcome, Impossible)


@pytest.mark.parametrize("engine", ENGINES)
def test_holes_that_nothing_depends_on_take_every_choice(engine: str) -> None:
    program = load_text(
        "x: [3,1] = range(0, 3)\n"
        "dead: [3,1] = ?col_rots_no_group(x)\n"
        "y: [3,1] = ?col_rots_no_group(x)\n"
        "goal: [3,1] id\n"
    )
    result = synthesize(program, engine=engine)
    assert result.fills.choices.tolist() == [[0, 0], [1, 0], [2, 0]]
    assert result.verdict is Verdict.PROVED


@pytest.mark.parametrize("engine", ENGINES)
def test_a_spent_budget_is_never_no(engine: str) -> None:
    program = load_text(published_sketch("trove-8x3"))
    for seconds in (0.0, 0.001, 0.01, 0.03):
        result = synthesize(program, engine=engine, budget=Budget(seconds=seconds))
        assert not isinstance(result.outcome, Impossible)
        if not result.complete:
            assert result.stopped is Reason.SECONDS
        assert all(v.verdict is Verdict.PROVED for v in result.verdicts)
    spent = synthesize(program, engine=engine, budget=Budget(seconds=0.0))
    assert isinstance(spent.outcome, Undecided)
    assert spent.stats.oracle is None
    assert spent.stats.factor is None


def test_a_spent_memory_budget_is_undecided() -> None:
    program = load_text(published_sketch("trove-8x3"))
    result = synthesize(program, budget=Budget(megabytes=1.0))
    assert isinstance(result.outcome, Undecided)
    assert result.stopped is Reason.MEMORY


class Interrupt:
    """Presses Ctrl-C at the n-th report."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, name: str, states: int) -> None:
        assert name
        assert states >= 0
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def three_rotations() -> Program:
    """Three that together do nothing: sixteen fills out of sixty-four."""
    return load_text(
        "x: [4,1] = range(0, 4)\n"
        "a: [4,1] = ?col_rots_no_group(x)\n"
        "b: [4,1] = ?col_rots_no_group(a)\n"
        "c: [4,1] = ?col_rots_no_group(b)\n"
        "goal: [4,1] id\n"
    )


def summed_rotations() -> Program:
    """Fixed steps after the holes: every fill gives the same sum."""
    return load_text(
        "x: [4,1] = range(0, 4)\n"
        "a: [4,1] = ?col_rots_no_group(x)\n"
        "b: [4,1] = ?col_rots_no_group(a)\n"
        "c: [1,4] = + reshape(b)\n"
        "goal: [1] = fold [[0, 1, 2, 3]]\n"
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", [three_rotations(), summed_rotations()])
def test_ctrl_c_keeps_what_was_found(
    engine: str, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "EXPAND_AT_ONCE", 2)  # so that it can be pressed in between
    whole = synthesize(program, engine=engine).fills.choices.tolist()
    kept = []
    for after in range(400):
        result = synthesize(program, engine=engine, on_progress=Interrupt(after))
        found = result.fills.choices.tolist()
        assert all(fill in whole for fill in found)
        assert not isinstance(result.outcome, Impossible)
        if result.complete:
            break
        assert result.stopped is Reason.INTERRUPTED
        kept.append(len(found))
    assert result.complete
    assert kept == sorted(kept)
    assert kept[0] == 0
    assert kept[-1] > 0


def test_unknown_modes_and_engines() -> None:
    with pytest.raises(SearchError, match="unknown"):
        synthesize(rotations(), mode="some")
    with pytest.raises(SearchError, match="unknown"):
        synthesize(rotations(), engine="magic")


def test_a_goal_of_another_shape() -> None:
    program = rotations()
    goal = Goal((2, 2), tuple(Symbol(i) for i in range(4)))
    with pytest.raises(SearchError, match="shape"):
        lower(program, goal)


def test_each_goal_has_its_own_fills() -> None:
    text = "x: [3,1] = range(0, 3)\ny: [3,1] = ?col_rots_no_group(x)\n"
    program = load_text(
        text + "goal: [3,1] id\ngoal: [3,1] = [[1], [2], [0]]\ngoal: [3,1] = [[1], [0], [2]]\n"
    )
    counts = [synthesize(program, goal).fills.count for goal in range(3)]
    assert counts == [1, 1, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_order_is_lexicographic_and_the_same_on_every_run(engine: str) -> None:
    program = load_text(published_sketch("useless-var-test"))
    runs = [synthesize(program, engine=engine) for _ in range(2)]
    fills = [run.fills.choices.tolist() for run in runs]
    assert fills[0] == fills[1] == sorted(fills[0])
    assert runs[0].stats.states == runs[1].stats.states
    assert [h.pruned for h in runs[0].stats.holes] == [h.pruned for h in runs[1].stats.holes]


# -- statistics ------------------------------------------------------------------------------------


def test_tree_and_space() -> None:
    assert search_tree([3, 4, 2]) == 3 + 12 + 24
    assert raw_space([3, 4, 2]) == 24
    assert search_tree([]) == 0
    assert raw_space([]) == 1


def test_oracle_by_hand() -> None:
    """Fills 0-1-0, 0-2-1 and 2-1-1 of holes with 3, 4 and 2 choices.

    The oracle looks at 3 choices first, at 4 after each of the prefixes 0 and 2, and at 2 after
    each of 01, 02 and 21.
    """
    fills = Fills((1, 2, 3), 3, np.array([[0, 1, 0], [0, 2, 1], [2, 1, 1]]))
    assert oracle_states(fills, [3, 4, 2]) == 3 + 2 * 4 + 3 * 2
    none = Fills((1, 2, 3), 0, np.zeros((0, 3), np.int64))
    assert oracle_states(none, [3, 4, 2]) == 3


def test_factor_of_two_rotations() -> None:
    """Four fills with different first choices: an oracle visits 4 + 4 * 4, so does the search."""
    result = synthesize(rotations(), engine="pairs")
    assert result.stats.oracle == 20
    assert result.stats.states == 20
    assert result.stats.factor == 1.0
    assert result.stats.tree == 20
    assert result.stats.never_visited == 0.0
    assert [hole.options for hole in result.stats.holes] == [4, 4]
    assert result.stats.pruned == {"goal": 12}


def test_phases_add_up() -> None:
    stats = synthesize(rotations(), set_seconds=1.5).stats
    assert stats.phases["sets"] == 1.5
    assert {"prepare", "search", "verify"} <= set(stats.phases)
    assert stats.cpu_seconds >= 1.5
    assert stats.seconds >= 1.5
    assert stats.peak_mb > 1


# -- found by the random tests ---------------------------------------------------------------------


def test_a_cover_without_slots_is_met_by_nothing() -> None:
    domain = subterms_of(Goal((2,), (Symbol(0), Symbol(1))))
    cover = Cover(np.zeros(0, np.int64), domain.bits_of([2]))
    assert _covers(domain, cover, np.zeros((3, 0), np.int32)).tolist() == [False] * 3


def test_no_state_of_one_argument_means_no_source() -> None:
    s = Sketch("sources")
    x, y = s.input("x", 2), s.input("y", 2)
    s.apply("stack", x, y)
    s.goal(lambda x, y: [[x[0], y[0]], [x[1], y[1]]])
    program = s.program()
    problem = lower(program, program.goals[0])
    move = problem.steps[2]
    assert isinstance(move, Move)
    values = {0: np.zeros((0, 2), np.int32), 1: np.zeros((1, 2), np.int32)}
    assert source_rows(move, values).shape == (0, 6)
