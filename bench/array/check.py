"""Array expressions without a GPU: the published counts, and candidates of the joint model checked.

    python -m bench.array.check                           all of it, as `make accept` does
    python -m bench.array.check counts                    constraints and mappings, both solvers
    python -m bench.array.check joint small               conv4_2: at full size looked at, small run
    python -m bench.array.check workloads opencl          every workload on the simulator, by OpenCL

One record, bench/results/array_check.json; a run goes on where an earlier one stopped, `--again`
begins the parts named anew. `--counts` is how many candidates each part looks at: joint, small,
workloads, opencl.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

from bench.array.tasks import (
    CONV4_2,
    SHAPES,
    in_little_numerically,
    numerically,
    planned,
    statically,
)
from bench.common.narrowed import answer
from bench.harness import arguments, earlier, environment, save

from warploom.array.code.program import Candidate
from warploom.array.joint.model import JointModel
from warploom.array.mapping.fusion import Fusion
from warploom.array.mapping.released import released
from warploom.array.mapping.solve import all_mappings, count_mappings
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import map_tree
from warploom.errors import DeviceError, WarploomError
from warploom.machine.record import CUDA, H200, Machine, machine_named
from warploom.search.outcome import Found
from warploom.search.workers.farm import Farm

PARTS = ("counts", "joint", "small", "workloads", "opencl")
COUNTS = (10_000, 300, 300, 50)
PIECE = 25  # candidates of one task
SEED = 12


class Record:
    """What is kept, written after every piece of work."""

    def __init__(self, out: Path, without: set[str]) -> None:
        self.out = out
        before = earlier(out)
        self.rows: dict[str, Any] = {
            name: each for name, each in before.items() if name not in without
        }

    def part(self, *names: str) -> dict[str, Any]:
        row = self.rows
        for name in names:
            row = row.setdefault(name, {})
        return row

    def keep(self) -> None:
        save(self.out, self.rows | environment())


# -- the published figures -------------------------------------------------------------------------


def counts(record: Record) -> None:
    """The convolution is our own, derived by rewriting; its maps are the published ones."""
    _, made = planned("convolution")
    tree = map_tree(made, 0)
    row = record.part("counts")
    row |= {
        "maps": len(tree.maps),
        "may_be_parallel": sum(not each.uses("private") for each in tree.maps),
        "constraints": released(tree, "none").by_kind,
        "sound_constraints": sound(tree).by_kind,
    }
    fusions: tuple[Fusion, ...] = ("coded", "intended", "private")
    for fusion in fusions:
        rules = released(tree, fusion)
        start = time.process_time()
        found = answer(count_mappings(rules).outcome)
        took = time.process_time() - start
        own = record.part("counts", "mappings", fusion)
        own |= {"count": found, "seconds": round(took, 2), **_by_cpsat(rules, found, own)}
        print(f"{fusion}: {json.dumps(own)}", flush=True)
        record.keep()
    row["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    row["sound_mappings_with_fusion"] = answer(_model(H200, "coded").mappings())
    row["sound_mappings_with_fusion_as_meant"] = answer(_model(H200).mappings())
    record.keep()


def _by_cpsat(rules: Any, count: int, before: dict[str, Any]) -> dict[str, Any]:
    """What the second solver says; what it said before, where its package is not there."""
    from bench.common.array.cpsat import solve_by_cpsat

    start = time.process_time()
    try:
        theirs = answer(solve_by_cpsat(rules))
    except WarploomError as error:
        return {"cpsat": before.get("cpsat", error.message)}
    mine = answer(all_mappings(rules).outcome)
    same = set(map(bytes, theirs)) == set(map(bytes, mine))
    return {
        "cpsat": len(theirs),
        "cpsat_seconds": round(time.process_time() - start, 1),
        "the_same_set": same and len(theirs) == count,
    }


# -- candidates ------------------------------------------------------------------------------------


def _model(machine: Machine, fusion: Fusion = "intended") -> JointModel:
    program, made = planned("convolution")
    return JointModel(program, CONV4_2, machine, fusion, plan=made)


Submit = Callable[[list[Candidate]], Future[list[str]]]


def _submitted(farm: Farm, task: Callable[..., list[str]], *given: Any) -> Submit:
    """What sends candidates to the farm, after what the task takes besides."""
    return lambda candidates: farm.submit(task, *given, candidates)


@dataclass(frozen=True)
class Part:
    """The candidates of one row of the record, and who looks at them."""

    label: str
    row: dict[str, Any]
    candidates: list[Candidate]
    submit: Submit
    otherwise: Submit | None = None  # where a process ended: the driver's fault, or ours?

    def pieces(self) -> list[tuple[Part, list[Candidate]]]:
        """What was not looked at before."""
        self.row.setdefault("checked", 0)
        self.row.setdefault("wrong", [])
        starts = range(self.row["checked"], len(self.candidates), PIECE)
        return [(self, self.candidates[at : at + PIECE]) for at in starts]


def _check(record: Record, parts: list[Part]) -> None:
    """The parts in turn, a piece of each, so that a run that was stopped has looked at all."""
    iterations = zip_longest(*(each.pieces() for each in parts))
    pieces = [piece for iteration in iterations for piece in iteration if piece is not None]
    tasks = [part.submit(candidates) for part, candidates in pieces]
    for (part, candidates), task in zip(pieces, tasks, strict=True):
        try:
            said = task.result()
        except DeviceError:  # the process ended: which of them was it?
            said = [_alone(part, each) for each in candidates]
        row = part.row
        row["checked"] += len(said)
        row["wrong"] += [each[:300] for each in said if each]
        record.keep()
        print(f"{part.label}: {row['checked']} checked, {len(row['wrong'])} wrong", flush=True)


def _alone(part: Part, candidate: Candidate) -> str:
    """A driver may crash on what is right: then it is right in another way of compiling."""
    try:
        return part.submit([candidate]).result()[0]
    except DeviceError as error:
        said = f"{error.message}: {candidate}"
    if part.otherwise is None:
        return said
    try:
        found = part.otherwise([candidate]).result()[0]
    except DeviceError:
        return said
    part.row["driver_crashed"] = part.row.get("driver_crashed", 0) + (not found)
    return found


def joint(record: Record, count: int, farm: Farm) -> None:
    """With the fusion rule as it was meant, so many; as it was coded, a tenth of that."""
    parts = []
    forms: list[tuple[Fusion, str, int]] = [
        ("intended", "", count), ("coded", ", fusion as coded", count // 10),
    ]  # fmt: skip
    for machine, (fusion, said, many) in product((machine_named("mali"), H200), forms):
        name = machine.name + said
        row = record.part("joint", name)
        if row.get("checked", 0) >= many:
            continue
        took = []
        for _ in range(3):
            start = time.process_time()
            assert isinstance(_model(machine, fusion).first(), Found)
            took.append(time.process_time() - start)
        model = _model(machine, fusion)
        start = time.process_time()
        drawn = answer(model.sample(many, SEED))
        row |= {
            "first_seconds": round(min(took), 3),
            "sampling_seconds": round(time.process_time() - start, 1),
            "drawn": model.drawn, "with_room": model.kept,
        }  # fmt: skip
        submit = _submitted(farm, statically, machine.name)
        parts.append(Part(f"joint {name}", row, drawn, submit))
    _check(record, parts)


def small(record: Record, count: int, farm: Farm) -> None:
    """The first so many of those, the same mapping at small sizes."""
    parts = []
    for machine in (machine_named("mali"), H200):
        row = record.part("small", machine.name)
        if row.get("checked", 0) < count:
            drawn = answer(_model(machine).sample(count, SEED))
            submit = _submitted(farm, in_little_numerically)
            parts.append(Part(f"small {machine.name}", row, drawn, submit))
    _check(record, parts)


def workloads(record: Record, count: int, farm: Farm, part: str, way: str) -> None:
    parts = []
    for name, (_, sizes, _) in SHAPES.items():
        row = record.part(part, name)
        if row.get("checked", 0) >= count:
            continue
        program, made = planned(name)
        drawn = answer(JointModel(program, sizes, CUDA, plan=made).sample(count, SEED))
        row["sizes"] = sizes
        submit = _submitted(farm, numerically, name, way)
        plain = _submitted(farm, numerically, name, "opencl, not optimised")
        parts.append(Part(f"{part} {name}", row, drawn, submit, plain if way == "opencl" else None))
    _check(record, parts)


def main() -> None:
    parser = arguments(__doc__, "array_check.json", resumes=True)
    parser.add_argument("what", nargs="*", choices=[*PARTS, []], help="all, if nothing is said")
    parser.add_argument("--counts", type=int, nargs=4, default=COUNTS)
    parser.add_argument("--processes", type=int, default=None, help="one less than there are cores")
    given = parser.parse_args()
    parts = given.what or PARTS
    record = Record(given.out, set(parts) if given.again else set())
    at = dict(zip(PARTS[1:], given.counts, strict=True))
    farm = Farm(given.processes)
    todo: dict[str, Callable[[], None]] = {
        "counts": lambda: counts(record),
        "joint": lambda: joint(record, at["joint"], farm),
        "small": lambda: small(record, at["small"], farm),
        "workloads": lambda: workloads(record, at["workloads"], farm, "workloads", "simulator"),
        "opencl": lambda: workloads(record, at["opencl"], farm, "opencl", "opencl"),
    }
    try:
        for each in parts:
            todo[each]()
    finally:
        farm.shutdown(cancel_futures=True)
    wrong = [
        each for part in PARTS[1:] for row in record.rows.get(part, {}).values()
        for each in row["wrong"]
    ]  # fmt: skip
    print(f"{len(wrong)} wrong" if wrong else "nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
