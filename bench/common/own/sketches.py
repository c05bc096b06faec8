"""Sketches as a user writes them: term sketches as functions of their sizes, and warp sketches."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom import Sketch, spec, warp_sketch
from warploom.sketch.simt.trace import Tracer


def transposition(m: int = 16, n: int = 6) -> Sketch:
    """Every m × n matrix is transposed: loaded and stored coalesced, exchanged in registers."""
    s = Sketch(f"transposition {m}x{n}")
    x = s.input("x", m * n)
    registers = s.apply("load_rep", x, shape=(m, n))
    for number, axis in enumerate(("row", "col", "row")):
        registers = s.hole(f"{axis}_linear", registers, name=f"s{number}")
    s.apply("transpose", registers, shape=(n, m), name="y")
    s.goal(lambda x: x.reshape(m, n).T)
    return s


def strided_taps(lanes: int = 32, taps: int = 5, stride: int = 2) -> Sketch:
    """Sums of five neighbours at every other place: even and odd elements apart."""
    s = Sketch("strided taps")
    length = (lanes - 1) * stride + taps
    x = s.input("x", length)
    parts = []
    for phase in range(stride):
        own = len(range(phase, taps, stride))
        samples = s.gather(np.arange(phase, length, stride)[: lanes + own - 1], x)
        loaded = s.apply("load_trunc", samples, shape=(lanes, 2))
        sent = s.hole("reg_select", loaded, shape=(lanes, own))
        parts.append(s.hole("col_rots", s.hole("col_xforms_no_group", sent)))
    lane, even, odd = np.arange(lanes)[:, None], *(part.shape[1] for part in parts)
    table = [lane * even + np.arange(even), lanes * even + lane * odd + np.arange(odd)]
    s.sum("identity", s.gather(np.concatenate(table, axis=1), *parts), name="y")
    s.goal(lambda x: [spec.total(x[i * stride : i * stride + taps]) for i in range(lanes)])
    return s


def scan(lanes: int = 32) -> Sketch:
    """Running sums within every 32 elements: how far back a lane looks in a round is left out."""
    s = Sketch("running sums")
    value, lane = s.input("x", lanes), np.arange(lanes)
    back = {f"lane - {d}": np.where(lane < d, -1, lane - d) for d in (1, 2, 3, 4, 8, 12, 16)}
    for _ in range(lanes.bit_length() - 1):
        value = s.sum("stack", value, s.choices(back, value))
    s.goal(np.cumsum)
    return s


@warp_sketch
def planes(k: Tracer, lanes: int = 32) -> None:
    """Complex numbers, real and imaginary part in iterations, become two planes."""
    lane = k.warp(lanes)
    x = k.input("x", 2 * lanes)
    real, imaginary = k.output("real", lanes), k.output("imaginary", lanes)
    loaded = k.load(x, rounds=2)
    turned = k.permute(loaded, lambda i: k.swizzle(i, 2, lane, name="before"))
    moved = k.registers(2)
    for i in k.loop(2):
        moved[i] = k.shuffle(turned[i], k.swizzle(lane, lanes, i, name="across"))
    done = k.permute(moved, lambda i: k.swizzle(i, 2, lane, name="after"))
    real[lane] = done[0]
    imaginary[lane] = done[1]


@planes.specification
def _planes(x: Any, lanes: int) -> Any:
    return x[0 : 2 * lanes : 2], x[1 : 2 * lanes : 2]


@warp_sketch
def butterfly(k: Tracer, lanes: int = 32) -> None:
    """Every lane has the sum of all: five rounds, one hole for whom a lane meets in a round."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    value = x[lane]
    for _ in range(lanes.bit_length() - 1):
        both = k.accumulator("+")
        both.add(value)
        both.add(k.shuffle(value, k.bits(lane, lanes)))
        value = both.value()
    y[lane] = value


@butterfly.specification
def _butterfly(x: Any, lanes: int) -> Any:
    return [spec.total(x)] * lanes
