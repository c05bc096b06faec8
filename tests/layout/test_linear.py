"""The exact search over linear layouts against all of them, counted one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from tests.layout.brute import (
    bank_maps,
    bijections,
    every_map,
    least_cost,
    least_of_all,
    random_problem,
    random_vectors,
)

from warploom.layout.columns import ColumnSearch
from warploom.layout.demand import Demand, Demands
from warploom.layout.frame import Frame, Free
from warploom.layout.solve import solve
from warploom.layout.subspace import Span, elements
from warploom.layout.task import Task
from warploom.search.budget import Budget
from warploom.search.engine import Watch
from warploom.search.outcome import Found, Impossible


def compare(count: int, seed: int, most_bits: int) -> None:
    random = np.random.default_rng(seed)
    met = 0
    for _ in range(count):
        banks, bits = int(random.choice([4, 8])), int(random.integers(2, most_bits + 1))
        if bits == 6 and banks == 8 and random.random() < 0.9:
            banks = 4
        problem = random_problem(random, bits, banks, affine=0.8)
        worst = bool(random.random() < 0.3)
        task = Task(problem, worst=worst)
        solved = solve(task, "xor")
        bank_bits = banks.bit_length() - 1
        wanted = least_cost(problem, bank_maps(bits, bank_bits), worst)
        assert solved.best is not None
        assert solved.best.cost == solved.least == wanted
        assert isinstance(solved.outcome, Found) == (wanted == task.least)
        met += wanted == task.least
    assert 0 < met < count


def test_some_random_problems_of_words() -> None:
    compare(10, seed=1, most_bits=4)


@pytest.mark.slow
def test_two_thousand_random_problems_of_words() -> None:
    compare(2000, seed=2, most_bits=6)


def compare_all(numbers: Iterable[int], most_bits: int, seconds: float) -> Counter[str]:
    """Every layout whatever: the solver beside a model of our own, and beside all of them where
    they are few. A number is the seed of a problem."""
    seen = Counter[str]()
    for number in numbers:
        random = np.random.default_rng((9, number))
        banks, bits = int(random.choice([4, 8])), int(random.integers(2, most_bits + 1))
        problem = random_problem(random, bits, banks, affine=0.8)
        solved = solve(Task(problem), "any", Budget(seconds=seconds))
        assert solved.best is not None
        lies = Task(problem).addresses(solved.best.map)
        assert least_cost(problem, lies[None]) == solved.best.cost
        if bits <= 3 and banks == 4:
            seen["all counted"] += 1
            assert least_cost(problem, every_map(1 << bits, banks)) == solved.best.cost, number
        wanted = least_of_all(problem, seconds)
        done = "proved" if solved.proved else "open"
        seen[f"{done}, {'the model finished' if wanted is not None else 'the model did not'}"] += 1
        if wanted is not None:
            assert solved.best.cost >= wanted, number
            assert not solved.proved or solved.best.cost == wanted, number
    return seen


@pytest.mark.slow
def test_every_layout_whatever() -> None:
    pytest.importorskip("ortools", reason="ortools is not installed: extra cp")
    seen = compare_all(range(100), most_bits=4, seconds=10)
    assert seen["all counted"]
    assert seen["proved, the model finished"] > 90


def compare_vectors(count: int, seed: int) -> None:
    """Also elements smaller and larger than a word, and vectors."""
    random = np.random.default_rng(seed)
    torn = 0
    for _ in range(count):
        problem = random_vectors(random)
        wanted = least_cost(problem, bijections(4))
        task = Task(problem)
        solved = solve(task, "xor")
        if wanted is None:
            torn += 1
            assert isinstance(solved.outcome, Impossible)
            assert solved.best is None
        else:
            assert solved.best is not None
            assert solved.best.cost == solved.least == wanted, problem
    assert torn < count


def test_some_vectors_and_elements_of_other_sizes() -> None:
    compare_vectors(6, seed=3)


@pytest.mark.slow
def test_many_vectors_and_elements_of_other_sizes() -> None:
    compare_vectors(600, seed=4)


# -- common complements ----------------------------------------------------------------------------


def subspaces(bits: int, dimension: int) -> list[tuple[int, ...]]:
    found = {}
    for vectors in combinations(range(1, 1 << bits), dimension):
        span = Span(vectors)
        if len(span) == dimension:
            found.setdefault(tuple(sorted(elements(span.basis).tolist())), tuple(span.basis))
    return list(found.values())


def have_common_complement(bits: int, some: tuple[tuple[int, ...], ...]) -> bool:
    """A kernel that meets none of the subspaces: as many banks as the subspaces have points."""
    dimension = len(some[0])
    frame = Frame(bits, 0, dimension, (), tuple(Free(1 << b, 0) for b in range(bits)), ())
    demands = [
        Demand(number, tuple(elements(basis).tolist()), basis, 1, 1)
        for number, basis in enumerate(some)
    ]
    search = ColumnSearch(Demands(frame, tuple(demands), 1), Watch(), len(some) + 1)
    search.run()
    return search.best is not None


# Triples of subspaces without a common complement, by bits and dimension.
WITHOUT = {
    (2, 1): 1, (3, 1): 7, (3, 2): 7, (4, 1): 35, (4, 2): 105, (4, 3): 35,
    (5, 1): 155, (5, 2): 1085, (5, 3): 1085, (5, 4): 155,
}  # fmt: skip


def count_without(bits: int, dimension: int) -> int:
    """All subspaces of a dimension are alike: a triple is counted by each of its three."""
    first, *rest = subspaces(bits, dimension)
    assert all(have_common_complement(bits, (first, other)) for other in rest)
    bad = sum(not have_common_complement(bits, (first, *two)) for two in combinations(rest, 2))
    total = (len(rest) + 1) * bad
    assert total % 3 == 0
    return total // 3


@pytest.mark.parametrize(("bits", "dimension"), [case for case in WITHOUT if case[0] < 5])
def test_triples_without_a_common_complement(bits: int, dimension: int) -> None:
    assert count_without(bits, dimension) == WITHOUT[bits, dimension]


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "dimension"), [case for case in WITHOUT if case[0] == 5])
def test_triples_of_five_bits(bits: int, dimension: int) -> None:
    assert count_without(bits, dimension) == WITHOUT[bits, dimension]
