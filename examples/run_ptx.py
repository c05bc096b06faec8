"""PTX without a GPU: a kernel is run, its answer checked, and what it asks of memory counted."""

from pathlib import Path

import numpy as np

import warploom

TEXT = (Path(__file__).parent / "ptx" / "saxpy.ptx").read_text()

x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
saxpy = warploom.emulate(TEXT, "saxpy", counters=True)
report = saxpy[4, 256](x, y, np.float32(2), np.int32(1000))  # a race would be an error
assert np.array_equal(y, 2 * x + 1)
for name, traffic in report.loads.items():
    print(f"{name}: {traffic.sectors} sectors, {traffic.least_sectors} at best")
