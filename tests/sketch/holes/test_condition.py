"""Conditionals against a direct enumeration of all conditions and all tuples of them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.sketch.holes import build
from warploom.sketch.term.ir import ZERO, GatherSet, Shape

Same = Callable[[GatherSet, Iterable[list[int]]], None]
Read = Callable[[Shape, Iterable[int]], int]
Test = Callable[[tuple[int, ...]], bool]

COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def condition(c: int, sign: int, a: int, b: int, compare: Callable[[int, int], bool]) -> Test:
    return lambda x: compare(x[a], c + sign * x[b])


def conditions(consts: Sequence[int], dims: Sequence[int]) -> list[Test]:
    return list(
        itertools.starmap(condition, itertools.product(consts, (1, -1), dims, dims, COMPARE))
    )


def default_consts(n: int) -> list[int]:
    return [0, 1, -1, n, -n]


def cells(shape: Shape) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, shape)))


def tuples(count: int, length: int) -> Iterator[tuple[int, ...]]:
    """Different numbers, the last the outermost."""
    if length == 0:
        yield ()
        return
    for last in range(count):
        for front in tuples(count, length - 1):
            if last not in front:
                yield (*front, last)


@pytest.mark.parametrize("out_shape", [(3, 4), (4, 2, 3), (5,)])
@pytest.mark.parametrize("suffix", ["", "_no_consts"])
def test_reg_select(out_shape: Shape, suffix: str, same: Same, read: Read) -> None:
    in_shape = (*out_shape[:-1], 2)
    consts = [0] if suffix else default_consts(out_shape[0])
    reference = [
        [read(in_shape, (*x[:-1], 0 if test(x) else 1)) for x in cells(out_shape)]
        for test in conditions(consts, range(len(out_shape)))
    ]
    same(build(f"reg_select{suffix}", {}, (in_shape,), out_shape), reference)


@pytest.mark.parametrize(
    ("shape", "restrict"),
    [((3, 4), ()), ((4, 2, 4), (1, 1)), ((2, 3, 2, 3), (3, 2, 1, 0)), ((3, 2), (0, 1, 1, 1)),
     ((3, 2), (0, 1, 0, 2)), ((3, 1), (1, 0))],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["", "_no_consts"])
def test_cond_keep(
    shape: Shape, restrict: tuple[int, ...], suffix: str, same: Same, read: Read
) -> None:
    pairs = list(zip(restrict[::2], restrict[1::2], strict=True))
    dims = [d for d in range(len(shape)) if d not in restrict[::2]]
    consts = [0] if suffix else default_consts(shape[0])
    tests: list[Test] = [lambda x: True, lambda x: False, *conditions(consts, dims)]
    reference = [
        [
            read(shape, x) if any(x[d] != v for d, v in pairs) or test(x) else ZERO
            for x in cells(shape)
        ]
        for test in tests
    ]
    same(build(f"cond_keep{suffix}", {"restrict": restrict}, (shape,), shape), reference)


def select_reference(
    read: Read, in_shape: Shape, out_shape: Shape, axis: int, dims: Sequence[int],
    consts: Sequence[int],
) -> Iterator[list[int]]:  # fmt: skip
    places = cells(out_shape)
    results = [[test(x) for x in places] for test in conditions(consts, dims)]
    needed = in_shape[axis] - 1
    reads = [
        [read(in_shape, (*x[:axis], v, *x[axis + 1 :])) for v in range(needed + 1)] for x in places
    ]
    for picked in tuples(len(results), needed):
        rows = [results[number] for number in picked]
        yield [
            options[next((j for j, row in enumerate(rows) if row[p]), needed)]
            for p, options in enumerate(reads)
        ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("in_shape", "out_shape", "axis", "options"),
    [
        ((3, 2, 2), (3, 5, 2), 1, {"dims": (0, 1)}),
        ((3, 2, 2), (3, 5, 2), 1, {}),
        ((3, 2, 2), (3, 5, 2), 1, {"dims": (2, 0)}),
        ((2, 3), (2, 4), 1, {"consts": (0, 1)}),
        ((2, 3), (2, 4), 1, {"consts": (2, -1)}),
        ((4, 3), (4, 3), 1, {"dims": (1,)}),
        ((4, 4), (4, 4), 1, {"dims": (1,), "consts": (0,)}),
        ((3, 4), (3, 2), 1, {"dims": (0,), "consts": (1,)}),
    ],
)
def test_general_select(
    in_shape: Shape, out_shape: Shape, axis: int, options: dict[str, tuple[int, ...]],
    same: Same, read: Read,
) -> None:  # fmt: skip
    dims = options.get("dims", tuple(range(len(out_shape))))
    consts = options.get("consts", default_consts(out_shape[axis]))
    gathers = build("general_select", {"axis": axis, **options}, (in_shape,), out_shape)
    same(gathers, select_reference(read, in_shape, out_shape, axis, dims, consts))


@examples(25)
@given(
    sources=st.integers(2, 4),
    outputs=st.integers(1, 4),
    side=st.integers(1, 3),
    const=st.integers(-3, 3),
    dims=st.sampled_from([(0,), (1,)]),
)
def test_general_select_with_scarce_conditions(
    sources: int, outputs: int, side: int, const: int, dims: tuple[int, ...], same: Same, read: Read
) -> None:
    """Twelve conditions, few of them different: tuples must not use one condition twice."""
    in_shape, out_shape = (side, sources), (side, outputs)
    options: dict[str, int | tuple[int, ...] | None] = {
        "axis": 1, "dims": dims, "consts": (const,),
    }  # fmt: skip
    gathers = build("general_select", options, (in_shape,), out_shape)
    same(gathers, select_reference(read, in_shape, out_shape, 1, dims, (const,)))


def test_general_select_no_consts(same: Same, read: Read) -> None:
    gathers = build("general_select_no_consts", {"axis": 1}, ((3, 3),), (3, 4))
    same(gathers, select_reference(read, (3, 3), (3, 4), 1, (0, 1), [0]))


def test_names() -> None:
    gathers = build("reg_select", {}, ((4, 2),), (4, 3))
    names = [gathers.describe(i) for i in range(len(gathers))]
    assert "first_if[d0 < +d1]" in names
    assert {"first_if[d0 <= 1 + d1]", "first_if[d0 <= 1 - d1]", "first_if[d0 = -d1]"} <= set(names)
    keep = build("cond_keep_no_consts", {}, ((4, 3),), (4, 3))
    assert [keep.describe(i) for i in range(3)] == [
        "keep_if(true)", "keep_if(false)", "keep_if(d0 = +d1)",
    ]  # fmt: skip
    select = build("general_select_no_consts", {"axis": 1}, ((3, 3),), (3, 4))
    assert "select[d0 = +d1; d0 < +d1]" in [select.describe(i) for i in range(len(select))]
