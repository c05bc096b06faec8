"""A warp-level stencil without its swizzles: found on 4 lanes, proved on 32, written as CUDA."""

import numpy as np

import warploom
from warploom import solve, spec, warp_sketch


@warp_sketch
def stencil(k, lanes=32, taps=3):
    lane = k.warp(lanes)
    x, y = k.input("x", lanes + taps - 1, step=lanes), k.output("y", lanes)
    r = k.load(x, rounds=2)  # two registers in each lane
    total = k.accumulator("+")
    for i in k.loop(taps):
        part = k.partition(2, lane, i)  # which register: a hole
        source = k.swizzle(lane, lanes, i)  # from which lane: a hole
        total.add(k.shuffle(r[part], source), when=k.condition(lane, i))  # and when: a hole
    y[lane] = total.value()


@stencil.specification
def _(x, lanes, taps):
    return [spec.total(x[i : i + taps]) for i in range(lanes)]


small = solve(stencil.at(lanes=4), optimum=True)
large = small.transfer(stencil.at(lanes=32))
taps = warploom.compile(large)
print(taps.text("cuda"))

x = np.random.default_rng(0).random(1002, np.float32)
y = taps(x)
np.testing.assert_allclose(y, x[:-2] + x[1:-1] + x[2:], rtol=1e-6)
