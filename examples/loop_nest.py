"""A loop nest: all its implementations are bounded, some are looked at, the best is written."""

import numpy as np

import warploom

nest = warploom.LoopNest("sums")
i, j = nest.axis("m", 500, 128, tail=True), nest.axis("n", 60, 4, tail=True)
A, y = nest.array("A", i, j), nest.array("y", i)
y[i] = nest.sum(A[i, j], over=j)

found = warploom.explore(nest, evaluations=16, model=True)
print(found)
for reason in found.reasons()[:3]:
    print(" ", reason)
assert found.nanoseconds >= found.bound  # which holds for every implementation
print(found.text("cuda"))

sums = warploom.compile(found)
matrix = np.ones((500, 60), np.float32)
assert np.array_equal(sums(matrix), matrix.sum(axis=1))
