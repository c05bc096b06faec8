"""What a batch of candidates takes: threads, registers, bytes, unrolled statements, barriers.

A batch is a column for each size and each map. Figures are upper bounds of what lowering makes of a
candidate, so that what fits here fits there. Memory is counted by lifetime: what is needed together
has to fit. Where only sizes are known, figures are what every mapping takes at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.array.code.storage import accesses_of, indices_of
from warploom.array.joint.least import Least
from warploom.array.language.ir import Param
from warploom.array.mapping.constraint import FUSED, GLOBAL, GROUP, LANE, LOCAL, RUNS, WARP
from warploom.array.mapping.fusion import Fusion
from warploom.array.mapping.reduced import reduced
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import MapTree, map_tree
from warploom.array.plan.loops import Buffer, Loop, Plan, Site, loops_in, sites
from warploom.array.types import Array, Tuple, Type, Vector, dtype_of
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, variables

Ints = npt.NDArray[np.int64]
Runs = Mapping[int, npt.NDArray[np.int8]]
Columns = Mapping[str, Ints]
Sizes = Columns | Least
Placed = tuple[Runs, Ints]  # how maps run, and threads of a group
WORD = 4  # bytes of a register
CODE = {run: at for at, run in enumerate(RUNS)}


@dataclass(frozen=True, slots=True)
class Batch:
    """Candidates side by side: sizes by name, and for each stage runs by map and threads."""

    sizes: Columns
    runs: tuple[Runs, ...]
    groups: tuple[Ints, ...]

    @property
    def count(self) -> int:
        return len(self.groups[0])

    def only(self, keep: Any) -> Batch:
        return Batch(
            {name: each[keep] for name, each in self.sizes.items()},
            tuple({m: each[keep] for m, each in runs.items()} for runs in self.runs),
            tuple(each[keep] for each in self.groups),
        )


class StageMeasure:
    """Figures of one stage of a plan."""

    def __init__(self, plan: Plan, stage: int, fusion: Fusion = "intended") -> None:
        self.plan, self.stage = plan, stage
        self.body = plan.stages[stage].body
        self.tree: MapTree = map_tree(plan, stage)
        self.constraints = sound(self.tree, fusion)
        able = reduced(self.constraints).choices
        self.shareable = {each for each, allowed in able.items() if allowed & set(LOCAL)}
        self.sites = tuple(sites(self.body))
        maps = [each for each in loops_in(self.body) if each.map is not None]
        self.loops = {each.map.number: each for each in maps if each.map is not None}
        own = {memory for site in self.sites for memory, _ in accesses_of(site.write)}
        self.buffers = [
            each for each in plan.buffers if each.memory in own and each.role == "temporary"
        ]
        self.local, self.private = (
            {each: life_of(each.memory, self.sites) for each in self.buffers if each.space == space}
            for space in ("local", "private")
        )
        self.indexed = {each.name: each.along for each in self.tree.buffers}
        self.inner = {each.parent: each.number for each in self.tree.maps if each.perfect}
        self.unrolled = frozenset(self._unrolled())

    def _unrolled(self) -> Iterator[str]:
        private = {each.memory for each in self.plan.buffers if each.space == "private"}
        for site in self.sites:
            for memory, path in accesses_of(site.write):
                if memory in private:
                    yield from (name for each in indices_of(path) for name in variables(each))

    # -- sizes

    def size(self, loop: Loop, sizes: Sizes) -> Ints:
        return number(loop.size, sizes)

    def whole(self, number: int, sizes: Sizes, runs: Runs) -> Ints:
        """Iterations of a map with all that are fused with it."""
        total = self.size(self.loops[number], sizes) * np.ones_like(runs[number], np.int64)
        fused = np.ones(len(runs[number]), bool)
        while number in self.inner:
            number = self.inner[number]
            fused &= runs[number] == CODE[FUSED]
            total = np.where(fused, total * self.size(self.loops[number], sizes), total)
        return total

    def along(self, codes: tuple[str, ...], sizes: Sizes, runs: Runs) -> Ints:
        """The most iterations of a map that runs in one of these ways; 0 if none does."""
        count = len(next(iter(runs.values()))) if runs else 1
        most: Ints = np.zeros(count, np.int64)
        for number in runs:
            here = np.isin(runs[number], [CODE[each] for each in codes])
            if here.any():
                most = np.maximum(most, np.where(here, self.whole(number, sizes, runs), 0))
        return most

    # -- memory

    def registers(self, sizes: Sizes, placed: Placed | None = None) -> Ints:
        """Words of one thread that are needed at once."""
        held = {each: self._words(each, sizes, placed) for each in self.private}
        return self._together(held, self.private) + self._scratch()

    def _together(self, held: Mapping[Buffer, Ints], lives: Mapping[Buffer, range]) -> Ints:
        """The most that is held at any statement."""
        total: Ints = np.zeros(1, np.int64)
        for at in range(len(self.sites)):
            alive = [held[each] for each, life in lives.items() if at in life]
            total = np.maximum(total, sum(alive, np.zeros(1, np.int64)))
        return total

    def _words(self, buffer: Buffer, sizes: Sizes, placed: Placed | None) -> Ints:
        """What a thread holds of a buffer: its own iterations of what is spread over threads."""
        type_, count = buffer.memory.type, np.ones(1, np.int64)
        for maps in self.indexed.get(buffer.memory.name, ()):
            if not isinstance(type_, Array):
                break
            own = self._own(self.loops[maps[0]], sizes, placed) if maps else None
            count = count * (number(type_.size, sizes) if own is None else own)
            type_ = type_.element
        return count * _bytes(type_, sizes) // WORD

    def _own(self, loop: Loop, sizes: Sizes, placed: Placed | None) -> Ints:
        """Iterations that a thread takes of a loop that threads may share."""
        size = self.size(loop, sizes)
        if loop.map is None or loop.map.number not in self.shareable:
            return size
        if placed is None:
            return np.ones(1, np.int64)
        runs, group = placed
        for side, run in enumerate(LOCAL):
            here = runs[loop.map.number] == CODE[run]
            size = np.where(here, -(-size // group[:, side]), size)
        return size

    def _scratch(self) -> int:
        """What is loaded before it is used, in the largest statement."""
        return max((2 * len(accesses_of(site.write)) for site in self.sites), default=0)

    def largest(self, sizes: Sizes, placed: Placed | None = None) -> Ints:
        """Words of the largest register array."""
        most: Ints = np.ones(1, np.int64)
        for each in self.private:
            most = np.maximum(most, self._words(each, sizes, placed))
        return most

    def shared(self, sizes: Sizes, runs: Runs, group: Ints) -> tuple[Ints, Ints]:
        """Bytes of a group: the least, where arrays that are not needed together lie in the same
        bytes, and the most, where each has its own."""
        held = {each: self._padded(each, sizes, runs, group) for each in self.local}
        most: Ints = sum(held.values(), np.zeros(len(group), np.int64))
        return self._together(held, self.local), most

    def _padded(self, buffer: Buffer, sizes: Sizes, runs: Runs, group: Ints) -> Ints:
        held = _bytes(buffer.memory.type, sizes) * self._copies(buffer, runs, group)
        found: Ints = -(-held // 16) * 16
        return found

    def _copies(self, buffer: Buffer, runs: Runs, group: Ints) -> Ints:
        copies: Ints = np.ones(len(group), np.int64)
        for number in buffer.chain:
            for side, run in enumerate(LOCAL):
                copies = np.where(runs[number] == CODE[run], copies * group[:, side], copies)
            for run in (WARP, LANE):
                copies = np.where(runs[number] == CODE[run], copies * group[:, 0], copies)
        return copies

    def temporary(self, sizes: Sizes, runs: Runs | None) -> Ints:
        """Bytes in global memory that this stage makes for itself or for others; without runs, what
        it makes whatever runs where."""
        total: Ints = np.zeros(1, np.int64)
        for each in self.buffers:
            if each.space == "global" and each.stage == self.stage:
                held = _bytes(each.memory.type, sizes)
                for number in each.chain if runs is not None else ():
                    assert runs is not None
                    parallel = np.isin(
                        runs[number], [CODE[run] for run in (*LOCAL, *GROUP, *GLOBAL)]
                    )
                    held = np.where(parallel, held * self.size(self.loops[number], sizes), held)
                total = total + held
        return total

    # -- code

    def statements(self, sizes: Sizes, placed: Placed | None = None) -> Ints:
        """How many statements there are with loops over registers written out."""
        total: Ints = np.zeros(1, np.int64)
        for site in self.sites:
            total = total + self._times(site, sizes, placed)
        return total

    def _times(self, site: Site, sizes: Sizes, placed: Placed | None) -> Ints:
        times: Ints = np.ones(1, np.int64)
        nests = {each for nest in self.tree.nests for each in nest}
        for loop in site.loops:
            number = None if loop.map is None else loop.map.number
            fusable = number in nests and self._beside_unrolled(number)
            if loop.counter in self.unrolled or loop.lanes or fusable:
                times = times * self._own(loop, sizes, placed)
        return times

    def _beside_unrolled(self, number: int | None) -> bool:
        """Whether a map may be one loop with one that indexes registers."""
        nest = next(each for each in self.tree.nests if number in each)
        return any(self.loops[each].counter in self.unrolled for each in nest)


def life_of(memory: Param, sites_: Sequence[Site]) -> range:
    """The statements from the first to the last at which a buffer holds something that is needed,
    by their numbers. Loops around all of its accesses make it anew in every iteration; in all
    others it is needed from their begin to their end."""
    own = [
        at for at, site in enumerate(sites_)
        if any(each is memory for each, _ in accesses_of(site.write))
    ]  # fmt: skip
    around = set.intersection(*(set(sites_[at].loops) for at in own))
    held = set(own)
    for at in own:
        entered = next((loop for loop in sites_[at].loops if loop not in around), None)
        held |= {k for k, site in enumerate(sites_) if entered in site.loops}
    return range(min(held), max(held) + 1)


def number(size: Expr, sizes: Sizes) -> Ints:
    """A size in each candidate, or what it is at least."""
    return sizes.of(size) if isinstance(sizes, Least) else np.asarray(evaluate(size, sizes))


def _bytes(type_: Type, sizes: Sizes) -> Ints:
    match type_:
        case Array(element, size):
            return number(size, sizes) * _bytes(element, sizes)
        case Tuple(parts):
            total: Ints = np.zeros(1, np.int64)
            for part in parts:
                total = total + _bytes(part, sizes)
            return total
        case Vector(_, width):
            dtype = dtype_of(type_)
            assert dtype is not None
            return np.asarray(width * max(WORD, dtype.bytes), np.int64)
        case _:
            dtype = dtype_of(type_)
            return np.asarray(max(WORD, dtype.bytes) if dtype else WORD, np.int64)
