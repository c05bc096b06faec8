"""From a traced SIMT sketch to the term language: values become arrays over lanes and loops.

A value computed in a loop becomes one array with an axis for the loop, so a hole in a loop is one
gather on all iterations at once. `Lowered` keeps which step belongs to which hole of the sketch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, variables
from warploom.sketch.simt import ir
from warploom.sketch.simt.space import HoleChoices
from warploom.sketch.simt.steps import Ints, Node, Operator, Steps, fill_hole, grid
from warploom.sketch.term.gather import strides
from warploom.sketch.term.ir import UNDEFINED, Program, Shape, Symbol, size
from warploom.sketch.term.operator import WORD, function


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A hole of the sketch is one step of the program.

    `which[h]` says which candidate of hole h the choices of its step `position[h]` mean.
    """

    program: Program
    traced: ir.Traced
    live: frozenset[int]
    candidates: Mapping[str, HoleChoices]
    position: Mapping[str, int]
    which: Mapping[str, Ints]

    def choices(self, fill: Mapping[int, int]) -> dict[str, int]:
        """A fill of the program as candidates of the sketch's holes."""
        return {n: int(self.which[n][fill.get(p, 0)]) for n, p in self.position.items()}

    def fill(self, choices: Mapping[str, int]) -> dict[int, int]:
        """HoleChoices of the sketch's holes as a fill of the program."""
        at = {p: self.which[n].tolist().index(choices[n]) for n, p in self.position.items()}
        return {hole: at[hole] for hole in self.program.holes}


def lower(
    traced: ir.Traced, candidates: Mapping[str, HoleChoices], live: frozenset[int] | None = None
) -> Lowered:
    """The program whose holes are the sketch's; only the accumulate statements in `live` count."""
    if live is None:
        live = frozenset(s.number for s in traced.statements)
    steps = Steps(traced.extents, candidates)
    lowering = _Lowering(traced, steps)
    lowering.run(ir.prune(traced, live), ())
    lowering.finish()
    program = Program(traced.name, tuple(steps.steps), (traced.goal,))
    return Lowered(program, traced, live, candidates, steps.position, steps.which)


@dataclass(slots=True, eq=False)
class _Lowering:
    traced: ir.Traced
    out: Steps
    values: dict[str, Node] = field(default_factory=dict)
    arrays: dict[str, Node] = field(default_factory=dict)
    # Stores at known places, not yet made a step: (value, for each cell its place in it).
    stores: dict[str, list[tuple[Node, Ints]]] = field(default_factory=dict)
    items: dict[str, list[Node]] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.lanes = tuple(name for name, _ in self.traced.lanes)
        start = 0
        for array in self.traced.inputs:
            count = size(array.shape)
            terms = tuple(Symbol(start + i) for i in range(count))
            self.arrays[array.name] = self.out.literal(array.name, array.shape, terms)
            start += count

    # -- statements

    def run(self, body: tuple[ir.Stmt, ...], loops: tuple[str, ...]) -> None:
        for stmt in body:
            own = None if isinstance(stmt, ir.Loop | ir.Finish | ir.Sync) else stmt.span
            self.out.span = own or self.out.span
            try:
                self._run(stmt, loops)
            except CheckError as error:
                if error.span is not None or own is None:
                    raise
                raise CheckError(error.message, own, error.advice) from error

    def _run(self, stmt: ir.Stmt, loops: tuple[str, ...]) -> None:
        match stmt:
            case ir.Loop(var, _, inner):
                self.run(inner, (*loops, var))
            case ir.Read(target, array, index):
                self.values[target] = self._read(target, array, index)
            case ir.Exchange(target, value, lanes):
                self.values[target] = self._exchange(target, value, lanes)
            case ir.Write(array, index, value):
                self._write(array, index, self.values[value], loops)
            case ir.Accumulate():
                self._accumulate(stmt, loops)
            case ir.Finish(target, accumulator):
                self.values[target] = self._finish(self.traced.accumulators[accumulator])
            case ir.Sync():
                pass
            case _:
                assert_never(stmt)

    def _read(self, target: str, name: str, index: tuple[Expr, ...]) -> Node:
        array = self.traced.arrays[name]
        own = tuple(map(Var, self.lanes)) if array.space == "register" else ()
        return self.out.gather(target, self._array(name), (*own, *index))

    def _exchange(self, target: str, value: str, lanes: tuple[Expr, ...]) -> Node:
        source = self.out.spread(value, self.values[value], self.lanes)
        coordinates = dict(zip(self.lanes, lanes, strict=True))
        return self.out.gather(target, source, [coordinates.get(a, Var(a)) for a in source.axes])

    def _accumulate(self, stmt: ir.Accumulate, loops: tuple[str, ...]) -> None:
        acc = self.traced.accumulators[stmt.accumulator]
        scope = self.out.ordered({*self.lanes, *loops})
        nodes = [self.values[item] for item in stmt.items]
        name = f"{acc.name}.{stmt.number}"
        if len(nodes) == 1:
            node = self.out.spread(name, nodes[0], scope)
        else:
            node = self.out.fold(name, nodes, scope, (), Operator(acc.inner or WORD, acc.span))
        kept = self.out.keep(f"{name}.keep", node, stmt.predicate)
        self.items.setdefault(acc.name, []).append(kept)

    def _finish(self, acc: ir.Accumulator) -> Node:
        nodes = list(self.items.get(acc.name, ()))
        if acc.first:
            nodes.append(self.out.literal(f"{acc.name}.init", (1,), acc.first))
        scope = self.out.ordered({*self.lanes, *acc.loops})
        outer = Operator(acc.outer, acc.span)
        result = self.out.fold(acc.name, nodes, scope, self.lanes + acc.loops, outer)
        if acc.finalize:
            last = Operator(function(acc.finalize), acc.span, acc.finish)
            result = self.out.fold(f"{acc.name}.final", [result], scope, scope, last)
        return result

    # -- arrays

    def _array(self, name: str) -> Node:
        if name in self.stores:
            self._flush(name)
        return self.arrays[name]

    def _write(
        self, name: str, index: tuple[Expr, ...], value: Node, loops: tuple[str, ...]
    ) -> None:
        """`array[index] = value` in all lanes and iterations: a gather the other way round."""
        array = self.traced.arrays[name]
        own = self.lanes if array.space == "register" else ()
        shape = tuple(self.out.extents[a] for a in own) + array.shape
        coordinates: tuple[Expr, ...] = (*map(Var, own), *index)
        axes = self.out.ordered({*self.lanes, *loops})
        names = ir.holes_in(*coordinates)
        if names:
            value, axes = self._send(names, coordinates, value, axes)
            coordinates = tuple(fill_hole(e, names[0], Var(f"@{names[0]}")) for e in coordinates)
        table = _scatter(
            self._flat(coordinates, shape, axes), self.out.offsets(value, axes), size(shape)
        )
        if own and (table == _TWICE).any():
            raise CheckError(f"a register of '{name}' is written twice by one statement")
        table[table == _TWICE] = UNDEFINED
        self.stores.setdefault(name, []).append((value, table[0]))

    def _send(
        self, names: list[str], coordinates: Sequence[Expr], value: Node, axes: tuple[str, ...]
    ) -> tuple[Node, tuple[str, ...]]:
        """The values laid out by where the hole sends them, on an axis that replaces its first one.

        out[… h(i, k) …] = v[i, k]  →  t[u, k] = the v[i, k] with h(i, k) = u;  out[… u …] = t[u, k]
        """
        hole = self.traced.holes[names[0]]
        first, sent = hole.variables[0], f"@{hole.name}"
        if len(names) > 1 or any(first in variables(expr) for expr in coordinates):
            raise CheckError(
                f"the index of a store depends on the hole '{names[0]}' and on more than that",
                advice=f"let the hole alone decide where '{first}' goes",
            )
        self.out.extents[sent] = hole.size
        whole = self.out.spread(hole.name, value, axes)
        out = self.out.ordered((set(axes) - {first}) | {sent})
        values = self.out.candidates[hole.name].values
        at = grid(axes, tuple(self.out.extents[a] for a in axes))
        target = self.out.placed(hole, values, axes)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int64)
        shape = tuple(self.out.extents[a] for a in out)
        for axis, stride in zip(out, strides(shape), strict=True):
            place = place + (target.astype(np.int64) if axis == sent else at[axis]) * stride
        over = [len(values), *(self.out.extents[a] for a in axes)]
        flat = np.broadcast_to(place, over).reshape(len(values), -1)
        tables = _scatter(flat, self.out.offsets(whole, axes), size(shape))
        tables[tables < 0] = UNDEFINED
        return self.out.open_step(hole.name, whole, out, shape, tables), out

    def _flush(self, name: str) -> None:
        """Makes all pending stores one gather; a later store wins."""
        pending = self.stores.pop(name)
        array = self.traced.arrays[name]
        own = self.lanes if array.space == "register" else ()
        shape = tuple(self.out.extents[a] for a in own) + array.shape
        table = np.full(size(shape), UNDEFINED, np.int32)
        nodes = [node for node, _ in pending]
        if name in self.arrays:
            nodes.insert(0, self.arrays[name])
            table[:] = np.arange(size(shape))
        starts = np.cumsum([0, *(size(node.shape) for node in nodes)])[len(nodes) - len(pending) :]
        for start, (_, cells) in zip(starts.tolist(), pending, strict=False):
            written = cells != _NOBODY
            table[written] = np.where(cells[written] >= 0, cells[written] + start, cells[written])
        axes = (*own, *(f"@{n}" for n in range(len(array.shape))))
        self.arrays[name] = self.out.step(name, nodes, axes, shape, table)

    def finish(self) -> None:
        """The last step: the output, or all outputs end to end."""
        nodes = [self._array(array.name) for array in self.traced.outputs]
        if len(nodes) > 1:
            cells = sum(size(node.shape) for node in nodes)
            self.out.step("outputs", nodes, ("@0",), (cells,), np.arange(cells))
        elif nodes[0].position != len(self.out.steps) - 1:
            node = nodes[0]
            self.out.step("out", [node], node.axes, node.shape, np.arange(size(node.shape)))

    def _flat(self, coordinates: Sequence[Expr], shape: Shape, axes: tuple[str, ...]) -> Ints:
        """The cell that each lane and iteration means, −1 outside: [1, cells of `axes`]."""
        over = tuple(self.out.extents[a] for a in axes)
        at = grid(axes, over)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int64)
        inside: Ints | bool = True
        for expr, length, stride in zip(coordinates, shape, strides(shape), strict=True):
            index = np.asarray(evaluate(expr, at))
            inside = inside & (index >= 0) & (index < length)
            place = place + index * stride
        return np.broadcast_to(np.where(inside, place, -1), (1, *over)).reshape(1, -1)


_NOBODY, _TWICE = -3, -4  # cells of a scattered table that no lane writes, or several do


def _scatter(place: Ints, source: Ints, cells: int) -> Ints:
    """`table[choice, place[choice, n]] = source[n]`, with cells of nobody and of several marked."""
    choices = len(place)
    rows = np.arange(choices)[:, None] * (cells + 1)
    flat = rows + np.where(place >= 0, place, cells)
    table = np.full(choices * (cells + 1), _NOBODY, np.int32)
    table[flat.ravel()] = np.broadcast_to(source, flat.shape).ravel()
    counts = np.bincount(flat.ravel(), minlength=len(table))
    table[counts > 1] = _TWICE
    return table.reshape(choices, cells + 1)[:, :cells].copy()
