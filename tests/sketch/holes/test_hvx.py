"""HVX sets against the instruction table, lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from warploom.sketch.holes import build
from warploom.sketch.term.ir import UNDEFINED, GatherSet, Shape

Same = Callable[[GatherSet, Iterable[list[int]]], None]
Lane = Callable[[int, int], tuple[int, int]]  # (lane, row) -> (0 for u or 1 for v, lane)


def one_output(n: int, swaps: bool) -> Iterator[Lane]:
    yield lambda i, r: (1 - i % 2, i - i % 2 + 1)
    yield lambda i, r: (1 - i % 2, i - i % 2)
    for m in range(n):
        yield lambda i, r, m=m: (0, i - (n - m)) if i >= n - m else (1, i + m)  # type: ignore[misc]
        yield lambda i, r, m=m: (1, n - m + i) if i < m else (0, i - m)  # type: ignore[misc]
    for mask in range(1 << n if swaps else 0):
        yield lambda i, r, mask=mask: (0 if mask >> i & 1 else 1, i)  # type: ignore[misc]


def two_outputs(n: int, swaps: bool) -> Iterator[Lane]:
    yield lambda i, r: (1 - i % 2, i - i % 2 + r)
    yield lambda i, r: (1, 2 * (i - n // 2) + r) if i >= n // 2 else (0, 2 * i + r)
    for mask in range(1 << n if swaps else 0):
        yield lambda i, r, mask=mask: (1 - (r ^ (mask >> i & 1)), i)  # type: ignore[misc]


def apply(
    in_shape: Shape, out_shape: Shape, lane: Lane, u: int, v: int, targets: list[int]
) -> list[int]:
    n = in_shape[1]
    table = []
    for row in range(out_shape[0]):
        for i in range(n):
            register, place = row, i
            if row in targets:
                which, place = lane(i, len(targets) - 1 - targets[::-1].index(row))
                register = (u, v)[which]
            inside = register < in_shape[0] and place < n
            table.append(register * n + place if inside else UNDEFINED)
    return table


def reference(
    in_shape: Shape, out_shape: Shape, outputs: int, sources: list[tuple[int, int]],
    targets: Callable[[int, int], list[list[int]]], swaps: bool = False,
) -> Iterator[list[int]]:  # fmt: skip
    n = in_shape[1]
    yield apply(in_shape, out_shape, lambda i, r: (0, i), 0, 0, [])
    for u, v in sources:
        for target in targets(u, v):
            for lane in one_output(n, swaps) if outputs == 1 else two_outputs(n, swaps):
                yield apply(in_shape, out_shape, lane, u, v, target)


def pairs(limit: int) -> list[tuple[int, int]]:
    return [(u, v) for u in range(limit) for v in range(limit)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("swaps", [False, True])
def test_one_output(lanes: int, swaps: bool, same: Same) -> None:
    swaps = swaps and lanes <= 4
    flags = {"swaps": None} if swaps else {}
    fresh = build("hvx_2x1", {"fresh": None, "in_lim": 2, **flags}, ((3, lanes),), (5, lanes))
    expected = reference(
        (3, lanes), (5, lanes), 1, pairs(2), lambda u, v: [[3], [4]], swaps
    )  # fmt: skip
    same(fresh, expected)
    everywhere = build("hvx_2x1", flags, ((2, lanes),), (2, lanes))
    expected = reference((2, lanes), (2, lanes), 1, pairs(2), lambda u, v: [[0], [1]], swaps)
    same(everywhere, expected)


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("swaps", [False, True])
def test_two_outputs(lanes: int, swaps: bool, same: Same) -> None:
    swaps = swaps and lanes <= 4
    flags = {"swaps": None} if swaps else {}
    shape = (4, lanes)
    gathers = build("hvx_2x2", {"in": (0, 1, 2, 0), **flags}, (shape,), shape)
    expected = reference(
        shape, shape, 2, [(0, 1), (2, 0)], lambda u, v: [[0, 1], [2, 3]], swaps
    )  # fmt: skip
    same(gathers, expected)
    gathers = build("hvx_2x2", {"fresh": None, "in_lim": 2, **flags}, ((2, lanes),), (5, lanes))
    expected = reference((2, lanes), (5, lanes), 2, pairs(2), lambda u, v: [[2, 3]], swaps)
    same(gathers, expected)
    gathers = build("hvx_2x2", {"out": (3, 1), "in_lim": 1, **flags}, (shape,), shape)
    same(gathers, reference(shape, shape, 2, pairs(1), lambda u, v: [[3, 1]], swaps))


def in_place_pairs(u: int, v: int) -> list[list[int]]:
    return [[r, r + 1] for r in (u, v) if r % 2 == 0]


def test_in_place(same: Same) -> None:
    shape = (4, 4)
    twos = list(reference(shape, shape, 2, pairs(4), in_place_pairs))
    ones = list(reference(shape, shape, 1, pairs(4), lambda u, v: [[u], [v]]))
    same(build("hvx_inplace", {}, (shape,), shape), twos + ones)
    same(build("hvx_2x1", {"inplace": None}, (shape,), shape), ones)
    both = build("hvx_2x1", {"inplace": None, "out": (1,)}, (shape,), shape)
    same(both, reference(shape, shape, 1, pairs(4), lambda u, v: [[u], [v], [1]]))


def test_the_missing_register_is_undefined() -> None:
    gathers = build("hvx_2x1", {"fresh": None}, ((2, 4),), (3, 4))
    assert gathers.describe(0) == "id"
    assert gathers.tables[0].tolist() == [*range(8), *[UNDEFINED] * 4]


def test_names() -> None:
    gathers = build("hvx_2x1", {"fresh": None}, ((2, 4),), (3, 4))
    names = [gathers.describe(i) for i in range(len(gathers))]
    assert {"mov(2:=1)", "vshuffo(2:=0,1)", "valign[1](2:=0,1)"} <= set(names)
    deal = build("hvx_2x2", {"swaps": None, "fresh": None}, ((2, 4),), (4, 4))
    names = [deal.describe(i) for i in range(len(deal))]
    assert {"vdeal(2,3:=0,1)", "vswap[mask=0b0101](2,3:=0,1)"} <= set(names)
