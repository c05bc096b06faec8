"""Device functions that load and store structures: each lane has its own, memory is gone through in
order.

    load-structures    structure first + i of x goes to the registers of lane i
    store-structures   the way back

A load is by rows of neighbouring items, for another lane where the fill begins across lanes; then
the fill's other steps bring every item to its lane. Where lanes of the warp are missing, each loads
its own structure by itself: slower, and right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Parameter, Values
from warploom.catalogue.fill import TileFill, TileStep, transposing
from warploom.catalogue.functions import ANY_TYPE, Group, add_moves, group, some_items
from warploom.catalogue.layout import WARP
from warploom.index.ir import Expr
from warploom.index.laws import simplify
from warploom.kernel.bounds import INDEX_BITS
from warploom.kernel.build import Array, Builder, ceil_div
from warploom.kernel.function import WHOLE
from warploom.kernel.ir import Kernel
from warploom.sketch.code.exchange import Tiles, count
from warploom.sketch.code.move import LANE, at_place


@dataclass(frozen=True, slots=True)
class _Access:
    """A warp's structures, `first` and those after it, between an array and registers."""

    k: Builder
    shape: Group
    held: Tiles
    n: Expr
    first: Expr

    def by_rows(self, array: Array, lane_of: Expr, *, load: bool) -> None:
        """Row j of 32 neighbouring items; lane i has the one of another lane, `lane_of`."""
        k, shape = self.k, self.shape
        with count(k, "j", shape.registers) as j:
            lane = simplify(at_place(lane_of, k.lane, j))
            item = k.let("item", simplify(self.first * shape.registers + j * WARP + lane))
            inside = item.lt(self.n * shape.registers)
            self._one(array, item, j, inside, load)

    def by_lanes(self, array: Array, name: str, *, load: bool) -> None:
        """Every lane its own structure, whose number gets a name."""
        k, shape = self.k, self.shape
        own = k.let(name, self.first + k.lane)
        with count(k, "j", shape.registers) as j:
            self._one(array, simplify(own * shape.registers + j), j, own.lt(self.n), load)

    def _one(self, array: Array, item: Expr, j: Expr, inside: Expr, load: bool) -> None:
        with count(self.k, "word", self.shape.width) as word:
            at, cell = simplify(item * self.shape.width + word), self.held.at(0, j, word)
            if load:
                self.k.set(cell, array.at(at, when=inside))
            else:
                array.put(at, cell, when=inside)


def _without_load(fill: TileFill) -> tuple[Expr, tuple[TileStep, ...]]:
    """For which lane a thread loads, and the steps that are left."""
    first, *rest = fill.steps
    return (first.source, tuple(rest)) if first.kind == "r" else (LANE, fill.steps)


def _without_store(fill: TileFill) -> tuple[Expr, tuple[TileStep, ...]]:
    *rest, last = fill.steps
    return (LANE, fill.steps) if last.back is None else (last.back, tuple(rest))


def _moving(back: bool) -> Callable[..., Kernel]:
    def build(fields: int, bytes: int) -> Kernel:
        shape = group(WARP, fields, bytes)
        # A step across lanes at the end of memory is free. Odd structures need no such step.
        fill = transposing(WARP, fields, "crc" if fields % 2 else "rcr", back=back)
        name = f"{'store' if back else 'load'}_structures_{fields}"
        k = Builder(f"call_{name}", block=WARP, doc=_doc(fields, fill, back))
        n, whole = k.scalar("n"), k.scalar(WHOLE)
        x = k.array("x", shape.dtype, n * (fields * shape.width), const=True)
        y = k.array("y", shape.dtype, n * (fields * shape.width))
        k.grid(ceil_div(n, WARP))
        first = k.let("first", k.block_x * WARP)
        held = Tiles(k, "a", shape.dtype, fields, shape.width).declare()
        access = _Access(k, shape, held, n, first)
        if back:
            access.by_lanes(x, "mine", load=True)
        with k.function(name):
            _add(access, fill, y if back else x, whole, back)
        if not back:
            access.by_lanes(y, "mine", load=False)
        return k.done()

    return build


def _add(access: _Access, fill: TileFill, array: Array, whole: Expr, back: bool) -> None:
    k = access.k
    lane, steps = _without_store(fill) if back else _without_load(fill)
    with k.when(whole.ne(0)):
        if not back:
            access.by_rows(array, lane, load=True)
        add_moves(k, access.held, access.shape, fill.moves(steps))
        if back:
            access.by_rows(array, lane, load=False)
    with k.otherwise():
        access.by_lanes(array, "own", load=not back)


def _doc(fields: int, fill: TileFill, back: bool) -> str:
    if back:
        what = f"store_structures: lane i's {fields} registers become structure first + i of the n"
        rest = "in y. Nothing is stored beyond the n."
    else:
        what = f"load_structures: structure first + i of the n in x, {fields} items, goes to the"
        rest = "registers of lane i. Beyond the n they are zero."
    who = "Fast if all 32 lanes of a warp call it together, right also if some are missing."
    most = (1 << (INDEX_BITS - 1)) // fields - 2 * WARP
    limit = f"Indices have {INDEX_BITS} bits: n is at most {most}; beyond, move the pointer."
    return f"{what} {rest}\n{ANY_TYPE} No shared memory.\n{who}\n{limit}\n{fill.doc}"


# -- what they must compute ------------------------------------------------------------------------


def _inputs(size: dict[str, int], random: np.random.Generator, **given: Any) -> Values:
    x = some_items({"count": size["n"]}, random, given["fields"], given["bytes"])
    return {"n": size["n"], WHOLE: size[WHOLE], "x": x}


def _specification(values: Values, **_: Any) -> Arrays:
    x = values["x"]
    assert isinstance(x, np.ndarray)
    return {"y": x.copy()}


def _sizes(**_: Any) -> list[dict[str, int]]:
    whole = [{"n": n, WHOLE: 1} for n in (1, 2, 7, 31, 32, 33, 64, 95, 100)]
    return [*whole, {"n": 45, WHOLE: 0}]


_COUNTS: tuple[dict[str, Parameter], ...] = tuple(
    {"fields": fields} for fields in (1, 2, 3, 5, 6, 7, 12, 16)
)
_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    *_COUNTS,
    {"fields": 3, "bytes": 1},
    {"fields": 4, "bytes": 2},
    {"fields": 6, "bytes": 8},
    {"fields": 3, "bytes": 16},
)

ENTRIES = tuple(
    Entry(
        name=name,
        doc=doc,
        parameters={"fields": 4, "bytes": 4},
        build=_moving(back),
        inputs=_inputs,
        specification=_specification,
        sizes=_sizes,
        variants=_VARIANTS,
    )
    for name, doc, back in (
        ("load-structures", "each lane of a warp gets a structure of its own", False),
        ("store-structures", "each lane of a warp stores a structure of its own", True),
    )
)
