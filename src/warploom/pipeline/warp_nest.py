"""Products of matrices by warps explored: their own space in place of that of loops, as
`matrix_nest.py` has one for those by warp groups."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.kernel.ir import Kernel
from warploom.loopnest.ir import Axis
from warploom.loopnest.matrix.bound import MatrixBound
from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.warp_kernel import warp_kernel_of
from warploom.loopnest.matrix.warp_space import WarpSpace
from warploom.loopnest.matrix.warp_tiling import WarpTiling
from warploom.loopnest.matrix.words import warp_words
from warploom.loopnest.strategies.form import WARPS
from warploom.pipeline.matrix_nest import MatrixNest, Short, shortened
from warploom.search.branching.candidate import Candidates


class WarpNest(MatrixNest):
    """A space of tilings with a bound."""

    kind = WARPS
    space: WarpSpace  # type: ignore[assignment]

    def _make_space(self) -> None:
        self.product = matrix_product(self.program)
        self.space = WarpSpace(self.product, self.target.machine)
        self.bound = MatrixBound(self.space, self.rates)

    def threads_of(self, candidate: Candidates) -> int:
        return self.tiling(candidate).threads

    def tiling(self, candidate: Candidates) -> WarpTiling:  # type: ignore[override]
        return self.space.tiling(candidate)

    def kernel(self, candidate: Candidates) -> Kernel:
        return warp_kernel_of(self.product, self.tiling(candidate), self.target.machine)

    def short(  # type: ignore[override]
        self, tiling: WarpTiling, sizes: Mapping[Axis, int] | None = None
    ) -> Short:
        sizes = shortened(self.product, tiling) if sizes is None else sizes
        return Short((warp_kernel_of(self.product, tiling, self.target.machine, sizes),), sizes)

    def _words(self, candidate: Candidates) -> list[str]:
        return warp_words(self.product, self.tiling(candidate))
