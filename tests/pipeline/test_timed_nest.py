"""Loop nests timed by the tuner: on a bench that pretends, with texts that are really written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.running import implementations, inputs
from tests.cli.conftest import Cli, cli  # noqa: F401  # a fixture

from warploom.errors import CheckError, DeviceError
from warploom.kernel.dtype import i32
from warploom.loopnest.build import LoopNest
from warploom.loopnest.evaluate import evaluate, evaluate_at
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, axpy, matmul, two_matmuls
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import Target
from warploom.machine.record import H200
from warploom.pipeline import exploring as command
from warploom.pipeline.nest import Nest
from warploom.pipeline.timed_nest import (
    GpuNestBench,
    Timer,
    Written,
    some_points,
)
from warploom.runtime import rig
from warploom.runtime.compile import Compiled
from warploom.runtime.rig import Built
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.descent import descents
from warploom.search.branching.problem import SpaceProblem
from warploom.search.budget import Budget
from warploom.search.storage.store import Store


class Pretended:
    """A kernel takes a microsecond for each statement at the top of its body; those of one thread
    are wrong."""

    device, arch = "pretended GPU", "sm_90"

    def __init__(
        self, program: Program | None = None, most: int = 10**9, tensor: bool = False
    ) -> None:
        del program, tensor
        self.samples: Counter[Built] = Counter()
        self.most = most

    def measure(self, ready: Built, samples: int) -> Sequence[float]:
        if sum(self.samples.values()) + samples > self.most:
            raise KeyboardInterrupt
        if ready.kernel.threads == 1:
            raise DeviceError("wrong")
        self.samples[ready] += samples
        return [len(ready.kernel.body) * 1e-6] * samples


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was compiled."""
    seen: Counter[str] = Counter()

    def compile_cuda(text: str, arch: str, **options: object) -> Compiled:
        seen[text] += 1
        return Compiled(b"code", "cubin", arch, "", "pretended")

    monkeypatch.setattr(rig, "compile_cuda", compile_cuda)
    return seen


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


NEST = Nest(axpy(3, cut=Cut(tail=True)), H200.rates, Target(H200))


def leaves(count: int, seed: int = 0) -> Candidates:
    problem = SpaceProblem(NEST.space.propagator, (), NEST.space.branch)
    found = descents(problem, count, np.random.default_rng(seed))
    return found.leaves.take(found.arrived)


def test_each_text_is_measured_once(
    tmp_path: Path, pool: ThreadPoolExecutor, compiled: Counter[str]
) -> None:
    store = Store(tmp_path / "store.sqlite", "")
    some = leaves(5)
    twice = some.take(np.array([*range(len(some)), *range(len(some))]))
    bench = Pretended()
    timer = Timer(NEST, bench, store=store, pool=pool)
    times = timer(twice)
    assert list(times[: len(some)]) == list(times[len(some) :])
    assert max(compiled.values()) == 1
    assert timer.taken == sum(bench.samples.values()) > 0
    wrong = [NEST.implementation(some.take(slice(r, r + 1))).levels == () for r in range(len(some))]
    assert [math.isinf(each) for each in times[: len(some)]] == wrong
    before = sum(compiled.values())
    assert list(timer(some)) == list(times[: len(some)])
    other = Timer(NEST, Pretended(), store=store, pool=pool)  # another run, another day
    assert list(other(some)) == list(times[: len(some)])
    assert other.taken == 0
    assert sum(compiled.values()) == before


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    store, some = Store(tmp_path / "store.sqlite", ""), leaves(5)
    whole = Timer(NEST, Pretended(), pool=pool)
    wanted = whole(some)
    stopped = Timer(NEST, Pretended(most=6), Budget(), store, pool)
    stopped(some)
    assert 0 < stopped.taken <= 6
    resumed = Timer(NEST, Pretended(), Budget(), store, pool)
    assert list(resumed(some)) == list(wanted)
    assert resumed.taken == whole.taken - stopped.taken


@pytest.mark.slow
def test_the_search_finds_what_is_fastest_on_the_bench(pool: ThreadPoolExecutor) -> None:
    timer = Timer(NEST, Pretended(), pool=pool)
    explored = NEST.search("random", 6, measure=timer)
    assert explored.candidate is not None
    assert explored.nanoseconds == min(timer.known.values())
    assert explored.trial is not None
    assert not explored.trial.wrong


def test_what_is_faster_than_its_bound_is_counted(pool: ThreadPoolExecutor) -> None:
    class Faster(Pretended):
        def measure(self, ready: Built, samples: int) -> Sequence[float]:
            return [1e-12] * samples

    timer = Timer(NEST, Faster(), pool=pool)
    some = leaves(3)
    assert (timer(some) == 1e-3).all()
    assert timer.violations == len(some)


@pytest.mark.parametrize(
    "program",
    [
        axpy(100, cut=Cut(tail=True)),
        matmul(9, 11, 6, ((2,), (2,), (2,)), stride=3, cut=Cut(tail=True)),
        two_matmuls(5, 6, 7, 8, ((2,),), ((2,),), cut=Cut(tail=True)),
    ],
    ids=["axpy", "strided matmul", "two matmuls"],
)
def test_some_points_are_what_the_whole_is_there(program: Program) -> None:
    """Where the whole would take too long, NumPy says what is right at some of its elements."""
    arrays, numbers = inputs(program, 3)
    whole = evaluate(program, arrays, numbers)
    every = {
        name: len(where) for name, (where, _) in evaluate_at(program, arrays, numbers, {}).items()
    }
    points = some_points(program, np.random.default_rng(2), most=60)
    assert points
    found = evaluate_at(program, arrays, numbers, points)
    assert found.keys() == whole.keys()
    for name, (where, each) in found.items():
        assert 2 <= len(where) < every[name]
        assert np.allclose(whole[name][where], each)


def test_all_points_of_what_is_folded_are_needed() -> None:
    program = matmul(8, 8, 8, ((2,), (2,), (2,)))
    (k,) = [each for each in program.axes if each.name == "k"]
    with pytest.raises(CheckError, match="all of axis 'k'"):
        evaluate_at(program, *inputs(program), {k: np.arange(2)})
    assert not some_points(program, np.random.default_rng(0))


def test_digests_are_of_texts() -> None:
    kernel = lower(NEST.implementation(leaves(1)))
    assert Written(kernel, "a").digest != Written(kernel, "b").digest


WORDS = ("explore", "axpy", "--size", "n=3", "--evaluations", "3", "--engine", "random")


def test_without_a_gpu_the_bound_ranks_and_the_output_says_so(
    cli: Cli,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "gpu_name", lambda: None)
    ran = cli(*WORDS)
    assert "by the bound, which is a model: not measured" in ran.out, ran.out


class PretendedDriver:
    def architecture(self, gpu: int) -> str:
        return "sm_90"

    def name(self, gpu: int) -> str:
        return f"pretended GPU {gpu}"


def test_integers_on_a_gpu_are_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and arrays are of their types, and one more is wrong."""
    monkeypatch.setattr(rig, "open_driver", PretendedDriver)
    nest = LoopNest("scaled")
    i = nest.axis("i", 12, 4)
    x, y = nest.array("x", i, dtype=i32), nest.array("y", i, dtype=i32)
    y[i] = x[i] * 9999 * nest.parameter("by", i32)
    program = nest.done()
    bench = GpuNestBench(program)
    assert isinstance(bench.numbers["by"], int)
    assert len(set(bench.arrays["x"].tolist())) > 6
    right = evaluate(program, bench.arrays, bench.numbers)
    made = next(implementations(NestSpace(program), 1))
    ready = Built(lower(made), b"")

    def arrays() -> list[Any]:
        return [right.get(each.name, bench.arrays[each.name]) for each in program.arrays]

    bench._right(ready, arrays())
    right["y"][3] += 1
    with pytest.raises(DeviceError, match="wrong y"):
        bench._right(ready, arrays())
