"""Table 2 of the paper on partially specified implementations, estimated again: how large spaces
of four kernels are, how often a random descent is a dead end, and how many nodes at depth 10 the
bound leaves over, also with the reversed order of decisions; what a descent of matmul and a search
take. Without a GPU; results go to bench/results/loopnest_estimates.json as soon as they are there,
and a later run goes on.

    python -m bench.loopnest.estimates [--walks 2000] [--only matmul-1024]
        [--processes 16] [--again] [--out FILE]
"""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from bench.common.loopnest.particle_estimate import leaves_of
from bench.harness import arguments, earlier, save
from bench.loopnest.walks import ROWS, by_population, ended, nodes, parts_of

from warploom.loopnest.kernels import Cut, matmul
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline.nest import Nest
from warploom.search.branching.descent import descents
from warploom.search.branching.estimate import Mean
from warploom.search.branching.problem import SpaceProblem
from warploom.search.workers.farm import Farm

PIECE = 64  # walks of one task, where each is by itself
POPULATIONS = (
    16  # of the largest part of a space; of the others, a quarter with a quarter of the walks
)
DESCENT = "descent of matmul 1024, all constraints"
REVERSED = "matmul-1024, reversed order"


def pieces(count: int) -> list[int]:
    return [min(PIECE, count - first) for first in range(0, count, PIECE)]


Later = Callable[[], dict[str, object]]  # what there is when all that was begun is done


def begun_size(farm: Farm, name: str, walks: int) -> Callable[[], tuple[Mean, list[float]]]:
    """The parts added up; and what each population of the largest says alone."""
    tasks = []
    for at, part in enumerate(parts_of(name)):
        less = 4 if at else 1
        size = max(8, walks // POPULATIONS // less)
        tasks.append(
            [
                farm.submit(by_population, name, part, size, seed)
                for seed in range(POPULATIONS // less)
            ]
        )

    def sizes() -> tuple[Mean, list[float]]:
        populations = [[each.result() for each in part] for part in tasks]
        found = [leaves_of(each) for each in populations]
        total = Mean(sum(each.value for each in found), math.hypot(*(each.error for each in found)))
        return total, [math.exp(each) for each in populations[0]]

    return sizes


def begun_nodes(
    farm: Farm, name: str, walks: int, depth: int, reverse: bool = False
) -> Callable[[], tuple[float, float]]:
    """How many nodes there are at a depth, and how many the bound leaves over."""
    tasks = [
        farm.submit(nodes, name, reverse, count, depth, at)
        for at, count in enumerate(pieces(max(PIECE, walks // 16)))
    ]

    def counted() -> tuple[float, float]:
        every, kept = np.array([each.result() for each in tasks]).mean(axis=0)
        return float(every), float(kept)

    return counted


def measured(name: str, farm: Farm, walks: int) -> Later:
    _, size, dead, cut, left = ROWS[name]
    counts = pieces(max(PIECE, walks // 16))
    sizes = begun_size(farm, name, walks)
    tasks = [farm.submit(ended, name, count, at) for at, count in enumerate(counts)]
    at_10 = begun_nodes(farm, name, walks, 10)

    def row() -> dict[str, object]:
        (found, populations), (every, kept) = sizes(), at_10()
        return {
            "name": name,
            "size": [found.value, found.error],
            "size_by_populations": populations,
            "size_published": size,
            "orders_of_magnitude": math.log10(found.value / size),
            "dead_ends": sum(each.result() for each in tasks) / sum(counts),
            "descents": sum(counts),
            "dead_ends_published": dead,
            "cut_ms": cut,
            "nodes_at_10": every,
            "nodes_at_10_below_cut": kept,
            "pruned_times": every / max(kept, 1e-300),
            "pruned_times_published": 1 / left,
        }

    return row


def reversed_order(farm: Farm, walks: int) -> Later:
    """The ablation: what says most is decided last. Beside depth 10 there is the one at which there
    are about as many nodes, as was published."""
    counted = {
        depth: begun_nodes(farm, "matmul-1024", walks, depth, reverse=True) for depth in (10, 16)
    }

    def row() -> dict[str, object]:
        found: dict[str, object] = {"name": REVERSED, "cut_ms": ROWS["matmul-1024"][3]}
        for depth, each in counted.items():
            every, kept = each()
            found |= {
                f"nodes_at_{depth}": every,
                f"nodes_at_{depth}_below_cut": kept,
                f"pruned_times_at_{depth}": every / max(kept, 1e-300),
            }
        return {**found, "pruned_times_published_at_16": 1.8}

    return row


def descent_row(farm: Farm, walks: int) -> Later:
    del farm
    return partial(descent, walks)


def descent(walks: int) -> dict[str, object]:
    """A random descent of matmul with all constraints and all that is beyond the paper: alone and
    in a batch of 64, to the last decision; and what a search of that space holds in memory."""
    nest = Nest(matmul(1024, 1024, 1024, cut=Cut(tail=True)), H200.rates, everything(H200))
    problem = SpaceProblem(nest.space.propagator, branch=nest.space.branch)
    random = np.random.default_rng(3)
    descents(problem, 1, random)  # what is made once
    seconds = {}
    for count in (1, 64):
        start = time.process_time()
        descents(problem, count, random)
        seconds[count] = (time.process_time() - start) / count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    explored = nest.search("tree", min(walks, 400))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "name": DESCENT,
        "milliseconds_alone": 1e3 * seconds[1],
        "milliseconds_in_a_batch_of_64": 1e3 * seconds[64],
        "search_evaluated": explored.evaluated,
        "peak_mb_before_the_search": before,
        "peak_mb": peak,
    }


def rows() -> Iterator[tuple[str, Callable[[Farm, int], Later]]]:
    for name in sorted(ROWS, key=lambda name: -ROWS[name][1]):  # what takes longest first
        yield name, partial(measured, name)
    yield REVERSED, reversed_order
    yield DESCENT, descent_row


def main() -> None:
    parser = arguments(__doc__, "loopnest_estimates.json", resumes=True)
    parser.add_argument("--walks", type=int, default=2000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    given = parser.parse_args()
    records = earlier(given.out, [])
    farm = Farm(given.processes)
    begun: list[Later] = []
    for name, begin in rows():
        made = [each.get("walks", 0) for each in records if each["name"] == name]
        there = max(made, default=0) >= given.walks
        if (not given.only or name in given.only) and (given.again or not there):
            begun.append(begin(farm, given.walks))
    start = time.monotonic()
    for later in begun:
        row = {**later(), "walks": given.walks}
        row["seconds_since_the_start"] = round(time.monotonic() - start, 1)
        records = [each for each in records if each["name"] != row["name"]] + [row]
        save(given.out, records)
        print(
            {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in row.items()}, flush=True
        )
    farm.shutdown()


if __name__ == "__main__":
    main()
