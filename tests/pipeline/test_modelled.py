"""Loop nests explored without a GPU: what the time model ranks, and what the bound does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401  # a fixture

import warploom
from warploom.errors import UnsupportedError
from warploom.kernel.work import work_of
from warploom.machine import record
from warploom.machine.record import H200
from warploom.machine.times import predicted
from warploom.pipeline.nest import Nest
from warploom.search.branching.candidate import Candidates

SIZES = {"n": 256}
WORDS = ("explore", "axpy", "--size", "n=256", "--model", "--evaluations", "2", "--no-store")


def test_strategies_are_ranked_by_predicted_times() -> None:
    found = warploom.explore("axpy", SIZES, model=True, evaluations=2, store=False)
    assert (found.predicted, found.device) == (True, None)
    told = float(predicted(work_of(found.kernel), H200).nanoseconds)
    assert found.nanoseconds == pytest.approx(max(told, found.bound))
    assert "by the time model: not measured" in str(found)
    assert "predicted" in str(found)


def test_a_machine_without_times_is_ranked_by_the_bound(tmp_path: Path) -> None:
    text = (Path(record.__file__).parent / "h200.toml").read_text()
    own = tmp_path / "own.toml"
    own.write_text(text.split("[times]")[0])
    found = warploom.explore("axpy", SIZES, machine=str(own), model=True, evaluations=2)
    assert not found.predicted
    assert "by the bound, which is a model: not measured" in str(found)


def test_what_was_kept_is_where_the_next_run_begins(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "kept.json"
    first = cli(*WORDS, "--keep", str(file))
    assert "by the time model: not measured" in first.out
    before = json.loads(file.read_text())["best"]["nanoseconds"]
    again = cli(*WORDS, "--keep", str(file))
    assert again.status == 0
    after = json.loads(file.read_text())
    assert after["runs"] == 2
    assert after["best"]["nanoseconds"] <= before


def test_what_has_no_kernel_is_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of a strategy, nor of the nest itself; where nothing has one, the bound ranks."""
    predict, asked = Nest.predicted_time, list[float]()

    def sometimes(nest: Nest, candidate: Candidates) -> float:
        if not nest.fixes:  # the nest itself has no decisions
            raise UnsupportedError("this has no kernel")
        asked.append(predict(nest, candidate))
        return asked[-1]

    monkeypatch.setattr(Nest, "predicted_time", sometimes)
    found = warploom.explore("axpy", SIZES, model=True, evaluations=2, store=False)
    assert found.predicted
    assert found.strategy.startswith("one-pass")
    assert found.nanoseconds == min(asked)
