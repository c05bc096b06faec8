"""Two questions asked of every set: is it the reference's, and does its arithmetic say the same?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from warploom.index.evaluate import evaluate
from warploom.sketch.term.ir import UNDEFINED, ZERO, GatherSet, Shape, size


def cells(shape: Shape) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def source(shape: Shape, coordinate: Iterable[int]) -> int:
    """The row-major offset, one multiplication at a time, or UNDEFINED out of bounds."""
    offset = 0
    for length, c in zip(shape, coordinate, strict=True):
        if not 0 <= c < length:
            return UNDEFINED
        offset = offset * length + c
    return offset


def expression_table(gathers: GatherSet, choice: int) -> list[int]:
    """The table of a choice, computed from its index expressions."""
    axes = np.indices(gathers.out_shape).reshape(len(gathers.out_shape), -1)
    env = {f"x{a}": axis for a, axis in enumerate(axes)}
    gather = gathers.expression(choice)
    count = size(gathers.out_shape)
    argument = np.broadcast_to(evaluate(gather.argument, env), count).tolist()
    offset = np.broadcast_to(evaluate(gather.offset, env), count).tolist()
    sizes = [size(s) for s in gathers.arg_shapes]
    starts = [0, *itertools.accumulate(sizes)]
    table = []
    for a, o in zip(argument, offset, strict=True):
        assert 0 <= a <= len(sizes)
        if a == len(sizes):
            table.append(ZERO)
        else:
            table.append(starts[a] + o if 0 <= o < sizes[a] else UNDEFINED)
    return table


def assert_sound(gathers: GatherSet, most: int = 300) -> None:
    """Rows are distinct, well typed, and each (of at most `most`) is what its expression says."""
    tables = gathers.tables
    assert tables.dtype == np.int32
    assert tables.flags.c_contiguous
    assert tables.shape == (len(gathers), size(gathers.out_shape))
    assert len({row.tobytes() for row in tables}) == len(tables)
    step = max(1, len(gathers) // most)
    for choice in range(0, len(gathers), step):
        shown = gathers.describe(choice)
        assert expression_table(gathers, choice) == tables[choice].tolist(), shown


def assert_same(gathers: GatherSet, reference: Iterable[list[int]]) -> None:
    """The set is the reference's tables in order of first occurrence, and sound."""
    expected = list(dict.fromkeys(map(tuple, reference)))
    assert [tuple(row) for row in gathers.tables.tolist()] == expected
    assert_sound(gathers)


@pytest.fixture(scope="session")
def same() -> Callable[[GatherSet, Iterable[list[int]]], None]:
    return assert_same


@pytest.fixture(scope="session")
def sound() -> Callable[..., None]:
    return assert_sound


@pytest.fixture(scope="session")
def read() -> Callable[[Shape, Iterable[int]], int]:
    return source
