"""Table 2 of the paper on partially specified implementations, estimated again: how large spaces
of four kernels are, how often a random descent is a dead end, and how many nodes at depth 10 the
bound leaves over; what a descent of matmul and a search take. Without a GPU; results go to
bench/results/loopnest_estimates.json as soon as they are there, and a later run goes on.

    PYTHONPATH=src python bench/loopnest_estimates.py [--walks 400] [--only matmul-1024] [--again]
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from warploom.loopnest.bound import Bound
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import Cut, axpy, matmul
from warploom.loopnest.space import DECIDED, NestSpace
from warploom.loopnest.target import everything, paper
from warploom.machine.rates import H200 as H200_RATES
from warploom.machine.rates import K4000
from warploom.machine.record import H200, MACHINES
from warploom.pipeline.nest import Nest
from warploom.search.candidate import Candidates, Decision, Flags
from warploom.search.descent import descents
from warploom.search.estimate import Estimate, Mean, knuth
from warploom.search.problem import SpaceProblem

RESULTS = Path(__file__).parent / "results" / "loopnest_estimates.json"
PROPER = Cut(proper=True)
# The program, and what was published: size, dead ends, cut in ms, what is left at depth 10.
ROWS: dict[str, tuple[Program, float, float, float, float]] = {
    "axpy": (axpy(1 << 26, cut=PROPER), 1.1e11, 0.001, 7.05, 121 / 86587),
    "matmul-256": (matmul(256, 256, 32, cut=PROPER), 1.83e21, 0.14, 0.0214, 20126 / 134060),
    "matmul-1024": (matmul(1024, 1024, 1024, cut=PROPER), 3.5e21, 0.028, 4.81, 6738 / 161980),
    "matmul-strided": (
        matmul(1024, 1024, 1024, stride=32, cut=PROPER), 6.0e20, 0.023, 10.1, 9512 / 142780,
    ),
}  # fmt: skip


def space_of(program: Program, decided: Sequence[str] = DECIDED) -> NestSpace:
    return NestSpace(program, paper(MACHINES["k4000"]), decided)


def problem_of(space: NestSpace) -> SpaceProblem:
    """Only what is decided early: the order of two instructions follows, or does not matter."""
    return SpaceProblem(space.propagator, branch=space.decisions)


def left_over(space: NestSpace, walks: int, depth: int, cut: float) -> tuple[Estimate, Estimate]:
    """Nodes down to a depth, all of them and those whose bound is below the cut."""
    bound, problem = Bound(space, K4000), problem_of(space)

    def keep(candidates: Candidates, at: int) -> Flags:
        del at
        found: Flags = bound(candidates) < cut * 1e6
        return found

    random = np.random.default_rng(2)
    every = knuth(problem, walks, random, deepest=depth)
    return every, knuth(problem, 4 * walks, random, keep=keep, deepest=depth)


def size_of(space: NestSpace, walks: int, random: np.random.Generator) -> Mean:
    """Knuth's estimate for each choice of values that go through memory, added up: nearly all
    implementations are where all do, and few walks get there by themselves."""
    temporaries = space.program.temporaries
    found = []
    for lowered in product(("TRUE", "FALSE"), repeat=len(temporaries)):
        taken = [
            Decision("lowered", (str(t),), (v,)) for t, v in zip(temporaries, lowered, strict=True)
        ]
        if not len(space.propagator.root(taken)):
            continue
        problem = SpaceProblem(space.propagator, taken, branch=space.decisions)
        count = walks if "FALSE" not in lowered else max(8, walks // 8)
        found.append(knuth(problem, count, random).leaves)
    return Mean(sum(each.value for each in found), math.hypot(*(each.error for each in found)))


def descent_row(walks: int) -> dict[str, object]:
    """A random descent of matmul with all constraints and all that is beyond the paper: alone and
    in a batch of 64, to the last decision; and what a search of that space holds in memory."""
    nest = Nest(matmul(1024, 1024, 1024, cut=Cut(tail=True)), H200_RATES, everything(H200))
    problem = SpaceProblem(nest.space.propagator, branch=nest.space.branch)
    random = np.random.default_rng(3)
    descents(problem, 1, random)  # what is made once
    seconds = {}
    for count in (1, 64):
        start = time.process_time()
        descents(problem, count, random)
        seconds[count] = (time.process_time() - start) / count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    explored = nest.search("tree", walks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "name": DESCENT,
        "milliseconds_alone": 1e3 * seconds[1],
        "milliseconds_in_a_batch_of_64": 1e3 * seconds[64],
        "search_evaluated": explored.evaluated,
        "peak_mb_before_the_search": before,
        "peak_mb": peak,
    }


DESCENT = "descent of matmul 1024, all constraints"
REVERSED = "matmul-1024, reversed order"


def dead_ends(problem: SpaceProblem, count: int, random: np.random.Generator) -> tuple[float, int]:
    """The share of uniform descents that end at one."""
    found = descents(problem, count, random)
    return float(1 - found.arrived.mean()), count


def measured(name: str, walks: int) -> dict[str, object]:
    program, size, dead, cut, left = ROWS[name]
    start = time.process_time()
    space = space_of(program)
    built = time.process_time() - start
    problem = problem_of(space)
    random = np.random.default_rng(1)
    size_found = size_of(space, walks, random)
    every, kept = left_over(space, walks, 10, cut)
    start = time.process_time()
    share, count = dead_ends(problem, 2 * walks, random)
    each = (time.process_time() - start) / count
    factor = every.nodes[10].value / max(kept.nodes[10].value, 1e-300)
    return {
        "name": name,
        "size": [size_found.value, size_found.error],
        "size_published": size,
        "orders_of_magnitude": math.log10(size_found.value / size),
        "dead_ends": share,
        "descents": count,
        "dead_ends_published": dead,
        "cut_ms": cut,
        "nodes_at_10": every.nodes[10].value,
        "nodes_at_10_below_cut": kept.nodes[10].value,
        "pruned_times": factor,
        "pruned_times_published": 1 / left,
        "seconds_to_build": built,
        "seconds_of_a_descent": each,
    }


def reversed_order(walks: int) -> dict[str, object]:
    """The ablation: what says most is decided last."""
    program, _, _, cut, _ = ROWS["matmul-1024"]
    space = space_of(program, DECIDED[::-1])
    every, kept = left_over(space, walks, 16, cut)
    return {
        "name": REVERSED,
        "cut_ms": cut,
        "nodes_at_16": every.nodes[16].value,
        "nodes_at_16_below_cut": kept.nodes[16].value,
        "pruned_times": every.nodes[16].value / max(kept.nodes[16].value, 1e-300),
        "pruned_times_published": 1.8,
    }


def rows() -> Iterator[tuple[str, Callable[[int], dict[str, object]]]]:
    for name in ROWS:
        yield name, partial(measured, name)
    yield REVERSED, reversed_order
    yield DESCENT, descent_row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--walks", type=int, default=400)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="also what was made of as many walks")
    given = parser.parse_args()
    records = json.loads(given.out.read_text()) if given.out.exists() else []
    for name, make in rows():
        made = [each.get("walks", 0) for each in records if each["name"] == name]
        there = max(made, default=0) >= given.walks
        if (given.only and given.only != name) or (there and not given.again):
            continue
        row = {**make(given.walks), "walks": given.walks}
        records = [each for each in records if each["name"] != row["name"]] + [row]
        given.out.write_text(json.dumps(records, indent=1) + "\n")
        print(
            {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in row.items()}, flush=True
        )


if __name__ == "__main__":
    main()
