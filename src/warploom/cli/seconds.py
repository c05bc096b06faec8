"""The time that a command is given: what its start took is part of it, up to a half."""

from __future__ import annotations

import time

from warploom.search.budget import Budget

START_SHARE = 1 / 2  # at most: with little time the rest is still for the search
_BEGUN = time.process_time()  # what Python and our own modules have taken until here


def seconds_of(seconds: float) -> float:
    """What is left of them now that the command has begun."""
    return seconds - min(_BEGUN, START_SHARE * seconds)


def budget_of(seconds: float | None, megabytes: float | None = None) -> Budget:
    """A fresh budget, whose clock starts now; None is unlimited."""
    return Budget(None if seconds is None else seconds_of(seconds), megabytes)
