"""Bit operations in warp sketches: butterflies and reversals, found, proved, run as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.tools import is_here, require

from warploom import runtime
from warploom.errors import CheckError
from warploom.index.ir import Var
from warploom.index.show import show
from warploom.kernel.dtype import i32
from warploom.kernel.evaluate import run
from warploom.search.outcome import Found, Verdict
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.function import sketch
from warploom.sketch.simt.solve import Filled, reinstantiate, solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec


@sketch
def reverse(k: Tracer, lanes: int = 32) -> None:
    """Lane l takes what the lane with l's bits in reverse order holds."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    y[lane] = k.shuffle(x[lane], k.bits(lane, lanes, name="source"))


def backwards(lane: int, lanes: int) -> int:
    bits = lanes.bit_length() - 1
    return int(format(lane, f"0{bits}b")[::-1], 2)


@reverse.specification
def _reverse(x: Any, lanes: int) -> Any:
    return [x[backwards(lane, lanes)] for lane in range(lanes)]


@sketch
def partners(k: Tracer, lanes: int = 32, steps: int = 5) -> None:
    """Each lane's partners in the steps of a butterfly."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", (lanes, steps))
    own = k.load(x, rounds=1)
    for i in k.loop(steps):
        y[lane, i] = k.shuffle(own[0], k.bits(lane, lanes, i, name="partner"))


@partners.specification
def _partners(x: Any, lanes: int, steps: int) -> Any:
    return [[x[lane ^ 1 << i] for i in range(steps)] for lane in range(lanes)]


@sketch
def butterfly(k: Tracer, lanes: int = 32) -> None:
    """Every lane gets the sum of all: each round adds what a partner holds, some bits away."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    value = x[lane]
    for number in range(lanes.bit_length() - 1):
        both = k.accumulator("+")
        both.add(value)
        both.add(k.shuffle(value, k.bits(lane, lanes, name=f"partner{number}")))
        value = both.value()
    y[lane] = value


@butterfly.specification
def _butterfly(x: Any, lanes: int) -> Any:
    return [spec.total(x)] * lanes


def found(outcome: object) -> Filled:
    assert isinstance(outcome, Found)
    assert isinstance(outcome.answer, Filled)
    assert outcome.answer.verification.verdict is Verdict.PROVED
    return outcome.answer


@pytest.mark.sampled(2)
@pytest.mark.parametrize("device", ["simulator", "c", "opencl", "ptx"])
def test_lane_bit_reversal_is_found_proved_and_run(device: Any) -> None:
    require(device)
    filled = found(solve(reverse.at(lanes=32)))
    assert filled.space == 1
    x, y = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    runtime.load(to_kernel(filled), device)(x, y)
    wanted = [block + backwards(lane, 32) for block in (0, 32, 64) for lane in range(32)]
    assert y.tolist() == wanted


@pytest.mark.parametrize("lanes", [8, pytest.param(32, marks=pytest.mark.slow)])
def test_a_butterfly_is_found_proved_and_run(lanes: int) -> None:
    filled = found(solve(butterfly.at(lanes=lanes)))
    assert {show(expr) for expr in filled.fill.values()} == {
        f"lane ^ {1 << number}" for number in range(lanes.bit_length() - 1)
    }
    kernel = to_kernel(filled, i32)
    x = np.random.default_rng(lanes).integers(-99, 99, (5, lanes)).astype(np.int32)
    devices: tuple[Any, ...] = ("simulator", "c", "ptx")
    for device in filter(is_here, devices):
        y = np.zeros_like(x)
        runtime.load(kernel, device)(x.reshape(-1), y.reshape(-1))
        np.testing.assert_array_equal(y, x.sum(axis=1, keepdims=True) + 0 * x, device)


def test_a_butterfly_carries_over_to_the_whole_warp() -> None:
    small = found(solve(partners.at(lanes=8, steps=3)))
    assert show(small.fill["partner"]) == "lane ^ 1 << i"
    large = found(reinstantiate(small, partners.at(lanes=32, steps=5)))
    assert show(large.fill["partner"]) == "lane ^ 1 << i"
    x, y = np.arange(32, dtype=np.float32), np.zeros((32, 5), np.float32)
    run(to_kernel(large), [x, y], {"x_size": 32, "y_rows": 32, "y_columns": 5})
    lane, step = np.indices((32, 5))
    assert np.array_equal(y, lane ^ 1 << step)


def test_wrong_holes() -> None:
    k = Tracer("wrong")
    lane = k.warp(32)
    with pytest.raises(CheckError, match="power of two, not 24"):
        k.bits(lane, 24)
    with pytest.raises(CheckError, match="bit operation of 16 elements has an index below 32"):
        k.bits(lane, 16)
    with pytest.raises(CheckError, match="depends on lanes and loop counters"):
        k.bits(lane, 32, Var("elsewhere"))
