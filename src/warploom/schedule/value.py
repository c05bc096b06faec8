"""Writes become loads, what is computed of them, and a store or an assignment.

y[i] = x[i] + a   →   r = x[i]; y[i] = r + a         four iterations in one access, if they are
                                                    neighbours and agree on all conditions
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from warploom.index.ir import Const, Expr, Var, variables
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.dtype import DType
from warploom.layout.language.expression import mapped
from warploom.machine.record import CUDA
from warploom.schedule.context import FALSE, TRUE, Context, all_of
from warploom.schedule.ir import Buffer, Gathered, Write, exprs_of
from warploom.schedule.lanes import agree, is_next, strictest
from warploom.schedule.shared import Sharing

WIDTHS = (16, 8, 4, 2)
Valued = Callable[[ir.Value, Context], ir.Value]


@dataclass(frozen=True, slots=True)
class Read:
    """An element of memory; where a condition fails, its number instead, that of the first."""

    cell: ir.Cell
    guards: tuple[tuple[Expr, ir.Number], ...] = ()


class Buffers:
    """The buffers of a schedule, and where their elements are."""

    def __init__(self, buffers: tuple[Buffer, ...]) -> None:
        self.buffers = {each.name: each for each in buffers}

    def is_memory(self, cell: ir.Cell) -> bool:
        return self.buffers[cell.name].is_memory

    def name(self, name: str, stage: int) -> str:
        """One of several arrays."""
        return f"{name}_other{stage if stage > 1 else ''}" if stage else name

    def place(self, cell: ir.Cell, at: Context) -> tuple[str, Expr]:
        """The array that an element is in, and where in it."""
        buffer = self.buffers[cell.name]
        assert cell.index is not None
        index = at.expr(cell.index)
        if buffer.swizzle is not None:
            index = simplify(mapped(buffer.swizzle, index))
        return self.name(cell.name, at.stage.get(cell.name, 0)), index

    def held(self, cell: ir.Cell, at: Context) -> ir.Cell:
        """A register, or a number that is given."""
        return cell if cell.index is None else replace(cell, index=at.expr(cell.index))

    def read(self, value: ir.Value) -> Read | None:
        """What a value reads of memory, if it does nothing else."""
        match value:
            case ir.Cell() if self.is_memory(value):
                return Read(value)
            case ir.Choose(condition, then, ir.Number() as other):
                inner = self.read(then)
                if inner is not None and not isinstance(condition, ir.Compare):
                    return replace(inner, guards=((condition, other), *inner.guards))
        return None

    def reads(self, value: ir.Value) -> Iterator[Read]:
        """Everything that a value reads of memory, what is shared once."""
        stack, seen = [value], set[int]()
        while stack:
            part = stack.pop()
            found = self.read(part)
            if found is not None:
                yield found
                if isinstance(found.cell, Gathered):
                    stack.extend(name.value for name in reversed(found.cell.names))
            elif id(part) not in seen:
                seen.add(id(part))
                stack.extend(reversed(ir.operands(part)))


class Writer:
    """Statements for writes; `fresh` gives registers with names of their own."""

    def __init__(self, memory: Buffers) -> None:
        self.memory = memory
        self.registers: dict[str, ir.Registers] = {}
        self.arrays = 0
        self.data = 0
        self.sharing = Sharing()

    def fresh_name(self, stem: str) -> str:
        """A name of shared memory."""
        self.arrays += 1
        return f"{stem}{self.arrays - 1}_"

    def _named(
        self, cell: ir.Cell, at: Context, made: list[ir.Stmt], valued: Valued | None
    ) -> Context:
        """Where the names are known that the index of an element is over."""
        for each in cell.names if isinstance(cell, Gathered) else ():
            if valued is None:
                value = self.value(each.value, at, made)
            else:
                value = valued(each.value, at)
            if not isinstance(value, ir.Cell):
                held = self.fresh(ir.dtype_of(value))
                made.append(ir.Assign(held, value))
                value = held
            name = f"row{self.data}_"
            self.data += 1
            made.append(ir.Named(name, value, each.size))
            bounds = {**at.bounds, name: (-1, each.size - 1)}
            at = replace(at, bounds=bounds).at({each.counter: Var(name)})
        return at

    def fresh(self, dtype: DType, size: int | None = None) -> ir.Cell:
        name = f"x{len(self.registers)}_"
        self.registers[name] = ir.Registers(name, dtype, size)
        return ir.Cell(name, None if size is None else Const(0), dtype)

    # -- one at a time

    def written(self, write: Write, at: Context) -> list[ir.Stmt]:
        where = TRUE if write.where is None else at.condition(write.where)
        if where is FALSE:
            return []
        inner = at.guarded(where)
        made: list[ir.Stmt] = []
        self.sharing = Sharing(write.value)
        if self.memory.is_memory(write.target):
            value = self.value(write.value, inner, made, write.streaming)
            name, index = self.memory.place(write.target, at)
            made.append(ir.Store(name, index, value, all_of(inner.guards), 1, write.streaming))
            return made
        target = self.memory.held(write.target, at)
        read = self.memory.read(write.value)
        if read is not None and where is TRUE:
            return self.loaded(read, target, inner, write.streaming)
        made.append(ir.Assign(target, self.value(write.value, inner, made, write.streaming)))
        return made if where is TRUE else [ir.If(where, tuple(made))]

    def value(
        self, value: ir.Value, at: Context, made: list[ir.Stmt], streaming: bool = False
    ) -> ir.Value:
        read = self.memory.read(value)
        if read is not None:
            target = self.fresh(read.cell.dtype)
            made += self.loaded(read, target, at, streaming)
            return target
        return self._once(value, at, made, lambda: self._computed(value, at, made, streaming))

    def _once(
        self, value: ir.Value, at: Context, made: list[ir.Stmt], computed: Callable[[], ir.Value]
    ) -> ir.Value:
        """What is used more than once, in a register."""
        if value not in self.sharing.parts:
            return computed()
        had = self.sharing.found(value, at.guards)
        if had is None:
            whole = computed()
            if not ir.operands(whole):  # one that is known already
                return whole
            had = self.fresh(ir.dtype_of(whole))
            made.append(ir.Assign(had, whole))
            self.sharing.named[value, at.guards] = had
        return had

    def _computed(
        self, value: ir.Value, at: Context, made: list[ir.Stmt], streaming: bool
    ) -> ir.Value:
        match value:
            case ir.Number():
                return value
            case ir.Cell():
                return self.memory.held(value, at)
            case ir.FromIndex(expr, dtype):
                return ir.FromIndex(at.expr(expr), dtype)
            case ir.Operation(op, operands):
                parts = [self.value(each, at, made, streaming) for each in operands]
                return ir.Operation(op, tuple(parts))
            case ir.Cast(dtype, inner):
                return ir.Cast(dtype, self.value(inner, at, made, streaming))
            case ir.Choose():
                return self._chosen(value, at, made, streaming)
            case _:
                assert_never(value)

    def _chosen(
        self, value: ir.Choose, at: Context, made: list[ir.Stmt], streaming: bool
    ) -> ir.Value:
        match value.condition:
            case ir.Compare(op, left, right):
                parts = [self.value(each, at, made, streaming)
                         for each in (left, right, value.then, value.otherwise)]  # fmt: skip
                return ir.Choose(ir.Compare(op, parts[0], parts[1]), parts[2], parts[3])
            case condition:
                known = at.condition(condition)
                if known in (TRUE, FALSE):
                    side = value.then if known is TRUE else value.otherwise
                    return self.value(side, at, made, streaming)
                for part in self.sharing.on_both_sides(value):
                    self.value(part, at, made, streaming)
                then = self.value(value.then, at.guarded(known), made, streaming)
                other = self.value(value.otherwise, at.guarded(known.not_()), made, streaming)
                return ir.Choose(known, then, other)

    def loaded(
        self,
        read: Read,
        target: ir.Cell,
        at: Context,
        streaming: bool,
        width: int = 1,
        valued: Valued | None = None,
    ) -> list[ir.Stmt]:
        """An element of memory in a register, or neighbours in neighbouring ones. What names are of
        is computed by `valued`, where that is given."""
        made: list[ir.Stmt] = []
        outside, at = at.guards, self._named(read.cell, at, made, valued)
        guards = [(at.condition(condition), number) for condition, number in read.guards]
        guards = [each for each in guards if each[0] is not TRUE]
        name, index = self.memory.place(read.cell, at)
        where = all_of((*outside, *(condition for condition, _ in guards)))
        other: ir.Value | None = None
        if any(number.value for _, number in guards):
            other = guards[-1][1]
            for condition, number in reversed(guards[:-1]):
                other = ir.Choose(condition, other, number)
        return [*made, ir.Load(target, name, index, where, other, width, streaming)]

    # -- several neighbours at once

    def width(self, write: Write, counter: str, size: int) -> int:
        """The widest access for a loop whose iterations access neighbours; 1: none."""
        for width in WIDTHS:
            if size % width:
                continue
            if write.where is not None and not agree(write.where, counter, width):
                continue
            if self.memory.is_memory(write.target):
                if self.is_wide(write.target, counter, width):
                    return width
            elif any(self.reads_wide(r, counter, width) for r in self.memory.reads(write.value)):
                return width
        return 1

    def reads_wide(self, read: Read, counter: str, width: int) -> bool:
        """Whether neighbours are read at once."""
        agreed = all(agree(condition, counter, width) for condition, _ in read.guards)
        if _is_named_along(read.cell, counter):
            return False
        return agreed and _moves(read.cell, counter) and self.is_wide(read.cell, counter, width)

    def is_wide(self, cell: ir.Cell, counter: str, width: int) -> bool:
        assert cell.index is not None
        fits = width * cell.dtype.bytes <= CUDA.access_bytes
        return fits and is_next(cell.index, counter, width)

    def wide(
        self, write: Write, counter: str, first: Expr, width: int, at: Context
    ) -> list[ir.Stmt]:
        """What `width` iterations of a loop write, from `first` on."""
        start = at.at({counter: first})
        strict = TRUE if write.where is None else strictest(write.where, counter, width)
        where = start.condition(strict)
        inner = start.guarded(where)
        direct = self._straight(write, counter, width, inner) if where is TRUE else None
        if direct is not None:
            return direct
        made: list[ir.Stmt] = []
        sharing = Sharing(write.value)
        lanes = self._wide_reads(write, counter, width, inner, made)
        here = [replace(inner, index={**inner.index, counter: simplify(first + lane)})
                for lane in range(width)]  # fmt: skip
        if not self.memory.is_memory(write.target):
            for lane, each in enumerate(here):
                self.sharing = sharing.again()
                value = self._lane(write.value, each, lanes, lane, made, write.streaming)
                made.append(ir.Assign(self.memory.held(write.target, each), value))
            return made if where is TRUE else [ir.If(where, tuple(made))]
        row = self._row(write, counter, here)
        if row is None:
            row = self.fresh(write.target.dtype, width)
            for lane, each in enumerate(here):
                self.sharing = sharing.again()
                value = self._lane(write.value, each, lanes, lane, made, write.streaming)
                made.append(ir.Assign(replace(row, index=Const(lane)), value))
        name, index = self.memory.place(write.target, start)
        guards = all_of(inner.guards)
        made.append(ir.Store(name, index, row, guards, width, write.streaming))
        return made

    def _straight(
        self, write: Write, counter: str, width: int, at: Context
    ) -> list[ir.Stmt] | None:
        """A load to registers that lie beside each other."""
        read = self.memory.read(write.value)
        if read is None or self.memory.is_memory(write.target) or write.target.index is None:
            return None
        if not self.reads_wide(read, counter, width):
            return None
        if not is_next(write.target.index, counter, 1):
            return None
        target = self.memory.held(write.target, at)
        return self.loaded(_of_all(read, counter, width), target, at, write.streaming, width)

    def _row(self, write: Write, counter: str, here: list[Context]) -> ir.Cell | None:
        """The first of registers that lie beside each other, where no more is stored."""
        match write.value:
            case ir.Cell(_, index) if index is not None and not self.memory.is_memory(write.value):
                if is_next(index, counter, 1):
                    return self.memory.held(write.value, here[0])
        return None

    def _wide_reads(
        self, write: Write, counter: str, width: int, at: Context, made: list[ir.Stmt]
    ) -> dict[Read, ir.Cell]:
        found: dict[Read, ir.Cell] = {}
        for read in dict.fromkeys(self.memory.reads(write.value)):
            wide = self.reads_wide(read, counter, width)
            fixed = not _moves(read.cell, counter) and not any(
                counter in variables(condition) for condition, _ in read.guards
            )
            if wide or fixed:
                found[read] = self.fresh(read.cell.dtype, width if wide else None)
                whole = _of_all(read, counter, width) if wide else read
                made += self.loaded(whole, found[read], at, write.streaming, width if wide else 1)
        return found

    def _lane(
        self,
        value: ir.Value,
        at: Context,
        known: Mapping[Read, ir.Cell],
        lane: int,
        made: list[ir.Stmt],
        streaming: bool,
    ) -> ir.Value:
        read = self.memory.read(value)
        if read is not None:
            if read not in known:
                inner = partial(self._lane, known=known, lane=lane, made=made, streaming=streaming)
                held = self.fresh(read.cell.dtype)
                made += self.loaded(read, held, at, streaming, valued=inner)
                return held
            cell = known[read]
            return cell if cell.index is None else replace(cell, index=Const(lane))
        inner = partial(self._lane, known=known, lane=lane, made=made, streaming=streaming)
        return self._once(value, at, made, lambda: self._lane_of(value, at, inner, made, streaming))

    def _lane_of(
        self,
        value: ir.Value,
        at: Context,
        inner: Callable[[ir.Value, Context], ir.Value],
        made: list[ir.Stmt],
        streaming: bool,
    ) -> ir.Value:
        match value:
            case ir.Operation(op, operands):
                return ir.Operation(op, tuple(inner(each, at) for each in operands))
            case ir.Cast(dtype, whole):
                return ir.Cast(dtype, inner(whole, at))
            case ir.Choose(condition, then, otherwise):
                sides = [inner(each, at) for each in (then, otherwise)]
                if isinstance(condition, ir.Compare):
                    ends = [inner(each, at) for each in (condition.left, condition.right)]
                    return ir.Choose(ir.Compare(condition.op, ends[0], ends[1]), *sides)
                known_here = at.condition(condition)
                if known_here in (TRUE, FALSE):
                    return sides[0 if known_here is TRUE else 1]
                return ir.Choose(known_here, *sides)
            case _:
                return self._computed(value, at, made, streaming)


def _moves(cell: ir.Cell, counter: str) -> bool:
    own = cell.index is not None and counter in variables(cell.index)
    return own or _is_named_along(cell, counter)


def _is_named_along(cell: ir.Cell, counter: str) -> bool:
    """Whether what data name differs from iteration to iteration."""
    names = cell.names if isinstance(cell, Gathered) else ()
    return any(counter in variables(expr) for name in names for expr in exprs_of(name.value))


def _of_all(read: Read, counter: str, width: int) -> Read:
    """Under the conditions that hold for all of some iterations."""
    guards = [(strictest(each, counter, width), number) for each, number in read.guards]
    return replace(read, guards=tuple(guards))
