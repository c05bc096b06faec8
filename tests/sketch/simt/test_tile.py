"""Load, store and copy: which element goes where, in one and two dimensions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.sketch.simt.evaluate import interpret
from warploom.sketch.simt.function import sketch
from warploom.sketch.simt.trace import Tracer

Numbers = npt.NDArray[np.int64]


@examples(25)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3))
def test_a_lane_takes_its_stride_in_every_round(
    warp: int, rounds: int, stride: int, offset: int
) -> None:
    @sketch
    def backwards(k: Tracer) -> None:
        lane = k.warp(warp)
        x = k.input("x", offset + warp * rounds * stride)
        y = k.output("y", (rounds * stride, warp))
        r = k.load(x, rounds, stride, offset, shuffle=lambda lane, j: (warp - 1) - lane)
        for i in k.loop(rounds * stride):
            y[i, lane] = r[i]

    @backwards.specification
    def taken(x: Numbers) -> Numbers:
        parts = x[offset:].reshape(rounds, warp, stride)[:, ::-1]
        return parts.transpose(0, 2, 1).reshape(-1, warp)

    traced = backwards.at()
    assert interpret(traced, {}) == traced.goal.values


@examples(25)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_a_tile_goes_through_shared_memory_and_back(
    rows: int, columns: int, deep: int, wide: int, through: bool
) -> None:
    shape = (rows * deep, columns * wide)

    def mirrored(row: Expr, column: Expr, *_: Expr) -> tuple[Expr, Expr]:
        return (rows - 1) - row, column

    @sketch
    def moved(k: Tracer) -> None:
        k.warp(rows, columns)
        x, y = k.input("x", (shape[0] + 1, shape[1] + 2)), k.output("y", shape)
        s = k.shared("s", shape)
        if through:
            k.copy(x, s, (deep, wide), offset=(1, 2))
            k.copy(s, y, (deep, wide), shuffle=mirrored)
        else:
            k.store(y, k.load(x, (deep, wide), offset=(1, 2)))

    @moved.specification
    def inner(x: Numbers) -> Numbers:
        return x[1:, 2:]

    traced = moved.at()
    assert interpret(traced, {}) == traced.goal.values


def test_what_does_not_fit_is_refused() -> None:
    @sketch
    def flat(k: Tracer) -> None:
        k.warp(2, 2)
        k.load(k.input("x", 8), 2)

    @sketch
    def lopsided(k: Tracer) -> None:
        k.warp(2, 2)
        k.load(k.input("x", (4, 4)), (2, 2, 2))

    @sketch
    def negative(k: Tracer) -> None:
        k.warp(2)
        k.load(k.input("x", 4), 1, offset=-1)

    for made, message in ((flat, "2 axes"), (lopsided, "2 numbers"), (negative, "at least 0")):
        made.specification(lambda _: np.zeros(4, int))
        with pytest.raises(CheckError, match=message):
            made.at()
