"""What is true of a layout: its image, whether two elements meet, which runs stay together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.index.bits import affine_columns
from warploom.layout.language.evaluate import Numbers, values
from warploom.layout.language.ir import Layout, Matrix, Swizzle


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a layout with a domain. `run`: so many numbers, from a multiple of it on,
    always have consecutive values; `alignment`: the largest power of two of which every such run
    begins at a multiple (0: all begin at 0)."""

    size: int
    lowest: int
    highest: int
    injective: bool
    run: int
    alignment: int

    @property
    def wasted(self) -> int:
        """Places up to the highest that no element has."""
        return self.highest + 1 - min(self.lowest, 0) - self.size if self.injective else 0

    @property
    def bijective(self) -> bool:
        """Whether the elements fill the places from 0 on."""
        return self.injective and self.lowest == 0 and self.highest + 1 == self.size


def facts_of(layout: Layout) -> Facts:
    """
    >>> from warploom.layout.language.ir import Compose, Strided
    >>> facts_of(Compose(Swizzle(3, 3, 3), Strided((64, 8), (1, 64)))).run
    8
    """
    table = values(layout)
    length = run(table)
    return Facts(
        len(table),
        int(table.min()),
        int(table.max()),
        is_injective(table),
        length,
        alignment(table[::length]),
    )


def is_injective(table: Numbers) -> bool:
    ordered = np.sort(table)
    return bool((ordered[1:] != ordered[:-1]).all())


def meeting(table: Numbers) -> tuple[int, int] | None:
    """Two numbers with one value, if there are such: the first that meets an earlier one."""
    order = np.argsort(table, kind="stable")
    same = np.nonzero(table[order][1:] == table[order][:-1])[0]
    if not same.size:
        return None
    place = same[np.argmin(order[same + 1])]
    return int(order[place]), int(order[place + 1])


def run(table: Numbers) -> int:
    """The largest divisor of the size such that runs of so many numbers have consecutive values."""
    consecutive = np.diff(table) == 1
    for length in _divisors(len(table)):
        breaks = np.arange(1, len(table)) % length != 0
        if consecutive[breaks].all():
            return length
    return 1


def _divisors(size: int) -> list[int]:
    """From the largest down."""
    small = [d for d in range(1, int(size**0.5) + 1) if size % d == 0]
    return sorted({*small, *(size // d for d in small)}, reverse=True)


def alignment(table: Numbers) -> int:
    """The largest power of two that divides all values; 0 if all are 0."""
    common = int(np.bitwise_or.reduce(table))
    return common & -common


def as_matrix(table: Numbers) -> Matrix | None:
    """The affine map over F2 that has these values, if there is one.

    >>> as_matrix(np.array([1, 0, 3, 2]))
    Matrix((1, 2), 1)
    """
    found = affine_columns(table)
    return None if found is None else Matrix(*found)


def as_swizzle(matrix: Matrix) -> Swizzle | None:
    """The swizzle that a matrix is, if it is one on all of its numbers.

    >>> as_swizzle(Matrix((1, 2, 5, 10), 0))
    Swizzle(2, 0, 2)
    """
    moved = {bit: column ^ 1 << bit for bit, column in enumerate(matrix.columns)}
    moved = {bit: rest for bit, rest in moved.items() if rest}
    if matrix.offset or any(rest & (rest - 1) for rest in moved.values()):
        return None
    if not moved:
        return Swizzle(0, 0, 0)
    distances = {bit - (rest.bit_length() - 1) for bit, rest in moved.items()}
    bits, first = len(moved), min(moved)
    if len(distances) > 1 or max(moved) != first + bits - 1:
        return None
    shift = distances.pop()
    base = first - shift if shift >= 0 else first
    return Swizzle(bits, base, shift) if abs(shift) >= bits else None
