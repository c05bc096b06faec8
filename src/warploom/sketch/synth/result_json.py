"""A synthesis result as plain data, ready for JSON: what `warploom synth --json` writes.

`fills` names the choice of each hole; `choices`, fill by fill, says all of it: family, parameters,
text, and as text of the index language which argument is read, at which offset.
"""

from __future__ import annotations

from typing import Any

from warploom.search.budget import Budget
from warploom.search.outcome_json import outcome_record
from warploom.sketch.holes import choice_to_json
from warploom.sketch.synth.result import Result
from warploom.sketch.term.ir import Apply

Record = dict[str, Any]


def choices_of_fills(
    result: Result, limit: int | None = None, budget: Budget | None = None
) -> list[Record]:
    """The choices of the first fills, by the name of the hole: as many as there is time for."""
    known: dict[tuple[int, int], Record] = {}

    def choice_of(hole: int, choice: int) -> Record:
        if (hole, choice) not in known:
            step = result.program.steps[hole]
            assert isinstance(step, Apply)
            known[hole, choice] = choice_to_json(step.gathers, choice)
        return known[hole, choice]

    names = {hole: result.program.steps[hole].name for hole in result.fills.holes}
    limits, listed = budget or Budget(), len(result.fills)
    found: list[Record] = []
    for number in range(listed if limit is None else min(limit, listed)):
        if number and limits.is_spent():
            break
        fill = result.fills.as_dict(number)
        found.append({names[hole]: choice_of(hole, choice) for hole, choice in fill.items()})
    return found


def record_of(result: Result, limit: int | None = None, budget: Budget | None = None) -> Record:
    """`limit` bounds the listed fills, and so does the budget; `solutions` counts them all."""
    choices = choices_of_fills(result, limit, budget)
    stats = result.stats
    return {
        **outcome_record(result.outcome),
        "solutions": result.fills.count,
        "fills": [{hole: choice["text"] for hole, choice in fill.items()} for fill in choices],
        "choices": choices,
        "verdict": result.verdict.value,
        "covers": list(dict.fromkeys(c for v in result.verdicts for c in v.covers)),
        "laws": list(dict.fromkeys(law for v in result.verdicts for law in v.laws)),
        "not_covered": list(dict.fromkeys(n for v in result.verdicts for n in v.not_covered)),
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
