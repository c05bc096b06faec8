"""What `warploom synth` says besides the answer: why there is no fill, what would do, warnings."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.cli.say import echo
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.outcome import Impossible
from warploom.sketch.explain import reason, suggest
from warploom.sketch.explain.idle import Remark, idle_holes
from warploom.sketch.explain.reason import Explanation, explain
from warploom.sketch.explain.show import lines, place, record
from warploom.sketch.explain.suggest import Suggestions
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.result_json import Record


def remarks(
    result: Result, goal: int, budget: Budget, suggesting: bool
) -> tuple[Record, Explanation | None]:
    """Prints them; what comes out is for the JSON record, and the reason for a certificate.

    `budget` is what the search has left."""
    idle = idle_holes(result.program)
    for remark in idle:
        echo(_warning(remark), err=True)
    said: Record = {"warnings": [_warning_record(remark) for remark in idle]}
    if not isinstance(result.outcome, Impossible):
        return said, None
    if result.outcome.why:  # known already: it is not on symbols that nothing is right
        return said | {"why": {"on_numbers": result.outcome.why}}, None
    # The reason may take half of it if suggestions are to follow.
    why = _reason(result, goal, budget.split(2) if suggesting else budget)
    said |= {"why": None if why is None else record(why)}
    if suggesting:
        said |= _suggestions(result, goal, budget)
    else:
        echo("  next: --suggest says which other functions would do for these holes")
    return said, why


def _warning(remark: Remark) -> str:
    where = place(remark.span)
    return f"{where}{': ' if where else ''}warning: {remark.message}"


def _warning_record(remark: Remark) -> Record:
    return {"message": remark.message, "place": place(remark.span)}


def _reason(result: Result, goal: int, budget: Budget) -> Explanation | None:
    limits = budget.up_to(reason.SECONDS)
    try:
        limits.check()
        with limits.governing():
            why = explain(result.program, goal, budget=limits)
    except (BudgetSpentError, MemoryError):
        echo("  no reason found within the budget")
        return None
    for line in lines(why):
        echo(f"  {line}")
    return why


def _suggestions(result: Result, goal: int, budget: Budget) -> Record:
    found = suggest.suggest(result.program, goal, budget=budget.up_to(suggest.SECONDS))
    for line in _suggestion_lines(found):
        echo(f"  {line}")
    changes = [
        [{"hole": c.hole, "function": c.function, "instead_of": c.instead_of} for c in each.changes]
        for each in found.found
    ]
    return {"suggestions": changes, "suggestions_complete": found.complete}


def _suggestion_lines(found: Suggestions) -> Iterator[str]:
    yield from (f"suggestion: {each}" for each in found.found)
    if not found.found and found.complete:
        yield f"no suggestion: {found.tried} other families were tried and none would do"
    if not found.complete:
        none = "" if found.found else f"no suggestion found; {found.tried} families were tried: "
        yield f"{none}the budget was spent before every family was tried to its end"
