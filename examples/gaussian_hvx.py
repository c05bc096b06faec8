"""A three-tap Gaussian on HVX: six vector instructions found on 8 lanes, proved on 128.

A set of all instructions on 128 lanes is large, so the search runs on 8 lanes and its answer is
carried over: the same instructions are proved at the real size.
"""

from __future__ import annotations

import numpy as np

from warploom import Sketch, synthesize
from warploom.sketch.build import Value


def instruction(s: Sketch, registers: Value, lanes: int) -> Value:
    """One more register, computed from any two of the four that were loaded."""
    shape = (registers.shape[0] + 1, lanes)
    return s.hole("hvx_2x1", registers, shape=shape, in_lim=4, fresh=True)


def gaussian(lanes: int = 8) -> Sketch:
    """Two vectors of sums of three neighbours each, weighted 1, 2, 1 (named by two symbols)."""
    s = Sketch(f"Gaussian on {lanes} lanes")
    x = s.input("x", (4, lanes))
    one, two = 4 * lanes, 4 * lanes + 1
    w = s.literal("w", [one, two, one])
    registers = x
    for _ in range(6):
        registers = instruction(s, registers, lanes)
    taps = np.arange(4 * lanes, 10 * lanes).reshape(2, 3, lanes)
    computed = s.gather(taps.transpose(0, 2, 1), registers, name="computed")
    weights = s.apply("broadcast", w, shape=computed.shape, name="weights")
    s.sum("identity", s.product("stack", computed, weights), name="out")

    def wanted(x, w):  # type: ignore[no-untyped-def]  # plain Python on symbols
        flat = x.reshape(-1)
        rows = range(0, 2 * lanes, lanes)
        return [[sum(flat[r + i + t] * w[t] for t in range(3)) for i in range(lanes)] for r in rows]

    s.goal(wanted)
    return s


def main() -> None:
    small = synthesize(gaussian(8).program())
    assert small.complete
    print(f"8 lanes: {small.fills.count} fills, {small.verdict.value}")
    large = small.transfer(gaussian(128))
    print(f"128 lanes: {large.verdict.value}")
    print(large.fill_text())
    assert large.verdict.value == "proved"


if __name__ == "__main__":
    main()
