"""One side of a tile: axes that follow each other, cut into chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warploom.catalogue.permute.problem import Axis

ONE = Axis(1, 0, 0)
MOST_DIGITS = 3
MOST_INNER = 128  # steps of the inner digits of a side


@dataclass(frozen=True, slots=True)
class Cut:
    """The digits of a side, the innermost first; the steps of a chunk, how many chunks there are.
    A chunk has whole rows of the inner digits."""

    digits: tuple[Axis, ...]
    chunk: int
    chunks: int

    @property
    def count(self) -> int:
        return math.prod(axis.size for axis in self.digits)

    @property
    def inner(self) -> int:
        return math.prod(axis.size for axis in self.digits[:-1])

    def outer(self) -> Axis:
        """The axis of the grid that counts chunks."""
        last, step = self.digits[-1], self.chunk // self.inner
        return Axis(self.chunks, step * last.read, step * last.write, step * last.factor)


WHOLE = Cut((ONE,), 1, 1)


def cut(digits: Sequence[Axis], most: int, multiple: int = 1, more: int = 0) -> Cut | None:
    """Chunks of at most so many steps, all alike; of a single digit they are a multiple of so many,
    and there are enough of them for so many steps `more`."""
    inner = math.prod(axis.size for axis in digits[:-1])
    last = digits[-1].size
    count = inner * last
    if count <= most - more:
        return Cut(tuple(digits), count, 1)
    if inner > 1:
        each = (most - more) // inner
        if each < 1:
            return None
        each = -(-last // -(-last // each))
        return Cut(tuple(digits), each * inner, -(-last // each))
    each = most // multiple * multiple
    if each < 1:
        return None
    total = last + more
    even = -(-total // -(-total // each))
    each = -(-even // multiple) * multiple
    return Cut(tuple(digits), each, -(-total // each))


def side_by_side(*cuts: Cut, more: int = 0) -> int:
    """Elements of x that lie side by side, of those that chunks of several sides have; the last
    side has so many steps more."""
    axes: list[Axis] = []
    for number, each in enumerate(cuts, 1):
        steps = (each.chunk + more * (number == len(cuts))) // each.inner
        axes += [*each.digits[:-1], replace(each.digits[-1], size=max(1, steps))]
    held = sorted((axis for axis in axes if axis.read > 0), key=lambda axis: axis.read)
    return math.prod(axis.size for axis in contiguous(held, "read"))


def numbered(digits: Sequence[Axis], plain: bool) -> tuple[Axis, ...]:
    """One digit, or as many as there may be: the last of several is the one that is cut."""
    if len(digits) == 1 and not plain:
        return tuple(digits)
    return (*[ONE] * (MOST_DIGITS - len(digits)), *digits)


def contiguous(axes: Sequence[Axis], side: str) -> tuple[Axis, ...]:
    """The first axes whose steps lie side by side."""
    expected = 1
    for count, axis in enumerate(axes):
        if getattr(axis, side) != expected:
            return tuple(axes[:count])
        expected *= axis.size
    return tuple(axes)


def prefixes(axes: Sequence[Axis], side: str) -> list[tuple[Axis, ...]]:
    """The first one, two or more axes whose steps lie side by side; those before the last are
    short enough that a tile has several."""
    found = contiguous(axes, side)[:MOST_DIGITS]
    return [found[: count + 1] for count in range(len(found))
            if math.prod(axis.size for axis in found[:count]) <= MOST_INNER]  # fmt: skip
