"""Groups of products that are under way while the statements after them are printed.

ring: S = Q·K        begins
ring: O += P·V       begins
m = max(m, S)        needs S: at most one group is left under way, the first one's stage is empty
O = O·c              needs O: none is left
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from warploom.index.ir import Const
from warploom.kernel import ir
from warploom.kernel.traverse import target_of, values_of
from warploom.kernel.warpgroup import HOPPER, Ring

PLAIN = (ir.Let, ir.For, ir.Comment, ir.WarpgroupProduct)  # as part of a group of products
Words: TypeAlias = tuple[str, int]  # a factor in registers: the name of an array, its size


@dataclass(frozen=True, slots=True)
class Group:
    """Products that a ring began, the name of the stage that they read, and their registers."""

    ring: Ring
    stage: str
    targets: Mapping[str, ir.Cell]
    words: Sequence[Words]


def products_in(body: tuple[ir.Stmt, ...]) -> Iterator[ir.WarpgroupProduct]:
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.WarpgroupProduct):
            yield stmt


def at_once(ring: Ring) -> bool:
    """Whether a ring has one iteration, of products alone."""
    return ring.count is Const(1) and all(isinstance(e, PLAIN) for e in ir.walk(ring.rest))


def needed(groups: Sequence[Group], stmt: ir.Stmt) -> int:
    """How many of the groups under way end before a statement: the last whose sums it names, and
    those before it; all, where it has statements of Hopper inside, whose waits would be others."""
    inside = list(ir.walk((stmt,)))
    if not (isinstance(stmt, Ring) and at_once(stmt)) and any(map(_waits, inside)):
        return len(groups)
    names = {name for each in inside for name in _registers(each)}
    hit = [at for at, group in enumerate(groups) if names & group.targets.keys()]
    return max(hit, default=-1) + 1


def _waits(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, (*HOPPER, ir.Barrier)) and not isinstance(stmt, ir.OrderedBarrier)


def _registers(stmt: ir.Stmt) -> Iterator[str]:
    target = target_of(stmt)
    if target is not None:
        yield target.name
    if isinstance(stmt, Ring):
        yield from stmt.sums
    for value in values_of(stmt):
        yield from (each.name for each in ir.walk_value(value) if isinstance(each, ir.Cell))
