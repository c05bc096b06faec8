"""A synthesis result as plain data, ready for JSON: what `warploom synth --json` writes.

`fills` names the choice of each hole; `choices`, fill by fill, says all of it: family, parameters,
text, and as text of the index language which argument is read, at which offset.
"""

from __future__ import annotations

from typing import Any, assert_never

from warploom.search.outcome import Found, Impossible, Undecided
from warploom.sketch.holes import choice_to_json
from warploom.sketch.synth.result import Result
from warploom.sketch.term.ir import Apply

Record = dict[str, Any]


def outcome_word(result: Result) -> str:
    match result.outcome:
        case Found():
            return "found"
        case Impossible():
            return "impossible"
        case Undecided():
            return "undecided"
        case _:
            assert_never(result.outcome)


def choices_of_fills(result: Result, listed: int) -> list[Record]:
    """The choices of the first fills, by the name of the hole."""
    known: dict[tuple[int, int], Record] = {}

    def choice_of(hole: int, choice: int) -> Record:
        if (hole, choice) not in known:
            step = result.program.steps[hole]
            assert isinstance(step, Apply)
            known[hole, choice] = choice_to_json(step.gathers, choice)
        return known[hole, choice]

    names = {hole: result.program.steps[hole].name for hole in result.fills.holes}
    return [
        {names[hole]: choice_of(hole, n) for hole, n in result.fills.as_dict(number).items()}
        for number in range(listed)
    ]


def record_of(result: Result, limit: int | None = None) -> Record:
    """`limit` bounds the listed fills; `solutions` counts them all."""
    stats = result.stats
    listed = len(result.fills) if limit is None else min(limit, len(result.fills))
    return {
        "outcome": outcome_word(result),
        "complete": result.complete,
        "solutions": result.fills.count,
        "fills": [result.described(number) for number in range(listed)],
        "choices": choices_of_fills(result, listed),
        "verdict": result.verdict.value,
        "stopped": result.stopped.value if result.stopped else None,
        "seconds": round(stats.seconds, 6),
        "cpu_seconds": round(stats.cpu_seconds, 6),
        "states": stats.states,
        "oracle": stats.oracle,
        "factor": stats.factor,
        "pruned": stats.pruned,
        "holes": {
            hole.name: {
                "options": hole.options,
                "visited": hole.visited,
                "kept": hole.kept,
                "pruned": hole.pruned,
            }
            for hole in stats.holes
        },
        "space": stats.raw_space,
        "never_visited": stats.never_visited,
        "phases": {phase: round(seconds, 6) for phase, seconds in stats.phases.items()},
        "peak_mb": round(stats.peak_mb, 1),
    }
