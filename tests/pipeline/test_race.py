"""A race on a GPU that pretends: what is drawn is really lowered and written, in threads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.pretended import PretendedQuick
from tests.cli.conftest import Cli, cli  # noqa: F401  # a fixture
from tests.cli.test_schemas import schemas, wrong

import warploom
from warploom.cli import explore as command
from warploom.errors import CheckError, DeviceError
from warploom.loopnest.kernels import Cut, axpy
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline import drawn as drawing
from warploom.pipeline import exploring, race
from warploom.pipeline.drawn import Asked, Made, drawn, packed, unpacked
from warploom.pipeline.nest import Nest
from warploom.pipeline.raced import Wanted, raced
from warploom.pipeline.strategic import strategies_of
from warploom.runtime.compile import Compiled
from warploom.search.budget import Budget
from warploom.search.outcome import Reason
from warploom.search.storage.store import Store

SIZES = {"n": 512}


class AtOnce:
    """A farm that does its work when it is asked to."""

    def __init__(self, workers: int = 1) -> None:
        del workers

    def share(self, value: Any) -> Any:
        return value

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:  # noqa: BLE001  # as a farm does
            future.set_exception(error)
        return future

    def shutdown(self, **_: Any) -> None: ...


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch) -> PretendedQuick:
    def compile_cuda(text: str, arch: str, **options: object) -> Compiled:
        return Compiled(b"code", "cubin", arch, "", "pretended")

    quick = PretendedQuick(pause=0.0)
    monkeypatch.setattr(race, "Farm", AtOnce)
    monkeypatch.setattr(drawing, "compile_cuda", compile_cuda)
    monkeypatch.setattr(drawing, "_seen", {})  # spaces are known from test to test
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(race, "FAILURES", 3)
    monkeypatch.setattr(exploring, "quick_for", lambda *_: quick)
    monkeypatch.setattr(
        command, "quick_for", lambda _nest, model, _engine: None if model else quick
    )
    return quick


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another process would."""
    monkeypatch.setattr(drawing, "_seen", {})


NEST = Nest(axpy(512, cut=Cut(tail=True)), H200.rates, everything(H200))


def test_decisions_packed_are_the_candidate_again() -> None:
    found = drawing.leaves_of(NEST, Asked(4, (0,)))
    assert found.arrived.any()
    for row in np.flatnonzero(found.arrived):
        leaf = packed(found.leaves, int(row))
        again = unpacked(NEST, leaf)
        assert (again.domains[0] == found.leaves.domains[row]).all()
        near = unpacked(NEST, leaf, NEST.reopened(np.random.default_rng(0)))
        assert ((near.domains[0] & again.domains[0]) == again.domains[0]).all()
    other = Nest(axpy(64, tiles=(4,)), H200.rates)
    with pytest.raises(CheckError, match="none of this space"):
        unpacked(other, leaf)


def test_no_text_is_compiled_twice_by_one_process() -> None:
    recipe = NEST.recipe
    first = drawn(recipe, "nest", "sm_90", Asked(3, (1,)))
    again = drawn(recipe, "nest", "sm_90", Asked(3, (1,)))
    assert first.made
    assert not again.made
    assert again.reached == first.reached


@pytest.mark.slow
def test_the_fastest_of_all_that_was_measured_is_found(pretended: PretendedQuick) -> None:
    found = warploom.explore("axpy", SIZES, evaluations=5, store=False)
    assert found.device == "pretended GPU"
    assert found.race.fresh == len(found.race.measured) == pretended.looks >= 5
    assert found.nanoseconds == min(e.nanoseconds for e in found.race.measured.values())
    assert found.strategy.startswith("one-pass")
    assert found.trial is not None
    assert not found.trial.wrong
    assert found.bound <= min(e.bound for e in found.race.measured.values())
    assert "axpy" in found.text("cuda")


def test_the_same_question_goes_on_from_the_store(
    pretended: PretendedQuick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store.sqlite", "")
    first = warploom.explore("axpy", SIZES, evaluations=3, store=store)
    forget(monkeypatch)
    before = list(pretended.seen)
    pretended.seen.clear()
    again = warploom.explore("axpy", SIZES, evaluations=2, store=store)
    assert again.nanoseconds <= first.nanoseconds
    assert set(first.race.measured) < set(again.race.measured)
    best = min(first.race.measured.values(), key=lambda e: e.nanoseconds).key
    assert best in pretended.seen  # measured again, beside the new ones
    assert len(set(pretended.seen) & set(before)) <= 4
    assert again.race.fresh >= 2


def test_what_the_command_writes_is_what_its_schema_says(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    pretended: PretendedQuick,
) -> None:
    file = tmp_path / "o.json"
    words = ["explore", "axpy", "--size", "n=512", "--evaluations", "2", "--no-store"]
    ran = cli(*words, "--json", str(file))
    assert ran.status == 0, ran.err
    assert pretended.device in ran.out
    (record,) = json.loads(file.read_text())
    assert record["violations"] == 0
    assert wrong(record, schemas()["explore"]) == []


def test_seconds_hold_and_ctrl_c_keeps_the_best(pretended: PretendedQuick) -> None:
    pretended.pause = 0.02
    since = time.monotonic()
    found = warploom.explore("axpy", SIZES, seconds=2.0, store=False)
    assert time.monotonic() - since < 4.0
    assert found.race.stopped is Reason.SECONDS
    budget = Budget()
    first = strategies_of(NEST, None, "default", free=True)

    class Pressed(PretendedQuick):
        def time(self, made: Made, best: float) -> tuple[float, bool]:
            if self.looks == 2:
                budget._interrupt.press()
            return super().time(made, best)

    stopped = raced(NEST, first.variants, Pressed(), budget, Wanted())
    assert stopped.candidate is not None
    assert stopped.race.stopped is Reason.INTERRUPTED
    assert 2 <= len(stopped.race.measured) <= 6


def test_what_is_slow_is_looked_at_once(pretended: PretendedQuick) -> None:
    quick = Made(b"", 100.0, (), "0000")
    slow = Made(b"", 100.0, (), "ffff")
    assert pretended.time(quick, 100.0) == (120.0, True)
    assert not pretended.time(slow, 120.0)[1]


@pytest.mark.slow
def test_what_is_wrong_is_counted_and_a_dead_gpu_ends_it() -> None:
    class Dead(PretendedQuick):
        def time(self, made: Made, best: float) -> tuple[float, bool]:
            raise DeviceError("an illegal address")

    found = raced(NEST, (), Dead(), Budget(), Wanted())
    assert found.candidate is None
    assert found.race.wrong == race.FAILURES
    assert found.race.complaint == "an illegal address"


@pytest.mark.slow
def test_a_variant_without_implementations_is_left_out() -> None:
    first = strategies_of(NEST, None, "default", free=True)
    one = first.variants[0]
    impossible = type(one)(one.strategy, one.program, (*one.fixes, "dim_kind(n0)=LOOP"))
    found = raced(
        NEST, [impossible, one], PretendedQuick(pause=0.0), Budget(), Wanted(evaluations=1)
    )
    assert found.strategy == f"{one.strategy} 2"


def test_a_strategy_is_named_or_refused() -> None:
    named = strategies_of(NEST, "one-pass", "default", free=True)
    assert {each.strategy for each in named.variants} == {"one-pass"}
    assert not strategies_of(NEST, "none", "default", free=True).variants
    fixed = Nest(NEST.program, H200.rates, NEST.target, ["dim_kind(n0)=BLOCK"])
    assert not strategies_of(fixed, None, "default", free=True).variants
    assert strategies_of(fixed, "one-pass", "default", free=True).variants[0].fixes[-1:] == (
        "dim_kind(n0)=BLOCK",
    )
    with pytest.raises(CheckError, match="does not apply: it has 0 folds"):
        strategies_of(NEST, "block-tile", "default", free=True)
    with pytest.raises(CheckError, match="not in the space 'paper'"):
        strategies_of(NEST, "one-pass", "paper", free=True)
    with pytest.raises(CheckError, match="no strategy 'warp'"):
        strategies_of(NEST, "warp", "default", free=True)


WORDS = ("explore", "axpy", "--size", "n=512", "--evaluations", "2")


def test_the_command_measures_keeps_and_goes_on(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, kept = str(tmp_path / "store.sqlite"), tmp_path / "kept.json"
    first = cli(*WORDS, "--store", store, "--keep", str(kept))
    assert first.status == 0, first.err
    assert "measured on pretended GPU, by the strategy one-pass" in first.out
    record = json.loads(kept.read_text())
    assert record["device"] == "pretended GPU"
    assert record["best"]["strategy"].startswith("one-pass")
    mixed = cli(*WORDS, "--model", "--keep", str(kept))
    assert (mixed.status, "another device" in mixed.err) == (2, True)
    both = cli(*WORDS, "--store", store, "--no-store")
    assert (both.status, "exclude each other" in both.err) == (2, True)
    forget(monkeypatch)
    again = cli(*WORDS, "--no-store", "--keep", str(kept))
    assert again.status == 0, again.err
    assert json.loads(kept.read_text())["runs"] == 2
    assert json.loads(kept.read_text())["best"]["nanoseconds"] <= record["best"]["nanoseconds"]
    forget(monkeypatch)
    plain = cli(*WORDS, "--no-store", "--strategy", "none", "--emit", "cuda")
    assert "by the strategy" not in plain.out
    assert "__global__" in plain.out


def test_explain_says_which_strategies_apply(cli: Cli) -> None:  # noqa: F811
    ran = cli("explore", "axpy", "--size", "n=64", "--explain")
    assert "strategy one-pass: applies" in ran.out
    assert "strategy block-tile: does not apply: it has 0 folds" in ran.out
