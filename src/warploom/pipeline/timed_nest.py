"""Implementations of a loop nest timed on a GPU: the one tuner measures them, the store keeps it.

In come candidates of a search; out go nanoseconds for each, infinite for what does not run or is
wrong. Equal texts are measured once, in this run and, by the store, in all that follow.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from warploom.emit.cuda import cuda
from warploom.errors import DeviceError, InternalError, WarploomError
from warploom.kernel.ir import Kernel, TensorKind
from warploom.loopnest.evaluate import evaluate_at
from warploom.loopnest.ir import Axis, Program
from warploom.loopnest.lower import lower
from warploom.loopnest.show import show
from warploom.loopnest.trial import agrees, some_inputs
from warploom.pipeline.nest import Nest
from warploom.runtime.driver import Launch
from warploom.runtime.rig import Bench, Built, FarRig, GpuRig, built, on_gpu
from warploom.search.branching.candidate import Candidates, Numbers
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible
from warploom.search.storage.store import Store
from warploom.search.storage.tune import Task, tune
from warploom.search.workers.far import Measuring

# Iterations of all loops that NumPy goes through to say what is right. Where there are more, it
# does so at some points of the axes over which nothing is folded, their ends among them.
MOST_ITERATIONS = 1 << 24
MOST_POINTS = 1 << 12  # of one axis


@dataclass(frozen=True, slots=True)
class Written:
    """A kernel and its text, by which it is known."""

    kernel: Kernel
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


class GpuNestBench(GpuRig[Built]):
    """A GPU by its number, with random inputs of both signs for the whole program; for tensor cores
    with as many bits as these look at. A kernel that computes something else is an error."""

    def __init__(self, program: Program, gpu: int = 0, tensor: TensorKind | None = None) -> None:
        super().__init__(gpu)
        self.program = program
        random = np.random.default_rng(0)
        self.arrays, self.numbers = some_inputs(program, random, seen=tensor)
        self.wanted = evaluate_at(program, self.arrays, self.numbers, some_points(program, random))

    def launches(self, prepared: Built) -> list[Launch]:
        arrays = [on_gpu(self.arrays[each.name].copy(), self.gpu) for each in self.program.arrays]
        arguments = [*arrays, *self.numbers.values()]
        return self.tried(prepared, [arguments], partial(self._right, prepared))

    def _right(self, built: Built, got: list[Any]) -> bool:
        arrays = dict(zip((each.name for each in self.program.arrays), got, strict=False))
        for name, (where, each) in self.wanted.items():
            if not agrees(self.program, name, arrays[name][where], each).all():
                raise DeviceError(f"'{built.kernel.name}' computes a wrong {name} on this GPU")
        return True


def some_points(
    program: Program, random: np.random.Generator, most: int = MOST_ITERATIONS
) -> dict[Axis, Any]:
    """Random points of axes that no reduction runs over, as many as there is time for, with both
    ends of each axis; none where there is time for all."""
    folded = {dim.axis for each in program.instructions
              for dim in (*each.over, *each.scanned)}  # fmt: skip
    iterations = math.prod(axis.size for axis in program.axes)
    free = sorted((each for each in program.axes if each not in folded), key=lambda a: a.size)
    room = most / math.prod(axis.size for axis in folded)
    found: dict[Axis, Any] = {}
    for at, axis in enumerate(free if iterations > most else []):
        count = min(axis.size, MOST_POINTS, max(2, int(room ** (1 / (len(free) - at)))))
        drawn = random.integers(axis.size, size=max(0, count - 2))
        found[axis] = np.unique([0, *drawn, axis.size - 1])
        room /= len(found[axis])
    return found


def compiled_for(arch: str, written: Written) -> Built:
    """Run in processes of their own."""
    return built(written.kernel, written.text, arch)


def written_of(nest: Nest, candidates: Candidates, row: int) -> Written | None:
    """None for what cannot be written as a kernel; a fault of ours is none of these."""
    try:
        kernel = lower(nest.implementation(candidates.take(slice(row, row + 1))))
        return Written(kernel, cuda(kernel))
    except InternalError:
        raise
    except WarploomError:
        return None


def far_nest_bench(program: Program, tensor: TensorKind | None, crew: Measuring) -> FarRig:
    """The GPU of a worker."""
    return FarRig(crew, GpuNestBench, program, 0, tensor)


@dataclass(slots=True, eq=False)
class Timer:
    """Called with candidates of a nest, it gives nanoseconds. `taken` are the samples that were
    just taken; `violations` the kernels that were faster than their bound."""

    nest: Nest
    bench: Bench[Built]
    budget: Budget = field(default_factory=Budget)
    store: Store | None = None
    pool: Executor | None = None
    write: Callable[[Candidates], list[Written | None]] | None = None  # done by others
    known: dict[str, float] = field(default_factory=dict)
    taken: int = 0
    violations: int = 0

    def __call__(self, candidates: Candidates) -> Numbers:
        written = (self.write or self._written)(candidates)
        fresh = {w.digest: w for w in written if w is not None and w.digest not in self.known}
        if fresh:
            self._measure(list(fresh.values()))
        times = [math.inf if w is None else self.known.get(w.digest, math.inf) for w in written]
        self.violations += int(np.count_nonzero(self.nest.bound(candidates) > np.array(times)))
        return np.array(times)

    def _written(self, candidates: Candidates) -> list[Written | None]:
        return [written_of(self.nest, candidates, row) for row in range(len(candidates))]

    def _measure(self, fresh: list[Written]) -> None:
        task: Task[Written, Built] = Task(
            self.nest.program.name,
            {"program": show(self.nest.program)},
            self.bench.device,
            fresh,
            lambda each: each.digest,
            partial(compiled_for, self.bench.arch),
            self.bench.measure,
        )
        found = tune(task, self.budget, store=self.store, pool=self.pool)
        if isinstance(found, Found):
            self.taken += found.answer.measured
            done = [t for t in found.answer.trials if t.samples or t.error]
            self.known |= {trial.text: trial.seconds * 1e9 for trial in done}
        elif isinstance(found, Impossible):  # none of them runs
            self.known |= dict.fromkeys((each.digest for each in fresh), math.inf)
