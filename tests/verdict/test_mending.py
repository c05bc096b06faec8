"""Faults that are mended by what the judge says of them, and nothing else."""

from __future__ import annotations

import pytest
from bench.common.verdict.mending import FAULTS, RIGHT, ROUNDS, faulty, rounds
from tests.tools import require

QUICK = ("tree: no barrier in the loop", "scale: unguarded", "rows: sum in bf16")
LEFT = ("rows: bound too large",)  # it reads the next row: no message says which bound is wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in FAULTS]
)
def test_a_fault_is_mended_by_its_messages(name: str) -> None:
    require("ptx")
    tried = [found.verdict for _, found in rounds(faulty(name))]
    assert tried[0] == "different"
    assert len(tried) <= ROUNDS + 1
    assert (tried[-1] == "equal") == (name not in LEFT)


def test_what_is_right_is_left_as_it_is() -> None:
    require("ptx")
    ((called, found),) = rounds(RIGHT["rows"])
    assert found.verdict == "equal"
    assert called.text == RIGHT["rows"].text


def test_each_fault_changes_its_kernel() -> None:
    for name, (of, *_) in FAULTS.items():
        made = faulty(name)
        assert (made.text, made.grid) != (RIGHT[of].text, RIGHT[of].grid)
