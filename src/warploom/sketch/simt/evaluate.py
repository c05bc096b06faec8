"""What a SIMT sketch means: plain Python, statement by statement, lane by lane.

Values are terms, so the meaning is exact; `None` is a value nobody may rely on: an index outside an
array, or a cell that several lanes write at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, substitute
from warploom.sketch.simt import ir
from warploom.sketch.term.ir import Shape, Symbol, Term, Undefined, fold_of, size
from warploom.sketch.term.operator import WORD, function

Lane: TypeAlias = tuple[int, ...]
Cells: TypeAlias = list[Term | None]


def interpret(traced: ir.Traced, fill: Mapping[str, Expr]) -> tuple[Term, ...]:
    """The cells of all outputs, end to end, with the holes filled by these expressions."""
    missing = set(traced.holes) - set(fill)
    if missing:
        raise CheckError(f"hole '{min(missing)}' is not filled")
    machine = _Machine(traced, {f"?{name}": expr for name, expr in fill.items()})
    machine.run(traced.body, {})
    cells = [cell for array in traced.outputs for cell in machine.memory[array.name]]
    return tuple(Undefined() if cell is None else cell for cell in cells)


@dataclass(slots=True, eq=False)
class _Machine:
    traced: ir.Traced
    fill: dict[str, Expr]
    memory: dict[str, Cells] = field(default_factory=dict)
    registers: dict[str, dict[Lane, Cells]] = field(default_factory=dict)
    values: dict[str, dict[Lane, Term | None]] = field(default_factory=dict)
    items: dict[str, dict[Lane, list[Term]]] = field(default_factory=dict)
    writers: dict[int, set[int]] = field(default_factory=dict)
    lanes: list[Lane] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lanes = list(itertools.product(*(range(n) for _, n in self.traced.lanes)))
        numbers = itertools.count()
        for array in self.traced.arrays.values():
            count = size(array.shape)
            if array.space == "register":
                self.registers[array.name] = {lane: [None] * count for lane in self.lanes}
            elif array.space in ("input", "constant"):
                self.memory[array.name] = [Symbol(next(numbers)) for _ in range(count)]
            else:
                self.memory[array.name] = [None] * count

    def run(self, body: Sequence[ir.Stmt], counters: dict[str, int]) -> None:
        for stmt in body:
            match stmt:
                case ir.Loop(var, count, inner):
                    for i in range(count):
                        self.run(inner, counters | {var: i})
                case ir.Read(target, array, index):
                    self.values[target] = {
                        lane: self._read(array, index, lane, counters) for lane in self.lanes
                    }
                case ir.Exchange(target, value, lanes):
                    offered = self.values[value]
                    self.values[target] = {
                        lane: offered.get(tuple(self._at(e, lane, counters) for e in lanes))
                        for lane in self.lanes
                    }
                case ir.Write(array, index, value):
                    for lane in self.lanes:
                        self._write(stmt, array, index, self.values[value][lane], lane, counters)
                case ir.Accumulate():
                    self._accumulate(stmt, counters)
                case ir.Finish(target, accumulator):
                    self.values[target] = self._finish(self.traced.accumulators[accumulator])
                case ir.Sync():
                    pass
                case _:
                    assert_never(stmt)

    def _at(self, expr: Expr, lane: Lane, counters: Mapping[str, int]) -> int:
        names = (name for name, _ in self.traced.lanes)
        env = {**dict(zip(names, lane, strict=True)), **counters}
        return int(evaluate(substitute(expr, self.fill), env))

    def _cell(
        self, shape: Shape, index: tuple[Expr, ...], lane: Lane, counters: Mapping[str, int]
    ) -> int | None:
        flat = 0
        for length, expr in zip(shape, index, strict=True):
            place = self._at(expr, lane, counters)
            if not 0 <= place < length:
                return None
            flat = flat * length + place
        return flat

    def _cells(self, name: str, lane: Lane) -> Cells:
        return self.registers[name][lane] if name in self.registers else self.memory[name]

    def _read(
        self, name: str, index: tuple[Expr, ...], lane: Lane, counters: Mapping[str, int]
    ) -> Term | None:
        cell = self._cell(self.traced.arrays[name].shape, index, lane, counters)
        return None if cell is None else self._cells(name, lane)[cell]

    def _write(
        self,
        stmt: ir.Write,
        name: str,
        index: tuple[Expr, ...],
        value: Term | None,
        lane: Lane,
        counters: Mapping[str, int],
    ) -> None:
        cell = self._cell(self.traced.arrays[name].shape, index, lane, counters)
        if cell is None:
            return
        if name in self.memory:
            seen = self.writers.setdefault(id(stmt), set())
            value = None if cell in seen else value
            seen.add(cell)
        self._cells(name, lane)[cell] = value

    def _accumulate(self, stmt: ir.Accumulate, counters: Mapping[str, int]) -> None:
        bags = self.items.setdefault(stmt.accumulator, {lane: [] for lane in self.lanes})
        for lane in self.lanes:
            if not self._at(stmt.predicate, lane, counters):
                continue
            items = [self.values[item][lane] for item in stmt.items]
            terms = [Undefined() if item is None else item for item in items]
            inner = self.traced.accumulators[stmt.accumulator].inner or WORD
            bags[lane].append(terms[0] if len(terms) == 1 else fold_of(terms, inner))

    def _finish(self, acc: ir.Accumulator) -> dict[Lane, Term | None]:
        bags = self.items.pop(acc.name, {})
        result: dict[Lane, Term | None] = {}
        for lane in self.lanes:
            value = fold_of([*bags.get(lane, []), *acc.first], acc.outer)
            result[lane] = fold_of([value], function(acc.finalize)) if acc.finalize else value
        return result
