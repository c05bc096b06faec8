"""SIMT sketches written in Python: a function over lanes runs once, on symbols, and is recorded.

    @sketch
    def stencil(k, W=32, taps=3):
        lane = k.warp(W)
        x, y = k.input("x", W + taps - 1, step=W), k.output("y", W)
        r = k.load(x, rounds=2)
        total = k.accumulator("+")
        for i in k.loop(taps):
            part = k.partition(2, lane, i)
            total.add(k.shuffle(r[part], k.swizzle(lane, W, i)), when=k.condition(lane, i))
        y[lane] = total.value()

    @stencil.specification
    def _(x, W, taps):
        return [spec.total(x[i : i + taps]) for i in range(W)]

`stencil.at(W=4)` is the recorded sketch at that size. Everything but the holes is decided by the
function; a hole in a loop is one hole, used in all iterations.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from warploom.errors import (
    CheckError,
    Span,
    WarploomError,
    defining_line,
    located,
    raising_line,
    users_line,
)
from warploom.index.ir import whole_number
from warploom.search.budget import BudgetSpentError
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.trace import Tracer


@located
def sketch(function: Callable[..., None]) -> SketchFunction:
    """Makes a function `f(k, size=default, …)` a sketch that is written lane by lane.

    `k` has `warp`, `input`, `output`, `load`, `shuffle`, `accumulator` and others for the kernel,
    and `swizzle`, `partition`, `condition` for holes. `.specification` says what it must compute,
    `.at(lanes=8)` is the sketch at a size, and `warploom.solve` fills its holes.

    >>> from warploom import solve, warp_sketch
    >>> @warp_sketch
    ... def turned(k, lanes=4):
    ...     lane = k.warp(lanes)
    ...     x, y = k.input("x", lanes), k.output("y", lanes)
    ...     r = k.load(x, rounds=1)
    ...     y[lane] = k.shuffle(r[0], k.swizzle(lane, lanes))  # which lane to read from: a hole
    >>> _ = turned.specification(lambda x, lanes: [x[(i + 1) % lanes] for i in range(lanes)])
    >>> print(solve(turned))
    turned: proved
      swizzle  (lane + 1) % 4
    """
    if not inspect.isfunction(function):
        raise CheckError(
            f"a warp sketch is a function, not a {type(function).__name__}",
            advice="decorate def name(k, lanes=32) with it",
        )
    if not inspect.signature(function).parameters:
        raise CheckError(
            f"'{function.__name__}' takes nothing to sketch with",
            defining_line(function),
            "write def name(k, lanes=32), and call k.warp, k.input, k.load, …",
        )
    return SketchFunction(function)


class SketchFunction:
    """A sketch at all sizes: `at` records it at one, `specification` says what it must compute."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function
        self.name = function.__name__
        self.doc = inspect.getdoc(function) or ""
        self._specification: Callable[..., Any] | None = None
        _, *sizes = inspect.signature(function).parameters.values()
        self.defaults = {p.name: p.default for p in sizes if p.default is not p.empty}
        self._sizes = tuple(p.name for p in sizes)

    def __call__(self, *_arguments: object, **_sizes: object) -> None:
        raise CheckError(
            f"sketch '{self.name}' is no function of arrays",
            users_line(),
            "warploom.compile makes one of it; .at(lanes=4) is the sketch at a size",
        )

    def specification(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of all inputs (and sizes, by name) that returns the outputs' cells."""
        self._specification = function
        return function

    def at(self, **sizes: int) -> Traced:
        """The sketch at these sizes."""
        given = self.defaults | sizes
        if set(given) != set(self._sizes):
            wrong = ", ".join(sorted(set(given) ^ set(self._sizes)))
            raise CheckError(
                f"sketch '{self.name}': sizes do not fit: {wrong}",
                self.span,
                f"it takes {', '.join(self._sizes) or 'no sizes'}",
            )
        if self._specification is None:
            raise CheckError(
                f"sketch '{self.name}' has no specification",
                self.span,
                f"write one under @{self.name}.specification",
            )
        for name, value in given.items():
            given[name] = whole = whole_number(value) or 0
            if whole < 1:
                raise CheckError(
                    f"sketch '{self.name}': {name} is a size, not {value!r:.60}",
                    self.span,
                    "sizes are whole numbers of at least 1",
                )
        tracer = Tracer(self.name)
        try:
            self.function(tracer, **given)
            return tracer.finish(self.doc, given, self._specification, self.span)
        except WarploomError as error:
            if error.span is not None:
                raise
            raise type(error)(error.message, self._place(error), error.advice) from error
        except (BudgetSpentError, MemoryError):  # ours, on the way through
            raise
        except Exception as error:  # such as `if lane < 3`, which has no meaning while recording
            raise CheckError(
                f"sketch '{self.name}' fails: {type(error).__name__}: {str(error)[:200]}",
                self._place(error),
                _advice(error),
            ) from error

    @property
    def span(self) -> Span | None:
        """The line on which the sketch begins."""
        return defining_line(self.function)

    def _place(self, error: Exception) -> Span | None:
        """The line of the sketch's file that was being run."""
        return raising_line(error, self.function.__code__.co_filename) or self.span


def _advice(error: Exception) -> str:
    """What to do about an error of Python's own in a sketch."""
    if not isinstance(error, TypeError):
        return ""
    called = re.match(r"Tracer\.(\w+)\(\) ", str(error))
    if called is not None and hasattr(Tracer, called[1]):
        _, *taken = inspect.signature(getattr(Tracer, called[1])).parameters.values()
        shown = (each.replace(annotation=each.empty) for each in taken)
        return f"k.{called[1]} takes ({', '.join(map(str, shown))})"
    return "compare lanes and counters with lane.lt(3), and use it as a condition"
