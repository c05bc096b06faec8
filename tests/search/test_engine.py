"""What all engines share: budgets, progress, interruption, outcomes, statistics, records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import answer
from tests.search.nest import order_space
from tests.search.spaces import random_space
from tests.search.test_toys import queens

from warploom.errors import CheckError, SearchError
from warploom.search.branching.bound import minimise
from warploom.search.branching.candidate import Candidates, Decision, decision, joined
from warploom.search.branching.decided import (
    decision_from,
    decision_record,
    decisions_of,
    independent,
)
from warploom.search.branching.descent import (
    Sampling,
    descended,
    descents,
    sample,
    seeds,
    weighted_descents,
)
from warploom.search.branching.problem import SpaceProblem, children, in_order
from warploom.search.branching.tree import count_all, enumerate_all
from warploom.search.budget import Budget
from warploom.search.engine import Progress, Watch, run
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.search.outcome_json import outcome_record, statistics_record
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space


@pytest.fixture(scope="module")
def orders() -> SpaceProblem:
    return SpaceProblem(Propagator(order_space(4, 1)[0]))


def impossible() -> SpaceProblem:
    space = Space("impossible")
    things = space.objects("things", "ab")
    kind = space.boolean("kind", things)
    a, b = things.each("a", "b")
    space.require(kind(a).ne(kind(b)))
    space.require(kind(a).is_("TRUE"))
    return SpaceProblem(Propagator(space))


# -- budgets and interruption ----------------------------------------------------------------------


def test_a_spent_budget_is_not_a_no(orders: SpaceProblem) -> None:
    result = count_all(orders, Budget(seconds=0))
    assert result.outcome == Undecided(Reason.SECONDS)
    assert minimise(_costed(orders), Budget(seconds=0)).outcome == Undecided(Reason.SECONDS)
    assert sample(Sampling(orders, 5), Budget(seconds=0)).outcome == Undecided(Reason.SECONDS)
    assert sample(Sampling(orders, 5), Budget(megabytes=1)).outcome == Undecided(Reason.MEMORY)


def _costed(problem: SpaceProblem) -> SpaceProblem:
    return SpaceProblem(
        problem.propagator, cost=lambda found: found.domains.sum(axis=1).astype(float)
    )


class Interrupt:
    """Presses Ctrl-C after some reports."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, progress: Progress) -> None:
        self.after -= 1
        if self.after < 0:
            raise KeyboardInterrupt


def test_an_interrupted_search_keeps_what_it_found(orders: SpaceProblem) -> None:
    whole = answer(count_all(orders).outcome)
    result = count_all(orders, on_progress=Interrupt(8))
    assert isinstance(result.outcome, Found)
    assert 0 < result.outcome.answer < whole
    assert (result.outcome.complete, result.outcome.stopped) == (False, Reason.INTERRUPTED)
    best = minimise(_costed(orders), on_progress=Interrupt(12)).outcome
    assert isinstance(best, Found)
    assert not best.complete


def test_lack_of_memory_is_caught() -> None:
    def engine(problem: int, watch: Watch) -> Iterator[int]:
        yield problem
        raise MemoryError

    assert run(engine, 7).outcome == Found((7,), complete=False, stopped=Reason.MEMORY)


def test_asking_for_some_is_not_being_stopped() -> None:
    def engine(problem: int, watch: Watch) -> Iterator[int]:
        yield from range(problem)

    assert run(engine, 3, most=2).outcome == Found((0, 1), complete=False, stopped=None)
    assert run(engine, 3).outcome == Found((0, 1, 2), complete=True)
    assert run(engine, 0).outcome == Impossible()


def test_every_engine_says_impossible() -> None:
    problem = impossible()
    assert count_all(problem).outcome == Impossible()
    assert enumerate_all(problem).outcome == Impossible()
    assert minimise(_costed(problem)).outcome == Impossible()
    assert sample(Sampling(problem, 3)).outcome == Impossible()
    assert not len(weighted_descents(problem, 3, np.random.default_rng(0)).leaves)


def test_dead_ends_prove_nothing() -> None:
    """No solution, but propagation does not see it: three things, two values, all different."""
    space = Space("pigeons")
    things = space.objects("things", "abc")
    kind = space.choice("kind", things, values="LEFT RIGHT")
    a, b = things.each("a", "b")
    space.require(kind(a).ne(kind(b)))
    problem = SpaceProblem(Propagator(space))
    assert len(problem.propagator.root()) == 1
    result = sample(Sampling(problem, 3, most_descents=5))
    assert result.outcome == Undecided(Reason.DEAD_ENDS)
    assert count_all(problem).outcome == Impossible()
    found = weighted_descents(problem, 4, np.random.default_rng(0))
    assert not found.arrived.any()
    assert not np.any(found.estimate)


def test_progress_is_reported(orders: SpaceProblem) -> None:
    seen: list[Progress] = []
    result = count_all(orders, on_progress=seen.append)
    assert seen[-1].states <= result.statistics.states
    assert [each.states for each in seen] == sorted(each.states for each in seen)
    assert seen[-1].found > 0
    assert {each.phase for each in seen} == {"enumerate"}
    minimise(_costed(orders), on_progress=seen.append)
    assert seen[-1].best is not None


def test_the_tally_adds_up(orders: SpaceProblem) -> None:
    problem = SpaceProblem(Propagator(queens(6)[0]))
    statistics = count_all(problem).statistics
    tally = statistics.tallies["candidates"]
    assert tally.visited == tally.kept + sum(tally.pruned.values())
    assert statistics.states == tally.visited
    assert statistics.cpu_seconds >= statistics.phases["search"] >= 0


def test_branch_and_bound_needs_a_cost(orders: SpaceProblem) -> None:
    with pytest.raises(SearchError, match="cost"):
        minimise(orders)


@pytest.mark.parametrize("seed", range(6))
def test_branch_and_bound_finds_the_cheapest(orders: SpaceProblem, seed: int) -> None:
    """Every value has a price; a domain costs at least its cheapest value."""
    prices = np.random.default_rng(seed).random((orders.propagator.choices, 5))

    def least(candidates: Candidates) -> np.ndarray:
        held = candidates.domains[:, :-1, None] >> np.arange(5, dtype=np.uint64) & np.uint64(1)
        return np.where(held == 1, prices, np.inf).min(axis=2).sum(axis=1)

    leaves = answer(enumerate_all(orders).outcome)
    every = joined(leaves)
    problem = SpaceProblem(orders.propagator, bound=least, cost=least)
    result = minimise(problem)
    assert isinstance(result.outcome, Found)
    assert result.outcome.answer.cost == least(every).min()
    assert result.outcome.complete
    assert result.statistics.pruned["bound"] > 0
    assert result.statistics.states < len(every)


def test_what_cannot_be_had_is_still_found(orders: SpaceProblem) -> None:
    """Infinite costs and bounds are no proof that there is nothing."""
    endless = SpaceProblem(
        orders.propagator,
        bound=lambda found: np.full(len(found), np.inf),
        cost=lambda found: np.full(len(found), np.inf),
    )
    outcome = minimise(endless).outcome
    assert isinstance(outcome, Found)
    assert outcome.answer.cost == np.inf


@pytest.mark.parametrize("name", ["bound", "cost"])
def test_costs_and_bounds_are_numbers(orders: SpaceProblem, name: str) -> None:
    for wrong in (
        lambda found: np.full(len(found), np.nan),
        lambda found: np.zeros(1 + len(found)),
    ):
        measures: dict[str, Any] = {
            "bound": None,
            "cost": lambda found: np.zeros(len(found)),
            name: wrong,
        }
        with pytest.raises(SearchError, match=f"{name} of a candidate"):
            minimise(SpaceProblem(orders.propagator, **measures))


# -- descents --------------------------------------------------------------------------------------


def test_descents_reach_solutions_and_are_repeatable(orders: SpaceProblem) -> None:
    found = descents(orders, 20, np.random.default_rng(5))
    again = descents(orders, 20, np.random.default_rng(5))
    assert found.arrived.all()
    assert (found.leaves.domains == again.leaves.domains).all()
    assert orders.propagator.is_decided(found.leaves).all()
    assert (found.decisions > 0).all()


def test_a_descent_does_not_depend_on_those_beside_it(orders: SpaceProblem) -> None:
    """Ten together end where they end in three parts, which others may do."""
    seed, root = seeds(10, np.random.default_rng(3)), orders.propagator.root()
    starts = root.take(np.zeros(10, np.int64))
    whole = descended(orders, starts.take(slice(None)), seed, None, Watch())
    parts = [
        descended(orders, starts.take(rows), seed[rows], None, Watch())
        for rows in (slice(0, 1), slice(1, 6), slice(6, 10))
    ]
    assert (joined([each.leaves for each in parts]).domains == whole.leaves.domains).all()
    assert len({row.tobytes() for row in whole.leaves.domains}) > 5
    assert np.concatenate([each.decisions for each in parts]).tolist() == whole.decisions.tolist()


def test_knuths_estimate_is_right_on_average() -> None:
    problem = SpaceProblem(Propagator(order_space(3, 1)[0]))
    found = weighted_descents(problem, 3000, np.random.default_rng(1))
    assert found.estimate is not None
    error = found.estimate.std() / math.sqrt(3000)
    assert abs(found.estimate.mean() - 273) < 4 * error < 30


@pytest.mark.parametrize("walk", [descents, weighted_descents])
def test_children_are_equally_likely(walk: Callable[..., Any]) -> None:
    """Three values of which one is dead at the second look: the others come half of the time."""
    space = Space("draw")
    things = space.objects("things", "abc")
    kind = space.choice("kind", things, values="X Y Z")
    a, b = things.each("a", "b")
    space.require(kind(a).ne(kind(b)) | kind(a).is_("X", "Y"))
    space.require(kind(a).is_not("Z") | kind(b).is_not("X", "Y") | kind(b).is_("Z"))
    propagator = Propagator(space)
    first = walk(SpaceProblem(propagator), 4000, np.random.default_rng(7)).leaves.domains[:, 0]
    shares = [(first == bit).mean() for bit in (1, 2, 4)]
    assert shares[2] == 0
    assert all(abs(share - 0.5) < 0.05 for share in shares[:2])


def test_weights_steer_descents() -> None:
    space = Space("weights")
    things = space.objects("things", "a")
    space.choice("kind", things, values="X Y Z")
    problem = SpaceProblem(Propagator(space))

    def weigh(candidates: Candidates) -> np.ndarray:
        return np.select([candidates.domains[:, 0] == bit for bit in (1, 2, 4)], [0.0, 1.0, 3.0])

    leaves = weighted_descents(problem, 4000, np.random.default_rng(2), weigh).leaves
    shares = [(leaves.domains[:, 0] == bit).mean() for bit in (1, 2, 4)]
    assert shares[0] == 0
    assert abs(shares[2] - 0.75) < 0.04
    nothing = weighted_descents(
        problem, 3, np.random.default_rng(2), lambda found: np.zeros(len(found))
    )
    assert not nothing.arrived.any()


def test_samples_are_solutions_and_never_complete(orders: SpaceProblem) -> None:
    result = sample(Sampling(orders, 100, seed=1))
    assert isinstance(result.outcome, Found)
    assert not result.outcome.complete
    assert len(joined(result.outcome.answer)) == 100


def test_the_order_of_branching_is_the_users() -> None:
    space = Space("two")
    things = space.objects("things", "ab")
    first, second = (space.boolean(name, things) for name in ("first", "second"))
    derived = space.boolean("derived", things, derived=True)
    propagator = Propagator(space)
    root = propagator.root()
    start = {choice: propagator.columns(choice).start for choice in (first, second, derived)}
    assert in_order(propagator)(root)[0] == start[first]
    assert in_order(propagator, [second])(root)[0] == start[second]
    assert in_order(propagator, [derived])(root)[0] == start[derived]
    decided = propagator.root(
        [decision(c, (item,), "TRUE") for c in (first, second) for item in "ab"]
    )
    assert in_order(propagator)(decided)[0] == start[derived]


# -- records ---------------------------------------------------------------------------------------


def test_results_are_plain_data(orders: SpaceProblem) -> None:
    result = count_all(orders)
    record = {**outcome_record(result.outcome), **statistics_record(result.statistics)}
    assert json.loads(json.dumps(record)) == record
    assert (record["outcome"], record["complete"], record["stopped"]) == ("found", True, None)
    assert outcome_record(Impossible()) == {
        "outcome": "impossible",
        "complete": True,
        "stopped": None,
    }
    assert outcome_record(Undecided(Reason.SECONDS)) == {
        "outcome": "undecided",
        "complete": False,
        "stopped": "time budget spent",
    }


def test_a_candidate_is_made_again_from_its_record() -> None:
    """Also a partial one."""
    for seed in range(12):
        problem = SpaceProblem(Propagator(random_space(seed, 500)))
        leaves = descents(problem, 3, np.random.default_rng(seed))
        found = leaves.leaves.take(leaves.arrived)
        root = problem.propagator.root()
        if len(root) and (position := problem.brancher(root)[0]) >= 0:
            made = children(problem, root, np.array([position]), Watch()).candidates
            found = joined([found, made])
        for row in range(len(found)):
            decisions = decisions_of(problem.propagator, found, row)
            text = json.dumps([decision_record(each) for each in decisions])
            again = problem.propagator.root([decision_from(each) for each in json.loads(text)])
            assert (again.domains == found.domains[row]).all()
            few = independent(problem.propagator, decisions)
            assert len(few) <= len(decisions)
            assert (problem.propagator.root(few).domains == found.domains[row]).all()


@pytest.mark.parametrize(
    "record",
    [{}, {"choice": "a"}, {"choice": 1, "objects": [], "values": []}, [],
     {"choice": "a", "objects": [1], "values": []}, {"choice": "a", "objects": [], "values": [[]]},
     {"choice": "a", "objects": 3, "values": []}, {"choice": "a", "objects": [], "values": None}],
)  # fmt: skip
def test_other_records_are_refused(record: Any) -> None:
    with pytest.raises(CheckError, match="record of a decision"):
        decision_from(record)


def test_decisions_are_checked_by_name(orders: SpaceProblem) -> None:
    propagator = orders.propagator
    for wrong in (
        Decision("ordre", ("d0", "d1"), ("BEFORE",)),
        Decision("order", ("d0", "d9"), ("BEFORE",)),
        Decision("order", ("d0", "d1"), ("SIDEWAYS",)),
        Decision("order", ("d0", "d0"), ("BEFORE",)),
        Decision("order", ("d0",), ("BEFORE",)),
    ):
        with pytest.raises(CheckError):
            propagator.root([wrong])
    assert str(Decision("order", ("a", "b"), ("X", "Y"))) == "order(a, b) = X or Y"


def test_contradictions_are_named() -> None:
    space, order = order_space(3, 0)
    propagator = Propagator(space)
    free = decision(order, ("d0", "d1"), "BEFORE", "AFTER")
    first = decision(order, ("d0", "d1"), "BEFORE")
    second = decision(order, ("d1", "d2"), "BEFORE")
    third = decision(order, ("d2", "d0"), "BEFORE")
    assert propagator.conflict([free, first, second]) == ()
    assert propagator.conflict([free, first, second, third]) == (first, second, third)
    assert not len(propagator.root([first, second, third]))


def test_a_decision_is_seen_from_both_sides() -> None:
    space, order = order_space(2, 0)
    propagator = Propagator(space)
    root = propagator.root([decision(order, ("d1", "d0"), "INNER", "BEFORE")])
    assert set(propagator.domain(root, 0, order, "d1", "d0").values) == {"INNER", "BEFORE"}
    assert set(propagator.domain(root, 0, order, "d0", "d1").values) == {"OUTER", "AFTER"}
