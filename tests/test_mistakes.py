"""Likely mistakes get one error at the user's line, not an AttributeError from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom import Budget, Sketch, WarploomError, solve, synthesize, to_kernel, transfer
from warploom.search.outcome import Impossible, Reason, Undecided, Verdict


def sketched(goal: Any) -> Sketch:
    s = Sketch("small")
    s.hole("rots", s.input("x", 4), main=0, second=0, out=0)
    s.goal(goal)
    return s


RIGHT = [1, 2, 3, 0]

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a difference": (lambda: sketched(lambda x: x - x[::-1]), "folds elements with"),
    "a mean": (lambda: sketched(lambda x: [x.mean()] * 4), "folds elements with"),
    "the larger": (lambda: sketched(lambda x: [max(x)] * 4), "cannot depend on the value"),
    "no such method": (lambda: sketched(lambda x: x.largest()), "has no attribute 'largest'"),
    "no such element": (lambda: sketched(lambda x: [x[9]] * 4), "out of bounds"),
    "a text to fill": (lambda: synthesize("x: [4]"), "not a string"),  # type: ignore[arg-type]
    "a number for a budget": (lambda: synthesize(sketched(RIGHT), budget=3), "Budget"),  # type: ignore[arg-type]
    "seconds as text": (lambda: Budget(seconds="3"), "not '3'"),  # type: ignore[arg-type]
    "megabytes as truth": (lambda: Budget(megabytes=True), "not True"),
    "seconds that are none": (lambda: Budget(seconds=float("nan")), "not nan"),
    "a plain function": (lambda: solve(lambda k: None), "not a function"),  # type: ignore[arg-type]
    "the other kind": (lambda: solve(sketched(RIGHT)), "a Sketch is for"),  # type: ignore[arg-type]
    "no fill": (lambda: to_kernel(Impossible("y[0] is wrong")), r"no kernel: y\[0\] is wrong"),
    "no answer": (lambda: to_kernel(Undecided(Reason.SECONDS)), "time budget spent"),
    "nothing": (lambda: to_kernel(None), "not of a NoneType"),  # type: ignore[arg-type]
    "no result": (lambda: transfer(None, sketched(RIGHT)), "not a NoneType"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_error_at_the_users_line(name: str) -> None:
    action, message = MISTAKES[name]
    with pytest.raises(WarploomError, match=message) as caught:
        action()
    assert caught.value.span is not None
    assert caught.value.span.source.name == __file__
    assert caught.value.advice


def test_what_looks_like_a_mistake_but_is_none() -> None:
    assert synthesize(sketched(RIGHT)).fills.count == 1
    s = Sketch("largest")
    s.fold("reshape", s.input("x", 4), shape=(1, 4), operator="max")
    s.goal(lambda x: [x.max()])
    assert synthesize(s).fills.count == 1
    assert np.array_equal(s.program().goals[0].shape, (1,))


def test_what_is_right_on_symbols_alone_is_impossible_as_it_is_for_solve() -> None:
    """A goal that computes something else on numbers: no fill is right, and the outcome says why
    (of warp sketches: tests/sketch/simt/test_accumulator.py)."""

    def two_faced(x: Any) -> list[Any]:
        on_symbols = type(x[0]).__name__ == "Sym"
        return [x[0] + x[1] if on_symbols else x[0] - x[1]]

    s = Sketch("sums")
    s.sum("reshape", s.hole("rots", s.input("x", 2), main=0, second=0, out=0), shape=(1, 2))
    s.goal(two_faced)
    found = synthesize(s)
    assert isinstance(found.outcome, Impossible)
    assert "right on symbols are wrong on numbers" in found.outcome.why
    assert (len(found.fills), found.fills.count) == (0, 0)
    assert found.verdict is Verdict.IMPOSSIBLE
    assert found.verdicts[0].on_numbers


def test_what_comes_back_prints_as_people_read_it() -> None:
    result = synthesize(sketched(RIGHT))
    assert str(result) == (
        "small: found, 1 fill, all there are; proved\n  s1  rot[shift=1]  x.flat[(x0 + 1) % 4]"
    )
    none = synthesize(sketched([0, 2, 1, 3]))
    assert str(none) == "small: impossible: no fill is equal to the goal under the laws used"
    assert str(none.outcome) == "impossible"
    assert str(Impossible("y[0] is wrong")) == "impossible: y[0] is wrong"
    assert str(Undecided(Reason.SECONDS)) == "undecided: time budget spent"
