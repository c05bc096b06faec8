"""The modes in which TMA writes shared memory and wgmma reads it; the tiles that they make.

A tensor copy writes a box: rows one after another, swizzled by the address in shared memory; a row
that is shorter than the swizzle leaves the rest of its room unused. A tile wider than a box is
several of them, side by side in the tensor and one after another in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.layout.language.evaluate import Numbers, evaluate
from warploom.layout.language.ir import Layout, Pad, Shift, Swizzle, Tile, compose
from warploom.layout.patterns.access import Problem

MOST_SIDE = 256  # elements of a box along an axis
ROW_BYTES = 16  # a row of a box is a multiple of this
FEW = 1 << 12  # elements that are looked at before all are
START_BYTES = 128  # and so is where a box begins


@dataclass(frozen=True, slots=True)
class Mode:
    """A swizzle of bytes; rows of a box have at most `most_bytes`, and the tile begins at a
    multiple of `alignment`. `since`: the compute capability that has it."""

    name: str
    swizzle: Swizzle
    most_bytes: int | None
    alignment: int
    since: int = 90


MODES = (
    Mode("none", Swizzle(0, 4, 3), None, 128),
    Mode("32B", Swizzle(1, 4, 3), 32, 256),
    Mode("64B", Swizzle(2, 4, 3), 64, 512),
    Mode("128B", Swizzle(3, 4, 3), 128, 1024),
    Mode("128B, 32-byte atoms", Swizzle(2, 5, 2), 128, 512, since=100),
)


@dataclass(frozen=True, slots=True)
class Box:
    """What one tensor copy moves, and how it lies in shared memory."""

    height: int
    width: int
    mode: Mode

    def layout(self, problem: Problem) -> Layout:
        """The tile of such boxes, as a map of row-major numbers."""
        bits, base, shift = self.mode.swizzle.bits, self.mode.swizzle.base, self.mode.swizzle.shift
        fewer = problem.element_bytes.bit_length() - 1
        parts: list[Layout] = [Swizzle(bits, base - fewer, shift)] if bits else []
        unused = _pitch(problem, self.width, self.mode) // problem.element_bytes - self.width
        if unused:
            parts.append(Pad(self.width, unused))
        if self.width < problem.columns:
            parts.append(Tile(problem.columns, problem.rows, self.width))
        return compose(*parts) if parts else Shift(0)

    def start(self, problem: Problem, number: int) -> int:
        """The byte at which a box begins."""
        return number * self.height * _pitch(problem, self.width, self.mode)

    def __str__(self) -> str:
        return (
            f"boxes of {self.height}×{self.width}, swizzle {self.mode.name}, from a multiple of "
            f"{self.mode.alignment} bytes"
        )


def boxes(problem: Problem) -> Iterator[Box]:
    """Every way to fill a tile by tensor copies of one box, on what has TMA: widest boxes first."""
    for width in range(min(problem.columns, MOST_SIDE), 0, -1):
        row = width * problem.element_bytes
        if problem.columns % width or row % ROW_BYTES:
            continue
        for mode in MODES:
            if mode.since == 90 and (mode.most_bytes is None or row <= mode.most_bytes):
                height = _height(problem, width, mode)
                if height is not None:
                    yield Box(height, width, mode)


def _pitch(problem: Problem, width: int, mode: Mode) -> int:
    """Bytes from one row of a box to the next."""
    return max(mode.most_bytes or 0, width * problem.element_bytes)


def _height(problem: Problem, width: int, mode: Mode) -> int | None:
    """The most rows of a box such that all boxes begin where they may."""
    for height in range(min(problem.rows, MOST_SIDE), 0, -1):
        alone = (height, width) == (problem.rows, problem.columns)
        begins = height * _pitch(problem, width, mode) % START_BYTES == 0
        if problem.rows % height == 0 and (alone or begins):
            return height
    return None


def box_of(addresses: Numbers, problem: Problem) -> Box | None:
    """The copies that put every element where a layout has it, if there are such."""
    numbers = np.arange(problem.size, dtype=np.int64)
    some = numbers[:: 1 + problem.size // FEW]  # few are enough to tell most boxes apart
    for box in boxes(problem):
        layout = box.layout(problem)
        if np.array_equal(evaluate(layout, some), addresses[some]) and np.array_equal(
            evaluate(layout, numbers), addresses
        ):
            return box
    return None


def mode_of(addresses: Numbers, columns: int, element_bytes: int) -> Mode | None:
    """The mode that puts every element of a row-major box where a layout has it, if there is one.

    A row shorter than the swizzle would leave the rest of its room unused: rows one right after
    another are what a mode writes if they are as long as it, and if a copy can have such rows.

    >>> rows = np.arange(512)
    >>> found = mode_of(evaluate(Swizzle(3, 3, 3), rows), 64, 2)
    >>> found.name if found else None
    '128B'
    """
    byte, row = np.arange(len(addresses), dtype=np.int64) * element_bytes, columns * element_bytes
    if row % ROW_BYTES or columns > MOST_SIDE:
        return None
    for mode in MODES:
        fits = mode.most_bytes is None or row == mode.most_bytes
        if fits and np.array_equal(evaluate(mode.swizzle, byte), addresses * element_bytes):
            return mode
    return None
