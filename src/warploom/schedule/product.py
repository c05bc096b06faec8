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
from collections.abc import Iterator, Mapping
from itertools import product as all_of

from warploom.index.ir import Const, Expr, Var
from warploom.index.laws import simplify
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cell, Load, Stmt, TensorProduct
from warploom.kernel.tensor import COLUMNS, widths
from warploom.schedule.context import Context
from warploom.schedule.ir import Product, Side
from warploom.schedule.value import Writer

LANES = COLUMNS // 2  # threads of a warp along the columns: each has two of them
GROUPS = 8  # and along the rows, each with two as well
LANE, GROUP = Var("thread") % LANES, Var("thread") // LANES % GROUPS
Index = Mapping[str, Expr]


def pairs_of(side: Side) -> int:
    return math.prod(size for _, size in side.counters) // 2


def _index(side: Side, number: int, half: Expr) -> Index:
    """The index of one of the two sums of a pair."""
    sizes = [size for _, size in side.counters]
    places = list(all_of(*map(range, sizes[:-1]), range(sizes[-1] // 2)))
    *outer, last = places[number]
    names = [name for name, _ in side.counters]
    found: dict[str, Expr] = dict(zip(names, map(Const, outer), strict=False))
    return found | {names[-1]: simplify(half + 2 * last)}


def multiplied(product: Product, writer: Writer, at: Context) -> Iterator[Stmt]:
    """Loads of both factors, and products of all pairs of rows and columns."""
    rows, columns = product.rows, product.columns
    _, in_a, in_b = widths(product.kind)
    beside = in_a // 4  # numbers of one register of the hardware
    a = writer.fresh(DType.F32, pairs_of(rows) * in_a)
    b = writer.fresh(DType.F32, pairs_of(columns) * in_b)

    def load(cell: Cell, deep: int, index: Index, target: Cell, place: int) -> Load:
        here = at.at({**index, product.deep: simplify(LANE + 4 * deep)})
        array, where = writer.memory.place(cell, here)
        return Load(Cell(target.name, Const(place), DType.F32), array, where)

    for number in range(pairs_of(rows)):
        for half, deep in all_of((0, 1), range(in_b)):
            outer, inner = divmod(deep, beside)
            place = in_a * number + inner + beside * (half + 2 * outer)
            yield load(product.left, deep, _index(rows, number, Const(half)), a, place)
    for number in range(pairs_of(columns)):
        for deep in range(in_b):
            index = {**_index(columns, number, simplify(GROUP % 2)),
                     product.thread: simplify(GROUP // 2)}  # fmt: skip
            yield load(product.right, deep, index, b, in_b * number + deep)
    for i, j in all_of(range(pairs_of(rows)), range(pairs_of(columns))):
        here = at.at({**_index(rows, i, Const(0)), **_index(columns, j, Const(0))})
        left = Cell(a.name, Const(in_a * i), DType.F32)
        right = Cell(b.name, Const(in_b * j), DType.F32)
        yield TensorProduct(writer.memory.held(product.sums, here), left, right, product.kind)
