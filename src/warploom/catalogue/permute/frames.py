"""A frame around a tensor → the launches that make it: few axes, long elements, offsets of 32 bits.

shape, strides, widths   →   axes of y with the steps that x has   →   launches
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from warploom.catalogue.permute.frame import WORDS, reciprocal
from warploom.catalogue.permute.launch import Part
from warploom.catalogue.permute.padded import Frame, Padded
from warploom.catalogue.permute.problem import MOST_OFFSET, WIDEST


def frame_parts(
    axes: Sequence[Frame], size: int, aligned: int, value: bytes, most: int = MOST_OFFSET
) -> list[Part]:
    """The launches for a dense y with these axes, the outermost first, and for elements of `size`
    bytes; `value` is one of them. Both arrays begin at a multiple of `aligned` bytes."""
    longer, times = lengthened(merged(axes[::-1]), size, aligned)
    if not all(axis.size for axis in longer):
        return []
    size *= times
    return [_part(slab, size, value * times, *at) for slab, *at in _slabs(longer, most // 2)]


def merged(axes: Sequence[Frame]) -> list[Frame]:
    """Axes, the innermost first, as few as say the same: one without a frame whose rows follow
    each other in x becomes a part of the next one."""
    made: list[Frame] = []
    for axis in axes:
        inner = made[-1] if made else None
        if inner and inner.whole and axis.read == inner.size * inner.read:
            times = inner.size
            made[-1] = Frame(axis.size * times, axis.low * times, axis.high * times, inner.read)
        elif axis.size != 1 or not axis.whole:
            made.append(axis)
    return made or [Frame(1, 0, 1, 1)]


def lengthened(axes: Sequence[Frame], size: int, aligned: int) -> tuple[list[Frame], int]:
    """These axes with elements as long as all is a multiple of; and how many of the old are one."""
    first, *others = axes
    if first.read != 1:
        return list(axes), 1
    numbers = [first.size, first.low, first.high, *(axis.read for axis in others)]
    times = math.gcd(max(1, min(WIDEST, aligned) // size), *numbers)
    row = Frame(first.size // times, first.low // times, first.high // times, 1)
    return [row, *(replace(each, read=each.read // times) for each in others)], times


def _slabs(
    axes: Sequence[Frame], most: int, x_first: int = 0, y_first: int = 0
) -> Iterator[tuple[list[Frame], int, int]]:
    """Parts along the longest of the outer axes, with where each begins in x and in y."""
    reach = sum(axis.size * abs(axis.read) for axis in axes)
    if max(math.prod(axis.size for axis in axes), reach) < most:
        yield list(axes), x_first, y_first
        return
    at = max(at for at, axis in enumerate(axes) if axis.size > 1)
    axis, step = axes[at], math.prod(each.size for each in axes[:at])
    half = axis.size // 2
    for start, count in ((0, half), (half, axis.size - half)):
        low, high = (min(max(each - start, 0), count) for each in (axis.low, axis.high))
        skipped = max(0, start - axis.low) if high > low else 0
        part = Frame(count, low, high, axis.read)
        yield from _slabs(
            [*axes[:at], part, *axes[at + 1 :]], most,
            x_first + skipped * axis.read, y_first + start * step,
        )  # fmt: skip


def _part(axes: Sequence[Frame], size: int, value: bytes, x_first: int, y_first: int) -> Part:
    out = max(1, 4 // size)
    run = Padded(size, out, (), ()).count
    long = tuple(axis.size >= run for axis in axes)
    spec = Padded(size, out, tuple(not axis.whole for axis in axes), long)
    total = math.prod(axis.size for axis in axes)
    ends = [max(0, axis.high - axis.low - 1) * axis.read for axis in axes]
    low = sum(each for each in ends if each < 0)
    made = {
        "x_size": sum(each for each in ends if each > 0) - low + 1,
        "y_size": total * spec.unit,
        "count0": -(-total // spec.count),
        "first_read": -low,
    }
    for i, axis in enumerate(axes):
        over, shift = (0, 0) if long[i] else reciprocal(axis.size)
        made |= {f"size{i}": axis.size, f"low{i}": axis.low, f"high{i}": axis.high}
        made |= {f"read{i}": axis.read, f"over{i}": over, f"shift{i}": shift}
    words = np.frombuffer(value, WORDS[size // spec.unit].numpy)
    numbers = {f"value{i}": (int(each),) for i, each in enumerate(words)}
    return Part(spec, made, (x_first + low) * size, y_first * size, numbers)
