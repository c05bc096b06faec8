"""Nodes at depth 10 of three published spaces, counted one by one in the published numbering.

The paper on partially specified implementations enumerated them (its table 3), so these numbers can
be compared exactly, where sizes are estimates: sizes of tiles, kinds of the loops that come first,
and all constraints that reach them. Of the ten ways to cut n one is taken: no loop along n is
decided that far up. Nodes are shared out by what is above them.

    python -m bench.loopnest.nodes [--only matmul-256] [--processes 16]
        [--out FILE]
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from functools import cache

import numpy as np
from bench.harness import arguments, earlier, environment, save
from bench.loopnest.walks import space_of

from warploom.loopnest.ir import Dim, Instruction, Load
from warploom.search.branching.candidate import Candidates, Decision, joined
from warploom.search.branching.problem import SpaceProblem, children, start
from warploom.search.engine import Watch
from warploom.search.workers.farm import Farm

WAYS = 10  # to cut n: two tiles, decided already
DEPTH, SPLIT = 8, 3  # what is counted, without those; where the work is shared out
BATCH = 256
PUBLISHED = {
    "matmul-256": 134060,
    "matmul-1024": 161980,
    "matmul-strided": 142780,
}


@cache
def numbered(name: str) -> SpaceProblem:
    """The space, decided in the published order: sizes, then kinds by the numbers of loops, which
    are numbered as they are made, those of a load along its subscripts. Layouts come after these:
    the published arrays have no dimension for threads that are one loop, so their layouts are open
    for longer."""
    space = space_of(name)
    made = [dim for inst in space.program.instructions for dim in _made(inst)]
    place: dict[Hashable, int] = {dim: at for at, dim in enumerate(dict.fromkeys(made))}
    columns = space.propagator.columns(space.kind)
    kinds = {at: dim for at, (dim,) in enumerate(space.kind.instances, columns.start)}
    held = space.propagator.columns(space.layout)
    decided = [int(each) for each in np.argsort(space.rank)]
    first = decided.index(min(kinds, key=decided.index))
    layouts = list(range(held.start, held.stop))
    before = [each for each in decided[:first] if each not in layouts]
    ordered = sorted(kinds, key=lambda at: place.get(kinds[at], len(place)))
    after = [each for each in decided[first:] if each not in kinds]
    sequence = np.array([*before, *ordered, *layouts, *after])
    cut = tuple(Decision("size", (tile,), (2,)) for tile in ("n1", "n2"))
    return SpaceProblem(space.propagator, cut, branch=space.first_open(sequence))


def _made(inst: Instruction) -> list[Dim]:
    if not isinstance(inst.action, Load):
        return list(inst.dims)
    subscripts = inst.action.access.subscripts
    axes = [axis for each in subscripts for axis in each.axes]
    return sorted(inst.dims, key=lambda dim: axes.index(dim.axis))


def below(name: str, above: Candidates, levels: int) -> Candidates:
    """All nodes so many levels below some others; of the last level no more than the number is
    of interest, but they are few enough."""
    problem = numbered(name)
    for _ in range(levels):
        position = problem.brancher(above)
        going = np.flatnonzero(position >= 0)
        above = joined(
            [
                children(problem, above.take(rows), position[rows], Watch()).candidates
                for rows in np.array_split(going, max(1, len(going) // BATCH))
            ]
        )
    return above


@cache
def shared_out(name: str) -> Candidates:
    return below(name, start(numbered(name), Watch()), SPLIT)


def counted(name: str, first: int, last: int) -> int:
    """Nodes of the depth below some of those where the work is shared out."""
    here = shared_out(name).take(np.arange(first, last))
    return len(below(name, here, DEPTH - SPLIT))


def main() -> None:
    parser = arguments(__doc__, "loopnest_nodes.json")
    parser.add_argument("--only", nargs="*", default=list(PUBLISHED))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    given = parser.parse_args()
    records = earlier(given.out)
    farm = Farm(given.processes)
    for name in given.only:
        begun = time.monotonic()
        many = len(shared_out(name))
        tasks = [
            farm.submit(counted, name, first, min(first + 8, many)) for first in range(0, many, 8)
        ]
        found = WAYS * sum(each.result() for each in tasks)
        seconds = round(time.monotonic() - begun, 1)
        records[name] = {"nodes": found, "published": PUBLISHED[name], "seconds": seconds}
        records[name] |= environment()
        save(given.out, records)
        print(name, records[name], flush=True)
    farm.shutdown()


if __name__ == "__main__":
    main()
