"""Budgets hold on large sketches, and what was found until then is kept."""

from __future__ import annotations

from typing import Any

import pytest
from bench.common.sketch.large import EASY, LARGE, summed, unread
from bench.common.sketch.measured import apart

from warploom.search.outcome import Verdict
from warploom.sketch.front import load_text
from warploom.sketch.synth import solve as solving
from warploom.sketch.synth.fills import LIST_AT_MOST
from warploom.sketch.synth.solve import synthesize

SILENCE = 0.6  # CPU seconds without a look at the budget


def check_time(record: dict[str, Any], seconds: float, mode: str = "all") -> None:
    assert record["stopped"] is not None or record["complete"] or mode != "all"
    assert record["late"] <= max(1.0, 0.1 * seconds) - 0.4  # of which the interpreter needs some
    assert record.get("silence", 0.0) <= SILENCE
    check_found(record)


def check_memory(record: dict[str, Any], megabytes: float) -> None:
    assert record["peak"] <= 1.15 * megabytes + 50
    check_found(record)


def check_found(record: dict[str, Any]) -> None:
    assert not record.get("impossible", False)
    assert all(record.get("proved", []))
    if record["count"]:
        assert len(record["proved"]) >= 1
        assert (record["verdict"] == "proved") == (len(record["proved"]) == record["listed"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["summed", "shared", "transposition rcr"])
def test_a_spent_budget_of_time(name: str) -> None:
    check_time(apart(text=LARGE[name], seconds=0.5, megabytes=None), 0.5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["joined", "rotated"])
def test_a_spent_budget_of_memory(name: str) -> None:
    check_memory(apart(text=LARGE[name], seconds=2.0, megabytes=80), 80)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["all", "first", "best"])
@pytest.mark.parametrize("seconds", [0.5, 3.0])
@pytest.mark.parametrize("name", LARGE)
def test_seconds_hold(name: str, seconds: float, mode: str) -> None:
    record = apart(text=LARGE[name], seconds=seconds, megabytes=None, mode=mode)
    check_time(record, seconds, mode)
    if record["cpu"] > 2.5 and name in EASY:  # it had the processor for most of three seconds
        assert record["count"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [100, 200, 400])
@pytest.mark.parametrize("name", LARGE)
def test_megabytes_hold(name: str, megabytes: int) -> None:
    record = apart(text=LARGE[name], seconds=10.0, megabytes=megabytes)
    check_memory(record, megabytes)
    if record["cpu"] > 2.5 and name in EASY:
        assert record["count"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pairs", "smt"])
@pytest.mark.parametrize("name", ["unread", "unread apart", "dead", "permuted"])
def test_seconds_hold_in_the_other_engines(name: str, engine: str) -> None:
    """Where they take the problem at all."""
    check_time(apart(text=LARGE[name], seconds=1.0, megabytes=None, engine=engine), 1.0)


# -- listing -----------------------------------------------------------------------------------


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("apart_", "limit"),
    [
        (True, 4_200),
        pytest.param(True, 10_000, marks=SLOW),
        pytest.param(False, 10_000, marks=SLOW),
    ],
)
@pytest.mark.slow
def test_fills_are_counted_without_being_listed(
    apart_: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LIST_AT_MOST == 10_000
    monkeypatch.setattr(solving, "LIST_AT_MOST", limit)
    program = load_text(unread(12 if not apart_ else 6, apart_))
    result = synthesize(program)
    holes = len(program.holes)
    assert result.fills.count == 64**holes
    assert result.complete
    assert len(result.fills) == limit  # three digits, of which the first is 0 and 1
    # The first ones in lexicographic order: the numbers from 0 on, in base 64.
    listed = result.fills.choices
    assert (listed[:, -3:] @ [4096, 64, 1]).tolist() == list(range(limit))
    assert not listed[:, :-3].any()
    assert result.verdict is Verdict.PROVED


@pytest.mark.parametrize("mode", ["first", "best"])
def test_one_fill_of_very_many(mode: str) -> None:
    result = synthesize(load_text(unread(12)), mode=mode)
    assert result.fills.choices.tolist() == [[0] * 12]  # the first one, and doing nothing is best
    assert result.verdict is Verdict.PROVED
    assert result.stats.cpu_seconds < 30


def test_every_fill_of_a_sum_is_right() -> None:
    """Equal states, many fills: the count is that of all fills."""
    program = load_text(summed(4, 3, "rcr"))
    result = synthesize(program)
    assert result.fills.count == len(result.fills) == result.stats.raw_space > 1000
    assert result.verdict is Verdict.PROVED
