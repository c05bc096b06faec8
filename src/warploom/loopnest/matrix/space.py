"""The ways to cut a product of matrices up and move it, as one declared space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product as every

import numpy as np

from warploom.loopnest.matrix.product import UNIT, MatrixProduct
from warploom.loopnest.matrix.tiling import LINE, ROWS, Tiling
from warploom.machine.record import Machine
from warploom.search.branching.candidate import Candidates, Flags
from warploom.search.branching.problem import Branch, in_order
from warploom.search.propagate.propagator import Propagator
from warploom.search.space.build import Space

NAMES = tuple(each.name for each in fields(Tiling))
SIDES = (64, 128, 192, 256)
WIDE = (8, 16, 32, 64, 96, 128, 160, 192, 224, 256)
STAGES = (2, 3, 4, 5, 6, 7, 8)
CONSUMERS, CLUSTERS = (1, 2, 3), (1, 2, 4)
BANDS = (1, 4, 8, 16, 32)
BOXES = (0, 1, 2, 4)
LEAST = 32  # columns of a tile, where there are more of them
PRODUCT = "product"  # the one object that all choices are of


class MatrixSpace:
    """`branch` says what is decided next; the order is that of the fields of `Tiling`."""

    def __init__(self, product: MatrixProduct, machine: Machine) -> None:
        self.product, self.machine = product, machine
        self.space = Space(f"product {product.source.name}")
        own = self.space.objects("products", [PRODUCT])
        rows = list(_possible(product, machine))
        at = {name: sorted({getattr(each, name) for each in rows}) for name in NAMES}
        at["band"] = list(_bands(product))
        self.choices = {
            name: self.space.integer(name, own, values=at[name] or [0]) for name in NAMES
        }
        (one,) = own.each("p")
        shared = [name for name in NAMES if name != "band"]
        listed = [tuple(getattr(each, name) for name in shared) for each in rows]
        self.space.table([self.choices[name](one) for name in shared], listed, "what has room")
        self.propagator = Propagator(self.space)
        self.branch: Branch = in_order(self.propagator)

    def tiling(self, candidates: Candidates, row: int = 0) -> Tiling:
        """The tiling of a candidate of which all is decided."""
        found = {name: self.values(candidates, name)[row] for name in NAMES}
        choice = self.choices
        return Tiling(**{n: int(choice[n].values[int(np.argmax(found[n]))]) for n in NAMES})

    def values(self, candidates: Candidates, name: str) -> Flags:
        """[candidates, values]: which values a choice may still have."""
        choice = self.choices[name]
        domains = candidates.domains[:, self.propagator.columns(choice).start]
        bits = np.uint64(1) << np.arange(len(choice.values), dtype=np.uint64)
        found: Flags = (domains[:, None] & bits) != 0
        return found


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
        if made.is_possible(factor, out, machine.shared_bytes_most):
            yield made


def _tiles(product: MatrixProduct, made: Tiling) -> int:
    high, wide = -(-product.rows.size // made.rows), -(-product.columns.size // made.columns)
    return high * wide * product.batches


def _fits(wide: int, product: MatrixProduct) -> bool:
    """Columns side by side in memory come in whole lines."""
    return product.b.dense == "k" or wide % (LINE // product.b.array.dtype.bytes) == 0


def _bands(product: MatrixProduct) -> Iterator[int]:
    high = -(-product.rows.size // SIDES[0])
    return (each for each in BANDS if each == 1 or each < 2 * high)


def _leaves_by_boxes(product: MatrixProduct) -> bool:
    """Results of sixteen bits, whose rows begin where a tensor map can say."""
    access, bytes_ = product.store.access, product.out.dtype.bytes
    steps = [s for axis, s in access.place.factors.items() if axis is not product.columns]
    if bytes_ != 2 or access.place.factors.get(product.columns) != 1 or access.place.offset:
        return False
    return all(s * bytes_ % UNIT == 0 for s in steps)
