"""Estimates of the sizes of spaces that can be counted."""

from __future__ import annotations

import numpy as np
import pytest
from tests.search.nest import order_space

from warploom.search.candidate import Candidates
from warploom.search.estimate import chen, knuth
from warploom.search.leaning import joined, lean, learnt, leaves_of, untaught
from warploom.search.problem import SpaceProblem
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space

ESTIMATORS = {"knuth": lambda p, r: knuth(p, 2000, r), "chen": lambda p, r: chen(p, 400, r)}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("dims", "insts", "count"), [(3, 0, 43), (2, 2, 132), (3, 2, 2052)])
def test_orders_are_estimated(name: str, dims: int, insts: int, count: int) -> None:
    problem = SpaceProblem(Propagator(order_space(dims, insts)[0]))
    found = ESTIMATORS[name](problem, np.random.default_rng(1))
    assert abs(found.leaves.value - count) <= 2 * found.leaves.error + 1e-9
    assert found.leaves.error < 0.1 * count
    assert found.dead_ends.value == 0
    assert found.nodes[0].value == 1
    assert found.nodes[1].value == pytest.approx(5 if dims > 1 else 3)


def pigeons() -> Space:
    """Three pigeons that keep apart have 6 ways in three holes and none in two, which propagation
    does not see before one of them is in."""
    space = Space("pigeons")
    season = space.choice("season", space.objects("year", ["now"]), values="WIDE NARROW")
    hole = space.choice("hole", space.objects("pigeons", "abc"), values="P Q R")
    a, b = space.properties[1].each("a", "b")
    space.require(hole(a).ne(hole(b)))
    now = space.properties[0].one("now")
    space.require(season(now).is_("WIDE") | hole(a).is_("P", "Q"))
    return space


@pytest.mark.parametrize("name", ESTIMATORS)
def test_dead_ends_are_counted(name: str) -> None:
    problem = SpaceProblem(Propagator(pigeons()))
    found = ESTIMATORS[name](problem, np.random.default_rng(2))
    assert abs(found.leaves.value - 6) <= 2 * found.leaves.error + 1e-9
    assert 0.1 < found.dead_ends.value < 0.6


def test_what_is_not_kept_does_not_count() -> None:
    space = pigeons()
    problem = SpaceProblem(Propagator(space))
    column = problem.propagator.columns(space.choices[0]).start

    def wide(candidates: Candidates, depth: int) -> np.ndarray:
        return (candidates.domains[:, column] == 1) | (depth > 1)

    found = knuth(problem, 100, np.random.default_rng(2), keep=wide)
    assert (found.leaves.value, found.leaves.error, found.dead_ends.value) == (6, 0, 0)


def test_an_impossible_space_has_no_leaf() -> None:
    space = pigeons()
    x = space.properties[1].one("x")
    space.require(space.choices[1](x).is_("P"))
    problem = SpaceProblem(Propagator(space))
    for estimator in ESTIMATORS.values():
        assert estimator(problem, np.random.default_rng(0)).leaves.value == 0


def uneven() -> Space:
    """A long row of switches, of which all but the first are open only where it is on: 1 + 2^8."""
    space = Space("uneven")
    switches = space.objects("switches", [f"s{at}" for at in range(9)])
    on = space.boolean("on", switches)
    first = space.objects("first", ["s0"]).one("first")
    other = switches.one("other")
    space.require(on(first).is_("TRUE") | on(other).is_("FALSE"))
    return space


LEANING = {
    "orders": (lambda: order_space(3, 2)[0], 2052),
    "dead ends": (pigeons, 6),
    "uneven": (uneven, 257),
}


@pytest.mark.parametrize("name", LEANING)
def test_walks_that_learn_count_the_same(name: str) -> None:
    make, count = LEANING[name]
    problem = SpaceProblem(Propagator(make()))
    table, rounds, random = untaught(problem), [], np.random.default_rng(3)
    for _ in range(4):
        rounds.append(lean(problem, 500, random, table))
        table = learnt(table, joined(rounds))
    for each in rounds:  # whatever they were told
        found = leaves_of([each])
        assert abs(found.value - count) <= 2 * found.error + 1e-9
    errors = [leaves_of([each]).error for each in rounds]
    assert errors[-1] < 1.1 * errors[0] + 1e-9
    if name == "uneven":
        assert errors[-1] < 0.3 * errors[0]


def test_nothing_is_learnt_where_there_is_nothing() -> None:
    space = pigeons()
    space.require(space.choices[1](space.properties[1].one("x")).is_("P"))
    problem = SpaceProblem(Propagator(space))
    found = lean(problem, 10, np.random.default_rng(0), untaught(problem))
    assert (leaves_of([found]).value, found.dead_ends) == (0, 1)
    assert (learnt(untaught(problem), found) == 0).all()
