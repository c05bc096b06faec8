"""`--tune`: what is measured, shown, and kept in a store; settings of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from warploom.catalogue.entry import Entry, Parameter
from warploom.catalogue.loaded import TUNE_SECONDS
from warploom.catalogue.timing import GpuBench, timed_size
from warploom.catalogue.tuning import (
    Bench,
    FarBench,
    Settings,
    Tuner,
    tune_entry,
)
from warploom.cli.keeping import store_of
from warploom.cli.progress import progress
from warploom.cli.say import echo
from warploom.errors import CheckError, ParseError
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome, Undecided
from warploom.search.outcome_json import outcome_record
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Trial, Tuned
from warploom.search.workers.cluster import Cluster
from warploom.search.workers.farm import Farm

C = TypeVar("C")

SHOWN = 5  # trials
SHORT = 1e-6  # seconds; what takes less is said in nanoseconds


def tuner_of(
    tune: bool,
    store: Path | None,
    no_store: bool,
    seconds: float | None,
    *,
    checked: bool,
    crewed: bool,
) -> Tuner | None:
    """What the options ask for, together; none if there is nothing to tune."""
    kept = store_of(store, no_store)
    if not tune:
        if crewed:
            raise ParseError("--processes and --cluster go with --tune")
        if store is not None or no_store:
            raise ParseError(
                "--store and --no-store go with --tune", advice="nothing else reads the store"
            )
        return None
    if checked:
        raise ParseError(
            "--check and --mutate do not go with --tune",
            advice="tune first, then check with the printed settings: --set K=V",
        )
    return tuner_for(seconds, kept)


def tuner_for(seconds: float | None, store: Store | None) -> Tuner:
    return Tuner(TUNE_SECONDS if seconds is None else seconds, store)


def check_tuned(tuner: Tuner | None, name: str) -> None:
    """Refuses to tune what is part of a user's own kernel, and has no time of its own."""
    if tuner is not None:
        raise ParseError(
            f"'{name}' is a device function, which is not tuned", advice="leave --tune"
        )


def tune_settings(
    entry: Entry,
    given: dict[str, Parameter],
    size: Mapping[str, int] | None,
    tuner: Tuner,
    record: dict[str, Any],
    crew: Farm | Cluster | None = None,
) -> Settings:
    """The best settings, after they were shown; the rule's where nothing was measured in time. A
    crew compiles, and measures where it has GPUs."""
    if not entry.tune(entry.settings(given)):
        raise CheckError(f"'{entry.name}' has no settings to tune")
    size = size or timed_size(entry, given)
    bench: Bench
    if isinstance(crew, Cluster) and crew.measures:
        bench = FarBench(entry, given, size, crew)
    else:
        bench = GpuBench(entry, given, size)
    with progress(entry.name) as report:
        found = tune_entry(
            entry,
            given,
            bench,
            budget=Budget(tuner.seconds),
            store=tuner.store,
            pool=crew,
            on_trial=report and (lambda what, done, of: report(f"{what}, {done} of {of}", done)),
        )
    for line in lines(found, tuner.store):
        echo(line)
    record["tune"] = {"size": dict(size), **record_of(found)}
    return found.answer.best.candidate if isinstance(found, Found) else dict(given)


def lines(found: Outcome[Tuned[C]], store: Store | None, what: str = "settings") -> list[str]:
    match found:
        case Found(answer=tuned, complete=complete):
            runs = [trial for trial in tuned.trials if trial.samples]
            until = "all" if complete else "stopped after some"
            said = [
                f"tuned      {until} of {len(tuned.trials)} {what}, {tuned.measured} samples just"
                f" now, {tuned.gain:.2f} times as fast as by rule"
            ]
            said += [_line(trial, trial is tuned.untuned) for trial in runs[:SHOWN]]
            if tuned.untuned not in runs[:SHOWN]:
                said.append(_line(tuned.untuned, rule=True))
            return said + (
                [f"kept       {store.path}"] if store is not None and not store.failed else []
            )
        case Impossible(why):
            raise CheckError(why)
        case Undecided(reason):
            return [f"tuned      nothing: {reason.value}; {what} are by rule"]


def _line(trial: Trial[C], rule: bool) -> str:
    time = "does not run"
    if trial.samples:
        short = trial.seconds < SHORT
        time = f"{trial.seconds * (1e9 if short else 1e6):9.1f} {'ns' if short else 'µs'}"
    return f"  {time}  {trial.text}{'  (by rule)' if rule else ''}"


def record_of(found: Outcome[Tuned[C]]) -> dict[str, Any]:
    record = outcome_record(found)
    if isinstance(found, Found):
        record |= {
            "best": found.answer.best.candidate,
            "seconds": found.answer.best.seconds,
            "gain": found.answer.gain,
            "trials": [
                {"settings": each.text, "samples": each.samples}
                | ({"error": each.error} if each.error else {})
                for each in found.answer.trials
            ],
        }
    return record
