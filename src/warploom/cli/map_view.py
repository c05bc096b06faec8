"""Candidates of `warploom map` for people and as records; those that are measured, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warploom.array.code.schedule import mapping_schedules
from warploom.cli.say import echo
from warploom.pipeline.mapped import Choice, front, make
from warploom.pipeline.mapping import kernel_line
from warploom.search.outcome import Found, Impossible, Outcome, Undecided
from warploom.search.outcome_json import outcome_record
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Trial, Tuned

SHOWN = 5  # trials


def word_of(outcome: Outcome[Any]) -> str:
    return "impossible" if isinstance(outcome, Impossible) else str(outcome)


def print_candidate(record: Mapping[str, Any]) -> None:
    tiles = " ".join(f"{name}={value}" for name, value in record["tiles"].items())
    echo(f"tiles: {tiles or 'none'}")
    for kernel in record["kernels"]:
        echo(f"  {kernel_line(kernel)}")
    if record["temporary_bytes"]:
        echo(f"  {record['temporary_bytes']} bytes beside inputs and output")


# -- what was measured -----------------------------------------------------------------------------


def show_tuned(outcome: Outcome[Tuned[Choice]], store: Store | None) -> dict[str, Any]:
    """Says what was measured; the record of it."""
    record = outcome_record(outcome)
    match outcome:
        case Found(answer=tuned, complete=complete):
            until = "all" if complete else "stopped after some"
            echo(
                f"tuned      {until} of {len(tuned.trials)} candidates, {tuned.measured} samples "
                f"just now, {tuned.gain:.2f} times as fast as the most promising"
            )
            for trial in tuned.trials[:SHOWN]:
                for line in _lines(trial):
                    echo(line)
            for trial, size in front(tuned.trials):
                took = f"{trial.seconds * 1e6:9.1f} µs"
                echo(f"front      {took} with {size} bytes beside inputs and output")
            if store is not None and not store.failed:
                echo(f"kept       {store.path}")
            record["seconds"] = tuned.best.seconds
            record["trials"] = [_trial_record(each) for each in tuned.trials]
            record["front"] = [_trial_record(each) for each, _ in front(tuned.trials)]
        case Impossible(why):
            echo(f"impossible: {why}")
        case Undecided(reason):
            echo(f"tuned      nothing: {reason.value}")
    return record


def _lines(trial: Trial[Choice]) -> Iterator[str]:
    """The time of a candidate, its tiles, and the schedule of each of its kernels."""
    took = f"{trial.seconds * 1e6:9.1f} µs" if trial.samples else "does not run"
    tiles = " ".join(f"{name}={value}" for name, value in trial.candidate.tiles.items())
    yield f"  {took}  {tiles or 'no tiles'}{'  ' + trial.error if trial.error else ''}"
    if trial.samples:
        yield from (f"      {text}" for text in mapping_schedules(make(trial.candidate)))


def _trial_record(trial: Trial[Choice]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "candidate": trial.text, "samples": trial.samples, "bytes": trial.candidate.bytes_between,
    }  # fmt: skip
    return found | ({"error": trial.error} if trial.error else {})
