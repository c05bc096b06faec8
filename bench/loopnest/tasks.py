"""Random implementations checked: what `loopnest_descents.py` runs in processes of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from bench.common.loopnest.compiled import Batch, more_than_compiled
from bench.common.loopnest.running import traits
from bench.common.loopnest.stated import STATED, program_named

from warploom.errors import WarploomError
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel, TensorKind
from warploom.loopnest.bound import Bound
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import Evaluation
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
from warploom.loopnest.trial import agrees, before, some_inputs
from warploom.machine.record import H200
from warploom.schedule.lower import finished
from warploom.search.branching.descent import descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

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
    """A program, its space, of which some decisions are fixed, and what every implementation of it
    should compute."""

    def __init__(
        self, program: Program, kind: TensorKind | None = None, fixes: Sequence[str] = ()
    ) -> None:
        self.program = program
        random = np.random.default_rng(11)
        self.arrays, self.numbers = some_inputs(program, random, seen=kind)
        self.space = NestSpace(program, with_tensor_cores(H200, kind) if kind else everything(H200))
        self.bound = Bound(self.space, H200.rates)
        fixes = [*fixes, *(["dim_kind(sum_1.k1)=TENSOR"] if kind else [])]
        taken = fixed(self.space.propagator, fixes) if fixes else ()
        self.problem = SpaceProblem(self.space.propagator, taken, branch=self.space.branch)
        meant = Evaluation(program, self.arrays, self.numbers, {})
        self.before = dict(before(meant, self.arrays))
        self.wanted = meant.outputs()

    def batch(self, seed: int, count: int) -> dict[str, Any]:
        """Descents that depend on the seed alone, whichever process makes them."""
        found = descents(self.problem, count, np.random.default_rng([seed, 11]))
        wrong: list[str] = []
        seen: Counter[str] = Counter()
        kernels: dict[Kernel, int] = {}
        done: dict[int, Kernel] = {}
        for row in map(int, np.flatnonzero(found.arrived)):
            try:
                made = Implementation(self.space, found.leaves, row)
                unsynchronised = raw(made)
                seen.update(traits(made, unsynchronised))
                if unsynchronised not in kernels:
                    kernels[unsynchronised] = row
                    done[row] = finished(unsynchronised)
            except WarploomError as error:
                wrong.append(f"seed {seed}, descent {row}: no kernel: {error}"[:500])
        batch = Batch(list(done.values())) if done else None
        for number, (row, kernel) in enumerate(done.items()):
            assert batch is not None
            try:
                work = self.bound.terms(found.leaves.take(slice(row, row + 1))).work
                reasons = [*self._wrong(kernel, batch, number, work)]
            except WarploomError as error:
                reasons = [f"{type(error).__name__}: {error}"]
            wrong += [f"seed {seed}, descent {row}: {each}"[:500] for each in reasons]
        arrived = int(np.count_nonzero(found.arrived))
        return {"descents": count, "arrived": arrived, "run": len(done),
                "by": ["simulator", "PTX", "C"], "wrong": wrong,
                "traits": dict(sorted(seen.items()))}  # fmt: skip

    def _wrong(
        self, kernel: Kernel, batch: Batch, number: int, work: Mapping[str, Any]
    ) -> Iterator[str]:
        """What is wrong with a kernel, on the simulator, compiled to PTX, and in C."""
        given = self._given()
        report = run(kernel, given)
        if report.races:
            yield f"a race: {report.races[0]}"
        yield from self._apart(given, "the simulator")
        given = self._given()
        compiled = batch.by_ptx(number, given)
        if compiled.races:
            yield f"a race in PTX: {compiled.races[0]}"
        yield from self._apart(given, "PTX")
        yield from more_than_compiled(work, compiled)
        given = self._given()
        if batch.by_c(number, given):
            yield from self._apart(given, "C")

    def _given(self) -> list[Any]:
        """Arguments; what is stored has something else before."""
        arrays = [self.before[array].copy() for array in self.program.arrays]
        return [*arrays, *self.numbers.values()]

    def _apart(self, given: list[Any], where: str) -> Iterator[str]:
        for array, got in zip(self.program.arrays, given, strict=False):
            if array.name in self.wanted:
                each = self.wanted[array.name]
                same = agrees(self.program, array.name, got, each)
                if not same.all():
                    at = int(np.argmin(same))
                    yield f"{array}[{at}] is {got[at]:.6g} by {where}, and should be {each[at]:.6g}"


@cache
def _checked(name: str) -> Checked:
    """Once for each process."""
    return Checked(KERNELS[name] if name in KERNELS else program_named(name), TENSOR.get(name))


NAMES = (*KERNELS, *STATED)


def checked_batch(name: str, number: int, count: int) -> dict[str, Any]:
    start = time.process_time()
    found = _checked(name).batch(number, count)
    return found | {"seconds": round(time.process_time() - start, 1)}
