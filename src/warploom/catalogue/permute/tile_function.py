"""One tile of a permutation as a device function: what a warp does for a kernel of the user's own.

    y[y_first + a·y_step + b] = x[x_first + b·x_step + a]   for a < width, b < height

Rows of x are read as they lie, rows of y are written so, and both steps are any. The tile's layout
is the solver's, as in the kernel of the catalogue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Parameter, Values
from warploom.catalogue.functions import some_items
from warploom.catalogue.layout import WARP
from warploom.catalogue.permute.entry import TILE, tile_layout
from warploom.catalogue.permute.frame import WORDS
from warploom.errors import CheckError
from warploom.index.ir import lift, minimum
from warploom.kernel.bounds import INDEX_BITS
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.ir import Kernel

BESIDE = 8  # loads that are under way at once


def permute_tile(bytes: int) -> Kernel:
    if bytes not in WORDS:
        raise CheckError(f"elements of {bytes} bytes", advice="use 1, 2, 4 or 8")
    name, dtype = f"permute_tile_{bytes}", WORDS[bytes]
    k = Builder(f"call_{name}", block=WARP, doc=_doc(bytes))
    rows, columns = k.scalar("rows"), k.scalar("columns")
    for each in (rows, columns):
        k.require(each.ge(1))
    x = k.array("x", dtype, rows * columns, const=True)
    y = k.array("y", dtype, rows * columns)
    k.grid(ceil_div(columns, TILE), ceil_div(rows, TILE))
    layout = tile_layout(bytes)
    room = k.shared("room", dtype, layout.slots)
    a, b = k.let("a", k.block_x * TILE), k.let("b", k.block_y * TILE)
    x_first, y_first = k.let("x_first", b * columns + a), k.let("y_first", a * rows + b)
    x_step, y_step = k.let("x_step", columns + 0), k.let("y_step", rows + 0)
    width = k.let("width", minimum(columns - a, lift(TILE)))
    height = k.let("height", minimum(rows - b, lift(TILE)))
    with k.function(name):
        k.barrier("warp")
        held = k.registers("held", dtype, BESIDE)
        with k.loop("n", TILE // BESIDE) as n:
            with k.loop("i", BESIDE) as i:
                row = n * BESIDE + i
                inside = k.lane.lt(width).and_(row.lt(height))
                held[i] = x.at(x_first + row * x_step + k.lane, when=inside)
            with k.loop("i", BESIDE) as i:
                room.put(layout.at(k.let("row", n * BESIDE + i), k.lane), held[i])
        k.barrier("warp")
        got = k.register("got", dtype)
        with k.loop("line", TILE) as line, k.when(k.lane.lt(height).and_(line.lt(width))):
            k.set(got, room.at(layout.at(k.lane, line)))
            y.put(y_first + line * y_step + k.lane, got)
    return k.done()


def _doc(bytes: int) -> str:
    layout = tile_layout(bytes)
    most = (1 << (INDEX_BITS - 1)) - 1
    return (
        f"permute_tile: of {bytes}-byte elements, y[y_first + a * y_step + b] ="
        " x[x_first + b * x_step + a]\n"
        f"for a < width and b < height, both at most {TILE}. Steps are those of any two axes.\n"
        f"Shared memory: 'room' has space for {layout.slots} elements, which no other warp uses"
        " meanwhile.\n"
        f"{layout.says}\n"
        f"All {WARP} lanes of a warp call it together.\n"
        f"Indices have {INDEX_BITS} bits: of arrays at most {most} elements; beyond, move the"
        " pointers."
    )


# -- what it must compute --------------------------------------------------------------------------


def _inputs(size: dict[str, int], random: np.random.Generator, **given: Any) -> Values:
    cells = {"count": size["rows"] * size["columns"]}
    return {**size, "x": some_items(cells, random, 1, given["bytes"])}


def _specification(values: Values, **_: Any) -> Arrays:
    x = values["x"]
    assert isinstance(x, np.ndarray)
    shape = int(values["rows"]), int(values["columns"])
    return {"y": x.reshape(shape).T.reshape(-1).copy()}


def _sizes(**_: Any) -> list[dict[str, int]]:
    sides = [(1, 1), (1, 40), (33, 1), (7, 31), (32, 32), (31, 33), (64, 65), (100, 37), (2, 3)]
    return [{"rows": rows, "columns": columns} for rows, columns in sides]


_VARIANTS: tuple[dict[str, Parameter], ...] = ({}, {"bytes": 1}, {"bytes": 2}, {"bytes": 8})

ENTRIES = (
    Entry(
        name="permute-tile",
        doc="a tile of a permutation: rows of x become columns of y",
        parameters={"bytes": 4},
        build=permute_tile,
        inputs=_inputs,
        specification=_specification,
        sizes=_sizes,
        variants=_VARIANTS,
    ),
)
