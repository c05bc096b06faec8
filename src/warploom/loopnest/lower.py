"""A decided implementation becomes a kernel.

    LOOP, UNROLL → for          BLOCK → block_x, block_y, block_z       THREAD → part of thread
    VECTOR → one wide access    registers along unrolled dimensions     temporaries → shared arrays

All threads of a block run all statements; where a level of threads has no part in a store, only its
first thread stores. So every loop is the same for all, and barriers may stand anywhere: they are
put in where threads meet in a shared array, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import assert_never

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.allocate import allocate
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
from warploom.loopnest.decided import Implementation, Loop, Node
from warploom.loopnest.evaluate import elements
from warploom.loopnest.neutral import unchanged_outside

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

    def cell(self, index: Mapping[ir.Dim, Expr]) -> Cell:
        if self.size is None:
            return Cell(self.name, None, self.dtype)
        return Cell(self.name, _sum(index[d] * s for d, s in self.strides.items()), self.dtype)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A communication that goes through a temporary array."""

    pairs: ir.Pairs
    temporary: ir.Temporary


class _Lowering:
    def __init__(self, implementation: Implementation) -> None:
        self.made = implementation
        self.program = implementation.program
        self.names: dict[str, str] = {}
        self.index: dict[ir.Dim, Expr] = {}
        self.grid: list[int] = []
        self.temporaries = {t.put: t for t in implementation.lowered}
        self.temporaries |= {t.get: t for t in implementation.lowered}
        self.rows = self._rows()
        self.counters = 0
        self.sent: dict[tuple[ir.Instruction, ir.Instruction], _Sent] = {}
        for each in self.program.communications:
            if each.temporary is not None and each.temporary in implementation.lowered:
                self.sent[each.producer, each.consumer] = _Sent(each.pairs, each.temporary)

    # -- the whole ---------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        body = [*self._levels(), *self._bodies(self.made.nests)]
        declared: list[Stmt] = [self._shared(t) for t in self.made.lowered]
        declared += [Registers(row.name, row.dtype, row.size) for row in self._own_rows()]
        sides = [Const(size) for size in (*self.grid, 1, 1, 1)[:3]]
        return Kernel(
            self._name(self.program.name),
            tuple(self._params()),
            (math.prod(self.made.levels), 1, 1),
            (sides[0], sides[1], sides[2]),
            (*declared, *body),
        )

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

    def _name(self, name: str) -> str:
        """An identifier for each name."""
        if name not in self.names:
            plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
            taken = set(self.names.values())
            made, number = plain, 1
            while made in taken:
                number += 1
                made = f"{plain}_{number}"
            self.names[name] = made
        return self.names[name]

    # -- loops -------------------------------------------------------------------------------------

    def _bodies(self, nodes: tuple[Node, ...]) -> list[Stmt]:
        return [stmt for node in nodes for stmt in self._node(node)]

    def _node(self, node: Node) -> list[Stmt]:
        if isinstance(node, ir.Instruction):
            return list(self._instruction(node))
        counter, index = "", self._index(node)
        if index is None:
            counter = f"{_kept(node.dims[0])}_{self.counters}"
            self.counters += 1
            index = Var(counter)
        self.index |= dict.fromkeys(node.dims, index)
        body = self._bodies(node.body)
        if not counter:
            return body
        stop = Const(node.size)
        return [For(counter, Const(0), stop, tuple(body), unroll=node.kind == "UNROLL")]

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

    def _axis_index(self, inst: ir.Instruction, axis: ir.Axis) -> Expr:
        own = [dim for dim in inst.dims if dim.axis is axis]
        return _sum(self.index[dim] * self.made.stride_of(dim) for dim in own)

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
                found[running.start] = _Row(row.name, row.dtype, strides, row.size)
        return found

    def _row(self, inst: ir.Instruction) -> _Row:
        kind = self.made.kind
        spread = [d for d in inst.dims if d in self.made.spread or kind[d] == "VECTOR"]
        spread.sort(key=lambda dim: kind[dim] == "VECTOR")  # neighbours along a vector
        strides, size = dict[ir.Dim, int](), 1
        for dim in reversed(spread):
            strides[dim] = size
            size *= self.made.size_of(dim)
        return _Row(self._name(inst.name), inst.dtype, strides, size if spread else None)

    def _own_rows(self) -> Iterator[_Row]:
        return iter({row.name: row for row in self.rows.values()}.values())

    def _target(self, inst: ir.Instruction) -> Cell:
        return self.rows[inst].cell(self.index)

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
                    self._place(inst, access),
                    _all(self._inside(inst)),
                    width=self._width(inst),
                    streaming=streaming,
                )
            case ir.Store(access, value):
                streaming = self.made.cache[inst] == "NO_CACHE"
                where = _all([*self._first_threads(inst), *self._inside(inst)])
                place = self._place(inst, access)
                yield from self._stored(inst, access.array.name, place, value, where, streaming)
            case ir.Put(value):
                array = self._name(self.temporaries[inst].name)
                where = _all(self._first_threads(inst))
                yield from self._stored(inst, array, self._cell_of(inst), value, where, False)
            case ir.Get():
                array = self._name(self.temporaries[inst].name)
                width = self._width(inst)
                yield Load(self._target(inst), array, self._cell_of(inst), width=width)
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
        inside = _all(self._inside(inst, partial))
        return value if inside is None else Choose(inside, value, self._target(inst))

    def _operand(self, inst: ir.Instruction, operand: ir.Operand, lane: int = 0) -> Value:
        """In the given lane of a vector."""
        match operand:
            case ir.Constant(value):
                return Number(value, inst.dtype)
            case ir.Parameter(name, dtype):
                return Cell(name, None, dtype)
            case ir.IndexOf(axis):
                return FromIndex(self._axis_index(inst, axis), inst.dtype)
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
        wide = self._vector(inst)
        index: dict[ir.Dim, Expr] = {}
        for dim in row.strides:
            own = mine.get(dim, dim)
            index[dim] = Const(lane) if own is wide else self.index[own]
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
        width = self._width(inst)
        if width == 1:
            yield Store(array, place, self._operand(inst, operand), where, 1, streaming)
            return
        lanes = self._name(f"{inst.name}.lanes")
        yield Registers(lanes, inst.dtype, width)
        for lane in range(width):
            value = self._operand(inst, operand, lane)
            yield Assign(Cell(lanes, Const(lane), inst.dtype), value)
        yield Store(array, place, Cell(lanes, Const(0), inst.dtype), where, width, streaming)

    # -- places and conditions ---------------------------------------------------------------------

    def _vector(self, inst: ir.Instruction) -> ir.Dim | None:
        return next((dim for dim in inst.dims if self.made.kind[dim] == "VECTOR"), None)

    def _width(self, inst: ir.Instruction) -> int:
        wide = self._vector(inst)
        return 1 if wide is None else self.made.size_of(wide)

    def _place(self, inst: ir.Instruction, access: ir.Access) -> Expr:
        place = access.place
        terms = [self._axis_index(inst, axis) * f for axis, f in place.factors.items()]
        return _sum([*terms, Const(place.offset)])

    def _inside(
        self, inst: ir.Instruction, axes: Sequence[ir.Axis] | None = None
    ) -> Iterator[Expr]:
        """That the index is not beyond the end of an axis whose last tile is partial."""
        wide = self._vector(inst)
        for axis in inst.axes if axes is None else axes:
            outer = [self.made.size_of(dim) for dim in inst.dims if dim.axis is axis]
            size = self.made.length(axis)
            if math.prod(outer) > size:
                lanes = self._width(inst) if wide is not None and wide.axis is axis else 1
                yield self._axis_index(inst, axis).le(size - lanes)

    def _first_threads(self, inst: ir.Instruction) -> Iterator[Expr]:
        """On levels of threads along which nothing differs, one thread stores for all."""
        own = {self.made.level[dim] for dim in inst.dims if self.made.kind[dim] == "THREAD"}
        for level in range(len(self.made.levels)):
            if level not in own:
                yield Var(f"level_{level}").eq(0)

    # -- temporary arrays --------------------------------------------------------------------------

    def _shared(self, temporary: ir.Temporary) -> Shared:
        dims = self._array_dims(temporary)
        size = math.prod(self._lengths(temporary, dims))
        return Shared(self._name(temporary.name), temporary.dtype, size)

    def _array_dims(self, temporary: ir.Temporary) -> list[tuple[ir.Dim, ir.Dim]]:
        """The pairs of dimensions that it has, neighbours first."""
        ranked = [(self.made.layout[put], put, get) for put, get in temporary.pairs]
        there = sorted((r, at) for at, (r, _, _) in enumerate(ranked) if r is not None)
        return [temporary.pairs[at] for _, at in there]

    def _lengths(self, temporary: ir.Temporary, dims: list[tuple[ir.Dim, ir.Dim]]) -> list[int]:
        padding = self.made.padding[temporary]
        return [
            self.made.size_of(put) + (padding if at == 0 else 0) for at, (put, _) in enumerate(dims)
        ]

    def _cell_of(self, inst: ir.Instruction) -> Expr:
        """Where in its array a temporary's store or load is."""
        temporary = self.temporaries[inst]
        dims = self._array_dims(temporary)
        stride, terms = 1, list[Expr]()
        for (put, get), length in zip(dims, self._lengths(temporary, dims), strict=True):
            own = put if inst is temporary.put else get
            terms.append(self.index[own] * stride)
            stride *= length
        return _sum(terms)


def _kept(dim: ir.Dim) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in str(dim).split(".")[-1])


def _sum(terms: Iterable[Expr]) -> Expr:
    total: Expr = Const(0)
    for term in terms:
        total = total + term
    return simplify(total)


def _all(conditions: Iterable[Expr]) -> Expr | None:
    listed = [simplify(each) for each in conditions]
    return reduce(lambda a, b: a.and_(b), listed) if listed else None
