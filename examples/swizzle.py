"""Which layout? A tile of shared memory, read along rows, columns and diagonals: no conflicts."""

import numpy as np

import warploom

for klass in ("none", "pad", "swizzle", "xor"):  # your own accesses: a TOML file, docs/layouts.md
    found = warploom.solve_layout("rcd:32x32", klass)
    print(f"{klass:8} {found.wavefronts} wavefronts per request: {found.layout}")
print(found)
assert found.wavefronts == found.bound
print(found.text("cuda"))

place = warploom.compile(found)  # coordinates of elements to their places
assert len(np.unique(place(*np.indices((32, 32))))) == 32 * 32
