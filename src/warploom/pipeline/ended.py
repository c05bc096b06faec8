"""Why a search of a loop nest looked at no more implementations, in words."""

from __future__ import annotations

from warploom.search.branching.bound import Best
from warploom.search.outcome import Found, Outcome, Reason, Undecided


def ended_words(outcome: Outcome[Best], count: int, asked: int | None) -> str:
    """Why no more were looked at, of as many as were asked for; None: of all."""
    if isinstance(outcome, Found) and outcome.stopped is not None:
        return outcome.stopped.value
    if asked is not None and count >= asked:
        return "as many as asked for"
    if isinstance(outcome, Undecided) and outcome.reason is not Reason.EVALUATIONS:
        return str(outcome.reason.value)
    if asked is None:
        return "no other can be faster"
    return f"at most {asked} were asked for, but no other that may be faster was found"
