"""The sketches of the Swizzle Inventor paper's Table 1, each a function of its sizes.

W is the warp size; the defaults are the sizes at which the published tool was run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.index.ir import Expr
from warploom.sketch.simt.spec import finalized
from warploom.sketch.simt.trace import ArrayHandle, Tracer, Value, sketch
from warploom.sketch.term.spec import product, total

# -- stencils --------------------------------------------------------------------------------------


def _tap(k: Tracer, r: ArrayHandle, lane: Expr, i: Expr, lanes: int) -> Value:
    """What a lane receives in iteration i: another lane's choice among its registers."""
    part = k.partition(r.shape[0], lane, i, name="part")
    return k.shuffle(r[part], k.swizzle(lane, lanes, i, name="source"))


def _rounds(cells: int, lanes: int) -> int:
    return -(-cells // lanes)


@sketch
def stencil_1d(k: Tracer, W: int = 32, taps: int = 3) -> None:
    """Moving average: every output is the mean of `taps` neighbours."""
    lane = k.warp(W)
    x, y = k.input("x", W + taps - 1, step=W), k.output("y", W)
    r = k.load(x, rounds=_rounds(W + taps - 1, W))
    mean = k.accumulator("+", finalize="mean", finish=lambda total: total / float(taps))
    for i in k.loop(taps):
        mean.add(_tap(k, r, lane, i, W), when=k.condition(lane, i, name="keep"))
    y[lane] = mean.value()


@stencil_1d.specification
def _stencil_1d(x: Any, W: int, taps: int) -> Any:
    return [finalized("mean", total(x[i : i + taps])) for i in range(W)]


@sketch
def convolution_1d(k: Tracer, W: int = 32, taps: int = 3) -> None:
    """A weighted sum of neighbours; which weight goes with which iteration is open too."""
    lane = k.warp(W)
    x, y = k.input("x", W + taps - 1, step=W), k.output("y", W)
    w = k.constant("w", taps)
    r = k.load(x, rounds=_rounds(W + taps - 1, W))
    dot = k.accumulator("+", "*")
    for i in k.loop(taps):
        weight = w[k.swizzle(i, taps, name="weight")]
        dot.add(_tap(k, r, lane, i, W), weight, when=k.condition(lane, i, name="keep"))
    y[lane] = dot.value()


@convolution_1d.specification
def _convolution_1d(x: Any, w: Any, W: int, taps: int) -> Any:
    return [total(product([x[i + j], w[j]]) for j in range(taps)) for i in range(W)]


@sketch
def convolution_2d(k: Tracer, H: int = 4, W: int = 4, taps: int = 7) -> None:
    """A weighted sum over a taps × taps window, on a warp of H × W lanes."""
    row, column = k.warp(H, W)
    x = k.input("x", (H + taps - 1, W + taps - 1), step=(H, W))
    y = k.output("y", (H, W))
    w = k.constant("w", (taps, taps))
    r = k.load(x, rounds=(_rounds(H + taps - 1, H), _rounds(W + taps - 1, W)))
    dot = k.accumulator("+", "*")
    for ky in k.loop(taps, "ky"):
        for kx in k.loop(taps, "kx"):
            i = k.partition(r.shape[0], row, ky, name="part_y")
            j = k.partition(r.shape[1], column, kx, name="part_x")
            lane = k.swizzle(row, H, ky, name="row"), k.swizzle(column, W, kx, name="column")
            dot.add(k.shuffle(r[i, j], lane), w[ky, kx])
    y[row, column] = dot.value()


@convolution_2d.specification
def _convolution_2d(x: Any, w: Any, H: int, W: int, taps: int) -> Any:
    def window(i: int, j: int) -> Any:
        cells = ((a, b) for a in range(taps) for b in range(taps))
        return total(product([x[i + a, j + b], w[a, b]]) for a, b in cells)

    return [[window(i, j) for j in range(W)] for i in range(H)]


# -- polynomial multiplication ----------------------------------------------------------------------


def _product_of(a: Any, b: Any) -> Any:
    """The 2n coefficients of the product; the last is zero."""
    n = len(a)
    pairs = [[(i, t - i) for i in range(n) if 0 <= t - i < n] for t in range(2 * n)]
    return np.array([total(product([a[i], b[j]]) for i, j in each) for each in pairs], object)


@sketch
def multiplication_32(k: Tracer, W: int = 4) -> None:
    """Polynomials of W coefficients over GF(2^m), one coefficient in each lane."""
    lane = k.warp(W)
    a, b, c = k.input("a", W), k.input("b", W), k.output("c", 2 * W)
    ra, rb = k.load(a, rounds=1), k.load(b, rounds=1)
    low, high = k.accumulator("^", "&"), k.accumulator("^", "&")
    for i in k.loop(W):
        va = k.shuffle(ra[0], k.swizzle(lane, W, i, name="from_a"))
        vb = k.shuffle(rb[0], k.swizzle(lane, W, i, name="from_b"))
        low.add(va, vb, when=k.condition(lane, i, name="low"))
        high.add(va, vb, when=k.condition(lane, i, name="high"))
    c[lane], c[lane + W] = low.value(), high.value()


@sketch
def multiplication_32_shared(k: Tracer, W: int = 4) -> None:
    """The same with both polynomials in shared memory."""
    lane = k.warp(W)
    a, b, c = k.input("a", W), k.input("b", W), k.output("c", 2 * W)
    sa, sb = k.shared("sa", W), k.shared("sb", W)
    k.copy(a, sa, rounds=1)
    k.copy(b, sb, rounds=1)
    low, high = k.accumulator("^", "&"), k.accumulator("^", "&")
    for i in k.loop(W):
        va = sa[k.swizzle(lane, W, i, name="from_a")]
        vb = sb[k.swizzle(lane, W, i, name="from_b")]
        low.add(va, vb, when=k.condition(lane, i, name="low"))
        high.add(va, vb, when=k.condition(lane, i, name="high"))
    c[lane], c[lane + W] = low.value(), high.value()


def _sixteen(
    k: Tracer, lane: Expr, W: int, c: ArrayHandle, pick: Callable[[str, str, Expr], Value]
) -> None:
    """Two values of each operand in each iteration; every product may go to every quarter."""
    quarters = [k.accumulator("^", "&") for _ in range(4)]
    for i in k.loop(W):
        values = [[pick(name, which, i) for which in "01"] for name in "ab"]
        for q, quarter in enumerate(quarters):
            for m, va in enumerate(values[0]):
                for n, vb in enumerate(values[1]):
                    when = k.condition(lane, i, name=f"to{q}_{m}{n}")
                    quarter.add(va, vb, when=when)
    for q, quarter in enumerate(quarters):
        c[lane + q * W] = quarter.value()


@sketch
def multiplication_64(k: Tracer, W: int = 4) -> None:
    """Polynomials of 2W coefficients, two of each operand in the registers of every lane."""
    lane = k.warp(W)
    a, b, c = k.input("a", 2 * W), k.input("b", 2 * W), k.output("c", 4 * W)
    registers = {"a": k.load(a, rounds=2), "b": k.load(b, rounds=2)}

    def pick(name: str, which: str, i: Expr) -> Value:
        part = k.partition(2, lane, i, name=f"part_{name}{which}")
        source = k.swizzle(lane, W, i, name=f"from_{name}{which}")
        return k.shuffle(registers[name][part], source)

    _sixteen(k, lane, W, c, pick)


@sketch
def multiplication_64_shared(k: Tracer, W: int = 4) -> None:
    """Polynomials of 2W coefficients, both in shared memory."""
    lane = k.warp(W)
    a, b, c = k.input("a", 2 * W), k.input("b", 2 * W), k.output("c", 4 * W)
    shared = {"a": k.shared("sa", 2 * W), "b": k.shared("sb", 2 * W)}
    k.copy(a, shared["a"], rounds=2)
    k.copy(b, shared["b"], rounds=2)

    def pick(name: str, which: str, i: Expr) -> Value:
        return shared[name][k.swizzle(lane, 2 * W, i, name=f"from_{name}{which}")]

    _sixteen(k, lane, W, c, pick)


def _multiplied(a: Any, b: Any, W: int) -> Any:
    del W
    return _product_of(a, b)


for _each in (
    multiplication_32,
    multiplication_32_shared,
    multiplication_64,
    multiplication_64_shared,
):
    _each.specification(_multiplied)


# -- arrays of structures ----------------------------------------------------------------------------


@sketch
def aos_sum(k: Tracer, W: int = 32, s: int = 3) -> None:
    """The sum of each structure of s elements; a coalesced load, then a column and a row shuffle."""
    lane = k.warp(W)
    x, y = k.input("x", W * s), k.output("y", W)
    r = k.load(x, rounds=s)
    r = k.permute(r, lambda i: k.swizzle(i, s, lane, name="column"))
    sums = k.accumulator("+")
    for i in k.loop(s):
        sums.add(k.shuffle(r[i], k.swizzle(lane, W, i, name="row")))
    y[lane] = sums.value()


@aos_sum.specification
def _aos_sum(x: Any, W: int, s: int) -> Any:
    return [total(x[t * s : t * s + s]) for t in range(W)]


@sketch
def aos_crc(k: Tracer, W: int = 32, s: int = 3) -> None:
    """Structures to runs, in registers: column, row and column shuffle."""
    lane = k.warp(W)
    x, y = k.input("x", W * s), k.output("y", W * s)
    r = k.load(x, rounds=s)
    r = k.permute(r, lambda i: k.swizzle(i, s, lane, name="column"))
    moved = k.registers(s)
    for i in k.loop(s):
        moved[i] = k.shuffle(r[i], k.swizzle(lane, W, i, name="row"))
    r = k.permute(moved, lambda i: k.swizzle(i, s, lane, name="column"))
    k.store(y, r)


@sketch
def aos_rcr(k: Tracer, W: int = 32, s: int = 3) -> None:
    """Structures to runs, the row shuffles done by the load and the store."""
    lane = k.warp(W)
    x, y = k.input("x", W * s), k.output("y", W * s)
    r = k.load(x, s, shuffle=lambda lane, j: _lane(k, lane, W, j, s, "load"))
    r = k.permute(r, lambda i: k.swizzle(i, s, lane, name="column"))
    k.store(y, r, shuffle=lambda lane, j: _lane(k, lane, W, j, s, "store"))


def _lane(k: Tracer, lane: Expr, W: int, j: Expr, s: int, name: str) -> Expr:
    return k.swizzle(lane, W, j if s > 1 else None, name=name)


def _transposed(x: Any, W: int, s: int) -> Any:
    return x.reshape(W, s).T.reshape(-1)


for _each in (aos_crc, aos_rcr):
    _each.specification(_transposed)
