"""Steps of the term language on arrays whose dimensions have names: lanes, loop counters, the rest.

A gather says by an index expression for each dimension what to read. Known expressions become one
step, each hole a step of its own, in which the dimension it reads gives way to what it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, Span
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, Var, substitute, variables
from warploom.sketch import holes as gathers
from warploom.sketch.simt.ir import Hole, holes_in
from warploom.sketch.simt.opened import opened_set
from warploom.sketch.simt.space import HoleChoices, Values
from warploom.sketch.term.gather import Moves, Sources, strides
from warploom.sketch.term.ir import (
    UNDEFINED,
    ZERO,
    Apply,
    GatherSet,
    Literal,
    Shape,
    Step,
    size,
)

Ints: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """What a fold stands for, where the sketch says so, and what computes it on numbers."""

    name: str
    span: Span | None = None
    function: Callable[[Any], Any] | None = None


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
class Steps:
    """The steps made so far; `position` and `which` say what became of each hole.

    `extents` holds the length of every lane axis and loop, outermost first.
    """

    extents: dict[str, int]
    candidates: Mapping[str, HoleChoices]
    steps: list[Step] = field(default_factory=list)
    position: dict[str, int] = field(default_factory=dict)
    which: dict[str, Ints] = field(default_factory=dict)
    span: Span | None = None  # the line of the sketch that steps are made for

    def gather(self, name: str, node: Node, coordinates: Sequence[Expr]) -> Node:
        """The value at these coordinates: known ones in one step, then steps for each hole."""
        axes: list[str] = []
        known: dict[str, Expr] = {}
        opened: dict[str, str] = {}
        shared = holes_in(*coordinates)
        for number, (length, expr) in enumerate(zip(node.shape, coordinates, strict=True)):
            hole = self._only_hole(expr)
            axis = f"@{number}"
            if hole is not None and expr is self.candidates[hole].hole.var and hole not in opened:
                opened[hole] = axis
            elif hole is not None:
                # An index made of a hole: first all it may be, then the hole picks.
                sent = opened[hole] = f"@{hole}"
                self.extents[sent] = self.candidates[hole].hole.size
                known[axis] = fill_hole(expr, hole, Var(sent))
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
        axes = self.ordered((set(node.axes) - set(replaced)) | needed)
        lengths = dict(zip(node.axes, node.shape, strict=True))
        shape = tuple(lengths[a] if a in lengths else self.extents[a] for a in axes)
        at = grid(axes, shape)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int32)
        inside: Ints | bool = True
        for axis, stride in node.strides.items():
            index = np.asarray(evaluate(replaced[axis], at)) if axis in replaced else at[axis]
            inside = inside & (index >= 0) & (index < lengths[axis])
            place = place + index * stride
        table = np.broadcast_to(np.where(inside, place, UNDEFINED), (1, *shape))
        return self.step(name, [node], axes, shape, table)

    def _pick(self, node: Node, axis: str, name: str) -> Node:
        """Where the hole reads along an axis, which gives way to the hole's variables."""
        found, values = self.candidates[name], self.candidates[name].values
        axes = self.ordered((set(node.axes) - {axis}) | set(found.hole.variables))
        lengths = dict(zip(node.axes, node.shape, strict=True))
        length = lengths[axis]
        shape = tuple(self.extents[a] if a in self.extents else lengths[a] for a in axes)
        at, stride = grid(axes, shape), node.strides
        kept = sum((at[a] * stride[a] for a in node.axes if a != axis), start=np.int32(0))
        cells = np.broadcast_to(kept, (1, *shape)).reshape(-1)
        over = tuple(n for n, a in enumerate(axes) if a in found.hole.variables)
        index = self.placed(found.hole, values, axes).reshape(len(values), -1)
        small = np.minimum(index, length).astype(values.dtype)
        read = Moves(shape, over, small, length, stride[axis], cells)
        return self.open_step(name, node, axes, shape, read)

    def placed(self, hole: Hole, values: Values, axes: tuple[str, ...]) -> Ints:
        """What a hole gives: [choices, axes…], open along what it does not depend on."""
        grid = values.reshape(len(values), *hole.extents)
        order = np.argsort([axes.index(v) for v in hole.variables])
        turned = grid.transpose(0, *(order + 1))
        opened = [self.extents[a] if a in hole.variables else 1 for a in axes]
        return turned.reshape(len(values), *opened).astype(np.int32)

    def keep(self, name: str, node: Node, predicate: Expr) -> Node:
        """The value where the predicate holds, else zero."""
        if isinstance(predicate, Const) and predicate.value:
            return node
        hole = self._only_hole(predicate)
        env: dict[str, Ints] = dict(grid(node.axes, node.shape))
        if hole is not None:
            found = self.candidates[hole]
            env[found.hole.var.name] = self.placed(found.hole, found.values, node.axes)
        holds = np.asarray(evaluate(predicate, env)) != 0
        holds = np.broadcast_to(holds, np.broadcast_shapes(holds.shape, (1, *node.shape)))
        own = np.arange(size(node.shape), dtype=np.int32).reshape(1, *node.shape)
        tables = np.where(holds, own, np.int32(ZERO)).reshape(len(holds), -1)
        if hole is None:
            return self.step(name, [node], node.axes, node.shape, tables)
        return self.open_step(hole, node, node.axes, node.shape, tables)

    def spread(self, name: str, node: Node, axes: Iterable[str]) -> Node:
        """The value with at least these axes."""
        wanted = self.ordered({*node.axes, *axes})
        if wanted == node.axes:
            return node
        shape = tuple(self.extents[a] for a in wanted)
        return self.step(f"{name}.all", [node], wanted, shape, self.offsets(node, wanted))

    def fold(
        self,
        name: str,
        nodes: list[Node],
        scope: tuple[str, ...],
        fixed: tuple[str, ...],
        operator: Operator,
    ) -> Node:
        """One fold for each cell of `fixed` (default: of `scope`) over all other axes and nodes."""
        kept = self.ordered(fixed or scope)
        shape = tuple(self.extents[a] for a in kept)
        parts, start = [], 0
        for node in nodes:
            inner = tuple(a for a in node.axes if a not in kept and not a.startswith("@"))
            cells = self.offsets(node, (*kept, *inner)).reshape(size(shape), -1)
            parts.append(cells + start)
            start += size(node.shape)
        if not parts:  # nothing to fold: zero, read from the first input
            first = self.steps[0].shape
            nodes = [Node(0, tuple(f"@{n}" for n in range(len(first))), first)]
            parts = [np.full((size(shape), 1), ZERO, np.int32)]
        table = np.concatenate(parts, axis=1)
        width = table.shape[1]
        return self.step(name, nodes, kept, (*shape, width), table, operator)

    # -- steps

    def literal(self, name: str, shape: Shape, terms: tuple[Any, ...]) -> Node:
        self.steps.append(Literal(self._name(name), shape, terms))
        axes = tuple(f"@{n}" for n in range(len(shape)))
        return Node(len(self.steps) - 1, axes, shape)

    def step(
        self,
        name: str,
        nodes: list[Node],
        axes: tuple[str, ...],
        shape: Shape,
        table: Ints,
        operator: Operator | None = None,
    ) -> Node:
        """One known gather; with an operator its last dimension is folded."""
        arg_shapes = tuple(node.shape for node in nodes)
        row = np.ascontiguousarray(table, np.int32).reshape(1, -1)
        known = gathers.custom("gather", arg_shapes, shape, ("gather",), row)
        return self._apply(name, nodes, axes, known, operator)

    def open_step(
        self, name: str, node: Node, axes: tuple[str, ...], shape: Shape, reads: Sources
    ) -> Node:
        """A gather that a hole decides."""
        opened, kept = opened_set(self.candidates[name], node.shape, shape, reads)
        self.position[name], self.which[name] = len(self.steps), kept
        return self._apply(name, [node], axes, opened, None)

    def _apply(
        self,
        name: str,
        nodes: list[Node],
        axes: tuple[str, ...],
        chosen: GatherSet,
        operator: Operator | None,
    ) -> Node:
        shape, args = chosen.out_shape, tuple(node.position for node in nodes)
        made = Apply(self._name(name), shape, args, chosen, span=self.span)
        if operator is not None:
            shape, fold = shape[:-1], shape[-1]
            spoken, span, computed = operator.name, operator.span, operator.function
            made = Apply(made.name, shape, args, chosen, fold, spoken, span, computed)
        self.steps.append(made)
        return Node(len(self.steps) - 1, axes, shape)

    def _name(self, name: str) -> str:
        taken = {step.name for step in self.steps}
        return name if name not in taken else f"{name}.{len(self.steps)}"

    # -- arithmetic

    def ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
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

    def offsets(self, node: Node, axes: tuple[str, ...]) -> Ints:
        """Where in a node's value each cell of `axes` finds its own; other axes do not matter."""
        shape = tuple(self.extents[a] for a in axes)
        at = grid(axes, shape)
        place: Ints = np.zeros([1] * (len(axes) + 1), np.int32)
        for axis, stride in node.strides.items():
            if axis in at:
                place = place + at[axis] * np.int32(stride)
        return np.broadcast_to(place, (1, *shape)).reshape(-1)


def grid(axes: tuple[str, ...], shape: Shape) -> dict[str, Ints]:
    """Each axis' coordinate, open along the others, behind an axis for the choices."""
    return {
        axis: np.arange(length, dtype=np.int32).reshape(
            [1, *(-1 if a == number else 1 for a in range(len(axes)))]
        )
        for number, (axis, length) in enumerate(zip(axes, shape, strict=True))
    }


def fill_hole(expr: Expr, hole: str, filled: Expr) -> Expr:
    return substitute(expr, {f"?{hole}": filled})
