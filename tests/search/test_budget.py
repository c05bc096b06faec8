"""Time, memory and Ctrl-C as one budget."""

from __future__ import annotations

import os
import signal
import threading
import time
from mmap import mmap
from typing import Any

import pytest

from warploom.search import budget as budgets
from warploom.search.budget import (
    PIECE,
    Budget,
    BudgetSpentError,
    governing_budget,
    peak_megabytes,
    resident_megabytes,
)
from warploom.search.outcome import Reason


def reason_of(budget: Budget) -> Reason | None:
    try:
        budget.check()
    except BudgetSpentError as spent:
        return spent.reason
    return None


def test_an_unlimited_budget_is_never_spent() -> None:
    budget = Budget()
    assert reason_of(budget) is None
    assert budget.seconds_left is None
    assert budget.megabytes_left is None
    assert budget.at_once(1000, 1e12) == 1000
    budget.room_for(1e15)


def test_seconds() -> None:
    assert reason_of(Budget(seconds=0.0)) is Reason.SECONDS
    budget = Budget(seconds=0.02)
    assert reason_of(budget) is None
    time.sleep(0.03)
    assert reason_of(budget) is Reason.SECONDS
    assert budget.is_spent()


def test_memory_is_what_there_is_now_not_what_there_was() -> None:
    """One process can run several budgets: what was freed does not count."""
    before = resident_megabytes()
    large = mmap(-1, 200 << 20)  # what an allocator takes may have been freed before
    for page in range(0, len(large), 4096):
        large[page] = 1
    assert resident_megabytes() > before + 150
    assert reason_of(Budget(megabytes=before + 100)) is Reason.MEMORY
    peak = peak_megabytes()
    large.close()
    assert resident_megabytes() < before + 50
    assert peak_megabytes() >= peak - 1
    assert reason_of(Budget(megabytes=before + 100)) is None


def test_room_is_asked_for_before_it_is_taken() -> None:
    budget = Budget(megabytes=resident_megabytes() + 100)
    budget.room_for(50 << 20)
    with pytest.raises(BudgetSpentError, match="memory"):
        budget.room_for(150 << 20)


def test_a_spent_budget_stays_spent() -> None:
    budget = Budget(megabytes=resident_megabytes() + 100)
    with pytest.raises(BudgetSpentError):
        budget.room_for(150 << 20)
    assert reason_of(budget) is Reason.MEMORY
    # Budgets made of it are their own.
    assert reason_of(Budget(megabytes=budget.megabytes)) is None


def test_pieces_of_work_fit_the_memory_but_never_vanish() -> None:
    budget = Budget(megabytes=resident_megabytes() + 80)
    room = 80 * 2**20 * PIECE
    assert 0.5 * room < 1000 * budget.at_once(1 << 30, 1000) < 1.5 * room
    assert budget.at_once(5, 1000) == 5
    full = Budget(megabytes=1.0)
    assert full.at_once(1 << 30, 1 << 10) == 1 << 10  # a megabyte's worth
    assert full.at_once(10, 1e12) == 1
    assert Budget(haste=4).at_once(100, 8) == 25
    assert Budget().fits(1e6)
    assert not full.fits(1e6)


def test_parts_of_a_budget() -> None:
    assert Budget(10.0).shortened(0.1, 5.0).seconds == 9.0
    assert Budget(100.0).shortened(0.1, 5.0).seconds == 95.0
    assert Budget().shortened(0.1, 5.0).seconds is None
    half = Budget(10.0).split(2)
    assert half.seconds is not None
    assert 4.9 < half.seconds <= 5.0
    assert Budget(0.0).split(3).seconds == 0.0
    assert Budget().split(3).seconds is None


def test_a_watched_budget_calls_whenever_it_is_asked() -> None:
    calls: list[int] = []
    budget = Budget(0.0).watched(lambda: calls.append(1))
    assert reason_of(budget) is Reason.SECONDS
    assert calls == [1]


def test_a_governing_budget_reaches_code_that_is_given_none() -> None:
    assert governing_budget().seconds is None
    with Budget(1.0).governing():
        assert governing_budget().seconds == 1.0
        with Budget(2.0).governing():
            assert governing_budget().seconds == 2.0
        assert governing_budget().seconds == 1.0
    assert governing_budget().seconds is None


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_is_seen_at_the_next_check() -> None:
    budget = Budget()
    with budget.interruptible():
        part = budget.shortened(0.1, 1.0)
        press()
        assert reason_of(budget) is Reason.INTERRUPTED
        assert reason_of(part) is Reason.INTERRUPTED
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        press()


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with Budget().interruptible():
            press()
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    done: list[bool] = []

    def elsewhere() -> None:
        with Budget().interruptible():
            done.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done == [True]


# -- what nobody asks ------------------------------------------------------------------------------


def unasked(seconds: float = 5.0) -> None:
    """Work that asks no budget."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_an_enforced_budget_ends_work_that_never_asks() -> None:
    began = time.monotonic()
    with pytest.raises(BudgetSpentError) as spent, Budget(seconds=0.05).enforced():
        unasked()
    assert spent.value.reason is Reason.SECONDS
    assert time.monotonic() - began < 4.0
    # Nothing of it is left: an alarm later on would kill the process.
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_governs_is_enforced() -> None:
    with pytest.raises(BudgetSpentError), Budget(seconds=0.0).governing():
        unasked()


def test_the_outer_budget_ends_what_the_inner_one_allows() -> None:
    with pytest.raises(BudgetSpentError), Budget(seconds=0.05).enforced():  # noqa: SIM117
        with Budget(seconds=60.0).enforced():
            unasked()


def test_a_budget_that_was_seen_to_be_spent_is_not_told_again() -> None:
    budget = Budget(seconds=0.0)
    with budget.enforced():
        assert budget.is_spent()
        unasked(0.3)


def test_ctrl_c_ends_work_that_never_asks() -> None:
    budget = Budget()

    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        unasked()

    with pytest.raises(BudgetSpentError) as spent, budget.interruptible(), budget.enforced():
        interrupted()
    assert spent.value.reason is Reason.INTERRUPTED
    assert budget.interrupted


def test_an_exception_is_not_raised_where_it_would_be_lost() -> None:
    done = []

    class Dying:
        def __del__(self) -> None:
            unasked(0.3)
            done.append(True)

    def freed() -> None:
        dying = Dying()
        del dying
        unasked()

    with pytest.raises(BudgetSpentError), Budget(seconds=0.0).enforced():
        freed()
    assert done


def test_alarms_of_others_are_left_alone() -> None:
    rung = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        with Budget(seconds=0.0).enforced():
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            unasked(0.3)
        assert rung == [True]
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_another_thread_is_not_interrupted() -> None:
    ended = []

    def work() -> None:
        with Budget(seconds=0.0).enforced():
            unasked(0.3)
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]


def test_at_least_some_seconds_are_left_for_the_end() -> None:
    assert (Budget(seconds=0.0).at_least(0.5).seconds_left or 0) > 0.4
    assert (Budget(seconds=9.0).at_least(0.5).seconds_left or 0) > 8.0
    assert Budget().at_least(0.5).seconds_left is None
    pressed = Budget()
    with pressed.interruptible():
        os.kill(os.getpid(), signal.SIGINT)
    after = pressed.at_least(0.5)
    assert reason_of(after) is None  # the one that was pressed has been heard
    assert (after.seconds_left or 0) <= 0.5


def test_an_alarm_while_a_budget_ends_does_not_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget stayed enforced, and ended whatever came after it."""

    class Rung(dict[object, Budget]):
        def pop(self, *args: Any) -> Any:
            signal.raise_signal(signal.SIGALRM)
            return super().pop(*args)

    left = Rung()
    monkeypatch.setattr(budgets, "_ENFORCED", left)
    with pytest.raises(BudgetSpentError), Budget(seconds=0.0).enforced():
        time.sleep(5)
    assert not left
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
