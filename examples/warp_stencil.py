"""A warp-level stencil with its swizzles left out: found on 4 lanes, proved on 32, written as CUDA."""

import numpy as np

from warploom import spec
from warploom.emit import emit
from warploom.kernel.evaluate import run
from warploom.search.outcome import Found
from warploom.sketch.simt import reinstantiate, sketch, solve, to_kernel


@sketch
def stencil(k, W=32, taps=3):
    lane = k.warp(W)
    x, y = k.input("x", W + taps - 1, step=W), k.output("y", W)
    r = k.load(x, rounds=2)  # two registers in each lane
    total = k.accumulator("+")
    for i in k.loop(taps):
        part = k.partition(2, lane, i)  # which register: a hole
        source = k.swizzle(lane, W, i)  # from which lane: a hole
        total.add(k.shuffle(r[part], source), when=k.condition(lane, i))  # and when: a hole
    y[lane] = total.value()


@stencil.specification
def _(x, W, taps):
    return [spec.total(x[i : i + taps]) for i in range(W)]


small = solve(stencil.at(W=4), optimum=True)
assert isinstance(small, Found)
large = reinstantiate(small.answer, stencil.at(W=32))
assert isinstance(large, Found)
kernel = to_kernel(large.answer)
print(emit(kernel, "cuda"))

x = np.random.default_rng(0).random(1002, np.float32)
y = np.zeros(1000, np.float32)
run(kernel, [x, y])
np.testing.assert_allclose(y, x[:-2] + x[1:-1] + x[2:], rtol=1e-6)
