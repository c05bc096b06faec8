"""From a traced SIMT sketch to the term language: values become arrays over lanes and loops.

A value computed in a loop becomes one array with an axis for the loop, so a hole in a loop is one
gather on all iterations at once. `Lowered` keeps which step belongs to which hole of the sketch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var, substitute, variables
from warploom.index.show import show
from warploom.sketch import holes as gathers
from warploom.sketch.holes.common import distinct, strides
from warploom.sketch.holes.custom import table_expression
from warploom.sketch.simt.ir import (
    Accumulate,
    Accumulator,
    Exchange,
    Finish,
    Hole,
    Loop,
    Read,
    Stmt,
    Sync,
    Traced,
    Write,
    holes_in,
    prune,
)
from warploom.sketch.simt.space import Candidates, Values
from warploom.sketch.simt.spec import mark, start_name
from warploom.sketch.term.ir import (
    UNDEFINED,
    ZERO,
    Apply,
    GatherSet,
    Literal,
    Program,
    Shape,
    Step,
    Symbol,
    size,
)

Ints: TypeAlias = npt.NDArray[Any]

_TERM_OPERATORS = {"+": "+", "*": "*"}


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A hole of the sketch is one step of the program.

    `which[h]` says which candidate of hole h the choices of its step `position[h]` mean.
    """

    program: Program
    traced: Traced
    live: frozenset[int]
    candidates: Mapping[str, Candidates]
    position: Mapping[str, int]
    which: Mapping[str, Ints]

    def choices(self, fill: Mapping[int, int]) -> dict[str, int]:
        """A fill of the program as candidates of the sketch's holes."""
        return {n: int(self.which[n][fill.get(p, 0)]) for n, p in self.position.items()}

    def fill(self, choices: Mapping[str, int]) -> dict[int, int]:
        """Candidates of the sketch's holes as a fill of the program."""
        at = {p: self.which[n].tolist().index(choices[n]) for n, p in self.position.items()}
        return {hole: at[hole] for hole in self.program.holes}


def lower(
    traced: Traced, candidates: Mapping[str, Candidates], live: frozenset[int] | None = None
) -> Lowered:
    """The program whose holes are the sketch's; only the accumulate statements in `live` count."""
    if live is None:
        live = frozenset(s.number for s in traced.statements)
    lowering = _Lowering(traced, candidates)
    lowering.run(prune(traced, live), ())
    lowering.finish()
    program = Program(traced.name, tuple(lowering.steps), (traced.goal,))
    return Lowered(program, traced, live, candidates, lowering.position, lowering.which)


@dataclass(frozen=True, slots=True)
class Node:
    """A step's value: its dimensions by name, which for lanes and loops is their variable."""

    position: int
    axes: tuple[str, ...]
    shape: Shape

    @property
    def strides(self) -> dict[str, int]:
        return dict(zip(self.axes, strides(self.shape), strict=True))


@dataclass(slots=True, eq=False)
class _Lowering:
    traced: Traced
    candidates: Mapping[str, Candidates]
    steps: list[Step] = field(default_factory=list)
    position: dict[str, int] = field(default_factory=dict)
    which: dict[str, Ints] = field(default_factory=dict)
    values: dict[str, Node] = field(default_factory=dict)
    arrays: dict[str, Node] = field(default_factory=dict)
    # Stores at known places, not yet made a step: (value, for each cell its place in it or −1).
    stores: dict[str, list[tuple[Node, Ints]]] = field(default_factory=dict)
    items: dict[str, list[Node]] = field(default_factory=dict)
    extents: dict[str, int] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.extents = self.traced.extents
        self.lanes = tuple(name for name, _ in self.traced.lanes)
        start = 0
        for array in self.traced.inputs:
            count = size(array.shape)
            terms = tuple(Symbol(start + i) for i in range(count))
            self.arrays[array.name] = self._literal(array.name, array.shape, terms)
            start += count

    # -- statements

    def run(self, body: tuple[Stmt, ...], loops: tuple[str, ...]) -> None:
        for stmt in body:
            match stmt:
                case Loop(var, _, inner):
                    self.run(inner, (*loops, var))
                case Read(target, array, index):
                    self.values[target] = self._read(target, array, index)
                case Exchange(target, value, lanes):
                    self.values[target] = self._exchange(target, value, lanes)
                case Write(array, index, value):
                    self._write(array, index, self.values[value], loops)
                case Accumulate():
                    self._accumulate(stmt, loops)
                case Finish(target, accumulator):
                    self.values[target] = self._finish(self.traced.accumulators[accumulator])
                case Sync():
                    pass
                case _:
                    assert_never(stmt)

    def _read(self, target: str, name: str, index: tuple[Expr, ...]) -> Node:
        array = self.traced.arrays[name]
        own = tuple(map(Var, self.lanes)) if array.space == "register" else ()
        return self._gather(target, self._array(name), (*own, *index))

    def _exchange(self, target: str, value: str, lanes: tuple[Expr, ...]) -> Node:
        source = self._spread(value, self.values[value], self.lanes)
        coordinates = dict(zip(self.lanes, lanes, strict=True))
        return self._gather(target, source, [coordinates.get(a, Var(a)) for a in source.axes])

    def _accumulate(self, stmt: Accumulate, loops: tuple[str, ...]) -> None:
        acc = self.traced.accumulators[stmt.accumulator]
        scope = self._ordered({*self.lanes, *loops})
        nodes = [self.values[item] for item in stmt.items]
        name = f"{acc.name}.{stmt.number}"
        if len(nodes) == 1:
            node = self._spread(name, nodes[0], scope)
        else:
            node = self._fold(name, nodes, scope, (), acc.inner or "fold")
        kept = self._keep(f"{name}.keep", node, stmt.predicate)
        self.items.setdefault(acc.name, []).append(kept)

    def _finish(self, acc: Accumulator) -> Node:
        nodes = list(self.items.get(acc.name, ()))
        if acc.init is not None:
            nodes.append(self._literal(f"{acc.name}.init", (1,), (mark(start_name(acc.init)),)))
        scope = self._ordered({*self.lanes, *acc.loops})
        result = self._fold(acc.name, nodes, scope, self.lanes + acc.loops, acc.outer)
        if acc.finalize:
            marked = self._literal(f"{acc.name}.end", (1,), (mark(f"finalize {acc.finalize}"),))
            result = self._fold(f"{acc.name}.final", [result, marked], scope, scope, "fold")
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
        shape = tuple(self.extents[a] for a in own) + array.shape
        coordinates: tuple[Expr, ...] = (*map(Var, own), *index)
        axes = self._ordered({*self.lanes, *loops})
        names = holes_in(*coordinates)
        if names:
            value, axes = self._send(names, coordinates, value, axes)
            coordinates = tuple(_replace(e, names[0], Var(f"@{names[0]}")) for e in coordinates)
        table = _scatter(
            self._flat(coordinates, shape, axes), self._offsets(value, axes), size(shape)
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
                f"the place of a store is decided by '{names[0]}' and by more than that",
                advice=f"let one hole alone say where '{first}' goes",
            )
        self.extents[sent] = hole.size
        whole = self._spread(hole.name, value, axes)
        out = self._ordered((set(axes) - {first}) | {sent})
        values = self.candidates[hole.name].values
        at = _grid(axes, tuple(self.extents[a] for a in axes))
        target = self._placed(hole, values, axes)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int64)
        shape = tuple(self.extents[a] for a in out)
        for axis, stride in zip(out, strides(shape), strict=True):
            place = place + (target.astype(np.int64) if axis == sent else at[axis]) * stride
        over = [len(values), *(self.extents[a] for a in axes)]
        flat = np.broadcast_to(place, over).reshape(len(values), -1)
        tables = _scatter(flat, self._offsets(whole, axes), size(shape))
        tables[tables < 0] = UNDEFINED
        return self._open_step(hole.name, whole, out, shape, tables), out

    def _flush(self, name: str) -> None:
        """Makes all pending stores one gather; a later store wins."""
        pending = self.stores.pop(name)
        array = self.traced.arrays[name]
        own = self.lanes if array.space == "register" else ()
        shape = tuple(self.extents[a] for a in own) + array.shape
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
        self.arrays[name] = self._step(name, nodes, axes, shape, table)

    def finish(self) -> None:
        """The last step: the output, or all outputs end to end."""
        nodes = [self._array(array.name) for array in self.traced.outputs]
        if len(nodes) > 1:
            cells = sum(size(node.shape) for node in nodes)
            self._step("outputs", nodes, ("@0",), (cells,), np.arange(cells))
        elif nodes[0].position != len(self.steps) - 1:
            node = nodes[0]
            self._step("out", [node], node.axes, node.shape, np.arange(size(node.shape)))

    # -- gathers

    def _gather(self, name: str, node: Node, coordinates: Sequence[Expr]) -> Node:
        """The value at these coordinates: known ones in one step, then steps for each hole."""
        axes: list[str] = []
        known: dict[str, Expr] = {}
        opened: dict[str, str] = {}
        shared = holes_in(*coordinates)
        for number, (length, expr) in enumerate(zip(node.shape, coordinates, strict=True)):
            hole = self._only_hole(expr)
            axis = f"@{number}"
            if hole is not None and expr is self.traced.holes[hole].var and hole not in opened:
                opened[hole] = axis
            elif hole is not None:
                # An index made of a hole: first all it may be, then the hole picks.
                sent = opened[hole] = f"@{hole}"
                self.extents[sent] = self.traced.holes[hole].size
                known[axis] = _replace(expr, hole, Var(sent))
            elif (
                not isinstance(expr, Var)
                or expr.name in axes
                or (self.extents.get(expr.name) != length)
            ):
                known[axis] = expr
            else:
                axis = expr.name
            axes.append(axis)
        result = Node(node.position, tuple(axes), node.shape)
        if known:
            result = self._index(name, result, known)
        for hole in shared:
            result = self._pick(result, opened[hole], hole)
        return result

    def _index(self, name: str, node: Node, replaced: dict[str, Expr]) -> Node:
        """The axes in `replaced` give way to those that their expressions depend on."""
        needed = set().union(*(variables(expr) for expr in replaced.values()))
        axes = self._ordered((set(node.axes) - set(replaced)) | needed)
        lengths = dict(zip(node.axes, node.shape, strict=True))
        shape = tuple(lengths[a] if a in lengths else self.extents[a] for a in axes)
        at = _grid(axes, shape)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int32)
        inside: Ints | bool = True
        for axis, stride in node.strides.items():
            index = np.asarray(evaluate(replaced[axis], at)) if axis in replaced else at[axis]
            inside = inside & (index >= 0) & (index < lengths[axis])
            place = place + index * stride
        table = np.broadcast_to(np.where(inside, place, UNDEFINED), (1, *shape))
        return self._step(name, [node], axes, shape, table)

    def _pick(self, node: Node, axis: str, name: str) -> Node:
        """Where the hole reads along an axis, which gives way to the hole's variables."""
        found, values = self.candidates[name], self.candidates[name].values
        axes = self._ordered((set(node.axes) - {axis}) | set(found.hole.variables))
        lengths = dict(zip(node.axes, node.shape, strict=True))
        length = lengths[axis]
        shape = tuple(self.extents[a] if a in self.extents else lengths[a] for a in axes)
        at, stride = _grid(axes, shape), node.strides
        index = self._placed(found.hole, values, axes)
        kept = sum((at[a] * stride[a] for a in node.axes if a != axis), start=np.int32(0))
        place = index * np.int32(stride[axis]) + kept
        if found.hole.size > length:
            place = np.where(index < length, place, UNDEFINED)
        tables = np.broadcast_to(place, (len(values), *shape)).reshape(len(values), -1)
        return self._open_step(name, node, axes, shape, tables, found.hole.size <= length)

    def _placed(self, hole: Hole, values: Values, axes: tuple[str, ...]) -> Ints:
        """What a hole gives: [choices, axes…], open along what it does not depend on."""
        grid = values.reshape(len(values), *hole.extents)
        order = np.argsort([axes.index(v) for v in hole.variables])
        turned = grid.transpose(0, *(order + 1))
        opened = [self.extents[a] if a in hole.variables else 1 for a in axes]
        return turned.reshape(len(values), *opened).astype(np.int32)

    def _keep(self, name: str, node: Node, predicate: Expr) -> Node:
        """The value where the predicate holds, else zero."""
        if isinstance(predicate, Const) and predicate.value:
            return node
        hole = self._only_hole(predicate)
        env: dict[str, Ints] = dict(_grid(node.axes, node.shape))
        if hole is not None:
            found = self.candidates[hole]
            env[found.hole.var.name] = self._placed(found.hole, found.values, node.axes)
        holds = np.asarray(evaluate(predicate, env)) != 0
        holds = np.broadcast_to(holds, np.broadcast_shapes(holds.shape, (1, *node.shape)))
        own = np.arange(size(node.shape), dtype=np.int32).reshape(1, *node.shape)
        tables = np.where(holds, own, np.int32(ZERO)).reshape(len(holds), -1)
        if hole is None:
            return self._step(name, [node], node.axes, node.shape, tables)
        return self._open_step(hole, node, node.axes, node.shape, tables)

    def _spread(self, name: str, node: Node, axes: Iterable[str]) -> Node:
        """The value with at least these axes."""
        wanted = self._ordered({*node.axes, *axes})
        if wanted == node.axes:
            return node
        shape = tuple(self.extents[a] for a in wanted)
        return self._step(f"{name}.all", [node], wanted, shape, self._offsets(node, wanted))

    def _fold(
        self,
        name: str,
        nodes: list[Node],
        scope: tuple[str, ...],
        fixed: tuple[str, ...],
        operator: str,
    ) -> Node:
        """One fold for each cell of `fixed` (default: of `scope`) over all other axes and nodes."""
        kept = self._ordered(fixed or scope)
        shape = tuple(self.extents[a] for a in kept)
        parts, start = [], 0
        for node in nodes:
            inner = tuple(a for a in node.axes if a not in kept and not a.startswith("@"))
            cells = self._offsets(node, (*kept, *inner)).reshape(size(shape), -1)
            parts.append(cells + start)
            start += size(node.shape)
        if not parts:  # every statement was dropped
            nodes, parts = [self.arrays[self.traced.inputs[0].name]], [_zeros(size(shape))]
        table = np.concatenate(parts, axis=1)
        width = table.shape[1]
        return self._step(name, nodes, kept, (*shape, width), table, operator)

    # -- steps

    def _literal(self, name: str, shape: Shape, terms: tuple[Any, ...]) -> Node:
        self.steps.append(Literal(self._name(name), shape, terms))
        axes = tuple(f"@{n}" for n in range(len(shape)))
        return Node(len(self.steps) - 1, axes, shape)

    def _step(
        self,
        name: str,
        nodes: list[Node],
        axes: tuple[str, ...],
        shape: Shape,
        table: Ints,
        operator: str | None = None,
    ) -> Node:
        """One known gather; with an operator its last dimension is folded."""
        arg_shapes = tuple(node.shape for node in nodes)
        row = np.ascontiguousarray(table, np.int32).reshape(1, -1)
        known = gathers.custom("gather", arg_shapes, shape, ("gather",), row)
        return self._apply(name, nodes, axes, known, operator)

    def _open_step(
        self,
        name: str,
        node: Node,
        axes: tuple[str, ...],
        shape: Shape,
        tables: Ints,
        unequal: bool = False,
    ) -> Node:
        """A gather that a hole decides; `unequal` says that no two tables are equal."""
        found = self.candidates[name]
        tables = np.ascontiguousarray(tables, np.int32)
        kept = np.arange(len(tables)) if unequal else distinct(tables)[0]
        rows = tables if len(kept) == len(tables) else tables[kept]
        opened = GatherSet(
            function=found.hole.kind,
            options=(),
            arg_shapes=(node.shape,),
            out_shape=shape,
            tables=rows,
            describe=lambda choice: show(found.expression(int(kept[choice]))),
            expression=lambda choice: table_expression(rows[choice], (node.shape,), shape),
        )
        self.position[name], self.which[name] = len(self.steps), kept
        return self._apply(name, [node], axes, opened, None)

    def _apply(
        self,
        name: str,
        nodes: list[Node],
        axes: tuple[str, ...],
        chosen: GatherSet,
        operator: str | None,
    ) -> Node:
        shape, fold = chosen.out_shape, None
        if operator is not None:
            shape, fold = shape[:-1], shape[-1]
        args = tuple(node.position for node in nodes)
        spoken = _TERM_OPERATORS.get(operator or "", "fold")
        self.steps.append(Apply(self._name(name), shape, args, chosen, fold, spoken))
        return Node(len(self.steps) - 1, axes, shape)

    def _name(self, name: str) -> str:
        taken = {step.name for step in self.steps}
        return name if name not in taken else f"{name}.{len(self.steps)}"

    # -- arithmetic

    def _ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """Lanes first, then loops from the outside in, then what is left of arrays."""
        order = {axis: number for number, axis in enumerate(self.extents)}
        return tuple(sorted(set(axes), key=lambda a: (order.get(a, len(order)), a)))

    def _only_hole(self, expr: Expr) -> str | None:
        names = holes_in(expr)
        if len(names) > 1:
            raise CheckError(
                f"holes '{names[0]}' and '{names[1]}' meet in one index",
                advice="use them one after the other, or along different axes",
            )
        return names[0] if names else None

    def _flat(self, coordinates: Sequence[Expr], shape: Shape, axes: tuple[str, ...]) -> Ints:
        """The cell that each lane and iteration means, −1 outside: [1, cells of `axes`]."""
        over = tuple(self.extents[a] for a in axes)
        at = _grid(axes, over)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int64)
        inside: Ints | bool = True
        for expr, length, stride in zip(coordinates, shape, strides(shape), strict=True):
            index = np.asarray(evaluate(expr, at))
            inside = inside & (index >= 0) & (index < length)
            place = place + index * stride
        return np.broadcast_to(np.where(inside, place, -1), (1, *over)).reshape(1, -1)

    def _offsets(self, node: Node, axes: tuple[str, ...]) -> Ints:
        """Where in a node's value each cell of `axes` finds its own; other axes do not matter."""
        shape = tuple(self.extents[a] for a in axes)
        at = _grid(axes, shape)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int32)
        for axis, stride in node.strides.items():
            if axis in at:
                place = place + at[axis] * np.int32(stride)
        return np.broadcast_to(place, (1, *shape)).reshape(-1)


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


def _grid(axes: tuple[str, ...], shape: Shape) -> dict[str, Ints]:
    """Each axis' coordinate, open along the others, behind an axis for the choices."""
    return {
        axis: np.arange(length, dtype=np.int32).reshape(
            [1, *(-1 if a == number else 1 for a in range(len(axes)))]
        )
        for number, (axis, length) in enumerate(zip(axes, shape, strict=True))
    }


def _zeros(cells: int) -> Ints:
    return np.full((cells, 1), ZERO, np.int32)


def _replace(expr: Expr, hole: str, filled: Expr) -> Expr:
    return substitute(expr, {f"?{hole}": filled})
