"""The choices of a warp hole as gathers of the term language: which function, on which arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.index.show import show
from warploom.sketch.holes.common import Positions, distinct
from warploom.sketch.holes.custom import table_expression
from warploom.sketch.simt.space import HoleChoices, counterparts, functions_of
from warploom.sketch.term.gather import (
    Family,
    GatherExpr,
    GatherSet,
    Sense,
    Setting,
    Settings,
    Shape,
    Sources,
)


@dataclass(frozen=True, slots=True, eq=False)
class Opened(Family):
    """Row n is the nth of `tables`, which function `kept[n]` of those offered gives."""

    name = "hole"

    offered: HoleChoices
    kept: Positions
    tables: Sources
    in_shape: Shape
    out_shape: Shape

    def reads(self, rows: Settings) -> Sources:
        return self.tables[rows[:, 0]]

    def text(self, row: Setting) -> str:
        return show(self.offered.expression(int(self.kept[row[0]])))

    def expression(self, row: Setting) -> GatherExpr:
        read = self.tables[row]
        table = read if isinstance(read, np.ndarray) else read.full()
        return table_expression(table[0], (self.in_shape,), self.out_shape)

    def cheapest(self, _rows: Settings) -> int:
        return 0

    def counterparts(self, rows: Settings, large: Family, reading: Sense) -> Settings:
        if not isinstance(large, Opened):
            return rows[:0]
        there = large.offered
        found = [
            counterparts(self.offered.hole, self._row(row), there.hole, reading).values
            for row in rows
        ]
        first, kind = distinct(np.concatenate([there.values[large.kept], *found]))
        meant = np.unique(first[kind[len(large.kept) :]])
        return meant[meant < len(large.kept), None]

    def forms(self, rows: Settings) -> Settings:
        return functions_of(self.offered.hole).forms(self.offered.rows[self.kept[rows[:, 0]]])

    def to_json(self, row: Setting) -> dict[str, Any]:
        return self.offered.to_json(int(self.kept[row[0]]))

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        wanted = functions_of(self.offered.hole).from_json(parameters)
        same = np.flatnonzero((self.offered.rows[self.kept] == wanted).all(axis=1))
        if not len(same):
            raise CheckError(f"hole '{self.offered.hole.name}' has no such choice")
        return same[:1]

    def _row(self, row: Setting) -> Setting:
        """The parameters of the function."""
        parameters: Setting = self.offered.rows[self.kept[row[0]]]
        return parameters


def opened_set(
    offered: HoleChoices, in_shape: Shape, out_shape: Shape, reads: Sources
) -> tuple[GatherSet, Positions]:
    """The gathers, where the nth function reads `reads[n]`, and which function each stands for.

    Equal ones are there once, by the first of them.
    """
    kept, _ = distinct(reads if isinstance(reads, np.ndarray) else reads.values)
    tables = reads if len(kept) == len(reads) else reads[kept]
    opened = GatherSet(
        function=offered.hole.kind,
        options=(),
        arg_shapes=(in_shape,),
        out_shape=out_shape,
        family=Opened(offered, kept, tables, in_shape, out_shape),
        spelled=np.arange(len(kept))[:, None],
        owner=np.arange(len(kept)),
        reads=tables,
    )
    return opened, kept
