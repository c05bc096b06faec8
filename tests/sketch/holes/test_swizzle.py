"""Swizzles against the formula, cell by cell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.index.ir import operations
from warploom.sketch.holes import build
from warploom.sketch.term.ir import GatherSet, Shape

Same = Callable[[GatherSet, Iterable[list[int]]], None]
Read = Callable[[Shape, Iterable[int]], int]


def divisors(n: int) -> list[int]:
    return [d for d in range(n, 1, -1) if n % d == 0]


def moved(
    read: Read, in_shape: Shape, out_shape: Shape, out: int, value: Callable[[tuple[int, ...]], int]
) -> list[int]:
    return [
        read(in_shape, (*x[:out], value(x), *x[out + 1 :]))
        for x in itertools.product(*map(range, out_shape))
    ]


def xform_value(
    x: tuple[int, ...], m: int, s: int, cf: int, cr: int, dr: int, g: int, wrap: bool
) -> int:
    common = math.gcd(g, abs(cf))
    i, k = x[m], x[s]
    fan = cf * (i % g) + (i % g) // (g // common)
    rot = cr * k + k // dr
    if wrap:
        rot %= common
    return (fan + rot) % g + i // g * g


def xforms(
    read: Read, in_shape: Shape, out_shape: Shape, m: int, s: int, o: int, grouped: bool
) -> Iterator[list[int]]:
    if in_shape == out_shape:
        yield moved(read, in_shape, out_shape, o, lambda x: x[o])
    length = in_shape[m]
    for g in divisors(length) if grouped else [length]:
        for wrap in (False, True) if grouped else (False,):
            for dr in divisors(in_shape[s]):
                for cr in [*range(g), -1]:
                    for cf in [*range(g), -1]:
                        yield moved(
                            read, in_shape, out_shape, o,
                            lambda x: xform_value(x, m, s, cf, cr, dr, g, wrap),  # noqa: B023
                        )  # fmt: skip


def rots(
    read: Read, in_shape: Shape, out_shape: Shape, m: int, o: int, grouped: bool
) -> Iterator[list[int]]:
    if in_shape == out_shape:
        yield moved(read, in_shape, out_shape, o, lambda x: x[o])
    length = in_shape[m]
    for g in divisors(length) if grouped else [length]:
        for c in [*range(g), *range(1 - g, 0)]:
            yield moved(
                read, in_shape, out_shape, o,
                lambda x: (c + x[m]) % g + x[m] // g * g,  # noqa: B023
            )  # fmt: skip


@st.composite
def swizzles(draw: st.DrawFn) -> tuple[Shape, Shape, int, int, int, bool]:
    in_shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axis = st.integers(0, len(in_shape) - 1)
    m, s, o = draw(axis), draw(axis), draw(axis)
    out_shape = list(in_shape)
    out_shape[o] = draw(st.sampled_from([in_shape[o], draw(st.integers(1, 7))]))
    return tuple(in_shape), tuple(out_shape), m, s, o, draw(st.booleans())


@examples(60)
@given(case=swizzles())
def test_xforms(case: tuple[Shape, Shape, int, int, int, bool], same: Same, read: Read) -> None:
    in_shape, out_shape, m, s, o, grouped = case
    reference = list(xforms(read, in_shape, out_shape, m, s, o, grouped))
    if reference:
        name = "xforms" if grouped else "xforms_no_group"
        options = {"main": m, "second": s, "out": o}
        same(build(name, options, (in_shape,), out_shape), reference)


@examples(60)
@given(case=swizzles())
def test_rots(case: tuple[Shape, Shape, int, int, int, bool], same: Same, read: Read) -> None:
    in_shape, out_shape, m, s, o, grouped = case
    reference = list(rots(read, in_shape, out_shape, m, o, grouped))
    if reference:
        name = "rots" if grouped else "rots_no_group"
        options = {"main": m, "second": s, "out": o}
        same(build(name, options, (in_shape,), out_shape), reference)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(12, 4), (8, 9), (6, 6, 2)])
@pytest.mark.parametrize(("name", "axes"), [("row_xforms", (1, 0, 1)), ("col_xforms", (0, 1, 0))])
def test_default_axes(
    name: str, axes: tuple[int, int, int], shape: Shape, same: Same, read: Read
) -> None:
    same(build(name, {}, (shape,), shape), xforms(read, shape, shape, *axes, True))


def test_names() -> None:
    gathers = build("col_rots", {}, ((4, 2),), (4, 2))
    assert [gathers.describe(i) for i in range(len(gathers))] == [
        "id", "rot[shift=1]", "rot[shift=2]", "rot[shift=3]", "rot[group=2,shift=1]",
    ]  # fmt: skip
    gathers = build("col_xforms", {}, ((4, 2),), (4, 2))
    names = [gathers.describe(i) for i in range(len(gathers))]
    assert names[0] == "id"
    assert "xform[group=2,cf=0,cr=1,dr=2]" in names
    assert all(name == "id" or name.startswith("xform[") for name in names)


def test_the_cheapest_choice_is_shown() -> None:
    """`i - k` needs less than `31*i`, though it comes last in the enumeration."""
    gathers = build("col_xforms_no_group", {}, ((32, 3),), (32, 3))
    costs = [operations(gathers.expression(i).offset) for i in range(len(gathers))]
    names = [gathers.describe(i) for i in range(len(gathers))]
    assert costs[names.index("id")] == 2  # 3*x0 + x1
    turned = names.index("xform[cf=-1,cr=1,dr=3]")
    assert costs[turned] == 4  # 3*((x1 - x0) % 32) + x1
    assert not any("cf=31" in name or "cr=31" in name for name in names)
