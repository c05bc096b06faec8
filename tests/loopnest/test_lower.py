"""Every implementation is a kernel that passes its check and computes what the program means."""

from __future__ import annotations

import pytest
from tests.loopnest.programs import random_program
from tests.loopnest.running import run_all

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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in SMALL]
)
def test_implementations_are_right(name: str) -> None:
    assert run_all(SMALL[name], 2, seed=5).runs >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_many_implementations_are_right(name: str) -> None:
    seen = run_all(SMALL[name], 500)
    assert seen.runs > 350
    assert seen.traits.keys() >= {"LOOP", "UNROLL", "THREAD", "BLOCK", "lowered", "barriers"}


def test_random_programs_are_right() -> None:
    assert sum(run_all(random_program(seed), 2, seed).runs for seed in range(8)) >= 12


@pytest.mark.slow
def test_many_random_programs_are_right() -> None:
    total = sum(run_all(random_program(seed), 8, seed).runs for seed in range(100, 400))
    assert total > 2000
