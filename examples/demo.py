"""Two sketches, filled and proved: a 32 x 5 transposition in registers and a 1-D convolution.

Run it with `make demo`; no GPU is needed.
"""

from __future__ import annotations

import time

from warploom import Sketch, show_fill, synthesize


def transposition(rows: int = 32, columns: int = 5) -> Sketch:
    """Loaded coalesced, so lane i holds x[i], x[i + 32], …; wanted: lane i holds 5 neighbours."""
    s = Sketch(f"{rows} x {columns} transposition")
    x = s.input("x", rows * columns)
    here = s.apply("load_rep", x, shape=(rows, columns), name="loaded")
    for axis in ("row", "col", "row"):  # within each lane, between lanes, within each lane
        here = s.hole(f"{axis}_xforms", here)
        here = s.hole(f"{axis}_rots", here)
    s.goal(lambda x: x.reshape(rows, columns))
    return s


def convolution(lanes: int = 32, taps: int = 3) -> Sketch:
    """Each lane loads two elements; the rest of its window comes from other lanes by shuffles."""
    s = Sketch(f"{taps}-tap convolution")
    x, w = s.input("x", lanes + taps - 1), s.input("w", taps)
    loaded = s.apply("load_trunc", x, shape=(lanes, 2), name="loaded")
    sent = s.hole("reg_select", loaded, shape=(lanes, taps), name="sent")
    received = s.hole("col_rots", s.hole("col_xforms", sent), name="received")
    weights = s.apply("broadcast", w, shape=(lanes, taps), name="weights")
    products = s.product("stack", received, weights, name="products")
    s.sum("cond_keep", products, name="out")
    s.goal(lambda x, w: [sum(x[i + j] * w[j] for j in range(taps)) for i in range(lanes)])
    return s


def main() -> None:
    for make in (transposition, convolution):
        started = time.perf_counter()
        result = synthesize(make().program())
        seconds = time.perf_counter() - started
        count, stats = result.fills.count, result.stats
        print(f"{result.program.name}: {count} of {stats.raw_space:.1e} fills are right")
        for number in range(count):
            print(f"  fill {number + 1}, {result.verdicts[number]}")
            print(show_fill(result, number, indent="    "))
        print(
            f"  {stats.states} states visited in {seconds:.2f} s; verdict: {result.verdict.value}"
        )


if __name__ == "__main__":
    main()
