"""A loop nest explored by several: the same answers as one process gives."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401  # a fixture

from warploom.loopnest.kernels import axpy
from warploom.loopnest.target import Target
from warploom.machine.record import CUDA, machine_named
from warploom.pipeline import nest, timed_nest
from warploom.pipeline.helped import HelpedNest
from warploom.pipeline.nest import Explored, Nest
from warploom.pipeline.timed_nest import Timer, far_nest_bench
from warploom.search.branching.descent import weighted_descents
from warploom.search.budget import Budget
from warploom.search.workers.farm import Farm

NEST = Nest(axpy(2), machine_named("h200").rates, Target(CUDA))


class Travelled:
    """A crew in this process: what it is given and gives back travels."""

    workers = 3

    def share(self, value: Any) -> Any:
        return pickle.loads(pickle.dumps(value))

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        told: Future[Any] = Future()
        told.set_result(pickle.loads(pickle.dumps(fn(*pickle.loads(pickle.dumps(args))))))
        return told

    measure = submit  # all of them have the label


@pytest.fixture(scope="module")
def farm() -> Iterator[Farm]:
    made = Farm(2)
    yield made
    made.shutdown(cancel_futures=True)


def answer(explored: Explored) -> Any:
    assert explored.candidate is not None
    found = explored.statistics
    return (
        explored.candidate.domains.tolist(),
        explored.nanoseconds,
        explored.evaluated,
        found.states,
        found.pruned,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["tree", "random"])
@pytest.mark.slow
def test_a_search_finds_the_same(engine: str) -> None:
    alone = answer(NEST.search(engine, 6, seed=2))
    assert answer(NEST.search(engine, 6, seed=2, helpers=HelpedNest(NEST, Travelled()))) == alone


def test_processes_find_the_same_though_one_is_lost(farm: Farm) -> None:
    helpers = HelpedNest(NEST, farm)
    helpers.walks([("Knuth", 2, (0, 0, 0), np.inf, 0)])  # now they are there
    farm._processes[0].kill()
    assert answer(NEST.search("tree", 4, helpers=helpers)) == answer(NEST.search("tree", 4))


def test_walks_are_the_same() -> None:
    asked = [("Knuth", 2, (1, 0, first), 1e6, 4) for first in (0, 2)]
    alone = [NEST.walks(*each).estimate() for each in asked]
    there = HelpedNest(NEST, Travelled()).walks(asked)
    assert [each.estimate() for each in there] == alone


@pytest.mark.slow
def test_estimates_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nest, "WALKED", {"Knuth": 3, "Chen": 1})
    alone = NEST.estimates(5, seed=1, cut=1e6, depth=6)
    assert NEST.estimates(5, 1, 1e6, 6, HelpedNest(NEST, Travelled())) == alone
    assert (alone[0].walks, alone[1].walks) == (5, 2)


def test_texts_are_the_same() -> None:
    some = weighted_descents(NEST.problem, 5, np.random.default_rng(0)).leaves
    bench = Pretended()
    here = Timer(NEST, bench)._written(some)
    there = HelpedNest(NEST, Travelled()).written(some)
    assert [each and each.digest for each in there] == [each and each.digest for each in here]
    assert any(here)


class Pretended:
    device, arch = "pretended GPU", "sm_90"

    def __init__(self, *given: Any) -> None:
        self.given = given

    def measure(self, ready: Any, samples: int) -> list[float]:
        return [float(ready)] * samples


def test_a_worker_with_the_label_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_nest, "GpuNestBench", Pretended)
    bench = far_nest_bench(axpy(8), None, Travelled())
    assert (bench.device, bench.arch) == ("pretended GPU", "sm_90")
    assert bench.measure(3, 2) == [3.0, 3.0]


def test_a_spent_budget_ends_it() -> None:
    helpers = HelpedNest(NEST, Travelled())
    found = NEST.search("random", 10**6, budget=Budget(0.0), helpers=helpers)
    assert found.candidate is None


def test_the_command_gives_the_same_record(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    words = ["explore", "axpy", "--size", "n=2", "--evaluations", "2", "--model"]
    records = []
    for number, who in enumerate(([], ["--processes", "2"])):
        file = tmp_path / f"{number}.json"
        assert cli(*words, *who, "--json", str(file)).status == 0
        records.append(json.loads(file.read_text())[0])
    timed = ("seconds", "cpu_seconds", "peak_mb", "phases", "history")
    here, there = ({k: v for k, v in each.items() if k not in timed} for each in records)
    assert here == there
    refused = cli("explore", "axpy", "--size", "n=64", "--engine", "exact", "--processes", "2")
    assert (refused.status, "branch and bound" in refused.err) == (2, True)
