"""Linear layouts that are cheap to compute: x ^ masked shifts of x, with as few shifts as will do.

The bits of a row-major number that choose bank and place stay where they are, and bits above are
added to them. A diagonal is a distance by which bits are shifted: one diagonal is one `x & mask`,
one shift, one exclusive or; Swizzle<B,M,S> is a run of bits on one diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.ir import Matrix
from warploom.layout.solver.columns import ColumnSearch, Menu, subsets
from warploom.layout.solver.demand import demands_of
from warploom.layout.solver.frame import Frame, Free
from warploom.layout.wavefronts.cost import Meter
from warploom.search.engine import Watch

MOST_DIAGONALS = 3
_MOST_NODES = 4000  # for each number of diagonals: this is about beauty


def natural_frame(frame: Frame) -> Frame | None:
    """The frame in which the bank of a row-major number's low bits is their own; None where vectors
    do not go along the rows, or no bits are above."""
    low = frame.word_bits + frame.bank_bits
    directions = tuple(1 << bit for bit in range(low))
    if frame.bits <= low or directions[: len(frame.directions)] != frame.directions:
        return None
    kept = ((1 << frame.bank_bits) - 1) >> frame.place_bits << frame.place_bits
    free = tuple(Free(1 << bit, kept) for bit in range(low, frame.bits))
    return Frame(frame.bits, frame.word_bits, frame.bank_bits, directions, free, frame.firsts)


def fewest_shifts(
    meter: Meter, floors: Sequence[Numbers], frame: Frame, cost: int, watch: Watch, worst: bool
) -> Matrix | None:
    """A linear layout of this (scaled) cost at most, in as few masked shifts as were found."""
    natural = natural_frame(frame)
    if natural is None:
        return None
    demands = demands_of(meter, floors, natural, reorder=False)
    for count in range(MOST_DIAGONALS + 1):
        search = ColumnSearch(
            demands,
            watch,
            cost + 1,
            worst=worst,
            menu=_menu(natural, count),
            most_nodes=_MOST_NODES,
        )
        search.run()
        if search.best is not None:
            above = search.best.columns[natural.bank_bits :]
            low = natural.word_bits + natural.bank_bits
            columns = [1 << bit for bit in range(natural.bits)]
            for place, column in enumerate(above):
                columns[low + place] |= column << natural.word_bits
            return Matrix(tuple(columns), 0)
    return None


def diagonals(depth: int, column: int) -> set[int]:
    """How far the bits of a coordinate's column are from it."""
    return {depth - bit for bit in range(column.bit_length()) if column >> bit & 1}


def _menu(frame: Frame, most: int) -> Menu:
    start = frame.bank_bits

    def menu(depth: int, columns: list[int]) -> list[int]:
        used: set[int] = set()
        for place in range(start, depth):
            used |= diagonals(place, columns[place])
        choices = subsets(frame.free[depth - start].places)
        fitting = [c for c in choices if len(used | diagonals(depth, c)) <= most]
        return sorted(fitting, key=lambda c: len(diagonals(depth, c) - used))

    return menu
