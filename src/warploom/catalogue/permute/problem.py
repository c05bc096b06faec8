"""Shape, strides and an order of axes → the fewest axes that say the same movement.

    y[i0, i1, …] = x[…]   →   axes of (size, stride read, stride written), one byte-wise movement

Axes of one element are dropped; axes that are neighbours on both sides become one; a row of bytes
that stays whole becomes a longer element. What is left is sorted by the stride written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from warploom.catalogue.permute.convert import Asked

MOST_AXES = 8
ELEMENT_BYTES = (1, 2, 4, 8, 16)
WIDEST = ELEMENT_BYTES[-1]
MOST_OFFSET = 1 << 30  # of a machine word in a launch: whatever a thread computes has 32 bits


@dataclass(frozen=True, slots=True)
class Axis:
    """`size` steps, each of so many elements read and written, and of so many factors."""

    size: int
    read: int
    write: int
    factor: int = 0

    @property
    def last(self) -> tuple[int, int]:
        return (self.size - 1) * self.read, (self.size - 1) * self.write


@dataclass(frozen=True, slots=True)
class Movement:
    """`y[first_write + Σ i·write] = x[first_read + Σ i·read]`, elements of so many bytes; axes in
    the order of memory written, the innermost first. `aligned` are the bytes that both arrays
    begin at a multiple of. `to`: elements become others on the way, from factor `first_factor`."""

    bytes: int
    axes: tuple[Axis, ...]
    first_read: int = 0
    first_write: int = 0
    aligned: int = WIDEST
    to: Asked | None = None
    first_factor: int = 0

    @property
    def written_bytes(self) -> int:
        """The bytes of an element that is written."""
        return self.bytes if self.to is None else self.to.to.target.bytes

    @property
    def mean_bytes(self) -> float:
        """Half of what is moved for an element."""
        return (self.bytes + self.written_bytes) / 2

    @property
    def count(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def read_span(self) -> tuple[int, int]:
        """The least offset read, and the one after the greatest."""
        return _span(self.first_read, (axis.last[0] for axis in self.axes))

    @property
    def write_span(self) -> tuple[int, int]:
        return _span(self.first_write, (axis.last[1] for axis in self.axes))


def _span(first: int, ends: Iterable[int]) -> tuple[int, int]:
    steps = list(ends)
    low = first + sum(each for each in steps if each < 0)
    return low, first + sum(each for each in steps if each > 0) + 1


def movement(
    size: int,
    shape: Sequence[int],
    read: Sequence[int],
    write: Sequence[int],
    aligned: int = WIDEST,
    to: Asked | None = None,
    along: int | None = None,
) -> Movement:
    """The movement of elements of `size` bytes: `shape` and both strides in the order of the
    result's axes, strides in elements. Factors are counted `along` one of these axes."""
    given = zip(shape, read, write, strict=True)
    axes = [Axis(n, r, w, int(at == along)) for at, (n, r, w) in enumerate(given) if n != 1]
    merged = _merged(sorted(axes, key=lambda axis: (abs(axis.write), abs(axis.read))))
    found = Movement(size, merged, aligned=aligned, to=to)
    return found if to is not None else widened(found)


def _merged(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Neighbours on both sides as one axis."""
    made: list[Axis] = []
    for axis in axes:
        inner = made[-1] if made else Axis(0, 0, 0)
        steps = inner.read, inner.write, inner.factor
        if made and (axis.read, axis.write, axis.factor) == tuple(inner.size * n for n in steps):
            made[-1] = replace(inner, size=inner.size * axis.size)
        else:
            made.append(axis)
    return tuple(made)


def widened(moved: Movement) -> Movement:
    """Rows that both sides have whole as longer elements, as far as everything is a multiple."""
    if not moved.axes or (moved.axes[0].read, moved.axes[0].write) != (1, 1):
        return moved
    row, *others = moved.axes
    numbers = [row.size, moved.first_read, moved.first_write]
    numbers += [stride for axis in others for stride in (axis.read, axis.write)]
    times = reduce(math.gcd, numbers, min(WIDEST, moved.aligned) // moved.bytes)
    if times <= 1:
        return moved
    rest = tuple(Axis(each.size, each.read // times, each.write // times) for each in others)
    inner = (Axis(row.size // times, 1, 1),) if row.size != times else ()
    return Movement(
        moved.bytes * times,
        (*inner, *rest),
        moved.first_read // times,
        moved.first_write // times,
        moved.aligned,
    )


def banded(moved: Movement, steps: int) -> Movement:
    """The same movement with its first axis in bands of so many steps, which are an axis of their
    own: blocks are counted out over one band before the next."""
    first, *others = moved.axes
    inner = replace(first, size=steps)
    times = (steps * n for n in (first.read, first.write, first.factor))
    return replace(moved, axes=(inner, *others, Axis(first.size // steps, *times)))


def slabs(moved: Movement, most: int = 0) -> Iterator[Movement]:
    """The movement in parts whose offsets from their own beginning stay below `most`."""
    most = most or (MOST_OFFSET // 2 if moved.bytes == WIDEST else MOST_OFFSET)
    spans = [high - low for low, high in (moved.read_span, moved.write_span)]
    if max(spans) < most:
        yield moved
        return
    side = spans.index(max(spans))
    at = max(range(len(moved.axes)), key=lambda each: abs(moved.axes[each].last[side]))
    axis = moved.axes[at]
    first = half(axis.size)
    for start, size in ((0, first), (first, axis.size - first)):
        axes = (*moved.axes[:at], replace(axis, size=size), *moved.axes[at + 1 :])
        yield from slabs(
            replace(
                moved,
                axes=axes,
                first_read=moved.first_read + start * axis.read,
                first_write=moved.first_write + start * axis.write,
                first_factor=moved.first_factor + start * axis.factor,
            ),
            most,
        )


def half(size: int) -> int:
    """About half, a multiple of a large power of two where there is room."""
    whole = 1 << max(0, (size // 8).bit_length() - 1)
    return max(1, size // 2 // whole * whole)
