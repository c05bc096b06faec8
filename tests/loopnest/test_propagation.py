"""Propagation on loop nests: leaves are solutions, decisions commute, and CP-SAT agrees."""

from __future__ import annotations

import numpy as np
import pytest
from tests.loopnest.programs import random_program

from warploom.loopnest.kernels import matmul
from warploom.loopnest.space import NestSpace
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem
from warploom.search.space.evaluate import violations


def leaves(space: NestSpace, count: int, seed: int) -> Candidates:
    problem = SpaceProblem(space.propagator, branch=space.branch)
    found = descents(problem, count, np.random.default_rng(seed))
    assert len(found.leaves)
    return found.leaves.take(found.arrived)


def solutions_hold(seed: int) -> int:
    space = NestSpace(random_program(seed, largest=4, axes=2))
    found = leaves(space, 3, seed)
    for row in range(len(found)):
        assignment = space.propagator.assignment(found, row)
        assert list(violations(space.space, assignment)) == []
    return len(found)


def test_what_is_decided_fulfils_every_sentence() -> None:
    assert sum(solutions_hold(seed) for seed in range(6)) >= 12


@pytest.mark.slow
def test_what_is_decided_fulfils_every_sentence_of_many_programs() -> None:
    assert sum(solutions_hold(seed) for seed in range(100, 250)) >= 400


def commutes(space: NestSpace, seed: int) -> None:
    """Some decisions of a leaf, one by one in two orders and all at once."""
    random = np.random.default_rng(seed)
    propagator = space.propagator
    leaf = leaves(space, 4, seed).take(slice(0, 1))
    root = propagator.root()
    free = np.flatnonzero(root.domains[0, :-1] != leaf.domains[0, :-1])
    chosen = random.choice(free, min(12, len(free)), replace=False)
    ends = []
    for order in (chosen, random.permutation(chosen)):
        here = propagator.root()
        for position in order:
            at = np.array([position])
            assert propagator.restrict(here, np.zeros(1, np.int64), at, leaf.domains[0, at]).all()
        ends.append(here)
    at_once = propagator.root()
    rows = np.zeros(len(chosen), np.int64)
    assert propagator.restrict(at_once, rows, chosen, leaf.domains[0, chosen]).all()
    for here in ends:
        assert (here.domains == at_once.domains).all()
        assert (here.low == at_once.low).all()
        assert (here.high == at_once.high).all()


def test_decisions_commute() -> None:
    for seed in range(6):
        commutes(NestSpace(random_program(seed)), seed)


@pytest.mark.slow
def test_decisions_commute_in_a_matmul() -> None:
    space = NestSpace(matmul(64, 64, 64))
    for seed in range(20):
        commutes(space, seed)


def test_cp_sat_confirms_what_is_removed() -> None:
    judge = pytest.importorskip("tests.search.cpsat").judge
    for seed in range(3):
        made = NestSpace(random_program(seed, largest=3, axes=1))
        judge(made.space, seed, rounds=2)


@pytest.mark.slow
@pytest.mark.parametrize("ten", range(20))
def test_cp_sat_confirms_what_is_removed_from_many_programs(ten: int) -> None:
    judge = pytest.importorskip("tests.search.cpsat").judge
    removed = 0
    for seed in range(1000 + 10 * ten, 1010 + 10 * ten):
        made = NestSpace(random_program(seed, largest=4, axes=2))
        removed += judge(made.space, seed, rounds=3)[0]
    assert removed > 1000
