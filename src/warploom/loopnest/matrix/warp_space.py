"""The ways to cut a product of matrices up for warps, as one declared space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product as every

from warploom.loopnest.matrix.product import MatrixProduct
from warploom.loopnest.matrix.warp_tiling import UNIT, WarpTiling
from warploom.loopnest.strategies.form import NotMeantError
from warploom.loopnest.tiled import TiledSpace
from warploom.machine.record import Machine
from warploom.search.branching.candidate import Candidates

NAMES = tuple(each.name for each in fields(WarpTiling))
HIGH, WIDE = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256)
DEEP = (64, 128)  # bytes
TYPES = ("bf16", "f16", "i8", "u8")  # of which sm_80 has products
STAGES, WARPS, BANDS = (2, 3, 4, 5), (1, 2, 4, 8), (1, 4, 8, 16)


class WarpSpace(TiledSpace):
    """The order of decisions is that of the fields of `WarpTiling`."""

    def __init__(self, product: MatrixProduct, machine: Machine) -> None:
        check_meant(product)
        self.product, self.machine = product, machine
        rows = [tuple(getattr(each, name) for name in NAMES) for each in possible(product, machine)]
        values = {name: [row[at] for row in rows] for at, name in enumerate(NAMES)}
        super().__init__(f"product {product.source.name}", "product", values, NAMES, rows)

    def tiling(self, candidates: Candidates, row: int = 0) -> WarpTiling:
        """The tiling of a candidate of which all is decided."""
        return WarpTiling(**self.decided(candidates, row))


def check_meant(product: MatrixProduct) -> None:
    """Whole units of sixteen bytes are inside, or outside."""
    for factor, side in ((product.a, product.rows), (product.b, product.columns)):
        if product.kind not in TYPES:
            raise NotMeantError(f"warps of all machines multiply {', '.join(TYPES)} alone")
        dense = product.over if factor.dense == "k" else side
        if dense.size * factor.array.dtype.bytes % UNIT:
            raise NotMeantError(f"axis '{dense}' of {dense.size} ends inside of {UNIT} bytes")


def possible(product: MatrixProduct, machine: Machine) -> Iterator[WarpTiling]:
    """All that has room; nothing is much longer than what there is of it."""
    m, n, k = product.rows.size, product.columns.size, product.over.size
    high = [each for each in HIGH if each < 2 * m] or HIGH[:1]
    wide = [each for each in WIDE if each < 2 * n] or WIDE[:1]
    # Rows of a factor whose neighbours are not along the sum are whole swizzles.
    high = [each for each in high if product.a.dense == "k" or each >= 64]
    wide = [each for each in wide if product.b.dense == "k" or each >= 64]
    bands = [each for each in BANDS if each == 1 or each * HIGH[0] < 2 * m]
    deep = [each // product.a.array.dtype.bytes for each in DEEP]
    for r, c, d, s, h, w, b in every(high, wide, deep, STAGES, WARPS, WARPS, bands):
        made = WarpTiling(r, c, d, s, h, w, b)
        longer = s > 2 and (s - 1) * d >= k + d
        if not longer and made.is_possible(product.a.array.dtype, machine.shared_bytes_most):
            yield made
