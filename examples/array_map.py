"""An array expression: which loops go to blocks and threads, with which tiles?"""

import numpy as np

import warploom
from warploom import arrays as al

m, n = al.sizes("m n")
row_sums = al.program(
    "row_sums",
    lambda a: al.map_(lambda row: al.fold(lambda s, x: s + x, 0.0, row), a),
    a=al.array(al.f32, m, n),
)

found = warploom.map_array(row_sums, {"m": 128, "n": 33}, among=200)
print(found)
print(found.text("cuda"))

sums = warploom.compile(found)
matrix = np.arange(128 * 33, dtype=np.float32).reshape(128, 33)
assert np.array_equal(sums(matrix), matrix.sum(axis=1))
