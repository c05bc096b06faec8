"""How a kernel is spread: how each of its maps runs, and how many threads a group has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.array.mapping.constraint import LANE, LOCAL, WARP, Assignment
from warploom.machine.record import CUDA

THREADS = ("thread_x", "thread_y", "thread_z")
BLOCKS = ("block_x", "block_y", "block_z")


@dataclass(frozen=True, slots=True)
class Spread:
    """`runs` of every map of a stage; `sides` are the threads of a group in each dimension."""

    runs: Assignment
    group: tuple[int, int, int] = (1, 1, 1)
    lanes: int = CUDA.lanes

    @property
    def sides(self) -> Mapping[str, int]:
        """The threads over which maps within a group run, by run."""
        warps = max(1, self.group[0] // self.lanes)
        return {**dict(zip(LOCAL, self.group, strict=True)), LANE: self.lanes, WARP: warps}

    def threads_of(self, run: str) -> int:
        return self.sides[run]

    @property
    def used(self) -> frozenset[str]:
        return frozenset(self.runs.values())


def iterations_of(size: int, threads: int) -> int:
    """Iterations that all threads take together, the last of which may be partial."""
    return -(-size // threads)


def dimension_of(run: str) -> int:
    return int(run[1:])
