"""The blocks between two places of a kernel, where all ways lead from one to the other.

Comes in: blocks, where the ways begin and end, and what may be done on them. Goes out: all blocks
in an order that no way goes against, and which of them no way leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warploom.ptx.emulate.code import CodeBlock

LONGEST = 16  # blocks of such a loop


@dataclass(frozen=True, slots=True)
class Ways:
    """`blocks` begin with the first and end with the last; `certain` are on every way."""

    blocks: tuple[int, ...]
    certain: frozenset[int]

    def from_on(self, block: int) -> list[int]:
        """A block and what follows it, as far as that is on every way."""
        return [each for each in self.blocks[self.blocks.index(block) :] if each in self.certain]


def ways(
    blocks: Sequence[CodeBlock], first: int, last: int, allowed: Callable[[CodeBlock], bool]
) -> Ways | None:
    """None where a way leads elsewhere, goes in a circle, or does more than is allowed."""
    before: dict[int, set[int]] = {first: set()}  # by block, those from which it is reached
    work = [first]
    while work:
        at = work.pop()
        block = blocks[at]
        if not allowed(block) or block.barrier is not None or len(before) > LONGEST:
            return None
        if at == last:
            continue
        if block.leaves or block.switch is not None or not block.successors:
            return None
        for after in block.successors:
            if after not in before:
                work.append(after)
            before.setdefault(after, set()).add(at)
    if last not in before:
        return None
    order = _sorted(before)
    if order is None:
        return None
    certain = {first: frozenset({first})}
    for each in order[1:]:
        certain[each] = frozenset.intersection(*(certain[b] for b in before[each])) | {each}
    return Ways(tuple(order), certain[last])


def _sorted(before: dict[int, set[int]]) -> list[int] | None:
    """Each after all from which it is reached; None where some are in a circle."""
    left = {block: set(some) for block, some in before.items()}
    order: list[int] = []
    while left:
        ready = next((block for block, some in left.items() if not some), None)
        if ready is None:
            return None
        order.append(ready)
        del left[ready]
        for some in left.values():
            some.discard(ready)
    return order
