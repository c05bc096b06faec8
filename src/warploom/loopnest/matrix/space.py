"""The ways to cut a product of matrices up and move it, as one declared space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import product as every

from warploom.loopnest.matrix.product import UNIT, MatrixProduct
from warploom.loopnest.matrix.tiling import LINE, ROWS, Tiling, line_bytes
from warploom.loopnest.tiled import TiledSpace
from warploom.machine.record import Machine
from warploom.search.branching.candidate import Candidates

NAMES = tuple(each.name for each in fields(Tiling))
SIDES = (64, 128, 192, 256)
WIDE = (8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)
STAGES = (2, 3, 4, 5, 6, 7, 8)
CONSUMERS, CLUSTERS = (1, 2, 3), (1, 2, 4)
SPLITS = (2, 3, 4, 5, 6, 8)
BANDS = (1, 4, 8, 16, 32)
BOXES = (0, 1, 2, 4)
LEAST = 32  # columns of a tile, where there are more of them


class MatrixSpace(TiledSpace):
    """The order of decisions is that of the fields of `Tiling`. `rows` are all tilings, but for
    their bands."""

    def __init__(self, product: MatrixProduct, machine: Machine) -> None:
        self.product, self.machine = product, machine
        self.rows = rows = list(_possible(product, machine))
        values = {name: [getattr(each, name) for each in rows] for name in NAMES}
        values["band"] = list(_bands(product))
        listed = [name for name in NAMES if name != "band"]
        own = [tuple(getattr(each, name) for name in listed) for each in rows]
        super().__init__(f"product {product.source.name}", "product", values, listed, own)

    def tiling(self, candidates: Candidates, row: int = 0) -> Tiling:
        """The tiling of a candidate of which all is decided."""
        return Tiling(**self.decided(candidates, row))


def _possible(product: MatrixProduct, machine: Machine) -> Iterator[Tiling]:
    """All that has room, whatever the band; nothing is longer than what there is of it."""
    factor, out = product.a.array.dtype, product.out.dtype
    m, n, k = product.rows.size, product.columns.size, product.over.size
    line = LINE // factor.bytes
    rows = [each for each in SIDES if each < m + ROWS]
    wide = [each for each in WIDE if _fits(each, product)]
    wide = [w for w in wide if w >= min(LEAST, n) and w < n + LEAST] or wide[:1]
    deep = [each for each in (line, 2 * line) if each < k + line]
    boxes = BOXES if _leaves_by_boxes(product) else (0,)
    for made in _split(product, machine, every(rows, wide, deep, STAGES, CONSUMERS, SPLITS)):
        if made.is_possible(factor, out, machine.shared_bytes_most, product.is_turned):
            yield made
    sides = every(rows, wide, deep, STAGES, CONSUMERS, CLUSTERS, boxes, (0, 1), (0, 1))
    for r, c, d, s, w, x, b, beside, turn in sides:
        made = Tiling(r, c, d, s, w, x, BANDS[0], b, beside, turn)
        if (s > 2 and (s - 1) * d >= k + d) or (x == 1 and beside):
            continue
        if x > 1 and (c * x >= n + c if beside else r * x >= m + r):
            continue
        if turn and (w != 2 or _tiles(product, made) <= 2 * machine.multiprocessors):
            continue
        if x > 1 and (product.a if beside else product.b).dense == "mn" and d % (8 * x):
            continue
        if made.is_possible(factor, out, machine.shared_bytes_most, product.is_turned):
            yield made


def _split(
    product: MatrixProduct, machine: Machine, sides: Iterable[tuple[int, ...]]
) -> Iterator[Tiling]:
    """Where tiles are fewer than processors, several make one, and each fills all of its stages."""
    for r, c, d, s, w, split in sides:
        made = Tiling(r, c, d, s, w, 1, BANDS[0], 0, split=split)
        blocks = _tiles(product, made) * split
        turns = -(-product.over.size // d) // split
        if blocks <= machine.multiprocessors and turns >= s:
            yield made


def _tiles(product: MatrixProduct, made: Tiling) -> int:
    high, wide = -(-product.rows.size // made.rows), -(-product.columns.size // made.columns)
    return high * wide * product.batches


def _fits(wide: int, product: MatrixProduct) -> bool:
    """Columns side by side in memory come in whole lines."""
    return line_bytes(wide * product.b.array.dtype.bytes, product.b.dense) > 0


def _bands(product: MatrixProduct) -> Iterator[int]:
    high = -(-product.rows.size // SIDES[0])
    return (each for each in BANDS if each == 1 or each < 2 * high)


def _leaves_by_boxes(product: MatrixProduct) -> bool:
    """Results of sixteen bits, whose rows begin where a tensor map can say."""
    access, bytes_ = product.store.access, product.out.dtype.bytes
    near = product.rows if product.is_turned else product.columns
    steps = [s for axis, s in access.place.factors.items() if axis is not near]
    if bytes_ != 2 or access.place.factors.get(near) != 1 or access.place.offset:
        return False
    return all(s * bytes_ % UNIT == 0 for s in steps)
