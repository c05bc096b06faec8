"""Sectors of global memory: how many a program touches at all, and how many elements of one a warp
may touch at a time."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import numpy as np

from warploom.index.ir import Expr
from warploom.index.ranges import range_of
from warploom.loopnest.cse import apart
from warploom.loopnest.ir import Access, Array, Axis, Instruction, Load, Store
from warploom.loopnest.must_facts import Facts, MustFacts
from warploom.loopnest.tiling import tilings
from warploom.search.branching.candidate import Flags, Index, Numbers

PIECES = 2048  # of all axes of a condition together


def touched_by(insts: list[Instruction], sector: int, l2_bytes: int) -> tuple[Numbers, Numbers]:
    """For each instruction: sectors that its array has to be read from L2 by (counted once for each
    array), and the share of the bytes that have to go to or come from memory, less what may be in
    the L2 from before."""
    reads, bytes_ = np.zeros(len(insts)), np.zeros(len(insts))
    seen: set[Array] = set()
    for at, inst in enumerate(insts):
        if isinstance(inst.action, Load | Store):
            access = inst.action.access
            if access.array not in seen and not access.named:  # data may name nothing
                seen.add(access.array)
                bytes_[at] = distinct_bytes(access, sector)
                reads[at] = bytes_[at] / sector if isinstance(inst.action, Load) else 0.0
    total = float(bytes_.sum())
    share = max(0.0, total - l2_bytes) / total if total else 0.0
    return reads, bytes_ * share


def distinct_bytes(access: Access, sector: int) -> float:
    """At least so many bytes, in whole sectors, belong to an access for all indices of its axes.

    Axis by axis, the nearest elements first: what lies `step` bytes further on is in other sectors,
    but for the last of one group and the first of the next where no sector is between them.
    """
    size = access.array.dtype.bytes
    if access.where is not None:  # each element is at most as often there as other axes have it
        most = math.prod(axis.size for axis in apart(access))
        return loaded_share(access) * most * size
    elements, sectors, reach = 1, 1, 0
    for axis in apart(access):
        step = abs(access.place.factors[axis]) * size
        beginnings = 1 + (axis.size - 1) * min(step, sector) // sector
        shared = 0 if step >= reach + sector else 1
        sectors = max(beginnings, axis.size * (sectors - shared) + shared)
        elements *= axis.size
        reach += step * (axis.size - 1)
    return float(max(elements * size, sectors * sector if elements > 1 else size))


def loaded_share(access: Access) -> float:
    """At least this part of all indices is one for which the condition of an access holds."""
    if access.where is None:
        return 1.0
    sizes = tuple((axis.name, axis.size) for axis in access.where.axes)
    return _share(access.where.condition, sizes)


@lru_cache(maxsize=256)
def _share(condition: Expr, sizes: tuple[tuple[str, int], ...]) -> float:
    """Piece by piece of the axes, those alone in all of which it holds."""
    count = max(2, int(PIECES ** (1 / max(1, len(sizes)))))
    cuts = [[(n * at // count, n * (at + 1) // count) for at in range(count)] for _, n in sizes]
    held, every = 0, math.prod(n for _, n in sizes)
    for piece in product(*([each for each in own if each[0] < each[1]] for own in cuts)):
        bounds = {name: (a, b - 1) for (name, _), (a, b) in zip(sizes, piece, strict=True)}
        if range_of(condition, bounds).low > 0:
            held += math.prod(b - a for a, b in piece)
    return held / every


class Neighbours:
    """For loads and stores, how many elements of one sector one instruction of a warp may touch:
    those that differ along dimensions which may be threads or vectors."""

    def __init__(self, facts: Facts, sector: int) -> None:
        self.facts = facts
        self.count = len(facts.insts)
        self.close: list[_Close] = []
        self.largest = np.ones(self.count)
        for at, inst in enumerate(facts.insts):
            if isinstance(inst.action, Load | Store):
                access = inst.action.access
                once = {axis for axis in inst.axes if axis.size > 1} <= set(apart(access))
                most = max(1, sector // access.array.dtype.bytes)
                self.largest[at] = most if once else math.inf  # one element may be there often
                for axis in access.place.factors:
                    made = _Close(facts, at, inst, axis, sector)
                    if made.window > 1:
                        self.close.append(made)

    def most(self, known: MustFacts) -> Numbers:
        """[rows, instructions]"""
        found = np.ones((len(known.candidates), self.count))
        target = self.facts.space.target
        moving = known.maybe(*target.threaded, *target.vectors)
        for each in self.close:
            found[:, each.at] *= each.most(known, moving)
        return np.minimum(found, self.largest)


class _Close:
    """One access along one axis, at most `window` indices of which share a sector.

    Elements of one sector are less than a sector apart. Where indices along other axes with smaller
    strides differ, too, these may make up for the difference: so far they reach.
    """

    def __init__(self, facts: Facts, at: int, inst: Instruction, axis: Axis, sector: int) -> None:
        assert isinstance(inst.action, Load | Store)
        self.at = at
        access = inst.action.access
        size = access.array.dtype.bytes
        steps = {each: factor * size for each, factor in access.place.factors.items()}
        self.step = abs(steps[axis])
        self.apart = sector - size  # the first at its begin, the last at its end
        ranked = sorted(steps, key=lambda each: abs(steps[each]))
        below, above = ranked[: ranked.index(axis)], ranked[ranked.index(axis) :]
        self.below = [
            (_tiles(facts, inst, each), abs(steps[each]) * (each.size - 1)) for each in below
        ]
        reach = sum(length for _, length in self.below)
        self.window = 1 + (self.apart + reach) // self.step
        if all(steps[each] % sector == 0 for each in above):  # they move by whole sectors
            first = access.place.offset * size + sum(
                min(0, steps[each] * (each.size - 1)) for each in below
            )
            sectors = (first + reach) // sector - first // sector
            self.window = min(self.window, 1 + sectors // (self.step // sector))
        self.axis = facts.space.program.axes.index(axis)
        self.dims = _tiles(facts, inst, axis)
        rows = tilings(axis)
        self.sizes = np.array(rows, np.float64).reshape(len(rows), len(self.dims))

    def most(self, known: MustFacts, moving: Flags) -> Numbers:
        """The most indices of a window that differ along the levels that move, in any tiling."""
        reach = np.zeros(len(moving))
        for dims, length in self.below:
            reach += np.where(moving[:, dims].any(axis=1), length, 0)
        window = np.minimum(self.window, 1 + (self.apart + reach) // self.step)
        left = np.repeat(window[:, None], len(self.sizes), axis=1)
        gains = np.ones_like(left)
        for level in reversed(range(len(self.dims))):
            size = self.sizes[:, level]
            gains *= np.where(moving[:, self.dims[level]][:, None], np.minimum(size, left), 1.0)
            left = np.ceil(left / size)
        found: Numbers = np.where(known.feasible[self.axis], gains, 1.0).max(axis=1)
        return found


def _tiles(facts: Facts, inst: Instruction, axis: Axis) -> Index:
    """The numbers of its dimensions along the tiles of an axis, the outermost first."""
    own = {dim.tile.level: facts.number[dim]
           for dim in inst.dims if dim.axis is axis and dim.tile is not None}  # fmt: skip
    return np.array([own[level] for level in range(len(own))], np.int64)
