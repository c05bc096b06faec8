"""The members of each class of layouts that is a list, for the checker of layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tile:
    """What decides the members: `operands` are rows of an instruction, and whether k lies together;
    `copied`: tensor copies move the tile."""

    size: int
    columns: int
    element_bytes: int
    banks: int
    operands: tuple[tuple[int, bool], ...] = ()
    copied: bool = False
    packed: int = 1  # elements of `element_bytes`

    @property
    def rows(self) -> int:
        return self.size // self.columns


def members(tile: Tile, klass: str) -> Iterator[list[int]]:
    match klass:
        case "tma":
            return _boxes(tile)
        case "wgmma":
            return _blocks(tile)
        case "pad":  # more padding has the same banks, and no more words in common
            return (
                [by] for by in range(max(1, tile.banks * 4 * tile.packed // tile.element_bytes))
            )
    most = (tile.size - 1).bit_length() if klass == "swizzle" else 0
    pairs = ((b, s) for b in range(1, most // 2 + 1) for s in range(b, most - b + 1))
    moved = ([bits, base, by] for bits, shift in pairs
             for base, by in product(range(most - bits - shift + 1), (shift, -shift)))  # fmt: skip
    x = np.arange(tile.size)  # those that leave no gaps
    return chain([[]], (m for m in moved if mapped(tile, klass, m, x).max() < tile.size))


def _boxes(tile: Tile) -> Iterator[list[int]]:
    """What TMA writes: boxes of so many columns, side by side in the tensor and one after another
    in memory, swizzled within bytes that a row takes at least. It has whole 16, boxes whole 128."""
    rows, size = tile.rows, tile.element_bytes
    for width, span in product(range(min(tile.columns, 256), 0, -1), (0, 32, 64, 128)):
        fits = tile.columns % width == width * size % 16 == 0 and not 0 < span < width * size
        begins = (h * max(span, width * size) % 128 == rows % h == 0 for h in range(1, 257))
        if fits and ((width == tile.columns and rows <= 256) or any(begins)):
            yield [width, span]


def _blocks(tile: Tile) -> Iterator[list[int]]:
    """What wgmma reads: blocks of whole eights of rows, as wide as a swizzled row (16 bytes without
    one), along the rows of the tile first. Pieces of eight rows are equally far apart in all that
    an instruction takes: 32 bytes of k and its rows of m or n. Tensor copies write columns of
    blocks alone."""
    rows, size = tile.rows, tile.element_bytes
    for span in (128, 64, 32, 0):
        width = max(span, 16) // size
        for height in range(rows, 0, -8) if tile.columns % width == 0 else ():
            written = height == rows or not tile.copied
            whole = written and rows % height == height % 8 == 0
            if whole and all(_is_read(tile, height, width, *o) for o in tile.operands):
                yield [height, span]


def _is_read(tile: Tile, height: int, width: int, taken: int, k_together: bool) -> bool:
    rows, size = tile.rows, tile.element_bytes
    depth = 32 // size
    deep, wide = (tile.columns, rows) if k_together else (rows, tile.columns)
    fits = deep % depth == wide % taken == taken % 8 == 0 and (k_together or size == 2)
    beside = k_together or taken % width == 0 or width % taken == 0
    even = height in (8, rows) or height % (taken if k_together else depth) == 0
    further = max(height, tile.columns // width * 8) * width * size
    return fits and beside and even and further < 1 << 18


def mapped(tile: Tile, klass: str, member: list[int], x: Numbers) -> Numbers:
    if klass in ("none", "pad") or not member:
        return x + x // tile.columns * sum(member)
    if klass == "tma":
        (width, span), (row, column) = member, np.divmod(x, tile.columns)
        size, block = tile.element_bytes, column // width * tile.rows
        byte: Numbers = (block + row) * max(span, width * size) + column % width * size
        return (byte ^ (byte >> 7 & max(1, span // 16) - 1) << 4) // size
    if klass == "wgmma":
        (height, span), (row, column) = member, np.divmod(x, tile.columns)
        size, width = tile.element_bytes, max(span, 16) // tile.element_bytes
        block = row // height * (tile.columns // width) + column // width
        byte = ((block * height + row % height) * width + column % width) * size
        return (byte ^ (byte >> 7 & max(1, span // 16) - 1) << 4) // size
    bits, base, shift = member
    upper = x >> max(shift, 0) & ((1 << bits) - 1) << base
    return x ^ (upper << max(-shift, 0))
