"""A product of packed weights and how it is cut up → its kernel.

A warp loads weights of eight columns as they lie, 16 bytes in each lane, and takes the terms of the
sum in the order in which they come out of a word: the first factor is put in the same order, once
for all warps. Sums of a group of weights are exact, and scaled once. Warps along the sum add up in
shared memory. Blocks of a cluster then send each other what they have, and add up a part each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product as every

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import Builder, RegisterArray, fma
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel, Value
from warploom.loopnest.evaluate import elements
from warploom.loopnest.ir import Axis
from warploom.loopnest.matrix.results import Given, Place, Results
from warploom.loopnest.weights.product import EIGHT, WeightProduct
from warploom.loopnest.weights.tiling import COLUMNS, LANES, PAD, QUAD, ROWS, WeightTiling
from warploom.machine.record import Machine

LOW, HIGH = 0, 1  # rows of a lane in a product of 16, eight apart


def kernel_of(
    product: WeightProduct,
    tiling: WeightTiling,
    machine: Machine,
    sizes: Mapping[Axis, int] | None = None,
) -> Kernel:
    """The kernel; with `sizes`, the same along shorter axes."""
    return _Warps(product, tiling, machine, sizes or {}).kernel()


@dataclass(eq=False)
class _Warps:
    product: WeightProduct
    tiling: WeightTiling
    machine: Machine
    sizes: Mapping[Axis, int]

    def __post_init__(self) -> None:
        p, t = self.product, self.tiling
        self.m, self.n, self.depth = (
            self.sizes.get(axis, axis.size) for axis in (p.rows, p.columns, p.over)
        )
        self.eights, self.deep = p.eights, p.deep
        self.span = t.span(p.deep)
        self.tall = t.rows // ROWS  # products below each other
        self.dtype = p.a.dtype
        self.threads = LANES * t.warps
        self.held, self.word = p.held, 32 // p.weights.bits  # elements; integers in a word
        # With one block asked for, ptxas saves no registers, and waits for no load before the next.
        self.k = Builder(p.source.name, block=self.threads, min_blocks=1)
        early = [p.weights.array, *([] if p.scales is None else [p.scales.array])]
        self.given = Given(self.k, p.source, elements(p.program, self.sizes), p.out, early)
        self.results = Results(self.k, p.store, self.given, p.others)

    def kernel(self) -> Kernel:
        k, t = self.k, self.tiling
        wide, tall = -(-self.n // t.columns), -(-self.m // t.rows)
        k.grid(wide * t.cluster, tall)
        k.cluster(t.cluster)
        k.most_shared(self.machine.shared_bytes_most)
        k.shared("first", self.dtype, t.rows * self.span, align=128)
        if t.parts > 1:
            k.shared("sums", DType.F32, t.parts * t.rows * (t.columns + PAD), align=128)
        if t.cluster > 1:
            k.shared("arrived", DType.F32, t.arriving, align=128)
        self.rank: Expr = k.block_x % t.cluster if t.cluster > 1 else Const(0)
        k.let("column", k.block_x // t.cluster * t.columns)
        k.let("row", k.block_y * t.rows)
        k.let("part", k.warp // t.beside)
        k.let("begin", k.warp % t.beside * (COLUMNS * t.wide))
        self.total = k.registers("total", DType.F32, self.tall * t.wide * 4, initial=0)
        turns = -(-self.depth // (self.span * t.cluster))
        if turns == 1:
            self._turn(self.rank * self.span, last=True)
        else:
            with k.loop("turn", turns, unroll=False) as turn:
                self._turn((self.rank * turns + turn) * self.span, last=False)
        self._added()
        return self.given.back(k.done())

    # -- one part of the sum

    def _turn(self, begin: Expr, last: bool) -> None:
        k, t = self.k, self.tiling
        k.let("deep", begin)
        self._first()
        scales = self._scales()
        words = self._words()
        k.barrier()  # ptxas moves no load behind it, and would move half of them behind the wait
        k.add(ir.Barrier(waits=0))
        self._turned()
        k.barrier()
        for ahead in range(t.ahead):
            self._piece(ahead, words, scales)
        if not last:
            k.barrier()

    def _piece_at(self, ahead: int) -> Expr:
        """Where along the sum a warp's piece begins."""
        part = Var("part") * self.tiling.ahead + ahead
        return Var("deep") + part * self.deep

    def _words(self) -> RegisterArray:
        """All weights of a warp, asked for before anything waits."""
        k, p, t = self.k, self.product, self.tiling
        weights = p.weights
        held = k.registers("words", weights.array.dtype, t.ahead * t.wide * self.held)
        for ahead in range(t.ahead):
            for tile in range(t.wide):
                column = Var("column") + Var("begin") + (tile * COLUMNS + k.lane // 4)
                term = self._piece_at(ahead) + k.lane % 4 * (EIGHT * self.eights)
                at = column * weights.line + term // weights.each
                inside = self._inside(column, term, EIGHT * self.eights)
                target = held[(ahead * t.wide + tile) * self.held]
                k.add(
                    ir.Load(
                        target, self.given.names[weights.array.name], at, inside, None, self.held
                    )
                )
        return held

    def _inside(self, column: Expr, term: Expr, many: int) -> Expr | None:
        conditions = []
        if self.n % self.tiling.columns:
            conditions.append(column.lt(self.n))
        if self.depth % (self.span * self.tiling.cluster):
            conditions.append((term + many).le(self.depth) if many > 1 else term.lt(self.depth))
        if not conditions:
            return None
        return conditions[0] if len(conditions) == 1 else conditions[0].and_(conditions[1])

    def _scales(self) -> RegisterArray | None:
        """Those of two columns that a lane has sums of, for each piece."""
        k, scales, t = self.k, self.product.scales, self.tiling
        if scales is None:
            return None
        held = k.registers("scale", scales.array.dtype, t.ahead * t.wide * 2)
        for ahead in range(t.ahead):
            for tile in range(t.wide):
                for e in range(2):
                    column = Var("column") + Var("begin") + (tile * COLUMNS + k.lane % 4 * 2 + e)
                    term = self._piece_at(ahead)
                    at = column * scales.line + term // scales.group * scales.step
                    target = held[(ahead * t.wide + tile) * 2 + e]
                    inside = self._inside(column, term, 1)
                    k.add(
                        ir.Load(target, self.given.names[scales.array.name], simplify(at), inside)
                    )
        return held

    # -- the first factor

    def _first(self) -> None:
        """To shared memory, in units of eight terms: a thread asks for two rows that a lane has
        together in a product, and neighbours for what is side by side."""
        k, t = self.k, self.tiling
        with self._two() as (chunk, piece, high, g, lane):
            for side in (LOW, HIGH):
                down = Var("row") + (high * ROWS + side * 8 + g)
                term = Var("deep") + chunk * self.deep + (lane * self.eights + piece) * EIGHT
                conditions = []
                if self.m % t.rows:
                    conditions.append(down.lt(self.m))
                if self.depth % (self.span * t.cluster):
                    conditions.append((term + EIGHT).le(self.depth))
                inside: Expr | None = None
                for each in conditions:
                    inside = each if inside is None else inside.and_(each)
                held = k.registers(self.results.fresh("passing"), self.dtype, EIGHT)
                name = self.given.names[self.product.a.name]
                at = down * self.product.a_line + term
                k.add(ir.Load(held[0], name, at, inside, None, EIGHT))
                place = self._unit(chunk, piece, high, side, g, lane)
                k.add(ir.Store("first", place, held[0], None, EIGHT, ahead=True))

    def _turned(self) -> None:
        """What a thread brought, as registers of a product have it: terms in the order of weights
        in their words, and both rows in turn. Else each warp would do so."""
        k = self.k
        with self._two() as (chunk, piece, high, g, lane):
            own = k.registers(self.results.fresh("own"), self.dtype, 2 * EIGHT)
            turned = k.registers(self.results.fresh("turned"), self.dtype, 2 * EIGHT)
            units = [self._unit(chunk, piece, high, side, g, lane) for side in (LOW, HIGH)]
            for side in (LOW, HIGH):
                k.add(ir.Load(own[side * EIGHT], "first", units[side], None, None, EIGHT))
            for word in range(0, 2 * EIGHT, self.word):
                k.add(ir.Interleave(turned[word], own[word], self.word))
            for step in range(2):
                both = k.registers(self.results.fresh("both"), self.dtype, EIGHT)
                for pair, side, e in every(range(2), (LOW, HIGH), range(2)):
                    of = turned[side * EIGHT + step * 4 + pair * 2 + e]
                    both[pair * 4 + side * 2 + e] = of
                k.add(ir.Store("first", units[step], both[0], None, EIGHT))

    @contextmanager
    def _two(self) -> Iterator[tuple[Expr, Expr, Expr, Expr, Expr]]:
        """Each two units of a thread: chunk, piece, sixteen rows, row of eight, lane."""
        k, lines = self.k, self.tiling.rows // 2
        count = lines * self.span // EIGHT
        with k.loop(self.results.fresh("unit"), -(-count // self.threads)) as unit:
            number = unit * self.threads + k.thread
            low, line = number // 4 % 2, number // (8 * self.eights) % (lines // 2) * 2
            chunk = number // (4 * lines * self.eights)
            place = (chunk, number // 8 % self.eights, line // 8, line % 8 + low, number % 4)
            if count % self.threads:
                with k.when(number.lt(count)):
                    yield place
            else:
                yield place

    def _unit(
        self, chunk: Expr, piece: Expr | int, high: Expr | int, side: int, g: Expr, lane: Expr
    ) -> Expr:
        """Where a unit is: of a row, and then of one of two products."""
        rows = (chunk * self.eights + piece) * self.tall + high
        return (((rows * 2 + side) * 8 + g) * 4 + lane) * EIGHT

    def _factor(self, chunk: Expr, piece: int) -> RegisterArray:
        """Two products' worth for each sixteen rows."""
        k = self.k
        factor = k.registers(self.results.fresh("factor"), self.dtype, self.tall * 16)
        for tall in range(self.tall):
            for step in range(2):
                at = self._unit(chunk, piece, tall, step, k.lane // 4, k.lane % 4)
                held = factor[tall * 16 + step * 8]
                k.add(ir.Load(held, "first", at, None, None, EIGHT))
        return factor

    # -- products

    def _piece(self, ahead: int, words: RegisterArray, scales: RegisterArray | None) -> None:
        k, t = self.k, self.tiling
        chunk = Var("part") * t.ahead + ahead
        name = self.results.fresh("partial")
        sums = self.total
        if scales is not None:
            sums = k.registers(name, DType.F32, self.tall * t.wide * 4, initial=0)
        for piece in range(self.eights):
            factor = self._factor(chunk, piece)
            for tile in range(t.wide):
                first = (ahead * t.wide + tile) * self.held + piece * (self.held // self.eights)
                weights = self._unpacked(words, first)
                for step in range(2):
                    for tall in range(self.tall):
                        k.add(ir.TensorProduct(
                            sums[(tall * t.wide + tile) * 4], factor[tall * 16 + step * 8],
                            weights[step * 4], self.product.kind,
                        ))  # fmt: skip
        if scales is not None:
            self._scaled(ahead, sums, scales)

    def _unpacked(self, words: RegisterArray, first: int) -> RegisterArray:
        k, weights = self.k, self.product.weights
        made = k.registers(self.results.fresh("weight"), self.dtype, EIGHT)
        each = self.word // weights.each  # elements of a word
        for word in range(EIGHT // self.word):
            k.add(ir.Unpack(
                made[word * self.word], words[first + word * each], weights.bits, weights.zero,
                weights.signed,
            ))  # fmt: skip
        return made

    def _scaled(self, ahead: int, sums: RegisterArray, scales: RegisterArray) -> None:
        t = self.tiling
        for tile in range(t.wide):
            for tall in range(self.tall):
                for e in range(4):
                    at = (tall * t.wide + tile) * 4 + e
                    scale: Value = scales[(ahead * t.wide + tile) * 2 + e % 2]
                    if ir.dtype_of(scale) is not DType.F32:
                        scale = ir.Cast(DType.F32, scale)
                    self.total[at] = fma(sums[at], scale, self.total[at])

    # -- results

    def _added(self) -> None:
        """Adds up all parts, in order; then those of all blocks, each of which has some results.
        What a thread has comes in units of four."""
        k, t = self.k, self.tiling
        name, units = self.total.name, t.units
        if t.parts > 1:
            name = self._summed(units)
        if t.cluster == 1:
            with k.loop("unit", units) as unit:
                self._unit_stored(name, unit, unit)
            return
        target, value = (ir.Cell(each, Const(0), DType.F32) for each in ("whole", name))
        added = ir.ClusterSum(target, value, units * QUAD, "arrived", t.cluster)
        k.registers("whole", DType.F32, added.registers)
        k.add(added)
        with k.loop("own", added.share) as own:
            unit = k.let("unit", self.rank * added.share + own)
            if units < added.share * t.cluster:
                with k.when(unit.lt(units)):
                    self._unit_stored("whole", own, unit)
            else:
                self._unit_stored("whole", own, unit)

    def _summed(self, units: int) -> str:
        """The sums of warps beside each other along the sum, four neighbours at once."""
        k, t = self.k, self.tiling
        line = t.columns + PAD
        for tall in range(self.tall):
            for tile in range(t.wide):
                for side in (LOW, HIGH):
                    row = Var("part") * t.rows + (tall * ROWS + side * 8 + k.lane // 4)
                    at = row * line + Var("begin") + (tile * 8 + k.lane % 4 * 2)
                    held = self.total[(tall * t.wide + tile) * 4 + side * 2]
                    k.add(ir.Store("sums", at, held, None, 2))
        k.barrier()
        name = self.results.fresh("summed")
        summed = k.registers(name, DType.F32, units * QUAD, initial=0)
        each = k.registers(self.results.fresh("each"), DType.F32, t.parts * units * QUAD)
        for unit in range(units):
            number = self._number(unit)
            inside = self._is_unit(number)
            for part in range(t.parts):
                row = number // t.columns + part * t.rows
                at = row * line + number % t.columns
                k.add(ir.Load(each[(part * units + unit) * QUAD], "sums", at, inside, None, QUAD))
        for own in range(units * QUAD):
            value: Value = each[own]
            for part in range(1, t.parts):
                value = value + each[part * units * QUAD + own]
            k.set(summed[own], value)
        return name

    def _number(self, unit: Expr | int) -> Expr:
        """The first result of a unit of a thread, where threads share what warps added up."""
        return (self.k.thread + unit * self.threads) * QUAD

    def _is_unit(self, number: Expr) -> Expr | None:
        count = self.tiling.rows * self.tiling.columns
        return number.lt(count) if count % (self.threads * QUAD) else None

    def _unit_stored(self, name: str, own: Expr, unit: Expr) -> None:
        """Four results in the tile, as registers of a product have them or side by side."""
        k, t = self.k, self.tiling
        columns = t.columns
        if t.parts > 1:
            number = k.let("number", self._number(unit))
            guard = self._is_unit(number)
            if guard is None:
                self._four(name, own, [number + e for e in range(QUAD)])
            else:
                with k.when(guard):
                    self._four(name, own, [number + e for e in range(QUAD)])
            return
        row = unit // t.wide * ROWS + k.lane // 4
        first = k.let("number", row * columns + Var("begin") + unit % t.wide * 8 + k.lane % 4 * 2)
        self._four(name, own, [first + (e // 2 * 8 * columns + e % 2) for e in range(QUAD)])

    def _four(self, name: str, own: Expr, numbers: list[Expr]) -> None:
        for e, number in enumerate(numbers):
            self._stored(number, ir.Cell(name, simplify(own * QUAD + e), DType.F32))

    def _stored(self, number: Expr, held: ir.Cell) -> None:
        k, p, t = self.k, self.product, self.tiling
        down = k.let(self.results.fresh("down"), Var("row") + number // t.columns)
        across = k.let(self.results.fresh("across"), Var("column") + number % t.columns)
        inside: Expr | None = None
        if self.m % t.rows:
            inside = down.lt(self.m)
        if self.n % t.columns:
            last = across.lt(self.n)
            inside = last if inside is None else inside.and_(last)
        place = Place({p.rows.name: down, p.columns.name: across}, inside)
        value = self.results.value(held, place)
        self.results.put(self.results.at(p.store.access, place), value, inside)
