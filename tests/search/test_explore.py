"""Searches in which a cost has to be measured: what they find, and what they never look at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from warploom.search.branching.candidate import Candidates
from warploom.search.branching.explore import (
    Exploration,
    explore,
    random_improvements,
    tree_improvements,
)
from warploom.search.branching.problem import SpaceProblem
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space

ENGINES = {"random": random_improvements, "tree": tree_improvements}


class Tour:
    """Places in some order: the cost is the length of the way, the bound what is decided of it."""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.count = count
        space = self.space = Space("tour")
        places = space.objects("places", [f"p{n}" for n in range(count)])
        at = self.at = space.integer("at", places, values=list(range(count)))
        a, b = places.each("a", "b")
        space.require(at(a).ne(at(b)))
        self.propagator = Propagator(space)
        point = np.random.default_rng(seed).random((count, 2))
        self.distance = np.hypot(*(point[:, None] - point).transpose(2, 0, 1))
        self.measured: list[bytes] = []

    def cost(self, leaves: Candidates) -> np.ndarray:
        self.measured += [leaves.domains[row].tobytes() for row in range(len(leaves))]
        return self.length(leaves)

    def length(self, candidates: Candidates) -> np.ndarray:
        """Of the ways between places whose numbers follow each other, as far as they are known."""
        domains = candidates.domains[:, : self.count]
        known = (domains & (domains - np.uint64(1))) == 0
        number = np.where(known, np.log2(domains.astype(float)), -9 - 9 * np.arange(self.count))
        follows = number[:, None, :] - number[:, :, None] == 1
        return (follows * self.distance).sum(axis=(1, 2))

    def exploration(self, evaluations: int, **more: Any) -> Exploration:
        problem = SpaceProblem(self.propagator, bound=self.length)
        return Exploration(problem, self.cost, evaluations, **more)

    def best(self) -> float:
        """By the places that a way has been to, as bits, and the last of them."""
        shortest = {(1 << n, n): 0.0 for n in range(self.count)}
        for _ in range(self.count - 1):
            longer: dict[tuple[int, int], float] = {}
            for (been, last), length in shortest.items():
                for n in range(self.count):
                    if not been >> n & 1:
                        to, total = (been | 1 << n, n), length + float(self.distance[last, n])
                        longer[to] = min(total, longer.get(to, math.inf))
            shortest = longer
        return min(shortest.values())


@pytest.mark.parametrize("name", ENGINES)
def test_a_small_space_is_searched_to_its_end(name: str) -> None:
    tour = Tour(5)
    found = explore(ENGINES[name], tour.exploration(1000, batch=4)).outcome
    assert isinstance(found, Found)
    assert found.answer.cost == pytest.approx(tour.best())
    assert len(set(tour.measured)) == len(tour.measured) < math.factorial(5)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ENGINES)
def test_good_solutions_are_found_early(name: str) -> None:
    """By most seeds: a search is a draw."""
    costs = []
    for seed in range(3):
        tour = Tour(8, seed=3)
        found = explore(ENGINES[name], tour.exploration(400, batch=8, seed=seed)).outcome
        assert isinstance(found, Found)
        assert len(tour.measured) <= 400
        costs.append(found.answer.cost)
    assert np.median(costs) <= 1.15 * tour.best()


def test_nothing_beyond_the_cut_is_measured() -> None:
    tour = Tour(6, seed=2)
    cut = 1.2 * tour.best()
    found = explore(tree_improvements, tour.exploration(5000, cut=cut)).outcome
    assert isinstance(found, Found)
    assert found.answer.cost == pytest.approx(tour.best())
    assert len(tour.measured) < 100


@pytest.mark.parametrize("name", ENGINES)
def test_where_nothing_is_below_the_cut_it_is_undecided(name: str) -> None:
    tour = Tour(5)
    found = explore(ENGINES[name], tour.exploration(50, cut=tour.best() / 2)).outcome
    assert found == Undecided(Reason.EVALUATIONS)


@pytest.mark.parametrize("name", ENGINES)
def test_failed_measurements_are_no_answers(name: str) -> None:
    tour = Tour(4)
    problem = tour.exploration(30).problem
    failing = Exploration(problem, lambda leaves: np.full(len(leaves), np.inf), 30)
    assert explore(ENGINES[name], failing).outcome == Undecided(Reason.EVALUATIONS)


@pytest.mark.parametrize("name", ENGINES)
def test_impossible_spaces_and_spent_budgets(name: str) -> None:
    tour = Tour(4)
    tour.space.require(tour.at(tour.space.properties[0].one("x")) <= 2)
    tour.propagator = Propagator(tour.space)
    outcome = explore(ENGINES[name], tour.exploration(50)).outcome
    assert isinstance(outcome, Impossible | Undecided)
    spent = explore(ENGINES[name], Tour(7).exploration(10**6), Budget(seconds=0.05)).outcome
    assert isinstance(spent, Found | Undecided)
    if isinstance(spent, Found):
        assert spent.stopped is Reason.SECONDS
