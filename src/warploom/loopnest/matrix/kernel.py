"""A product of matrices and how it is cut up → its kernel: persistent blocks, a ring that one warp
group fills, products of the others, and how the results leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from warploom.index.ir import Const, Expr, Var, minimum
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import Array, Builder
from warploom.kernel.ir import Kernel, Value
from warploom.kernel.traverse import map_value
from warploom.loopnest.computation import Folded, Kept, Loaded
from warploom.loopnest.evaluate import elements
from warploom.loopnest.ir import Axis, Parameter
from warploom.loopnest.matrix.product import Factor, MatrixProduct
from warploom.loopnest.matrix.tiling import LINE, OUT, REGISTERS, ROWS, STEP, Tiling
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


@dataclass(slots=True)
class _Place:
    """Where a result is: expressions for the indices of axes; `inside` says where there is one."""

    index: Mapping[str, Expr]
    inside: Expr | None


@dataclass(eq=False)
class ByGroups:
    product: MatrixProduct
    tiling: Tiling
    machine: Machine
    sizes: Mapping[Axis, int]
    arrays: dict[str, Array] = field(default_factory=dict)
    loads: int = 0

    def __post_init__(self) -> None:
        p, t = self.product, self.tiling
        self.dtype = p.a.array.dtype
        self.sums = p.fold.dtype
        self.line = LINE // self.dtype.bytes  # elements of a row in shared memory
        self.step = STEP // self.dtype.bytes  # terms of one product
        self.parts = t.own // ROWS  # products of a warp group below each other
        axes = (p.rows, p.columns, p.over)
        self.m, self.n, self.depth = (self.sizes.get(axis, axis.size) for axis in axes)
        self.batches = 1 if p.batch is None else self.sizes.get(p.batch, p.batches)
        self.high, self.wide = self._tiles(self.m, self.n)  # of a cluster, down and across
        self.tiles = self.high * self.wide * self.batches
        room = max(1, self.machine.multiprocessors // t.cluster)
        if self.sizes and prod(self._tiles(p.rows.size, p.columns.size)) * p.batches > room:
            room = 1
        self.clusters = min(self.tiles, room)
        self.k = Builder(p.source.name, block=128 * t.consumers)

    def _tiles(self, rows: int, columns: int) -> tuple[int, int]:
        t = self.tiling
        return -(-rows // (t.rows * t.down)), -(-columns // (t.columns * t.across))

    def kernel(self) -> Kernel:
        k, p, t = self.k, self.product, self.tiling
        stored, counts = p.out, elements(p.program, self.sizes)
        for each in p.source.arrays:
            const, size = each is not stored, counts[each]
            self.arrays[each.name] = k.array(each.name, each.dtype, size, const=const)
        for number in p.source.parameters:
            k.number(number.name, number.dtype)
        k.grid(self.clusters * t.cluster)
        k.cluster(t.cluster)
        k.roles(*REGISTERS[t.consumers])
        k.most_shared(self.machine.shared_bytes_most)
        self._maps()
        self._shared()
        first: Expr = k.block_x // t.cluster if t.cluster > 1 else k.block_x
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
        return k.done(predicate=True)

    # -- what there is

    def _maps(self) -> None:
        p, t = self.product, self.tiling
        self._map("a_map", p.a, self.m, t.rows, t.across)
        self._map("b_map", p.b, self.n, t.columns, t.down)
        if t.boxes:
            steps = (p.step(p.batch), p.step(p.rows))
            sizes = (self.batches, self.m, self.n)
            self._view("c_map", p.out.name, sizes, steps, (t.own, OUT), OUT * p.out.dtype.bytes)

    def _map(self, name: str, factor: Factor, lines: int, tall: int, share: int) -> None:
        """`share` blocks of a cluster bring a part of each tile."""
        deep = self.tiling.deep
        if factor.dense == "k":
            sizes, box = (self.batches, lines, self.depth), (tall // share, self.line)
            steps = (factor.batch, factor.line)
        else:
            sizes, box = (self.batches, self.depth, lines), (deep // share, self.line)
            steps = (factor.batch, factor.deep)
        self._view(name, factor.array.name, sizes, steps, box, LINE)

    def _view(
        self, name: str, array: str, sizes: tuple[int, int, int], steps: tuple[int, int],
        box: tuple[int, int], swizzle: int,
    ) -> None:  # fmt: skip
        """A map of two axes, or of three where there are batches."""
        if self.product.batch is None:
            self.k.tensor_map(name, self.arrays[array], sizes[1:], box, swizzle, steps[1:])
        else:
            whole = (1, *box)
            self.k.tensor_map(name, self.arrays[array], sizes, whole, swizzle, steps)

    def _shared(self) -> None:
        k, t = self.k, self.tiling
        k.shared("a_tile", self.dtype, t.stages * t.rows * t.deep, align=1024)
        k.shared("b_tile", self.dtype, t.stages * t.columns * t.deep, align=1024)
        for number in range(t.boxes):
            size = t.consumers * t.own * OUT
            k.shared(f"c_tile_{number}", self.product.out.dtype, size, align=1024)

    # -- what is done

    def _tile(self, tile: Expr) -> None:
        """One tile: the sums, then the results."""
        k, t = self.k, self.tiling
        self._named(tile)
        count = -(-self.depth // t.deep)
        k.registers("sums", self.sums, self.parts * t.columns // 2)
        with k.ring("t", count, t.stages, stage="stage", sums=("sums",)) as (turn, stage):
            self._fills(turn * t.deep, stage)
            self._products(stage)
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

    def _fills(self, at: Expr, stage: Expr) -> None:
        t, p = self.tiling, self.product
        for name, side, factor, begin, share in (
            ("a", t.rows, p.a, Var("row"), t.across), ("b", t.columns, p.b, Var("column"), t.down)
        ):  # fmt: skip
            first = stage * (side * t.deep)
            along = t.deep if factor.dense == "k" else side
            for part in range(along // self.line):
                where: tuple[Expr, Expr]
                if factor.dense == "k":
                    where, far = (begin, at + part * self.line), part * side * self.line
                else:
                    where, far = (at, begin + part * self.line), part * t.deep * self.line
                place = where if p.batch is None else (Var("batch"), *where)
                split = None if share == 1 else len(place) - 2
                self.k.add(ir.Fill(f"{name}_map", place, f"{name}_tile", first + far, split))

    def _factor(self, name: str, stage: Expr, line: Expr | int, step: Expr) -> ir.Tile:
        """The factor whose first row or column in the tile is `line`, so many steps along k."""
        t, p = self.tiling, self.product
        side, factor = (t.rows, p.a) if name == "a" else (t.columns, p.b)
        first = stage * (side * t.deep)
        if factor.dense == "k":
            steps = self.line // self.step
            at = first + step // steps * (side * self.line) + line * self.line
            return ir.Tile(f"{name}_tile", at + step % steps * self.step, LINE, "k", 8 * LINE)
        at = first + line * t.deep + step * (self.step * self.line)
        return ir.Tile(f"{name}_tile", at, LINE, "mn", 8 * LINE, t.deep * LINE)

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

    def _place(self, down: Expr, across: Expr, many: int) -> _Place:
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
        return _Place(index, inside)

    def _at(self, steps: Mapping[Axis, int], offset: int, place: _Place) -> Expr:
        at: Expr = Const(offset)
        for axis, step in steps.items():
            at = at + place.index[axis.name] * step
        return simplify(at)

    def _computed(self, held: ir.Cell, place: _Place) -> Value:
        """What is stored, of a sum; what it loads besides is loaded first."""

        def found(value: Value) -> Value:
            match value:
                case Kept():
                    return map_value(value.value, lambda expr: expr, found)
                case Folded():
                    return held
                case Loaded():
                    return self._loaded(value, place)
                case Parameter(name, dtype):
                    return ir.Cell(name, None, dtype)
            return value

        return map_value(self.product.store.value, lambda expr: expr, found)

    def _loaded(self, value: Loaded, place: _Place) -> Value:
        access = value.access
        self.loads += 1
        cell = self.k.register(f"{access.array.name}_{self.loads}", access.array.dtype)
        at = self._at(access.place.factors, access.place.offset, place)
        self.k.add(ir.Load(cell, access.array.name, at, place.inside))
        return cell

    def _direct(self) -> None:
        """Straight from registers, two neighbours at once where they may be."""
        k, p, t = self.k, self.product, self.tiling
        steps = p.store.access.place.factors
        even = [p.store.access.place.offset, *(s for a, s in steps.items() if a is not p.columns)]
        is_near = steps.get(p.columns) == 1 and self.n % 2 == 0
        pair = 2 if is_near and all(each % 2 == 0 for each in even) else 1
        with k.loop("part", self.parts) as part, k.loop("half", 2) as half:
            down = k.let("down", Var("row") + self._row(part) + k.lane // 4 + half * 8)
            with k.loop("unit", t.columns // 8) as unit:
                first = part * (t.columns // 2) + unit * 4 + half * 2
                across = k.let("across", Var("column") + unit * 8 + k.lane % 4 * 2)
                for e in range(0, 2, pair):
                    place = self._place(down, simplify(across + e), pair)
                    if place.inside is None:
                        self._stored(place, first + e, pair)
                        continue
                    # A condition on the store alone would have ptxas let products wait.
                    with k.when(place.inside):
                        self._stored(place, first + e, pair)

    def _stored(self, place: _Place, first: Expr, many: int) -> None:
        k, p = self.k, self.product
        self.loads += 1
        out = k.registers(f"out_{self.loads}", p.out.dtype, many)
        for e in range(many):
            index = dict(place.index)
            index[p.columns.name] = simplify(index[p.columns.name] + e)
            out[e] = self._computed(ir.Cell("sums", first + e, self.sums), _Place(index, None))
        at = self._at(p.store.access.place.factors, p.store.access.place.offset, place)
        k.add(ir.Store(p.out.name, at, out[0], None, many))

    def _boxed(self) -> None:
        """Through shared memory, a box of columns after another."""
        for box in range(self.tiling.columns // OUT):
            name = f"c_tile_{box % self.tiling.boxes}"
            self._box(name, box)
            group = self.k.warp // 4
            down: Expr = Var("row")
            if not self.tiling.ping_pong:
                down = down + group * self.tiling.own
            where: tuple[Expr, ...] = (down, Var("column") + box * OUT)
            if self.product.batch is not None:
                where = (Var("batch"), *where)
            first = group * (self.tiling.own * OUT)
            self.k.add(ir.BulkStore("c_map", where, name, first, "group"))

    def _box(self, name: str, box: int) -> None:
        """Sixteen columns at once, as matrices; units of 16 bytes swizzled by the row."""
        k, p, t = self.k, self.product, self.tiling
        with k.loop("part", self.parts) as part, k.loop("unit", 4) as unit:
            held = k.registers("held", p.out.dtype, 8)
            for e in range(8):
                cell = ir.Cell("sums", part * (t.columns // 2) + box * 32 + unit * 8 + e, self.sums)
                down = Var("row") + self._row(part) + k.lane // 4 + e // 2 % 2 * 8
                across = Var("column") + box * OUT + unit * 16 + e // 4 * 8 + k.lane % 4 * 2 + e % 2
                held[e] = self._computed(cell, self._place(down, across, 1))
            own = k.warp // 4 * t.own + part * ROWS  # of this warp group's box
            down = own + k.warp % 4 * 16 + k.lane % 16
            unit_of = (unit * 2 + k.lane // 16) ^ (k.lane % 8)
            k.add(ir.StoreMatrix(name, down * OUT + unit_of * 8, held[0], 4))
