"""A product of matrices and how it is cut up for warps → its kernel: asynchronous copies into
stages, matrices loaded from there, products of each warp by itself.

    before the loop    copies of the first stages
    turn t             all wait until stage t is there and the one before is free, which is filled
                       with turn t + stages − 1; then products of stage t

Units of 16 bytes are swizzled by the row, so that neither copies nor loads of matrices meet in a
bank. What is outside of a factor is stored as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import Array
from warploom.kernel.ir import Kernel
from warploom.loopnest.ir import Axis
from warploom.loopnest.matrix.kernel import ByGroups
from warploom.loopnest.matrix.product import Factor, MatrixProduct
from warploom.loopnest.matrix.warp_tiling import ACROSS, DEPTH, DOWN, UNIT, WarpTiling
from warploom.machine.record import Machine

LINE = 8  # units after which a swizzle repeats


def warp_kernel_of(
    product: MatrixProduct,
    tiling: WarpTiling,
    machine: Machine,
    sizes: Mapping[Axis, int] | None = None,
) -> Kernel:
    """The kernel; with `sizes`, the same along shorter axes."""
    return _ByWarps(product, tiling, machine, sizes or {}).kernel()


@dataclass(eq=False)
class _ByWarps(ByGroups):
    tiling: WarpTiling  # type: ignore[assignment]

    def __post_init__(self) -> None:
        t = self.tiling
        self._lengths()
        self.high, self.wide = -(-self.m // t.rows), -(-self.n // t.columns)
        self.tiles = self.high * self.wide * self.batches
        self.unit = UNIT // self.dtype.bytes  # elements of a copy
        self.step = DEPTH // self.dtype.bytes  # terms of one product
        self._begin(t.threads)

    def kernel(self) -> Kernel:
        k, t = self.k, self.tiling
        k.grid(self.tiles)
        k.most_shared(self.machine.shared_bytes_most)
        self.shared: dict[str, Array] = {}
        for name, side in (("a", t.rows), ("b", t.columns)):
            size = t.stages * side * t.deep
            self.shared[name] = k.shared(f"{name}_tile", self.dtype, size, align=128)
        self._named(k.block_x)
        k.let("warp_row", k.warp // t.wide * t.own_rows)
        k.let("warp_column", k.warp % t.wide * t.own_columns)
        k.registers("sums", self.sums, t.sums, 0.0 if self.sums.is_real else 0)
        self._over_the_sum()
        self._leave()
        return self.given.back(k.done(predicate=True))

    # -- stages

    def _over_the_sum(self) -> None:
        k, t = self.k, self.tiling
        turns = -(-self.depth // t.deep)
        for turn in range(min(t.stages - 1, turns)):
            self._copied(Const(turn), Const(turn))
            if turn < t.stages - 2:
                k.add(ir.Barrier("block", t.stages - 1))  # ends a group, and waits for none
        with k.loop("turn", turns, unroll=False) as at:
            k.add(ir.Barrier("block", t.stages - 2))
            later = at + (t.stages - 1)
            with k.when(later.lt(turns)):
                self._copied(later, later % t.stages)
            self._multiplied(k.let("stage", at % t.stages))

    def _copied(self, turn: Expr, stage: Expr) -> None:
        """All threads bring both factors of a turn."""
        p, t = self.product, self.tiling
        for name, side, factor, begin, end in (
            ("a", t.rows, p.a, Var("row"), self.m), ("b", t.columns, p.b, Var("column"), self.n)
        ):  # fmt: skip
            along_k = factor.dense == "k"
            near, far = (t.deep, side) if along_k else (side, t.deep)  # elements of a row; rows
            units = near // self.unit
            with self.k.loop(f"copy_{name}", far * units // t.threads) as number:
                place = number * t.threads + self.k.thread
                line, unit = place // units, place % units
                inside = unit * self.unit
                terms, lines = (inside, line) if along_k else (line, inside)
                at = stage * (side * t.deep) + self._place_of(line, unit, units)
                full = end % side == 0, self.depth % t.deep == 0
                self._copy(name, factor, simplify(begin + lines), end,
                           simplify(turn * t.deep + terms), at, full)  # fmt: skip

    def _place_of(self, line: Expr, unit: Expr, units: int) -> Expr:
        """Where a unit of a row lies: rows shorter than a swizzle share one."""
        together = max(1, LINE // units)  # rows
        turned = unit ^ (line // together % min(LINE, units))
        return simplify(line * (units * self.unit) + turned * self.unit)

    def _copy(
        self, name: str, factor: Factor, line: Expr, end: int, term: Expr, at: Expr,
        full: tuple[bool, bool],
    ) -> None:  # fmt: skip
        k, p = self.k, self.product
        held = k.registers(self.results.fresh("unit"), self.dtype, self.unit)
        first = line * factor.line + term * factor.deep
        if p.batch is not None:
            first = first + Var("batch") * factor.batch
        inside: Expr | None = None if full[0] else line.lt(end)
        if not full[1]:
            known = term.lt(self.depth)
            inside = known if inside is None else inside.and_(known)
        source, tile = self.given.names[factor.array.name], f"{name}_tile"

        def copy() -> None:
            k.add(ir.Load(held[0], source, simplify(first), width=self.unit))
            k.add(ir.Store(tile, at, held[0], width=self.unit, ahead=True))

        if inside is None:
            copy()
            return
        with k.when(inside):
            copy()
        with k.otherwise():
            zero = 0.0 if self.dtype.is_real else 0
            nothing = k.registers(self.results.fresh("nothing"), self.dtype, self.unit, zero)
            k.add(ir.Store(tile, at, nothing[0], width=self.unit))

    # -- products

    def _multiplied(self, stage: Expr) -> None:
        k, t = self.k, self.tiling
        down, across = t.own_rows // DOWN, t.own_columns // ACROSS
        many = self.step // 2  # elements that a lane has of sixteen rows or columns
        with k.loop("step", t.deep // self.step) as step:
            a = k.registers("a_part", self.dtype, many * down)
            b = k.registers("b_part", self.dtype, many * across)
            with k.loop("i", down) as i:
                line = Var("warp_row") + i * DOWN
                self._loaded_matrices("a", a[i * many], line, step, stage)
            with k.loop("j", across) as j:
                line = Var("warp_column") + j * ACROSS
                self._loaded_matrices("b", b[j * many], line, step, stage)
            with k.loop("i", down) as i, k.loop("j", 2 * across) as j:
                target = ir.Cell("sums", (i * (2 * across) + j) * 4, self.sums)
                own = a[i * many], b[j * (many // 2)]
                k.add(ir.TensorProduct(target, *own, self.product.kind))

    def _loaded_matrices(
        self, name: str, target: ir.Cell, line: Expr, step: Expr, stage: Expr
    ) -> None:
        """Sixteen rows or columns of a factor by the terms of a product, as four matrices in the
        order in which products want them: of `a` rows first, of `b` terms first."""
        t, lane = self.tiling, self.k.lane
        factor, side = (
            (self.product.a, t.rows) if name == "a" else (self.product.b, t.columns)
        )  # fmt: skip
        first, second = lane // 8 % 2, lane // 16
        lines, terms = (first, second) if name == "a" else (second, first)
        along_k = factor.dense == "k"
        inside = lane % 8
        line = line + lines * 8 + (inside if along_k else 0)
        term = step * self.step + terms * self.unit + (0 if along_k else inside)
        far, near = (line, term) if along_k else (term, line)
        units = (t.deep if along_k else side) // self.unit
        at = stage * (side * t.deep) + self._place_of(far, near // self.unit, units)
        self.k.add(ir.LoadMatrix(target, f"{name}_tile", simplify(at), 4, not along_k))

    # -- results

    def _leave(self) -> None:
        """Straight from registers, two neighbours at once where they may be."""
        k, t = self.k, self.tiling
        units = t.own_columns // 8
        with k.loop("part", t.own_rows // DOWN) as part, k.loop("half", 2) as half:
            own = Var("warp_row") + part * DOWN + half * 8 + k.lane // 4
            down = k.let("down", Var("row") + own)
            with k.loop("unit", units) as unit:
                first = (part * units + unit) * 4 + half * 2
                own = Var("warp_column") + unit * 8 + k.lane % 4 * 2
                across = k.let("across", Var("column") + own)
                self._neighbours("sums", first, down, across)
