"""Every implementation is a kernel that passes its check and computes what the program means."""

from __future__ import annotations

import pytest
from bench.common.loopnest.running import run_all
from tests.loopnest.programs import random_program

from warploom.loopnest.build import LoopNest
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import (
    Cut,
    add_parts,
    axpy,
    batched_matmul,
    doitgen,
    gesummv,
    matmul,
    matvec,
    two_matmuls,
)
from warploom.loopnest.target import everything
from warploom.machine.record import H200

TAIL = Cut(tail=True)
# Small enough to run, with sizes that tiles do not divide.
SMALL: dict[str, Program] = {
    "axpy": axpy(37, tiles=(8, 4), cut=TAIL),
    "matvec": matvec(7, 10, tiles=(4, 2), inner=(4,), cut=TAIL),
    "gesummv": gesummv(5, 6, tiles=(4, 2), inner=(4,), cut=TAIL),
    "matmul": matmul(7, 6, 5, ((4, 2), (4, 2), (4,)), cut=TAIL),
    "matmul, strided": matmul(4, 8, 4, ((2,), (4,), (2,)), stride=3, transposed="A"),
    "matmul, activated": matmul(6, 4, 4, ((2,), (4,), (2,)), transposed="B", activation="sigmoid"),
    "batched": batched_matmul(3, 4, 4, 5, tiles=(4,), batch_tiles=(2,), cut=TAIL),
    "two": two_matmuls(4, 4, 4, 4, tiles=(2,), inner=(2,), activation="relu"),
    "doitgen": doitgen(2, 5, 4, tiles=(4,), inner=(2,), cut=TAIL),
    "in parts": matmul(3, 5, 6, ((2,), (4,), (2,)), splits=2, cut=TAIL),
    "parts added": add_parts(3, 3, 5, ((2,), (4,)), cut=TAIL),
}


LONG = ("two", "batched", "gesummv", "in parts")  # to lower


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in SMALL]
)
def test_implementations_are_right(name: str) -> None:
    assert run_all(SMALL[name], 2, seed=5).runs >= 1


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(5))
@pytest.mark.parametrize("name", SMALL)
def test_many_implementations_are_right(name: str, hundred: int) -> None:
    seen = run_all(SMALL[name], 100, seed=hundred)
    assert seen.runs > 70
    assert seen.traits.keys() >= {"LOOP", "UNROLL", "THREAD", "BLOCK", "lowered", "barriers"}


@pytest.mark.slow
def test_random_programs_are_right() -> None:
    assert sum(run_all(random_program(seed), 2, seed).runs for seed in range(8)) >= 12


def filled(n: int) -> LoopNest:
    """Nothing is loaded and nothing computed."""
    nest = LoopNest("filled")
    i = nest.axis("i", n, 4, tail=True)
    nest.array("y", i)[i] = 1.5
    return nest


def spread(n: int) -> LoopNest:
    """One value for all: no temporary array, and so no cooperative copy."""
    nest = LoopNest("spread")
    i, j = nest.axis("i", n, 4, tail=True), nest.axis("j", 3)
    nest.array("y", i)[i] = nest.sum(nest.array("x", j)[j], over=j)
    return nest


def normalised(n: int) -> LoopNest:
    nest = LoopNest("normalised")
    i, j = nest.axis("i", 2), nest.axis("j", n, dynamic=False)
    x = nest.array("x", i, j)[i, j]
    nest.array("y", i, j)[i, j] = x - nest.fold("max", x, over=j)
    return nest


@pytest.mark.sampled(1)
@pytest.mark.parametrize("nest", [filled(5), spread(5), normalised(1), normalised(3)])
def test_odd_programs_are_right(nest: LoopNest) -> None:
    assert run_all(nest.done(), 8, target=everything(H200)).runs >= 6


@pytest.mark.slow
@pytest.mark.parametrize("first", range(400, 600, 25))
def test_many_random_programs_are_right_with_all_there_is(first: int) -> None:
    target, seeds = everything(H200), range(first, first + 25)
    assert sum(run_all(random_program(seed), 8, seed, target).runs for seed in seeds) > 150


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 25))
def test_many_random_programs_are_right(first: int) -> None:
    seeds = range(first, first + 25)
    assert sum(run_all(random_program(seed), 8, seed).runs for seed in seeds) > 150
