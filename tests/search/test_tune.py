"""The tuner on made-up candidates: the best is found, nothing is measured twice, stops keep all."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.sampled import examples

from warploom.errors import DeviceError, GoneError, SearchError, WarploomError
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Reason, Undecided
from warploom.search.storage.store import Store
from warploom.search.storage.tune import LAST_SAMPLES, Task, Tuned, tune


class Bench:
    """Candidates are numbers of microseconds; a negative one does not compile, 13 computes wrongly,
    0 cannot be.
    `noise` is added to every other sample."""

    def __init__(self, candidates: list[int], noise: float = 0.0, most: int = 10**9) -> None:
        self.candidates, self.noise, self.most = candidates, noise, most
        self.prepared: Counter[int] = Counter()
        self.samples: Counter[int] = Counter()

    def task(self, content: int = 0, device: str = "H200") -> Task[int, int]:
        return Task("made up", content, device, self.candidates, str, self._prepare, self._measure)

    def _prepare(self, candidate: int) -> int:
        self.prepared[candidate] += 1
        if candidate < 0:
            raise DeviceError("does not compile")
        return candidate

    def _measure(self, prepared: int, samples: int) -> list[float]:
        if prepared == 13:
            raise DeviceError("wrong result")
        if sum(self.samples.values()) + samples > self.most:
            raise KeyboardInterrupt
        begun = self.samples[prepared]
        self.samples[prepared] += samples
        return [
            prepared * 1e-6 + (self.noise if n % 3 == 1 else 0.0)
            for n in range(begun, begun + samples)
        ]


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def answer(found: object) -> Tuned[int]:
    assert isinstance(found, Found)
    assert isinstance(found.answer, Tuned)
    return found.answer


@examples(60)
@given(some.lists(some.integers(-5, 200), min_size=1, max_size=40), some.floats(0, 1e-3))
def test_the_fastest_that_runs_is_found(candidates: list[int], noise: float) -> None:
    runs = [each for each in candidates if each > 0 and each != 13]
    bench = Bench(candidates, noise)
    with ThreadPoolExecutor(1) as alone:
        found = tune(bench.task(), pool=alone)
    if not runs:
        assert isinstance(found, Impossible)
        assert "the first: " in found.why
        return
    tuned = answer(found)
    assert tuned.best.candidate == min(runs)
    assert tuned.best.candidate == tuned.trials[0].candidate
    assert len(tuned.trials) == len(set(candidates))
    assert tuned.measured == sum(n for each, n in bench.samples.items() if each)
    assert max(bench.prepared.values()) == 1
    # Halving: all samples together are few against the most for each.
    assert sum(bench.samples.values()) <= 7 * len(set(candidates)) + 4 * LAST_SAMPLES
    assert tuned.gain >= 1.0


def test_an_answer_is_remembered(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    store = Store(tmp_path / "store.sqlite", "")
    first = answer(tune(Bench([30, 20, 13, -1, 10]).task(), store=store, pool=pool))
    bench = Bench([30, 20, 13, -1, 10])
    again = tune(bench.task(), store=store, pool=pool)
    assert isinstance(again, Found)
    assert again.complete
    assert again.answer.best.candidate == first.best.candidate == 10
    assert again.answer.measured == 0
    assert not bench.prepared
    assert again.answer.gain == pytest.approx(3.0)
    for other in (bench.task(content=1), bench.task(device="A100")):
        assert answer(tune(other, store=store, pool=pool)).measured > 0


def test_what_was_stopped_goes_on(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    store = Store(tmp_path / "store.sqlite", "")
    candidates = list(range(40, 20, -1))
    whole = Bench(candidates)
    tune(whole.task(), pool=pool)
    taken = 0
    for _ in range(100):
        part = Bench(candidates, most=20)
        found = tune(part.task(), store=store, pool=pool)
        taken += sum(part.samples.values())
        assert isinstance(found, Found)
        if found.complete:
            break
        assert found.stopped is Reason.INTERRUPTED
    assert answer(found).best.candidate == 21
    assert taken == sum(whole.samples.values())  # nothing twice


def test_a_new_candidate_is_measured_beside_the_old_ones(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    store = Store(tmp_path / "store.sqlite", "")
    tune(Bench([30, 20]).task(), store=store, pool=pool)
    bench = Bench([30, 20, 5])
    assert answer(tune(bench.task(), store=store, pool=pool)).best.candidate == 5
    assert set(bench.samples) == {5}


def test_a_cluster_that_is_gone_is_no_fault_of_a_candidate(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    """Were it kept, the candidate would be one that does not run, for ever."""
    bench, store = Bench([5, 3]), Store(tmp_path / "store")

    def gone(prepared: int, samples: int) -> list[float]:
        if prepared == 3:
            raise GoneError("the cluster is gone")
        return [5e-6] * samples

    with pytest.raises(GoneError):
        tune(replace(bench.task(), measure=gone), store=store, pool=pool)
    assert answer(tune(bench.task(), store=store, pool=pool)).best.candidate == 3


def test_a_spent_budget_is_never_no(pool: ThreadPoolExecutor) -> None:
    found = tune(Bench([3, 2, 1]).task(), Budget(seconds=0), pool=pool)
    assert found == Undecided(Reason.SECONDS)


def test_without_candidates_there_is_nothing_to_do() -> None:
    with pytest.raises(SearchError, match="nothing to tune"):
        tune(Bench([]).task())


def test_in_processes_of_its_own() -> None:
    """`str` is a function that other processes have; what it makes is measured here."""
    task: Task[int, str] = Task(
        "words", 0, "none", [3000, 20, 1000], repr, str, lambda text, n: [float(len(text))] * n
    )
    assert answer(tune(task)).best.candidate == 20


def kept_rows(store: Store) -> dict[str, str]:
    with sqlite3.connect(store.path) as connection:
        found = connection.execute("SELECT label, value FROM results").fetchall()
    connection.close()
    return dict(found)


@pytest.mark.parametrize("which", ["made up: 30", "made up: 10", "made up: the best of 3"])
def test_a_damaged_row_is_measured_again(
    tmp_path: Path, pool: ThreadPoolExecutor, which: str
) -> None:
    """Also of a candidate that is not the best: it is not one that does not run."""
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "", told.append)
    first = answer(tune(Bench([30, 20, 10]).task(), store=store, pool=pool))
    before = kept_rows(store)
    with sqlite3.connect(store.path) as connection:
        changed = "UPDATE results SET value = replace(value, '0', '9') WHERE label = ?"
        connection.execute(changed, (which,))
    connection.close()
    assert kept_rows(store) != before
    again = answer(tune(Bench([30, 20, 10]).task(), store=store, pool=pool))
    assert [(each.text, each.seconds) for each in again.trials] == [
        (each.text, each.seconds) for each in first.trials
    ]
    assert [which in error.message for error in told] == [True]
    assert kept_rows(store).keys() == before.keys()
    assert answer(tune(Bench([30, 20, 10]).task(), store=store, pool=pool)).measured == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "value",
    [
        {"samples": [1e-9, -1.0], "error": ""},
        {"samples": [1e-9, 0], "error": ""},
        {"samples": [True], "error": ""},
        {"samples": [10**400], "error": ""},
        {"samples": ["1"], "error": ""},
        {"samples": [], "error": ""},
        {"samples": [1e-9], "error": "does not run"},
        {"samples": 1e-9, "error": ""},
        {"samples": [1e-9]},
        [1e-9],
        None,
    ],
    ids=str,
)
def test_samples_of_another_shape_are_measured_again(
    tmp_path: Path, pool: ThreadPoolExecutor, value: object
) -> None:
    """They would be the best."""
    told: list[WarploomError] = []
    store = Store(tmp_path / "store.sqlite", "", told.append)
    task = Bench([30, 20, 10]).task()
    store.put(task.key(30), value)
    assert answer(tune(task, store=store, pool=pool)).best.candidate == 10
    assert len(told) == 1
    store.put(task.key_of_all(["30", "20", "10"]), "30 ")
    assert answer(tune(task, store=store, pool=pool)).best.candidate == 10
