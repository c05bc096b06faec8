"""Sums over the blocks of a cluster as CUDA: each sends to another what that one adds up.

block 0                               block 1
-------                               -------
t = sums[0..3]                        sends sums[0..3] to block 0, which bar 0 counts
sends sums[4..7] to block 1           t = sums[4..7]
waits until all bytes are there       the same
t += what arrived                     t += what arrived
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.index.ir import Const, Expr, Var, minimum, select
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.pool import sum_barrier_at
from warploom.kernel.warpgroup import QUAD

if TYPE_CHECKING:
    from warploom.emit.pipeline import Pipeline

BYTES = 16  # of four registers


def sum_barrier(pipeline: Pipeline) -> str:
    return f"{pipeline.base} + {sum_barrier_at(pipeline.kernel)}"


def arriving(stmt: ir.ClusterSum, threads: int) -> Expr:
    """The bytes that a block gets from others."""
    each = BYTES * threads * (stmt.blocks - 1)
    if stmt.units == stmt.share * stmt.blocks:
        return Const(stmt.share * each)
    left = stmt.units - Var("block_x") % stmt.blocks * stmt.share
    return simplify(select(left.gt(0), minimum(left, stmt.share), 0) * each)


class ClusterSumPrinter:
    """Prints for a printer of pipelines."""

    def __init__(self, pipeline: Pipeline, stmt: ir.ClusterSum) -> None:
        self.pipeline, self.stmt = pipeline, stmt
        self.lines, self.fresh = pipeline.printer.lines, pipeline.fresh
        self.rank, self.own = self.fresh.name("rank"), self.fresh.name("own_part")
        self.step = BYTES * pipeline.kernel.threads
        self.kind = "f32" if stmt.target.dtype.is_float else "s32"

    def printed(self) -> None:
        stmt, line = self.stmt, self.lines.add
        self.lines.open("")
        rank = self.pipeline.index(Var("block_x") % stmt.blocks)
        line(f"const int {self.rank} = {rank};")
        first = self.pipeline.place(stmt.array, Const(0))
        line(f"const unsigned int {self.own} = {first} + {BYTES} * (int)threadIdx.x;")
        for block in range(stmt.blocks):
            self._share(block, min(stmt.share, max(0, stmt.units - block * stmt.share)))
        self.pipeline.call("wait_cluster", sum_barrier(self.pipeline), "0")
        for slot in range(stmt.blocks - 1):
            self._taken(slot)
        self.lines.close()

    def _share(self, block: int, units: int) -> None:
        """What a block adds up: kept by itself, and sent by others."""
        lines, name = self.lines, self.stmt.value.name
        first = self._first(self.stmt.value) + block * self.stmt.registers
        lines.open(f"if ({self.rank} == {block})")
        target, to = self.stmt.target.name, self._first(self.stmt.target)
        kept, all_ = units * QUAD, self.stmt.registers
        for begin, end, given in ((0, kept, f"{name}[{first} + i]"), (kept, all_, "0")):
            if begin < end:
                lines.add("#pragma unroll")
                lines.add(f"for (int i = {begin}; i < {end}; ++i) {target}[{to} + i] = {given};")
        if units:
            lines.close("} else {")
            lines.depth += 1
            slot = f"({self.rank} - ({self.rank} > {block}))"
            lines.add("unsigned int to, heard;")
            place = f"{self.own} + {slot} * {self.stmt.share * self.step}"
            self.pipeline.call("reach", place, str(block), "to")
            self.pipeline.call("reach", sum_barrier(self.pipeline), str(block), "heard")
            lines.add("#pragma unroll")
            lines.open(f"for (int i = 0; i < {units}; ++i)")
            of = f"&{name}[{first} + {QUAD} * i]"
            self.pipeline.call(f"send_{self.kind}", f"to + {self.step} * i", "heard", of)
            lines.close()
        lines.close()

    def _taken(self, slot: int) -> None:
        stmt, lines = self.stmt, self.lines
        lines.add("#pragma unroll")
        lines.open(f"for (int i = 0; i < {stmt.share}; ++i)")
        if stmt.units < stmt.share * stmt.blocks:
            lines.open(f"if ({self.rank} * {stmt.share} + i < {stmt.units})")
        place = f"{self.own} + {slot * stmt.share * self.step} + {self.step} * i"
        to = f"&{stmt.target.name}[{self._first(stmt.target)} + {QUAD} * i]"
        self.pipeline.call(f"take_{self.kind}", place, to)
        if stmt.units < stmt.share * stmt.blocks:
            lines.close()
        lines.close()

    def _first(self, cell: ir.Cell) -> int:
        assert isinstance(cell.index, Const)
        return cell.index.value
