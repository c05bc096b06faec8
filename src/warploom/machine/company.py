"""What lanes of a warp know because they met at a shuffle, a vote or a reduction.

That orders no memory by the manual. By practice two things hold all the same, as no compiler moves
accesses over an acquire: what one of the lanes has acquired of other warps, all of them have; and
what one of them read before, others may overwrite.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warploom.machine.clock import Array, Layout, Mask, Vector
from warploom.machine.knowledge import Knowledge, joined
from warploom.machine.semantics import Semantics


@dataclass(slots=True)
class Company:
    """`known`: by thread of the batch, what those knew with whom it met."""

    layout: Layout
    known: dict[int, Knowledge] = field(default_factory=dict)

    def meet(self, vector: Vector, threads: Array, group: Array) -> None:
        """Threads of one group are at one instruction; their clocks have been advanced."""
        for name in np.unique(group).tolist():
            who = threads[group == name].tolist()
            before = [self.known.get(thread) for thread in who]
            known = joined(*[vector.knowledge(thread) for thread in who], *before)
            assert known is not None
            known.flat()
            self.known.update(dict.fromkeys(who, known))

    def heard(self, vector: Vector, entries: Array, threads: Array, other: Semantics) -> Mask:
        """Whether each thread knows of an earlier access in this way: of all reads, and of writes
        of other warps."""
        found = np.zeros(entries.size, bool)
        layout = self.layout
        blocks, inside = layout.block(entries), layout.inside(entries)
        stamps = entries >> layout.stamp_shift
        for at, thread in enumerate(threads.tolist()):
            known = self.known.get(thread)
            warp = thread % layout.block_threads // layout.lanes
            near = vector.block_number(thread) == blocks[at] and warp == inside[at] // layout.lanes
            if known is not None and not (near and other.kind.writes):
                one = slice(at, at + 1)
                found[at] = bool((stamps[one] < known.seen(blocks[one], inside[one]))[0])
        return found
