"""Grouped permutations and XOR swizzles against their definition."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import pytest

from warploom.sketch.holes import build
from warploom.sketch.holes.permutation import heap_order
from warploom.sketch.term.ir import GatherSet, Shape

Same = Callable[[GatherSet, Iterable[list[int]]], None]
Read = Callable[[Shape, Iterable[int]], int]


def heap(items: list[int], count: int) -> Iterator[list[int]]:
    """Heap's algorithm as it is usually written."""
    if count <= 1:
        yield list(items)
        return
    for i in range(count):
        yield from heap(items, count - 1)
        if i < count - 1:
            j = i if count % 2 == 0 else 0
            items[j], items[count - 1] = items[count - 1], items[j]


@pytest.mark.parametrize("count", range(1, 7))
def test_heap_order(count: int) -> None:
    assert heap_order(count).tolist() == list(heap(list(range(count)), count))


def reference(
    read: Read, shape: Shape, axis: int, group: int, restrict: tuple[int, int] | None, xors: int
) -> Iterator[list[int]]:
    lanes = range(shape[axis])
    moves = [list(lanes)]
    moves += [
        [i // group * group + p[i % group] for i in lanes] for p in heap(list(range(group)), group)
    ]
    moves += [[(i // 32 * 32 + (i % 32 ^ k)) % len(lanes) for i in lanes] for k in range(xors)]
    for move in moves:
        table = []
        for x in itertools.product(*map(range, shape)):
            there = restrict is None or x[restrict[0]] == restrict[1]
            table.append(read(shape, (*x[:axis], move[x[axis]], *x[axis + 1 :]) if there else x))
        yield table


@pytest.mark.sampled(20)
@pytest.mark.parametrize("group", [1, 2, 3, 4])
@pytest.mark.parametrize("restrict", [None, (0, 1), (1, 1), (2, 0)])
@pytest.mark.parametrize(("shape", "axis"), [((4, 2, 3), 0), ((2, 5, 2), 1), ((2, 2, 6), 2)])
def test_grouped_perms(
    shape: Shape, axis: int, group: int, restrict: tuple[int, int] | None, same: Same, read: Read
) -> None:
    options: dict[str, int | tuple[int, ...] | None] = {"axis": axis, "group": group}
    if restrict is not None:
        options["restrict"] = restrict
    gathers = build("grouped_perms", options, (shape,), shape)
    same(gathers, reference(read, shape, axis, group, restrict, 0))


@pytest.mark.parametrize("length", [4, 24, 32, 40, 64])
@pytest.mark.parametrize("restrict", [None, (1, 1)])
def test_amd_swizzles(
    length: int, restrict: tuple[int, int] | None, same: Same, read: Read
) -> None:
    shape = (length, 2)
    options: dict[str, int | tuple[int, ...] | None] = {"axis": 0, "group": 3}
    if restrict is not None:
        options["restrict"] = restrict
    gathers = build("amd_swizzles_perm", options, (shape,), shape)
    same(gathers, reference(read, shape, 0, 3, restrict, 32))


def test_names_and_large_groups(sound: Callable[..., None]) -> None:
    gathers = build("grouped_perms", {"axis": 0, "group": 8}, ((16, 2),), (16, 2))
    assert len(gathers) == 40320
    sound(gathers, most=50)
    assert gathers.describe(0) == "id"
    assert gathers.describe(1) == "perm[1,0,2,3,4,5,6,7]"
    swizzles = build("amd_swizzles_perm", {"axis": 0, "group": 2}, ((64,),), (64,))
    assert "swizzle_b32[and=31,or=0,xor=5]" in [swizzles.describe(i) for i in range(len(swizzles))]
