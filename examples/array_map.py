"""An array expression: which loops go to groups and threads, with which tiles? All valid ways."""

from warploom.array import build as al
from warploom.array.code.program import compile_candidate
from warploom.array.joint.model import JointModel
from warploom.array.types import array
from warploom.emit import emit
from warploom.kernel.dtype import f32
from warploom.machine.record import machine_named
from warploom.search.outcome import Found

m, n = al.sizes("m n")
row_sums = al.program(
    "row_sums",
    lambda a: al.map_(lambda row: al.fold(lambda s, x: s + x, 0.0, row), a),
    a=array(f32, m, n),
)

model = JointModel(row_sums, {"m": 128, "n": 33}, machine_named("cuda"))
count = model.mappings()
assert isinstance(count, Found)
print(f"{count.answer} mappings")
best = model.best(1, 200)
assert isinstance(best, Found)
for kernel in compile_candidate(model.plan, best.answer[0]).kernels:
    print(emit(kernel, "cuda"))
