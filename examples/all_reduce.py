"""A reduction and a scan across lanes, in rounds; from whom a lane gets what it adds is left out.

Sums of sums are one sum: that is a law, on by default for goals given as functions, and the verdict
names it. The second half is the reduction as a warp-level sketch, filled and run on the simulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import warploom
from warploom import Sketch, solve, spec, synthesize, warp_sketch


def butterfly(lanes: int = 32) -> Sketch:
    """Each round every lane adds what a partner holds, a power of two away by exclusive or."""
    s = Sketch(f"all-reduce over {lanes} lanes")
    value, lane = s.input("x", lanes), np.arange(lanes)
    rounds = lanes.bit_length() - 1
    partners = {f"lane ^ {1 << bit}": lane ^ (1 << bit) for bit in range(rounds)}
    for _ in range(rounds):
        value = s.sum("stack", value, s.choices(partners, value))
    s.goal(lambda x: [spec.total(x)] * lanes)
    return s


def scan(lanes: int = 32) -> Sketch:
    """Each round every lane adds what stands some lanes before it, if there is such a lane."""
    s = Sketch(f"inclusive scan over {lanes} lanes")
    value, lane = s.input("x", lanes), np.arange(lanes)
    before = {f"lane - {d}": np.where(lane < d, -1, lane - d) for d in (1, 2, 4, 8, 16)}
    for _ in range(lanes.bit_length() - 1):
        value = s.sum("stack", value, s.choices(before, value))
    s.goal(np.cumsum)
    return s


@warp_sketch
def rotations(k: Any, lanes: int = 8) -> None:
    """The reduction again, as a warp does it: each round adds what a shuffle brings."""
    lane = k.warp(lanes)
    x, y = k.input("x", lanes), k.output("y", lanes)
    value = x[lane]
    for _ in range(lanes.bit_length() - 1):
        both = k.accumulator("+")
        both.add(value)
        both.add(k.shuffle(value, k.swizzle(lane, lanes)))
        value = both.value()
    y[lane] = value


@rotations.specification
def _(x: Any, lanes: int) -> Any:
    return [spec.total(x)] * lanes


def main() -> None:
    for make in (butterfly, scan):
        result = synthesize(make().program())
        print(result)
        assert (result.fills.count, result.verdict.value) == (120, "proved")
    found = solve(rotations)
    print(found)
    reduced = warploom.compile(found, dtype="int32")
    x = np.arange(40, dtype=np.int32)
    y = reduced(x)
    assert (y.reshape(5, 8) == x.reshape(5, 8).sum(axis=1)[:, None]).all()


if __name__ == "__main__":
    main()
