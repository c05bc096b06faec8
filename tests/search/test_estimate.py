"""Estimates of the sizes of spaces that can be counted."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.loopnest.particle_estimate import leaves_of, population
from tests.search.nest import order_space

from warploom.search.branching.candidate import Candidates
from warploom.search.branching.estimate import mean_of, represented, walked
from warploom.search.branching.problem import SpaceProblem
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space

ESTIMATORS = {
    "knuth": lambda p, r: walked(p, 2000, r).estimate(),
    "chen": lambda p, r: represented(p, 400, r).estimate(),
}


@pytest.mark.sampled(3)
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

    found = walked(problem, 100, np.random.default_rng(2), keep=wide).estimate()
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


POPULATIONS = {
    "orders": (lambda: order_space(3, 2)[0], 2052),
    "dead ends": (pigeons, 6),
    "uneven": (uneven, 257),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_populations_count_the_same(name: str) -> None:
    make, count = POPULATIONS[name]
    problem = SpaceProblem(Propagator(make()))
    random = np.random.default_rng(3)
    found = leaves_of([population(problem, 100, random) for _ in range(30)])
    assert abs(found.value - count) <= 2 * found.error + 1e-9
    alone = walked(problem, 3000, random).estimate().leaves  # as many walks, each by itself
    assert found.error < 1.2 * alone.error + 1e-9


def test_a_population_that_nothing_is_left_of_stands_for_nothing() -> None:
    space = pigeons()
    space.require(space.choices[1](space.properties[1].one("x")).is_("P"))
    problem = SpaceProblem(Propagator(space))
    found = [population(problem, 10, np.random.default_rng(seed)) for seed in range(2)]
    assert leaves_of(found).value == 0


def test_the_order_in_which_walks_go_on_changes_no_mean() -> None:
    problem = SpaceProblem(Propagator(uneven()))
    last_first = np.arange(problem.propagator.choices)[::-1].copy()
    random = np.random.default_rng(5)
    found = leaves_of([population(problem, 50, random, last_first) for _ in range(40)])
    assert abs(found.value - 257) <= 2 * found.error + 1e-9


def test_what_few_values_say_of_their_mean_is_wide_enough() -> None:
    """95 of 100 means of two, five, thirteen values are where they are said to be."""
    random = np.random.default_rng(5)
    for count in (2, 5, 13, 40):
        values = random.normal(size=(4000, count))
        means = [mean_of(row) for row in values]
        within = np.mean([abs(each.value) <= each.error for each in means])
        assert 0.94 < within < 0.96, count
    assert mean_of(np.array([3.0])).error == float("inf")
