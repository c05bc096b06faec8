"""One-gather functions against their definition, and what they refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import pytest

from warploom.sketch.holes import build
from warploom.sketch.term.ir import GatherSet, Shape

Same = Callable[[GatherSet, Iterable[list[int]]], None]
Read = Callable[[Shape, Iterable[int]], int]


def cells(shape: Shape) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, shape)))


@pytest.mark.parametrize("name", ["id", "identity", "reshape"])
@pytest.mark.parametrize(
    ("in_shape", "out_shape"), [((6,), (2, 3)), ((2, 3), (3, 1, 2)), ((1,), (1,))]
)
def test_identity(name: str, in_shape: Shape, out_shape: Shape, same: Same) -> None:
    gathers = build(name, {}, (in_shape,), out_shape)
    same(gathers, [list(range(len(cells(out_shape))))])
    assert gathers.describe(0) == name
    assert not gathers.is_hole


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 4), (5,)])
def test_transpose(shape: Shape, same: Same, read: Read) -> None:
    gathers = build("transpose", {}, (shape,), shape[::-1])
    same(gathers, [[read(shape, x[::-1]) for x in cells(shape[::-1])]])


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 1)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_stack(shape: Shape, count: int, same: Same, read: Read) -> None:
    size = len(cells(shape))
    expected = [x[-1] * size + read(shape, x[:-1]) for x in cells((*shape, count))]
    same(build("stack", {"fold_len": count}, (shape,) * count, (*shape, count)), [expected])


@pytest.mark.parametrize("by", [0, 1, 2, 3, 4])
def test_rot_idx(by: int, same: Same, read: Read) -> None:
    shape = (2, 3, 4)
    turn = by % 3
    right = (*shape[3 - turn :], *shape[: 3 - turn])
    expected = [read(shape, (*x[turn:], *x[:turn])) for x in cells(right)]
    same(build("rot_idx", {"r": by}, (shape,), right), [expected])
    left = (*shape[turn:], *shape[:turn])
    expected = [read(shape, (*x[3 - turn :], *x[: 3 - turn])) for x in cells(left)]
    same(build("rot_idx", {"l": by}, (shape,), left), [expected])


@pytest.mark.parametrize(
    ("in_shape", "out_shape"),
    [((34,), (32, 2)), ((7,), (3, 2, 2)), ((5, 2), (4, 3, 2)), ((12,), (3, 1, 2)), ((4,), (4,))],
)
def test_loads(in_shape: Shape, out_shape: Shape, same: Same, read: Read) -> None:
    lead = len(out_shape) - len(in_shape) + 1

    def number(x: tuple[int, ...]) -> int:
        result = 0
        for axis in reversed(range(lead)):
            result = result * out_shape[axis] + x[axis]
        return result

    cut = [read(in_shape, (number(x), *x[lead:])) for x in cells(out_shape)]
    again = [read(in_shape, (number(x) % in_shape[0], *x[lead:])) for x in cells(out_shape)]
    same(build("load_trunc", {}, (in_shape,), out_shape), [cut])
    same(build("load_rep", {}, (in_shape,), out_shape), [again])


@pytest.mark.parametrize(
    ("in_shape", "out_shape"),
    [((6, 6), (4, 4, 2, 2)), ((8, 8), (4, 4, 2, 2)), ((3, 9), (2, 3, 2, 2))],
)
def test_load_grid_2d(in_shape: Shape, out_shape: Shape, same: Same, read: Read) -> None:
    expected = [
        read(in_shape, (i + out_shape[0] * k, j + out_shape[1] * m))
        for i, j, k, m in cells(out_shape)
    ]
    same(build("load_grid_2d", {}, (in_shape,), out_shape), [expected])


@pytest.mark.parametrize(
    ("in_shape", "out_shape", "group"),
    [((4,), (3, 4), 0), ((4,), (4, 3), 1), ((2, 3), (2, 5, 3), 1), ((2, 3), (2, 3, 4), 2),
     ((2, 3), (3, 5, 3), 1), ((2, 3), (2, 4, 2), 2), ((2, 3), (2, 3), 0)],
)  # fmt: skip
def test_broadcast(in_shape: Shape, out_shape: Shape, group: int, same: Same, read: Read) -> None:
    lead = len(out_shape) - len(in_shape) + group
    expected = [read(in_shape, (*x[:group], *x[lead:])) for x in cells(out_shape)]
    options = {"group": group} if group else {}
    same(build("broadcast", options, (in_shape,), out_shape), [expected])
