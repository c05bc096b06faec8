"""The sketches of the Swizzle Inventor paper's Table 1, each a function of its sizes.

`warp` is the number of lanes; the defaults are the sizes at which the published tool was run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.index.ir import Expr
from warploom.sketch.simt.function import sketch
from warploom.sketch.simt.spec import finalized
from warploom.sketch.simt.trace import ArrayHandle, Tracer, Value
from warploom.sketch.term.spec import bit_xor, product, total

# -- stencils


def _tap(k: Tracer, r: ArrayHandle, lane: Expr, i: Expr, lanes: int) -> Value:
    """What a lane receives in iteration i: another lane's choice among its registers."""
    borders = _borders(lanes, r.shape[0])
    part = k.partition(r.shape[0], lane, i, constants=borders, name="part")
    return k.shuffle(r[part], k.swizzle(lane, lanes, i, name="source"))


def _rounds(cells: int, lanes: int) -> int:
    return -(-cells // lanes)


def _borders(lanes: int, parts: int) -> tuple[int, ...]:
    """Where the parts of a tile begin, counted in lanes; the last needs no border of its own."""
    return tuple(lanes * part for part in range(1, max(2, parts - 1)))


@sketch
def stencil_1d(k: Tracer, warp: int = 32, taps: int = 3) -> None:
    """Moving average: every output is the mean of `taps` neighbours."""
    lane = k.warp(warp)
    x, y = k.input("x", warp + taps - 1, step=warp), k.output("y", warp)
    r = k.load(x, rounds=_rounds(warp + taps - 1, warp))
    mean = k.accumulator("+", finalize="mean", finish=lambda total: total / float(taps))
    for i in k.loop(taps):
        mean.add(_tap(k, r, lane, i, warp), when=k.condition(lane, i, name="keep"))
    y[lane] = mean.value()


@stencil_1d.specification
def _stencil_1d(x: Any, warp: int, taps: int) -> Any:
    def mean(value: Any) -> Any:
        return value / taps

    return [finalized("mean", total(x[i : i + taps]), mean) for i in range(warp)]


@sketch
def convolution_1d(k: Tracer, warp: int = 32, taps: int = 3) -> None:
    """A weighted sum of neighbours; which weight goes with which iteration is open too."""
    lane = k.warp(warp)
    x, y = k.input("x", warp + taps - 1, step=warp), k.output("y", warp)
    w = k.constant("w", taps)
    r = k.load(x, rounds=_rounds(warp + taps - 1, warp))
    dot = k.accumulator("+", "*")
    for i in k.loop(taps):
        weight = w[k.swizzle(i, taps, name="weight")]
        dot.add(_tap(k, r, lane, i, warp), weight, when=k.condition(lane, i, name="keep"))
    y[lane] = dot.value()


@convolution_1d.specification
def _convolution_1d(x: Any, w: Any, warp: int, taps: int) -> Any:
    return [total(product([x[i + j], w[j]]) for j in range(taps)) for i in range(warp)]


@sketch
def convolution_2d(k: Tracer, rows: int = 4, warp: int = 4, taps: int = 7) -> None:
    """A weighted sum over a taps × taps window, on a warp of rows × warp lanes."""
    row, column = k.warp(rows, warp)
    x = k.input("x", (rows + taps - 1, warp + taps - 1), step=(rows, warp))
    y = k.output("y", (rows, warp))
    w = k.constant("w", (taps, taps))
    deep, wide = _rounds(rows + taps - 1, rows), _rounds(warp + taps - 1, warp)
    r = k.load(x, rounds=(deep, wide))
    dot = k.accumulator("+", "*")
    for ky in k.loop(taps, "ky"):
        for kx in k.loop(taps, "kx"):
            i = k.partition(deep, row, ky, constants=_borders(rows, deep), name="part_y")
            j = k.partition(wide, column, kx, constants=_borders(warp, wide), name="part_x")
            lane = k.swizzle(row, rows, ky, name="row"), k.swizzle(column, warp, kx, name="column")
            dot.add(k.shuffle(r[i, j], lane), w[ky, kx])
    y[row, column] = dot.value()


@convolution_2d.specification
def _convolution_2d(x: Any, w: Any, rows: int, warp: int, taps: int) -> Any:
    def window(i: int, j: int) -> Any:
        cells = ((a, b) for a in range(taps) for b in range(taps))
        return total(product([x[i + a, j + b], w[a, b]]) for a, b in cells)

    return [[window(i, j) for j in range(warp)] for i in range(rows)]


# -- polynomial multiplication


def _product_of(a: Any, b: Any) -> Any:
    """The 2n coefficients of the product over GF(2); the last is zero."""
    n = len(a)
    pairs = [[(i, t - i) for i in range(n) if 0 <= t - i < n] for t in range(2 * n)]
    return np.array([bit_xor(a[i] & b[j] for i, j in each) for each in pairs], object)


@sketch
def multiplication_32(k: Tracer, warp: int = 4) -> None:
    """Polynomials of warp coefficients over GF(2^m), one coefficient in each lane."""
    lane = k.warp(warp)
    a, b, c = k.input("a", warp), k.input("b", warp), k.output("c", 2 * warp)
    ra, rb = k.load(a, rounds=1), k.load(b, rounds=1)
    low, high = k.accumulator("^", "&"), k.accumulator("^", "&")
    for i in k.loop(warp):
        va = k.shuffle(ra[0], k.swizzle(lane, warp, i, name="from_a"))
        vb = k.shuffle(rb[0], k.swizzle(lane, warp, i, name="from_b"))
        low.add(va, vb, when=k.condition(lane, i, name="low"))
        high.add(va, vb, when=k.condition(lane, i, name="high"))
    c[lane], c[lane + warp] = low.value(), high.value()


@sketch
def multiplication_32_shared(k: Tracer, warp: int = 4) -> None:
    """`multiplication_32` with both polynomials in shared memory."""
    lane = k.warp(warp)
    a, b, c = k.input("a", warp), k.input("b", warp), k.output("c", 2 * warp)
    sa, sb = k.shared("sa", warp), k.shared("sb", warp)
    k.copy(a, sa, rounds=1)
    k.copy(b, sb, rounds=1)
    low, high = k.accumulator("^", "&"), k.accumulator("^", "&")
    for i in k.loop(warp):
        va = sa[k.swizzle(lane, warp, i, name="from_a")]
        vb = sb[k.swizzle(lane, warp, i, name="from_b")]
        low.add(va, vb, when=k.condition(lane, i, name="low"))
        high.add(va, vb, when=k.condition(lane, i, name="high"))
    c[lane], c[lane + warp] = low.value(), high.value()


def _sixteen(
    k: Tracer, lane: Expr, warp: int, c: ArrayHandle, pick: Callable[[str, str, Expr], Value]
) -> None:
    """Two values of each operand in each iteration; every product may go to every quarter."""
    quarters = [k.accumulator("^", "&") for _ in range(4)]
    for i in k.loop(warp):
        values = [[pick(name, which, i) for which in "01"] for name in "ab"]
        for q, quarter in enumerate(quarters):
            for m, va in enumerate(values[0]):
                for n, vb in enumerate(values[1]):
                    when = k.condition(lane, i, name=f"to{q}_{m}{n}")
                    quarter.add(va, vb, when=when)
    for q, quarter in enumerate(quarters):
        c[lane + q * warp] = quarter.value()


@sketch
def multiplication_64(k: Tracer, warp: int = 4) -> None:
    """Polynomials of 2W coefficients, two of each operand in the registers of every lane."""
    lane = k.warp(warp)
    a, b, c = k.input("a", 2 * warp), k.input("b", 2 * warp), k.output("c", 4 * warp)
    registers = {"a": k.load(a, rounds=2), "b": k.load(b, rounds=2)}

    def pick(name: str, which: str, i: Expr) -> Value:
        part = k.partition(2, lane, i, name=f"part_{name}{which}")
        source = k.swizzle(lane, warp, i, name=f"from_{name}{which}")
        return k.shuffle(registers[name][part], source)

    _sixteen(k, lane, warp, c, pick)


@sketch
def multiplication_64_shared(k: Tracer, warp: int = 4) -> None:
    """Polynomials of 2W coefficients, both in shared memory."""
    lane = k.warp(warp)
    a, b, c = k.input("a", 2 * warp), k.input("b", 2 * warp), k.output("c", 4 * warp)
    shared = {"a": k.shared("sa", 2 * warp), "b": k.shared("sb", 2 * warp)}
    k.copy(a, shared["a"], rounds=2)
    k.copy(b, shared["b"], rounds=2)

    def pick(name: str, which: str, i: Expr) -> Value:
        return shared[name][k.swizzle(lane, 2 * warp, i, name=f"from_{name}{which}")]

    _sixteen(k, lane, warp, c, pick)


def _multiplied(a: Any, b: Any, warp: int) -> Any:
    del warp
    return _product_of(a, b)


for _each in (
    multiplication_32,
    multiplication_32_shared,
    multiplication_64,
    multiplication_64_shared,
):
    _each.specification(_multiplied)


# -- arrays of structures


@sketch
def aos_sum(k: Tracer, warp: int = 32, s: int = 3) -> None:
    """The sum of each structure of s elements: a coalesced load, a column and a row shuffle."""
    lane = k.warp(warp)
    x, y = k.input("x", warp * s), k.output("y", warp)
    r = k.load(x, rounds=s)
    r = k.permute(r, lambda i: k.swizzle(i, s, lane, name="column"))
    sums = k.accumulator("+")
    for i in k.loop(s):
        sums.add(k.shuffle(r[i], k.swizzle(lane, warp, i, name="row")))
    y[lane] = sums.value()


@aos_sum.specification
def _aos_sum(x: Any, warp: int, s: int) -> Any:
    return [total(x[t * s : t * s + s]) for t in range(warp)]


@sketch
def aos_crc(k: Tracer, warp: int = 32, s: int = 3) -> None:
    """Structures to runs, in registers: column, row and column shuffle."""
    lane = k.warp(warp)
    x, y = k.input("x", warp * s), k.output("y", warp * s)
    r = k.load(x, rounds=s)
    r = k.permute(r, lambda i: k.swizzle(i, s, lane, name="column"))
    moved = k.registers(s)
    for i in k.loop(s):
        moved[i] = k.shuffle(r[i], k.swizzle(lane, warp, i, name="row"))
    r = k.permute(moved, lambda i: k.swizzle(i, s, lane, name="column"))
    k.store(y, r)


@sketch
def aos_rcr(k: Tracer, warp: int = 32, s: int = 3) -> None:
    """Structures to runs, the row shuffles done by the load and the store."""
    lane = k.warp(warp)
    x, y = k.input("x", warp * s), k.output("y", warp * s)
    r = k.load(x, s, shuffle=lambda lane, j: _lane(k, lane, warp, j, s, "load"))
    r = k.permute(r, lambda i: k.swizzle(i, s, lane, name="column"))
    k.store(y, r, shuffle=lambda lane, j: _lane(k, lane, warp, j, s, "store"))


def _lane(k: Tracer, lane: Expr, warp: int, j: Expr, s: int, name: str) -> Expr:
    return k.swizzle(lane, warp, j if s > 1 else None, name=name)


def _transposed(x: Any, warp: int, s: int) -> Any:
    return x.reshape(warp, s).T.reshape(-1)


for _each in (aos_crc, aos_rcr):
    _each.specification(_transposed)
