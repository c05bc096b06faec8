"""Gathers that read the cell itself but for one coordinate, which a function of others gives.

`Moving` makes a family of gathers of functions: where they stand (a call and an axis) is added to
what they are. `gather_set` makes the set of a family: equal gathers once, with all their rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from warploom.index.ir import Expr, constants, operations
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, Positions, distinct, distinct_parts, grid
from warploom.sketch.holes.expressions import coordinate, replaced
from warploom.sketch.holes.function import IndexFunctions
from warploom.sketch.term.gather import (
    Family,
    GatherExpr,
    GatherSet,
    Moves,
    Sense,
    Setting,
    Settings,
    Sources,
    moves,
)

Cost: TypeAlias = tuple[int, int]  # operations, distinct constants


def gather_set(
    call: Call,
    family: Family,
    rows: Settings,
    reads: Sources | None = None,
    reader: Positions | None = None,
) -> GatherSet:
    """The distinct gathers of these rows in order of first occurrence.

    If it is known already what they read, row n reads `reads[n]`, or, where equal ones were found,
    `reads[reader[n]]`.
    """
    if not len(rows):
        call.fail(
            f"{call.function} has no gather from {list(call.in_shape)} to {list(call.out_shape)}",
            "the identity needs equal shapes, and an axis of length 1 has nothing to move",
        )
    if reads is None:
        reads, owner = _in_parts(family, rows)
    else:
        reads, owner = _once(reads)
        owner = owner if reader is None else owner[reader]
    return GatherSet(
        function=call.function,
        options=tuple(sorted(call.options.items(), key=lambda item: item[0])),
        arg_shapes=call.arg_shapes,
        out_shape=call.out_shape,
        family=family,
        spelled=rows,
        owner=owner,
        reads=reads,
    )


def _once(reads: Sources) -> tuple[Sources, Positions]:
    """Equal ones once, and for each which that is."""
    if isinstance(reads, np.ndarray):
        reads = np.ascontiguousarray(reads, np.int32)
    first, owner = distinct(reads.values if isinstance(reads, Moves) else reads)
    return reads if len(first) == len(owner) else reads[first], owner


def _in_parts(family: Family, rows: Settings) -> tuple[Sources, Positions]:
    """`_once` for what some rows read, which is never all in memory at once."""
    one = family.reads(rows[:1])
    if isinstance(one, np.ndarray):
        return _once(family.reads(rows))
    kind = np.min_scalar_type(one.length + 1)  # the same for all parts, which are compared

    def values(part: slice) -> Integers:
        reads = family.reads(rows[part])
        assert isinstance(reads, Moves)
        return reads.values.astype(kind, copy=False)

    _, owner, heads = distinct_parts(len(rows), 8 * one.values.shape[1], values)
    return replace(one, values=heads), owner


def expression_cost(gather: GatherExpr) -> Cost:
    both = (gather.argument, gather.offset)
    return sum(map(operations, both)), len(frozenset().union(*map(constants, both)))


def cheapest_expression(family: Family, rows: Settings) -> int:
    """The row with the fewest operations; the first of several."""
    costs = [expression_cost(family.expression(row)) for row in rows]
    return costs.index(min(costs))


@dataclass(frozen=True, slots=True)
class OfFunctions(Family):
    """Gathers by functions: the rows are those of the functions."""

    call: Call
    functions: IndexFunctions

    def counterparts(self, rows: Settings, large: Family, reading: Sense) -> Settings:
        if type(large) is not type(self) or not isinstance(large, OfFunctions):
            return rows[:0]
        return self.functions.counterparts(rows, large.functions, reading)

    def forms(self, rows: Settings) -> Settings:
        return self.functions.forms(rows)

    def to_json(self, row: Setting) -> dict[str, Any]:
        return self.functions.to_json(row)

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        return self.functions.from_json(parameters)


@dataclass(frozen=True, slots=True)
class Moving(OfFunctions):
    """Reads along `axis` where one of the functions says."""

    axis: int

    @property
    def axes(self) -> tuple[int, ...]:
        """What the new coordinate depends on."""
        return self.functions.depends

    @property
    def field(self) -> int:
        """The cells for which it is computed."""
        return math.prod(self.call.out_shape[axis] for axis in self.axes)

    def values(self, rows: Settings) -> Integers:
        return self.functions.values(rows, grid(self.call.out_shape, self.axes))

    def value(self, row: Setting) -> Expr:
        """The new coordinate."""
        names = [coordinate(axis) for axis in range(len(self.call.out_shape))]
        return self.functions.expression(row, names)

    def may_leave(self, row: Setting) -> bool:
        """Whether a cell of a row is beyond the argument."""
        return bool((self.values(row[None]) >= self.call.in_shape[self.axis]).any())

    def reads(self, rows: Settings) -> Moves:
        values, length = self.values(rows), self.call.in_shape[self.axis]
        if values.max(initial=0) > length:
            np.minimum(values, values.dtype.type(length), out=values)
        return moves(self.call.in_shape, self.call.out_shape, self.axis, self.axes, values)

    def expression(self, row: Setting) -> GatherExpr:
        shapes = self.call.in_shape, self.call.out_shape
        # Only beyond an axis that is not the first does a wrong cell begin.
        beyond = self.axis > 0 and self.may_leave(row)
        return replaced(*shapes, self.axis, self.value(row), beyond)

    def cheapest(self, rows: Settings) -> int:
        return cheapest_expression(self, rows)
