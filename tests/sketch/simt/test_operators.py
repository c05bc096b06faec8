"""Accumulators carry their operators, initial values and functions; nested ones meet up to laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.tools import is_here

from warploom import runtime
from warploom.errors import CheckError
from warploom.kernel.dtype import f32, i32
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome, Verdict
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.fewest import least, statements_of
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import Filled, solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec
from warploom.sketch.term.ir import Goal, constant, fold_of
from warploom.sketch.term.spec import finalized, symbols
from warploom.sketch.term.verify import Verification

Specification = Callable[..., Any]

LANES, ITEMS = 4, 3
DEVICES: tuple[Any, ...] = ("simulator", "c", "ptx")


def reducing(operator: str, wanted: Callable[[Any], Any], **accumulator: Any) -> Traced:
    """Every lane folds three neighbours; which is open. `wanted` is of one lane's items."""

    @sketch
    def folds(k: Tracer, lanes: int = LANES, items: int = ITEMS) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes * items), k.output("y", lanes)
        acc = k.accumulator(operator, **accumulator)
        for i in k.loop(items):
            acc.add(x[k.swizzle(lane, lanes) * items + i])
        y[lane] = acc.value()

    folds.specification(lambda x, lanes, items: list(map(wanted, x.reshape(lanes, items))))
    return folds.at()


def verified(traced: Traced) -> Verification:
    found = solve(traced)
    assert isinstance(found, Found)
    return found.answer.verification


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "+": spec.total,
    "*": spec.product,
    "min": spec.minimum,
    "max": spec.maximum,
    "&": spec.bit_and,
    "|": spec.bit_or,
    "^": spec.bit_xor,
}
STARTS = {"min": math.inf, "max": -math.inf, "&": -1}


@pytest.mark.parametrize("sign", OPERATORS)
def test_an_accumulator_is_proved_against_its_own_operator_only(sign: str) -> None:
    start = {"init": STARTS[sign]} if sign in STARTS else {}
    for other, wanted in OPERATORS.items():
        traced = reducing(sign, wanted, **start)
        if other == sign:
            assert verified(traced).verdict is Verdict.PROVED
        else:
            with pytest.raises(CheckError, match=r"'acc' .* but the goal .* in cell"):
                solve(traced)


def test_a_mismatch_names_both_lines() -> None:
    with pytest.raises(CheckError) as caught:
        solve(reducing("*", spec.total))
    error = caught.value
    assert error.span is not None
    assert "k.accumulator(operator" in error.span.source.line(error.span.line)
    assert "but the goal (" in error.message
    assert f"{__file__}:" in error.message


def test_an_initial_value_is_an_item() -> None:
    assert verified(reducing("+", lambda row: spec.started(5, row), init=5))
    assert isinstance(solve(reducing("+", lambda row: spec.started(6, row), init=5)), Impossible)
    assert isinstance(solve(reducing("+", spec.total, init=5)), Impossible)
    assert verified(reducing("max", lambda row: spec.started(0, row, "max"), init=0))
    odd = verified(reducing("*", lambda row: spec.started(0.1, row, "*"), init=0.1))
    assert "how the element type holds 0.1" in odd.not_covered


def test_an_initial_value_that_the_type_has_not_is_refused() -> None:
    least = solve(reducing("min", spec.minimum, init=math.inf))
    assert isinstance(least, Found)
    assert "what is no number (NaN)" in least.answer.verification.not_covered
    assert "not covered: what is no number (NaN)" in to_kernel(least.answer, f32).doc
    with pytest.raises(CheckError, match="starts at inf, which is no i32"):
        to_kernel(least.answer, i32)
    large = verified(reducing("+", lambda row: spec.started(1 << 24 | 1, row), init=1 << 24 | 1))
    assert "how the element type holds 16777217" in large.not_covered


def test_what_finishes_an_accumulator_is_named() -> None:
    with pytest.raises(CheckError, match=r"computes 'plumless', but the goal .* 'buckeroo'"):
        solve(
            reducing(
                "+",
                lambda row: finalized("buckeroo", spec.total(row)),
                finalize="plumless",
                finish=lambda value: value,
            )
        )


def test_what_finishes_an_accumulator_is_compared() -> None:
    def mean(row: Any) -> Any:
        return finalized("mean", spec.total(row))

    def said(row: Any) -> Any:
        return finalized("mean", spec.total(row), lambda value: value / ITEMS)

    def root(row: Any) -> Any:
        return finalized("root", spec.total(row))

    for wanted in (mean, said):
        right = verified(reducing("+", wanted, finalize="mean", finish=lambda t: t / 3.0))
        assert right.verdict is Verdict.PROVED
        assert right.covers[-1].startswith("finish 'mean' (tried on 0, whole numbers up to ±4")
        wrong = solve(reducing("+", wanted, finalize="mean", finish=lambda t: t * 100))
        assert isinstance(wrong, Impossible)
        assert "wrong on numbers: finish 'mean' (" in wrong.why
        assert "y[0] should hold " in wrong.why
    unknown = verified(reducing("+", root, finalize="root", finish=lambda t: t * 100))
    assert "finish 'root' (no function given)" in unknown.not_covered
    assert "not covered: rounding and overflow, finish 'root'" in str(unknown)


def test_a_function_of_nothing_added_is_a_number() -> None:
    """Lanes that add nothing finish what they start with, in the specification as in the sketch."""

    @sketch
    def lower(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        acc = k.accumulator("+", finalize="more", finish=lambda value: value * 2 + 1)
        acc.add(x[k.swizzle(lane, lanes)], when=lane.lt(2))
        y[lane] = acc.value()

    def wanted(x: Any, lanes: int) -> Any:
        items = [x[i : i + 1] if i < 2 else [] for i in range(lanes)]
        return [finalized("more", spec.total(each), lambda v: v * 2 + 1) for each in items]

    lower.specification(wanted)
    filled = answer(solve(lower.at()))
    assert filled.verification.covers[-1].startswith("finish 'more' (tried on 0, whole")
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    runtime.load(to_kernel(filled, i32), "simulator")(x, y)
    assert y.tolist() == [1, 3, 1, 1, 9, 11, 1, 1]


def test_items_of_a_start_or_a_function_do_not_ask_for_statements() -> None:
    """Three iterations add three items; the start is there already, the mean is one value."""
    x = symbols((3,))
    terms = [item.term for item in x]
    cells = (
        fold_of([*terms, constant(5)], "+"),
        fold_of([fold_of(terms, "+")], "mean()"),
        fold_of(terms, "*"),  # one item, as far as a sum is concerned
    )

    @sketch
    def masked(k: Tracer) -> None:
        lane = k.warp(3)
        a, y = k.input("a", 3), k.output("y", 3)
        acc = k.accumulator("+")
        for i in k.loop(3):
            acc.add(a[i], when=k.condition(lane, i))
        y[lane] = acc.value()

    masked.specification(lambda a: [spec.total(a)] * 3)
    statements = statements_of(masked.at())
    for cell in cells:
        assert least(statements, {"acc": Goal((1,), (cell,))}) == {"acc": 1}
    two = fold_of([*terms, *terms], "+")
    assert least(statements, {"acc": Goal((1,), (two,))}) == {"acc": 2}


# -- reductions and scans --------------------------------------------------------------------------


@sketch
def all_reduce(k: Tracer, lanes: int = 8) -> None:
    """Every lane gets the sum of all: each round adds what a partner holds."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    value = x[lane]
    for number in range(lanes.bit_length() - 1):
        pair = k.accumulator("+")
        pair.add(value)
        pair.add(k.shuffle(value, k.swizzle(lane, lanes, name=f"partner{number}")))
        value = pair.value()
    y[lane] = value


@all_reduce.specification
def _(x: Any, lanes: int) -> Any:
    return [spec.total(x)] * lanes


@sketch
def scan(k: Tracer, lanes: int = 8) -> None:
    """Lane i gets the sum of lanes 0 to i: each round adds what stands some lanes before."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    value = x[lane]
    rounds = lanes.bit_length() - 1
    limits = tuple(2 * (1 << number) - 1 for number in range(rounds))
    for number in range(rounds):
        pair = k.accumulator("+")
        pair.add(value)
        moved = k.shuffle(value, k.swizzle(lane, lanes, name=f"source{number}"))
        pair.add(moved, when=k.condition(lane, constants=limits, name=f"keep{number}"))
        value = pair.value()
    y[lane] = value


@scan.specification
def _(x: Any, lanes: int) -> Any:
    return np.cumsum(x)


def answer(outcome: Outcome[Filled]) -> Filled:
    assert isinstance(outcome, Found)
    return outcome.answer


@pytest.mark.parametrize("lanes", [8, pytest.param(32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("made", [all_reduce, scan], ids=lambda made: made.name)
def test_nested_accumulators_are_found_up_to_the_laws(made: SketchFunction, lanes: int) -> None:
    filled = answer(solve(made.at(lanes=lanes), budget=Budget(240)))
    assert filled.verification.verdict is Verdict.PROVED
    assert filled.verification.laws[0].startswith("reassociated: +")
    kernel = to_kernel(filled, i32)
    for device in filter(is_here, DEVICES):
        x = np.random.default_rng(lanes).integers(-99, 99, (5, lanes)).astype(np.int32)
        y = np.zeros_like(x)
        runtime.load(kernel, device)(x.reshape(-1), y.reshape(-1))
        wanted = x.cumsum(axis=1) if made is scan else x.sum(axis=1, keepdims=True) + 0 * x
        np.testing.assert_array_equal(y, wanted, device)
    assert "reassociated: +" in to_kernel(filled, f32).doc


def test_laws_can_be_left_out() -> None:
    assert isinstance(solve(all_reduce.at(lanes=4)), Found)
    assert isinstance(solve(all_reduce.at(lanes=4), laws="none"), Impossible)
