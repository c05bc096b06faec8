"""A decided implementation becomes a kernel.

    LOOP, UNROLL → for          BLOCK → block_x, block_y, block_z       THREAD → part of thread
    VECTOR → one wide access    registers along unrolled dimensions     temporaries → shared arrays

All threads of a block run all statements; where a level of threads has no part in a store, only its
first thread stores. So every loop is the same for all, and barriers may stand anywhere: they are
put in where threads meet in a shared array, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify, total
from warploom.kernel.allocate import allocate
from warploom.kernel.bounds import index_type
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    ArrayParam,
    Assign,
    Cast,
    Cell,
    Choose,
    For,
    FromIndex,
    Kernel,
    Let,
    Load,
    Number,
    Operation,
    Param,
    Registers,
    ScalarParam,
    Shared,
    Stmt,
    Store,
    Value,
)
from warploom.kernel.synchronise import synchronise
from warploom.loopnest import ir
from warploom.loopnest.cooperative_copy import CopyWriter, cooperative_copy_of
from warploom.loopnest.decided import Implementation, Loop, Node
from warploom.loopnest.evaluate import elements
from warploom.loopnest.indices import Places, both
from warploom.loopnest.multiply import Multiplier
from warploom.loopnest.neutral import unchanged_outside
from warploom.loopnest.pipeline import Pipeline, kept

BLOCKS = ("block_x", "block_y", "block_z")


def lower(implementation: Implementation) -> Kernel:
    """The kernel of an implementation, synchronised, its shared arrays placed, checked."""
    kernel = allocate(synchronise(raw(implementation)))
    check(kernel)
    return kernel


def raw(implementation: Implementation) -> Kernel:
    """Without barriers."""
    return _Lowering(implementation).kernel()


@dataclass(frozen=True, slots=True)
class _Row:
    """Registers of a result: along which of its dimensions, with which strides."""

    name: str
    dtype: DType
    strides: Mapping[ir.Dim, int]
    size: int | None
    pairs: tuple[ir.Dim, ...] = ()  # two by two along these are neighbours

    def cell(self, index: Mapping[ir.Dim, Expr]) -> Cell:
        if self.size is None:
            return Cell(self.name, None, self.dtype)
        terms = [index[d] * s for d, s in self.strides.items() if d not in self.pairs]
        for dim, below in zip(self.pairs, (2, 1), strict=False):
            terms.append(index[dim] // 2 * self.strides[dim] + index[dim] % 2 * below)
        return Cell(self.name, simplify(total(terms)), self.dtype)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A communication that goes through a temporary array."""

    pairs: ir.Pairs
    temporary: ir.Temporary


class _Lowering:
    def __init__(self, implementation: Implementation) -> None:
        self.made = implementation
        self.program = implementation.program
        self.at = Places(implementation)
        self.copier = CopyWriter(self.at)
        self.pipeline = Pipeline(self.at, self.copier, self._bodies, self._counter)
        self.grid: list[int] = []
        self.multiplier = Multiplier(self.at, lambda inst, at: self.rows[inst].cell(at))
        self.rows = self._rows()
        self.counters = 0
        self.lanes: dict[str, Registers] = {}
        self.sent: dict[tuple[ir.Instruction, ir.Instruction], _Sent] = {}
        for each in self.program.communications:
            if each.temporary is not None and each.temporary in implementation.lowered:
                self.sent[each.producer, each.consumer] = _Sent(each.pairs, each.temporary)

    # -- the whole ---------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        body = [*self._levels(), *self._bodies(self.made.nests)]
        declared: list[Stmt] = [each for t in self.made.lowered for each in self._shared(t)]
        declared += [Registers(row.name, row.dtype, row.size) for row in self._own_rows()]
        declared += [*self.lanes.values(), *self.multiplier.registers.values()]
        sides = [Const(size) for size in (*self.grid, 1, 1, 1)[:3]]
        return Kernel(
            self.at.name(self.program.name),
            tuple(self._params()),
            (math.prod(self.made.levels), 1, 1),
            (sides[0], sides[1], sides[2]),
            (*declared, *body),
            index=index_type(elements(self.program, self.made.sizes).values()),
        )

    def _shared(self, temporary: ir.Temporary) -> Iterator[Shared]:
        size = math.prod(self.at.lengths(temporary))
        for half in range(self.at.several.get(temporary, 1)):
            self.at.half[temporary] = half
            yield Shared(self.at.array(temporary), temporary.dtype, size)

    def _params(self) -> Iterator[Param]:
        stored = {i.action.access.array for i in self.program.instructions
                  if isinstance(i.action, ir.Store)}  # fmt: skip
        sizes = elements(self.program, self.made.sizes)
        for array in self.program.arrays:
            const = array not in stored
            yield ArrayParam(array.name, array.dtype, Const(sizes[array]), const)
        for number in self.program.parameters:
            yield ScalarParam(number.name, number.dtype)

    def _levels(self) -> Iterator[Let]:
        """The index on each level of threads, the innermost counting fastest."""
        below, levels = 1, self.made.levels
        for number, size in enumerate(levels):
            index: Expr = Var("thread") // below if below > 1 else Var("thread")
            if number < len(levels) - 1:
                index = index % size
            yield Let(f"level_{number}", index)
            below *= size

    # -- loops -------------------------------------------------------------------------------------

    def _bodies(self, nodes: tuple[Node, ...]) -> list[Stmt]:
        return [stmt for node in nodes for stmt in self._node(node)]

    def _node(self, node: Node) -> list[Stmt]:
        if isinstance(node, ir.Instruction):
            return list(self._instruction(node))
        if node.kind == "DEAL":
            return [
                *self.copier.copied(cooperative_copy_of(self.made, node), self._counter("round"))
            ]
        if node.kind == "TENSOR":
            return list(self.multiplier.statements(node))
        index = self._index(node)
        if index is not None:
            self.at.index |= dict.fromkeys(node.dims, index)
            return self._bodies(node.body)
        ahead = self.pipeline.ahead(node)
        if ahead:
            return self.pipeline.statements(node, ahead)
        counter = self._counter(kept(node.dims[0]))
        self.at.index |= dict.fromkeys(node.dims, Var(counter))
        body = self._bodies(node.body)
        stop = Const(node.size)
        return [For(counter, Const(0), stop, tuple(body), unroll=node.kind == "UNROLL")]

    def _counter(self, name: str) -> str:
        self.counters += 1
        return f"{name}_{self.counters - 1}"

    def _index(self, loop: Loop) -> Expr | None:
        """What the index is where no loop counts it."""
        match loop.kind:
            case "BLOCK":
                self.grid.append(loop.size)
                return Var(BLOCKS[len(self.grid) - 1])
            case "THREAD":
                return Var(f"level_{self.made.level[loop.dims[0]]}")
            case "VECTOR":
                return Const(0)
            case _:
                return Const(0) if loop.size == 1 else None

    # -- registers ---------------------------------------------------------------------------------

    def _rows(self) -> dict[ir.Instruction, _Row]:
        """A start is in the registers of its fold, by the dimensions that go with that one's."""
        found: dict[ir.Instruction, _Row] = {}
        for inst in self.made.instructions:
            if not isinstance(inst.action, ir.Store | ir.Put):
                found[inst] = self._row(inst)
        for inst in self.made.instructions:
            if (running := inst.running) is not None:
                first = {own: start for start, own in running.pairs}
                row = found[inst]
                strides = {first.get(dim, dim): stride for dim, stride in row.strides.items()}
                pairs = tuple(first.get(dim, dim) for dim in row.pairs)
                found[running.start] = replace(row, strides=strides, pairs=pairs)
        return found

    def _row(self, inst: ir.Instruction) -> _Row:
        kind = self.made.kind
        spread = [d for d in inst.dims if d in self.made.spread or kind[d] == "VECTOR"]
        spread.sort(key=lambda dim: kind[dim] == "VECTOR")  # neighbours along a vector
        pairs = self.multiplier.pairs(inst) or ()
        strides, size = dict[ir.Dim, int](), 4 if pairs else 1
        for dim in reversed(spread):
            strides[dim] = size
            size *= self.made.size_of(dim) // (2 if dim in pairs else 1)
        name = self.at.name(inst.name)
        return _Row(name, inst.dtype, strides, size if spread else None, pairs)

    def _own_rows(self) -> Iterator[_Row]:
        without = self.multiplier.gets
        found = {row.name: row for inst, row in self.rows.items() if inst not in without}
        for load, count in self.copier.held.items():
            row = self.rows[load]
            found[row.name] = replace(row, size=count)
        return iter(found.values())

    def _target(self, inst: ir.Instruction) -> Cell:
        return self.rows[inst].cell(self.at.index)

    # -- instructions ------------------------------------------------------------------------------

    def _instruction(self, inst: ir.Instruction) -> Iterator[Stmt]:
        match inst.action:
            case ir.Compute(op, operands):
                yield Assign(self._target(inst), self._computed(inst, op, operands))
            case ir.Load(access):
                streaming = self.made.cache[inst] == "NO_CACHE"
                yield Load(
                    self._target(inst),
                    access.array.name,
                    self.at.element(inst, access),
                    both(self.at.inside(inst)),
                    width=self.at.width(inst),
                    streaming=streaming,
                )
            case ir.Store(access, value):
                streaming = self.made.cache[inst] == "NO_CACHE"
                where = both([*self.at.first_threads(inst), *self.at.inside(inst)])
                place = self.at.element(inst, access)
                yield from self._stored(inst, access.array.name, place, value, where, streaming)
            case ir.Put(value):
                array = self.at.array(self.at.temporaries[inst])
                where = both(self.at.first_threads(inst))
                yield from self._stored(inst, array, self.at.cell(inst), value, where, False)
            case ir.Get():
                array = self.at.array(self.at.temporaries[inst])
                width = self.at.width(inst)
                yield Load(self._target(inst), array, self.at.cell(inst), width=width)
            case _:
                assert_never(inst.action)

    def _computed(
        self, inst: ir.Instruction, op: ir.Operation, operands: tuple[ir.Operand, ...]
    ) -> Value:
        values = [self._operand(inst, each) for each in operands]
        if op == "move":
            return values[0]
        if op == "cast":
            return Cast(inst.dtype, values[0])
        value: Value = Operation(op, tuple(values))
        axes = {dim.axis for dim in inst.over}
        partial = [axis for axis in axes if not unchanged_outside(inst, axis)]
        inside = both(self.at.inside(inst, partial))
        return value if inside is None else Choose(inside, value, self._target(inst))

    def _operand(self, inst: ir.Instruction, operand: ir.Operand, lane: int = 0) -> Value:
        """In the given lane of a vector."""
        match operand:
            case ir.Constant(value):
                return Number(value, inst.dtype)
            case ir.Parameter(name, dtype):
                return Cell(name, None, dtype)
            case ir.IndexOf(axis):
                return FromIndex(self.at.along(inst, axis), inst.dtype)
            case ir.Running():
                return self._target(inst)
            case ir.Result(producer, pairs):
                return self._read(inst, producer, dict(pairs), lane)
            case _:
                assert_never(operand)

    def _read(
        self, inst: ir.Instruction, producer: ir.Instruction, mine: dict[ir.Dim, ir.Dim], lane: int
    ) -> Cell:
        """What an instruction has from another, from its temporary array if there is one."""
        sent = self.sent.get((producer, inst))
        if sent is not None:
            both = zip(sent.pairs, sent.temporary.pairs, strict=True)
            mine = {get: own for (_, own), (_, get) in both}
            producer = sent.temporary.get
        row = self.rows[producer]
        wide = self.at.vector(inst)
        index: dict[ir.Dim, Expr] = {}
        for dim in row.strides:
            own = mine.get(dim, dim)
            index[dim] = Const(lane) if own is wide else self.at.index[own]
        return row.cell(index)

    def _stored(
        self,
        inst: ir.Instruction,
        array: str,
        place: Expr,
        operand: ir.Operand,
        where: Expr | None,
        streaming: bool,
    ) -> Iterator[Stmt]:
        """A wide store takes neighbouring registers, to which its lanes are copied."""
        width = self.at.width(inst)
        if width == 1:
            yield Store(array, place, self._operand(inst, operand), where, 1, streaming)
            return
        lanes = self.at.name(f"{inst.name}.lanes")
        self.lanes[lanes] = Registers(
            lanes, inst.dtype, width
        )  # once, where a pipeline stores twice
        for lane in range(width):
            value = self._operand(inst, operand, lane)
            yield Assign(Cell(lanes, Const(lane), inst.dtype), value)
        yield Store(array, place, Cell(lanes, Const(0), inst.dtype), where, width, streaming)
