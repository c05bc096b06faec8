"""How deep folds may nest in the cells of each step, whatever fills the holes.

For each cell a set of depths as bits: bit 0 is zero or undefined, bit d + 1 a term in which folds
nest d deep. Tables are looked at only if some step is not of one depth throughout.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.sketch.term.ir import Apply, Fold, Literal, Program, Term, Undefined, Zero, size
from warploom.sketch.term.laws import obeys
from warploom.sketch.term.limits import heights
from warploom.sketch.term.operator import is_function

Sets: TypeAlias = npt.NDArray[np.uint64]

_NOTHING = np.uint64(1)
_TAIL = np.full(2, _NOTHING)  # undefined and zero, behind the arguments


def depths_of(
    program: Program, live: frozenset[int], laws: tuple[str, ...]
) -> dict[int, frozenset[int]]:
    """For each live step the depths that its terms may have; a superset under laws."""
    found = _depths(program, live, laws, by_table=False)
    if all(len(depths) <= 1 for depths in found.values()):
        return found
    return _depths(program, live, laws, by_table=True)


def _depths(
    program: Program, live: frozenset[int], laws: tuple[str, ...], by_table: bool
) -> dict[int, frozenset[int]]:
    cells: dict[int, Sets] = {}
    for position in sorted(live):
        step = program.steps[position]
        if isinstance(step, Literal):
            cells[position] = _of_terms(step.values)
            continue
        source = np.concatenate([*(cells[arg] for arg in step.args), _TAIL])
        inner = _gathered(source, step) if by_table else _anything(source, step)
        cells[position] = inner
        if step.fold is not None:
            cells[position] = _folded(inner.reshape(-1, step.fold), step, laws)
    return {position: _listed(sets) for position, sets in cells.items()}


def _listed(sets: Sets) -> frozenset[int]:
    together = int(np.bitwise_or.reduce(sets)) >> 1
    return frozenset(depth for depth in range(together.bit_length()) if together >> depth & 1)


def _of_terms(values: tuple[Term, ...]) -> Sets:
    known = heights(values)
    depths = [known[v] if isinstance(v, Fold) else 0 for v in values]
    nothing = [isinstance(v, (Zero, Undefined)) for v in values]
    bits = [1 if none else 2 << depth for depth, none in zip(depths, nothing, strict=True)]
    return np.array(bits, np.uint64)


def _anything(source: Sets, step: Apply) -> Sets:
    """As if every cell could read every place."""
    return np.full(size(step.gathers.out_shape), np.bitwise_or.reduce(source), np.uint64)


def _gathered(source: Sets, step: Apply) -> Sets:
    tables = step.gathers.spanning
    inner = np.zeros(tables.shape[1], np.uint64)
    rows = max(1, (1 << 22) // tables.shape[1])
    for start in range(0, len(tables), rows):
        read = source[tables[start : start + rows]]
        inner |= np.bitwise_or.reduce(read, axis=0)
    return inner


def _folded(runs: Sets, step: Apply, laws: tuple[str, ...]) -> Sets:
    """One more than the deepest item: no item can be deeper, and some item may be as deep."""
    any_item: Sets = np.bitwise_or.reduce(runs, axis=1)
    lowest = runs & (~runs + np.uint64(1))  # the lowest bit of each: its least depth
    least: Sets = lowest.max(axis=1)
    deepest = any_item & ~(least - np.uint64(1))
    nothing = deepest & _NOTHING
    result: Sets = ((deepest & ~_NOTHING) << np.uint64(1)) | nothing
    if is_function(step.operator):
        result = (deepest | np.uint64(2)) << np.uint64(1)  # a function of nothing is a term
        result &= ~np.uint64(2)
    elif obeys(step.operator, laws):
        result |= any_item
    return result
