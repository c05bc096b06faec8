"""Attention explored: its own space in place of that of loops, as `matrix_nest.py` has one for
products of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warploom.kernel.ir import Kernel
from warploom.kernel.warpgroup import GROUP
from warploom.loopnest.attention.bound import AttentionBound, expected
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.merge import merge_of
from warploom.loopnest.attention.space import AttentionSpace
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.loopnest.attention.words import tiling_words
from warploom.loopnest.ir import Access, Axis, Load, Program, Store
from warploom.loopnest.pieces import in_pieces
from warploom.loopnest.strategies.form import ATTENTION, PACKED
from warploom.pipeline.matrix_nest import MatrixNest, Short
from warploom.search.branching.candidate import Candidates

HEADS = 2  # along the outermost axis of heads, of a trial


class AttentionNest(MatrixNest):
    """A space of tilings with a bound."""

    kind, is_packed = ATTENTION, False
    space: AttentionSpace  # type: ignore[assignment]
    bound: AttentionBound  # type: ignore[assignment]

    def _make_space(self) -> None:
        self.stated = attention_of(self.program)
        own = {name: role for role, name in self.stated.names.items()}
        self.order = [own[each.name] for each in self.program.arrays]
        self.space = AttentionSpace(self.stated.attention, self.target.machine, self.is_packed)
        self.bound = AttentionBound(self.space, self.rates)

    def threads_of(self, candidate: Candidates) -> int:
        return GROUP * self._own(candidate).consumers

    def _own(self, candidate: Candidates) -> AttentionTiling:
        return self.space.tiling(candidate)

    def kernel(self, candidate: Candidates) -> Kernel:
        return self.kernels_of(self._own(candidate), {})[0]

    def lowered(self, candidate: Candidates) -> tuple[Kernel, ...]:
        return self.kernels_of(self._own(candidate), {})

    def kernels_of(
        self, tiling: AttentionTiling, sizes: Mapping[Axis, int], blocks: int = HEADS
    ) -> tuple[Kernel, ...]:
        """The kernel, and where keys are split, what joins its parts. Along shorter axes there are
        few tiles, of which each of so many persistent blocks makes several."""
        made, machine = self.stated.along(sizes), self.target.machine
        if sizes:
            machine = machine.but(multiprocessors=blocks)
        steps = {
            name: size * made.head
            for names, size in (
                ("qo", self.stated.query.size),
                ("kv", self.stated.key.size),
            )
            for name in names
        }
        names, title = self.stated.names, self.program.name
        own = kernel_of(made, tiling, machine, names, self.order, title, steps)
        if tiling.splits == 1:
            return (own,)
        results = [each for each in self.order if each in ("o", "lse")]
        return own, merge_of(made, tiling, names, results, f"{title}_merge")

    def _expected(self, candidate: Candidates) -> float:
        return expected(self.stated.attention, self._own(candidate), self.rates)

    def _words(self, candidate: Candidates) -> list[str]:
        return tiling_words(self.stated, self._own(candidate))

    def short(  # type: ignore[override]
        self, tiling: AttentionTiling, sizes: Mapping[Axis, int] | None = None
    ) -> Short:
        sizes = self.shortened(tiling) if sizes is None else sizes
        # Weights are rounded beside the greatest score so far, not beside that of the whole row.
        part = 2 * self.stated.attention.dtype.rounding[0]
        return Short(self.kernels_of(tiling, sizes), sizes, part)

    def tiling(self, candidate: Candidates) -> AttentionTiling:  # type: ignore[override]
        return self._own(candidate)

    def shortened(self, tiling: AttentionTiling) -> Mapping[Axis, int]:
        """A tile of queries and a part of one, and blocks of keys until a stage is filled again, by
        every split. Queries and keys lose as many, so that the same ones are seen."""
        query, key, own = self.stated.query, self.stated.key, self.stated.attention
        queries = query.size
        if not tiling.packed:
            queries = min(query.size, tiling.queries + query.size % tiling.queries)
        turns = (tiling.stages + 1) * tiling.splits
        keys = min(key.size, turns * tiling.keys + key.size % tiling.keys)
        if own.upper is not None or own.lower is not None:
            less = min(query.size - queries, key.size - keys)
            queries, keys = query.size - less, key.size - less
        found = {each: min(each.size, HEADS) for each in self.stated.heads[:1]}
        kept = {self.stated.names[each] for each in "kv"}
        others = set(self.stated.names.values()) - {self.stated.names[each] for each in "qkvo"}
        # An axis that is folded along twice is two axes of a program: all that rows lie along.
        for access in _accesses(self.program):
            if access.array.name not in others:
                size = keys if access.array.name in kept else queries
                found |= dict.fromkeys(access.subscripts[-2].axes, size)
        return found


class PackedNest(AttentionNest):
    """The same where queries are few: those of heads that share keys are one tile, and keys may be
    split."""

    kind, is_packed = PACKED, True


def _accesses(program: Program) -> Iterator[Access]:
    for each in in_pieces(program).instructions:
        if isinstance(each.action, Load | Store):
            yield each.action.access
