"""A sketch without holes is proved, or refuted with lane, register, expected and found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sketch.simt.tiled import proved, specified

from warploom.errors import CheckError
from warploom.kernel.evaluate import run
from warploom.search.outcome import Found, Impossible
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.solve import reinstantiate, solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec


def swapped(by: int, **sizes: int) -> Any:
    def body(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        y[lane] = k.shuffle(x[lane], lane ^ by)

    return specified(body, lambda x, lanes: [x[i ^ 1] for i in range(lanes)]).at(**sizes)


def test_a_sketch_without_holes_is_proved() -> None:
    outcome = solve(swapped(1))
    filled = proved(outcome)
    assert isinstance(outcome, Found)
    assert outcome.complete
    assert filled.fill == {}
    assert filled.optimal
    x, y = np.arange(24, dtype=np.float32), np.zeros(24, np.float32)
    run(to_kernel(filled), [x, y])
    np.testing.assert_array_equal(y, x.reshape(-1, 2)[:, ::-1].reshape(-1))
    assert isinstance(solve(swapped(1), optimum=True), Found)
    large = reinstantiate(filled, swapped(1, lanes=32))
    assert proved(large).traced.lanes == (("lane", 32),)


def test_a_wrong_sketch_without_holes_is_refuted_with_lane_register_expected_and_found() -> None:
    outcome = solve(swapped(2))
    assert isinstance(outcome, Impossible)
    assert outcome.why.startswith(
        "y[0] should hold x[1] but holds x[2]: lane 0 writes register 'v2'"
    )
    assert outcome.why.endswith("8 cells are wrong")


def test_a_refutation_names_accumulators_registers_and_cells_of_two_axes() -> None:
    def window(k: Tracer) -> None:
        row, column = k.warp(2, 4)
        x, y, z = k.input("x", (2, 4)), k.output("y", (2, 4)), k.output("z", (2, 4))
        total = k.accumulator("+", "*", init=2)
        total.add(x[row, column], x[row, column])
        y[row, column] = total.value()
        r = k.registers(2)
        r[0], r[1] = x[row, column], x[1 - row, column]
        z[row, column] = r[1]

    def wanted(x: Any) -> Any:
        squares = [[spec.started(2, [spec.product([v, v])]) for v in row] for row in x]
        return squares, [
            [x[0, 0] if (i, j) == (1, 2) else x[1 - i, j] for j in range(4)] for i in range(2)
        ]

    outcome = solve(specified(window, wanted).at())
    assert isinstance(outcome, Impossible)
    assert "z[1, 2] should hold x[0, 0] but holds x[0, 2]" in outcome.why
    assert "lane (1, 2) writes register 'r[1]'" in outcome.why

    def other(x: Any) -> Any:
        return [[spec.started(3, [spec.product([v, v])]) for v in row] for row in x], x[::-1]

    outcome = solve(specified(window, other).at())
    assert isinstance(outcome, Impossible)
    assert "y[0, 0] should hold +(=3, *(x[0, 0], x[0, 0]))" in outcome.why
    assert "but holds +(=2, *(x[0, 0], x[0, 0]))" in outcome.why
    assert "writes register 'acc'" in outcome.why


def test_a_refutation_says_when_nobody_writes_a_cell_and_when_numbers_differ() -> None:
    def short(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes + 1)
        y[lane] = x[lane]

    outcome = solve(specified(short, lambda x, lanes: [*x, x[0]]).at())
    assert isinstance(outcome, Impossible)
    assert "y[4] should hold x[0]" in outcome.why
    assert "no lane writes it" in outcome.why

    def half(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        total = k.accumulator("+", finalize="half", finish=lambda value: value / 2.0)
        total.add(x[lane])
        y[lane] = total.value()

    def third(value: Any) -> Any:
        return value / 3

    made = specified(
        half, lambda x, lanes: [spec.finalized("half", spec.total([v]), third) for v in x]
    )
    outcome = solve(made.at())
    assert isinstance(outcome, Impossible)
    assert "on numbers: lane 0 writes register 'acc'" in outcome.why


def test_what_several_lanes_write_at_once_is_refused() -> None:
    def clash(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        y[lane // 2] = x[lane]

    with pytest.raises(CheckError, match=r"lanes 0 and 1 write y\[0\] without a barrier"):
        solve(specified(clash, lambda x, lanes: x).at())


def test_what_differs_as_a_term_only_is_said_to_be_equal_on_numbers() -> None:
    def body(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        bits = k.accumulator("|")
        bits.add(x[lane])
        bits.add(x[lane])
        y[lane] = bits.value()

    outcome = solve(specified(body, lambda x, lanes: x[:lanes]).at())
    assert isinstance(outcome, Impossible)
    assert "; equal on the numbers tried: terms are equal up to" in outcome.why
    wrong = solve(swapped(2))
    assert isinstance(wrong, Impossible)
    assert "equal on the numbers" not in wrong.why
