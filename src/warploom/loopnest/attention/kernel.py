"""Attention and how it is cut up → its kernel.

    for each block of keys:  S = Q·Kᵀ;  m' = max(m, rows of S);  P = 2^(S·c − m'·c)
                             l = l·2^(m·c − m'·c) + rows of P;  O = O·2^(m·c − m'·c) + P·V
    out = O / l

Queries lie in shared memory, keys and values go through rings, all else is in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import e as base
from math import inf, log, log2, prod
from typing import TypeAlias

from warploom.index.ir import Const, Expr, Var, maximum, minimum
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import (
    Array,
    Builder,
    RegisterArray,
    cast,
    choose,
    exp2_ftz,
    fma,
    log2_ftz,
    rsqrt,
)
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Kernel
from warploom.kernel.names import renamed
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.scores import TOGETHER, ScorePlace, ScoreWriter
from warploom.loopnest.attention.tiling import STEP, AttentionTiling
from warploom.loopnest.matrix.tiling import LINE, REGISTERS, ROWS
from warploom.machine.record import Machine

QUAD = (1, 2)  # lanes that hold a row differ in these bits
HALVES = 2  # rows of a thread in one product
PARTS, LOGS = "parts", "logs"  # results of splits, and the logarithms of their sums
Steps: TypeAlias = int | tuple[int, int, int]
CHAINS = 4  # of both, every other number: additions that do not wait for each other


def kernel_of(
    attention: Attention,
    tiling: AttentionTiling,
    machine: Machine,
    names: Mapping[str, str] | None = None,
    order: Sequence[str] = ("q", "k", "v", "o", "lse"),
    title: str = "attention",
    steps: Mapping[str, Steps] | None = None,
) -> Kernel:
    """The kernel; its arrays may have names, and come in an order, of a user's own. `steps` say how
    many elements are from a head of an array to the next, or from a batch, a head and a row of q, k
    and v, where these are not dense. Arrays that
    scores are mapped with come last, or where their own names are in the order. With splits it
    leaves `parts` and `logs`, which `merge.py` joins."""
    made = _Fused(attention, tiling, machine, order, title, steps or {}).kernel()
    return renamed(made, {own: name for own, name in (names or {}).items() if own != name})


@dataclass(eq=False)
class _Fused:
    attention: Attention
    tiling: AttentionTiling
    machine: Machine
    order: Sequence[str]
    title: str
    steps: Mapping[str, Steps]
    arrays: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        a, t = self.attention, self.tiling
        # Rows in shared memory are as long as a swizzle, or half of it where heads ask for that.
        self.line = LINE // a.dtype.bytes
        if a.head % self.line:
            self.line //= 2
        self.swizzle = self.line * a.dtype.bytes
        self.rows, self.heads = t.rows(a), t.heads(a)
        self.high = -(-self.rows // t.queries)
        self.tiles = t.tiles(a)
        self.blocks = min(self.tiles, self.machine.multiprocessors) if t.persistent else self.tiles
        self.factor = a.factor * log2(base)
        self.k = Builder(self.title, block=128 * t.consumers)

    def kernel(self) -> Kernel:
        k, a, t = self.k, self.attention, self.tiling
        extra = () if a.map is None else a.map.arrays
        self.extra = {array: f"of_scores_{at}" for at, array in enumerate(extra)}
        for name in dict.fromkeys((*self.order, *self.extra.values())):
            self._array(name)
        if t.splits > 1:
            size = self.heads * t.splits * self.rows
            self.arrays[PARTS] = k.array(PARTS, f32, size * a.head)
            self.arrays[LOGS] = k.array(LOGS, f32, size)
        for name in ("q", "k", "v"):
            side = t.queries if name == "q" else t.keys
            rows = self.rows if name == "q" else a.keys
            heads, steps = self._heads(name), self._map_steps(name)
            sizes = ((a.batch, heads // a.batch) if len(steps) > 2 else (heads,)) + (rows, a.head)
            box = (*(1 for _ in sizes[:-2]), side, self.line)
            k.tensor_map(f"{name}_map", self.arrays[name], sizes, box, self.swizzle, steps)
        k.grid(self.blocks)
        k.roles(*REGISTERS[t.consumers])
        k.most_shared(self.machine.shared_bytes_most)
        k.shared("q_tile", a.dtype, t.resident * t.queries * a.head, align=1024)
        for name in ("k", "v"):
            k.shared(f"{name}_tile", a.dtype, t.stages * t.keys * a.head, align=1024)
        if self.tiles == self.blocks:
            self._tile(k.block_x)
        else:
            turns = simplify((self.tiles - k.block_x + (self.blocks - 1)) // self.blocks)
            with k.loop("turn", turns) as turn:
                self._tile(k.block_x + turn * self.blocks)
        return k.done(predicate=True)

    def _array(self, name: str) -> None:
        """An argument of the kernel, which has no results where it leaves parts of them."""
        k, a = self.k, self.attention
        given = next((array for array, own in self.extra.items() if own == name), None)
        if given is not None:
            assert a.map is not None
            made = k.array(name, given.dtype, a.map.elements(given), const=True)
        elif name == "lse" and a.sums and self.tiling.splits == 1:
            made = k.array(name, f32, prod(a.sizes("lse")))
        elif name in "qkv" or (name == "o" and self.tiling.splits == 1):
            sizes, steps = a.sizes(name), self.steps.get(name)
            if isinstance(steps, tuple):
                size = 1 + sum((n - 1) * s for n, s in zip(sizes, (*steps, 1), strict=True))
            else:
                rows = prod(sizes[2:])
                size = (prod(sizes[:2]) - 1) * (steps or rows) + rows
            made = k.array(name, a.dtype, size, const=name in "qkv")
        else:
            return
        self.arrays[name] = made

    def _heads(self, name: str) -> int:
        a = self.attention
        return self.heads if name == "q" else a.all_heads // a.groups

    def _map_steps(self, name: str) -> tuple[int, ...]:
        """From rows to the next, and from what is around them."""
        a, steps = self.attention, self.steps.get(name)
        if not isinstance(steps, tuple):
            return self._step(name), a.head
        batch, head, row = steps
        if name == "q" and self.tiling.packed:  # rows are those of heads, too
            return batch, head * a.groups, head if a.queries == 1 else row
        return steps

    def _step(self, name: str) -> int:
        """From the rows of a head, or of all heads that are packed, to the next."""
        a, steps = self.attention, self.steps.get(name)
        assert not isinstance(steps, tuple)
        if name in "kv":
            return steps or a.keys * a.head
        return (steps or a.queries * a.head) * (a.groups if self.tiling.packed else 1)

    # -- which tile

    def _tile(self, tile: Expr) -> None:
        """Heads together; of them the longest rows first."""
        k, a, t = self.k, self.attention, self.tiling
        tile = k.let("tile", tile)
        if t.splits > 1:
            k.let("split", tile % t.splits)
            tile = simplify(tile // t.splits)
        some = min(t.together, self.heads)
        first = k.let("first", tile // (self.high * some) * some)
        inside = k.let("inside", tile % (self.high * some))
        many: Expr = Const(some)
        if self.heads % some:
            many = k.let("many", minimum(self.heads - first, some))
        k.let("head", simplify(first + inside % many))
        down = inside // many
        if a.causal:
            down = self.high - 1 - down
        k.let("row", simplify(down * t.queries))
        self._blocks()
        self._registers()
        with k.ring("q_turn", 1, t.resident, stage="q_stage") as (_, stage):
            self._fill("q", Var("head"), Var("row"), t.queries, stage)
            self._over_keys(stage)
        self._results()

    def _blocks(self) -> None:
        """From which to before which block of keys."""
        k, a, t = self.k, self.attention, self.tiling
        begin: Expr = Const(0)
        end: Expr = Const(-(-a.keys // t.keys))
        if t.packed:  # every tile has queries of all places
            low, high = a.blocks(0, a.queries - 1, t.keys)
            begin, end = Const(low), Const(high)
            if t.splits > 1:
                begin = Var("split") * (high - low) // t.splits + low
                end = (Var("split") + 1) * (high - low) // t.splits + low
        else:
            if a.upper is not None:
                seen = maximum(minimum(Var("row") + (t.queries + a.upper), a.keys), 0)
                end = maximum((seen + (t.keys - 1)) // t.keys, 1)
            if a.lower is not None:
                begin = maximum(Var("row") + a.lower, 0) // t.keys
                if a.has_empty_rows:
                    begin = minimum(begin, end - 1)
        k.let("begin", begin)
        k.let("end", end)

    def _registers(self) -> None:
        k, a, t = self.k, self.attention, self.tiling
        self.o = k.registers("out", f32, a.head // 2, 0.0)
        self.s = k.registers("scores", f32, t.keys // 2)
        self.p = k.registers("weights", a.dtype, t.keys // 2)
        self.most = k.registers("most", f32, HALVES, -inf)
        self.total = k.registers("total", f32, CHAINS, 0.0)
        self.change = k.registers("change", f32, HALVES, 0.0)
        self.greatest = k.registers("greatest", f32, CHAINS)
        self.less = k.registers("less", f32, HALVES, 0.0)

    # -- a block of keys

    def _fill(self, name: str, head: Expr, row: Expr, side: int, stage: Expr) -> None:
        each: tuple[Expr, ...] = (head,)
        if isinstance(self.steps.get(name), tuple):
            inside = self._heads(name) // self.attention.batch
            each = simplify(head // inside), simplify(head % inside)
        for part in range(self.attention.head // self.line):
            first = stage * (side * self.attention.head) + part * side * self.line
            at = (*each, row, Const(part * self.line))
            self.k.add(ir.Fill(f"{name}_map", at, f"{name}_tile", first))

    def _over_keys(self, q_stage: Expr) -> None:
        """Blocks of keys from the last to the first; the last alone may have keys that are not
        there. With `ahead`, scores of the next block are under way while those of this become
        weights."""
        k, ahead = self.k, self.tiling.ahead
        last = k.let("last", Var("end") - 1)
        if not ahead:
            with k.loop("t", Var("end") - Var("begin")) as turn:
                block = simplify(last - turn)
                self._scores(block, q_stage, "")
                self._masked(block, True)
                self._weighed()
                self._scaled()
                self._results_of(block, "")
            return
        self._scores(last, q_stage, "_first")
        self._masked(last, True)
        self._weighed()
        self._scaled(begins=True)
        with k.loop("t", Var("last") - Var("begin")) as turn:
            block = simplify(last - 1 - turn)
            with k.turn() if self.tiling.turns else nullcontext():
                self._scores(block, q_stage, "")
                self._results_of(simplify(block + 1), "")
            self._masked(block, False)
            self._weighed()
            self._scaled()
        self._results_of(Var("begin"), "_last")

    def _scores(self, block: Expr, q_stage: Expr, which: str) -> None:
        k, a, t = self.k, self.attention, self.tiling
        ring = k.ring(f"k_turn{which}", 1, t.stages, stage="k_stage", sums=("scores",))
        with ring as (_, stage):
            self._fill("k", self._kept, block * t.keys, t.keys, stage)
            with k.loop("step", a.head // STEP) as step:
                q = self._by_rows("q", q_stage, t.queries, k.warp // 4 * ROWS, step)
                own = self._by_rows("k", stage, t.keys, 0, step)
                k.add(ir.WarpgroupProduct(self.s[0], q, own, t.keys, a.kind))

    def _results_of(self, block: Expr, which: str) -> None:
        k, a, t = self.k, self.attention, self.tiling
        with k.ring(f"v_turn{which}", 1, t.stages, stage="v_stage") as (_, stage):
            self._fill("v", self._kept, block * t.keys, t.keys, stage)
            with k.loop("step", t.keys // STEP) as step:
                at = stage * (t.keys * a.head) + step * (STEP * self.line)
                far = t.keys * self.swizzle
                v = ir.Tile("v_tile", at, self.swizzle, "mn", 8 * self.swizzle, far)
                k.add(ir.WarpgroupProduct(self.o[0], self.p[step * 8], v, a.head, a.kind))

    @property
    def _kept(self) -> Expr:
        """The head of keys and values that is of a head of queries."""
        return simplify(Var("head") // (1 if self.tiling.packed else self.attention.groups))

    def _by_rows(
        self, name: str, stage: Expr, side: int, first: Expr | int, step: Expr
    ) -> ir.Tile:  # fmt: skip
        """A factor whose rows are dense, so many steps along them."""
        steps = self.line // STEP
        at = stage * (side * self.attention.head) + step // steps * (side * self.line)
        at = at + first * self.line + step % steps * STEP
        return ir.Tile(f"{name}_tile", at, self.swizzle, "k", 8 * self.swizzle)

    # -- which keys are seen

    def _row(self, half: Expr | int) -> Expr:
        k = self.k
        return Var("row") + k.warp * 16 + k.lane // 4 + half * 8

    def _query(self, half: Expr | int) -> Expr:
        row = self._row(half)
        return row % self.attention.queries if self.tiling.packed else row

    def _key(self, block: Expr, i: Expr | int) -> Expr:
        """Which key register i of scores belongs to."""
        return block * self.tiling.keys + i // 4 * 8 + self.k.lane % 4 * 2 + i % 2

    def _partly(self, block: Expr, last: bool) -> Expr | None:
        """Whether a block may have keys that a query of the tile does not see; None if none has."""
        a, t = self.attention, self.tiling
        first: Expr = Const(0) if t.packed else Var("row")
        many = a.queries if t.packed else t.queries
        touched: list[Expr] = []
        if a.upper is not None:
            # Of blocks that are as long as those of queries, and begin with them, only the last.
            alone = t.keys % t.queries == 0 and a.upper % t.queries == 0 and a.upper >= 0
            if last or t.packed or not alone:
                touched.append((first + a.upper).lt((block + 1) * t.keys - 1))
        if last and a.keys % t.keys and (a.upper is None or a.after > 0):
            touched.append(((block + 1) * t.keys).gt(a.keys))
        if a.lower is not None:
            touched.append((block * t.keys).le(first + (many - 1 + a.lower - 1)))
        asked: Expr | None = None
        for each in touched:
            asked = each if asked is None else asked.or_(each)
        return asked

    def _masked(self, block: Expr, last: bool) -> None:
        """Where a block has keys that a query does not see, they get no weight."""
        k, a, t = self.k, self.attention, self.tiling
        self._mapped(block)
        asked = self._partly(block, last)
        if asked is None:
            return
        with k.when(simplify(asked)), k.loop("i", t.keys // 2) as i:
            key = self._key(block, i)
            seen = key.lt(a.keys)
            if a.upper is not None:
                most = self._query(i // 2 % 2) + a.upper
                within = a.after <= 0 and (t.packed or not a.queries % t.queries)
                seen = key.le(most if within else minimum(most, a.keys - 1))
            if a.lower is not None:
                seen = seen.and_(key.ge(self._query(i // 2 % 2) + a.lower))
            self.s[i] = choose(seen, self.s[i], -inf)

    def _mapped(self, block: Expr) -> None:
        """What scores become before they are weights, some at a time."""
        k, a = self.k, self.attention
        if a.map is None:
            return
        with k.loop("some", self.tiling.keys // 2 // TOGETHER) as some:
            every = [some * TOGETHER + at for at in range(TOGETHER)]
            places = [
                ScorePlace(self._head(i), self._query(i // 2 % 2), self._key(block, i))
                for i in every
            ]
            own = tuple(self.s[i] for i in every)
            made = ScoreWriter(k, a.map, self.extra, places, own).written()
            mapped = k.registers("mapped", f32, TOGETHER)
            for at, each in enumerate(made):
                mapped[at] = each
            for at, i in enumerate(every):
                self.s[i] = mapped[at]

    def _head(self, i: Expr) -> Expr:
        """The head of queries that register i of scores is of."""
        if not self.tiling.packed:
            return Var("head")
        row = self._row(i // 2 % 2)
        return Var("head") * self.attention.groups + row // self.attention.queries

    # -- weights

    def _weighed(self) -> None:
        """The greatest score of each row so far, weights by that measure, and their sums."""
        k, t = self.k, self.tiling
        greatest = self.greatest
        with k.loop("i", CHAINS) as i:
            greatest[i] = self.s[i]
        with k.loop("i", CHAINS, t.keys // 2) as i:
            greatest[i % CHAINS] = greatest[i % CHAINS].max(self.s[i])
        with k.loop("half", HALVES) as half:
            self._most(half, greatest[half * 2].max(greatest[half * 2 + 1]))
        with k.loop("i", t.keys // 2) as i:
            self.s[i] = exp2_ftz(self._beside(self.s[i], self.less[i // 2 % 2]))
        with k.loop("i", t.keys // 2) as i:
            self.total[i % CHAINS] = self.total[i % CHAINS] + self.s[i]

    def _scaled(self, begins: bool = False) -> None:
        """Weights as factors, and results so far by the new measure."""
        k, a, t = self.k, self.attention, self.tiling
        if not begins:
            with k.loop("i", a.head // 2) as i:
                self.o[i] = self.o[i] * self.change[i // 2 % 2]
        with k.loop("i", t.keys // 2) as i:
            self.p[i] = cast(a.dtype, self.s[i])

    def _beside(self, score: ir.Value, measure: ir.Value) -> ir.Value:
        """The exponent of a score's weight. Maps may add anything, such as the lowest number there
        is: what is subtracted first has no product that is none."""
        if self.attention.map is not None:
            return (score - measure) * self.factor
        return fma(score, self.factor, -measure)

    def _most(self, half: Expr, own: ir.Value) -> None:
        """The greatest score of a row is known to all lanes that hold some of it."""
        k = self.k
        greatest = k.registers("greatest_of_row", f32, 1)
        other = k.registers("other", f32, 1)
        greatest[0] = own.max(self.most[half])
        for bit in QUAD:
            other[0] = k.shuffle(greatest[0], bit, "xor")
            greatest[0] = greatest[0].max(other[0])
        # A row that has seen no key so far: any number will do.
        mapped = self.attention.map is not None
        measure: ir.Value = greatest[0] if mapped else greatest[0] * self.factor
        measure = choose(greatest[0].eq(-inf), ir.Number(0.0, f32), measure)
        if mapped:
            self.change[half] = exp2_ftz(self._beside(self.most[half], measure))
        else:  # from measure to measure, as weights are: a product of its own rounds otherwise
            self.change[half] = exp2_ftz((self.less[half] - measure).min(0.0))
        self.less[half] = measure
        self.most[half] = greatest[0]
        for each in (half * 2, half * 2 + 1):
            self.total[each] = self.total[each] * self.change[half]

    # -- results

    def _results(self) -> None:
        k = self.k
        inverse = k.registers("inverse", f32, HALVES)
        self.sum = k.registers("sum", f32, HALVES)
        other = k.registers("other", f32, 1)
        with k.loop("half", HALVES) as half:
            self.sum[half] = self.total[half * 2] + self.total[half * 2 + 1]
            for bit in QUAD:
                other[0] = k.shuffle(self.sum[half], bit, "xor")
                self.sum[half] = self.sum[half] + other[0]
            # The greatest weight of a row is about 1, unless it sees no key; of great scores it is
            # as far from that as their products are rounded. A division would have branches, which
            # depend on what is divided.
            root = rsqrt(self.sum[half].max(2.0**-60))
            inverse[half] = root * root
        with k.loop("half", HALVES) as half:
            row = k.let("own_row", self._row(half))
            if self.rows % self.tiling.queries:
                with k.when(row.lt(self.rows)):
                    self._stored(row, half, inverse)
            else:
                self._stored(row, half, inverse)

    def _stored(self, row: Expr, half: Expr, inverse: RegisterArray) -> None:
        k, a, t = self.k, self.attention, self.tiling
        name, dtype, step = "o", a.dtype, self._step("o")
        first: Expr = Var("head")
        if t.splits > 1:
            name, dtype, step = PARTS, f32, self.rows * a.head
            first = Var("head") * t.splits + Var("split")
        with k.loop("unit", a.head // 8) as unit:
            pair = k.registers("pair", dtype, 2)
            with k.loop("e", 2) as e:
                own = self.o[unit * 4 + half * 2 + e] * inverse[half]
                pair[e] = own if dtype is f32 else cast(dtype, own)
            at = first * step + row * a.head + unit * 8 + k.lane % 4 * 2
            k.add(ir.Store(name, at, pair[0], None, 2))
        if a.sums or t.splits > 1:
            value = fma(self.most[half], a.factor, log2_ftz(self.sum[half]) * log(2))
            line = first * self.rows + row
            sums = self.arrays["lse" if t.splits == 1 else LOGS]
            sums.put(line, value, when=(k.lane % 4).eq(0))
