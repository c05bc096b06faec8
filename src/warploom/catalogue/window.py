"""Sliding windows along a line, from a cache in the registers of a warp.

A warp makes `rows` rows of 32·`width` neighbouring outputs. Lane t holds elements t·width … of each
row and of one more row, the halo. What a tap needs from d lanes further on comes by one shuffle:
the sender chooses between its element of this row and of the next, the fill of the sketch below.

    sent = lane ≥ d ? row r : row r + 1        received from lane (lane + d) mod 32
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.catalogue.entry import Array as NumpyArray
from warploom.errors import CheckError
from warploom.index.ir import Expr, Var
from warploom.kernel.build import Array, Builder, RegisterArray, ceil_div, choose
from warploom.kernel.dtype import DType
from warploom.sketch import front
from warploom.sketch.term.ir import Program

WARP = 32
MAX_TAPS = 33
VECTOR_BYTES = 16

Combine = Callable[[RegisterArray, RegisterArray], None]


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
        return self.reach // WARP + 1 if self.reach else 0


def check_width(width: int, dtype: DType) -> None:
    if width not in (1, 2, 4) or width * dtype.bytes > VECTOR_BYTES:
        raise CheckError(
            f"accesses of {width} elements of {dtype!r}",
            advice=f"use 1, 2 or 4 elements, at most {VECTOR_BYTES} bytes together",
        )


def check_block(block: int) -> None:
    if block % WARP or not WARP <= block <= 1024:
        raise CheckError(f"a block of {block} threads", advice=f"use a multiple of {WARP} to 1024")


def write_windows(
    k: Builder, n: Var, x: Array, y: Array, tile: Tile, block: int, combine: Combine
) -> None:
    """The body of a kernel that makes each output from `taps` elements of x.

    `combine(window, sums)` writes what makes `width` outputs from width + taps - 1 elements.
    """
    check_block(block)
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
        _fill_window(k, cells, window, tile, row)
        sums = k.registers("sums", tile.dtype, tile.width, 0)
        combine(window, sums)
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
    k: Builder, cells: RegisterArray, window: RegisterArray, tile: Tile, row: Expr
) -> None:
    """The elements of the lane itself, then those of the lanes after it."""
    width = tile.width
    with k.loop("e", width) as e:
        window[e] = cells[row * width + e]
    if tile.taps == 1:
        return
    with k.loop("j", width, width + tile.taps - 1) as j:
        distance = j // width
        here = (row + distance // WARP) * width + j % width
        sent = choose(k.lane.ge(distance % WARP), cells[here], cells[here + width])
        window[j] = k.shuffle(sent, (k.lane + distance) % WARP)


def sketch_of(tile: Tile, weighted: bool) -> Program | None:
    """The exchange with its holes: which register a lane sends, from whom it receives.

    A symbol stands for `width` neighbouring elements, and a tap for a distance in lanes.
    """
    taps = tile.reach + 1
    if not 2 <= taps <= WARP:
        return None
    first = WARP + taps - 1
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
            f"out: [{WARP}] = fold ?cond_keep_no_consts{{fold_len={taps}}}(received)",
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
