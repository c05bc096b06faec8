"""The exact search over linear layouts against all of them, counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.layout.brute import small_machine
from tests.layout.compared import compare_all, compare_linear, compare_vectors

from warploom.errors import CheckError
from warploom.layout.access import Access, Problem
from warploom.layout.columns import ColumnSearch
from warploom.layout.demand import Demand, Demands
from warploom.layout.frame import Frame, Free
from warploom.layout.subspace import Span, elements
from warploom.layout.task import Task
from warploom.search.engine import Watch


def test_some_random_problems_of_words() -> None:
    seen = compare_linear(range(10), most_bits=4)
    assert set(seen) == {"met", "not met"}


@pytest.mark.slow
def test_two_thousand_random_problems_of_words() -> None:
    seen = compare_linear(range(2000), most_bits=6)
    assert set(seen) == {"met", "not met"}


@pytest.mark.slow
def test_every_layout_whatever() -> None:
    pytest.importorskip("ortools", reason="ortools is not installed: extra cp")
    seen = compare_all(range(100), most_bits=4, seconds=10)
    assert seen["all counted"]
    assert seen["proved, the model finished"] > 90


def test_some_vectors_and_elements_of_other_sizes() -> None:
    # Of number 50 every access alone can be aligned, and all of them by one offset cannot.
    assert compare_vectors([*range(5), 50])["whole"]


def test_vectors_wider_than_all_banks_are_refused() -> None:
    vectors = Access("wide", np.arange(16).reshape(1, 4, 4), "ld")
    with pytest.raises(CheckError, match="wider than all banks together"):
        Task(Problem("wide", (16,), 4, (vectors,), small_machine(4, 2)))


@pytest.mark.slow
def test_many_vectors_and_elements_of_other_sizes() -> None:
    assert compare_vectors(range(600))["whole"]


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
