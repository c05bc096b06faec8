"""The solver beside all layouts of small random problems, each problem by its number alone: so that
any share of them can be looked at anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from bench.common.layout.brute import (
    bank_maps,
    bijections,
    every_map,
    least_cost,
    least_of_all,
    random_problem,
    random_vectors,
)

from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible


def compare_linear(numbers: Iterable[int], most_bits: int) -> Counter[str]:
    """Every linear layout: the least, and whether it meets the bound."""
    seen = Counter[str]()
    for number in numbers:
        random = np.random.default_rng((2, number))
        banks, bits = int(random.choice([4, 8])), int(random.integers(2, most_bits + 1))
        if bits == 6 and banks == 8 and random.random() < 0.9:
            banks = 4  # there are 64 times as many of the others
        problem = random_problem(random, bits, banks, affine=0.8)
        worst = bool(random.random() < 0.3)
        task = Task(problem, worst=worst)
        solved = solve(task, "xor")
        wanted = least_cost(problem, bank_maps(bits, banks.bit_length() - 1), worst)
        assert solved.best is not None, number
        assert solved.best.cost == solved.least == wanted, number
        assert isinstance(solved.outcome, Found) == (wanted == task.least), number
        seen["met" if wanted == task.least else "not met"] += 1
    return seen


def compare_vectors(numbers: Iterable[int]) -> Counter[str]:
    """The same with elements smaller and larger than a word, and vectors."""
    seen = Counter[str]()
    for number in numbers:
        problem = random_vectors(np.random.default_rng((4, number)))
        wanted = least_cost(problem, bijections(4))
        solved = solve(Task(problem), "xor")
        if wanted is None:
            assert isinstance(solved.outcome, Impossible), number
            assert solved.best is None, number
        else:
            assert solved.best is not None, number
            assert solved.best.cost == solved.least == wanted, number
        seen["torn" if wanted is None else "whole"] += 1
    return seen


def compare_all(numbers: Iterable[int], most_bits: int, seconds: float) -> Counter[str]:
    """Every layout whatever: the solver beside a model of our own, and beside all of them where
    they are few."""
    seen = Counter[str]()
    for number in numbers:
        random = np.random.default_rng((9, number))
        banks, bits = int(random.choice([4, 8])), int(random.integers(2, most_bits + 1))
        problem = random_problem(random, bits, banks, affine=0.8)
        solved = solve(Task(problem), "any", Budget(seconds=seconds))
        assert solved.best is not None, number
        lies = Task(problem).addresses(solved.best.map)
        assert least_cost(problem, lies[None]) == solved.best.cost, number
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
