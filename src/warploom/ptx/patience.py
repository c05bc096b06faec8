"""How long PTX may be read and made ready: asked now and then by whatever goes through a text.

A launch looks at its deadline between steps. What comes before it (reading, control flow, steps
made of instructions) takes seconds for texts of some hundred thousand instructions; `look` stands
in those loops and `within` around them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from warploom.errors import DeviceError, LimitError
from warploom.search.budget import Budget, BudgetSpentError, governing_budget

T = TypeVar("T")
EVERY = 256  # looks, each a piece of work of a millisecond at most, for one at the clock
_left = 0


def look() -> None:
    """Ends what takes too long; most calls only count."""
    global _left  # noqa: PLW0603 - whoever counts, the clock is looked at often enough
    _left -= 1
    if _left <= 0:
        _left = EVERY
        governing_budget().check()


def timed(items: Iterable[T]) -> Iterator[T]:
    """Yields the items, with a look at the clock before each."""
    for item in items:
        look()
        yield item


def deadline_of(seconds: Any) -> float | None:
    """When so many seconds from now are over; None is no limit."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float | np.number) or not seconds >= 0:
        raise DeviceError(f"a launch of {seconds!r} seconds", advice="give 0 or more, or None")
    return time.monotonic() + float(seconds)


def left(deadline: float | None) -> float | None:
    """Seconds until then."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


@contextmanager
def within(deadline: float | None, what: str) -> Iterator[None]:
    """What goes on beyond the deadline, a time of `time.monotonic`, is a `LimitError`."""
    if deadline is None:
        yield
        return
    budget = Budget(seconds=deadline - time.monotonic())
    try:
        with budget.governing():
            budget.check()
            yield
    except BudgetSpentError:
        raise LimitError(
            f"{what} took longer than the time that was given", advice="give it more seconds"
        ) from None
