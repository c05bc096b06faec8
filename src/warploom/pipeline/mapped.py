"""Candidates of an array expression measured: which is the fastest, and which with less memory.

In come candidates with the kernels of each, and where to run them; out goes what the one tuner says
(successive halving, kept in a store). A candidate whose result is not what the expression means is
dropped; where the evaluator would take too long, one whose result is not that of the first one.
Memory beside inputs and output is part of the answer: nothing beats what is in `front` in both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np

from warploom.array.code.program import Candidate, Compiled, compile_candidate
from warploom.array.code.schedule import mapping_schedules
from warploom.array.code.storage import dims_of, parts_of
from warploom.array.joint.model import JointModel
from warploom.array.language.bind import bound
from warploom.array.language.effort import effort
from warploom.array.language.evaluate import Leaf, Value, evaluate
from warploom.array.mapping.constraint import SEQUENTIAL, Assignment
from warploom.array.plan.home import leaf_paths
from warploom.emit.parts import with_notes
from warploom.errors import DeviceError, spelled
from warploom.kernel.dtype import DType, coded, decoded
from warploom.kernel.ir import Kernel
from warploom.machine.narrow import FORMATS
from warploom.native import require_c
from warploom.runtime import rig
from warploom.runtime.callable import Device, load
from warploom.runtime.driver import Launch
from warploom.runtime.gpu import gpu_name
from warploom.runtime.opencl import first_device
from warploom.search.outcome import Outcome
from warploom.search.storage.tune import Task, Trial, Tuned, TuneOptions, tune
from warploom.search.workers.far import Measuring

Where: TypeAlias = Device  # one of TIMED
ROOM = 1e-3  # difference between two orders of summation, of the largest element
SMALLEST = 1e-2  # inputs are about 1: of sums that cancel nothing is left to compare with
MOST_ELEMENTS, MOST_OPERATIONS = 1 << 24, 1 << 16  # for the evaluator: a few seconds
# From a code to the next one, of its size: two orders of summation may be rounded to either.
STEP = {each: 2.0 ** -FORMATS[repr(each)].fraction_bits for each in DType if each.is_code}
UNWRITTEN = 0x5A  # in every byte: nobody takes it for a result


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to run a program: `text` by which it is found again, what is shown of it, and what
    makes its kernels (a function of a module with its arguments: other processes can do it)."""

    text: str
    sizes: Mapping[str, int]
    tiles: Mapping[str, int]
    runs: tuple[Assignment, ...]
    bytes_between: int  # in global memory, beside inputs and output
    kernels: Callable[[], Compiled]


def choice_of(model: JointModel, candidate: Candidate) -> Choice:
    """A candidate of a joint model."""
    open_ = sorted(name for axis in model.axes for name in axis.names)
    tiles = {name: candidate.sizes[name] for name in open_}
    said = [" ".join(f"{name}={value}" for name, value in tiles.items())]
    for spread in candidate.spreads:
        runs = [f"{each}:{run}" for each, run in sorted(spread.runs.items()) if run != SEQUENTIAL]
        said.append(" ".join([*runs, "x".join(map(str, spread.group))]))
    return Choice(
        " | ".join(said),
        dict(candidate.sizes),
        tiles,
        tuple(each.runs for each in candidate.spreads),
        model.bytes_between(candidate),
        partial(compile_candidate, model.plan, candidate),
    )


def described(made: Compiled, ran: bool) -> list[Kernel]:
    """The kernels of a candidate; their comments say what they compute, how, and what of them was
    checked."""
    program = made.plan.program
    sizes = ", ".join(f"{each.name} {list(each.dims)}" for each in made.memories)
    count = len(made.kernels)
    return [
        with_notes(
            kernel,
            f"Kernel {at} of {count} of the array program '{program.name}'.",
            f"Arrays: {sizes}.",
            f"Schedule: {text}.",
            f"Verdict: bounds, types and barriers were checked{'' if ran else '; it was not run'}.",
        )
        for at, (kernel, text) in enumerate(
            zip(made.kernels, mapping_schedules(made), strict=True), start=1
        )
    ]


# -- measured --------------------------------------------------------------------------------------


def make(choice: Choice) -> Compiled:
    return choice.kernels()


class Rig(rig.Rig[Compiled]):
    """Inputs of one program on one device, and the result that all candidates should have."""

    def __init__(self, where: Where, seed: int = 0) -> None:
        super().__init__(_device_name(where))
        self.where = where
        self._random = np.random.default_rng(seed)
        self._inputs: dict[str, Any] = {}
        self._wanted: list[Leaf] | None = None
        self._meant = False  # by the evaluator

    def launches(self, prepared: Compiled) -> list[Launch]:
        """All kernels of a candidate, one after another, after its result was looked at."""
        arrays = self._arrays(prepared)
        each_kernel = [
            load(kernel, self.where).prepare(*(arrays[each.name] for each in kernel.params))
            for kernel in prepared.kernels
        ]

        def run() -> None:
            for launch in each_kernel:
                launch()

        run()
        self._check(prepared, arrays)
        return [run]

    def timed(self, launches: Sequence[Launch], samples: int) -> Sequence[float]:
        if self.where == "cuda":
            return super().timed(launches, samples)
        return [_wall(launches[0]) for _ in range(samples)]

    def _arrays(self, compiled: Compiled) -> dict[str, Any]:
        """Inputs, which all candidates share, and fresh memory for everything else."""
        found: dict[str, Any] = {}
        roles = {each.name: each.role for each in compiled.memories}
        for kernel in compiled.kernels:
            for param in kernel.params:
                if param.name in found:
                    continue
                size = _size_of(kernel, param.name)
                if roles.get(param.name, "input") == "input":
                    if param.name not in self._inputs:
                        self._inputs[param.name] = self._there(self._drawn(param.dtype, size))
                    found[param.name] = self._inputs[param.name]
                else:
                    found[param.name] = self._there(_unwritten(param.dtype, size))
        return found

    def _drawn(self, dtype: DType, size: int | None) -> Any:
        if dtype.is_code:
            assert size is not None, "a number is of no code"
            return coded(self._random.uniform(-1.0, 1.0, size), dtype).view(dtype.numpy)
        low, high = (-1.0, 1.0) if dtype.is_float else (-4 if dtype.is_signed else 0, 4)
        values = self._random.uniform(low, high, 1 if size is None else size)
        made = values.astype(dtype.numpy)
        return made[0].item() if size is None else made

    def _there(self, value: Any) -> Any:
        return rig.on_gpu(value) if self.where == "cuda" else value

    def _check(self, compiled: Compiled, arrays: Mapping[str, Any]) -> None:
        here = {
            each.name: rig.on_host(arrays[each.name])
            for each in compiled.memories if each.role == "output"
        }  # fmt: skip
        found = _leaves(compiled.result(here))
        if self._wanted is None:
            meant = _meaning(compiled, self._inputs)
            self._meant = meant is not None
            self._wanted = found if meant is None else meant
        type_ = compiled.plan.output.type
        dtypes = [dims_of(type_, parts_of(path))[1] for path in leaf_paths(type_)]
        if not all(_close(*each) for each in zip(found, self._wanted, dtypes, strict=True)):
            whose = "what the expression means" if self._meant else "that of the first candidate"
            raise DeviceError(f"its result is not {whose}")


def _meaning(compiled: Compiled, arrays: Mapping[str, Any]) -> list[Leaf] | None:
    """What the evaluator says; None where it would take long. Of kernels it shares nothing but how
    single numbers are added, converted and so on (kernel/arithmetic.py)."""
    program = bound(compiled.plan.program, compiled.sizes)
    takes = effort(program)
    if takes.elements > MOST_ELEMENTS or takes.operations > MOST_OPERATIONS:
        return None
    here = {name: rig.on_host(each) for name, each in arrays.items()}
    with np.errstate(all="ignore"):  # as on a device
        return _leaves(evaluate(program, *compiled.inputs(here)))


def _leaves(value: Value) -> list[Leaf]:
    """All arrays of a value, flat: a kernel stores a number as an array of one."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [np.asarray(value).reshape(-1)]


class FarRig(rig.FarRig):
    """The GPU of a worker, for one task: `content` says which, so that a worker who had another
    one before does not take its inputs and its result for ours."""

    where: Where = "cuda"

    def __init__(self, crew: Measuring, content: Any) -> None:
        super().__init__(crew, _rig_for, self.where, content)


def _rig_for(where: Where, _content: Any) -> Rig:
    return Rig(where)


def _unwritten(dtype: DType, size: int | None) -> Any:
    assert size is not None, "what is written is an array"
    return np.full(size * dtype.bytes, UNWRITTEN, np.uint8).view(dtype.numpy)


def _size_of(kernel: Kernel, name: str) -> int | None:
    """The size of an array; None for a scalar."""
    sizes = {each.name: int(getattr(each.size, "value", 0)) for each in kernel.arrays}
    return sizes.get(name)


def _close(left: Leaf, right: Leaf, dtype: DType) -> bool:
    if dtype.is_code:
        left, right = decoded(left, dtype), decoded(right, dtype)
    elif not dtype.is_float:
        return bool((left == right).all())
    room = ROOM + STEP.get(dtype, 0.0)
    finite = np.isfinite(right)
    largest = float(np.abs(right[finite]).max(initial=SMALLEST))
    return bool(np.allclose(left, right, rtol=0, atol=room * largest, equal_nan=True))


def _wall(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _device_name(where: Where) -> str:
    if where == "cuda":
        name = gpu_name()
        if name is None:
            raise DeviceError(
                "there is no GPU to measure on",
                advice=f"use {spelled('--on opencl or --on c', 'opencl or c')}",
            )
        return name
    if where == "opencl":
        return str(first_device().name)
    require_c()
    return "C on this processor"


def tune_choices(
    name: str,
    content: Any,
    choices: Sequence[Choice],
    bench: Rig | FarRig,
    **how: Unpack[TuneOptions],
) -> Outcome[Tuned[Choice]]:
    """The fastest; what was measured before is taken from the store."""
    task = Task(
        f"map {name}", content, bench.device, choices, lambda each: each.text, make, bench.measure
    )
    return tune(task, **how)


def front(trials: Sequence[Trial[Choice]]) -> list[tuple[Trial[Choice], int]]:
    """The trials than which none is both as fast and as small, the fastest first, with their bytes
    beside inputs and output."""
    ran = [(each, each.candidate.bytes_between) for each in trials if each.samples]
    found: list[tuple[Trial[Choice], int]] = []
    for trial, size in sorted(ran, key=lambda pair: (pair[0].seconds, pair[1])):
        if not found or size < found[-1][1]:
            found.append((trial, size))
    return found
