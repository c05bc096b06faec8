"""Results as plain data, ready for JSON, and decisions back from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, assert_never

from warploom.errors import CheckError
from warploom.search.candidate import Candidates, Decision, domain_of
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided
from warploom.search.propagate.propagator import Propagator
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


# -- candidates ------------------------------------------------------------------------------------


def decisions_of(propagator: Propagator, candidates: Candidates, row: int) -> list[Decision]:
    """What has been decided in a candidate beyond the root: taking these decisions again gives the
    same candidate."""
    found = []
    root = propagator.root()
    for choice in propagator.space.choices:
        for position, instance in enumerate(choice.instances, propagator.columns(choice).start):
            bits = int(candidates.domains[row, position])
            if bits != int(root.domains[0, position]):
                domain = domain_of(choice, bits)
                values = (*domain.values, None) if domain.may_be_absent else domain.values
                found.append(Decision(choice.name, tuple(map(str, instance)), values))
    return found


def decision_record(decision: Decision) -> Record:
    return {
        "choice": decision.choice,
        "objects": list(decision.objects),
        "values": list(decision.values),
    }


def decision_from(record: Mapping[str, Any]) -> Decision:
    """The decision that `decision_record` wrote."""
    match record:
        case {"choice": str(choice), "objects": [*objects], "values": [*values]}:
            named = all(isinstance(item, str) for item in objects)
            known = all(isinstance(v, str | int | None) and not isinstance(v, bool) for v in values)
            if named and known:
                return Decision(choice, tuple(objects), tuple(values))
    raise CheckError(f"not the record of a decision: {record!r}")
