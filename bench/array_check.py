"""Array expressions without a GPU: the published counts, and candidates of the joint model checked.

    python bench/array_check.py counts                    constraints and mappings, both solvers
    python bench/array_check.py joint --count 10000       conv4_2 at full size: static checks
    python bench/array_check.py small --count 300         the same at small sizes, against NumPy
    python bench/array_check.py workloads --count 300     every workload on the simulator
    python bench/array_check.py opencl --count 50         and through OpenCL (PoCL will do)

Records go to bench/results/array_*.json; a run goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

from array_tasks import SHAPES, numerically, statically  # noqa: E402 - beside this script

from warploom.array import workload  # noqa: E402 - the checkout is used without being installed
from warploom.array.joint.model import JointModel  # noqa: E402
from warploom.array.mapping.released import released  # noqa: E402
from warploom.array.mapping.solve import all_mappings, count_mappings  # noqa: E402
from warploom.array.mapping.sound import sound  # noqa: E402
from warploom.array.mapping.tree import map_tree  # noqa: E402
from warploom.array.plan import plan  # noqa: E402
from warploom.array.recipe import convolution  # noqa: E402
from warploom.errors import WarploomError  # noqa: E402
from warploom.machine.record import CUDA, H200, MALI  # noqa: E402
from warploom.search.farm import Farm  # noqa: E402

RESULTS = ROOT / "bench" / "results"
PIECE = 25  # candidates of one task


def keep(name: str, record: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"array_{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def kept(name: str) -> dict[str, Any]:
    file = RESULTS / f"array_{name}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


# -- the published figures -------------------------------------------------------------------------


def counts() -> None:
    """The convolution is our own, derived by rewriting; its maps are the published ones."""
    made = plan(convolution.mid_level(workload.convolution()))
    tree = map_tree(made, 0)
    record: dict[str, Any] = {
        "maps": len(tree.maps),
        "may_be_parallel": sum(not each.uses("private") for each in tree.maps),
        "constraints": released(tree, "none").by_kind,
        "sound_constraints": sound(tree).by_kind,
        "mappings": {},
    }
    for fusion in ("coded", "intended", "private"):
        rules = released(tree, fusion)
        start = time.process_time()
        found = count_mappings(rules).outcome.answer
        took = time.process_time() - start
        record["mappings"][fusion] = {"count": found, "seconds": took, **_by_cpsat(rules, found)}
        print(f"{fusion}: {found} in {took:.1f} s of processor", flush=True)
    record["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    model = JointModel(convolution.mid_level(workload.convolution()), _conv4_2(), H200, plan=made)
    record["sound_mappings_coded"] = model.mappings().answer
    keep("counts", record)
    print(json.dumps(record, indent=1))


def _by_cpsat(rules: Any, count: int) -> dict[str, Any]:
    try:
        from warploom.array.mapping.cpsat import solve_by_cpsat

        start = time.process_time()
        answer = solve_by_cpsat(rules).answer
    except WarploomError as error:  # the extra is not there
        return {"cpsat": error.message}
    mine = all_mappings(rules).outcome.answer
    same = set(map(bytes, answer)) == set(map(bytes, mine))
    return {
        "cpsat": len(answer), "cpsat_seconds": time.process_time() - start,
        "the same": same and len(answer) == count,
    }  # fmt: skip


def _conv4_2() -> dict[str, int]:
    return workload.VGG_16["conv4_2"].sizes()


# -- candidates ------------------------------------------------------------------------------------


def joint(count: int, farm: Farm) -> None:
    program = convolution.mid_level(workload.convolution())
    made = plan(program)
    record = kept("joint")
    for machine in (MALI, H200):
        start = time.perf_counter()
        model = JointModel(program, _conv4_2(), machine, plan=made)
        first = model.first()
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        candidates = model.sample(count, seed=12).answer
        sampling = time.perf_counter() - start
        row = record.get(machine.name, {"checked": 0, "wrong": []})
        row |= {"first_seconds": seconds, "first": str(first)[:40], "sampling_seconds": sampling,
                "drawn": model.drawn, "with_room": model.kept}  # fmt: skip
        pieces = [candidates[at : at + PIECE] for at in range(row["checked"], count, PIECE)]
        tasks: list[Future[list[str]]] = [
            farm.submit(statically, made, machine.name, piece) for piece in pieces
        ]
        for task in tasks:
            said = task.result()
            row["checked"] += len(said)
            row["wrong"] += [each[:200] for each in said if each]
            record[machine.name] = row
            keep("joint", record)
            print(
                f"{machine.name}: {row['checked']} checked, {len(row['wrong'])} wrong", flush=True
            )


def workloads(names: list[str], count: int, way: str, farm: Farm, file: str) -> None:
    record = kept(file)
    for name in names:
        make, sizes, _ = SHAPES[name]
        row = record.get(name, {"checked": 0, "wrong": []})
        model = JointModel(make(), sizes, CUDA)
        candidates = model.sample(count, seed=3).answer
        pieces = [candidates[at : at + PIECE] for at in range(row["checked"], count, PIECE)]
        for task in [farm.submit(numerically, name, way, piece) for piece in pieces]:
            said = task.result()
            row["checked"] += len(said)
            row["wrong"] += [each[:300] for each in said if each]
            record[name] = row
            keep(file, record)
        print(f"{name}: {row['checked']} checked, {len(row['wrong'])} wrong", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["counts", "joint", "small", "workloads", "opencl"])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    if given.what == "counts":
        counts()
        return
    farm = Farm(given.workers)
    try:
        if given.what == "joint":
            joint(given.count, farm)
        elif given.what == "small":
            workloads(["convolution"], given.count, "simulator", farm, "small")
        else:
            way = "opencl" if given.what == "opencl" else "simulator"
            workloads(list(SHAPES), given.count, way, farm, given.what)
    finally:
        farm.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
