"""Sketches with a specification, and two whose lanes do not all have an output to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warploom.search.outcome import Found, Outcome, Verdict
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.solve import Filled
from warploom.sketch.simt.trace import Tracer


def specified(body: Callable[..., None], wanted: Callable[..., Any]) -> SketchFunction:
    made = sketch(body)
    made.specification(wanted)
    return made


def proved(outcome: Outcome[Filled]) -> Filled:
    assert isinstance(outcome, Found)
    assert outcome.answer.verification.verdict is Verdict.PROVED
    return outcome.answer


def below(k: Tracer, lanes: int = 32) -> None:
    lane = k.warp(lanes)
    x, y = k.input("x", lanes, step=lanes - 2), k.output("y", lanes - 2)
    y[lane - 2] = k.shuffle(x[lane], k.swizzle(lane, lanes))


def beyond(k: Tracer, lanes: int = 32) -> None:
    lane = k.warp(lanes)
    x, y = k.input("x", lanes, step=lanes - 2), k.output("y", lanes - 2)
    y[lane] = k.shuffle(x[lane], k.swizzle(lane, lanes))
