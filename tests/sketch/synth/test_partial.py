"""A search that is stopped anywhere: what it gives is part of the whole answer, and says so."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from bench.common.sketch.brute import all_fills
from bench.common.sketch.generate import seeded, sketch
from tests.sketch.synth.test_search import small_limits  # noqa: F401  # the fixture

from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided, Verdict
from warploom.sketch.synth.solve import synthesize

STOPS = (1, 3, 8, 21, 55, 89, 144, 233, 377, 610, 987, 1597, 2584)


def seconds(budget: Budget) -> None:
    budget._end(Reason.SECONDS)


def memory(budget: Budget) -> None:
    budget._end(Reason.MEMORY)


def no_memory(_: Budget) -> None:
    raise MemoryError


def ctrl_c(_: Budget) -> None:
    raise KeyboardInterrupt


def stop_at(monkeypatch: pytest.MonkeyPatch, number: int, stop: Callable[[Budget], None]) -> None:
    """The check of that number, whoever asks, does not come back."""
    numbers = count(1)

    def check(budget: Budget) -> None:
        budget.room_for(0)  # once spent, always spent
        if next(numbers) == number:
            stop(budget)

    monkeypatch.setattr(Budget, "check", check)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["default", "pairs"])
@pytest.mark.parametrize("stop", [seconds, memory, no_memory, ctrl_c])
@pytest.mark.usefixtures("small_limits")
def test_stopped_anywhere(
    stop: Callable[[Budget], None], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = stopped = 0
    for seed in range(20):
        program = sketch(seeded(seed))
        wanted = all_fills(program, program.goals[0])
        for number in STOPS[seed % 3 :: 3]:
            with monkeypatch.context() as patched:
                stop_at(patched, number, stop)
                result = synthesize(program, engine=engine)
            found = [tuple(row) for row in result.fills.choices.tolist()]
            assert found == sorted(set(found))
            assert set(found) <= set(wanted)
            assert len(found) <= result.fills.count <= len(wanted)
            assert all(verdict.verdict is Verdict.PROVED for verdict in result.verdicts)
            match result.outcome:
                case Found(complete=complete):
                    assert not complete or result.fills.count == len(wanted)
                    assert complete or result.stopped is not None
                    assert len(result.verdicts) >= 1
                case Impossible():
                    assert not wanted
                case Undecided():
                    assert result.stopped is not None
            stopped += result.stopped is not None
            kept += result.stopped is not None and len(found) > 0
    assert stopped > 12
    assert kept > 1


def test_a_stopped_side_of_a_join_is_not_taken_for_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second argument is computed first, and no hole comes after it."""
    for seed in range(75):
        program = sketch(seeded(seed))
        wanted = all_fills(program, program.goals[0])
        for number in (20, 30, 40) if len(program.holes) > 1 else ():
            with monkeypatch.context() as patched:
                stop_at(patched, number, seconds)
                result = synthesize(program)
            assert not result.complete or result.fills.count == len(wanted)
