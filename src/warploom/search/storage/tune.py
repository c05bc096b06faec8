"""The tuner: candidates in, the one that takes the least time out.

It knows neither kernels nor devices. `prepare` makes something that can be measured of a candidate,
on all cores (`Farm`); `measure` takes so many samples of that, here, one candidate at a time. Every
candidate gets a few samples, the better half more, and so on (successive halving). What was
measured goes to the store at once, so that a run which was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, TypedDict, TypeVar

from warploom.errors import GoneError, SearchError, WarploomError
from warploom.search.budget import STOPS, Budget, reason_of
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided
from warploom.search.storage import row
from warploom.search.storage.store import Json, Key, Store, digest
from warploom.search.workers.farm import Farm

C = TypeVar("C")
P = TypeVar("P")

FIRST_SAMPLES = 3  # of every candidate
LAST_SAMPLES = 24  # of those that are left at the end
KEPT = 2  # one in so many goes on
FINALISTS = 3
SHORTEST = 5e-324  # seconds: the least number that is not 0

_KIND = "tune"
_LOOK_EVERY = 0.1  # seconds between two looks at the budget while others work

OnTrial = Callable[[str, int, int], None]  # what is done, how many of how many


class TuneOptions(TypedDict, total=False):
    """What a caller may say of a tuning: see `tune`."""

    budget: Budget | None
    store: Store | None
    pool: Executor | None
    on_trial: OnTrial | None


@dataclass(frozen=True, slots=True)
class Task(Generic[C, P]):
    """What is tuned. `content` is everything but the candidate that decides how long it takes (the
    size of the arrays, say); `show` writes a candidate as text by which it is found again. The
    first candidate is the one that would be used untuned. `prepare` runs in another process if it
    is a function of a module; an error of ours there or in `measure` drops the candidate."""

    name: str
    content: Json
    device: str
    candidates: Sequence[C]
    show: Callable[[C], str]
    prepare: Callable[[C], P]
    measure: Callable[[P, int], Sequence[float]]

    def key(self, candidate: C) -> Key:
        text = self.show(candidate)
        content = {"name": self.name, "content": self.content, "candidate": text}
        return Key(_KIND, content, self.device, f"{self.name}: {text}")

    def key_of_all(self, shown: Sequence[str]) -> Key:
        """The key of the answer, which is one among these candidates."""
        content = {"name": self.name, "content": self.content, "all": digest(sorted(shown))}
        return Key(f"{_KIND}d", content, self.device, f"{self.name}: the best of {len(shown)}")


@dataclass(slots=True, eq=False)
class Trial(Generic[C]):
    """A candidate with its samples in seconds, or why it has none."""

    candidate: C
    text: str
    samples: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def seconds(self) -> float:
        return median(self.samples) if self.samples else float("inf")


@dataclass(frozen=True, slots=True)
class Tuned(Generic[C]):
    """The best candidate; all trials, the best first; how many samples were taken just now."""

    best: Trial[C]
    trials: tuple[Trial[C], ...]
    untuned: Trial[C]
    measured: int

    @property
    def gain(self) -> float:
        """Times faster than what is used untuned; 1 if that was not measured."""
        return self.untuned.seconds / self.best.seconds if self.untuned.samples else 1.0


def tune(
    task: Task[C, P],
    budget: Budget | None = None,
    *,
    store: Store | None = None,
    pool: Executor | None = None,
    on_trial: OnTrial | None = None,
) -> Outcome[Tuned[C]]:
    """The best candidate: Found, `complete` if the budget was enough for all; Undecided if it was
    spent before anything was measured; Impossible if no candidate can be run."""
    if not task.candidates:
        raise SearchError(f"there is nothing to tune '{task.name}' with", advice="give candidates")
    run = _Run(task, budget or Budget(), store, on_trial)
    if (known := run.known()) is not None:
        return known
    workers = pool or Farm()
    stopped: Reason | None = None
    try:
        with run.budget.interruptible():
            run.halve(workers)
    except STOPS as stop:
        stopped = reason_of(stop)
    finally:
        if pool is None:
            workers.shutdown(cancel_futures=True)
    return run.outcome(stopped)


def _sampled(kept: Json) -> tuple[list[float], str]:
    """What `_Run._keep` wrote of a trial: samples, or why there are none."""
    samples, error = row.entries(kept, "samples", "error")
    found = [row.seconds(each, SHORTEST) for each in row.items(samples)]
    if bool(found) == bool(row.text(error)):
        raise row.RowError("has neither samples nor an error, or both")
    return found, error


class _Run(Generic[C, P]):
    """One run of the tuner: the trials, and who is still among the best."""

    def __init__(
        self, task: Task[C, P], budget: Budget, store: Store | None, on_trial: OnTrial | None
    ) -> None:
        self.task, self.budget, self.store = task, budget, store
        self.on_trial = on_trial
        shown = {task.show(each): each for each in task.candidates}  # equal ones once
        self.trials = [Trial(each, text) for text, each in shown.items()]
        self.alive = self.trials
        self.measured = 0
        self.prepared: dict[str, P] = {}

    # -- what is kept

    def known(self) -> Outcome[Tuned[C]] | None:
        """The answer of an earlier run that came to its end; otherwise its samples are taken."""
        if self.store is None:
            return None
        for trial in self.trials:
            kept = self.store.get(self.task.key(trial.candidate), _sampled)
            if kept is not None:
                trial.samples, trial.error = kept
        best = self.store.get(self._key_of_all(), row.text)
        if best is None or not all(trial.samples or trial.error for trial in self.trials):
            return None  # nothing, or less than there was: what is missing is measured
        self.alive = [trial for trial in self.trials if trial.text == best and trial.samples]
        if self.alive:
            return self.outcome(None)
        self.alive = self.trials
        return None

    def _key_of_all(self) -> Key:
        return self.task.key_of_all([trial.text for trial in self.trials])

    def _keep(self, trial: Trial[C]) -> None:
        if self.store is not None:
            kept = {"samples": trial.samples, "error": trial.error}
            self.store.put(self.task.key(trial.candidate), kept)

    # -- halving

    def halve(self, pool: Executor) -> None:
        samples = FIRST_SAMPLES
        while True:
            self._round(pool, samples)
            ranked = sorted(self._runnable(), key=lambda trial: trial.seconds)
            if samples >= LAST_SAMPLES or not ranked:
                self.alive = ranked
                break
            kept = max(min(FINALISTS, len(ranked)), -(-len(ranked) // KEPT))
            self.alive = ranked[:kept]
            alive = {trial.text for trial in self.alive}
            self.prepared = {text: p for text, p in self.prepared.items() if text in alive}
            samples = min(LAST_SAMPLES, samples * KEPT)
        if self.store is not None and self.alive:
            self.store.put(self._key_of_all(), self.alive[0].text)

    def _round(self, pool: Executor, samples: int) -> None:
        """Each of those alive has so many samples afterwards, or is known not to run."""
        due = [each for each in self.alive if len(each.samples) < samples and not each.error]
        missing = [each for each in due if each.text not in self.prepared]
        futures = {each.text: pool.submit(self.task.prepare, each.candidate) for each in missing}
        try:
            self._measure_each(due, futures, samples)
        finally:
            for future in futures.values():  # nobody waits for what is left
                future.cancel()

    def _measure_each(
        self, due: Sequence[Trial[C]], futures: Mapping[str, Future[P]], samples: int
    ) -> None:
        for done, trial in enumerate(due):
            if self.on_trial is not None:
                self.on_trial(f"{samples} samples", done, len(due))
            try:
                if trial.text in futures:
                    self.prepared[trial.text] = self._waited(futures[trial.text])
                self._measure(trial, samples - len(trial.samples))
            except GoneError:
                raise  # what is kept of a candidate is its own fault
            except WarploomError as error:
                trial.error, trial.samples = str(error)[:500] or type(error).__name__, []
            self._keep(trial)

    def _measure(self, trial: Trial[C], more: int) -> None:
        self.budget.check()
        found = self.task.measure(self.prepared[trial.text], more)
        if not found or not all(0 < each < float("inf") for each in found):
            raise SearchError(f"'{self.task.name}' was measured to take {list(found)[:3]} seconds")
        trial.samples.extend(found)
        self.measured += len(found)

    def _waited(self, future: Future[P]) -> P:
        while not future.done():
            self.budget.check()
            wait([future], _LOOK_EVERY)
        return future.result()

    # -- the answer

    def outcome(self, stopped: Reason | None) -> Outcome[Tuned[C]]:
        ranked = sorted(self._runnable(), key=lambda trial: trial.seconds)
        if ranked:
            rest = [trial for trial in self.trials if trial not in ranked]
            trials = (*ranked, *sorted(rest, key=lambda trial: trial.seconds))
            found = Tuned(ranked[0], trials, self.trials[0], self.measured)
            return Found(found, stopped is None, stopped)
        if stopped is not None:
            return Undecided(stopped)
        return Impossible(f"no candidate runs; the first: {self.trials[0].error}")

    def _runnable(self) -> Iterator[Trial[C]]:
        """The trials that ran, among the best so far; before the first round ends, among all."""
        return (trial for trial in self.alive if trial.samples)
