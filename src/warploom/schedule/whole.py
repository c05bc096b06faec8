"""Tiles that are whole, apart from those that end before: conditions are asked once, before both.

    for r in 0..3: if (i + r < n) y[i + r] = x[i + r] + x[i + r + 1]
    →   if (i + 3 < n) for r in 0..3: y[i + r] = x[i + r] + x[i + r + 1]
        else           for r in 0..3: if (i + r < n) …

Compilers leave a load behind a condition where it is. Without conditions they load once what
several iterations load, so it pays where a write is of several elements of an array: stencils.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.index.ir import Const, Expr, substitute, variables
from warploom.kernel.ir import Choose, Compare, walk_value
from warploom.schedule.context import all_of, conjuncts
from warploom.schedule.ir import Loop, Node, Write, cells_of, inside
from warploom.schedule.lanes import strictest_of_all
from warploom.schedule.value import Buffers

MOST_CONDITIONS = 16


@dataclass(frozen=True, slots=True)
class Whole:
    """A condition on no counter of some loops, and those that hold wherever it does. Where it
    fails there is nothing to do, unless there is a `rest`."""

    condition: Expr
    holds: frozenset[Expr]
    rest: bool


def whole_tile(nodes: Sequence[Node], memory: Buffers) -> Whole | None:
    """None where nothing is gained by it, or threads meet."""
    every = list(inside(tuple(nodes)))
    if not all(isinstance(each, Write | Loop) for each in every):
        return None
    if any(isinstance(each, Loop) and each.kind == "copy" for each in every):
        return None
    found = [each for each in every if isinstance(each, Write)]
    if _meet(found, memory) or not any(_has_neighbours(each, memory) for each in found):
        return None
    sizes = {each.counter: each.size for each in every if isinstance(each, Loop)}
    holds: dict[Expr, Expr] = {}
    for condition in dict.fromkeys(each for write in found for each in _conditions(write)):
        strict = _strict(condition, sizes)
        if strict is not None:
            holds[condition] = strict
    whole = all_of(holds.values())
    if whole is None or len(holds) > MOST_CONDITIONS:
        return None
    stored = [conjuncts(each.where) if each.where is not None else []
              for each in found if memory.is_memory(each.target)]  # fmt: skip
    rest = any(holds[each] is not each or any(each not in one for one in stored) for each in holds)
    return Whole(whole, frozenset(holds), rest)


def _meet(found: Sequence[Write], memory: Buffers) -> bool:
    """Whether something goes through shared memory."""
    cells = (cell for each in found for cell in (each.target, *cells_of(each.value)))
    return any(memory.buffers[cell.name].space == "shared" for cell in cells
               if cell.name in memory.buffers)  # fmt: skip


def _has_neighbours(write: Write, memory: Buffers) -> bool:
    loaded = {read.cell for read in memory.reads(write.value)}
    return any(many > 1 for many in Counter(cell.name for cell in loaded).values())


def _conditions(write: Write) -> Iterator[Expr]:
    """Those on indices, one by one."""
    if write.where is not None:
        yield from conjuncts(write.where)
    for part in walk_value(write.value):
        if isinstance(part, Choose) and not isinstance(part.condition, Compare):
            yield from conjuncts(part.condition)


def _strict(condition: Expr, sizes: Mapping[str, int]) -> Expr | None:
    """The condition for all iterations of the loops around it, if that is one on the others."""
    made = condition
    for counter in variables(condition) & sizes.keys():
        last = strictest_of_all(made, counter, sizes[counter])
        if last is None:
            return None
        made = substitute(last, {counter: Const(0)})
    return made
