"""Accumulators start at the neutral element that the element type has, or at a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.sketch.simt.tiled import proved, specified
from tests.tools import is_here

from warploom import runtime
from warploom.errors import CheckError, UnsupportedError
from warploom.kernel.dtype import DType, f32, i8, i32, u32
from warploom.search.outcome import Impossible
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.solve import solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec

SPECIFICATIONS: dict[str, tuple[Callable[[Any], Any], np.ufunc]] = {
    "+": (spec.total, np.add),
    "*": (spec.product, np.multiply),
    "min": (spec.minimum, np.minimum),
    "max": (spec.maximum, np.maximum),
    "&": (spec.bit_and, np.bitwise_and),
    "|": (spec.bit_or, np.bitwise_or),
    "^": (spec.bit_xor, np.bitwise_xor),
}
BITS = ("&", "|", "^")
LANES, ITEMS = 4, 3


def folding(
    operator: str, init: float | None = None, wanted: Callable[[Any], Any] | None = None
) -> Traced:
    """Lane i folds ITEMS − i neighbours: in most lanes something is left out."""
    fold = wanted or SPECIFICATIONS[operator][0]

    def body(k: Tracer, lanes: int = LANES) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes * ITEMS), k.output("y", lanes)
        total = k.accumulator(operator, init=init)
        for i in k.loop(ITEMS):
            total.add(x[lane * ITEMS + i], when=(lane + i).lt(ITEMS).or_(i.eq(0)))
        y[lane] = total.value()

    def said(x: Any, lanes: int) -> Any:
        rows = x.reshape(lanes, ITEMS)
        return [fold(row[: max(1, ITEMS - lane)]) for lane, row in enumerate(rows)]

    return specified(body, said).at()


def extremes(dtype: DType) -> Any:
    """Nine tiles: of the largest numbers, of the smallest, and of any."""
    shape = (9, LANES, ITEMS)
    random = np.random.default_rng(7)
    if dtype.is_float:
        given = random.uniform(-9, 9, shape).astype(dtype.numpy)
        given[0], given[1] = -math.inf, math.inf
        return given
    limits = np.iinfo(dtype.numpy)
    given = random.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
    given[0], given[1] = limits.min, limits.max
    return given


@pytest.mark.sampled(1)
@pytest.mark.parametrize("operator", SPECIFICATIONS)
def test_every_operator_starts_at_the_neutral_element_of_every_type(operator: str) -> None:
    filled = proved(solve(folding(operator)))
    for dtype in (each for each in DType if not each.is_code):
        if dtype.is_float and operator in BITS:
            with pytest.raises(UnsupportedError, match=f"of {dtype.value}") as caught:
                to_kernel(filled, dtype)
            assert caught.value.span is not None
            continue
        x = extremes(dtype)
        if dtype.is_float and operator in "+*":
            x = x[2:]
        folded = SPECIFICATIONS[operator][1]
        with np.errstate(over="ignore"):
            wanted = np.stack(
                [folded.reduce(x[:, n, : max(1, ITEMS - n)], 1, x.dtype) for n in range(LANES)], 1
            )
        kernel = to_kernel(filled, dtype)
        devices: list[Any] = ["simulator", "c"] if dtype in (i8, i32, u32, f32) else ["simulator"]
        for device in filter(is_here, devices):
            y = np.zeros((len(x), LANES), dtype.numpy)
            runtime.load(kernel, device)(x.reshape(-1), y.reshape(-1))
            close = 1e-5 if dtype.is_float and operator in "+*" else 0
            np.testing.assert_allclose(y, wanted, rtol=close, err_msg=f"{dtype} {device}")


@pytest.mark.parametrize(
    ("operator", "init", "dtype"),
    [("max", -(2**31), "int32"), ("min", 2**31 - 1, "int32"), ("&", 2**32 - 1, "uint32"),
     ("max", -128, "int8"), ("min", 255, "uint8"), ("min", 2**64 - 1, "uint64")],
)  # fmt: skip
def test_the_limit_of_a_type_is_its_neutral_element(operator: str, init: int, dtype: str) -> None:
    filled = proved(solve(folding(operator, init)))
    only = f"element types other than {dtype} ({init} is the neutral element of {operator} there)"
    assert only in filled.verification.not_covered
    assert f"not covered: {only}" in to_kernel(filled, DType(dtype)).doc.replace(
        "what is no number (NaN), ", ""
    )
    for other in set(DType) - {DType(dtype)}:
        with pytest.raises((CheckError, UnsupportedError)) as caught:
            to_kernel(filled, other)
        assert caught.value.span is not None
        line = caught.value.span.source.line(caught.value.span.line)
        assert "k.accumulator(operator" in line


def test_a_number_that_the_goal_has_is_an_item() -> None:
    """It is no neutral element then, and right in every type that has it."""
    least = folding("max", -(2**31), lambda row: spec.started(-(2**31), row, "max"))
    filled = proved(solve(least))
    assert not any("element types other" in each for each in filled.verification.not_covered)
    for dtype in (i32, f32):
        to_kernel(filled, dtype)
    assert isinstance(solve(folding("max", 0)), Impossible)
    assert isinstance(solve(folding("max", -(2**31) + 1)), Impossible)
    assert isinstance(solve(folding("+", -(2**31))), Impossible)


@pytest.mark.parametrize("init", ["0", math.nan, [0]])
def test_an_accumulator_starts_at_a_number(init: Any) -> None:
    with pytest.raises(CheckError, match="starts at a number, not at") as caught:
        folding("max", init)
    assert caught.value.span is not None


def test_a_start_that_the_type_has_not_is_refused_at_its_line() -> None:
    for init, dtype in ((-math.inf, i32), (-(2.0**31), i8)):
        filled = proved(solve(folding("max", init)))
        with pytest.raises(CheckError, match=f"starts at {init}, which is no {dtype!r}") as caught:
            to_kernel(filled, dtype)
        assert caught.value.span is not None
        assert "leave init out" in caught.value.advice


def finishing(wanted: Callable[[Any], Any], *functions: Callable[[Any], Any]) -> Traced:
    """As many sums as functions, which have one name."""

    def body(k: Tracer) -> None:
        lane = k.warp(LANES)
        x, y = k.input("x", LANES), k.output("y", (len(functions), LANES))
        for number, function in enumerate(functions):
            total = k.accumulator("+", finalize="f", finish=function)
            total.add(x[k.swizzle(lane, LANES)])
            y[number, lane] = total.value()

    def said(x: Any) -> Any:
        return [[spec.finalized("f", each, wanted) for each in x]] * len(functions)

    return specified(body, said).at()


def test_one_name_is_one_function() -> None:
    doubles: list[Callable[..., Any]] = [lambda t, by=2: t * by for _ in range(2)]
    proved(solve(finishing(lambda t: t * 2, *doubles)))
    others: list[Callable[..., Any]] = [lambda t: t * 2, lambda t, by=3: t * by, abs]
    for other in others:
        with pytest.raises(CheckError, match=r"finish 'f' is another function than bef") as caught:
            finishing(lambda t: t * 2, doubles[0], other)
        assert caught.value.span is not None
        assert f"before ({__file__}:" in caught.value.message


def test_functions_with_arrays_of_their_own_are_different_ones() -> None:
    weights = [np.array([2, 3]) for _ in range(2)]
    with pytest.raises(CheckError, match=r"finish 'f' is another function than bef"):
        finishing(lambda t: t * 2, *[lambda t, by=by: t * by[0] for by in weights])


@pytest.mark.parametrize(("name", "function"), [("f", 3), (5, abs), ("f", "abs")])
def test_what_finishes_is_a_function_with_a_name(name: Any, function: Any) -> None:
    def body(k: Tracer) -> None:
        k.warp(LANES)
        k.accumulator("+", finalize=name, finish=function)

    with pytest.raises(CheckError, match="`finalize` is a name and `finish` a function") as caught:
        specified(body, list).at()
    assert caught.value.span is not None


def half(total: Any) -> Any:
    return total / 2


WRONG: list[Callable[[Any], Any]] = [lambda t: t * 2, lambda t: t, abs, lambda t: t // 2]


@pytest.mark.parametrize("finish", WRONG)
def test_a_fill_that_is_right_on_symbols_alone_is_not_found(finish: Callable[[Any], Any]) -> None:
    """A hole does not make a wrong finish right: no fill is, and both places are named."""
    assert proved(solve(finishing(half, half))).verification
    wrong = finishing(half, finish)
    for found in (solve(wrong), solve(wrong, optimum=True)):
        assert isinstance(found, Impossible)
        assert "right on symbols are wrong on numbers: finish 'f' (" in found.why
        assert f"{__file__}:" in found.why.partition("and the specification (")[2]
        assert "y[0, 0] should hold" in found.why


def test_a_function_may_overflow_whatever_it_finishes() -> None:
    def body(k: Tracer) -> None:
        lane = k.warp(LANES)
        x, y = k.input("x", LANES), k.output("y", LANES)
        most = k.accumulator("max", finalize="hundredfold", finish=lambda t: t * 100)
        most.add(x[lane])
        y[lane] = most.value()

    def said(x: Any) -> Any:
        return [spec.finalized("hundredfold", each, lambda t: t * 100) for each in x]

    verdict = proved(solve(specified(body, said).at())).verification
    assert "rounding and overflow" in verdict.not_covered
