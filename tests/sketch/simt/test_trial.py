"""Kernels are run against their specification before they go out; wrong ones do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.sketch.simt.tiled import below, beyond, proved, specified

from warploom.errors import CheckError, SearchError
from warploom.kernel import build
from warploom.kernel.dtype import DType, i32, u32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.search.outcome import Verdict
from warploom.sketch.code import trial
from warploom.sketch.simt import code
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.solve import solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec
from warploom.sketch.term.verify import Verification


def copied(k: Tracer, lanes: int = 8) -> None:
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    y[lane] = x[lane]


def test_a_kernel_that_is_wrong_does_not_go_out(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = proved(solve(specified(copied, lambda x, lanes: x).at()))
    real = run

    def spoiled(kernel: Kernel, arrays: Any, named: Any) -> Any:
        real(kernel, arrays, named)
        arrays[1][9] += 1

    monkeypatch.setattr(trial, "run", spoiled)
    with pytest.raises(CheckError, match=r"holds \S+ in y\[9\], but the specification says"):
        to_kernel(filled)

    def outside(kernel: Kernel, arrays: Any, named: Any) -> Any:
        real(kernel, arrays, named)
        arrays[1].base[15] = 3

    monkeypatch.setattr(trial, "run", outside)
    with pytest.raises(CheckError, match=r"writes y\[-1\]"):
        to_kernel(filled)


@pytest.mark.parametrize(("body", "shift"), [(below, 2), (beyond, 0)])
def test_a_kernel_without_its_conditions_does_not_go_out(
    body: Any, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = proved(solve(specified(body, lambda x, lanes: x[shift : shift + lanes - 2]).at()))
    monkeypatch.setattr(code._Emitter, "_within", lambda *_: [])
    with pytest.raises(CheckError, match=r"fails on the simulator: .*(y' has|race on 'y)"):
        to_kernel(filled)


@pytest.mark.parametrize("sign", ["max", "min", "*", "+"])
def test_numbers_of_a_trial_do_not_wrap_where_that_matters(sign: str) -> None:
    """The largest of 16 products of four 32-bit numbers, …: any wrapped product would mislead."""

    def nested(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", 4 * lanes), k.output("y", lanes)
        start = {"max": 0, "min": (1 << 31) - 1}
        best = k.accumulator(sign, "*", init=start.get(sign))
        for _ in k.loop(2):
            best.add(x[4 * lane], x[4 * lane + 1], x[4 * lane + 2], x[4 * lane + 3])
        y[lane] = best.value()

    def wanted(x: Any, lanes: int) -> Any:
        rows = [spec.product(row) for row in x.reshape(lanes, 4)]
        if sign in ("max", "min"):
            start = 0 if sign == "max" else (1 << 31) - 1
            return [spec.started(start, [row, row], sign) for row in rows]
        return [spec.fold([row, row], sign) for row in rows]

    outcome = solve(specified(nested, wanted).at())
    assert "verdict: proved" in to_kernel(proved(outcome), i32).doc


def test_a_refuted_fill_has_no_kernel() -> None:
    def half(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        total = k.accumulator("+", finalize="half", finish=lambda value: value / 2.0)
        total.add(x[k.swizzle(lane, lanes)])
        y[lane] = total.value()

    def by(divisor: int) -> Any:
        def wanted(x: Any, lanes: int) -> Any:
            return [spec.finalized("half", spec.total([v]), lambda t: t / divisor) for v in x]

        return solve(specified(half, wanted).at())

    with pytest.raises(SearchError, match=r"no fill, so there is no kernel: .* wrong on numbers"):
        to_kernel(by(3))
    refuted = Verification(Verdict.REFUTED, 1, (0,), "1", "2")
    with pytest.raises(CheckError, match=r"is refuted: cell \(0\) holds 1, should hold 2"):
        to_kernel(replace(proved(by(2)), verification=refuted))


def test_an_integer_kernel_of_a_mean_is_refused() -> None:
    def mean(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", 2 * lanes), k.output("y", lanes)
        total = k.accumulator("+", finalize="mean", finish=lambda value: value / 2)
        for i in k.loop(2):
            total.add(x[2 * lane + i])
        y[lane] = total.value()

    def wanted(x: Any, lanes: int) -> Any:
        return [spec.finalized("mean", spec.total(row)) for row in x.reshape(lanes, 2)]

    filled = proved(solve(specified(mean, wanted).at()))
    assert "equal to the goal's terms with the sketch's own 'mean' (the sp" in to_kernel(filled).doc
    with pytest.raises(CheckError, match="but the goal's terms say"):
        to_kernel(filled, i32)


@pytest.mark.parametrize("dtype", [u32, i32])
def test_bits_are_tried_on_whole_words(dtype: DType) -> None:
    def mixed(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        both = k.accumulator("^", "&")
        both.add(x[lane], x[lane ^ 1])
        y[lane] = both.value()

    def wanted(x: Any, lanes: int) -> Any:
        return [spec.bit_xor([spec.bit_and([x[i], x[i ^ 1]])]) for i in range(lanes)]

    assert "verdict: proved" in to_kernel(proved(solve(specified(mixed, wanted).at())), dtype).doc


def finishing(finish: Any, function: Any) -> Any:
    """Each lane adds two neighbours and finishes the sum."""

    def body(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        total = k.accumulator("+", finalize="f", finish=finish)
        total.add(x[lane])
        total.add(k.shuffle(x[lane], (lane + 1) % lanes))
        y[lane] = total.value()

    def wanted(x: Any, lanes: int) -> Any:
        pairs = [x[i] + x[(i + 1) % lanes] for i in range(lanes)]
        return [spec.finalized("f", pair, function) for pair in pairs]

    return proved(solve(specified(body, wanted).at()))


@pytest.mark.parametrize(
    ("finish", "function", "tried"),
    [
        (build.sqrt, lambda t: t**0.5, "(0.5 to 2, halves from 0 to 4, whole numbers from 0 to"),
        (build.exp, np.exp, "(0.5 to 2, halves from -4 to 4, whole"),
        (lambda t: build.choose(t.gt(0), t, 0), lambda t: max(t, 0), "(0.5 to 2, halves from -4"),
    ],
)
def test_functions_of_kernels_are_compared_with_the_specification(
    finish: Any, function: Any, tried: str
) -> None:
    doc = to_kernel(finishing(finish, function)).doc
    assert f"equal to the specification on numbers {tried}" in doc
    for wrong in (lambda t: 1000 * function(t), abs):
        with pytest.raises(CheckError, match="but the specification says"):
            to_kernel(finishing(finish, wrong))


def test_what_a_function_does_to_large_numbers_is_seen() -> None:
    """Its finish is for kernels only, so nothing else compares it."""
    with pytest.raises(CheckError, match=r"holds 1000\.0 in y"):
        to_kernel(finishing(lambda t: t.min(1000.0), lambda t: t))


def test_small_numbers_are_told_apart() -> None:
    def by(factor: float) -> Any:
        return finishing(lambda t: t.max(0.0) * factor, lambda t: max(t, 0) * 1e-12)

    assert "equal to the specification on numbers" in to_kernel(by(1e-12)).doc
    with pytest.raises(CheckError, match="but the specification says"):
        to_kernel(by(1.1e-12))


def test_integers_are_tried_on_both_signs() -> None:
    half = finishing(lambda t: build.choose(t.gt(-1), t, 0) + 0, lambda t: t)
    with pytest.raises(CheckError, match="but the specification says -"):
        to_kernel(half, i32)


@pytest.mark.parametrize(
    ("finish", "message"),
    [
        (lambda t: None, "gives None, not a value"),
        (lambda t: 1 / 0, "fails in a kernel: ZeroDivisionError: division by zero"),
        (lambda t: t // 2, "fails in a kernel: TypeError: unsupported operand"),
    ],
)
def test_a_finish_that_no_kernel_can_compute_is_refused(finish: Any, message: str) -> None:
    with pytest.raises(CheckError, match=f"finish 'f' {message}") as caught:
        to_kernel(finishing(finish, lambda t: t // 2))
    assert caught.value.span is not None


def test_a_specification_that_cannot_be_run_is_named() -> None:
    """No number is invented for a function that has a name only, or fails."""
    doc = to_kernel(finishing(lambda t: t * 100.0, None)).doc
    assert "the sketch's own 'f' (the specification cannot be run: it does not say what 'f'" in doc
    doc = to_kernel(finishing(lambda t: t * 2.0, lambda t: 1 / 0)).doc
    assert "cannot be run: ZeroDivisionError: division by zero)" in doc
