"""Random implementations checked: what `loopnest_descents.py` runs in processes of its own."""

from __future__ import annotations

import time
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from bench.common.loopnest.running import inputs, traits

from warploom.errors import WarploomError
from warploom.kernel.allocate import allocate
from warploom.kernel.check import check
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel, TensorKind
from warploom.kernel.synchronise import synchronise
from warploom.kernel.tensor import leading_bits
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import (
    Cut,
    Tiles,
    add_parts,
    axpy,
    batched_matmul,
    doitgen,
    gesummv,
    matmul,
    matvec,
    two_matmuls,
)
from warploom.loopnest.lower import raw
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import everything, with_tensor_cores
from warploom.machine.record import H200
from warploom.search.branching.candidate import Decision
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

CLOSE = 1e-4  # of the largest element
TAIL = Cut(tail=True)


def _by_tensor_cores(depth: int) -> tuple[Tiles, Tiles, Tiles]:
    return ((2, 4), (8, 16)), ((4, 2), (2, 4)), ((depth,),)


# Small enough to be run, cut by tiles that divide none of the sizes.
KERNELS: dict[str, Program] = {
    "axpy": axpy(21, tiles=((4, 8), (2, 4)), cut=TAIL),
    "matvec": matvec(5, 5, tiles=((2,), (2,)), inner=((2, 4),), cut=TAIL),
    "gesummv": gesummv(3, 5, tiles=((2,), (2,)), inner=((2, 4),), cut=TAIL),
    "matmul": matmul(5, 7, 3, (((2,), (2,)), ((2,), (4,)), ((2,),)), cut=TAIL),
    "matmul, A strided and transposed": matmul(
        3, 5, 5, (((2,),), ((2,), (2,)), ((2, 4),)), stride=3, transposed="A", cut=TAIL
    ),
    "matmul, B transposed, activated": matmul(
        5, 3, 5, (((2,), (2,)), ((2,),), ((4,),)), transposed="B", activation="sigmoid", cut=TAIL
    ),
    "batched-matmul": batched_matmul(3, 3, 3, 5, ((2, 4),), ((2,),), cut=TAIL),
    "two-matmuls": two_matmuls(3, 3, 3, 3, ((2,),), ((2,),), activation="relu", cut=TAIL),
    "doitgen": doitgen(2, 3, 5, ((2, 4),), ((2, 4),), cut=TAIL),
    "matmul, in parts": matmul(3, 5, 6, ((2,), (4,), (2,)), splits=2, cut=TAIL),
    "add-parts": add_parts(3, 3, 5, ((2,), (4,)), cut=TAIL),
    "matmul by tensor cores, tf32": matmul(37, 21, 11, _by_tensor_cores(8), cut=TAIL),
    "matmul by tensor cores, bf16": matmul(21, 19, 18, _by_tensor_cores(16), cut=TAIL),
}
# Where products are by tensor cores, and of what: factors have no more bits than these look at.
TENSOR: dict[str, TensorKind] = {
    "matmul by tensor cores, tf32": "tf32",
    "matmul by tensor cores, bf16": "bf16",
}


class Checked:
    """A program, its space, and what every implementation of it should compute."""

    def __init__(self, program: Program, kind: TensorKind | None = None) -> None:
        self.program = program
        self.arrays, self.numbers = inputs(program, seed=11)
        self.space = NestSpace(program, with_tensor_cores(H200, kind) if kind else everything(H200))
        taken: tuple[Decision, ...] = ()
        if kind:
            taken = fixed(self.space.propagator, ["dim_kind(sum_1.k1)=TENSOR"])
            self.arrays = {name: leading_bits(a, kind) for name, a in self.arrays.items()}
        self.problem = SpaceProblem(self.space.propagator, taken, branch=self.space.branch)
        self.wanted = evaluate(program, self.arrays, self.numbers)

    def batch(self, seed: int, count: int) -> dict[str, Any]:
        """Descents that depend on the seed alone, whichever process makes them."""
        found = descents(self.problem, count, np.random.default_rng([seed, 11]))
        wrong: list[str] = []
        seen: Counter[str] = Counter()
        kernels: set[Kernel] = set()
        for row in np.flatnonzero(found.arrived):
            made = Implementation(self.space, found.leaves, int(row))
            unsynchronised = raw(made)
            seen.update(traits(made, unsynchronised))
            if unsynchronised in kernels:
                continue
            kernels.add(unsynchronised)
            try:
                reason = self._wrong(unsynchronised)
            except WarploomError as error:
                reason = f"{type(error).__name__}: {error}"
            if reason:
                wrong.append(f"seed {seed}, descent {row}: {reason}"[:500])
        arrived = int(np.count_nonzero(found.arrived))
        return {"descents": count, "arrived": arrived, "run": len(kernels),
                "wrong": wrong, "traits": dict(sorted(seen.items()))}  # fmt: skip

    def _wrong(self, unsynchronised: Kernel) -> str:
        """What is wrong with a kernel; nothing, if it is right."""
        kernel = allocate(synchronise(unsynchronised))
        check(kernel)
        given = {**self.arrays, **{n: np.full_like(each, 77) for n, each in self.wanted.items()}}
        arguments = [given[array.name] for array in self.program.arrays]
        report = run(kernel, [*arguments, *self.numbers.values()])
        if report.races:
            return f"a race: {report.races[0]}"
        for name, each in self.wanted.items():
            off = np.abs(given[name] - each).max()
            if not off <= CLOSE * max(1.0, float(np.abs(each).max())):
                return f"{name} is off by {off:.3g}"
        return ""


@cache
def _checked(name: str) -> Checked:
    """Once for each process."""
    return Checked(KERNELS[name], TENSOR.get(name))


def checked_batch(name: str, number: int, count: int) -> dict[str, Any]:
    start = time.process_time()
    found = _checked(name).batch(number, count)
    return found | {"seconds": round(time.process_time() - start, 1)}
