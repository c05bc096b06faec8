"""Hopper kernels as people write them are proved, and their mutants are found with their lines."""

from __future__ import annotations

import pytest
from bench.common.ptx.hopper_cases import (
    MOST_SECONDS,
    Mutant,
    Outcome,
    all_mutants,
    judge,
    shortcoming,
    wanted_lines,
)
from bench.common.ptx.hopper_launches import CASES

from warploom.ptx.emulate.asked import Model
from warploom.runtime.compile import can_compile

MUTANTS = all_mutants()
LARGE = {"ring 4", "ring 5", "ring 6", "ring 7"}  # three seconds and more
LONG = pytest.mark.slow
needs_compiler = pytest.mark.skipif(not can_compile(), reason="neither NVRTC nor nvcc is there")


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_differs_in_one_place_and_names_lines_that_are_there(name: str) -> None:
    mutant = MUTANTS[name]
    text = mutant.text(CASES[mutant.case].text())
    assert text != CASES[mutant.case].text()
    assert bool(wanted_lines(mutant, text)) != bool(mutant.equivalent)


@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param(name, model, marks=LONG if name in LARGE else ())
        for name, case in CASES.items()
        for model in case.models
    ],
)
def test_a_kernel_is_proved(name: str, model: Model) -> None:
    outcome = judge(CASES[name], model=model)
    assert outcome.verdict == "proved", outcome.said
    assert outcome.seconds <= MOST_SECONDS


@needs_compiler
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    mutant = MUTANTS[name]
    text = mutant.text(CASES[mutant.case].text())
    outcome = judge(CASES[mutant.case], text)
    assert shortcoming(mutant, text, outcome) == "", outcome.said


@needs_compiler
def test_a_copy_that_is_waited_for_in_too_small_a_scope() -> None:
    """The scope is named, not a wait: by practice the kernel is right."""
    name = "multicast: a place is waited for in the scope of a block"
    mutant = MUTANTS[name]
    outcome = judge(CASES[mutant.case], mutant.text(CASES[mutant.case].text()))
    assert outcome.said.count("scope too small") == 1
    assert not outcome.breaks


def test_what_falls_short_is_said() -> None:
    """The harness itself: a fault that is missed, told late or told of another line is no find."""
    text = "one\ntwo\nthree"
    real = Mutant("m", "k", "kind", "one", "1", at=("two",))
    same = Mutant("m", "k", "kind", "one", "1", equivalent="nothing differs")

    def said(mutant: Mutant, verdict: str, *lines: int, seconds: float = 0.1) -> str:
        return shortcoming(mutant, text, Outcome(verdict, "", frozenset(lines), seconds))

    assert said(real, "race", 2) == ""
    assert said(real, "race", 3).startswith("another line")
    assert said(real, "deadlock", 2, seconds=6).startswith("late")
    for verdict in ("proved", "data", "wrong result", "not ended", "failed"):
        assert said(real, verdict, 2).startswith("missed")
    assert said(same, "proved") == ""
    assert said(same, "refused", 2).startswith("accused")
    with pytest.raises(ValueError, match="2 times"):
        Mutant("m", "k", "kind", "t", "u").text("tt")
