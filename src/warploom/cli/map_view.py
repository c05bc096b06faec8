"""Candidates of `warploom map` for people and as records; those that are measured, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from warploom.array.mapping.constraint import BY_THREAD
from warploom.pipeline.mapped import Choice, front
from warploom.search.outcome import Found, Impossible, Outcome, Undecided
from warploom.search.outcome_json import outcome_record
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Trial, Tuned

SHOWN = 5  # trials


def word_of(outcome: Outcome[Any]) -> str:
    return "impossible" if isinstance(outcome, Impossible) else str(outcome)


def print_candidate(record: Mapping[str, Any]) -> None:
    tiles = " ".join(f"{name}={value}" for name, value in record["tiles"].items())
    typer.echo(f"tiles: {tiles or 'none'}")
    for kernel in record["kernels"]:
        runs = "as the recipe says"
        if kernel["runs"] is not None:
            parallel = {k: v for k, v in kernel["runs"].items() if v not in BY_THREAD}
            runs = " ".join(f"{number}:{run}" for number, run in parallel.items())
        typer.echo(
            f"  {kernel['name']}: {runs or 'no map runs in parallel'}; "
            f"{'x'.join(map(str, kernel['group']))} threads, {kernel['registers']} registers, "
            f"{kernel['shared_bytes']} bytes shared"
        )
    if record["temporary_bytes"]:
        typer.echo(f"  {record['temporary_bytes']} bytes beside inputs and output")


# -- what was measured -----------------------------------------------------------------------------


def show_tuned(outcome: Outcome[Tuned[Choice]], store: Store | None) -> dict[str, Any]:
    """Says what was measured; the record of it."""
    record = outcome_record(outcome)
    match outcome:
        case Found(answer=tuned, complete=complete):
            until = "all" if complete else "stopped after some"
            typer.echo(
                f"tuned      {until} of {len(tuned.trials)} candidates, {tuned.measured} samples "
                f"just now, {tuned.gain:.2f} times as fast as the most promising"
            )
            for trial in tuned.trials[:SHOWN]:
                typer.echo(_line(trial))
            for trial, size in front(tuned.trials):
                took = f"{trial.seconds * 1e6:9.1f} µs"
                typer.echo(f"front      {took} with {size} bytes beside inputs and output")
            if store is not None and not store.failed:
                typer.echo(f"kept       {store.path}")
            record["seconds"] = tuned.best.seconds
            record["trials"] = [_trial_record(each) for each in tuned.trials]
            record["front"] = [_trial_record(each) for each, _ in front(tuned.trials)]
        case Impossible(why):
            typer.echo(f"impossible: {why}")
        case Undecided(reason):
            typer.echo(f"tuned      nothing: {reason.value}")
    return record


def _line(trial: Trial[Choice]) -> str:
    took = f"{trial.seconds * 1e6:9.1f} µs" if trial.samples else "does not run"
    return f"  {took}  {trial.text}{'  ' + trial.error if trial.error else ''}"


def _trial_record(trial: Trial[Choice]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "candidate": trial.text, "samples": trial.samples, "bytes": trial.candidate.bytes_between,
    }  # fmt: skip
    return found | ({"error": trial.error} if trial.error else {})
