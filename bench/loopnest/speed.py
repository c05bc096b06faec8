"""How many implementations the time model compares in a second, in outline and as kernels.

    python -m bench.loopnest.speed [--only matmul] [--some 16] [--out FILE]

Of each row the first strategy is drawn from; then others near the first of these. Times are CPU
seconds of one core, for each implementation; both ways predict the same ones, in the same run.
`kendall` says how well the order in outline agrees with that by kernels.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from bench.harness import arguments, environment, save
from bench.loopnest.times import kendall

from warploom.pipeline.drawn import Asked, leaves_of, packed
from warploom.pipeline.exploring import nest_of
from warploom.pipeline.nest import Nest
from warploom.pipeline.strategic import strategies_of
from warploom.search.branching.candidate import Candidates

ROWS: dict[str, tuple[str, dict[str, int]]] = {
    "matmul-1000": ("matmul", {"m": 1000, "n": 1000, "k": 1000}),
    "matvec-5000": ("matvec", {"m": 5000, "n": 7000}),
    "gesummv": ("gesummv", {"m": 8192, "n": 8192}),
    "axpy": ("axpy", {"n": 1 << 26}),
}


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def all_of(predict: Callable[[Candidates], float], leaves: list[Candidates]) -> list[float]:
    return [predict(each) for each in leaves]


def drawn(nest: Nest, some: int) -> tuple[Nest, list[Candidates], dict[str, float]]:
    """Implementations of the first strategy, in its own nest, and what drawing takes."""
    variant = strategies_of(nest, None, "default", free=True).variants[0]
    own = Nest(variant.program, nest.rates, nest.target, variant.fixes)
    leaves_of(own, Asked(1, (0,)))  # what is compiled once
    far, found = seconds_of(lambda: leaves_of(own, Asked(some, (1,))))
    rows = np.flatnonzero(found.arrived).tolist()
    leaves = [found.leaves.take(slice(row, row + 1)) for row in rows]
    asked = Asked(some, (2,), near=packed(leaves[0], 0))
    near, _ = seconds_of(lambda: leaves_of(own, asked))
    return own, leaves, {"draw": far / some, "draw near": near / some}


def main() -> int:
    parser = arguments(__doc__, "loopnest_speed.json", only="rows with this word in their name")
    parser.add_argument("--some", type=int, default=16, help="implementations of each row")
    asked = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, (kernel, sizes) in ROWS.items():
        if asked.only not in name:
            continue
        own, leaves, took = drawn(nest_of(kernel, sizes), asked.some)
        row = {key: round(value, 4) for key, value in took.items()}
        times = {}
        for way, predict in (("in outline", own.outlined_time), ("as kernels", own.predicted_time)):
            predict(leaves[0])
            spent, found = seconds_of(partial(all_of, predict, leaves))
            times[way] = np.array(found)
            row[way] = round(spent / len(leaves), 4)
        row["times as many"] = round(
            (row["draw near"] + row["as kernels"]) / (row["draw near"] + row["in outline"]), 1
        )
        row["kendall"] = round(kendall(times["as kernels"], times["in outline"]), 3)
        rows[name] = row
        print(name, json.dumps(row), flush=True)
    save(asked.out, {"rows": rows, **environment()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
