"""How many neighbours a loop may access at once: all its accesses begin at multiples of that."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.code.indexing import Indexing
from warploom.array.code.storage import accesses_of, flat, indices_of
from warploom.array.plan.loops import Loop, Write
from warploom.array.plan.numbered import loop_size
from warploom.index.ir import Expr, substitute, variables
from warploom.index.polynomial import Normal
from warploom.machine.record import CUDA

WIDTHS = (4, 2)


def width_of(indexing: Indexing, loop: Loop) -> int:
    """The widest access for a loop whose iterations access neighbours (`mapping/vector.py`); 1:
    none."""
    write = loop.body[0]
    assert isinstance(write, Write)
    size = loop_size(loop)
    moving = list(_moving(indexing, write, loop.counter))
    for width in WIDTHS:
        fits = all(bytes_ * width <= CUDA.access_bytes for _, bytes_ in moving)
        if size % width == 0 and fits and all(is_multiple(each, width) for each, _ in moving):
            return width
    return 1


def _moving(indexing: Indexing, write: Write, counter: str) -> Iterator[tuple[Expr, int]]:
    """The first index of each access of memory that moves along with the loop."""
    for memory, path in accesses_of(write):
        place = indexing.storage.of(memory, path)
        if place.kind in ("shared", "global") and indexing.moves(path, counter):
            first = [substitute(each, {counter: 0}) for each in indices_of(path)]
            yield flat(first, place.dims), place.dtype.bytes


def is_multiple(index: Expr, of: int) -> bool:
    """Whether every term of an index is a multiple, whatever its counters are."""
    bounds = dict.fromkeys(variables(index), (0, 2**31 - 1))
    return all(factor % of == 0 for factor in Normal(bounds).of(index).terms.values())
