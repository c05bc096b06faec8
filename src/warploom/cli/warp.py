"""Warp sketches for `warploom synth`: solved, shown, and carried over to other sizes."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.cli.say import echo
from warploom.cli.view import coloured
from warploom.index.show import show
from warploom.pipeline.warp_result import WarpResult
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome, Undecided
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import Filled, reinstantiate, solve
from warploom.sketch.synth.result_json import Record


def solve_warp(
    name: str,
    traced: Traced,
    larger: list[Traced],
    laws: str | None,
    budget: Budget,
) -> tuple[list[Outcome[Filled]], Record]:
    """Solves and prints; the outcomes, the last one at the last size tried, and the record."""
    outcomes = [solve(traced, laws=laws, budget=budget)]
    _say(name, outcomes[0])
    sizes = [WarpResult(traced, outcomes[0]).record()]
    for other in larger:
        small = outcomes[-1]
        if not isinstance(small, Found):
            break
        outcome = reinstantiate(small.answer, other, budget=budget)
        outcomes.append(outcome)
        label = ", ".join(f"{key}={value}" for key, value in other.sizes.items())
        _say(f"  carried over to {label}", outcome)
        sizes.append(WarpResult(other, outcome).record())
    return outcomes, {"name": name, **sizes[0], "sizes": sizes}


def _say(name: str, outcome: Outcome[Filled]) -> None:
    for line in _lines(name, outcome):
        echo(line)


def _lines(name: str, outcome: Outcome[Filled]) -> Iterator[str]:
    match outcome:
        case Found(answer=filled):
            yield f"{name}: {coloured('found')}, {filled.verification}"
            width = max(map(len, filled.fill), default=0)
            for hole, expr in filled.fill.items():
                yield f"    {hole:<{width}}  {show(expr)}"
            if not filled.fill:
                yield "    the sketch has no holes"
        case Impossible(why):
            yield f"{name}: {coloured('impossible')}" + (f", {why}" if why else "")
        case Undecided(reason):
            yield f"{name}: {coloured('undecided')}, {reason.value}"
