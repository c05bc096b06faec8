"""Matmuls of Hopper as kernels: persistent blocks, a ring that one warp group fills, products of
the others, and how the result leaves. `setting.kernel()` is one, for all sizes.

    c[m, n] = a · b    a is [m, k], or [k, m] if m is dense; b is [n, k], or [k, n] if n is dense
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warploom.index.ir import Expr, Var, maximum, minimum
from warploom.kernel import ir
from warploom.kernel.build import Builder, cast, ceil_div
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.kernel.tensor import types_of
from warploom.kernel.warpgroup import Major

ROWS, WIDTH = 64, 128  # of a product; bytes of a row in shared memory
MOST_SHARED = 232448  # bytes of a block on an H200
REGISTERS = {1: (56, 240), 2: (40, 232), 3: (32, 160)}  # by consumers


@dataclass(frozen=True)
class Setting:
    """`tile` is of the result and of a stage along k; `band` rows of tiles are done together;
    `staged` the boxes through which the result leaves, 0 if straight from registers; blocks of a
    `cluster` lie below each other and share what they read of b. `apart`: each consumer has tiles
    of its own, in turn."""

    tile: tuple[int, int, int] = (128, 128, 64)
    stages: int = 4
    consumers: int = 2
    band: int = 8
    cluster: int = 1
    staged: int = 0
    kind: ir.TensorKind = "bf16"
    out: DType = DType.BF16
    majors: tuple[Major, Major] = ("k", "k")
    apart: bool = False

    @property
    def name(self) -> str:
        sides = "x".join(map(str, self.tile))
        parts = [sides, f"s{self.stages}", f"w{self.consumers}", f"b{self.band}"]
        parts += ["apart"] * self.apart
        parts += [f"c{self.cluster}"] * (self.cluster > 1)
        parts += [f"t{self.staged}"] * (self.staged > 0)
        dense = "".join(each[0] for each in self.majors)
        return "_".join([self.kind, dense, *parts])

    @property
    def dtype(self) -> DType:
        return types_of(self.kind)[1][0]

    @property
    def sums(self) -> DType:
        return types_of(self.kind)[0]

    @property
    def row(self) -> int:
        """Elements of a row in shared memory."""
        return WIDTH // self.dtype.bytes

    @property
    def shared_bytes(self) -> int:
        m, n, k = self.tile
        each = (m + n) * k * self.dtype.bytes
        sent = m * (self.consumers if self.apart else 1)
        return (
            self.stages * (each + 16) + self.staged * sent * WIDTH + 8 * self.consumers * self.apart
        )

    def kernel(self) -> Kernel:
        return _Made(self).kernel()

    def blocks(self, m: int, n: int, processors: int) -> int:
        """Of a launch with these sizes."""
        tall, wide = self.tile[0] * self.cluster, self.tile[1]
        tiles = -(-m // tall) * -(-n // wide)
        return self.cluster * min(tiles, processors // self.cluster)


class _Made:
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        m, n, k = setting.tile
        self.tall, self.wide, self.deep = m, n, k
        self.own = m if setting.apart else m // setting.consumers  # rows of a consumer
        self.parts = self.own // ROWS  # products below each other
        self.step = 32 // setting.dtype.bytes
        self.k = Builder(f"matmul_{setting.name}", block=128 * setting.consumers, doc=(
            f"c = a b: {setting.kind}, tiles of {m} x {n} x {k}, {setting.stages} stages"
        ))  # fmt: skip

    def kernel(self) -> Kernel:
        k, setting = self.k, self.setting
        self.m, self.n, self.depth = (k.scalar(each) for each in ("m", "n", "k"))
        self.clusters = k.scalar("clusters")
        a = k.array("a", setting.dtype, self.m * self.depth, const=True)
        b = k.array("b", setting.dtype, self.n * self.depth, const=True)
        self.c = k.array("c", setting.out, self.m * self.n)
        for each in (self.m, self.n, self.depth, self.clusters):
            k.require(each.ge(1))
        if not setting.staged:
            k.require((self.n % 2).eq(0))
        self.tiles_m = ceil_div(self.m, self.tall * setting.cluster)
        self.tiles_n = ceil_div(self.n, self.wide)
        self.tiles = self.tiles_m * self.tiles_n
        k.grid(minimum(self.clusters, self.tiles) * setting.cluster)
        k.cluster(setting.cluster)
        k.roles(*REGISTERS[setting.consumers])
        k.most_shared(MOST_SHARED)
        self._maps(a, b)
        self._arrays()
        tiles = k.let("tiles", self.tiles)
        by = k.let("by", minimum(self.clusters, tiles))
        count = k.let("count", ceil_div(self.depth, self.deep))
        with k.loop("turn", (tiles - self._cluster + (by - 1)) // by) as turn:
            if setting.apart:
                with k.ping_pong():
                    self._tile(self._cluster + turn * by, count)
            else:
                self._tile(self._cluster + turn * by, count)
        return k.done(predicate=True)

    @property
    def _cluster(self) -> Expr:
        block, many = Var("block_x"), self.setting.cluster
        return block // many if many > 1 else block

    # -- what there is

    def _maps(self, a: Any, b: Any) -> None:
        k, row, setting = self.k, self.setting.row, self.setting
        of_a, of_b = setting.majors
        share = setting.cluster
        if of_a == "k":
            k.tensor_map("a_map", a, (self.m, self.depth), (self.tall, row), WIDTH)
        else:
            k.tensor_map("a_map", a, (self.depth, self.m), (self.deep, row), WIDTH)
        if of_b == "k":
            k.tensor_map("b_map", b, (self.n, self.depth), (self.wide // share, row), WIDTH)
        else:
            k.tensor_map("b_map", b, (self.depth, self.n), (self.deep // share, row), WIDTH)
        if setting.staged:
            out = WIDTH // setting.out.bytes
            k.tensor_map("c_map", self.c, (self.m, self.n), (self.own, out), WIDTH)

    def _arrays(self) -> None:
        k, setting, many = self.k, self.setting, self.setting.stages
        k.shared("a_tile", setting.dtype, many * self.tall * self.deep, align=1024)
        k.shared("b_tile", setting.dtype, many * self.wide * self.deep, align=1024)
        for number in range(setting.staged):
            size = setting.consumers * self.own * 64
            k.shared(f"c_tile_{number}", setting.out, size, align=1024)

    # -- what is done

    def _tile(self, tile: Expr, count: Expr) -> None:
        """One tile: the sums, then the result. Tiles of a band go down first."""
        k, setting = self.k, self.setting
        tile = k.let("tile", tile)
        band, wide = setting.band, k.let("wide", self.tiles_n)
        first = k.let("first", tile // (wide * band) * band)
        high = k.let("high", maximum(minimum(self.tiles_m - first, band), 1))
        inside = k.let("inside", tile % (wide * band))
        down: Expr = first + inside % high
        if setting.cluster > 1:
            down = down * setting.cluster + k.block_x % setting.cluster
        k.let("row", down * self.tall)
        k.let("column", inside // high * self.wide)
        k.registers("d", setting.sums, self.parts * self.wide // 2)
        with k.ring("t", count, setting.stages, stage="stage",
                    sums=("d",)) as (t, stage):  # fmt: skip
            self._fills(t * self.deep, stage)
            self._products(stage)
        (self._staged if setting.staged else self._direct)()

    def _fills(self, at: Expr, stage: Expr) -> None:
        row, split = self.setting.row, 0 if self.setting.cluster > 1 else None
        for name, side, dense, begin, cut in (
            ("a", self.tall, self.setting.majors[0], Var("row"), None),
            ("b", self.wide, self.setting.majors[1], Var("column"), split),
        ):
            first = stage * (side * self.deep)
            for part in range((self.deep if dense == "k" else side) // row):
                where: tuple[Expr, ...] = (begin, at + part * row)
                far = part * side * row
                if dense != "k":
                    where, far = (at, begin + part * row), part * self.deep * row
                self.k.add(ir.Fill(f"{name}_map", where, f"{name}_tile", first + far, cut))

    def _factor(self, name: str, stage: Expr, line: Expr | int, step: Expr) -> ir.Tile:
        """The factor whose first row or column of the tile is `line`, so many steps along k."""
        of = 0 if name == "a" else 1
        side, dense = (self.tall, self.wide)[of], self.setting.majors[of]
        row, first = self.setting.row, stage * (side * self.deep)
        if dense == "k":
            steps = row // self.step
            at = first + step // steps * (side * row) + line * row + step % steps * self.step
            return ir.Tile(f"{name}_tile", at, WIDTH, "k", 8 * WIDTH)
        at = first + line * self.deep + step * (self.step * row)
        return ir.Tile(f"{name}_tile", at, WIDTH, "mn", 8 * WIDTH, self.deep * WIDTH)

    def _products(self, stage: Expr) -> None:
        k, setting = self.k, self.setting
        with k.loop("step", self.deep // self.step) as step, k.loop("part", self.parts) as part:
            line = self._line(part)
            target = ir.Cell("d", part * (self.wide // 2), setting.sums)
            a, b = self._factor("a", stage, line, step), self._factor("b", stage, 0, step)
            k.add(ir.WarpgroupProduct(target, a, b, self.wide, setting.kind))

    def _line(self, part: Expr) -> Expr:
        """The first row of the tile that is of a consumer's product."""
        return (part if self.setting.apart else self.k.warp // 4 * self.parts + part) * ROWS

    def _direct(self) -> None:
        """Straight from registers, two neighbours at once."""
        k, out = self.k, self.setting.out
        with k.loop("part", self.parts) as part, k.loop("half", 2) as half:
            own = self._line(part) + k.warp % 4 * 16 + k.lane // 4
            down = k.let("down", Var("row") + own + half * 8)
            with k.loop("unit", self.wide // 8) as unit:
                across = k.let("across", Var("column") + unit * 8 + k.lane % 4 * 2)
                # A condition on the store alone would have ptxas let products wait for each other.
                with k.when(down.lt(self.m).and_((across + 2).le(self.n))):
                    pair = k.registers("pair", out, 2)
                    with k.loop("e", 2) as e:
                        held = ir.Cell("d", part * (self.wide // 2) + unit * 4 + half * 2 + e,
                                       self.setting.sums)  # fmt: skip
                        pair[e] = held if out is self.setting.sums else cast(out, held)
                    k.add(ir.Store("c", down * self.n + across, pair[0], None, 2))

    def _staged(self) -> None:
        """Through shared memory, a box of 64 columns after another."""
        for box in range(self.wide // 64):
            name = f"c_tile_{box % self.setting.staged}"
            self._box(name, box)
            group = self.k.warp // 4
            down: Expr = Var("row")
            if not self.setting.apart:
                down = down + group * self.own
            at = (down, Var("column") + box * 64)
            self.k.add(ir.BulkStore("c_map", at, name, group * (self.own * 64), "group"))

    def _box(self, name: str, box: int) -> None:
        """Sixteen columns at once, as matrices; units of 16 bytes swizzled by the row."""
        k, out = self.k, self.setting.out
        with k.loop("part", self.parts) as part, k.loop("unit", 4) as unit:
            held = k.registers("held", out, 8)
            with k.loop("e", 8) as e:
                first = part * (self.wide // 2) + box * 32 + unit * 8
                held[e] = cast(out, ir.Cell("d", first + e, self.setting.sums))
            down = (k.warp // 4 * self.parts + part) * ROWS + k.warp % 4 * 16 + k.lane % 16
            across = (unit * 2 + k.lane // 16) ^ (k.lane % 8)
            k.add(ir.StoreMatrix(name, down * 64 + across * 8, held[0], 4))
