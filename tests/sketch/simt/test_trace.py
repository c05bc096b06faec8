"""Recording: what a sketch function may do, and one clear error for what it may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warploom.bench import inventor_sketches as paper
from warploom.errors import CheckError
from warploom.sketch.simt.function import sketch
from warploom.sketch.simt.ir import Loop, walk
from warploom.sketch.simt.trace import Tracer


def recorded(body: Callable[[Tracer], None]) -> Any:
    made = sketch(body)
    made.specification(lambda *_: np.zeros(4, int))
    return made.at()


def started(k: Tracer) -> tuple[Any, Any, Any]:
    return k.warp(4), k.input("x", 8), k.output("y", 4)


def no_constant_bound(k: Tracer) -> None:
    lane, *_ = started(k)
    for _ in k.loop(lane):
        pass


def empty_loop(k: Tracer) -> None:
    started(k)
    k.loop(0)


def left_early(k: Tracer) -> None:
    lane, x, y = started(k)
    y[lane] = x[lane]
    for _ in k.loop(2):
        break


def value_leaves_loop(k: Tracer) -> None:
    lane, x, y = started(k)
    for i in k.loop(2):
        value = x[lane + i]
    y[lane] = value


def counter_leaves_loop(k: Tracer) -> None:
    lane, x, y = started(k)
    for i in k.loop(2):
        x[i]
    y[lane] = x[i]


def wrong_rank(k: Tracer) -> None:
    lane, x, _ = started(k)
    x[lane, 0]


def shape_of_expressions(k: Tracer) -> None:
    lane, *_ = started(k)
    k.registers(lane)


def no_operator(k: Tracer) -> None:
    started(k)
    k.accumulator()


def no_start(k: Tracer) -> None:
    started(k)
    k.accumulator("max", init="least")  # type: ignore[arg-type]


def two_items(k: Tracer) -> None:
    lane, x, _ = started(k)
    k.accumulator("+").add(x[lane], x[lane])


def nothing_added(k: Tracer) -> None:
    started(k)
    k.accumulator("+").value()


def arithmetic(k: Tracer) -> None:
    lane, x, _ = started(k)
    x[lane] + x[lane]


def no_warp(k: Tracer) -> None:
    k.input("x", 4)[0]


def hole_twice(k: Tracer) -> None:
    lane, x, y = started(k)
    hole = k.swizzle(lane, 4)
    y[lane] = k.shuffle(x[hole], hole)


def hole_unused(k: Tracer) -> None:
    lane, x, y = started(k)
    k.swizzle(lane, 4)
    y[lane] = x[lane]


def hole_outside(k: Tracer) -> None:
    lane, x, y = started(k)
    y[lane] = x[stolen[0]]


def hole_over_nothing(k: Tracer) -> None:
    started(k)
    k.condition()


def hole_over_sum(k: Tracer) -> None:
    lane, *_ = started(k)
    k.condition(lane + 1)


def small_swizzle(k: Tracer) -> None:
    lane, *_ = started(k)
    k.swizzle(lane, 2)


def register_by_lane(k: Tracer) -> None:
    lane, x, _ = started(k)
    k.registers(4)[lane] = x[lane]


def unwritten(k: Tracer) -> None:
    started(k)
    k.registers(4)[0]


def read_while_written(k: Tracer) -> None:
    lane, x, _ = started(k)
    r = k.registers(2)
    for i in k.loop(2):
        r[i] = x[lane]
        r[i]


def written_while_read(k: Tracer) -> None:
    x = started(k)[1]
    r = k.load(x, 2)
    for i in k.loop(2):
        r[i] = r[1]


def input_written(k: Tracer) -> None:
    lane, x, _ = started(k)
    x[lane] = x[lane]


def output_read(k: Tracer) -> None:
    lane, _, y = started(k)
    y[lane]


def no_output(k: Tracer) -> None:
    k.warp(4)


def silent_output(k: Tracer) -> None:
    started(k)


def too_many_rounds(k: Tracer) -> None:
    _, x, _ = started(k)
    k.load(x, rounds=3)


def python_condition(k: Tracer) -> None:
    lane, *_ = started(k)
    if lane < 2:
        pass


def truth(k: Tracer) -> None:
    lane, *_ = started(k)
    if lane.lt(2):
        pass


def same_name(k: Tracer) -> None:
    k.input("x", 4)
    k.input("x", 4)


def index_of_value(k: Tracer) -> None:
    lane, x, _ = started(k)
    x[x[lane]]


def half_finalized(k: Tracer) -> None:
    started(k)
    k.accumulator("+", finalize="mean")


stolen: list[Any] = []

MISUSES = (
    (no_constant_bound, "bound of a loop is a constant"),
    (empty_loop, "at least once"),
    (left_early, "left early"),
    (value_leaves_loop, "outside the loop"),
    (counter_leaves_loop, "'i' is used outside"),
    (wrong_rank, "has 1 axes, but 2"),
    (shape_of_expressions, "|".join(("iterable", "constants"))),
    (no_operator, "needs an operator"),
    (no_start, "starts at a number"),
    (two_items, "takes one value"),
    (nothing_added, "nothing was added"),
    (arithmetic, "moves values"),
    (no_warp, "how many lanes"),
    (hole_twice, "two places"),
    (hole_unused, "never used"),
    (hole_outside, "another sketch"),
    (hole_over_nothing, "needs a variable"),
    (hole_over_sum, "in scope"),
    (small_swizzle, "swizzle of 2 elements"),
    (register_by_lane, "known after unrolling"),
    (unwritten, "before anything is written"),
    (read_while_written, "read in the loop that writes"),
    (written_while_read, "written in the loop that reads"),
    (input_written, "cannot be written"),
    (output_read, "cannot be read"),
    (no_output, "needs an output"),
    (silent_output, "never written"),
    (too_many_rounds, "3 rounds"),
    (python_condition, "not supported"),
    (truth, "truth value"),
    (same_name, "taken"),
    (index_of_value, "an index is"),
    (half_finalized, "give both"),
)


@pytest.mark.parametrize(("body", "message"), MISUSES, ids=lambda v: getattr(v, "__name__", ""))
def test_misuse_is_one_clear_error(body: Callable[[Tracer], None], message: str) -> None:
    def keep(k: Tracer) -> None:
        lane, x, y = started(k)
        stolen[:] = [k.swizzle(lane, 4, name="mine")]
        y[lane] = x[stolen[0]]

    recorded(keep)
    with pytest.raises(CheckError, match=message):
        recorded(body)


def test_errors_point_at_the_line() -> None:
    with pytest.raises(CheckError) as caught:
        recorded(no_start)
    assert caught.value.span is not None
    assert 'k.accumulator("max", init' in caught.value.span.source.line(caught.value.span.line)


def test_a_sketch_is_over_when_its_function_returns() -> None:
    kept: list[Tracer] = []

    def body(k: Tracer) -> None:
        lane, x, y = started(k)
        y[lane] = x[lane]
        kept.append(k)

    recorded(body)
    for misuse in (kept[0].registers, kept[0].loop):
        with pytest.raises(CheckError, match="after its function has ended"):
            misuse(2)
    with pytest.raises(CheckError, match="after its function has ended"):
        kept[0].condition()


def test_sizes_and_specifications_are_checked() -> None:
    with pytest.raises(CheckError, match="sizes do not fit: lanes"):
        paper.stencil_1d.at(lanes=4)
    with pytest.raises(CheckError, match="warp is a size"):
        paper.stencil_1d.at(warp=0)
    with pytest.raises(CheckError, match="no specification"):
        sketch(silent_output).at()
    made = sketch(left_early)
    made.specification(lambda _: np.zeros((2, 2), int))
    with pytest.raises(CheckError, match="left early"):
        made.at()

    @sketch
    def copy(k: Tracer) -> None:
        lane, x, y = started(k)
        y[lane] = x[lane]

    copy.specification(lambda _: np.zeros((2, 2), int))
    with pytest.raises(CheckError, match="shape"):
        copy.at()


def test_loops_are_recorded_once_and_stay_loops() -> None:
    traced = paper.convolution_2d.at(taps=7)
    loops = [s for s in walk(traced.body) if isinstance(s, Loop)]
    assert [(loop.var, loop.count) for loop in loops][-2:] == [("ky", 7), ("kx", 7)]
    assert len(traced.statements) == 1
    assert set(traced.holes) == {"part_y", "part_x", "row", "column"}
