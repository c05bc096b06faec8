"""What holds in every implementation that a candidate still stands for, as arrays over a batch.

In come candidates; out go which dimensions are surely sequential, surely blocks, maybe threads or
vectors, which are surely around an instruction, and the least and greatest products of their
sizes. All sizes of an axis are looked at together: they are those of one of its tilings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.loopnest.ir import Axis, Dim, Instruction
from warploom.loopnest.pieces import piece_list
from warploom.loopnest.space import NestSpace
from warploom.loopnest.tiling import outer_size, tilings
from warploom.search.branching.candidate import Bits, Candidates, Flags, Index, Numbers
from warploom.search.space.ir import Choice, Counter

Logs = npt.NDArray[np.float64]
SLACK = 1e-9  # of sums of logarithms
TRUE, FALSE = np.uint64(1), np.uint64(2)  # as flags have it


# The store to a temporary array, and whether there is to be one; None: there is none to begin with.
Use: TypeAlias = tuple[int, bool] | None


class Facts:
    """What does not depend on the candidate: positions and tables. `insts` are the pieces of
    instructions, each of one operator, and `whole` says which it is a piece of."""

    def __init__(self, space: NestSpace) -> None:
        self.space = space
        listed = piece_list(space.insts)
        self.insts: list[Instruction] = [each for each, _ in listed]
        self.whole: list[Instruction] = [inst for _, inst in listed]
        self.dims: list[Dim] = space.dims
        self.number = {dim: at for at, dim in enumerate(self.dims)}
        self.kind_columns = space.propagator.columns(space.kind)
        self.kind_bits = {kind: np.uint64(space.kind.bits([kind])) for kind in space.target.kinds}
        self.kind_absent = np.uint64(space.kind.absent_bit)
        self.iterates_at = self._iterates()
        self.own = np.array([[d in i.dims for d in self.dims] for i in self.insts], np.bool_)
        self.over = np.array([[d in i.over for d in self.dims] for i in self.insts], np.bool_)
        self.axes = [_AxisTable(space, axis, self.dims) for axis in space.program.axes]
        self.flag_at = self._flags()
        self.order_at, self.outer_bit = self._orders()

    def _iterates(self) -> Index:
        """Where it is decided whether a dimension counts for an instruction."""
        columns = self.space.propagator.columns(self.space.iterates)
        table = np.zeros((len(self.insts), len(self.dims)), np.int64)
        of = {inst: [at for at, each in enumerate(self.whole) if each is inst]
              for inst in self.space.insts}  # fmt: skip
        for position, (inst, dim) in enumerate(self.space.iterates.instances, columns.start):
            assert isinstance(inst, Instruction)
            assert isinstance(dim, Dim)
            table[of[inst], self.number[dim]] = position
        return table

    def last(self, inst: Instruction) -> int:
        """The number of the piece that an instruction's result is."""
        return len(self.whole) - 1 - self.whole[::-1].index(inst)

    def _flags(self) -> Index:
        """Where it is decided whether an instruction is there; -1 for those that always are."""
        columns = self.space.propagator.columns(self.space.lowered)
        found = np.full(len(self.insts), -1)
        for at, each in enumerate(self.space.program.temporaries):
            for inst in (each.put, each.get):
                found[self.last(inst)] = columns.start + at
        return found

    def _orders(self) -> tuple[Index, Bits]:
        """Where the order of two dimensions is decided, and the bit that says there that the first
        is around the second. The order of a dimension to itself is that of no two."""
        propagator, order = self.space.propagator, self.space.order
        size = len(self.dims)
        place, bit = np.full((size, size), propagator.choices), np.zeros((size, size), np.uint64)
        columns = propagator.columns(order)
        outer, inner = np.uint64(order.bits(["OUTER"])), np.uint64(order.bits(["INNER"]))
        for position, (a, b) in enumerate(order.instances, columns.start):
            if isinstance(a, Dim) and isinstance(b, Dim):
                first, second = self.number[a], self.number[b]
                place[first, second] = place[second, first] = position
                bit[first, second], bit[second, first] = outer, inner
        return place, bit

    def counter(self, counter: Counter) -> int:
        return int(self.space.propagator.columns(counter).start)


class _AxisTable:
    """The tilings of an axis: `bits[t, l]` is the size of level l in tiling t as a bit of `size`,
    `logs[l, t]` its logarithm, the number of tiles (level -1) in the last row; `of_dims[d, l]`
    which dimensions are on which level; and `within[t]` which part of all is not beyond the end."""

    def __init__(self, space: NestSpace, axis: Axis, dims: Sequence[Dim]) -> None:
        own = [tile for tile in space.program.tiles if tile.axis is axis]
        rows = tilings(axis)
        start = space.propagator.columns(space.size).start
        self.columns = np.array([start + space.program.tiles.index(t) for t in own], np.int64)
        self.bits = np.array(
            [[space.size.bits([size]) for size in row] for row in rows], np.uint64
        ).reshape(len(rows), len(own))
        sizes = [[*row, outer_size(axis, row) if axis.dynamic else 1] for row in rows]
        self.logs: Logs = np.log(np.array(sizes, np.float64)).T
        self.within = np.array([axis.size / math.prod(row) for row in sizes])
        self.of_dims = np.zeros((len(dims), len(own) + 1))
        for at, dim in enumerate(dims):
            if dim.axis is axis:
                self.of_dims[at, -1 if dim.tile is None else own.index(dim.tile)] = 1

    def feasible(self, domains: Bits) -> Flags:
        """[rows, tilings]"""
        held = (domains[:, None, self.columns] & self.bits[None]) != 0
        found: Flags = held.all(axis=2)
        return found


class MustFacts:
    """A batch, looked at. Arrays are [rows, dims] or [rows, instructions, dims]."""

    def __init__(self, facts: Facts, candidates: Candidates) -> None:
        self.facts = facts
        self.candidates = candidates
        domains = candidates.domains
        self.kinds: Bits = domains[:, facts.kind_columns]
        self.feasible = [axis.feasible(domains) for axis in facts.axes]
        self.active = self._active(domains)
        self.around: Flags = (domains[:, facts.iterates_at] == TRUE) & self.active[..., None]

    def _active(self, domains: Bits) -> Flags:
        """Which instructions are surely there."""
        flags = domains[:, np.maximum(self.facts.flag_at, 0)] == TRUE
        return np.where(self.facts.flag_at < 0, True, flags)

    @cached_property
    def within(self) -> Numbers:
        """[rows]: which part of all iterations is not beyond the end of an axis, at least."""
        parts = [
            np.where(feasible, axis.within, 1.0).min(axis=1, initial=1.0)
            for axis, feasible in zip(self.facts.axes, self.feasible, strict=True)
        ]
        found: Numbers = np.prod(parts, axis=0) if parts else np.ones(len(self.kinds))
        return found

    def lowers(self, use: Use) -> Flags:
        """[rows]: whether a value surely goes that way."""
        if use is None:
            return np.ones(len(self.kinds), np.bool_)
        put, there = use
        flags = self.candidates.domains[:, self.facts.flag_at[put]]
        found: Flags = flags == (TRUE if there else FALSE)
        return found

    @cached_property
    def iterations(self) -> Numbers:
        """[rows, dims]: the logarithm of each size, at least."""
        alone = np.eye(len(self.facts.dims), dtype=np.bool_)
        found: Numbers = np.log(self.least(np.broadcast_to(alone, (len(self.kinds), *alone.shape))))
        return found

    def outside(self, unrolled: int) -> Flags:
        """[rows, instructions, dims]: surely around loops of an instruction's own, so that what
        happens in their iterations happens again in every iteration of this; blocks are around
        everything. Loops of no more iterations than `unrolled` a compiler may undo, and then do
        once what they do.
        """
        facts = self.facts
        nested = self.candidates.domains[:, facts.order_at] == facts.outer_bit
        loops = facts.own & self.surely("LOOP")[:, None]
        weights, most = (self.iterations, math.log(unrolled) + SLACK) if unrolled else (1.0, 0.0)
        iterations = (loops * np.broadcast_to(weights, self.kinds.shape)[:, None]) @ (
            nested.swapaxes(1, 2).astype(np.float64)
        )
        found: Flags = (iterations > most) | self.surely("BLOCK")[:, None]
        return found

    def surely(self, *kinds: str) -> Flags:
        """Dimensions that are there and of one of these kinds."""
        allowed = np.bitwise_or.reduce([self.facts.kind_bits[kind] for kind in kinds])
        found: Flags = (self.kinds & ~allowed) == 0
        return found

    def maybe(self, *kinds: str) -> Flags:
        allowed = np.bitwise_or.reduce([self.facts.kind_bits[kind] for kind in kinds])
        found: Flags = (self.kinds & allowed) != 0
        return found

    def least(self, chosen: Flags) -> Numbers:
        """The least product of the sizes of chosen dimensions; the last axis is dimensions."""
        return self._product(chosen, greatest=False)

    def greatest(self, chosen: Flags) -> Numbers:
        return self._product(chosen, greatest=True)

    def _product(self, chosen: Flags, greatest: bool) -> Numbers:
        total = np.zeros(chosen.shape[:-1])
        inner = (slice(None),) + (None,) * (chosen.ndim - 2)
        for axis, feasible in zip(self.facts.axes, self.feasible, strict=True):
            logs = chosen.astype(np.float64) @ axis.of_dims @ axis.logs
            out = -np.inf if greatest else np.inf
            logs = np.where(feasible[inner], logs, out)
            total += logs.max(axis=-1) if greatest else logs.min(axis=-1)
        return np.exp(total)

    def low(self, counter: Counter) -> Numbers:
        return self.candidates.low[:, self.facts.counter(counter)]

    def may_be(self, choice: Choice, value: str) -> Flags:
        """[rows, instances]"""
        domains = self.candidates.domains[:, self.facts.space.propagator.columns(choice)]
        found: Flags = (domains & np.uint64(choice.bits([value]))) != 0
        return found
