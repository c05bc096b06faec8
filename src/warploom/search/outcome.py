"""The answer of an engine: `Found | Impossible | Undecided`. A timeout is never "no"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from warploom.errors import SearchError, Span

T = TypeVar("T")


class Reason(Enum):
    """Why an engine stopped before it knew."""

    SECONDS = "time budget spent"
    MEMORY = "memory budget spent"
    INTERRUPTED = "interrupted"
    SOLVER = "the solver said unknown"
    DEAD_ENDS = "no descent reached a solution"
    EVALUATIONS = "nothing that was measured is better than what was given"
    COUNTERPART = "no counterpart of the smaller answer is right at this size"


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """`complete`: nothing else exists; otherwise `stopped` says why the list may be partial
    (None: only the first or best was asked for)."""

    answer: T
    complete: bool
    stopped: Reason | None = None

    def __str__(self) -> str:
        return f"found: {self.answer}"


@dataclass(frozen=True, slots=True)
class Impossible:
    """The space was exhausted, or a proof was found: there is no answer; `why`, if it is known.

    Of a sketch: no fill is equal to the goal under the laws used (`sketch/term/laws.py`).
    """

    why: str = ""

    def __str__(self) -> str:
        return f"impossible: {self.why}" if self.why else "impossible"


@dataclass(frozen=True, slots=True)
class Undecided:
    reason: Reason

    def __str__(self) -> str:
        return f"undecided: {self.reason.value}"


Outcome = Found[T] | Impossible | Undecided


class NothingFoundError(SearchError):
    """Whoever needs an answer to go on has none; `outcome` says why, and decides the status that a
    command ends with."""

    def __init__(
        self,
        message: str,
        outcome: Found[Any] | Impossible | Undecided,
        span: Span | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(message, span, advice)
        self.outcome = outcome


class Verdict(Enum):
    """What a check says of one claim."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    IMPOSSIBLE = "impossible"  # there is nothing to check: no answer exists
