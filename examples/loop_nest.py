"""A loop nest: all its implementations are bounded, some are looked at, the best is written."""

from warploom.emit import emit
from warploom.loopnest.build import LoopNest
from warploom.loopnest.lower import lower
from warploom.machine.record import machine_named
from warploom.pipeline.nest import Nest

nest = LoopNest("sums")
i, j = nest.axis("m", 500, 128, tail=True), nest.axis("n", 60, 4, tail=True)
A, y = nest.array("A", i, j), nest.array("y", i)
y[i] = nest.sum(A[i, j], over=j)

space = Nest(nest.done(), machine_named("h200").rates)
print(f"no implementation takes less than {space.least() / 1e3:.2f} us")
for reason in space.reasons()[:3]:
    print(" ", reason)
found = space.search(evaluations=16)
assert found.candidate is not None
assert found.nanoseconds >= found.bound  # which holds for every implementation
assert found.trial is not None  # it was run on the simulator, and is right
print(emit(lower(space.implementation(found.candidate)), "cuda"))
