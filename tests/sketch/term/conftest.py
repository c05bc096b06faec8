"""A small library of functions that stands in for the hole sets, so that these tests need none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pytest
from bench.common.sketch.tables import table_set

from warploom.errors import CheckError
from warploom.sketch.term import check
from warploom.sketch.term.ir import GatherSet, Program, Shape, Table, size

Option = int | tuple[int, ...] | None


class Library:
    """`identity`/`reshape`, `stack`, `drop` (keeps even cells, zero elsewhere), and the hole
    `rots`, which rotates the flat array by every amount."""

    def known(self) -> Collection[str]:
        return ("identity", "reshape", "stack", "drop", "rots")

    def build(
        self,
        function: str,
        options: Mapping[str, Option],
        arg_shapes: tuple[Shape, ...],
        out_shape: Shape,
    ) -> GatherSet:
        cells = np.arange(size(out_shape), dtype=np.int32)
        if sum(map(size, arg_shapes)) != len(cells):
            raise CheckError(f"{function}: sizes differ", advice="make them equal")
        if set(options) - {"step"}:
            raise CheckError(f"{function} has no such option")
        tables = cells[None]
        names = [function]
        if function == "stack":
            tables = cells.reshape(len(arg_shapes), -1).T.reshape(1, -1)
        elif function == "drop":
            tables = np.where(cells % 2 == 0, cells, -1)[None]
        elif function == "rots":
            names = [f"rot[{by}]" for by in range(len(cells))]
            tables = np.stack([np.roll(cells, -by) for by in range(len(cells))])
        return table_set(function, tuple(options.items()), arg_shapes, out_shape, names, tables)

    def custom(
        self,
        name: str,
        arg_shapes: tuple[Shape, ...],
        out_shape: Shape,
        choices: Sequence[str],
        tables: Table,
    ) -> GatherSet:
        return table_set(name, (), arg_shapes, out_shape, choices, tables)


@pytest.fixture(scope="session")
def load() -> Callable[[str], Program]:
    """Loads a text with the small library."""
    return lambda text: check.load(text, "t.swflow", Library())
