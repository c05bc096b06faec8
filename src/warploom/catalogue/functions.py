"""Device functions by name: what a warp does with its registers inside a kernel of the user's own.

    blocked-to-striped   lane i's register j goes to lane (i·n + j) mod lanes: as a warp would load
    striped-to-blocked   the way back: each lane gets n neighbours
    transpose            lanes hold the rows of a matrix, then the transposed one in order

Loads and stores of structures are in `load_store.py`, scans in `scan.py`. An entry builds a kernel
that calls the function (`kernel/function.py`), so that it is checked as kernels are; how lanes
exchange comes from the same fills.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.catalogue.entry import Array, Arrays, Entry, Parameter, Values
from warploom.catalogue.fill import transposing
from warploom.catalogue.layout import MOST_FIELDS, MOST_WORDS, WARP
from warploom.catalogue.scratch import place_of
from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.index.laws import simplify
from warploom.kernel.build import Array as Memory
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import DType, u8, u16, u32, u64
from warploom.kernel.ir import Kernel
from warploom.sketch.code.exchange import Tiles, count, exchange
from warploom.sketch.code.move import Move

# How an item of so many bytes is moved: as words of a type, so many.
WORDS: dict[int, tuple[DType, int]] = {
    1: (u8, 1), 2: (u16, 1), 4: (u32, 1), 8: (u64, 1), 16: (u64, 2),
}  # fmt: skip
THROUGH = ("registers", "shared")
ANY_TYPE = "CUDA: a template over any trivially copyable type of 1, 2, 4, 8 or 16 bytes."


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes that hold one tile, side by side in a warp: so many registers in each."""

    lanes: int
    registers: int
    dtype: DType
    width: int

    @property
    def cells(self) -> int:
        return self.lanes * self.registers

    @property
    def beside(self) -> int:
        return WARP // self.lanes

    @property
    def size(self) -> str:
        return f"{self.registers}" if self.lanes == WARP else f"{self.lanes}x{self.registers}"


def group(lanes: int, registers: int, bytes: int) -> Group:
    """The parameters, checked."""
    if not 1 <= lanes <= WARP:
        raise CheckError(f"a group of {lanes} lanes", advice=f"a warp has {WARP}")
    dtype, width = words_of(bytes)
    if not 1 <= registers <= MOST_FIELDS or registers * max(1, bytes // 4) > MOST_WORDS:
        raise CheckError(
            f"{registers} registers of {bytes} bytes in each lane",
            advice=f"at least 1, at most {MOST_FIELDS} and {MOST_WORDS} words",
        )
    return Group(lanes, registers, dtype, width)


def words_of(bytes: int) -> tuple[DType, int]:
    if bytes not in WORDS:
        raise CheckError(f"items of {bytes} bytes", advice="use 1, 2, 4, 8 or 16")
    return WORDS[bytes]


class Caller:
    """The kernel around a function: a tile for each group of lanes, its registers loaded as they
    are and stored as they are."""

    def __init__(self, name: str, shape: Group, doc: str) -> None:
        self.shape = shape
        self.k = k = Builder(f"call_{name}", block=WARP, doc=doc)
        self.tiles = k.scalar("count")
        words = self.tiles * (shape.cells * shape.width)
        self.x = k.array("x", shape.dtype, words, const=True)
        self.y = k.array("y", shape.dtype, words)
        k.grid(ceil_div(self.tiles, shape.beside))
        number = k.block_x * shape.beside
        side = simplify(k.lane // shape.lanes, {"lane": (0, WARP - 1)})
        self.tile = k.let("tile", simplify(number + side))
        self.mine = k.let("mine", simplify(k.lane % shape.lanes, {"lane": (0, WARP - 1)}))
        self.inside = self.tile.lt(self.tiles)
        if WARP % shape.lanes:  # some lanes are left over
            self.inside = self.inside.and_(k.lane.lt(shape.beside * shape.lanes))

    def registers(self) -> Tiles:
        shape = self.shape
        return Tiles(self.k, "a", shape.dtype, shape.registers, shape.width).declare()

    def load(self, held: Tiles) -> None:
        self._each(held, self.x, load=True)

    def store(self, held: Tiles) -> None:
        self._each(held, self.y, load=False)

    def _each(self, held: Tiles, array: Memory, *, load: bool) -> None:
        k, shape = self.k, self.shape
        with count(k, "j", shape.registers) as j, count(k, "word", shape.width) as word:
            share = (self.tile * shape.lanes + self.mine) * shape.registers + j
            at = simplify(share * shape.width + word)
            if load:
                k.set(held.at(0, j, word), array.at(at, when=self.inside))
            else:
                array.put(at, held.at(0, j, word), when=self.inside)


# -- exchanges -------------------------------------------------------------------------------------


def _exchanged(name: str, what: str, shape: Group, back: bool, order: str, through: str) -> Kernel:
    if through not in THROUGH:
        raise CheckError(f"through '{through[:20]}'", advice=f"use {' or '.join(THROUGH)}")
    if through == "shared":
        return _staged(f"{name}_shared", what, shape, back)
    fill = transposing(shape.lanes, shape.registers, order, back=back)
    doc = f"{what}\n{ANY_TYPE} No shared memory.\n{who(shape)}\n{fill.doc}"
    caller = Caller(name, shape, doc)
    k, held = caller.k, caller.registers()
    caller.load(held)
    with k.function(name):
        add_moves(k, held, shape, fill.moves(fill.steps))
    caller.store(held)
    return k.done()


def add_moves(k: Builder, held: Tiles, shape: Group, moves: list[Move]) -> None:
    """The moves, and what they make back in the registers that they began with."""
    own: Expr = k.lane
    lead: Expr | int = 0
    if shape.lanes < WARP:
        own = k.let("own", simplify(k.lane % shape.lanes, {"lane": (0, WARP - 1)}))
        lead = k.let("lead", k.lane - own)
    made = exchange(k, held, moves, lane=own, first_lane=lead)
    if made is not held:
        with count(k, "j", shape.registers) as j, count(k, "word", shape.width) as word:
            k.set(held.at(0, j, word), made.at(0, j, word))


def _staged(name: str, what: str, shape: Group, back: bool) -> Kernel:
    """Through shared memory, where items lie apart so that banks are not asked twice."""
    if shape.lanes != WARP:
        raise CheckError(
            f"{shape.lanes} lanes through shared memory", advice=f"use lanes={WARP}, or registers"
        )
    place, room = place_of(shape.registers)
    need = f"Shared memory: 'room' has space for {room} items, which no other warp uses meanwhile."
    doc = f"{what}\n{ANY_TYPE}\n{need}\n{who(shape)}\nNothing is searched: there is no fill."
    caller = Caller(name, shape, doc)
    k = caller.k
    rooms = k.shared("room", shape.dtype, room * shape.width)
    held = caller.registers()
    caller.load(held)
    # With these a place is a lane's own and one that is known after unrolling: nothing is divided.
    bounds = {"lane": (0, WARP - 1), "j": (0, shape.registers - 1), "word": (0, shape.width - 1)}

    def cell(item: Expr, word: Expr) -> Expr:
        return simplify(place(simplify(item, bounds)) * shape.width + word, bounds)

    with k.function(name):
        k.barrier("warp")
        with count(k, "j", shape.registers) as j, count(k, "word", shape.width) as word:
            item = k.lane * shape.registers + j if back else j * WARP + k.lane
            rooms.put(cell(item, word), held.at(0, j, word))
        k.barrier("warp")
        with count(k, "j", shape.registers) as j, count(k, "word", shape.width) as word:
            item = j * WARP + k.lane if back else k.lane * shape.registers + j
            k.set(held.at(0, j, word), rooms[cell(item, word)])
    caller.store(held)
    return k.done()


def who(shape: Group) -> str:
    if shape.lanes == WARP:
        return "All 32 lanes of a warp call it together."
    rest = f", {shape.beside} groups side by side" if shape.beside > 1 else ""
    left = WARP - shape.beside * shape.lanes
    spare = f"; what the last {left} lanes get is not defined" if left else ""
    return f"All 32 lanes of a warp call it together: groups of {shape.lanes} lanes{rest}{spare}."


def _exchange(back: bool) -> Callable[..., Kernel]:
    def build(registers: int, lanes: int, bytes: int, order: str, through: str) -> Kernel:
        shape = group(lanes, registers, bytes)
        if back:
            name, says = "blocked_to_striped", f"item i·{registers} + j goes to lane"
            says += f" (i·{registers} + j) mod {lanes}, register (i·{registers} + j) / {lanes}"
        else:
            name, says = "striped_to_blocked", f"item j·{lanes} + i goes to lane"
            says += f" (j·{lanes} + i) / {registers}, register (j·{lanes} + i) mod {registers}"
        what = f"{name}: of lane i's register j, {says}."
        return _exchanged(f"{name}_{shape.size}", what, shape, back, order, through)

    return build


def transpose(rows: int, columns: int, bytes: int, order: str) -> Kernel:
    shape = group(rows, columns, bytes)
    what = f"transpose: lane i holds row i of a {rows} × {columns} matrix; then the lanes hold the"
    what += f" {columns} × {rows} transposed one in order, {columns} items in each."
    return _exchanged(f"transpose_{rows}x{columns}", what, shape, False, order, "registers")


# -- what they must compute ------------------------------------------------------------------------


def some_items(size: dict[str, int], random: np.random.Generator, cells: int, bytes: int) -> Array:
    """Tiles of items, as the words that they are moved as: bits of every kind."""
    dtype, width = words_of(bytes)
    words = size["count"] * cells * width
    limits = np.iinfo(dtype.numpy)
    return random.integers(0, limits.max, words, dtype.numpy, endpoint=True)


def _inputs(size: dict[str, int], random: np.random.Generator, **given: Any) -> Values:
    lanes, registers = _sides(given)
    x = some_items(size, random, lanes * registers, given["bytes"])
    return {"count": size["count"], "x": x}


def _sides(given: dict[str, Any]) -> tuple[int, int]:
    if "rows" in given:
        return int(given["rows"]), int(given["columns"])
    return int(given["lanes"]), int(given["registers"])


def _specification(back: bool) -> Callable[..., Arrays]:
    """Lane by lane and register by register what lies in memory in the other order."""

    def specification(values: Values, **given: Any) -> Arrays:
        lanes, registers = _sides(given)
        x, width = values["x"], words_of(given["bytes"])[1]
        assert isinstance(x, np.ndarray)
        shape = (registers, lanes) if back else (lanes, registers)
        items = x.reshape(-1, lanes * registers, width)
        moved = items.reshape(-1, *shape, width).transpose(0, 2, 1, 3)
        return {"y": moved.reshape(-1).copy()}

    return specification


def _sizes(**given: Any) -> list[dict[str, int]]:
    beside = WARP // _sides(given)[0]
    return [{"count": n} for n in sorted({1, 2, 3, 5, beside, beside + 1, 3 * beside + 1})]


_EXCHANGE: dict[str, Parameter] = {
    "registers": 4, "lanes": WARP, "bytes": 4, "order": "crc", "through": "registers",
}  # fmt: skip
_COUNTS: tuple[dict[str, Parameter], ...] = tuple(
    {"registers": n} for n in (1, 2, 3, 5, 6, 7, 12, 16)
)
_VARIANTS: tuple[dict[str, Parameter], ...] = (
    {},
    *_COUNTS,
    {"registers": 8, "order": "rcr"},
    {"registers": 3, "lanes": 16},
    {"registers": 5, "lanes": 12},
    {"registers": 3, "bytes": 1},
    {"registers": 2, "bytes": 16},
    {"registers": 5, "bytes": 8, "through": "shared"},
    {"registers": 8, "through": "shared"},
)

ENTRIES = (
    *(
        Entry(
            name=name,
            doc=doc,
            parameters=_EXCHANGE,
            build=_exchange(back),
            inputs=_inputs,
            specification=_specification(back),
            sizes=_sizes,
            variants=_VARIANTS,
        )
        for name, doc, back in (
            ("blocked-to-striped", "neighbours in a lane become neighbours across lanes", True),
            ("striped-to-blocked", "neighbours across lanes become neighbours in a lane", False),
        )
    ),
    Entry(
        name="transpose",
        doc="a matrix whose rows lie in lanes is transposed",
        parameters={"rows": 8, "columns": 8, "bytes": 4, "order": "crc"},
        build=transpose,
        inputs=_inputs,
        specification=_specification(False),
        sizes=_sizes,
        variants=({}, {"rows": 32, "columns": 5}, {"rows": 12, "columns": 4, "bytes": 2}),
    ),
)
