"""Functions with exactly one gather: copies, transpositions, loads and broadcasts.

Each function takes a call and gives the table and its arithmetic; there is nothing to choose, so a
row of their family has no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from warploom.index.ir import Expr
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, coordinates, read
from warploom.sketch.holes.expressions import (
    bounded,
    coordinate,
    flat,
    only,
    own_coordinates,
    remainder,
    total,
)
from warploom.sketch.holes.function import check_names
from warploom.sketch.holes.moving import gather_set
from warploom.sketch.term.gather import (
    Family,
    GatherExpr,
    GatherSet,
    Sense,
    Setting,
    Settings,
    Table,
    size,
)

Gather: TypeAlias = tuple[Table, GatherExpr]


@dataclass(frozen=True, slots=True)
class Single(Family):
    """The one gather that `make` gives."""

    name = "single"

    call: Call
    make: Callable[[Call], Gather]

    def reads(self, rows: Settings) -> Table:
        return np.repeat(self.make(self.call)[0], len(rows), axis=0)

    def text(self, _row: Setting) -> str:
        return self.call.function

    def expression(self, _row: Setting) -> GatherExpr:
        return self.make(self.call)[1]

    def cheapest(self, _rows: Settings) -> int:
        return 0

    def counterparts(self, rows: Settings, large: Family, _reading: Sense) -> Settings:
        return rows if isinstance(large, Single) else rows[:0]

    def forms(self, rows: Settings) -> Settings:
        return rows

    def to_json(self, _row: Setting) -> dict[str, Any]:
        return {}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        check_names(parameters, ())
        return np.zeros(0, np.int64)


def single(call: Call, make: Callable[[Call], Gather]) -> GatherSet:
    return gather_set(call, Single(call, make), np.zeros((1, 0), np.int64), make(call)[0])


def identity(call: Call) -> Gather:
    if size(call.in_shape) != call.cells:
        call.mismatch(
            "the number of elements",
            size(call.in_shape),
            call.cells,
            "a copy keeps every element; use broadcast or load_trunc to change their number",
        )
    table = np.arange(call.cells, dtype=np.int32).reshape(1, -1)
    return table, only(flat(call.out_shape, own_coordinates(call.out_shape)))


def transpose(call: Call) -> Gather:
    if call.out_shape != call.in_shape[::-1]:
        call.mismatch("the output shape", call.in_shape[::-1], call.out_shape)
    return _moved(call, coordinates(call.out_shape)[::-1], own_coordinates(call.out_shape)[::-1])


def stack(call: Call) -> Gather:
    *front, last = call.out_shape
    if last != len(call.arg_shapes):
        call.mismatch(
            "the last output dimension", f"{len(call.arg_shapes)} (one per argument)", last
        )
    for shape in call.arg_shapes:
        if shape != tuple(front):
            call.mismatch("the shape of each argument", tuple(front), shape)
    table = np.arange(call.cells, dtype=np.int32).reshape(last, -1).T.reshape(1, -1)
    own = own_coordinates(call.out_shape)
    return table, GatherExpr(own[-1], flat(tuple(front), own[:-1]))


def rot_idx(call: Call) -> Gather:
    right, left = call.maybe_number("r"), call.maybe_number("l")
    if (right is None) == (left is None):
        call.fail("rot_idx needs exactly one of the options r and l", "write rot_idx{r=1}, say")
    shape = call.in_shape
    by = (right if right is not None else -(left or 0)) % len(shape)
    expected = shape[-by:] + shape[:-by] if by else shape
    if call.out_shape != expected:
        call.mismatch("the output shape", expected, call.out_shape)
    own, names = coordinates(call.out_shape), own_coordinates(call.out_shape)
    return _moved(call, own[by:] + own[:by], names[by:] + names[:by])


def load_rep(call: Call) -> Gather:
    """Cells beyond the argument start again at its beginning."""
    cells, number, bound, lead = _linear_front(call)
    length = call.in_shape[0]
    wrapped = remainder(number, length, bound)
    return _moved(
        call,
        [cells % length, *coordinates(call.out_shape)[lead:]],
        [wrapped, *own_coordinates(call.out_shape)[lead:]],
    )


def load_trunc(call: Call) -> Gather:
    """Cells beyond the argument are undefined."""
    cells, number, _, lead = _linear_front(call)
    return _moved(
        call,
        [cells, *coordinates(call.out_shape)[lead:]],
        [number, *own_coordinates(call.out_shape)[lead:]],
    )


def load_grid_2d(call: Call) -> Gather:
    if len(call.in_shape) != 2 or len(call.out_shape) != 4:
        call.fail(
            f"load_grid_2d reads 2 dimensions into 4, not {len(call.in_shape)} into"
            f" {len(call.out_shape)}",
            "declare the output as [rows, columns, row blocks, column blocks]",
        )
    rows, columns, down, across = call.out_shape
    i, j, k, m = coordinates(call.out_shape)
    x, y, z, w = own_coordinates(call.out_shape)
    table = read(call.in_shape, [i + rows * k, j + columns * m], call.out_shape)
    source = [total([(1, x), (rows, z)]), total([(1, y), (columns, w)])]
    beyond = {1: columns * across > call.in_shape[1], 0: rows * down > call.in_shape[0]}
    return table, only(bounded(call.in_shape, source, beyond))


def broadcast(call: Call) -> Gather:
    shape, rank = call.in_shape, len(call.in_shape)
    group = call.maybe_number("group") or 0
    if not 0 <= group <= rank:
        message = f"broadcast: option group={group} is out of range"
        call.fail(message, f"use 0 to {rank}", "group")
    lead = len(call.out_shape) - rank + group
    if lead < group or shape[group:] != call.out_shape[lead:]:
        call.mismatch(
            "the end of the output shape",
            shape[group:],
            call.out_shape[max(lead, 0) :],
            "broadcast adds dimensions after the first `group`, and keeps the rest",
        )
    own, names = coordinates(call.out_shape), own_coordinates(call.out_shape)
    source = names[:group] + names[lead:]
    table = read(shape, own[:group] + own[lead:], call.out_shape)
    beyond = {a: call.out_shape[a] > shape[a] for a in range(group)}
    return table, only(bounded(shape, source, beyond))


def _linear_front(call: Call) -> tuple[Integers, Expr, int, int]:
    """The leading output dimensions as one number, the first fastest; its bound; how many."""
    shape, out = call.in_shape, call.out_shape
    lead = len(out) - (len(shape) - 1)
    if lead < 1 or shape[1:] != out[lead:]:
        call.mismatch("the end of the output shape", shape[1:], out[max(lead, 0) :])
    number: Integers = np.zeros(1, np.int64)
    terms: list[tuple[int, Expr]] = []
    pace = 1
    for axis, cells in enumerate(coordinates(out)[:lead]):
        number = number + cells * pace
        terms.append((pace, coordinate(axis)) if out[axis] > 1 else (0, coordinate(axis)))
        pace *= out[axis]
    return number, total(terms), pace, lead


def _moved(call: Call, cells: list[Integers], source: list[Expr]) -> Gather:
    """One argument read at `cells`; out of range only beyond its end, if at all."""
    table = read(call.in_shape, cells, call.out_shape)
    return table, only(flat(call.in_shape, source))
