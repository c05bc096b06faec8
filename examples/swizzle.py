"""Which layout? A tile of shared memory, read along rows, columns and diagonals: no conflicts."""

from warploom.emit.index_function import index_function
from warploom.layout.language.show import show
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task

task = Task(pattern("rcd:32x32"))  # your own accesses: a TOML file, see docs/layouts.md
for klass in ("none", "pad", "swizzle", "xor"):
    solved = solve(task, klass)
    assert solved.best is not None
    print(f"{klass:8} {solved.best.cost} wavefronts: {show(task.layout(solved.best))}")
print(f"no layout whatever takes fewer than {task.least}")
assert solved.best.cost == task.least
print(index_function(task.layout(solved.best), "cuda", "place"))
