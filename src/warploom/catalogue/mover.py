"""The accesses of a warp to structures, in either layout, between which registers are exchanged.

In come a layout and a fill; out goes a kernel under construction, to which loads and stores of all
of a warp's tiles are added.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.exchange import Tiles, count, placed
from warploom.catalogue.fill import TileFill
from warploom.catalogue.layout import WARP, Layout
from warploom.index.ir import Expr
from warploom.index.laws import simplify
from warploom.kernel.build import Array, Builder, ceil_div
from warploom.kernel.ir import Cell


@dataclass(frozen=True, slots=True)
class _Way:
    """How to access: to load or store, with wide accesses, with a test of each."""

    load: bool
    wide: bool
    guarded: bool


class Mover:
    """Writes one kernel: accesses to both arrays, and the exchange between them."""

    def __init__(self, name: str, what: str, plan: Layout, fill: TileFill, streaming: bool) -> None:
        self.plan = plan
        self.fill = fill
        self.streaming = streaming
        doc = f"{what}\n{fill.doc}"
        self.k = Builder(name, block=plan.block, doc=doc, min_blocks=plan.least_blocks)
        self.n = self.k.scalar("n")

    def grid(self) -> None:
        k, plan = self.k, self.plan
        k.grid(ceil_div(self.n, plan.structures_per_block))
        warp = k.block_x * plan.warps + k.warp
        self.first = k.let("first", warp * (plan.tiles * WARP))
        whole = ((self.first + plan.tiles * WARP) * plan.pack).le(self.n)
        if plan.pack > 1:
            whole = whole.and_((self.n % plan.pack).eq(0))
        self.whole = k.let("whole", simplify(whole))

    def tiles(self, name: str) -> Tiles:
        plan = self.plan
        return Tiles(self.k, name, plan.dtype, plan.columns, plan.width, plan.tiles).declare()

    def access(self, array: Array, tiles: Tiles, lane_of: Expr, *, load: bool, soa: bool) -> None:
        """All of a warp's accesses; where some tile is cut off, each asks whether it is inside.

        Packed structures are taken one by one there: their rows may start anywhere.
        """
        each = self._each_field if soa else self._each_word
        with self.k.when(self.whole):
            each(array, tiles, lane_of, _Way(load, wide=True, guarded=False))
        with self.k.otherwise():
            each(array, tiles, lane_of, _Way(load, wide=self.plan.pack == 1, guarded=True))

    def _each_word(self, array: Array, tiles: Tiles, lane_of: Expr, way: _Way) -> None:
        """A tile as it lies in an array of structures: lane by lane, then column by column."""
        k, plan = self.k, self.plan
        width = plan.width if way.wide else 1
        with (
            count(k, "tile", plan.tiles) as tile,
            count(k, "j", plan.columns) as j,
            count(k, "word", plan.width // width) as word,
        ):
            share = (self.first + tile * WARP) * plan.columns + j * WARP + self._lane(lane_of, j)
            at = k.let("at", simplify(share * plan.width + word))
            inside = at.lt(self.n * plan.fields) if way.guarded else None
            self._one(array, at, tiles.at(tile, j, word), inside, width, way.load)

    def _each_field(self, array: Array, tiles: Tiles, lane_of: Expr, way: _Way) -> None:
        """A tile as it lies in a structure of arrays: one structure per lane, or a few."""
        k, plan = self.k, self.plan
        with (
            count(k, "tile", plan.tiles) as tile,
            count(k, "field", plan.fields) as field,
            count(k, "beside", 1 if way.wide else plan.pack) as beside,
        ):
            share = self.first + tile * WARP + self._lane(lane_of, simplify(field // plan.width))
            i = k.let("i", simplify(share * plan.pack + beside))
            at, inside = field * self.n + i, i.lt(self.n) if way.guarded else None
            if way.wide and plan.pack > 1:
                self._packed(array, at, tiles, (tile, field), way.load)
            else:
                cell = tiles.at(tile, 0, beside * plan.fields + field)
                self._one(array, at, cell, inside, 1, way.load)

    def _lane(self, lane_of: Expr, column: Expr) -> Expr:
        return simplify(placed(lane_of, self.k.lane, column))

    def _packed(
        self, array: Array, at: Expr, tiles: Tiles, place: tuple[Expr, Expr], load: bool
    ) -> None:
        """The same field of neighbouring structures, in one access."""
        k, plan = self.k, self.plan
        side = k.registers("side", plan.dtype, plan.pack)
        if load:
            self._one(array, at, side[0], None, plan.pack, load)
        with k.loop("beside", plan.pack) as beside:
            cell = tiles.at(place[0], 0, beside * plan.fields + place[1])
            if load:
                k.set(cell, side[beside])
            else:
                side[beside] = cell
        if not load:
            self._one(array, at, side[0], None, plan.pack, load)

    def _one(
        self, array: Array, at: Expr, cell: Cell, inside: Expr | None, width: int, load: bool
    ) -> None:
        if load:
            self.k.set(cell, array.at(at, when=inside, width=width, streaming=self.streaming))
        else:
            array.put(at, cell, when=inside, width=width, streaming=self.streaming)
