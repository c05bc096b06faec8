"""2-D convolution of an image with replicated borders.

    out[r, c] = Σ_y Σ_x w[y, x] · image[clamp(r + y - h), clamp(c + x - h)]        h = taps // 2

A warp makes a strip: `rows` rows of 32·`width` neighbouring columns. It walks down the input once.
The row that comes in is added to the `taps` output rows it touches, whose sums wait in registers;
the oldest of them is then finished, and the others move up one place, which costs nothing: a
multiply-add reads one register and writes another.

Columns of other lanes come by shuffle around the ring of lanes: what a lane has itself, or what it
holds of the columns beyond the strip, where the ring closes. Which of the two a lane sends, from
whom it receives, and what counts, is for the fill of a sketch to say (`row_sketch`), which is found
and verified when a kernel is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from warploom.catalogue import rule
from warploom.catalogue.batch import with_batches
from warploom.catalogue.entry import Arrays, Entry, Size, Values, listed
from warploom.catalogue.layout import check_block
from warploom.catalogue.shape import windows_of_image
from warploom.catalogue.window import WARP, check_width, numbers, sendable
from warploom.errors import CheckError
from warploom.index.ir import Expr, Var, maximum, minimum, select
from warploom.index.laws import simplify
from warploom.kernel.build import Array, Builder, RegisterArray, ceil_div, choose, fma
from warploom.kernel.dtype import DType, from_numpy
from warploom.kernel.ir import Cell, Kernel
from warploom.sketch.build import Sketch, Value
from warploom.sketch.code.accumulate import accumulate
from warploom.sketch.code.form import ALWAYS
from warploom.sketch.code.move import Move, at_place
from warploom.sketch.code.proved import find
from warploom.sketch.term.ir import UNDEFINED, Program

MAX_TAPS = 15


@dataclass(frozen=True, slots=True)
class Strip:
    """What one warp makes, and how many input rows it takes at a time."""

    taps: int
    width: int
    rows: int
    step: int
    exchange: str
    dtype: DType

    def __post_init__(self) -> None:
        if self.taps % 2 == 0 or not 3 <= self.taps <= MAX_TAPS:
            raise CheckError(
                f"a window of {self.taps} x {self.taps}", advice=f"use an odd size, 3 to {MAX_TAPS}"
            )
        check_width(self.width, self.dtype)
        if not 1 <= self.rows <= 1024 or not 1 <= self.step <= 8:
            raise CheckError(
                f"{self.rows} rows in steps of {self.step}",
                advice="use 1 to 1024 rows and steps of 1 to 8",
            )
        if self.exchange not in ("shuffle", "load"):
            raise CheckError(f"an exchange by '{self.exchange[:40]}'", advice="use shuffle or load")

    @property
    def half(self) -> int:
        return self.taps // 2

    @property
    def columns(self) -> int:
        return WARP * self.width

    @property
    def reach(self) -> int:
        """How many lanes away the outermost column lies."""
        return -(-self.half // self.width)

    @property
    def walk(self) -> int:
        """Input rows, rounded up to whole steps."""
        return -(-(self.rows + self.taps - 1) // self.step) * self.step

    @property
    def held(self) -> int:
        """Elements of one input row that a lane loads."""
        return self.width * (2 if self.exchange == "shuffle" else 2 * self.reach + 1)


def convolution_2d(
    taps: int = 3,
    width: int = 4,
    rows: int = 64,
    step: int = 1,
    block: int = 128,
    exchange: str = "shuffle",
    dtype: str = "float32",
) -> Kernel:
    """A taps × taps convolution of a height × width image, borders replicated."""
    kind = from_numpy(dtype)
    strip = Strip(taps, width, rows, step, exchange, kind)
    check_block(block)
    row = row_of(strip.reach) if exchange == "shuffle" else None
    k = Builder(
        f"convolution_{taps}x{taps}",
        block=block,
        doc=f"out = {taps} x {taps} convolution of image, borders replicated.\n"
        f"A warp walks down {strip.columns} columns and makes {rows} rows of them.\n"
        + (_LOADED if row is None else f"{_SHUFFLED}\n{row.doc}"),
    )
    columns, height = k.scalar("columns"), k.scalar("height")
    x = k.array("image", kind, height * columns, const=True)
    w = k.constant("w", kind, taps * taps)
    y = k.array("out", kind, height * columns)
    k.require(columns.ge(1))
    k.require(height.ge(1))
    warps = block // WARP
    k.grid(ceil_div(columns, warps * strip.columns), ceil_div(height, rows))
    left = k.let("left", (k.block_x * warps + k.warp) * strip.columns)
    top = k.let("top", k.block_y * rows)
    _Walk(k, strip, columns, height, x, w, y, left, top, row).write()
    return k.done()


_LOADED = "Every lane loads the columns it needs from others too: there is no fill."
_SHUFFLED = """\
Columns of the lane x1 to the right, or to the left, come by shuffle; it sends its own (0) or what
it holds of the columns beyond the strip (1)."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """Writes the body of the kernel."""

    k: Builder
    strip: Strip
    columns: Var
    height: Var
    image: Array
    weights: RegisterArray
    out: Array
    left: Var
    top: Var
    row: Row | None

    def write(self) -> None:
        k, strip = self.k, self.strip
        fits = (self.columns % strip.width).eq(0)
        right = self.left + strip.columns
        margin = strip.reach * strip.width
        k.let("column", self.left + k.lane * strip.width)
        k.let("inside", fits.and_(right.le(self.columns)))
        interior = self.left.ge(margin).and_((right + margin).le(self.columns))
        k.let("interior", fits.and_(interior))
        if strip.exchange == "shuffle":
            beyond = select(k.lane.lt(WARP // 2), strip.columns, -strip.columns)
            k.let("beyond", Var("column") + beyond)
            k.let("at_end", k.lane.lt(strip.reach).or_(k.lane.ge(WARP - strip.reach)))
        ahead = k.registers("ahead", strip.dtype, strip.step * strip.held)
        for u in range(strip.step):
            self._load_row(ahead, u, self.top + (u - strip.half), f"first{u}")
        sums = k.registers("sums", strip.dtype, (strip.taps - 1) * strip.width, 0)
        with k.loop("r", 0, strip.walk, strip.step, unroll=False) as r:
            self._take_step(ahead, sums, r)

    def _take_step(self, ahead: RegisterArray, sums: RegisterArray, r: Var) -> None:
        """The rows loaded before are used while those of the next step are on their way."""
        k, strip = self.k, self.strip
        now = k.registers("now", strip.dtype, len(ahead))
        with k.loop("i", len(ahead)) as i:
            now[i] = ahead[i]
        with k.when((r + strip.step).lt(strip.walk)):
            for u in range(strip.step):
                row = self.top + r + (strip.step + u - strip.half)
                self._load_row(ahead, u, row, f"start{u}")
        with k.loop("u", strip.step) as row_of_step:
            window = k.registers("window", strip.dtype, strip.width + strip.taps - 1)
            self._fill_window(now, window, row_of_step)
            done = k.registers("done", strip.dtype, strip.width)
            self._accumulate(window, sums, done)
            self._store(done, r + row_of_step)

    # -- one row in

    def _load_row(self, into: RegisterArray, u: int, row: Expr, name: str) -> None:
        start = self.k.let(name, _clamp(row, self.height) * self.columns)
        width, at = self.strip.width, u * self.strip.held
        column = Var("column")
        if self.strip.exchange == "load":
            first = column - self.strip.reach * width
            for part in range(0, self.strip.held, width):
                self._load(into, at + part, start, first + part, Var("interior"))
            return
        self._load(into, at, start, column, Var("inside"))
        ends = Var("at_end").ne(0)
        self._load(into, at + width, start, Var("beyond"), Var("interior"), ends)

    def _load(
        self,
        into: RegisterArray,
        at: int,
        start: Expr,
        column: Expr,
        fast: Var,
        when: Expr | None = None,
    ) -> None:
        """`width` neighbouring columns: one access where all of them are in the image."""
        k, width = self.k, self.strip.width
        with k.when(fast.ne(0)):
            into[at] = self.image.at(start + column, when=when, width=width)
        with k.otherwise(), k.loop("e", width) as e:
            into[e + at] = self.image.at(start + _clamp(column + e, self.columns), when=when)

    def _fill_window(self, now: RegisterArray, window: RegisterArray, u: Expr) -> None:
        """The columns from `half` before the lane's first to `half` after its last."""
        k, strip = self.k, self.strip
        half, width, here = strip.half, strip.width, u * strip.held
        if self.row is None:
            with k.loop("i", len(window)) as i:
                window[i] = now[here + (strip.reach * width - half) + i]
            return
        with k.loop("i", width) as i:
            window[i + half] = now[here + i]
        with k.loop("i", half) as i:
            # Column i - half, which is the lane -d's.
            away = (half - i + (width - 1)) // width
            at = here + away * width - half + i
            self._receive(window[i], self.row.left, now, at, away)
        with k.loop("i", width, width + half) as i:
            self._receive(window[i + half], self.row.right, now, here + i % width, i // width)

    def _receive(self, into: Cell, move: Move, now: RegisterArray, at: Expr, away: Expr) -> None:
        """What the lane so far away has at a place, or beyond the strip."""
        assert move.sent is not None
        k = self.k
        own = at_place(move.sent, k.lane, away)
        k.set(into, k.shuffle(now[at + own * self.strip.width], at_place(move.lane, k.lane, away)))

    def _kept(self, column: Expr) -> Expr:
        """Whether a column of the window counts: the lane's first output has column `half`."""
        if self.row is None:
            return ALWAYS
        width, reach = self.strip.width, self.strip.reach
        place = (column + (reach * width - self.strip.half)) // width
        return simplify(at_place(self.row.kept, self.k.lane, place))

    # -- one row out

    def _accumulate(self, window: RegisterArray, sums: RegisterArray, done: RegisterArray) -> None:
        """Adds the window to every waiting row; sums[0 …] are those of the oldest."""
        k, taps, width = self.k, self.strip.taps, self.strip.width
        with k.loop("e", width) as e:
            done[e] = sums[e]
        with k.loop("x", taps) as x, k.loop("e", width) as e:
            weight = self.weights[x + (taps - 1) * taps]
            accumulate(k, done[e], fma(weight, window[x + e], done[e]), self._kept(x + e))
        with k.loop("y", taps - 2) as y:
            with k.loop("e", width) as e:
                sums[y * width + e] = sums[(y + 1) * width + e]
            with k.loop("x", taps) as x, k.loop("e", width) as e:
                weight = self.weights[(taps - 2 - y) * taps + x]
                cell = sums[y * width + e]
                accumulate(k, cell, fma(weight, window[x + e], cell), self._kept(x + e))
        newest = (taps - 2) * width
        with k.loop("e", width) as e:
            first = self.weights[0] * window[e]
            kept = self._kept(e)
            sums[e + newest] = first if kept is ALWAYS else choose(kept, first, 0)
        with k.loop("x", 1, taps) as x, k.loop("e", width) as e:
            cell = sums[e + newest]
            accumulate(k, cell, fma(self.weights[x], window[x + e], cell), self._kept(x + e))

    def _store(self, done: RegisterArray, r: Expr) -> None:
        k, strip = self.k, self.strip
        row = self.top + r - (strip.taps - 1)
        wanted = r.ge(strip.taps - 1).and_(r.lt(strip.taps - 1 + strip.rows))
        with k.when(wanted.and_(row.lt(self.height))):
            at = k.let("at", row * self.columns + Var("column"))
            with k.when(Var("inside").ne(0)):
                self.out.put(at, done[0], width=strip.width, streaming=True)
            with k.otherwise(), k.loop("e", strip.width) as e:
                self.out.put(at + e, done[e], when=(Var("column") + e).lt(self.columns))


def _clamp(at: Expr, size: Expr) -> Expr:
    return maximum(0, minimum(at, size - 1))


# -- the sketch and its fill ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """What lane x0 gets of the lane x1 to its right, and to its left; `kept` has x1 the place in
    the row, from the leftmost lane."""

    right: Move
    left: Move
    kept: Expr
    doc: str


@lru_cache(maxsize=32)
def row_of(reach: int) -> Row:
    """The exchange of one row, by the fill of its sketch."""
    proved = find(row_sketch(reach))
    right, left = (sendable(proved.move(side, "loaded")) for side in ("right", "left"))
    return Row(right, left, proved.kept("out"), proved.doc)


def row_sketch(reach: int) -> Program:
    """One row of the image and one of the weights, with `reach` lanes to either side.

    A symbol of x stands for the columns of a lane, a weight for the matrix by which the columns of
    one lane enter the outputs of another. A lane holds its own columns and, near the ends of the
    warp, those beyond the strip.
    """
    s = Sketch(f"row of {2 * reach + 1} lanes")
    places = 2 * reach + 1
    x, w = s.input("x", WARP + 2 * reach), s.input("w", places)
    lane = np.arange(WARP)
    own = lane + reach
    at_left, at_right = lane < reach, lane >= WARP - reach
    beyond = np.where(at_left, own + WARP, np.where(at_right, own - WARP, UNDEFINED))
    held = np.stack([own, beyond], axis=1)
    loaded = s.gather(held, x, name="loaded")
    sides = [
        _side(s, loaded, reach, "right", "reg_select_no_consts"),
        _side(s, loaded, reach, "left", "reg_select", consts=[WARP]),
    ]
    t, size = np.arange(places), WARP * (reach + 1)
    place = np.where(t < reach, size + reach - t, t - reach)  # the left side comes second
    window = s.gather(lane[:, None] * (reach + 1) + place, *sides, name="window")
    weights = s.apply("broadcast", w, shape=(WARP, places), name="weights")
    products = s.product("stack", window, weights, name="products")
    s.sum("cond_keep_no_consts", products, name="out")
    s.goal("weight_conv", k=places)
    return s.program()


def _side(s: Sketch, loaded: Value, reach: int, name: str, select: str, **options: Any) -> Value:
    """What each lane gets of the lanes 0 to `reach` to one side."""
    shape = (WARP, reach + 1)
    sent = s.hole(select, loaded, shape=shape, name=f"sent_{name}", **options)
    moved = s.hole("col_xforms_no_group", sent, name=f"moved_{name}")
    return s.hole("col_rots_no_group", moved, name=name)


def _sketch(taps: int, width: int, exchange: str, **_: Any) -> Program | None:
    """The exchange of a row; nothing if every lane loads what it needs."""
    return row_sketch(-(-(taps // 2) // width)) if exchange == "shuffle" else None


def _inputs(size: Size, random: np.random.Generator, taps: int, dtype: str, **_: Any) -> Values:
    return {
        **size,
        "image": numbers(random, size["height"] * size["columns"], dtype),
        "w": numbers(random, taps * taps, dtype),
    }


def _specification(values: Values, taps: int, dtype: str, **_: Any) -> Arrays:
    wide = np.float64 if np.dtype(dtype).kind == "f" else np.int64
    shape = int(values["height"]), int(values["columns"])
    image = np.asarray(values["image"], wide).reshape(shape)
    w = np.asarray(values["w"], wide).reshape(taps, taps)
    padded = np.pad(image, taps // 2, mode="edge")
    total = np.zeros(shape, wide)
    for y in range(taps):
        for x in range(taps):
            total += w[y, x] * padded[y : y + shape[0], x : x + shape[1]]
    return {"out": total.reshape(-1).astype(dtype)}


def _sizes(**_: Any) -> list[dict[str, int]]:
    shapes = ((1, 1), (1, 2), (2, 1), (3, 3), (5, 31), (7, 32), (4, 33), (31, 5), (8, 64), (9, 127),
              (6, 128), (3, 129), (16, 130), (17, 132), (10, 255), (5, 256), (12, 260), (33, 17),
              (3, 265), (6, 384), (4, 500), (7, 512), (3, 513), (64, 8), (70, 140))  # fmt: skip
    return [{"height": height, "columns": columns} for height, columns in shapes]


_ONE = Entry(
    name="convolution-2d",
    doc="taps × taps convolution of an image, borders replicated",
    parameters={
        "taps": 3,
        "width": 0,
        "rows": 0,
        "step": 0,
        "block": 0,
        "exchange": "auto",
        "dtype": "float32",
    },
    build=convolution_2d,
    inputs=_inputs,
    specification=_specification,
    sizes=_sizes,
    sketch=_sketch,
    fit=windows_of_image,
    inner={"image": 2, "out": 2},
    choose=rule.image,
    variants=(
        {"rows": 4},
        {"taps": 5, "rows": 5, "exchange": "load"},
        {"taps": 7, "rows": 3, "width": 2, "step": 2},
        {"taps": 9, "rows": 4, "width": 1, "block": 64},
        {"taps": 11, "rows": 4},
        {"taps": 3, "rows": 2, "width": 4, "dtype": "int32"},
    ),
    tune=listed(
        {"width": width, "rows": rows, "step": step, "block": block, "exchange": exchange}
        for exchange in ("shuffle", "load")
        for width in (2, 4)
        for rows in (32, 64, 128)
        for step in (1, 2, 4)
        for block in (64, 128)
    ),
    tolerance=1e-5,
    computes=True,
)
ENTRIES = (with_batches(_ONE, ("image", "out"), 2),)
