"""A product of matrices explored: the space of warp groups, in place of that of loops.

It answers what a `Nest` answers, so that races, stores, commands and pictures are the same for
both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warploom.errors import UnsupportedError
from warploom.kernel.ir import Kernel
from warploom.kernel.schedule import schedule_text
from warploom.kernel.warpgroup import GROUP
from warploom.loopnest.decided import Implementation
from warploom.loopnest.ir import Axis, Program
from warploom.loopnest.matrix.bound import MatrixBound, expected
from warploom.loopnest.matrix.kernel import kernel_of
from warploom.loopnest.matrix.product import MatrixProduct, matrix_product
from warploom.loopnest.matrix.space import MatrixSpace
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.matrix.warp_tiling import WarpTiling
from warploom.loopnest.matrix.words import tiling_words
from warploom.loopnest.schedule import limit_words
from warploom.loopnest.strategies.form import MATRIX, TURNED
from warploom.loopnest.target import Target
from warploom.loopnest.trial import Tried, tried_kernels
from warploom.machine.rates import Rates
from warploom.machine.times import time_words
from warploom.pipeline.nest import Nest, Recipe, Then
from warploom.search.branching.candidate import Candidates
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem
from warploom.search.budget import Budget, BudgetSpentError

DRAWS = 8  # for each that is tried
OPENED = 4  # choices at once, near what was good


class MatrixNest(Nest):
    """A space of tilings with a bound. Which kernel runs after it is a nest of loops."""

    kind, is_turned = MATRIX, False
    space: MatrixSpace  # type: ignore[assignment]
    bound: MatrixBound  # type: ignore[assignment]

    def __init__(
        self,
        program: Program,
        rates: Rates,
        target: Target,
        fixes: Sequence[str] = (),
        decided: Sequence[str] = (),
        then: Then | None = None,
        whole: Program | None = None,
    ) -> None:
        self.program, self.rates, self.target, self.then = program, rates, target, then
        self.fixes, self.whole = tuple(fixes), whole or program
        self.recipe: Recipe = (
            self.kind, program, rates, target, self.fixes, tuple(decided), then, whole
        )  # fmt: skip
        self._make_space()
        self.decisions = fixed(self.space.propagator, fixes)
        self.root = self.space.propagator.root(self.decisions)
        self._told: tuple[Candidates, str] | None = None
        self.problem = SpaceProblem(
            self.space.propagator, self.decisions, self.space.branch, self.bound, self.bound
        )

    def _make_space(self) -> None:
        self.product = matrix_product(self.program, self.is_turned)
        self.space = MatrixSpace(self.product, self.target.machine)
        self.bound = MatrixBound(self.space, self.rates)

    def implementation(self, candidate: Candidates) -> Implementation:  # noqa: ARG002
        raise UnsupportedError("products by warp groups are no implementation of loops")

    def threads_of(self, candidate: Candidates) -> int:
        return GROUP * self.tiling(candidate).consumers

    def tiling(self, candidate: Candidates) -> Tiling:
        return self.space.tiling(candidate)

    def kernel(self, candidate: Candidates) -> Kernel:
        return kernel_of(self.product, self.tiling(candidate), self.target.machine)

    def lowered(self, candidate: Candidates) -> tuple[Kernel, ...]:
        own = self.kernel(candidate)
        return (own,) if self.after is None else (own, *self.after[0].lowered(self.after[1]))

    # -- what is drawn

    draws = DRAWS

    def reopened(self, random: np.random.Generator) -> tuple[str, ...]:
        """Any few: they are of one object, and what goes together is listed."""
        open_ = [name for name, each in self.space.choices.items() if len(each.values) > 1]
        some = random.choice(open_, min(OPENED, len(open_)), replace=False)
        return tuple(map(str, some))

    # -- times

    @property
    def has_times(self) -> bool:
        return True

    def _expected(self, candidate: Candidates) -> float:
        return expected(self.product, self.tiling(candidate), self.rates)

    def predicted_time(self, candidate: Candidates) -> float:
        own = max(self._expected(candidate), float(self.bound(candidate)[0]))
        return own if self.after is None else own + self.after[0].predicted_time(self.after[1])

    def outlined_time(self, candidate: Candidates) -> float:
        return self.predicted_time(candidate)

    # -- what is said and tried

    def _words(self, candidate: Candidates) -> list[str]:
        return tiling_words(self.product, self.tiling(candidate))

    def _schedule(self, candidate: Candidates) -> str:
        least = time_words(float(self.bound(candidate)[0]))
        limit = limit_words(self.bound.explain(candidate))
        own = schedule_text(self.kernel(candidate), self._words(candidate))
        own = f"{own}; bound {least}: limited by {limit}"
        if self.after is None:
            return own
        return f"{own}; then another kernel: {self.after[0].schedule(self.after[1])}"

    def tried(self, candidate: Candidates, budget: Budget | None = None) -> Tried:
        """Run on the simulator beside what it means, at a few tiles, the last as partial as it
        was."""
        try:
            with (budget or Budget()).enforced():
                trial = self._tried(self.tiling(candidate))
                if self.after is not None:
                    trial = replace(trial, after=self.after[0].tried(self.after[1]))
        except BudgetSpentError as stop:
            return Tried({}, stopped=stop.reason)
        return self.right(trial)

    def _tried(self, tiling: Tiling) -> Tried:
        short = self.short(tiling)
        return tried_kernels(self.program, short.kernels, short.sizes, part=short.part)

    def short(self, tiling: Tiling, sizes: Mapping[Axis, int] | None = None) -> Short:
        """The kernel along axes that are cut short: to a few tiles, if nothing is said."""
        sizes = shortened(self.product, tiling) if sizes is None else sizes
        return Short((kernel_of(self.product, tiling, self.target.machine, sizes),), sizes)


@dataclass(frozen=True, slots=True)
class Short:
    """The kernels of a tiling, one after the other, along axes of these sizes; `part` as
    `tried_kernels` has it."""

    kernels: tuple[Kernel, ...]
    sizes: Mapping[Axis, int]
    part: float | None = None


def shortened(product: MatrixProduct, tiling: Tiling | WarpTiling) -> Mapping[Axis, int]:
    """Two tiles along results, one turn of the ring more than it has stages, and two batches. Where
    no tile is partial, there are two along rows alone."""
    down, across = tiling.rows * tiling.down, tiling.columns * tiling.across
    high = 2 if product.rows.size % down == 0 else 1

    def cut(axis: Axis, tile: int, whole: int) -> int:
        return min(axis.size, whole * tile + axis.size % tile)

    return {
        product.rows: cut(product.rows, down, high),
        product.columns: cut(product.columns, across, 1),
        product.over: cut(product.over, tiling.deep, tiling.split * tiling.stages + 1),
        **({} if product.batch is None else {product.batch: min(2, product.batches)}),
    }


class TurnedNest(MatrixNest):
    """The same where neighbours in the result are rows of tiles."""

    kind, is_turned = TURNED, True
