"""Every layout whatever: what the colouring asks for, and what only the solver sees."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from bench.common.layout.brute import small_machine

from warploom.errors import CheckError, UnsupportedError
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.solver import colour
from warploom.layout.solver.certificate import certificate, digest
from warploom.layout.solver.colour import apart, colouring_of, crowded, rounded_down, whole_weights
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible
from warploom.trust.layout import check_layout


def loads(name: str, steps: list[list[int]], weight: float = 1.0) -> Access:
    """Words, one a lane; the lanes that are left are idle."""
    return Access(name, np.array([[[e] for e in (step + [-1] * 32)[:32]] for step in steps]), "ld",
                  weight)  # fmt: skip


def every_two_words(weight: float, times: int = 1) -> Access:
    """Of 64 words each two are wanted together at some step: 32 banks are too few."""
    blocks = [[*range(16 * b, 16 * b + 16)] for b in range(4)]
    return loads("pairs", [a + b for a, b in combinations(blocks, 2)] * times, weight)


def test_what_costs_nothing_crowds_nothing() -> None:
    """A load of weight 0 asked for the impossible, and "no layout meets the bound" was said."""
    random = Random(1)
    some = loads("some", [random.sample(range(64), 32) for _ in range(2)])
    task = Task(Problem("free", (64,), 4, (some, every_two_words(0.0))))
    colouring = colouring_of(task)
    assert colouring is not None
    assert crowded(colouring) is None
    with_weight = colouring_of(Task(Problem("dear", (64,), 4, (some, every_two_words(0.5)))))
    assert with_weight is not None
    assert crowded(with_weight) == 2


def no_solver() -> None:
    raise UnsupportedError("not here")


def test_equal_steps_cost_one_wavefront_more_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own proof was refused where an access takes equal steps."""
    monkeypatch.setattr(colour, "load_cp_sat", no_solver)
    task = Task(Problem("twice", (64,), 4, (every_two_words(1.0, times=2),)))
    solved = solve(task, "any")
    assert isinstance(solved.outcome, Impossible)
    shown = check_layout(certificate(task, solved)).shown
    assert f"no layout of the class any costs less than {solved.least}" in shown


@pytest.mark.parametrize(("element_bytes", "width"), [(4, 1), (8, 1), (4, 2), (4, 4), (2, 4)])
def test_a_count_of_larger_chunks_is_checked(
    element_bytes: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own proof was refused where words are no single elements; and one of too many chunks in
    the same banks shows nothing."""
    monkeypatch.setattr(colour, "load_cp_sat", no_solver)
    quarter = 64 // element_bytes // width  # of all banks: each two of so many are wanted together
    blocks = [[*range(quarter * b, quarter * (b + 1))] for b in range(4)]
    steps = [[[v * width + i for i in range(width)] for v in a + b] + [[-1] * width] * 32
             for a, b in combinations(blocks, 2)]  # fmt: skip
    pairs = Access("pairs", np.array(steps)[:, :32], "st")
    task = Task(Problem("chunks", (4 * quarter * width,), element_bytes, (pairs,)))
    solved = solve(task, "any")
    assert solved.how == "by counting"
    record = certificate(task, solved)
    assert f"class any costs less than {solved.least}" in check_layout(record).shown[2]
    record["proof"]["count"] += 1
    with pytest.raises(CheckError, match="the words have room"):
        check_layout(record | {"digest": digest(record)})


def shuffled_vectors(seed: int) -> tuple[Problem, list[int]]:
    """32 vectors of 4 words, and for each a colour of 8 with which all accesses take 1 wavefront;
    the first of them, words of different places, only if some vectors have the same colour."""
    random = Random(seed)
    names = random.sample(range(32), 32)

    def stores(name: str, *steps: list[int]) -> Access:
        return Access(name, np.array([[[4 * names[v] + i for i in range(4)] for v in step]
                                      for step in steps]), "st")  # fmt: skip

    words = loads("words", [[4 * names[v] + v % 4 for v in range(32)]])
    whole = stores("whole", *([4 * at + k for at in range(8)] for k in range(4)))
    instead = [stores(f"instead{k}", [k, *range(4, 32, 4)]) for k in (1, 2)]
    colours = [0] * 32
    for vector, name in enumerate(names):
        colours[name] = vector // 4
    return Problem("shuffled", (32, 4), 4, (words, whole, *instead)), colours


def test_only_words_of_one_place_have_a_colour_each() -> None:
    for seed in range(3):
        problem, colours = shuffled_vectors(seed)
        colouring = colouring_of(Task(problem))
        assert colouring is not None
        assert len({colours[chunk] for chunk in apart(colouring)}) == len(apart(colouring)) == 8


def test_the_solver_finds_what_there_is() -> None:
    """Vectors of one colour were said to have two: the solver then knew that there is nothing."""
    pytest.importorskip("ortools", reason="ortools is not installed: extra cp")
    for seed in range(3):
        task = Task(shuffled_vectors(seed)[0])
        solved = solve(task, "any", Budget(seconds=60))
        assert isinstance(solved.outcome, Found)
        assert solved.least == task.least


def test_the_solver_wastes_nothing_where_the_last_row_is_a_part() -> None:
    pytest.importorskip("ortools", reason="ortools is not installed: extra cp")
    random = Random(2)
    steps = [random.sample(range(100), 32) for _ in range(3)]
    task = Task(Problem("hundred", (100,), 4, (loads("some", steps),)), waste=False)
    solved = solve(task, "any", Budget(seconds=60))
    assert isinstance(solved.outcome, Found)
    assert solved.best is not None
    assert sorted(task.addresses(solved.best.map)) == [*range(100)]


def triangle(weights: list[float]) -> Task:
    """Three words in two banks, and each two of them wanted together: one pair pays."""
    pairs = combinations(range(3), 2)
    accesses = [Access(f"{a}{b}", np.array([[[a], [b]]] * 7), "ld", w)
                for (a, b), w in zip(pairs, weights, strict=True)]  # fmt: skip
    return Task(Problem("triangle", (3,), 4, tuple(accesses), small_machine(2, 2)))


FINE = [[0.1, 1 / 3, 0.7], [1 / 3, 0.1, 1e-3], [1e20, 1 / 7, 1e-20], [1.0, 2.0, 3.0]]


@pytest.mark.parametrize("weights", FINE)
def test_the_solver_is_exact_about_fine_weights(weights: list[float]) -> None:
    """Its bounds are floats: rounded up, they said that its own layout cannot be."""
    pytest.importorskip("ortools", reason="ortools is not installed: extra cp")
    task = triangle(weights)
    solved = solve(task, "any", Budget(seconds=60))
    written = [Fraction(repr(weight)) for weight in weights]
    least = 7 * (sum(written) + min(written))  # seven steps
    assert solved.best is not None
    assert solved.best.cost == least
    assert solved.least <= least
    assert solved.proved or max(weights) > 1e10


@pytest.mark.parametrize("weights", FINE)
def test_weights_in_whole_numbers_never_cost_more(weights: list[float]) -> None:
    colouring = colouring_of(triangle(weights))
    assert colouring is not None
    found, scale = whole_weights(colouring.groups)
    exact = [weight / scale for weight in found] == [group.weight for group in colouring.groups]
    assert exact == (max(weights) < 1e10)
    for weight, group in zip(found, colouring.groups, strict=True):
        assert group.weight - 1 / scale < weight / scale <= group.weight
    assert sum(found) * 2 <= 1 << 60


def test_a_bound_is_rounded_down() -> None:
    for exact in (0, 1, 7, (1 << 50) - 1, (1 << 57) - 1, (1 << 60) + 1, 3**37):
        assert exact - (exact >> 49) <= rounded_down(float(exact)) <= exact
    assert rounded_down(float("-inf")) == rounded_down(float("nan")) == 0
