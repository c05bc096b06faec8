"""A budget of time and memory that engines ask now and then; it never interrupts by force."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass, field

from warploom.search.outcome import Reason


class BudgetSpentError(Exception):
    """Raised inside an engine by `Budget.check` and caught by that engine; never reaches a user."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(slots=True)
class Budget:
    """`seconds` of wall time and `megabytes` of resident memory; None is unlimited."""

    seconds: float | None = None
    megabytes: float | None = None
    _start: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float | None:
        """For solvers that keep the time themselves; None is unlimited."""
        return None if self.seconds is None else self._start + self.seconds - time.monotonic()

    def check(self) -> None:
        if self.seconds is not None and time.monotonic() - self._start > self.seconds:
            raise BudgetSpentError(Reason.SECONDS)
        if self.megabytes is not None and peak_megabytes() > self.megabytes:
            raise BudgetSpentError(Reason.MEMORY)

    def room_for(self, nbytes: int) -> None:
        """Called before a large allocation: refuses what would not fit the memory budget."""
        if self.megabytes is not None and peak_megabytes() + nbytes / 2**20 > self.megabytes:
            raise BudgetSpentError(Reason.MEMORY)


def peak_megabytes() -> float:
    """Peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
