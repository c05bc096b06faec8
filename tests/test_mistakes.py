"""Likely mistakes get one error at the user's line, not an AttributeError from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom import Budget, Sketch, WarploomError, solve, synthesize, to_kernel, transfer
from warploom.search.outcome import Impossible, Reason, Undecided


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
