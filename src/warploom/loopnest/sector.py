"""Sectors of global memory: how many a program touches at all, and how many elements of one a warp
may touch at a time."""

from __future__ import annotations

import math

import numpy as np

from warploom.loopnest.again import apart
from warploom.loopnest.certain import Certain, Facts
from warploom.loopnest.ir import Access, Array, Axis, Instruction, Load, Store
from warploom.loopnest.tiling import tilings
from warploom.search.candidate import Index, Numbers


def touched_by(insts: list[Instruction], sector: int, l2_bytes: int) -> tuple[Numbers, Numbers]:
    """For each instruction: sectors that its array has to be read from L2 by (counted once for each
    array), and the share of the bytes that have to go to or come from memory, less what may be in
    the L2 from before."""
    reads, bytes_ = np.zeros(len(insts)), np.zeros(len(insts))
    seen: set[Array] = set()
    for at, inst in enumerate(insts):
        if isinstance(inst.action, Load | Store):
            access = inst.action.access
            if access.array not in seen:
                seen.add(access.array)
                bytes_[at] = distinct_bytes(access, sector)
                reads[at] = bytes_[at] / sector if isinstance(inst.action, Load) else 0.0
    total = float(bytes_.sum())
    share = max(0.0, total - l2_bytes) / total if total else 0.0
    return reads, bytes_ * share


def distinct_bytes(access: Access, sector: int) -> float:
    """At least so many bytes, in whole sectors, belong to an access for all indices of its axes."""
    runs = [(axis.size, abs(access.place.factors[axis])) for axis in apart(access)]
    elements = math.prod(size for size, _ in runs)
    size = access.array.dtype.bytes
    if not runs:
        return float(size)
    length, stride = runs[0]
    if stride * size >= sector:
        return float(elements * sector)
    whole = (length - 1) * stride * size // sector * sector
    return float(max(elements * size, elements // length * whole))


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
                size = access.array.dtype.bytes
                self.largest[at] = max(1, sector // size)
                for axis, factor in access.place.factors.items():
                    # The first at its begin, the last at its end: 24 bytes apart are two of 4.
                    window = 1 + (sector - size) // max(1, abs(factor) * size)
                    if window > 1:
                        self.close.append(_Close(facts, at, inst, axis, window))

    def most(self, known: Certain) -> Numbers:
        """[rows, instructions]"""
        found = np.ones((len(known.candidates), self.count))
        target = self.facts.space.target
        moving = known.maybe(*target.threaded, *target.vectors)
        for each in self.close:
            found[:, each.at] *= each.most(known, moving)
        return np.minimum(found, self.largest)


class _Close:
    """One access along one axis, `window` indices of which share a sector.

    `gain[t, l]` is how many of them differ along level l in tiling t.
    """

    def __init__(self, facts: Facts, at: int, inst: Instruction, axis: Axis, window: int) -> None:
        self.at = at
        self.axis = facts.space.program.axes.index(axis)
        own = {dim.tile.level: facts.number[dim]
               for dim in inst.dims if dim.axis is axis and dim.tile is not None}  # fmt: skip
        self.dims: Index = np.array([own[level] for level in range(len(own))], np.int64)
        rows = tilings(axis)
        self.gain = np.ones((len(rows), len(own)))
        for number, row in enumerate(rows):
            left = window
            for level in reversed(range(len(row))):
                self.gain[number, level] = min(row[level], left)
                left = -(-left // row[level])

    def most(self, known: Certain, moving: np.ndarray) -> Numbers:
        gains = np.where(moving[:, None, self.dims], self.gain[None], 1.0).prod(axis=2)
        found: Numbers = np.where(known.feasible[self.axis], gains, 1.0).max(axis=1)
        return found
