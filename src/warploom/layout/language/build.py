"""Layouts written in Python: the usual ones by name."""

from __future__ import annotations

from warploom.layout.language.check import check
from warploom.layout.language.ir import Compose, Layout, Pad, Strided, Swizzle, Tree


def row_major(*shape: int) -> Strided:
    """
    >>> row_major(8, 64)
    Strided((8, 64), (64, 1))
    """
    return Strided(_unless_one(shape), _unless_one(_strides(shape[::-1])[::-1]))


def column_major(*shape: int) -> Strided:
    """
    >>> column_major(8, 64)
    Strided((8, 64), (1, 8))
    """
    return Strided(_unless_one(shape), _unless_one(_strides(shape)))


def padded(*shape: int, by: int) -> Layout:
    """Rows, each with so many unused places after it."""
    return check(Compose(Pad(shape[-1], by), row_major(*shape)))


def swizzled(*shape: int, bits: int, base: int, shift: int) -> Layout:
    return check(Compose(Swizzle(bits, base, shift), row_major(*shape)))


def _strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    found, stride = [], 1
    for size in sizes:
        found.append(stride)
        stride *= size
    return tuple(found)


def _unless_one(numbers: tuple[int, ...]) -> Tree:
    return numbers[0] if len(numbers) == 1 else numbers
