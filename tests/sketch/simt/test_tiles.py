"""What is proved of one tile holds for the kernel: many tiles, their borders, lanes that meet.

Each of the first tests is a sketch that was once called proved while its kernel was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.sketch.simt.tiled import below, beyond, proved, specified
from tests.tools import require

from warploom import runtime
from warploom.errors import CheckError, DeviceError
from warploom.index.evaluate import evaluate
from warploom.index.parse import parse
from warploom.index.show import show
from warploom.kernel.dtype import i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel, Load, walk
from warploom.search.outcome import Impossible
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.solve import reinstantiate, solve
from warploom.sketch.simt.trace import Tracer
from warploom.sketch.term import spec

Ints = npt.NDArray[np.int32]
DEVICES = ("simulator", "c", "ptx")
MARK = -7


def padded(count: int) -> tuple[Ints, Ints]:
    """An array with marks round it, and the whole of it."""
    whole = np.full(count + 64, MARK, np.int32)
    return whole[32:-32], whole


def launched(kernel: Kernel, device: Any, x: Ints, count: int, **named: int) -> Ints:
    """The output, of which nothing outside was written."""
    y, whole = padded(count)
    runtime.load(kernel, device)(x, y, **named)
    assert (whole[:32] == MARK).all()
    assert (whole[-32:] == MARK).all()
    return y


# -- tiles ---------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("body", "shift"), [(below, 2), (beyond, 0)])
def test_lanes_outside_the_tile_write_nothing(body: Any, shift: int, device: str) -> None:
    require(device)
    made = specified(body, lambda x, lanes: x[shift : shift + lanes - 2])
    kernel = to_kernel(proved(solve(made.at())), i32)
    for count in (1, 29, 30, 31, 150, 151):
        x = np.arange(1, count + 1 + shift, dtype=np.int32)
        np.testing.assert_array_equal(launched(kernel, device, x, count), x[shift:])


@pytest.mark.parametrize("device", DEVICES)
def test_a_load_that_is_masked_afterwards_stays_inside_the_array(device: str) -> None:
    require(device)

    def running(k: Tracer, lanes: int = 32, taps: int = 3) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        total = k.accumulator("+")
        for i in k.loop(taps):
            total.add(x[lane - i], when=k.condition(lane, i))
        y[lane] = total.value()

    def wanted(x: Any, lanes: int, taps: int) -> Any:
        return [spec.total(x[max(0, i - taps + 1) : i + 1]) for i in range(lanes)]

    kernel = to_kernel(proved(solve(specified(running, wanted).at())), i32)
    loads = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Load)]
    assert all(stmt.predicate is not None and ">=" in show(stmt.predicate) for stmt in loads)
    for count in (1, 31, 33, 160):
        x = np.arange(1, count + 1, dtype=np.int32)
        tiles = [x[start : start + 32] for start in range(0, count, 32)]
        parts = [np.convolve(tile, np.ones(3, np.int32))[: len(tile)] for tile in tiles]
        np.testing.assert_array_equal(launched(kernel, device, x, count), np.concatenate(parts))


def test_what_lies_beside_the_tile_is_not_zero() -> None:
    """The model does not take a neighbour's element for a zero, nor for the right one."""

    def neighbours(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        both = k.accumulator("+")
        both.add(x[lane])
        both.add(x[lane + 1])
        y[lane] = both.value()

    def wanted(x: Any, lanes: int) -> Any:
        return [spec.total(x[i : i + 2]) for i in range(lanes)]

    outcome = solve(specified(neighbours, wanted).at())
    assert isinstance(outcome, Impossible)
    assert "y[7] should hold +(x[7],) but holds nothing anyone may rely on" in outcome.why
    assert "lane 7 writes register 'acc'" in outcome.why


@pytest.mark.parametrize("step", [3, 5])
def test_tiles_of_an_output_lie_side_by_side(step: int) -> None:
    def stepped(k: Tracer) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 4), k.output("y", 4, step=step)
        y[lane] = x[lane]

    with pytest.raises(CheckError, match=re.escape(f"tiles of [4] every [{step}]")) as caught:
        specified(stepped, lambda x: x).at()
    assert caught.value.span is not None


def test_a_register_outside_its_array_is_refused() -> None:
    def outside(k: Tracer) -> None:
        lane = k.warp(4)
        x, y = k.input("x", 4), k.output("y", 4)
        r = k.registers((2, 2))
        for i in k.loop(2):
            r[0, i + 1] = x[lane]
        y[lane] = r[0, 1]

    with pytest.raises(CheckError, match="2 registers along axis 1, but register 2 is written"):
        specified(outside, lambda x: x).at()


def test_a_step_leads_forward_and_outputs_have_the_same_axes() -> None:
    def backward(k: Tracer) -> None:
        k.warp(4)
        k.input("x", 4, step=-4)

    def mixed(k: Tracer) -> None:
        lane = k.warp(4)
        x, y, z = k.input("x", 4), k.output("y", 4), k.output("z", (1, 4))
        y[lane], z[0, lane] = x[lane], x[lane]

    with pytest.raises(CheckError, match="negative step"):
        specified(backward, lambda x: x).at()
    with pytest.raises(CheckError, match="'z' has 2 axes, 'y' has 1"):
        specified(mixed, lambda x: (x, [x])).at()


# -- shared memory -------------------------------------------------------------------------------


def through_shared(barriers: str, index: Callable[[Tracer, Any], Any]) -> SketchFunction:
    """`s[lane] = x[lane]`, then y[lane] = s[index]; twice, with barriers where the text says b."""

    def moved(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", 2 * lanes), k.output("y", 2 * lanes)
        s = k.shared("s", lanes)
        for half in range(2):
            s[lane] = x[lane + half * lanes]
            if barriers[2 * half] == "b":
                k.barrier()
            y[lane + half * lanes] = s[index(k, lane)]
            if barriers[2 * half + 1] == "b":
                k.barrier()

    return sketch(moved)


def rotated(x: Any, lanes: int) -> Any:
    return np.roll(x.reshape(2, lanes), -1, axis=1).reshape(-1)


@pytest.mark.parametrize("open_", [False, True])
def test_lanes_that_meet_in_shared_memory_need_barriers(open_: bool) -> None:
    def index(k: Tracer, lane: Any) -> Any:
        return k.swizzle(lane, 8) if open_ else (lane + 1) % 8

    for barriers in ("bbb-", "bb-b", "b-bb", "-bbb", "----"):
        made = through_shared(barriers, index)
        made.specification(rotated)
        if barriers == "bbb-":
            kernel = to_kernel(proved(solve(made.at())), i32, warps=2)
            x = np.arange(48, dtype=np.int32)
            y = np.zeros(48, np.int32)
            run(kernel, [x, y])
            want = np.roll(x.reshape(-1, 8), -1, axis=1).reshape(-1)
            np.testing.assert_array_equal(y, want)
        else:
            with pytest.raises(CheckError, match=r"lanes \d and \d read and write s\[\d\]") as at:
                solve(made.at())
            assert at.value.span is not None
            assert "s[" in at.value.span.source.line(at.value.span.line)


def test_a_lane_that_reads_its_own_cell_needs_no_barrier() -> None:
    """The hole decides whether there is a conflict, and the fill without one is taken."""
    made = through_shared("----", lambda k, lane: k.swizzle(lane, 8))
    made.specification(lambda x, lanes: x)
    filled = proved(solve(made.at()))
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    run(to_kernel(filled, i32), [x, y])
    np.testing.assert_array_equal(y, x)


def test_a_fill_without_a_conflict_is_preferred() -> None:
    """Elements 0 and 1 are equal, in shared memory, too: only a lane's own needs no barrier."""

    def twice(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", 1), k.output("y", lanes)
        s = k.shared("s", lanes)
        s[lane] = x[0]
        y[lane] = s[k.swizzle(lane, lanes)]

    made = specified(twice, lambda x, lanes: [x[0]] * lanes)
    filled = proved(solve(made.at()))
    assert set(map(str, filled.fill.values())) == {"Var('lane')"}
    large = proved(reinstantiate(filled, made.at(lanes=32)))
    assert "verdict: proved" in to_kernel(large).doc


def test_shared_memory_that_nobody_wrote_is_not_read() -> None:
    def half(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        s = k.shared("s", 2 * lanes)
        s[lane] = x[lane]
        k.barrier()
        total = k.accumulator("+")
        for i in k.loop(2):
            total.add(s[lane + i * lanes], when=i.lt(1))
        y[lane] = total.value()

    with pytest.raises(CheckError, match=r"lane 0 reads s\[4\], where nobody has written, i = 1"):
        solve(specified(half, lambda x, lanes: [spec.total([v]) for v in x]).at())


def test_loops_are_followed_back_to_their_start() -> None:
    def looped(synced: bool) -> SketchFunction:
        def body(k: Tracer, lanes: int = 4) -> None:
            lane = k.warp(lanes)
            x, y = k.input("x", lanes), k.output("y", (2, lanes))
            s = k.shared("s", lanes)
            for i in k.loop(2):
                y[i, (lane + i) % lanes] = x[lane]
                if synced:
                    k.barrier()
                y[1 - i, (lane + 1) % lanes] = x[lane]
            s[lane] = x[lane]

        return specified(body, lambda x, lanes: [x, x])

    with pytest.raises(CheckError, match=r"y\[\d, \d\]"):
        solve(looped(False).at())
    with pytest.raises(CheckError, match="written by two statements of one loop"):
        solve(looped(True).at())


def test_two_stores_of_one_loop_are_not_one_after_the_other() -> None:
    """Terms would say that all of the second come after all of the first."""

    def crossed(k: Tracer, lanes: int = 4) -> None:
        lane = k.warp(lanes)
        a, b, y = k.input("a", 8), k.input("b", 8), k.output("y", 8)
        for i in k.loop(2):
            y[lane + 4 * i] = a[lane + 4 * i]
            y[lane + 4 - 4 * i] = b[lane + 4 - 4 * i]

    for wanted in (lambda a, b, lanes: b, lambda a, b, lanes: [*b[:4], *a[4:]]):
        with pytest.raises(CheckError, match="two statements of one loop"):
            solve(specified(crossed, wanted).at())


@pytest.mark.parametrize("device", DEVICES)
def test_warps_of_a_block_keep_to_their_own_shared_memory(device: str) -> None:
    """A store or load beside the array would be in the neighbouring warp's."""
    require(device)

    def shifted(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", lanes), k.output("y", lanes)
        s = k.shared("s", (2, lanes))
        s[0, lane] = x[lane]
        s[1, lane] = x[lane]
        k.barrier()
        s[1, lane + 4] = x[lane]
        k.barrier()
        total = k.accumulator("+")
        total.add(s[1, lane])
        total.add(s[0, lane - 1], when=lane.ge(1))
        y[lane] = total.value()

    def wanted(x: Any, lanes: int) -> Any:
        moved = [*x[:4], *x[:4]]
        return [spec.total([moved[i], *x[max(0, i - 1) : i]]) for i in range(lanes)]

    kernel = to_kernel(proved(solve(specified(shifted, wanted).at())), i32, warps=4)
    x = np.arange(1, 81, dtype=np.int32)
    tiles = x.reshape(-1, 8)
    want = np.concatenate([tiles[:, :4], tiles[:, :4]], axis=1)
    want[:, 1:] += tiles[:, :-1]
    np.testing.assert_array_equal(launched(kernel, device, x, 80), want.reshape(-1))


# -- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "source", "needs"),
    [
        (8, lambda lane: lane, "x_size >= y_size"),
        (8, lambda lane: lane + 2, "x_size >= y_size + 2"),
        (10, lambda lane: lane + 2, "x_size >= (y_size + 7) // 8 * 10"),
        (16, lambda lane: lane * 2, "x_size >= y_size * 2 - 1"),
        (0, lambda lane: lane * 0 + 4, "x_size >= 5"),
        (8, lambda lane: 7 - lane, "x_size >= (y_size + 7) // 8 * 8"),
        (4, lambda lane: lane // 2, "x_size >= (y_size + 1) // 2"),
    ],
)
def test_inputs_are_as_long_as_the_outputs_need(step: int, source: Any, needs: str) -> None:
    def picked(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", 16, step=step), k.output("y", lanes)
        y[lane] = x[source(lane)]

    made = specified(picked, lambda x, lanes: [x[source(lane)] for lane in range(lanes)])
    kernel = to_kernel(proved(solve(made.at())), i32)
    assert needs in map(show, kernel.requires)
    for count in (5, 8, 20):
        tiles, lanes = np.divmod(np.arange(count), 8)
        places = tiles * step + source(lanes)
        least = int(evaluate(parse(needs.split(" >= ")[1]), {"y_size": count}))
        x, y = np.arange(1, least + 1, dtype=np.int32), np.zeros(count, np.int32)
        run(kernel, [x, y])
        np.testing.assert_array_equal(y, x[places])
        with pytest.raises(DeviceError, match="requires"):
            run(kernel, [x[:-1].copy() if least > 1 else x[:0], y])


def test_outputs_have_the_same_number_of_tiles() -> None:
    def split(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y, z = k.input("x", 2 * lanes), k.output("y", lanes), k.output("z", 2 * lanes)
        y[lane] = x[2 * lane]
        z[2 * lane], z[2 * lane + 1] = x[2 * lane + 1], x[2 * lane]

    def wanted(x: Any, lanes: int) -> Any:
        return x[::2], x.reshape(-1, 2)[:, ::-1].reshape(-1)

    kernel = to_kernel(proved(solve(specified(split, wanted).at())), i32)
    x = np.arange(64, dtype=np.int32)
    y, z = np.zeros(32, np.int32), np.zeros(64, np.int32)
    run(kernel, [x, y, z])
    np.testing.assert_array_equal(y, x[::2])
    np.testing.assert_array_equal(z, x.reshape(-1, 2)[:, ::-1].reshape(-1))
    with pytest.raises(DeviceError, match="requires"):
        run(kernel, [x, y, np.zeros(48, np.int32)])


def test_an_input_with_more_axes_has_one_tile_along_the_first() -> None:
    def sums(k: Tracer, lanes: int = 8) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", (3, lanes + 1), step=(3, lanes)), k.output("y", lanes)
        total = k.accumulator("+")
        for i in k.loop(3):
            total.add(x[i, lane + 1])
        y[lane] = total.value()

    def wanted(x: Any, lanes: int) -> Any:
        return [spec.total(x[:, i + 1]) for i in range(lanes)]

    kernel = to_kernel(proved(solve(specified(sums, wanted).at())), i32)
    assert {"x_rows >= 3", "x_columns >= y_size + 1"} <= set(map(show, kernel.requires))
    x, y = np.arange(4 * 22, dtype=np.int32).reshape(4, 22), np.zeros(21, np.int32)
    run(kernel, [x, y], {"x_rows": 4, "x_columns": 22})
    np.testing.assert_array_equal(y, x[:3, 1:].sum(axis=0))


def test_tiles_of_three_axes() -> None:
    def turned(k: Tracer) -> None:
        lane = k.warp(8)
        x, y = k.input("x", (3, 2, 5)), k.output("y", (3, 2, 5))
        for i in k.loop(3):
            for j in k.loop(2, "j"):
                y[i, j, 4 - lane] = x[i, j, lane]

    kernel = to_kernel(proved(solve(specified(turned, lambda x: x[:, :, ::-1]).at())), i32)
    x, y = np.arange(6 * 3 * 10, dtype=np.int32).reshape(6, 3, 10), np.zeros((6, 3, 10), np.int32)
    axes = ("planes", "rows", "columns")
    named = {f"{name}_{axis}": n for name in "xy" for axis, n in zip(axes, x.shape, strict=True)}
    run(kernel, [x, y], named)
    np.testing.assert_array_equal(y, x.reshape(6, 3, 2, 5)[..., ::-1].reshape(x.shape))
