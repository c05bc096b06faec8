"""A tile of tensor cores becomes statements: factors shared out to lanes, and products.

    for k of a tile: for i, j of a thread: acc[i, j] += a[i, k]·b[k, j]
    →   lane 4g + t loads a[i, t], a[i, t + 4] of its own rows, b[t, c], b[t + 4, c] of column g
        of the warp, and all multiply

Which iterations of k a lane has does not matter, if it has the same of both factors: of bf16 those
are t, t + 4, t + 8 and t + 12, so that lanes meet the same banks of shared memory.

Sums stay where they are without tensor cores: thread t of four has columns 2t and 2t + 1 of a
product, thread g of eight the rows g and g + 8, which are two of its sums along that side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product as all_of

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell, Load, Registers, Stmt, TensorProduct
from warploom.kernel.tensor import widths
from warploom.loopnest import ir
from warploom.loopnest.decided import Implementation, Loop
from warploom.loopnest.indices import Places
from warploom.loopnest.tile import GROUPS, LANES, Product, products

LANE, GROUP = Var("thread") % LANES, Var("thread") // LANES % GROUPS
Index = Mapping[ir.Dim, Expr]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Sums of a thread along the rows or columns: its unrolled dimensions, that of pairs last."""

    dims: tuple[ir.Dim, ...]
    sizes: tuple[int, ...]

    @property
    def pair(self) -> ir.Dim:
        return self.dims[-1]

    @property
    def pairs(self) -> int:
        return math.prod(self.sizes) // 2

    def index(self, number: int, half: Expr) -> Index:
        """The index of one of the two sums of a pair."""
        *outer, last = all_places(self.sizes)[number]
        found: dict[ir.Dim, Expr] = dict(zip(self.dims, map(Const, outer), strict=False))
        return found | {self.pair: simplify(half + 2 * last)}


def all_places(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    *outer, last = sizes
    return list(all_of(*map(range, outer), range(last // 2)))


class Multiplier:
    """`made` are the products that tensor cores do, by their folds; `registers` what they need."""

    def __init__(self, at: Places, cell: Callable[[ir.Instruction, Index], Cell]) -> None:
        self.at, self.made, self.cell = at, at.made, cell
        self.kind = at.made.target.tensor or "tf32"
        self.products = {
            each.fold: each
            for each in (products(at.made.program) if at.made.target.tensor else ())
            if any(at.made.kind[dim] == "TENSOR" for dim in each.deep)
        }
        self.registers: dict[str, Registers] = {}

    @property
    def gets(self) -> set[ir.Instruction]:
        """Loads that have no registers of their own."""
        return {get for each in self.products.values() for get in each.instructions[1:]}

    def pairs(self, fold: ir.Instruction) -> tuple[ir.Dim, ir.Dim] | None:
        """The two dimensions whose pairs of sums are neighbouring registers."""
        made = self.products.get(fold)
        return None if made is None else (side_of(self.made, made, 0).pair,
                                          side_of(self.made, made, 1).pair)  # fmt: skip

    def statements(self, loop: Loop) -> Iterator[Stmt]:
        product = next(p for p in self.products.values() if set(loop.dims) & set(p.deep))
        rows, columns = (side_of(self.made, product, which) for which in (0, 1))
        before = dict(self.at.index)
        _, in_a, in_b = widths(self.kind)
        beside = in_a // 4  # numbers of one register of the hardware
        a, b = (
            self._array(product.temporaries[which], side.pairs * count)
            for which, (side, count) in enumerate(((rows, in_a), (columns, in_b)))
        )
        for number in range(rows.pairs):
            for half, deep in all_of((0, 1), range(in_b)):
                outer, inner = divmod(deep, beside)
                place = in_a * number + inner + beside * (half + 2 * outer)
                index = rows.index(number, Const(half))
                yield self._load(product, 0, loop, deep, index, Cell(a, Const(place), DType.F32))
        thread = self._thread(product)
        for number in range(columns.pairs):
            for deep in range(in_b):
                index = {**columns.index(number, GROUP % 2), thread: GROUP // 2}
                place = in_b * number + deep
                yield self._load(product, 1, loop, deep, index, Cell(b, Const(place), DType.F32))
        self.at.index.clear()
        self.at.index |= before
        for i, j in all_of(range(rows.pairs), range(columns.pairs)):
            # Loops around are of what is neither a row nor a column, such as a batch.
            sums = {**before, **rows.index(i, Const(0)), **columns.index(j, Const(0))}
            left, right = Cell(a, Const(in_a * i), DType.F32), Cell(b, Const(in_b * j), DType.F32)
            yield TensorProduct(self.cell(product.fold, sums), left, right, self.kind)

    def _array(self, temporary: ir.Temporary, size: int) -> str:
        name = self.at.name(f"{temporary.get.name}.fragment")
        self.registers[name] = Registers(name, DType.F32, size)
        return name

    def _thread(self, product: Product) -> ir.Dim:
        """Along which the threads of a row of lanes are."""
        return next(
            dim for dim in product.across(1)
            if self.made.kind[dim] == "THREAD" and self.made.level[dim] == 0
        )  # fmt: skip

    def _load(
        self, product: Product, which: int, loop: Loop, deep: int, index: Index, target: Cell
    ) -> Load:
        temporary = product.temporaries[which]
        self.at.index |= dict.fromkeys(loop.dims, simplify(LANE + 4 * deep))
        for dim, here in index.items():
            for get in product.gets(dim):
                self.at.index[get] = simplify(here)
        return Load(target, self.at.array(temporary), self.at.cell(temporary.get))


def side_of(made: Implementation, product: Product, which: int) -> Side:
    dims = [dim for dim in product.across(which) if made.kind[dim] == "UNROLL"]
    # Neighbours, if there are some: they lie beside each other in memory.
    even = next(dim for dim in reversed(dims) if made.size_of(dim) % 2 == 0)
    listed = (*(dim for dim in dims if dim is not even), even)
    return Side(listed, tuple(made.size_of(dim) for dim in listed))
