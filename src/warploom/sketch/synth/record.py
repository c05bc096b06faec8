"""A synthesis result as plain data, ready for JSON: what `warploom synth --json` writes."""

from __future__ import annotations

from typing import Any, assert_never

from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Undecided
from warploom.sketch.synth.result import Result

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


def _described(result: Result, limit: int | None, budget: Budget) -> list[dict[str, str]]:
    fills = []
    for number in range(len(result.fills) if limit is None else min(limit, len(result.fills))):
        if number and budget.is_spent():
            break
        fills.append(result.described(number))
    return fills


def record_of(result: Result, limit: int | None = None, budget: Budget | None = None) -> Record:
    """`limit` bounds the listed fills, and so does the budget; `solutions` counts them all."""
    stats = result.stats
    return {
        "outcome": outcome_word(result),
        "complete": result.complete,
        "solutions": result.fills.count,
        "fills": _described(result, limit, budget or Budget()),
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
