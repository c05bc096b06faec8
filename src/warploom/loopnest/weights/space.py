"""The ways to cut a product of packed weights up, as one declared space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product as every

from warploom.loopnest.tiled import TiledSpace
from warploom.loopnest.weights.product import WeightProduct
from warploom.loopnest.weights.tiling import ROWS, WeightTiling
from warploom.machine.record import Machine
from warploom.search.branching.candidate import Candidates

NAMES = tuple(each.name for each in fields(WeightTiling))
SIDES = (16, 32, 64)
WIDE, BESIDE, PARTS = (1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8, 16)
MOST_HELD = 255  # elements of an array of registers, bytes too
CLUSTERS, AHEAD = (1, 2, 4, 8), (1, 2, 4)


class WeightSpace(TiledSpace):
    """The order of decisions is that of the fields of `WeightTiling`."""

    def __init__(self, product: WeightProduct, machine: Machine) -> None:
        self.product, self.machine = product, machine
        rows = [tuple(getattr(each, name) for name in NAMES) for each in possible(product, machine)]
        values = {name: [row[at] for row in rows] for at, name in enumerate(NAMES)}
        super().__init__(f"weights {product.source.name}", "product", values, NAMES, rows)

    def tiling(self, candidates: Candidates, row: int = 0) -> WeightTiling:
        """The tiling of a candidate of which all is decided."""
        return WeightTiling(**self.decided(candidates, row))


def possible(product: WeightProduct, machine: Machine) -> Iterator[WeightTiling]:
    """All that has room; nothing is longer than what there is of it."""
    m, n, k = product.rows.size, product.columns.size, product.over.size
    deep, bits = product.deep, product.weights.bits
    sides = [each for each in SIDES if each < m + ROWS]
    for r, w, b, p, c, a in every(sides, WIDE, BESIDE, PARTS, CLUSTERS, AHEAD):
        made = WeightTiling(r, w, b, p, c, a)
        whole = made.span(deep) * c
        if made.columns >= n + 64 or (whole > deep * 4 and whole >= 2 * k):
            continue
        if a * w * product.held > MOST_HELD:
            continue
        if made.is_possible(deep, bits, machine.shared_bytes_most):
            yield made
