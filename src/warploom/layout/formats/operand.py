"""The layouts in which wgmma reads a whole tile by descriptors: blocks of swizzled rows.

A block is as wide as a row of the swizzle (or 16 bytes, without one) and as high as the tile, eight
rows, or what an instruction takes. Blocks lie along the rows of the tile first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from warploom.layout.formats.descriptor import (
    EIGHT,
    MOST,
    SPANS,
    STEP_BYTES,
    UNIT,
    Reading,
    reading_of,
)
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.ir import Layout, Shift, Swizzle, Tile, compose
from warploom.layout.patterns.access import IDLE, Access, Operand, Problem

MODES = ("128B", "64B", "32B", "none")  # the widest rows first, which tensor copies like best


@dataclass(frozen=True, slots=True)
class Blocks:
    """A tile in blocks of so many rows, each row swizzled."""

    mode: str
    height: int

    def layout(self, problem: Problem) -> Layout:
        """As a map of row-major numbers."""
        size, span = problem.element_bytes, SPANS[self.mode]
        bits, width = (span // UNIT).bit_length() - 1, span // size
        parts: list[Layout] = [Swizzle(bits, 5 - size.bit_length(), 3)] if bits else []
        if width < problem.columns:
            parts.append(Tile(problem.columns, self.height, width))
        return compose(*parts) if parts else Shift(0)

    def __str__(self) -> str:
        return f"blocks of {self.height} rows, swizzle {self.mode}"


def tiles_in_blocks(problem: Problem) -> Iterator[Blocks]:
    """Every way to lay out a tile so that all of its operands can be read; if tensor copies fill
    it, only those that they can write."""
    for mode in MODES:
        if problem.columns * problem.element_bytes % SPANS[mode]:
            continue
        for height in range(problem.rows, 0, -EIGHT):
            written = height == problem.rows or not problem.copies
            if written and problem.rows % height == 0 and height % EIGHT == 0:
                found = Blocks(mode, height)
                if all(is_read(problem, each, found) for each in problem.operands):
                    yield found


def is_read(problem: Problem, operand: Operand, blocks: Blocks) -> bool:
    """Whether descriptors read the tile: pieces of one instruction are equally far apart."""
    span, size, height = SPANS[blocks.mode], problem.element_bytes, blocks.height
    depth, width = STEP_BYTES // size, span // size
    along_k = operand.major == "k"
    deep, wide = (problem.columns, problem.rows) if along_k else (problem.rows, problem.columns)
    if deep % depth or wide % operand.rows or operand.rows % EIGHT or (not along_k and size != 2):
        return False
    if not along_k and operand.rows % width and width % operand.rows:
        return False
    taken = operand.rows if along_k else depth  # rows of the tile that an instruction takes
    if height not in (EIGHT, problem.rows) and height % taken:
        return False
    further = max(height, problem.columns // width * EIGHT) * span
    return further < MOST


def reading(problem: Problem, operand: Operand, addresses: Numbers) -> Reading | None:
    """The descriptors by which an operand is read where a layout has it."""
    shape = (problem.rows, problem.columns)
    return reading_of(addresses, shape, problem.element_bytes, operand.rows, operand.major)


def read_by_wgmma(problem: Problem, operand: Operand) -> Problem:
    """The problem with one more reader."""
    accesses = (*problem.accesses, read_access(problem, operand))
    return replace(problem, accesses=accesses, operands=(*problem.operands, operand))


def read_access(problem: Problem, operand: Operand) -> Access:
    """What the matrix unit reads, as eight rows of 16 bytes at a time. That is how ldmatrix reads,
    too; how the unit does it is not published."""
    size = problem.element_bytes
    width = UNIT // size
    rows, across = problem.rows // EIGHT, problem.columns // width
    if problem.rows % EIGHT or problem.columns % width:
        return Access(operand.name, np.zeros((0, problem.serving.lanes, width), np.int64))
    piece = np.arange(rows * across).reshape(-1, 4 if rows * across % 4 == 0 else 1)
    row = piece[..., None] // across * EIGHT + np.arange(EIGHT)
    first = (row * problem.columns + piece[..., None] % across * width).reshape(len(piece), -1)
    elements = np.full((len(piece), problem.serving.lanes, width), IDLE)
    elements[:, : first.shape[1]] = first[..., None] + np.arange(width)
    return Access(operand.name, elements, "ldmatrix")
