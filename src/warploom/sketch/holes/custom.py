"""Gathers a user writes down as index tables, and the arithmetic that reads them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, select
from warploom.index.table import affine
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers
from warploom.sketch.holes.expressions import OUTSIDE, coordinate, flat, own_coordinates, total
from warploom.sketch.holes.function import check_names
from warploom.sketch.holes.moving import gather_set
from warploom.sketch.term.gather import (
    UNDEFINED,
    ZERO,
    Family,
    GatherExpr,
    GatherSet,
    Sense,
    Setting,
    Settings,
    Shape,
    Table,
    size,
)


@dataclass(frozen=True, slots=True, eq=False)
class Defined(Family):
    """A row is the number of a table; `names` are what the tables are called."""

    name = "table"

    call: Call
    names: tuple[str, ...]
    tables: Table

    def reads(self, rows: Settings) -> Table:
        return self.tables[rows[:, 0]]

    def text(self, row: Setting) -> str:
        return self.names[int(row[0])]

    def expression(self, row: Setting) -> GatherExpr:
        return table_expression(self.tables[row[0]], self.call.arg_shapes, self.call.out_shape)

    def cheapest(self, _rows: Settings) -> int:
        return 0

    def counterparts(self, rows: Settings, large: Family, _reading: Sense) -> Settings:
        """The tables of the same names."""
        if not isinstance(large, Defined):
            return rows[:0]
        names = [self.text(row) for row in rows]
        found = [large.names.index(name) for name in names if name in large.names]
        return np.array(found, np.int64).reshape(-1, 1)

    def forms(self, rows: Settings) -> Settings:
        return rows

    def to_json(self, row: Setting) -> dict[str, Any]:
        return {"choice": self.text(row)}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        check_names(parameters, ("choice",))
        if parameters["choice"] not in self.names:
            raise CheckError(f"no table is called {parameters['choice']!r:.80}")
        return np.array([self.names.index(parameters["choice"])])


def custom(
    name: str,
    arg_shapes: tuple[Shape, ...],
    out_shape: Shape,
    choices: Sequence[str],
    tables: Table,
) -> GatherSet:
    """The set of a user's own gathers; of equal ones the first keeps its name."""
    call = Call(name, {}, arg_shapes, out_shape)
    _check(call, choices, tables)
    given = np.ascontiguousarray(tables, dtype=np.int32)
    rows = np.arange(len(given))[:, None]
    return gather_set(call, Defined(call, tuple(choices), given), rows, given)


def table_expression(
    table: Integers, arg_shapes: tuple[Shape, ...], out_shape: Shape
) -> GatherExpr:
    """A table as arithmetic: a sum of scaled coordinates if it is one, else a tree of selects."""
    starts = np.cumsum([0, *map(size, arg_shapes)])
    argument = np.searchsorted(starts, table, side="right") - 1
    offset = table - starts[np.maximum(argument, 0)]
    argument[table == ZERO] = len(arg_shapes)
    argument[table == UNDEFINED] = 0
    offset[table == ZERO] = 0
    offset[table == UNDEFINED] = OUTSIDE
    return GatherExpr(_piecewise(argument, out_shape), _piecewise(offset, out_shape))


def _check(call: Call, choices: Sequence[str], tables: Table) -> None:
    expected = (len(choices), call.cells)
    if tables.shape != expected:
        call.mismatch("the shape of the tables", expected, tuple(tables.shape))
    if not len(choices):
        call.fail(f"{call.function} defines no gather", "write at least one table")
    end = sum(map(size, call.arg_shapes))
    wrong = (tables >= end) | (tables < UNDEFINED)
    if wrong.any():
        row, cell = np.argwhere(wrong)[0].tolist()
        call.fail(
            f"{call.function}: choice {choices[row]} reads offset {int(tables[row, cell])} for cell"
            f" {cell}, but the arguments have {end} elements",
            "use an offset through all arguments laid end to end, ZERO or UNDEFINED",
        )


def _piecewise(values: Integers, shape: Shape) -> Expr:
    """An expression over the output coordinates with these values, of at most O(cells) nodes."""
    found = affine(values.reshape(shape))
    if found is not None:
        return total([(f, coordinate(a)) for a, f in enumerate(found[0])], found[1])
    cell = flat(shape, own_coordinates(shape))
    # Runs in which the value stands still, or steps along with the cell number.
    numbers = values.tolist()
    pieces: list[tuple[int, Expr]] = []
    start = 0
    while start < len(numbers):
        end = start + 1
        pace = int(end < len(numbers) and numbers[end] == numbers[start] + 1)
        while end < len(numbers) and numbers[end] == numbers[end - 1] + pace:
            end += 1
        pieces.append((start, total([(pace, cell)], numbers[start] - pace * start)))
        start = end
    return _tree(cell, pieces)


def _tree(cell: Expr, pieces: list[tuple[int, Expr]]) -> Expr:
    """A balanced choice by where each piece starts: halves are joined, level by level."""
    level = pieces
    while len(level) > 1:
        joined = []
        for i in range(0, len(level) - 1, 2):
            (start, left), (border, right) = level[i], level[i + 1]
            joined.append((start, select(cell.lt(border), left, right)))
        level = joined + ([level[-1]] if len(level) % 2 else [])
    return level[0][1] if level else Const(0)
