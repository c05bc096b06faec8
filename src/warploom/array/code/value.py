"""A write of a plan → loads, what is computed of them, and a store or an assignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import assert_never

from warploom.array.code.context import Context
from warploom.array.code.indexing import Indexing
from warploom.array.code.storage import Place
from warploom.array.plan import loops
from warploom.array.plan.numbered import TRUE
from warploom.array.plan.view import Guard
from warploom.index.ir import Const, Expr
from warploom.kernel import ir
from warploom.kernel.dtype import DType


def all_of(conditions: Iterable[Expr]) -> Expr | None:
    """All of them, as one condition."""
    wanted = list(dict.fromkeys(each for each in conditions if each is not TRUE))
    return reduce(lambda a, b: a.and_(b), wanted) if wanted else None


class ValueBuilder:
    """Statements for writes; registers that it invents have names of their own."""

    def __init__(self, indexing: Indexing) -> None:
        self.indexing = indexing
        self.invented = 0

    def written(self, write: loops.Write, at: Context) -> list[ir.Stmt]:
        """A number computed and written."""
        made: list[ir.Stmt] = []
        conditions = tuple(at.expr(each) for each in write.conditions)
        inner = replace(at, guards=(*at.guards, *conditions))
        value = self._value(write.value, inner, made)
        place, index = self.indexing.at(write.memory, write.path, at)
        if place.kind != "registers":
            made.append(ir.Store(place.name, index, value, all_of(inner.guards)))
            return made
        made.append(ir.Assign(self._cell(place, index), value))
        where = all_of(conditions)
        return made if where is None else [ir.If(where, tuple(made))]

    def _cell(self, place: Place, index: Expr) -> ir.Cell:
        alone = place.elements == 1
        return ir.Cell(place.name, None if alone else index, place.dtype)

    def _fresh(self, dtype: DType, size: int | None, made: list[ir.Stmt]) -> ir.Cell:
        name = f"x{self.invented}_"
        self.invented += 1
        made.append(ir.Registers(name, dtype, size))
        return ir.Cell(name, None if size is None else Const(0), dtype)

    # -- values

    def _value(self, value: loops.Value, at: Context, made: list[ir.Stmt]) -> ir.Value:
        match value:
            case loops.Read():
                return self._read(value, at, made)
            case loops.Fixed(number, guards, dtype):
                return _otherwise(_put(guards, at), ir.Number(number, dtype))
            case loops.Operated(op, operands):
                return ir.Operation(op, tuple(self._value(each, at, made) for each in operands))
            case loops.Chosen(op, left, right, then, otherwise):
                parts = [self._value(v, at, made) for v in (left, right, then, otherwise)]
                return ir.Choose(ir.Compare(op, parts[0], parts[1]), parts[2], parts[3])
            case loops.Converted(dtype, inner):
                return ir.Cast(dtype, self._value(inner, at, made))
            case _:
                assert_never(value)

    def _read(self, read: loops.Read, at: Context, made: list[ir.Stmt]) -> ir.Value:
        place, index = self.indexing.at(read.memory, read.path, at)
        guards = _put(read.guards, at)
        if place.kind == "number":
            return _otherwise(guards, ir.Cell(place.name, None, place.dtype))
        if place.kind == "registers":
            return _otherwise(guards, self._cell(place, index))
        target = self._fresh(place.dtype, None, made)
        made.append(self._load(target, place, index, guards, at, 1))
        return target

    def _load(
        self,
        target: ir.Cell,
        place: Place,
        index: Expr,
        guards: tuple[Guard, ...],
        at: Context,
        width: int,
    ) -> ir.Load:
        where = all_of((*at.guards, *(each.condition for each in guards)))
        other: ir.Value | None = None
        if any(each.value for each in guards):
            other = _otherwise(guards[:-1], ir.Number(guards[-1].value, place.dtype))
        return ir.Load(target, place.name, index, where, other, width)

    # -- several neighbours at once

    def wide(
        self, write: loops.Write, counter: str, first: Expr, width: int, at: Context
    ) -> list[ir.Stmt]:
        """A number of each of `width` iterations of a loop, from `first` on."""
        made: list[ir.Stmt] = []
        conditions = tuple(at.expr(each) for each in write.conditions)
        counters = {**at.counters, counter: first}
        start = replace(at, counters=counters, guards=(*at.guards, *conditions))
        lanes = dict(self._loaded(write.value, start, counter, width, made))
        place, index = self.indexing.at(write.memory, write.path, start)
        values = []
        for lane in range(width):
            here = replace(start, counters={**start.counters, counter: first + lane})
            values.append(self._lane(write.value, here, lanes, lane, made))
        if place.kind == "registers":
            for lane, value in enumerate(values):
                here = replace(start, counters={**start.counters, counter: first + lane})
                _, own = self.indexing.at(write.memory, write.path, here)
                made.append(ir.Assign(self._cell(place, own), value))
            where = all_of(conditions)
            return made if where is None else [ir.If(where, tuple(made))]
        row = self._fresh(place.dtype, width, made)
        for lane, value in enumerate(values):
            made.append(ir.Assign(replace(row, index=Const(lane)), value))
        made.append(ir.Store(place.name, index, row, all_of(start.guards), width))
        return made

    def _loaded(
        self, value: loops.Value, at: Context, counter: str, width: int, made: list[ir.Stmt]
    ) -> Iterator[tuple[loops.Read, ir.Cell]]:
        """What is read of memory: neighbours in one access."""
        for read in dict.fromkeys(loops.reads_of(value)):
            place, index = self.indexing.at(read.memory, read.path, at)
            if place.kind in ("number", "registers"):
                continue
            moving = self.indexing.moves(read.path, counter)
            target = self._fresh(place.dtype, width if moving else None, made)
            guards = _put(read.guards, at)
            made.append(self._load(target, place, index, guards, at, width if moving else 1))
            yield read, target

    def _lane(
        self,
        value: loops.Value,
        at: Context,
        loaded: Mapping[loops.Read, ir.Cell],
        lane: int,
        made: list[ir.Stmt],
    ) -> ir.Value:
        match value:
            case loops.Read() if value in loaded:
                cell = loaded[value]
                return cell if cell.index is None else replace(cell, index=Const(lane))
            case loops.Operated(op, operands):
                parts = [self._lane(each, at, loaded, lane, made) for each in operands]
                return ir.Operation(op, tuple(parts))
            case loops.Chosen(op, left, right, then, otherwise):
                parts = [
                    self._lane(each, at, loaded, lane, made)
                    for each in (left, right, then, otherwise)
                ]
                return ir.Choose(ir.Compare(op, parts[0], parts[1]), parts[2], parts[3])
            case loops.Converted(dtype, inner):
                return ir.Cast(dtype, self._lane(inner, at, loaded, lane, made))
            case _:
                return self._value(value, at, made)


def _put(guards: tuple[Guard, ...], at: Context) -> tuple[Guard, ...]:
    made = [Guard(at.expr(each.condition), each.value) for each in guards]
    return tuple(each for each in made if each.condition is not TRUE)


def _otherwise(guards: tuple[Guard, ...], value: ir.Value) -> ir.Value:
    """The value where all guards hold; the first that fails gives its number."""
    for guard in reversed(guards):
        number = ir.Number(guard.value, ir.dtype_of(value))
        value = ir.Choose(guard.condition, value, number)
    return value
