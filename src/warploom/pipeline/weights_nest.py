"""A product of packed weights explored: its own space in place of that of loops, as
`matrix_nest.py` has one for products of warp groups."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.kernel.ir import Kernel
from warploom.loopnest.ir import Axis
from warploom.loopnest.strategies.form import WEIGHTS
from warploom.loopnest.weights.bound import WeightBound, expected
from warploom.loopnest.weights.kernel import kernel_of
from warploom.loopnest.weights.product import WeightProduct, weight_product
from warploom.loopnest.weights.space import WeightSpace
from warploom.loopnest.weights.tiling import LANES, WeightTiling
from warploom.loopnest.weights.words import tiling_words
from warploom.pipeline.matrix_nest import MatrixNest, Short
from warploom.search.branching.candidate import Candidates


class WeightsNest(MatrixNest):
    """A space of tilings with a bound."""

    kind = WEIGHTS
    product: WeightProduct  # type: ignore[assignment]
    space: WeightSpace  # type: ignore[assignment]
    bound: WeightBound  # type: ignore[assignment]

    def _make_space(self) -> None:
        self.product = weight_product(self.program)
        self.space = WeightSpace(self.product, self.target.machine)
        self.bound = WeightBound(self.space, self.rates)

    def tiling(self, candidate: Candidates) -> WeightTiling:  # type: ignore[override]
        return self.space.tiling(candidate)

    def threads_of(self, candidate: Candidates) -> int:
        return LANES * self.tiling(candidate).warps

    def kernel(self, candidate: Candidates) -> Kernel:
        return kernel_of(self.product, self.tiling(candidate), self.target.machine)

    def _expected(self, candidate: Candidates) -> float:
        return expected(self.product, self.tiling(candidate), self.rates)

    def _words(self, candidate: Candidates) -> list[str]:
        return tiling_words(self.product, self.tiling(candidate))

    def short(  # type: ignore[override]
        self, tiling: WeightTiling, sizes: Mapping[Axis, int] | None = None
    ) -> Short:
        sizes = shortened(self.product, tiling) if sizes is None else sizes
        return Short((kernel_of(self.product, tiling, self.target.machine, sizes),), sizes)


def shortened(product: WeightProduct, tiling: WeightTiling) -> Mapping[Axis, int]:
    """A tile and a part of one along results; along the sum what blocks have at once, and again a
    part of it."""

    def cut(axis: Axis, tile: int) -> int:
        return min(axis.size, tile + axis.size % tile)

    return {
        product.rows: cut(product.rows, tiling.rows),
        product.columns: cut(product.columns, tiling.columns),
        product.over: cut(product.over, tiling.span(product.deep) * tiling.cluster),
    }
