"""The exact search over linear layouts against all of them, counted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.layout.brute import small_machine
from bench.common.layout.compared import compare_all, compare_linear, compare_vectors
from bench.common.layout.complements import WITHOUT, count_without

from warploom.errors import CheckError
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.solver.task import Task


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


@pytest.mark.parametrize(("bits", "dimension"), [case for case in WITHOUT if case[0] < 5])
def test_triples_without_a_common_complement(bits: int, dimension: int) -> None:
    assert count_without(bits, dimension) == WITHOUT[bits, dimension]


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "dimension"), [case for case in WITHOUT if case[0] == 5])
def test_triples_of_five_bits(bits: int, dimension: int) -> None:
    assert count_without(bits, dimension) == WITHOUT[bits, dimension]
