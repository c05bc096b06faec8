"""Sliding windows along a line, from a cache in the registers of a warp.

A warp makes `rows` rows of 32·`width` neighbouring outputs. Lane t holds elements t·width … of each
row and of one more row, the halo. What a tap needs from d lanes further on comes by one shuffle.
From which lane, whether of this row or of the next, and whether it counts, is for the fill of a
sketch to say (`window_sketch`), which is found and verified when a kernel is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.catalogue.entry import Array as NumpyArray
from warploom.catalogue.entry import Parameter
from warploom.errors import CheckError, SearchError
from warploom.index.ir import Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.build import Array, Builder, RegisterArray, ceil_div
from warploom.kernel.dtype import DType
from warploom.machine.record import CUDA
from warploom.sketch import front
from warploom.sketch.code.form import ALWAYS
from warploom.sketch.code.move import Move, at_place
from warploom.sketch.code.proved import find
from warploom.sketch.term.ir import Program

WARP = CUDA.lanes
MAX_TAPS = 33
VECTOR_BYTES = 16

# Settings worth trying on a device.
LINE_TUNE: tuple[dict[str, Parameter], ...] = tuple(
    {"width": width, "rows": rows, "block": block}
    for width in (1, 2, 4)
    for rows in (1, 2, 4, 8)
    for block in (128, 256)
)

# What makes outputs of a window: (window, whether element j of it counts, sums).
Combine = Callable[[RegisterArray, Callable[[Expr], Expr], RegisterArray], None]


@dataclass(frozen=True, slots=True)
class Window:
    """What lane x0 makes of the lanes x1 further on: where that comes from, and if it counts.

    Without a move there is nothing to exchange.
    """

    move: Move | None = None
    kept: Expr = ALWAYS
    doc: str = "No element comes from another lane: there is no fill."

    def register(self, lane: Expr, distance: Expr) -> Expr:
        """The sender's register as a function of its own lane: 0 is this row, 1 the next."""
        assert self.move is not None
        assert self.move.sent is not None
        return at_place(self.move.sent, lane, distance)

    def lane(self, lane: Expr, distance: Expr) -> Expr:
        """Who sends."""
        assert self.move is not None
        return at_place(self.move.lane, lane, distance)

    def counts(self, lane: Expr, distance: Expr) -> Expr:
        return simplify(at_place(self.kept, lane, distance))


@dataclass(frozen=True, slots=True)
class Tile:
    """How a warp covers a line: `rows` times 32 lanes with `width` neighbouring outputs each."""

    taps: int
    width: int
    rows: int
    dtype: DType

    def __post_init__(self) -> None:
        if not 1 <= self.taps <= MAX_TAPS:
            raise CheckError(f"a window of {self.taps} taps", advice=f"use 1 to {MAX_TAPS}")
        check_width(self.width, self.dtype)
        if not 1 <= self.rows <= 32:
            raise CheckError(f"{self.rows} rows for each thread", advice="use 1 to 32")

    @property
    def outputs(self) -> int:
        """Outputs of a warp."""
        return WARP * self.width * self.rows

    @property
    def reach(self) -> int:
        """How many lanes further on the last tap lies."""
        return -(-(self.taps - 1) // self.width)

    @property
    def halo(self) -> int:
        """Rows beyond the warp's own of which some elements are needed."""
        return -(-self.reach // WARP)

    @property
    def doc(self) -> str:
        return (
            f"A lane has {self.width} elements of each row; those of the lane x1 further on come\n"
            "by shuffle, and are its element 0, of this row, or 1, of the next."
        )


def check_width(width: int, dtype: DType) -> None:
    if width not in (1, 2, 4) or width * dtype.bytes > VECTOR_BYTES:
        raise CheckError(
            f"accesses of {width} elements of {dtype!r}",
            advice=f"use 1, 2 or 4 elements, at most {VECTOR_BYTES} bytes together",
        )


def write_windows(
    k: Builder,
    n: Var,
    x: Array,
    y: Array,
    tile: Tile,
    exchange: Window,
    block: int,
    combine: Combine,
) -> None:
    """The body of a kernel that makes each output from `taps` elements of x.

    `combine` writes what makes `width` outputs from width + taps - 1 elements.
    """
    warps = block // WARP
    k.grid(ceil_div(n, warps * tile.outputs))
    first = k.let("first", (k.block_x * warps + k.warp) * tile.outputs)
    last_read = first + (tile.outputs + tile.reach * tile.width)
    whole = k.let("whole", last_read.le(n + (tile.taps - 1)))
    cells = k.registers("cells", tile.dtype, (tile.rows + tile.halo) * tile.width)
    with k.when(whole.ne(0)):
        _load_vectors(k, x, cells, tile, first)
    with k.otherwise():
        _load_elements(k, x, cells, tile, first, n)
    with k.loop("row", tile.rows) as row:
        window = k.registers("window", tile.dtype, tile.width + tile.taps - 1)
        _fill_window(k, cells, window, tile, exchange, row)
        sums = k.registers("sums", tile.dtype, tile.width, 0)
        combine(window, lambda j: exchange.counts(k.lane, j // tile.width), sums)
        at = k.let("at", first + (row * WARP + k.lane) * tile.width)
        with k.when(whole.ne(0)):
            y.put(at, sums[0], width=tile.width, streaming=True)
        with k.otherwise(), k.loop("e", tile.width) as e:
            y.put(at + e, sums[e], when=(at + e).lt(n))


def _load_vectors(k: Builder, x: Array, cells: RegisterArray, tile: Tile, first: Var) -> None:
    with k.loop("r", tile.rows) as r:
        cells[r * tile.width] = x.at(first + (r * WARP + k.lane) * tile.width, width=tile.width)
    for extra in range(tile.halo):
        beyond = tile.rows + extra
        cells[beyond * tile.width] = x.at(
            first + (k.lane + beyond * WARP) * tile.width,
            when=k.lane.lt(tile.reach - WARP * extra),
            width=tile.width,
        )


def _load_elements(
    k: Builder, x: Array, cells: RegisterArray, tile: Tile, first: Var, n: Var
) -> None:
    with k.loop("r", tile.rows + tile.halo) as r, k.loop("e", tile.width) as e:
        at = first + (r * WARP + k.lane) * tile.width + e
        cells[r * tile.width + e] = x.at(at, when=at.lt(n + (tile.taps - 1)))


def _fill_window(
    k: Builder,
    cells: RegisterArray,
    window: RegisterArray,
    tile: Tile,
    exchange: Window,
    row: Expr,
) -> None:
    """The elements of the lane itself, then those of the lanes after it."""
    width = tile.width
    with k.loop("e", width) as e:
        window[e] = cells[row * width + e]
    if tile.taps == 1:
        return
    with k.loop("j", width, width + tile.taps - 1) as j:
        distance = j // width
        sent = cells[(row + exchange.register(k.lane, distance)) * width + j % width]
        window[j] = k.shuffle(sent, exchange.lane(k.lane, distance))


# -- the sketch and its fill ---------------------------------------------------------------------


def window_of(tile: Tile, weighted: bool) -> Window:
    """The exchange of a tile, by the fill of its sketch."""
    return _window(tile.reach, weighted) if tile.reach else Window()


@lru_cache(maxsize=128)
def _window(reach: int, weighted: bool) -> Window:
    proved = find(window_sketch(reach, weighted))
    return Window(sendable(proved.move("received", "loaded")), proved.kept("out"), proved.doc)


def sendable(move: Move) -> Move:
    """The move, if one shuffle for each distance will do, as these kernels have it."""
    if move.sent is None or not move.live.all():
        raise SearchError("this fill needs more than one shuffle for each distance")
    return move


def sketch_of(tile: Tile, weighted: bool) -> Program | None:
    return window_sketch(tile.reach, weighted) if tile.reach else None


def window_sketch(reach: int, weighted: bool) -> Program:
    """The exchange with its holes: which register a lane sends, from whom it receives, what counts.

    A symbol of x stands for `width` neighbouring elements and a tap for a distance in lanes; so a
    weight stands for the matrix by which the elements of one lane enter the outputs of another.
    """
    taps = reach + 1
    first = WARP + reach
    shape = f"[{WARP},{taps}]"
    lines = [
        f"x: [{first}] = range(0, {first})",
        f"loaded: [{WARP},2] = load_trunc(x)",
        f"sent: {shape} = ?reg_select_no_consts(loaded)",
        f"moved: {shape} = ?col_xforms_no_group(sent)",
        f"received: {shape} = ?col_rots_no_group(moved)",
    ]
    if weighted:
        lines += [
            f"w: [{taps}] = range({first}, {first + taps})",
            f"weights: {shape} = broadcast(w)",
            f"products: {shape} = * stack{{fold_len=2}}(received, weights)",
            f"out: [{WARP}] = + ?cond_keep_no_consts{{fold_len={taps}}}(products)",
            f"goal: [{WARP}] weight_conv{{k={taps}}}",
        ]
    else:
        lines += [
            f"out: [{WARP}] = + ?cond_keep_no_consts{{fold_len={taps}}}(received)",
            f"goal: [{WARP}] conv{{k={taps}}}",
        ]
    return front.load_text("\n".join(lines) + "\n", "window.swflow")


def numbers(random: np.random.Generator, size: int, dtype: str) -> NumpyArray:
    """Random numbers of a type, both signs where it has them."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return random.standard_normal(size).astype(kind)
    low = -100 if kind.kind == "i" else 0
    return random.integers(low, 100, size).astype(kind)


def line_sizes(**_: Any) -> list[dict[str, int]]:
    """Lengths around every boundary of a tile and of a vector, and some between."""
    lengths = (1, 2, 3, 4, 5, 31, 32, 33, 34, 63, 64, 65, 127, 128, 129, 130, 131, 132, 255, 257,
               259, 500, 511, 513, 515, 1000, 1023, 1025, 1027, 2048, 2051, 2300, 4097,
               5003)  # fmt: skip
    return [{"n": n} for n in lengths]
