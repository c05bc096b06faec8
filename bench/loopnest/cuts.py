"""Whether what cuts remove is never better than what they keep, on twenty small programs.

    python -m bench.loopnest.cuts [--only softmax] [--drawn 300] [--some 0] [--out FILE]

Of programs of one instruction all implementations of the uncut space are looked at, up to `--most`;
of others, `--drawn` random ones. Of those that are removed, all (or `--some`) are compared with the
kept one that they become by the witnesses: both run on the simulator, with equal results, bit by
bit, and no count of the time model may be greater. `gain` says what cuts do to random descents of
larger programs: how many they remove, how many arrive, and CPU seconds of each.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from bench.common.loopnest.cut_programs import SMALL
from bench.common.loopnest.cutting import Comparing, Cutting
from bench.harness import arguments, earlier, environment, save

from warploom.loopnest.space import NestSpace
from warploom.pipeline.exploring import nest_of
from warploom.search.branching.descent import Descents, descents
from warploom.search.branching.problem import SpaceProblem

GAINS: dict[str, tuple[str, dict[str, int]]] = {
    "axpy": ("axpy", {"n": 1 << 20}),
    "matvec": ("matvec", {"m": 4096, "n": 4096}),
    "gesummv": ("gesummv", {"m": 4096, "n": 4096}),
    "matmul": ("matmul", {"m": 1024, "n": 1024, "k": 1024}),
    "batched-matmul": ("batched-matmul", {"batch": 64, "m": 128, "n": 128, "k": 128}),
}


def tried(name: str, most: int, drawn: int, some: int) -> dict[str, Any]:
    since = time.process_time()
    cutting = Cutting(SMALL[name]())
    leaves, is_all = cutting.implementations(most, drawn)
    removed = np.flatnonzero(~cutting.kept(leaves))
    chosen = np.random.default_rng(0).permutation(removed)[: some or None]
    comparing, wrong, steps = Comparing(cutting), list[str](), Counter[str]()
    for row in map(int, chosen):
        found = comparing.compared(leaves.take(slice(row, row + 1)))
        steps.update(set(found.steps))
        wrong += [f"row {row}, {' '.join(found.steps)}: {each}" for each in found.wrong]
    return {"implementations": len(leaves), "all": is_all, "removed": len(removed),
            "compared": len(chosen), "by": dict(sorted(steps.items())), "wrong": wrong,
            "cpu_seconds": round(time.process_time() - since, 1)}  # fmt: skip


def gain(name: str, count: int = 128) -> dict[str, Any]:
    """Random descents of the nest as it is, uncut and cut, the same number of each."""
    program = nest_of(*GAINS[name]).program
    cutting = Cutting(program)
    uncut, spent = _descents(cutting.uncut, count)
    cut, after = _descents(cutting.cut, count)
    leaves = uncut.leaves.take(np.flatnonzero(uncut.arrived))
    removed = {"all": _share(~cutting.kept(leaves))}
    for name, own in cutting.by_cut.items():
        removed[name] = _share(~cutting.kept(leaves, own))
    useful = len(leaves) * (1 - removed["all"])
    return {"descents": count, "arrived": int(uncut.arrived.sum()), "removed": removed,
            "arrived_cut": int(cut.arrived.sum()), "ms_each": round(1e3 * spent / count, 2),
            "ms_each_cut": round(1e3 * after / count, 2),
            "kept_per_second": round(useful / spent, 1),
            "kept_per_second_cut": round(int(cut.arrived.sum()) / after, 1)}  # fmt: skip


def _share(flags: Any) -> float:
    return round(float(np.mean(flags)), 3) if len(flags) else 0.0


def _descents(space: NestSpace, count: int) -> tuple[Descents, float]:
    problem = SpaceProblem(space.propagator, branch=space.branch)
    descents(problem, 8, np.random.default_rng(1))  # what is compiled once
    since = time.process_time()
    found = descents(problem, count, np.random.default_rng(0))
    return found, time.process_time() - since


def main() -> int:
    parser = arguments(__doc__, "loopnest_cuts.json", only="programs with this word in their name")
    parser.add_argument("--most", type=int, default=20000, help="implementations, to try all")
    parser.add_argument("--drawn", type=int, default=300, help="random ones, where there are more")
    parser.add_argument(
        "--some", type=int, default=0, help="removed ones that are compared; 0: all"
    )
    asked = parser.parse_args()
    record = earlier(asked.out) if asked.only else {}
    rows, gains = record.get("programs", {}), record.get("gains", {})
    for name in SMALL:
        if asked.only in name:
            rows[name] = tried(name, asked.most, asked.drawn, asked.some)
            print(name, json.dumps(rows[name] | {"wrong": rows[name]["wrong"][:3]}), flush=True)
            save(asked.out, {"programs": rows, "gains": gains, **environment()})
    for name in GAINS:
        if asked.only in name:
            gains[name] = gain(name)
            print("gain", name, json.dumps(gains[name]), flush=True)
            save(asked.out, {"programs": rows, "gains": gains, **environment()})
    return 1 if any(row["wrong"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
