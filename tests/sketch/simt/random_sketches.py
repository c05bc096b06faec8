"""Random small SIMT sketches that use every statement, for properties of all sketches."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from warploom.index.ir import Expr, select
from warploom.sketch.simt.function import SketchFunction, sketch
from warploom.sketch.simt.ir import Traced
from warploom.sketch.simt.trace import ArrayHandle, Tracer


@st.composite
def traced_sketches(draw: st.DrawFn) -> Traced:
    """A chain of moves from an input to an output; the specification does not matter."""
    if draw(st.booleans()):
        return _two_axes(draw).at()
    return _one_axis(draw).at()


def _one_axis(draw: st.DrawFn) -> SketchFunction:
    warp, registers = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    moves = draw(st.lists(st.sampled_from(("permute", "exchange", "shared", "rotate")), max_size=3))
    load_open, end = (
        draw(st.booleans()),
        draw(st.sampled_from(("store", "sum", "products", "late", "clash"))),
    )
    offset, stride = draw(st.integers(0, 2)), draw(st.sampled_from((1, 2)))

    @sketch
    def chain(k: Tracer) -> None:
        lane = k.warp(warp)
        x = k.input("x", warp * registers * stride + draw(st.integers(0, offset)) + offset)
        w = k.constant("w", 3)

        def place(lane: Expr, j: Expr) -> Expr:
            return k.swizzle(lane, warp, j if registers > 1 else None)

        shuffle = place if load_open else None
        r = k.load(x, registers, stride, offset, shuffle=shuffle)
        for move in moves:
            r = _moved(k, r, lane, warp, move)
        _ended(k, r, w, lane, warp, end)

    return _unspecified(chain)


def _moved(k: Tracer, r: ArrayHandle, lane: Expr, warp: int, move: str) -> ArrayHandle:
    (count,) = r.shape
    if move == "permute":
        return k.permute(r, lambda i: k.swizzle(i, count, lane))
    if move == "rotate":
        return k.permute(r, lambda i: (i + lane) % count)
    if move == "shared":
        s = k.shared(k._fresh("s"), (count, warp))
        for i in k.loop(count):
            s[i, lane] = r[i]
        k.barrier()
        result = k.registers(count)
        for i in k.loop(count):
            result[i] = s[i, k.swizzle(lane, warp, i)]
        return result
    result = k.registers(count)
    for i in k.loop(count):
        result[i] = k.shuffle(r[k.partition(min(count, 3), lane, i)], k.swizzle(lane, warp, i))
    return result


def _ended(k: Tracer, r: ArrayHandle, w: ArrayHandle, lane: Expr, warp: int, end: str) -> None:
    (count,) = r.shape
    if end == "store":
        y = k.output("y", warp * count)
        k.store(y, r, shuffle=lambda lane, j: k.swizzle(lane, warp, j if count > 1 else None))
    elif end == "sum":
        y = k.output("y", warp)
        total = k.accumulator("+", finalize="half", finish=lambda value: value / 2.0)
        for i in k.loop(count):
            total.add(r[i], when=k.condition(lane, i))
        y[lane] = total.value()
    elif end == "clash":  # lanes that write one cell, cells nobody writes, places outside
        y = k.output("y", warp)
        y[lane // 2 * 3 - 1] = r[0]
    elif end == "products":
        y = k.output("y", (2, warp))
        first, second = k.accumulator("^", "&"), k.accumulator("+", "*", init=5)
        for i in k.loop(count):
            for j in k.loop(3):
                value = k.shuffle(r[i], select(lane.lt(j), 0, lane))
                first.add(value, w[k.swizzle(j, 3, i)], when=lane.ge(j))
                second.add(value, w[j], when=k.condition(lane, j).and_(i.ne(1)))
        y[0, lane], y[1, lane] = first.value(), second.value()
    else:
        y = k.output("y", (count, warp))
        for i in k.loop(count):
            total = k.accumulator("+")
            for _ in k.loop(2):
                total.add(r[i])
            y[i, lane] = total.value()


def _two_axes(draw: st.DrawFn) -> SketchFunction:
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    deep, wide = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    crossed = draw(st.booleans())

    @sketch
    def window(k: Tracer) -> None:
        row, column = k.warp(rows, columns)
        x, y = k.input("x", (rows * deep, columns * wide)), k.output("y", (rows, columns))
        r = k.load(x, (deep, wide))
        total = k.accumulator("+")
        for i in k.loop(2):
            for j in k.loop(2):
                part = k.partition(deep, row, i), k.partition(wide, column, j)
                # Crossed, one axis of the lane depends on the other, so no axis may go first.
                lane = k.swizzle(row, rows, column if crossed else i), k.swizzle(column, columns, j)
                total.add(k.shuffle(r[part], lane), when=k.condition(row, j))
        y[row, column] = total.value()

    return _unspecified(window)


def _unspecified(made: SketchFunction) -> SketchFunction:
    def nothing(*_: object) -> object:
        shape: tuple[int, ...] = nothing_shape[-1]
        return np.zeros(shape, int)

    nothing_shape: list[tuple[int, ...]] = []
    original = made.function

    def recorded(k: Tracer) -> None:
        original(k)
        nothing_shape.append(next(a.shape for a in k._arrays.values() if a.space == "output"))

    made.function = recorded
    made.specification(nothing)
    return made
