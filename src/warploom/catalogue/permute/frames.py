"""A frame around a tensor, or windows of it → the launches that make it: few axes, long elements,
offsets of 32 bits.

shape, strides, widths   →   axes of y with the coordinates that x has   →   launches
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from warploom.catalogue.permute.frame import WORDS, reciprocal
from warploom.catalogue.permute.launch import Part
from warploom.catalogue.permute.padded import THREADS, Frame, Padded
from warploom.catalogue.permute.problem import MOST_OFFSET, WIDEST, half
from warploom.catalogue.permute.tiles import FEW_BLOCKS
from warploom.errors import DeviceError

OUT = {1: 4, 2: 4, 4: 4, 8: 2, 16: 1}  # elements that are written by one access
TIMES = 8  # of these by a thread


def frame_parts(
    axes: Sequence[Frame], size: int, aligned: int, value: bytes, most: int = MOST_OFFSET
) -> list[Part]:
    """The launches for a dense y with these axes, the outermost first, and for elements of `size`
    bytes; `value` is one of them. x begins at a multiple of `aligned` bytes, y of 16."""
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
        alone = inner and inner.whole and not axis.window
        if inner and alone and axis.read == inner.size * inner.read:
            times = inner.size
            made[-1] = Frame(axis.size * times, axis.low * times, axis.high * times, inner.read)
        elif axis.size != 1 or not axis.whole:
            made.append(axis)
    return made or [Frame(1, 0, 1, 1)]


def lengthened(axes: Sequence[Frame], size: int, aligned: int) -> tuple[list[Frame], int]:
    """These axes with elements as long as all is a multiple of; and how many of the old are one."""
    first, *others = axes
    if first.read != 1 or first.window:
        return list(axes), 1
    numbers = [first.size, first.low, first.high, *(axis.read for axis in others)]
    times = math.gcd(max(1, min(WIDEST, aligned) // size), *numbers)
    row = Frame(first.size // times, first.low // times, first.high // times, 1)
    return [row, *(replace(each, read=each.read // times) for each in others)], times


def _slabs(
    axes: Sequence[Frame], most: int, x_first: int = 0, y_first: int = 0
) -> Iterator[tuple[list[Frame], int, int]]:
    """Parts along the longest of the outer axes, with where each begins in x and in y."""
    reach = sum(abs(each) + 1 for each in _ends(axes))
    if max(math.prod(axis.size for axis in axes), reach) < most:
        yield list(axes), x_first, y_first
        return
    several = [at for at, axis in enumerate(axes) if axis.size > 1 and not axis.window]
    if not several:
        raise DeviceError(f"windows of one image have more than {most} elements")
    at = several[-1]
    axis, step = axes[at], math.prod(each.size for each in axes[:at])
    first = half(axis.size)
    for start, count in ((0, first), (first, axis.size - first)):
        low, high = (min(max(each - start, 0), count) for each in (axis.low, axis.high))
        skipped = max(0, start - axis.low) if high > low else 0
        part = Frame(count, low, high, axis.read)
        yield from _slabs(
            [*axes[:at], part, *axes[at + 1 :]], most,
            x_first + skipped * axis.read, y_first + start * step,
        )  # fmt: skip


def _ends(axes: Sequence[Frame]) -> list[int]:
    """From the first to the last element of x along each coordinate."""
    alone = {each.window or -at: each for at, each in enumerate(axes, 1)}
    return [max(0, each.high - each.low - 1) * each.read for each in alone.values()]


def _part(axes: Sequence[Frame], size: int, value: bytes, x_first: int, y_first: int) -> Part:
    spec = _spec(axes, size, y_first)
    total, ends = math.prod(axis.size for axis in axes), _ends(axes)
    low = sum(each for each in ends if each < 0)
    made = {
        "x_size": sum(each for each in ends if each > 0) - low + 1,
        "y_size": total * spec.unit,
        "count0": -(-total // spec.count),
        "first_read": -low,
    }
    for i, axis in enumerate(axes):
        over, shift = (0, 0) if spec.long[i] else reciprocal(axis.size)
        made |= {f"size{i}": axis.size, f"step{i}": axis.step, f"read{i}": axis.read}
        made |= {f"over{i}": over, f"shift{i}": shift}
        extent = max(0, axis.high - axis.low)
        made |= {f"low{spec.framed[i]}": axis.low, f"extent{spec.framed[i]}": extent}
    words = np.frombuffer(value, WORDS[size // spec.unit].numpy)
    numbers = {f"value{i}": (int(each),) for i, each in enumerate(words)}
    return Part(spec, made, (x_first + low) * size, y_first * size, numbers)


def _spec(axes: Sequence[Frame], size: int, y_first: int) -> Padded:
    """The kernel; words of y begin at a multiple of their length."""
    total, first = math.prod(axis.size for axis in axes), axes[0]
    close = first.read * first.step == 1
    out = OUT[size]
    while y_first % out or out > first.size:
        out //= 2
    times = TIMES if total >= FEW_BLOCKS * THREADS * TIMES * out else 1
    known: dict[int, int] = {}
    framed = tuple(
        0 if axis.whole else known.setdefault(axis.window or -at, len(known) + 1)
        for at, axis in enumerate(axes, 1)
    )
    spec = Padded(
        size, out, framed, (), times, out > 1 and first.size % out == 0,
        any(axis.step != 1 or axis.window for axis in axes), close,
    )  # fmt: skip
    return replace(spec, long=tuple(axis.size >= spec.count for axis in axes))
