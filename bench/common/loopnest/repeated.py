"""How much of what an implementation issues is work that another thread does as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from warploom.kernel.ir import operands, walk_value
from warploom.loopnest.decided import Implementation, Loop, Node
from warploom.loopnest.ir import Compute, Instruction


def repeated(made: Implementation) -> float:
    """Arithmetic that is issued for each that is needed: 1 where no thread does what another one
    does, a little more where tiles are partial. Loads are not counted: a thread needs its own."""
    threads = math.prod(made.levels)
    issued = needed = 0.0
    for each, around in _placed(made.nests, ()):
        parts = [] if each.value is None else list(walk_value(each.value))
        operators = sum(bool(operands(part)) for part in parts)
        if isinstance(each.action, Compute) or operators:
            own = math.prod(loop.size for loop in around if loop.kind != "THREAD")
            issued += max(1, operators) * own * threads
            needed += max(1, operators) * math.prod(axis.size for axis in each.axes)
    return issued / max(1.0, needed)


def _placed(
    nodes: Sequence[Node], around: tuple[Loop, ...]
) -> Iterator[tuple[Instruction, tuple[Loop, ...]]]:
    for node in nodes:
        if isinstance(node, Loop):
            yield from _placed(node.body, (*around, node))
        else:
            yield node, around
