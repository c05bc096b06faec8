"""What is to be computed, before there are loops: stores of values over axes.

A value is one of kernels, whose leaves are loads, folds and values that are computed once. Along an
axis it has an element for each index; a fold binds the axes that it is over, so that the same axis
may be looped over again with what was folded: `exp(x[i, j] - top[i])`, where `top` is a fold over
`j`. `instructions.py` makes a program of it, `build.py` is how it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from warploom.index.ir import variables
from warploom.kernel.ir import Cell, FromIndex, Value, walk_value
from warploom.loopnest import ir
from warploom.loopnest.fold import Fold
from warploom.loopnest.pieces import conditions_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Loaded(ir.Own):
    """An element of an array. Leaves are numbered in the order in which they were written."""

    number: int
    access: ir.Access


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Folded(ir.Own):
    """The values along some axes put together by an operator, from `start` on."""

    number: int
    op: Fold
    value: Value
    over: tuple[ir.Axis, ...]
    start: Value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scanned(ir.Own):
    """The values along an axis put together as far as each place."""

    number: int
    op: Fold
    value: Value
    over: ir.Axis
    exclusive: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kept(ir.Own):
    """A value that is computed once. One that is only stored has a name of its own as well, in the
    published system."""

    number: int
    value: Value
    stored: bool = False


Leaf: TypeAlias = Loaded | Folded | Scanned | Kept


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    name: str
    number: int
    access: ir.Access
    value: Value


@dataclass(frozen=True, eq=False)
class Computation:
    """`axes` are in the order of declaration. Along an axis that is `held` every value of a row is
    there at once, as along one that is not dynamic."""

    name: str
    axes: tuple[ir.Axis, ...]
    arrays: tuple[ir.Array, ...]
    parameters: tuple[ir.Parameter, ...]
    leaves: tuple[Leaf, ...]
    stores: tuple[Stored, ...]
    held: frozenset[ir.Axis] = frozenset()

    @staticmethod
    def of(program: ir.Program) -> Computation:
        assert isinstance(program.source, Computation)
        return program.source

    @cached_property
    def by_name(self) -> dict[str, ir.Axis]:
        return {axis.name: axis for axis in self.axes}

    @cached_property
    def updates(self) -> bool:
        """Whether something stored is loaded, too: then that is done by one instruction."""
        stored = {each.access.array for each in self.stores}
        return any(isinstance(each, Loaded) and each.access.array in stored for each in self.leaves)

    @cached_property
    def _free(self) -> dict[Cell, frozenset[ir.Axis]]:
        return {}

    @cached_property
    def _ended(self) -> dict[Cell, dict[ir.Axis, int]]:
        return {}

    def axes_of(self, value: Value) -> frozenset[ir.Axis]:
        """The axes along which a value has an element for each index."""
        found: set[ir.Axis] = set()
        for each in walk_value(value):
            match each:
                case Loaded() | Folded() | Scanned() | Kept():
                    found |= self.free(each)
                case FromIndex():
                    found |= {self.by_name[n] for n in variables(each.expr) if n in self.by_name}
        return frozenset(found | {self.by_name[n] for n in conditions_of(value)})

    def free(self, leaf: Leaf) -> frozenset[ir.Axis]:
        if leaf not in self._free:
            match leaf:
                case Loaded():
                    found = frozenset(leaf.access.axes)
                case Folded():
                    found = self.axes_of(leaf.value) - set(leaf.over) | self.axes_of(leaf.start)
                case Scanned():
                    found = self.axes_of(leaf.value) | {leaf.over}
                case Kept():
                    found = self.axes_of(leaf.value)
            self._free[leaf] = found
        return self._free[leaf]

    def is_counted(self, axis: ir.Axis) -> bool:
        """Whether loops along an axis end before what was folded over it is there."""
        return axis.dynamic and axis not in self.held

    def in_order(self, axes: frozenset[ir.Axis]) -> list[ir.Axis]:
        return [axis for axis in self.axes if axis in axes]

    def ended(self, value: Value) -> dict[ir.Axis, int]:
        """How many folds over each axis have to be done, one after another, before a value is
        there; along axes without loops of their own values travel, however often."""
        found: dict[ir.Axis, int] = {}
        for each in walk_value(value):
            if isinstance(each, Folded | Scanned | Kept):
                for axis, count in self._ended_of(each).items():
                    found[axis] = max(found.get(axis, 0), count)
            elif isinstance(each, Loaded):
                for named in each.access.named:
                    for axis, count in self.ended(named.value).items():
                        found[axis] = max(found.get(axis, 0), count)
        return found

    def _ended_of(self, leaf: Folded | Scanned | Kept) -> dict[ir.Axis, int]:
        if leaf not in self._ended:
            found = self.ended(leaf.value)
            if isinstance(leaf, Folded):
                for axis, count in self.ended(leaf.start).items():
                    found[axis] = max(found.get(axis, 0), count)
                found |= {axis: found.get(axis, 0) + 1 for axis in leaf.over
                          if self.is_counted(axis)}  # fmt: skip
            self._ended[leaf] = found
        return self._ended[leaf]
