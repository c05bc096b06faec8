"""What earlier runs of a search left behind, as a search goes on from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warploom.search.outcome_json import Record


@dataclass(frozen=True, slots=True)
class Kept:
    """What earlier runs left behind: how many there were, and the best that they found."""

    runs: int = 0
    evaluated: int = 0
    best: Record | None = None

    @property
    def nanoseconds(self) -> float:
        return math.inf if self.best is None else float(self.best["nanoseconds"])


NOTHING_KEPT = Kept()
