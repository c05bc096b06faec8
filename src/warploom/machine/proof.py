"""How far one run of a launch stands for others: for all schedules, for all data, or for itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from warploom.errors import Span


class Reach(Enum):
    """For what a proof holds; the values stand in records."""

    ALL_DATA = "all schedules and all data"
    THIS_DATA = "all schedules with this data"
    THIS_SCHEDULE = "this schedule only"


@dataclass(frozen=True, slots=True)
class Unproved:
    """A condition that does not hold: its name, why, and where."""

    condition: str
    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Explored:
    """Other schedules of a launch that were run, none of which failed: of how many in which one
    warp is held back once, and how many in which several are. `differs` is one whose results are
    others than those of the first run."""

    single: int
    singles: int
    several: int
    differs: str = ""

    @property
    def text(self) -> str:
        """One line."""
        found = f"explored: {self.single} of {self.singles} schedules that hold one warp back once"
        found += f", {self.several} that hold back several; none fails"
        return found + (f", but results differ under '{self.differs}'" if self.differs else "")


@dataclass(frozen=True, slots=True)
class Proof:
    """`failed` are the conditions in the way of more; `assumed` is what a reader has to grant."""

    reach: Reach
    failed: tuple[Unproved, ...] = ()
    assumed: tuple[str, ...] = ()
    agents: int = 0
    events: int = 0
    skeletons: tuple[Any, ...] = ()  # of each batch, for a certificate

    @property
    def text(self) -> str:
        """One line."""
        if self.reach is Reach.ALL_DATA:
            return "proved for all schedules and all data of this launch shape"
        if self.reach is Reach.THIS_DATA:
            return "proved for all schedules, for this data"
        return "not proved: it holds for this schedule only"
