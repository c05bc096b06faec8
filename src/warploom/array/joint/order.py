"""Which candidates to look at first: about how long each takes, from counts alone.

Seconds are not meant: iterations that one thread takes one after another, times rounds of groups on
the multiprocessors, with each access of global memory weighed by the sectors that a warp needs for
it (coalescing) beside what is computed (intensity), and barriers by their iterations.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.array.code.storage import accesses_of, indices_of, parts_of
from warploom.array.joint.measure import CODE, Batch, Columns, Ints, Runs, StageMeasure
from warploom.array.mapping.constraint import GLOBAL, GROUP, LANE, LOCAL, WARP
from warploom.array.plan.loops import Site
from warploom.array.plan.view import Path
from warploom.array.types import shape
from warploom.index.evaluate import evaluate
from warploom.machine.record import Machine

BARRIER = 20.0  # iterations that waiting for a group costs
SECTOR_ITERATIONS = 0.5  # iterations that a sector more costs
RESIDENT = 1024  # threads of a multiprocessor that hide waiting
PROCESSORS = 12  # where nobody knows how many there are


def iterations(
    batch: Batch, stages: list[StageMeasure], machine: Machine
) -> npt.NDArray[np.float64]:
    """The cost of each candidate: less is better."""
    total: npt.NDArray[np.float64] = np.zeros(batch.count)
    for at, stage in enumerate(stages):
        total = total + _stage(stage, batch, at, machine)
    return total


def _stage(
    stage: StageMeasure, batch: Batch, at: int, machine: Machine
) -> npt.NDArray[np.float64]:  # fmt: skip
    sizes, runs, group = batch.sizes, batch.runs[at], batch.groups[at]
    threads = group.prod(1)
    work: npt.NDArray[np.float64] = np.zeros(batch.count)
    for site in stage.sites:
        own = _own_iterations(stage, site, sizes, runs, group)
        weight = np.ones(batch.count)
        for path, dims in _global_paths(stage, site, sizes):
            weight = weight + SECTOR_ITERATIONS * _sectors(site, path, dims, sizes, runs, machine)
        work = work + own * weight
    for buffer in stage.buffers:
        if buffer.space == "local":
            outer = [each for each in stage.sites if each.write.memory is buffer.memory]
            if outer:
                work = work + BARRIER * _own_iterations(stage, outer[0], sizes, runs, group) / 8
    groups = _groups(stage, sizes, runs, group)
    beside = np.maximum(1, RESIDENT // threads) * (machine.multiprocessors or PROCESSORS)
    rounds = np.ceil(groups / beside)
    idle = np.maximum(1.0, machine.lanes / threads)  # lanes of a warp that nobody uses
    few = np.maximum(1.0, 128 / threads) ** 0.5
    found: npt.NDArray[np.float64] = work * rounds * idle * few
    return found


def _own_iterations(
    stage: StageMeasure, site: Site, sizes: Columns, runs: Runs, group: Ints
) -> npt.NDArray[np.float64]:
    """How often one thread comes to a statement."""
    times: npt.NDArray[np.float64] = np.ones(len(group))
    for loop in site.loops:
        size = stage.size(loop, sizes).astype(float)
        own: npt.NDArray[np.float64] = np.broadcast_to(size, times.shape)
        if loop.map is not None:
            run = runs[loop.map.number]
            for code in (*GROUP, *GLOBAL):
                own = np.where(run == CODE[code], 1.0, own)
            for side, code in enumerate(LOCAL):
                own = np.where(run == CODE[code], np.ceil(own / group[:, side]), own)
            for code in (WARP, LANE):
                own = np.where(run == CODE[code], np.ceil(own / group[:, 0]), own)
        times = times * own
    return times


def _groups(
    stage: StageMeasure, sizes: Columns, runs: Runs, group: Ints
) -> npt.NDArray[np.float64]:  # fmt: skip
    count: npt.NDArray[np.float64] = np.ones(len(group))
    for side in range(3):
        count = count * np.maximum(1, stage.along((GROUP[side],), sizes, runs))
        many = stage.along((GLOBAL[side],), sizes, runs)
        count = count * np.maximum(1, np.ceil(many / group[:, side]))
    return count


def _global_paths(
    stage: StageMeasure, site: Site, sizes: Columns
) -> list[tuple[Path, list[Ints]]]:  # fmt: skip
    spaces = {each.memory: each.space for each in stage.plan.buffers}
    found = []
    for memory, path in accesses_of(site.write):
        indices = indices_of(path)
        if spaces[memory] == "global" and indices and not parts_of(path):
            dims = [np.asarray(evaluate(each, sizes)) for each in shape(memory.type)]
            if len(dims) == len(indices):
                found.append((path, dims))
    return found


def _sectors(
    site: Site,
    path: Path,
    dims: list[Ints],
    sizes: Columns,
    runs: Runs,
    machine: Machine,
) -> npt.NDArray[np.float64]:
    """Sectors that neighbouring threads touch in one access, beside the one that they must."""
    counters = {loop.counter: np.zeros(1, np.int64) for loop in site.loops}
    first = _place(path, dims, {**sizes, **counters})
    count = len(next(iter(runs.values()))) if runs else 1
    found: npt.NDArray[np.float64] = np.zeros(count)
    word = machine.bank_bytes
    for loop in site.loops:
        if loop.map is None:
            continue
        here = np.isin(runs[loop.map.number], [CODE[each] for each in (LOCAL[0], GLOBAL[0], LANE)])
        if not here.any():
            continue
        moved = {**counters, loop.counter: np.ones(1, np.int64)}
        step = np.abs(_place(path, dims, {**sizes, **moved}) - first) * word
        most = machine.lanes * np.minimum(step, machine.sector_bytes) / machine.sector_bytes
        least = machine.lanes * word / machine.sector_bytes
        found = np.where(here, np.maximum(0.0, most - least), found)
    return found


def _place(path: Path, dims: list[Ints], env: Columns) -> Ints:
    total: Ints = np.zeros(1, np.int64)
    for index, size in zip(indices_of(path), dims, strict=True):
        total = total * size + np.asarray(evaluate(index, env))
    return total
