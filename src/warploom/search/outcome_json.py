"""Outcomes and statistics as plain data, ready for JSON."""

from __future__ import annotations

from typing import Any, TypeAlias, assert_never

from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided
from warploom.search.statistics import Statistics

Record: TypeAlias = dict[str, Any]


def outcome_word(outcome: Outcome[Any]) -> str:
    match outcome:
        case Found():
            return "found"
        case Impossible():
            return "impossible"
        case Undecided():
            return "undecided"
        case _:
            assert_never(outcome)


def outcome_record(outcome: Outcome[Any]) -> Record:
    """`complete`: nothing else exists. `stopped` says why it may."""
    complete = isinstance(outcome, Impossible) or (isinstance(outcome, Found) and outcome.complete)
    stopped = stopped_by(outcome)
    return {
        "outcome": outcome_word(outcome),
        "complete": complete,
        "stopped": stopped.value if stopped else None,
    }


def stopped_by(outcome: Outcome[Any]) -> Reason | None:
    match outcome:
        case Found(stopped=reason):
            return reason
        case Impossible():
            return None
        case Undecided(reason):
            return reason
        case _:
            assert_never(outcome)


def statistics_record(statistics: Statistics) -> Record:
    return {
        "seconds": round(statistics.seconds, 6),
        "cpu_seconds": round(statistics.cpu_seconds, 6),
        "states": statistics.states,
        "pruned": statistics.pruned,
        "places": {
            place: {
                "options": tally.options,
                "visited": tally.visited,
                "kept": tally.kept,
                "pruned": tally.pruned,
            }
            for place, tally in statistics.tallies.items()
        },
        "phases": {phase: round(seconds, 6) for phase, seconds in statistics.phases.items()},
        "peak_mb": round(statistics.peak_mb, 1),
    }
