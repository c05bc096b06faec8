"""Fills at kernel sizes: right, fast enough to be found at build time, and lowered to rotations."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.catalogue.fill import (
    TileFill,
    alike,
    summing,
    transposing,
    without_negatives,
)
from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr
from warploom.sketch.code.exchange import rotation_of
from warploom.sketch.code.move import LANE, REGISTER


def table(expr: Expr, lanes: int, registers: int) -> np.ndarray:
    grid = {LANE.name: np.arange(lanes)[:, None], REGISTER.name: np.arange(registers)[None]}
    return np.broadcast_to(np.asarray(evaluate(expr, grid)), (lanes, registers))


def moved(fill: TileFill, tile: np.ndarray) -> np.ndarray:
    for step in fill.steps:
        source = table(step.source, fill.lanes, fill.registers)
        tile = np.take_along_axis(tile, source, axis=1 if step.kind == "c" else 0)
    return tile


@examples(10)
@given(
    lanes=st.integers(1, 32),
    registers=st.integers(1, 40),
    order=st.sampled_from(["crc", "rcr"]),
    back=st.booleans(),
)
def test_fills_transpose(lanes: int, registers: int, order: str, back: bool) -> None:
    words = np.arange(lanes * registers)
    striped, blocked = words.reshape(registers, lanes).T, words.reshape(lanes, registers)
    fill = transposing(lanes, registers, order, back=back)
    start, end = (blocked, striped) if back else (striped, blocked)
    assert np.array_equal(moved(fill, start), end)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("registers", [1, 2, 3, 6, 8, 12, 16, 31])
def test_the_way_back_undoes_the_last_step(registers: int) -> None:
    last = transposing(32, registers, "rcr").steps[-1]
    assert last.back is not None
    there, back = table(last.source, 32, registers), table(last.back, 32, registers)
    lanes = np.broadcast_to(np.arange(32)[:, None], there.shape)
    assert np.array_equal(np.take_along_axis(back, there, axis=0), lanes)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("registers", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16])
def test_sums(registers: int) -> None:
    words = np.arange(32 * registers)
    tile = moved(summing(32, registers), words.reshape(registers, 32).T)
    assert np.array_equal(tile.sum(axis=1), words.reshape(32, registers).sum(axis=1))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("registers", [*range(1, 17), 24, 31, 63])
def test_steps_within_threads_are_rotations(registers: int) -> None:
    """A rotation takes log n selects per register; anything else would take n."""
    for step in transposing(32, registers, "crc").steps:
        if step.kind == "c" and not step.idle:
            assert rotation_of(step.source, 32, registers) is not None


def test_iterations_are_what_they_say() -> None:
    index = (REGISTER - LANE) % 6 // 2 + (REGISTER - LANE) % 2 * 3
    iteration = rotation_of(index, 32, 6)
    assert iteration is not None
    lane, register = np.arange(32)[:, None], np.arange(6)[None]
    inner = (
        np.asarray(evaluate(iteration.fixed, {"x1": register}))
        + np.asarray(evaluate(iteration.amount, {"x0": lane}))
    ) % 6
    assert np.array_equal(evaluate(iteration.outer, {"z": inner}), table(index, 32, 6))
    assert rotation_of(REGISTER * LANE % 5, 32, 5) is None


def test_small_tiles_have_the_same_kind_of_factors() -> None:
    for lanes in range(1, 33):
        for registers in range(1, 65):
            small = alike(lanes, registers)
            assert small[0] * small[1] <= 315
            one, other = (math.gcd(*pair) == 1 for pair in (small, (lanes, registers)))
            assert one == other


def test_large_fills_are_found_in_time() -> None:
    started = time.process_time()
    transposing(32, 59, "crc")
    assert time.process_time() - started < 30  # about half a second; machines differ


def test_no_remainder_of_a_negative_number_is_left() -> None:
    bounds = {"x0": (0, 31), "x1": (0, 5)}
    before = (REGISTER - LANE // 16) % 6
    after = without_negatives(before, bounds)
    assert np.array_equal(table(before, 32, 6), table(after, 32, 6))
    assert after is not before


def test_an_unknown_order_is_an_error() -> None:
    with pytest.raises(CheckError, match="unknown order"):
        transposing(4, 4, "xyz")
