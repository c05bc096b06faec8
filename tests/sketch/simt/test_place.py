"""What is wrong with the kernel of a sketch is one error at a line of the sketch, in its names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.sketch.simt.tiled import proved, specified

from warploom import runtime
from warploom.errors import CheckError, UnsupportedError, WarploomError
from warploom.kernel.dtype import DType, f32, i32
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.function import sketch
from warploom.sketch.simt.solve import solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec

Body = Callable[..., None]


def copying(lanes: int = 4, x: str = "x", y: str = "y", **loop: str) -> Body:
    """Each lane copies one element, under names of the user's."""

    def body(k: Tracer) -> None:
        lane = k.warp(lanes)
        source, target = k.input(x, lanes), k.output(y, lanes)
        for i in k.loop(1, **loop):
            target[lane + i] = source[lane + i]

    return body


def many_registers(k: Tracer) -> None:
    lane = k.warp(4)
    x, y = k.input("x", 1200), k.output("y", 4)
    kept = k.registers(300, name="kept")
    for i in k.loop(300):
        kept[i] = x[lane + 4 * i]
    y[lane] = kept[0]


def much_shared(k: Tracer) -> None:
    lane = k.warp(4)
    x, y, s = k.input("x", 4), k.output("y", 4), k.shared("s", 4000)
    s[lane] = x[lane]
    k.barrier()
    y[lane] = s[lane]


def many_constants(k: Tracer) -> None:
    lane = k.warp(4)
    x, w, y = k.input("x", 4), k.constant("weights", 3000), k.output("y", 4)
    total = k.accumulator("+", "*")
    total.add(x[lane], w[0])
    y[lane] = total.value()


def many_axes(k: Tracer) -> None:
    lane = k.warp(4)
    x, y = k.input("x", (1, 1, 1, 4)), k.output("y", (1, 1, 1, 4))
    y[0, 0, 0, lane] = x[0, 0, 0, lane]


def a_length(k: Tracer) -> None:
    lane = k.warp(4)
    x, y = k.input("x", 4), k.output("y", 4)
    k.input("x_size", 4)
    y[lane] = x[lane]


def far_apart(k: Tracer) -> None:
    lane = k.warp(4)
    x, y = k.input("x", 4, step=1 << 31), k.output("y", 4)
    y[lane] = x[lane]


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        (copying(3), "a warp of 3 lanes", "def body"),
        (many_registers, "'kept' needs 300 registers", 'name="kept"'),
        (much_shared, "bytes of shared memory", "def much_shared"),
        (many_constants, "the constant array 'weights'", '"weights"'),
        (many_axes, "'x' has 4 axes", 'k.input("x"'),
        (a_length, "'x_size' is what a kernel calls a length of 'x'", '"x_size"'),
        (far_apart, "an index overflows 32 bits, however short the arrays are", "def far_apart"),
    ],
)
def test_what_no_kernel_can_have_is_refused_at_its_line(
    body: Body, message: str, line: str
) -> None:
    def first(x: Any, *others: Any) -> Any:
        if body is many_constants:
            return x * others[0][0]
        return x[:4] if body is many_registers else x

    filled = proved(solve(specified(body, first).at()))
    with pytest.raises(WarploomError, match=message) as caught:
        to_kernel(filled)
    place = caught.value.span
    assert place is not None
    assert line in place.source.line(place.line)


@pytest.mark.parametrize("names", [{"x": "thread"}, {"y": "é"}, {"name": "a b"}, {"y": "lane"}])
def test_names_that_no_kernel_has_are_refused_when_they_are_given(names: dict[str, str]) -> None:
    with pytest.raises(CheckError, match=r"cannot be a name|is taken") as caught:
        specified(copying(**names), lambda x: x).at()  # type: ignore[arg-type]
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "names", [{"x": "tile_x"}, {"y": "v1"}, {"name": "v1"}, {"name": "tile_x"}, {"x": "acc"}]
)
def test_names_that_kernels_invent_make_way_for_the_users(names: dict[str, str]) -> None:
    filled = proved(solve(specified(copying(**names), lambda x: x).at()))  # type: ignore[arg-type]
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    runtime.load(to_kernel(filled), "simulator")(x, y)
    np.testing.assert_array_equal(y, x)


def test_a_sketch_whose_name_is_taken_becomes_a_kernel_of_another_name() -> None:
    @sketch
    def lane(k: Tracer) -> None:
        copying()(k)

    lane.specification(lambda x: x)
    made = to_kernel(solve(lane.at()))
    assert made.name != "lane"
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    runtime.load(made, "simulator")(x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(
    ("dtype", "warps", "message"),
    [("float32", 4, "'float32' is no element type"), (f32, "4", "at least one warp, not '4'"),
     (f32, 0, "at least one warp, not 0"), (f32, True, "at least one warp, not True")],
)  # fmt: skip
def test_a_launch_that_is_none_is_refused_where_it_is_asked_for(
    dtype: Any, warps: Any, message: str
) -> None:
    filled = proved(solve(specified(copying(), lambda x: x).at()))
    with pytest.raises(CheckError, match=message) as caught:
        to_kernel(filled, dtype, warps)
    assert caught.value.span is not None
    assert "to_kernel(filled, dtype, warps)" in str(caught.value)


def test_a_kernel_that_differs_is_placed_at_its_specification() -> None:
    def body(k: Tracer) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 4), k.output("y", 4)
        total = k.accumulator("+", finalize="third", finish=lambda t: t / 3)
        total.add(x[lane])
        y[lane] = total.value()

    def thirds(x: Any) -> Any:
        return [spec.finalized("third", each, lambda t: t / 3) for each in x]

    filled = proved(solve(specified(body, thirds).at()))
    with pytest.raises(CheckError, match="but the specification says") as caught:
        to_kernel(filled, i32)
    assert caught.value.span is not None
    assert "def thirds" in str(caught.value)


def test_an_index_that_cannot_be_computed_is_placed() -> None:
    def body(k: Tracer) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 4), k.output("y", 4)
        y[lane] = x[lane + 0 * (5 // lane)]

    with pytest.raises(CheckError, match="division by zero") as caught:
        solve(specified(body, lambda x: x).at())
    assert caught.value.span is not None
    assert "5 // lane" in str(caught.value)


def test_loops_nest_so_deep() -> None:
    def nested(k: Tracer, depth: int) -> None:
        for _ in k.loop(1):
            nested(k, depth - 1) if depth else None

    def body(k: Tracer) -> None:
        k.warp(4)
        nested(k, 40)

    with pytest.raises(CheckError, match="loops stand inside each other") as caught:
        specified(body, lambda: 0).at()
    assert caught.value.span is not None


def test_whatever_a_sketch_raises_is_placed() -> None:
    def body(k: Tracer) -> None:
        k.warp(4)
        raise KeyError("nothing of ours")

    with pytest.raises(CheckError, match="fails: KeyError") as caught:
        specified(body, lambda: 0).at()
    assert "raise KeyError" in str(caught.value)
    with pytest.raises(CheckError, match="lanes is a size, not '4'") as caught:
        specified(sized, lambda x, lanes: x).at(lanes="4")  # type: ignore[arg-type]
    assert "def sized" in str(caught.value)


def sized(k: Tracer, lanes: int = 4) -> None:
    copying(lanes)(k)


@pytest.mark.parametrize("dtype", [f32, i32])
def test_registers_that_were_never_set_may_be_read_and_left_out(dtype: DType) -> None:
    """Nobody relies on them, so it is no error that they hold nothing."""

    def body(k: Tracer) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 8), k.output("y", 4)
        kept = k.registers((2, 2), name="kept")
        for i in k.loop(2):
            kept[i, 0] = x[lane + 4 * i]
        total = k.accumulator("+")
        for i in k.loop(2):
            for j in k.loop(2):
                total.add(kept[i, j], when=j.lt(1))
        y[lane] = total.value()

    filled = proved(solve(specified(body, lambda x: x.reshape(2, 4).sum(axis=0)).at()))
    x, y = np.arange(24).astype(dtype.numpy), np.zeros(12, dtype.numpy)
    runtime.load(to_kernel(filled, dtype), "simulator")(x, y)
    np.testing.assert_array_equal(y, x.reshape(3, 2, 4).sum(axis=1).reshape(-1))


def test_unsupported_axes_are_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="at most 3") as caught:
        to_kernel(solve(specified(many_axes, lambda x: x).at()))
    assert caught.value.span is not None
