"""A product of matrices and how it is cut up → its kernel: persistent blocks, a ring that one warp
group fills, products of the others, and how the results leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from warploom.index.ir import Const, Expr, Var, minimum, select
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import Builder
from warploom.kernel.ir import Kernel
from warploom.kernel.warpgroup import GROUP
from warploom.loopnest.evaluate import elements
from warploom.loopnest.ir import Axis
from warploom.loopnest.matrix.product import Factor, MatrixProduct
from warploom.loopnest.matrix.results import Given, Place, Results
from warploom.loopnest.matrix.tiling import LINE, OUT, REGISTERS, ROWS, STEP, Tiling, line_bytes
from warploom.machine.record import Machine


def kernel_of(
    product: MatrixProduct,
    tiling: Tiling,
    machine: Machine,
    sizes: Mapping[Axis, int] | None = None,
) -> Kernel:
    """The kernel; with `sizes`, the same along shorter axes. Its blocks make several tiles where
    those of the whole do."""
    return ByGroups(product, tiling, machine, sizes or {}).kernel()


@dataclass(eq=False)
class ByGroups:
    product: MatrixProduct
    tiling: Tiling
    machine: Machine
    sizes: Mapping[Axis, int]

    def __post_init__(self) -> None:
        p, t = self.product, self.tiling
        self._lengths()
        self.step = STEP // self.dtype.bytes  # terms of one product
        self.parts = t.own // ROWS  # products of a warp group below each other
        self.high, self.wide = self._tiles(self.m, self.n)  # of a cluster, down and across
        self.tiles = self.high * self.wide * self.batches
        self.turns = -(-self.depth // t.deep)  # of rings over all of the sum
        room = max(1, self.machine.multiprocessors // t.cluster)
        if t.split > 1:  # blocks of a cluster agree once
            room = self.tiles
        elif self.sizes and prod(self._tiles(p.rows.size, p.columns.size)) * p.batches > room:
            room = 1
        self.clusters = min(self.tiles, room)
        self._begin(GROUP * t.consumers)

    def _lengths(self) -> None:
        """Types, and how long axes are."""
        p = self.product
        self.dtype, self.sums = p.a.array.dtype, p.fold.dtype
        axes = (p.rows, p.columns, p.over)
        self.m, self.n, self.depth = (self.sizes.get(axis, axis.size) for axis in axes)
        self.batches = 1 if p.batch is None else self.sizes.get(p.batch, p.batches)

    def _begin(self, threads: int) -> None:
        """What kernels are given, and what comes after their sums."""
        p = self.product
        self.k = Builder(p.source.name, block=threads)
        counts = elements(p.program, self.sizes)
        self.given = Given(self.k, p.source, counts, p.out)
        self.results = Results(self.k, p.store, self.given, p.scales)

    def _tiles(self, rows: int, columns: int) -> tuple[int, int]:
        t = self.tiling
        return -(-rows // (t.rows * t.down)), -(-columns // (t.columns * t.across))

    def kernel(self) -> Kernel:
        k, t = self.k, self.tiling
        k.grid(self.clusters * t.blocks)
        k.cluster(t.blocks)
        k.roles(*REGISTERS[t.consumers])
        k.most_shared(self.machine.shared_bytes_most)
        self._maps()
        self._shared()
        first: Expr = k.block_x // t.blocks if t.blocks > 1 else k.block_x
        turns = simplify((self.tiles - first + (self.clusters - 1)) // self.clusters)
        if self.tiles == self.clusters:
            self._tile(first)
        else:
            with k.loop("turn", turns) as turn:
                if t.ping_pong:
                    with k.ping_pong():
                        self._tile(first + turn * self.clusters)
                else:
                    self._tile(first + turn * self.clusters)
        return self.given.back(k.done(predicate=True))

    # -- what there is

    def _maps(self) -> None:
        p, t = self.product, self.tiling
        self._map("a_map", p.a, self.m, t.rows, t.across)
        self._map("b_map", p.b, self.n, t.columns, t.down)
        if t.boxes:
            box, swizzle = t.box(p.is_turned), OUT * p.out.dtype.bytes
            steps = (p.step(p.batch), p.step(p.columns if p.is_turned else p.rows))
            sizes = (self.n, self.m) if p.is_turned else (self.m, self.n)
            self._view("c_map", p.out.name, (self.batches, *sizes), steps, box, swizzle)

    def _map(self, name: str, factor: Factor, lines: int, tall: int, share: int) -> None:
        """`share` blocks of a cluster bring a part of each tile."""
        deep, line = self.tiling.deep, self._line_of(factor, tall)
        if factor.dense == "k":
            sizes, box = (self.batches, lines, self.depth), (tall // share, line)
            steps = (factor.batch, factor.line)
        else:
            sizes, box = (self.batches, self.depth, lines), (deep // share, line)
            steps = (factor.batch, factor.deep)
        self._view(name, factor.array.name, sizes, steps, box, line * self.dtype.bytes)

    def _line_of(self, factor: Factor, side: int) -> int:
        """Elements of a row in shared memory."""
        return line_bytes(side * self.dtype.bytes, factor.dense) // self.dtype.bytes

    def _view(
        self, name: str, array: str, sizes: tuple[int, int, int], steps: tuple[int, int],
        box: tuple[int, int], swizzle: int,
    ) -> None:  # fmt: skip
        """A map of two axes, or of three where there are batches."""
        if self.product.batch is None:
            self.k.tensor_map(name, self.given.arrays[array], sizes[1:], box, swizzle, steps[1:])
        else:
            whole = (1, *box)
            self.k.tensor_map(name, self.given.arrays[array], sizes, whole, swizzle, steps)

    def _shared(self) -> None:
        k, t = self.k, self.tiling
        k.shared("a_tile", self.dtype, t.stages * t.rows * t.deep, align=1024)
        k.shared("b_tile", self.dtype, t.stages * t.columns * t.deep, align=1024)
        for number in range(t.boxes):
            long, wide = t.box(self.product.is_turned)
            size = t.consumers * long * wide
            k.shared(f"c_tile_{number}", self.product.out.dtype, size, align=1024)
        if t.split > 1:
            size = (t.split - 1) * t.share * GROUP * t.consumers
            k.shared("parts", self.sums, size, align=128)

    # -- what is done

    def _tile(self, tile: Expr) -> None:
        """One tile: the sums, then the results."""
        k, t = self.k, self.tiling
        self._named(tile)
        before, count = self._turns()
        k.registers("sums", self.sums, self.parts * t.columns // 2)
        with k.ring("t", count, t.stages, stage="stage", sums=("sums",)) as (turn, stage):
            self._fills((before + turn) * t.deep, stage)
            self._products(stage)
        if t.split > 1:
            self._added()
        else:
            (self._boxed if t.boxes else self._direct)()

    def _named(self, tile: Expr) -> None:
        """Where a tile begins: its batch, row and column. Tiles of a band go down first."""
        k, t, p = self.k, self.tiling, self.product
        tile = k.let("tile", tile)
        if p.batch is not None:
            each = self.high * self.wide
            k.let("batch", tile // each)
            tile = k.let("inner", tile % each)
        band = min(t.band, self.high)
        first = k.let("first", tile // (self.wide * band) * band)
        inside = k.let("inside", tile % (self.wide * band))
        high = k.let("high", minimum(self.high - first, band)) if self.high % band else Const(band)
        down: Expr = first + inside % high
        across: Expr = inside // high
        if t.cluster > 1 and t.beside:
            across = across * t.cluster + k.block_x % t.cluster
        elif t.cluster > 1:
            down = down * t.cluster + k.block_x % t.cluster
        k.let("row", simplify(down * t.rows))
        k.let("column", simplify(across * t.columns))

    def _turns(self) -> tuple[Expr, Expr]:
        """How many turns of the ring are others', before those of a block, and how many its own:
        the first blocks of a cluster make one more, where they are not as many."""
        split = self.tiling.split
        each, more = divmod(self.turns, split)
        rank = self.k.block_x % split
        if split == 1 or not more:
            return simplify(rank * each), Const(each)
        before = self.k.let("before", rank * each + minimum(rank, more))
        return before, self.k.let("turns", select(rank.lt(more), each + 1, each))

    def _fills(self, at: Expr, stage: Expr) -> None:
        t, p = self.tiling, self.product
        for name, side, factor, begin, share in (
            ("a", t.rows, p.a, Var("row"), t.across), ("b", t.columns, p.b, Var("column"), t.down)
        ):  # fmt: skip
            first = stage * (side * t.deep)
            along, line = t.deep if factor.dense == "k" else side, self._line_of(factor, side)
            for part in range(along // line):
                where: tuple[Expr, Expr]
                if factor.dense == "k":
                    where, far = (begin, at + part * line), part * side * line
                else:
                    where, far = (at, begin + part * line), part * t.deep * line
                place = where if p.batch is None else (Var("batch"), *where)
                split = None if share == 1 else len(place) - 2
                self.k.add(ir.Fill(f"{name}_map", place, f"{name}_tile", first + far, split))

    def _factor(self, name: str, stage: Expr, line: Expr | int, step: Expr) -> ir.Tile:
        """The factor whose first row or column in the tile is `line`, so many steps along k."""
        t, p = self.tiling, self.product
        side, factor = (t.rows, p.a) if name == "a" else (t.columns, p.b)
        first, wide = stage * (side * t.deep), self._line_of(factor, side)
        swizzle = wide * self.dtype.bytes
        if factor.dense == "k":
            steps = wide // self.step
            at = first + step // steps * (side * wide) + line * wide
            return ir.Tile(f"{name}_tile", at + step % steps * self.step, swizzle, "k", 8 * LINE)
        at = first + line * t.deep + step * (self.step * wide)
        return ir.Tile(f"{name}_tile", at, swizzle, "mn", 8 * swizzle, t.deep * swizzle)

    def _products(self, stage: Expr) -> None:
        k, t, p = self.k, self.tiling, self.product
        with k.loop("step", t.deep // self.step) as step, k.loop("part", self.parts) as part:
            line = self._line(part)
            target = ir.Cell("sums", part * (t.columns // 2), self.sums)
            a, b = self._factor("a", stage, line, step), self._factor("b", stage, 0, step)
            k.add(ir.WarpgroupProduct(target, a, b, t.columns, p.kind))

    # -- results

    def _line(self, part: Expr) -> Expr:
        """The first row of the tile that is of a warp group's product."""
        return (part if self.tiling.ping_pong else self.k.warp // 4 * self.parts + part) * ROWS

    def _row(self, part: Expr) -> Expr:
        """The first row of a warp's results."""
        return self._line(part) + self.k.warp % 4 * 16

    def _place(self, down: Expr, across: Expr, many: int) -> Place:
        """Where results beside each other are."""
        p, t = self.product, self.tiling
        inside: Expr | None = None
        if self.m % (t.rows * t.down):
            inside = down.lt(self.m)
        if self.n % (t.columns * t.across):
            last = (across + many).le(self.n) if many > 1 else across.lt(self.n)
            inside = last if inside is None else inside.and_(last)
        index = {p.rows.name: down, p.columns.name: across}
        if p.batch is not None:
            index[p.batch.name] = Var("batch")
        return Place(index, inside)

    def _direct(self) -> None:
        """Straight from registers."""
        k, t = self.k, self.tiling
        with k.loop("part", self.parts) as part, k.loop("half", 2) as half:
            down = k.let("down", Var("row") + self._row(part) + k.lane // 4 + half * 8)
            with k.loop("unit", t.columns // 8) as unit:
                first = part * (t.columns // 2) + unit * 4 + half * 2
                across = k.let("across", Var("column") + unit * 8 + k.lane % 4 * 2)
                self._neighbours("sums", first, down, across)

    def _added(self) -> None:
        """The part of the results that this block gets, of all blocks of the cluster."""
        k, t = self.k, self.tiling
        k.registers("total", self.sums, t.share)
        target, value = (ir.Cell(name, Const(0), self.sums) for name in ("total", "sums"))
        added = ir.ClusterSum(target, value, t.sums, "parts", t.split)
        k.add(added)
        wide = t.columns // 8
        with k.loop("own", added.share) as own:
            unit = k.let("unit", k.block_x % t.split * added.share + own)
            across = k.let("across", Var("column") + unit % wide * 8 + k.lane % 4 * 2)
            with k.loop("half", 2) as half:
                row = self._row(unit // wide if self.parts > 1 else Const(0))
                down = k.let("down", Var("row") + row + k.lane // 4 + half * 8)
                first = own * 4 + half * 2
                if added.units < added.share * t.split:
                    with k.when(unit.lt(added.units)):
                        self._neighbours("total", first, down, across)
                else:
                    self._neighbours("total", first, down, across)

    def _neighbours(self, held: str, first: Expr, down: Expr, across: Expr) -> None:
        """Two results beside each other, at once where they may be."""
        k, p = self.k, self.product
        steps = p.store.access.place.factors
        even = [p.store.access.place.offset, *(s for a, s in steps.items() if a is not p.columns)]
        is_near = steps.get(p.columns) == 1 and self.n % 2 == 0
        pair = 2 if is_near and all(each % 2 == 0 for each in even) else 1
        for e in range(0, 2, pair):
            place = self._place(down, simplify(across + e), pair)
            if place.inside is None:
                self._stored(held, place, first + e, pair)
                continue
            # A condition on the store alone would have ptxas let products wait.
            with k.when(place.inside):
                self._stored(held, place, first + e, pair)

    def _stored(self, held: str, place: Place, first: Expr, many: int) -> None:
        k, p = self.k, self.product
        out = k.registers(self.results.fresh("out"), p.out.dtype, many)
        for e in range(many):
            index = dict(place.index)
            index[p.columns.name] = simplify(index[p.columns.name] + e)
            out[e] = self.results.value(ir.Cell(held, first + e, self.sums), Place(index, None))
        self.results.put(self.results.at(p.store.access, place), out[0], None, many)

    def _boxed(self) -> None:
        """Through shared memory, a box of columns after another; of rows, where those are side by
        side."""
        t, group, turned = self.tiling, self.k.warp // 4, self.product.is_turned
        down: Expr = Var("row") if t.ping_pong else Var("row") + group * t.own
        for box in range(t.own // OUT if turned else t.columns // OUT):
            name = f"c_tile_{box % t.boxes}"
            where: tuple[Expr, ...]
            if turned:
                self._turned_box(name, box)
                where = (Var("column"), down + box * OUT)
            else:
                self._box(name, box)
                where = (down, Var("column") + box * OUT)
            if self.product.batch is not None:
                where = (Var("batch"), *where)
            long, wide = t.box(turned)
            self.k.add(ir.BulkStore("c_map", where, name, group * (long * wide), "group"))

    def _turned_box(self, name: str, part: int) -> None:
        """Sixteen columns at once, as matrices that are transposed on their way."""
        k, p, t = self.k, self.product, self.tiling
        with k.loop("unit", t.columns // 16) as unit:
            held = k.registers("held", p.out.dtype, 8)
            for e in range(8):
                cell = ir.Cell("sums", part * (t.columns // 2) + unit * 8 + e, self.sums)
                down = Var("row") + self._row(Const(part)) + k.lane // 4 + e // 2 % 2 * 8
                across = Var("column") + unit * 16 + e // 4 * 8 + k.lane % 4 * 2 + e % 2
                held[e] = self.results.value(cell, self._place(down, across, 1))
            own = k.warp // 4 * t.columns + unit * 16 + k.lane // 16 * 8 + k.lane % 8
            unit_of = (k.warp % 4 * 2 + k.lane // 8 % 2) ^ (k.lane % 8)
            k.add(ir.StoreMatrix(name, own * OUT + unit_of * 8, held[0], 4, True))

    def _box(self, name: str, box: int) -> None:
        """Sixteen columns at once, as matrices; units of 16 bytes swizzled by the row."""
        k, p, t = self.k, self.product, self.tiling
        with k.loop("part", self.parts) as part, k.loop("unit", 4) as unit:
            held = k.registers("held", p.out.dtype, 8)
            for e in range(8):
                cell = ir.Cell("sums", part * (t.columns // 2) + box * 32 + unit * 8 + e, self.sums)
                down = Var("row") + self._row(part) + k.lane // 4 + e // 2 % 2 * 8
                across = Var("column") + box * OUT + unit * 16 + e // 4 * 8 + k.lane % 4 * 2 + e % 2
                held[e] = self.results.value(cell, self._place(down, across, 1))
            own = k.warp // 4 * t.own + part * ROWS  # of this warp group's box
            down = own + k.warp % 4 * 16 + k.lane % 16
            unit_of = (unit * 2 + k.lane // 16) ^ (k.lane % 8)
            k.add(ir.StoreMatrix(name, down * OUT + unit_of * 8, held[0], 4))
