"""Random implementations of every kernel of loop nests: is each of them right?

    PYTHONPATH=src:. python bench/loopnest_descents.py [--descents 500] [--only matmul] [--again]

Each descent ends at a fully specified implementation or at a dead end. What it ends at is lowered,
passes the kernel check and runs on the simulator, races looked for, on inputs of both signs and at
sizes that tiles do not divide; the result is compared with NumPy in double precision. Equal kernels
are run once. Results go to bench/results/loopnest_descents.json batch by batch: a run that was
stopped goes on. The exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.loopnest.running import inputs, traits

from warploom.errors import WarploomError
from warploom.kernel.allocate import allocate
from warploom.kernel.check import check
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.kernel.synchronise import synchronise
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import (
    Cut,
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
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.search.descent import descents
from warploom.search.problem import SpaceProblem

RESULTS = Path(__file__).parent / "results" / "loopnest_descents.json"
BATCH = 25
CLOSE = 1e-4  # of the largest element
TAIL = Cut(tail=True)
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
}


class Checked:
    """The kernels of one program that were run, and what they should have computed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.space = NestSpace(program, everything(H200))
        self.problem = SpaceProblem(self.space.propagator, branch=self.space.branch)
        self.arrays, self.numbers = inputs(program, seed=11)
        self.wanted = evaluate(program, self.arrays, self.numbers)
        self.seen: set[Kernel] = set()

    def batch(self, seed: int, count: int) -> dict[str, Any]:
        found = descents(self.problem, count, np.random.default_rng([seed, 11]))
        wrong: list[str] = []
        seen: Counter[str] = Counter()
        before = len(self.seen)
        for row in np.flatnonzero(found.arrived):
            made = Implementation(self.space, found.leaves, int(row))
            unsynchronised = raw(made)
            seen.update(traits(made, unsynchronised))
            if unsynchronised in self.seen:
                continue
            self.seen.add(unsynchronised)
            try:
                reason = self._wrong(unsynchronised)
            except WarploomError as error:
                reason = f"{type(error).__name__}: {error}"
            if reason:
                wrong.append(f"seed {seed}, descent {row}: {reason}"[:500])
        arrived = int(np.count_nonzero(found.arrived))
        return {"descents": count, "arrived": arrived, "run": len(self.seen) - before,
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


def summed(name: str, batches: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    seen: Counter[str] = Counter()
    for each in batches:
        seen.update(each["traits"])
    count = {key: sum(each[key] for each in batches) for key in ("descents", "arrived", "run")}
    wrong = [text for each in batches for text in each["wrong"]]
    return {"name": name, **count, "wrong": wrong, "traits": dict(sorted(seen.items())),
            "seconds": round(seconds, 1)}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--descents", type=int, default=500)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true", help="not what an earlier run has done")
    given = parser.parse_args()
    records: dict[str, dict[str, Any]] = {}
    if RESULTS.exists():
        records = {each["name"]: each for each in json.loads(RESULTS.read_text())}
    names = [name for name in KERNELS if given.only in ("", name)]
    if given.again:
        records = {name: each for name, each in records.items() if name not in names}
    checked: dict[str, Checked] = {}
    while due := [n for n in names if records.get(n, {}).get("descents", 0) < given.descents]:
        for name in due:  # a batch of each, so that a run which is stopped has some of all
            if name not in checked:
                checked[name] = Checked(KERNELS[name])
            records[name] = continued(name, checked[name], records.get(name), given.descents)
            rows = [records[each] for each in KERNELS if each in records]
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
            print(line(records[name]), flush=True)
    found = [records[name] for name in names]
    return int(any(each["wrong"] or not each["arrived"] for each in found))


def continued(
    name: str, checked: Checked, before: dict[str, Any] | None, wanted: int
) -> dict[str, Any]:
    """A record with one more batch."""
    start = time.process_time()
    done, number = (before["descents"], before["batches"]) if before else (0, 0)
    batch = checked.batch(number, min(BATCH, wanted - done))
    seconds = (before["seconds"] if before else 0.0) + time.process_time() - start
    return summed(name, [*([before] if before else []), batch], seconds) | {"batches": number + 1}


def line(record: dict[str, Any]) -> str:
    return (
        f"{record['name']}: {record['descents']} descents, {record['arrived']} arrived, "
        f"{record['run']} kernels run, {len(record['wrong'])} wrong, {record['seconds']} s"
    )


if __name__ == "__main__":
    sys.exit(main())
