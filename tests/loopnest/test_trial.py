"""What a trial on the simulator calls right: it has to be able to say no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.running import implementations

from warploom.errors import CheckError
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Assign, For, Kernel, Number, Operation, Stmt
from warploom.loopnest import trial
from warploom.loopnest.build import LoopNest, exp, sqrt
from warploom.loopnest.decided import Implementation
from warploom.loopnest.ir import Program
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import Target
from warploom.machine.record import H200
from warploom.pipeline.kept import Kept
from warploom.pipeline.nest import Nest


def elementwise(kind: str) -> Program:
    nest = LoopNest(kind)
    i = nest.axis("i", 11, 4, tail=True)
    dtype = DType.I32 if kind == "integers" else DType.F32
    x, y = nest.array("x", i, dtype=dtype), nest.array("y", i, dtype=dtype)
    match kind:
        case "roots":  # of negative numbers there is none
            y[i] = sqrt(x[i])
        case "infinities":  # e to the 1000 is none, e to the -1000 is zero
            y[i] = exp(x[i] * 1000.0)
        case "small":  # every element is below any tolerance for elements of one
            y[i] = x[i] * 1e-7 + nest.parameter("alpha", dtype) * 1e-7
        case "cancelled":  # what is left is what was rounded
            y[i] = (x[i] + 100.0) - x[i] - 100.0
        case _:
            y[i] = x[i] * nest.parameter("alpha", dtype) + nest.index(i) * 1_000_000
    return nest.done()


@cache
def some(kind: str) -> Implementation:
    return next(implementations(NestSpace(elementwise(kind)), 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["roots", "infinities", "integers", "small", "cancelled"])
def test_what_is_right_is_right(kind: str) -> None:
    assert not trial.tried(some(kind)).wrong


@pytest.mark.parametrize("kind", ["roots", "infinities", "integers", "small"])
def test_what_is_wrong_is_wrong(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tolerance grows with an infinity, nothing equals what is no number, and a million and one
    is not a million."""

    def another(made: Implementation) -> Kernel:
        kernel = lower(made)
        return replace(kernel, body=tuple(map(_more, kernel.body)))

    def _more(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Assign) and isinstance(stmt.value, Operation):
            dtype = stmt.target.dtype
            if kind == "infinities":
                return replace(stmt, value=Number(float("inf"), dtype))
            if kind == "roots":
                return replace(stmt, value=Number(float("nan"), dtype))
            more = Number(1e-7 if kind == "small" else 1, dtype)
            return replace(stmt, value=Operation("+", (stmt.value, more)))
        if isinstance(stmt, For):
            return replace(stmt, body=tuple(map(_more, stmt.body)))
        return stmt

    monkeypatch.setattr(trial, "lower", another)
    assert "should be" in trial.tried(some(kind)).wrong


def test_close() -> None:
    inf, nan = np.inf, np.nan
    wanted = np.array([1.0, 1.0, 1.0, inf, inf, -inf, nan, nan], np.float32)
    got = np.array([1.00001, nan, inf, inf, 3.0, inf, nan, 0.0], np.float32)
    right = [True, False, False, True, False, False, True, False]
    assert trial.close(got, wanted).tolist() == right


def test_indices_of_large_arrays_have_64_bits() -> None:
    """Tiles of 96 go past 2**31 where an axis of nearly so many ends; their indices do not."""
    for size, wide in ((1 << 20, False), ((1 << 31) - 2, True)):
        nest = LoopNest("copied")
        i = nest.axis("i", size, (96,), tail=True)
        x, y = nest.array("x", i), nest.array("y", i)
        y[i] = x[i]
        made = next(implementations(NestSpace(nest.done()), 1))
        assert (lower(made).index is DType.I64) == wide


def test_what_was_kept_is_of_one_space() -> None:
    """A space with more in it may have something better, which is not there in the other."""
    program = elementwise("roots")
    small = Nest(program, H200.rates, Target())
    kept = small.record(small.search("random", 2), Kept())
    assert small.kept_from(kept).runs == 1
    best = Kept(1, 2, {**kept["best"], "nanoseconds": 0.0})
    again = small.record(small.search("random", 2, kept=best), best)  # finds nothing better
    assert again["outcome"] == "found"
    assert again["best"]["nanoseconds"] == 0.0
    with pytest.raises(CheckError, match="another space"):
        Nest(program, H200.rates, Target(cooperative_copies=True)).kept_from(kept)


def scaled(factor: float = 1.5, stride: int = 1, dtype: DType = DType.F32) -> Program:
    nest = LoopNest("scaled")
    i = nest.axis("i", 64, 4)
    x, y = nest.array("x", i, dtype=dtype, strides=[stride]), nest.array("y", i, dtype=dtype)
    y[i] = x[i] * factor
    return nest.done()


ALIKE: dict[str, Callable[[], Nest]] = {
    "factor": lambda: Nest(scaled(1.50000001), H200.rates),
    "stride": lambda: Nest(scaled(stride=32), H200.rates),
    "type": lambda: Nest(scaled(dtype=DType.F64), H200.rates),
    "unrolled": lambda: Nest(scaled(), H200.rates, Target(unroll=8)),
    "rates": lambda: Nest(scaled(), replace(H200.rates, clock=1.0)),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("other", ALIKE.values(), ids=ALIKE)
def test_what_only_looks_like_it_is_another_question(other: Callable[[], Nest]) -> None:
    """Listings say nothing of strides, types, limits and the last digits of numbers."""
    nest = Nest(scaled(), H200.rates)
    kept = nest.record(nest.search("random", 2), Kept())
    assert Nest(scaled(), H200.rates).kept_from(kept) == nest.kept_from(kept)  # written down twice
    with pytest.raises(CheckError, match="another details"):
        other().kept_from(kept)


@pytest.mark.slow
def test_branch_and_bound_leaves_what_is_better_where_it_is() -> None:
    nest = Nest(scaled(), H200.rates)
    kept = Kept(1, 2, nest.record(nest.search("random", 2), Kept())["best"])
    slow = nest.search("exact", kept=kept, measure=lambda many: np.full(len(many), 1e9))
    assert slow.nanoseconds == kept.nanoseconds


@pytest.mark.slow
def test_many_operators_inside_each_other_are_written() -> None:
    """Names of what is inside say nothing of how deep it is: they would be too long."""
    nest = LoopNest("horner")
    i = nest.axis("i", 64, 4)
    x, y = nest.array("x", i), nest.array("y", i)
    value = x[i]
    total = value * 0.5
    for coefficient in range(30):
        total = (total - coefficient) * value
    y[i] = total
    made = next(implementations(NestSpace(nest.done()), 1))
    assert not trial.tried(made).wrong


def test_what_was_kept_is_whole_and_possible() -> None:
    nest = Nest(scaled(), H200.rates)
    kept = nest.record(nest.search("random", 2), Kept())
    best = kept["best"]
    wrongs: list[dict[str, Any]] = [
        {"best": {}},
        {"best": {**best, "nanoseconds": "x"}},
        {"best": {**best, "nanoseconds": nest.least() / 2}},  # faster than any can be
        {"best": {**best, "nanoseconds": float("nan")}},
        {"best": {**best, "nanoseconds": 10**400}},
        {"best": {**best, "decisions": []}},
        {"best": {**best, "decisions": [{"choice": 7}]}},
        {"best": {**best, "decisions": 7}},
        {"runs": -7},
        {"evaluated": -1},
    ]
    for wrong in wrongs:
        with pytest.raises(CheckError, match=r"kept|record of a decision"):
            nest.kept_from({**kept, **wrong})
