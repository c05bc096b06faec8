"""Settings that are measured: on a bench that counts what the simulator says instead of seconds."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401  # a fixture

from warploom import load
from warploom.catalogue import entries, find, tuning
from warploom.catalogue.entry import Entry, Parameters, Size
from warploom.catalogue.tuning import FarBench, candidates, show_settings, tune_entry
from warploom.cli import measured
from warploom.errors import DeviceError
from warploom.kernel.evaluate import run
from warploom.machine.record import CUDA
from warploom.runtime.compile import can_compile
from warploom.runtime.rig import Built
from warploom.search.outcome import Found
from warploom.search.storage.store import Store

needs_compiler = pytest.mark.skipif(not can_compile(), reason="needs NVRTC or nvcc")
SIZE = {"n": 333}
GIVEN: dict[str, Any] = {"fields": 3, "strategy": "registers", "width": 1, "tiles": 1}


class Threads(ThreadPoolExecutor):
    """In the place of processes, which would have to import everything first."""

    def __init__(self) -> None:
        super().__init__(2)


class Counting:
    """A bench without a GPU: a launch is the faster the more threads its block has."""

    def __init__(self, entry: Entry, given: Parameters, size: Size, gpu: int = 0) -> None:
        self.entry, self.given, self.size = entry, given, size
        self.device, self.arch, self.machine = f"counting {gpu}", "sm_90", CUDA
        self.measured: list[str] = []

    def measure(self, built: Built, samples: int) -> Sequence[float]:
        case = self.entry.case(built.kernel, self.size, 0, **self.given)
        arguments = case.fresh()
        run(built.kernel, arguments)
        if not self.entry.agrees(built.kernel, case, arguments):
            raise DeviceError("wrong")
        assert built.code
        self.measured.append(built.kernel.name)
        return [1 / built.kernel.block[0]] * samples


@pytest.mark.parametrize("name", entries())
def test_the_rules_choice_comes_first_and_what_is_given_stays(name: str) -> None:
    entry = find(name)
    size = entry.sizes(**entry.settings({}))[-1]
    found = candidates(entry, {}, size, CUDA)
    assert found[0] == entry.settings({}, size, CUDA)
    assert len({show_settings(each) for each in found}) == len(found) > 1
    block = found[0]["block"]
    fixed = candidates(entry, {"block": block}, size, CUDA)
    assert {each["block"] for each in fixed} == {block}


@needs_compiler
def test_the_fastest_settings_are_found_and_remembered(tmp_path: Path) -> None:
    entry, store = find("aos-sum"), Store(tmp_path / "store.sqlite", "")
    bench = Counting(entry, GIVEN, SIZE)
    with ThreadPoolExecutor(2) as pool:
        found = tune_entry(entry, GIVEN, bench, store=store, pool=pool)
        again = Counting(entry, GIVEN, SIZE)
        known = tune_entry(entry, GIVEN, again, store=store, pool=pool)
    assert isinstance(found, Found)
    assert isinstance(known, Found)
    best = found.answer.best.candidate
    assert best["block"] == 256
    assert {key: best[key] for key in GIVEN} == GIVEN
    assert known.answer.best.candidate == best
    assert bench.measured
    assert not again.measured


@needs_compiler
def test_the_command_shows_what_it_found(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measured, "GpuBench", Counting)
    monkeypatch.setattr("warploom.search.storage.tune.Farm", Threads)
    monkeypatch.setattr("warploom.cli.kernel.gpu_library", lambda: ("none", None))
    store = tmp_path / "store.sqlite"
    words = ["kernel", "aos-sum", "--size", "n=333", "--tune", "--store", str(store)]
    words += [word for key, value in GIVEN.items() for word in ("--set", f"{key}={value}")]
    first, again = (cli(*words, "-o", str(tmp_path / f"{n}.cu")) for n in range(2))
    assert (first.status, again.status) == (0, 0)
    taken = [int(re.search(r"(\d+) samples just now", ran.out)[1]) for ran in (first, again)]  # type: ignore[index]
    assert taken[0] > 0
    assert taken[1] == 0
    assert "(by rule)" in first.out
    assert str(store) in first.out
    texts = [(tmp_path / f"{n}.cu").read_text() for n in range(2)]
    assert texts[0] == texts[1]
    assert "__launch_bounds__(256)" in texts[0]


class Far:
    """Workers with a GPU, in this process; what they are given and give back travels."""

    def measure(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        told: Future[Any] = Future()
        told.set_result(pickle.loads(pickle.dumps(fn(*pickle.loads(pickle.dumps(args))))))
        return told


@needs_compiler
def test_a_worker_with_a_gpu_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "GpuBench", Counting)
    entry = find("aos-sum")
    bench = FarBench(entry, GIVEN, SIZE, Far())
    assert (bench.device, bench.arch, bench.machine) == ("counting 0", "sm_90", CUDA)
    with Threads() as pool:
        far = tune_entry(entry, GIVEN, bench, pool=pool)
        near = tune_entry(entry, GIVEN, Counting(entry, GIVEN, SIZE), pool=pool)
    assert isinstance(far, Found)
    assert isinstance(near, Found)
    assert far.answer.best.text == near.answer.best.text


def test_options_that_do_not_go_together(cli: Cli) -> None:  # noqa: F811
    for words, said in (
        (["--tune", "--check"], "do not go with --tune"),
        (["--store", "a.sqlite"], "go with --tune"),
        (["--processes", "2"], "go with --tune"),
        (["--tune", "--cluster", "tcp://10.0.0.7:1"], "without TLS"),
        (["--tune", "--no-store", "--store", "a.sqlite"], "exclude each other"),
    ):
        ran = cli("kernel", "aos-sum", *words)
        assert ran.status == 2
        assert said in ran.err


def test_arrays_in_host_memory_are_not_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WARPLOOM_STORE")  # by which tests have none
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    tuned = load("aos-sum", fields=3, tune=True)
    assert tuned.tuner is not None
    assert tuned.tuner.store is not None
    assert str(tuned.tuner.store.path).startswith(str(tmp_path))
    with pytest.raises(DeviceError, match="tuned on a GPU"):
        tuned(np.zeros((5, 3), np.float32))
    assert not list(tmp_path.iterdir())


def test_a_size_is_tuned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Counting] = []

    def bench(entry: Entry, given: Parameters, size: Size, gpu: int) -> Counting:
        made.append(Counting(entry, given, size, gpu))
        return made[-1]

    monkeypatch.setattr(tuning, "GpuBench", bench)
    monkeypatch.setattr(tuning, "build_for", refuses)
    monkeypatch.setattr("warploom.search.storage.tune.Farm", Threads)
    found = load("aos-sum", fields=3, tune=0, store=False)
    assert found.tuner is not None
    for _ in range(2):  # nothing can be measured in no time: the rule's
        assert found.settings_for(SIZE, 0) == find("aos-sum").settings({"fields": 3}, SIZE, CUDA)
    assert len(made) == 1
    with pytest.raises(DeviceError, match=r"cannot be tuned here: .*refused"):
        load("aos-sum", fields=3, tune=60, store=False).settings_for(SIZE, 0)


def refuses(name: str, arch: str, settings: Parameters) -> Built:
    raise DeviceError("refused")
