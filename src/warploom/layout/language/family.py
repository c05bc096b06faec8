"""Families of layouts with a few parameters, as maps of an element's row-major number.

Each family is a list that ends: when all of it was tried, its best is the best.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warploom.layout.language import ir
from warploom.layout.language.evaluate import evaluate
from warploom.layout.patterns.access import Problem

IDENTITY = ir.Shift(0)
MOST_ROTATION = 64  # columns that a row is turned by, at most


def paddings(problem: Problem) -> Iterator[ir.Layout]:
    """Every padding of rows by less than all banks. A row longer by all banks has the same banks
    and no more words in common with others, so that no other padding is better."""
    period = max(1, problem.elements_in(problem.serving.banks * problem.serving.word_bytes))
    return (ir.Pad(problem.columns, by) for by in range(period))


def swizzles(problem: Problem) -> Iterator[ir.Layout]:
    """Every Swizzle<B,M,S> that leaves no gaps. Bits that no element has change nothing, and where
    one is changed for some element, there is a gap."""
    yield IDENTITY
    most = (problem.size - 1).bit_length()
    for bits in range(1, most // 2 + 1):
        for shift in range(bits, most - bits + 1):
            for base in range(most - bits - shift + 1):
                for swizzle in (ir.Swizzle(bits, base, shift), ir.Swizzle(bits, base, -shift)):
                    if not _has_gaps(swizzle, problem.size):
                        yield swizzle


def _has_gaps(swizzle: ir.Swizzle, size: int) -> bool:
    """Elements stay in their block of all bits that may change; so the last ones tell, if they are
    no whole block."""
    block = 1 << swizzle.base + swizzle.bits + max(0, -swizzle.shift)
    last = np.arange(size - size % block, size, dtype=np.int64)
    return bool((evaluate(swizzle, last) >= size).any())


def reversals(problem: Problem) -> Iterator[ir.Layout]:
    """x ^ (bits of x above, in reverse order): one instruction where bits can be reversed."""
    bits = problem.size.bit_length() - 1
    if problem.size != 1 << bits:
        return
    for count in range(2, bits // 2 + 1):
        for source in range(count, bits - count + 1):
            for target in range(source - count + 1):
                columns = [1 << bit for bit in range(bits)]
                for bit in range(count):
                    columns[source + bit] ^= 1 << (target + count - 1 - bit)
                yield ir.Matrix(tuple(columns), 0)


def dense(problem: Problem) -> Iterator[ir.Layout]:
    """For rows of any length, without unused places: columns exchanged in blocks, rows rotated."""
    yield from exchanges(problem)
    yield from rotations(problem)


def spaced(problem: Problem) -> Iterator[ir.Layout]:
    """With unused places: tiles, and padding after every so many elements."""
    yield from tiles(problem)
    yield from intervals(problem)


def exchanges(problem: Problem) -> Iterator[ir.Layout]:
    columns, rows = problem.columns, problem.size // problem.columns
    most = (columns & -columns).bit_length() - 1
    for period in range(1, most + 1):
        for unit in range(most - period + 1):
            for shift in range(max(1, rows.bit_length())):
                yield ir.Exchange(columns, 1 << unit, 1 << period, shift)


def rotations(problem: Problem) -> Iterator[ir.Layout]:
    columns, rows = problem.columns, problem.size // problem.columns
    for within in _divisors(columns):
        for high in _powers(rows):
            for by in range(1, min(within, MOST_ROTATION)):
                yield ir.Rotate(columns, within, by, high)


def tiles(problem: Problem) -> Iterator[ir.Layout]:
    """Blocks as large as all banks, each with its rows turned on from one row of blocks to the
    next. Rows are filled up to whole blocks."""
    banks = max(1, problem.elements_in(problem.serving.banks * problem.serving.word_bytes))
    columns = problem.columns
    for width in _powers(banks):
        if width < 2:
            continue
        height, whole = banks // width, -(-columns // width) * width
        for by in range(width):
            rotation = [ir.Rotate(whole, width, by, height)] if by else []
            padding = [ir.Pad(columns, whole - columns)] if whole > columns else []
            yield ir.compose(ir.Tile(whole, height, width), *rotation, *padding)


def intervals(problem: Problem) -> Iterator[ir.Layout]:
    """A few places left out after every so many elements, whatever the rows."""
    banks = max(1, problem.elements_in(problem.serving.banks * problem.serving.word_bytes))
    for every in _powers(problem.size):
        for by in _powers(banks // 2):
            if every >= by and every != problem.columns:
                yield ir.Pad(every, by)


def _powers(most: int) -> list[int]:
    return [1 << bit for bit in range(most.bit_length())] if most > 0 else []


def _divisors(size: int) -> list[int]:
    """From the largest down; 1 is left out, as nothing turns in one column."""
    return [part for part in range(size, 1, -1) if size % part == 0]
