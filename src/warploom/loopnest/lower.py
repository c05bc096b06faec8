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
from warploom.loopnest.deal import Deal, deal_of
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
        self.half: dict[ir.Temporary, int] = {}
        self.doubled: set[ir.Temporary] = set()
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
        declared: list[Stmt] = [each for t in self.made.lowered for each in self._shared(t)]
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
        if node.kind == "DEAL":
            deal = deal_of(self.made, node)
            return [*self._copied(deal)]
        index = self._index(node)
        if index is not None:
            self.index |= dict.fromkeys(node.dims, index)
            return self._bodies(node.body)
        ahead = [each for each in node.body if self._is_ahead(node, each)]
        if ahead:
            return self._pipelined(node, ahead)
        counter = self._counter(_kept(node.dims[0]))
        self.index |= dict.fromkeys(node.dims, Var(counter))
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

    def _axis_index(self, inst: ir.Instruction, axis: ir.Axis) -> Expr:
        own = [dim for dim in inst.dims if dim.axis is axis]
        return _sum(self.index[dim] * self.made.stride_of(dim) for dim in own)

    # -- copies that are dealt out -----------------------------------------------------------------

    def _copied(self, deal: Deal) -> Iterator[Stmt]:
        """All is loaded before anything is put, where registers have room for it."""
        if deal.waits:
            yield from self._dealt_loads(deal)
            yield from self._dealt_puts(deal)
            return
        self.rows[deal.load] = self._waiting(deal, 1)
        round_ = self._counter("round")
        body = (*self._one_load(deal, Var(round_), Const(0)),
                *self._one_put(deal, Var(round_), Const(0)))  # fmt: skip
        yield For(round_, Const(0), Const(deal.rounds), body, unroll=False)

    def _dealt_loads(self, deal: Deal, where: Expr | None = None) -> Iterator[Stmt]:
        self.rows[deal.load] = self._waiting(deal, deal.rounds)
        for number in range(deal.rounds):
            yield from self._one_load(deal, Const(number), Const(number), where)

    def _dealt_puts(self, deal: Deal) -> Iterator[Stmt]:
        for number in range(deal.rounds):
            yield from self._one_put(deal, Const(number), Const(number))

    def _waiting(self, deal: Deal, rounds: int) -> _Row:
        load = deal.load
        return _Row(self._name(load.name), load.dtype, {}, rounds * deal.width)

    def _held(self, deal: Deal, row: Expr, lane: int = 0) -> Cell:
        """The register of an element that waits."""
        place = simplify(row * deal.width + lane)
        return Cell(self._name(deal.load.name), place, deal.load.dtype)

    def _one_load(
        self, deal: Deal, number: Expr, row: Expr, where: Expr | None = None
    ) -> Iterator[Stmt]:
        load, piece = deal.load, deal.piece(number)
        assert isinstance(load.action, ir.Load)
        self.index |= deal.index(piece)
        inside = self._inside(load, width=deal.width)
        guards = [each for each in (where, deal.condition(piece), *inside) if each is not None]
        yield Load(
            self._held(deal, row),
            load.action.access.array.name,
            self._place(load, load.action.access),
            _all(guards),
            width=deal.width,
            streaming=self.made.cache[load] == "NO_CACHE",
        )

    def _one_put(self, deal: Deal, number: Expr, row: Expr) -> Iterator[Stmt]:
        """Wide where neighbours in global memory are neighbours in the array, too."""
        piece = deal.piece(number)
        guard = deal.condition(piece)
        where = None if guard is None else simplify(guard)
        for put in deal.puts:
            temporary = self.temporaries[put]
            array = self._array(temporary)
            first, _ = self._array_dims(temporary)[0]
            wide = first in deal.loops[-1].dims and self.made.padding[temporary] % deal.width == 0
            step = deal.width if wide else 1
            for lane in range(0, deal.width, step):
                self.index |= deal.index(piece, lane)
                yield Store(array, self._cell_of(put), self._held(deal, row, lane), where, step)

    def _is_ahead(self, loop: Loop, node: Node) -> bool:
        """Whether a copy is done a turn ahead of the loop that it is in: where the turns copy
        different tiles, and who uses them is in the loop, too."""
        if not isinstance(node, Loop) or node.kind != "DEAL" or loop.kind != "LOOP":
            return False
        deal = deal_of(self.made, node)
        turns = any(dim.tile is None and dim in deal.load.dims for dim in loop.dims)
        staged = all(self.made.stages[self.temporaries[put]] == 2 for put in deal.puts)
        return turns and staged and deal.waits

    def _pipelined(self, loop: Loop, ahead: Sequence[Node]) -> list[Stmt]:
        """
            for k: copy(k); use(k)   →   copy(0); for k: load(k + 1); use(k); put(k + 1)

        into one of two arrays while the other one is used; two turns of the loop are written out,
        so that it is known which.
        """
        deals = [deal_of(self.made, node) for node in ahead if isinstance(node, Loop)]
        arrays = [self.temporaries[put] for deal in deals for put in deal.puts]
        self.doubled |= set(arrays)
        used = [node for node in loop.body if node not in ahead]
        counter = self._counter(_kept(loop.dims[0]))
        self._turn(loop, arrays, Const(0), 0)
        before = [stmt for deal in deals for stmt in self._copied(deal)]
        body: list[Stmt] = []
        for turn in range(2):
            here = Var(counter) * 2 + turn
            last = turn == 1 and loop.size % 2 == 0
            more = Var(counter).le(loop.size // 2 - 2) if last else None
            self._turn(loop, arrays, here + 1, 1 - turn)
            body += [stmt for deal in deals for stmt in self._dealt_loads(deal, more)]
            self._turn(loop, arrays, here, turn)
            body += self._bodies(tuple(used))
            self._turn(loop, arrays, here + 1, 1 - turn)
            body += [stmt for deal in deals for stmt in self._dealt_puts(deal)]
        after: list[Stmt] = []
        if loop.size % 2:
            self._turn(loop, arrays, Const(loop.size - 1), 0)
            after = self._bodies(tuple(used))
        turns = For(counter, Const(0), Const(loop.size // 2), tuple(body), unroll=False)
        return [*before, turns, *after]

    def _turn(self, loop: Loop, arrays: Sequence[ir.Temporary], turn: Expr, half: int) -> None:
        self.index |= dict.fromkeys(loop.dims, simplify(turn))
        self.half |= dict.fromkeys(arrays, half)

    def _array(self, temporary: ir.Temporary) -> str:
        """The name of an array, or of the one of two that is meant here."""
        return self._name(temporary.name + ("", ".other")[self.half.get(temporary, 0)])

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
                array = self._array(self.temporaries[inst])
                where = _all(self._first_threads(inst))
                yield from self._stored(inst, array, self._cell_of(inst), value, where, False)
            case ir.Get():
                array = self._array(self.temporaries[inst])
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
        self, inst: ir.Instruction, axes: Sequence[ir.Axis] | None = None, width: int = 1
    ) -> Iterator[Expr]:
        """That the index is not beyond the end of an axis whose last tile is partial. Of an access
        that is wide along an axis with a tail, all is inside or nothing."""
        wide = self._vector(inst)
        for axis in inst.axes if axes is None else axes:
            outer = [self.made.size_of(dim) for dim in inst.dims if dim.axis is axis]
            size = self.made.length(axis)
            if math.prod(outer) > size:
                lanes = self._width(inst) if wide is not None and wide.axis is axis else 1
                if width > 1 and axis is self._unit_axis(inst):
                    lanes = width
                yield self._axis_index(inst, axis).le(size - lanes)

    def _unit_axis(self, inst: ir.Instruction) -> ir.Axis | None:
        """The one along which an access has its neighbours."""
        assert isinstance(inst.action, ir.Load)
        factors = inst.action.access.place.factors
        return next((axis for axis, factor in factors.items() if factor == 1), None)

    def _first_threads(self, inst: ir.Instruction) -> Iterator[Expr]:
        """On levels of threads along which nothing differs, one thread stores for all."""
        own = {self.made.level[dim] for dim in inst.dims if self.made.kind[dim] == "THREAD"}
        for level in range(len(self.made.levels)):
            if level not in own:
                yield Var(f"level_{level}").eq(0)

    # -- temporary arrays --------------------------------------------------------------------------

    def _shared(self, temporary: ir.Temporary) -> Iterator[Shared]:
        dims = self._array_dims(temporary)
        size = math.prod(self._lengths(temporary, dims))
        for half in range(2 if temporary in self.doubled else 1):
            self.half[temporary] = half
            yield Shared(self._array(temporary), temporary.dtype, size)

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
