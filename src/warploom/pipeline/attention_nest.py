"""Attention explored: its own space in place of that of loops, as `matrix_nest.py` has one for
products of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warploom.kernel.ir import Kernel
from warploom.kernel.warpgroup import GROUP
from warploom.loopnest.attention.bound import AttentionBound, expected
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.space import AttentionSpace
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.loopnest.attention.words import tiling_words
from warploom.loopnest.ir import Access, Axis, Load, Program, Store
from warploom.loopnest.pieces import in_pieces
from warploom.loopnest.strategies.form import ATTENTION
from warploom.pipeline.matrix_nest import MatrixNest, Short
from warploom.search.branching.candidate import Candidates

HEADS = 2  # along the outermost axis of heads, of a trial


class AttentionNest(MatrixNest):
    """A space of tilings with a bound."""

    kind = ATTENTION
    space: AttentionSpace  # type: ignore[assignment]
    bound: AttentionBound  # type: ignore[assignment]

    def _make_space(self) -> None:
        self.stated = attention_of(self.program)
        own = {name: role for role, name in self.stated.names.items()}
        self.order = [own[each.name] for each in self.program.arrays]
        self.space = AttentionSpace(self.stated.attention, self.target.machine)
        self.bound = AttentionBound(self.space, self.rates)

    def threads_of(self, candidate: Candidates) -> int:
        return GROUP * self._own(candidate).consumers

    def _own(self, candidate: Candidates) -> AttentionTiling:
        return self.space.tiling(candidate)

    def kernel(self, candidate: Candidates) -> Kernel:
        return self._kernel(self._own(candidate), {})

    def _kernel(self, tiling: AttentionTiling, sizes: Mapping[Axis, int]) -> Kernel:
        made, machine = self.stated.along(sizes), self.target.machine
        if sizes:  # few tiles, of which a block makes several
            machine = machine.but(multiprocessors=HEADS)
        steps = {
            name: size * made.head
            for names, size in (
                ("qo", self.stated.query.size),
                ("kv", self.stated.key.size),
            )
            for name in names
        }
        names, title = self.stated.names, self.program.name
        return kernel_of(made, tiling, machine, names, self.order, title, steps)

    def _expected(self, candidate: Candidates) -> float:
        return expected(self.stated.attention, self._own(candidate), self.rates)

    def _words(self, candidate: Candidates) -> list[str]:
        return tiling_words(self.stated, self._own(candidate))

    def short(  # type: ignore[override]
        self, tiling: AttentionTiling, sizes: Mapping[Axis, int] | None = None
    ) -> Short:
        sizes = self._shortened(tiling) if sizes is None else sizes
        # Weights are rounded beside the greatest score so far, not beside that of the whole row.
        part = 2 * self.stated.attention.dtype.rounding[0]
        return Short(self._kernel(tiling, sizes), sizes, part)

    def tiling(self, candidate: Candidates) -> AttentionTiling:  # type: ignore[override]
        return self._own(candidate)

    def _shortened(self, tiling: AttentionTiling) -> Mapping[Axis, int]:
        """A tile of queries and a part of one, and blocks of keys until a stage is filled again.
        Queries and keys lose as many, so that the same ones are seen."""
        query, key = self.stated.query, self.stated.key
        queries = min(query.size, tiling.queries + query.size % tiling.queries)
        keys = min(key.size, (tiling.stages + 1) * tiling.keys + key.size % tiling.keys)
        if self.stated.attention.causal:
            less = min(query.size - queries, key.size - keys)
            queries, keys = query.size - less, key.size - less
        found = {each: min(each.size, HEADS) for each in self.stated.heads[:1]}
        kept = {self.stated.names[each] for each in "kv"}
        # An axis that is folded along twice is two axes of a program: all that rows lie along.
        for access in _accesses(self.program):
            size = keys if access.array.name in kept else queries
            found |= dict.fromkeys(access.subscripts[-2].axes, size)
        return found


def _accesses(program: Program) -> Iterator[Access]:
    for each in in_pieces(program).instructions:
        if isinstance(each.action, Load | Store):
            yield each.action.access
