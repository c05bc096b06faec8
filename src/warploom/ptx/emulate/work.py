"""How much the evaluator has done of a launch, so that one that goes on for long is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# What a step costs whatever it does, in threads that could do one meanwhile.
STEP = 1 << 12


class TooMuch(Exception):  # noqa: N818 - never leaves `launch`, which runs the launch otherwise
    """The launch is worth a compiler's time."""


@dataclass(slots=True)
class Work:
    """What is done, until it is more than `limit` and the launch may be run in another way."""

    limit: int
    may_change: Callable[[], bool]
    done: int = 0

    def add(self, steps: int, threads: int) -> None:
        self.done += steps * (STEP + threads)
        if self.done > self.limit:
            if self.may_change():
                raise TooMuch
            self.limit = 1 << 62  # asked once
