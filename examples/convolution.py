"""A 1-D convolution: its sketch is filled, and the kernel that uses the fill is run.

The simulator, the processor (as C) and the compiler's own PTX on the emulator agree with NumPy.
"""

from __future__ import annotations

import numpy as np

from warploom import runtime, synthesize
from warploom.catalogue import find
from warploom.native import c_compiler
from warploom.runtime.compile import can_compile


def main() -> None:
    entry = find("convolution-1d")
    sketch = entry.program(taps=5, width=1)
    assert sketch is not None
    result = synthesize(sketch, mode="first")
    print(result.fill_text())
    assert result.verdict.value == "proved"

    kernel = entry.kernel(taps=5, width=1)
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(size).astype(np.float32) for size in (1000, 5))
    expected = np.correlate(x.astype(np.float64), w.astype(np.float64))
    devices = ["simulator"]
    devices += ["c"] if c_compiler() else []
    devices += ["ptx"] if can_compile() else []
    for device in devices:
        y = runtime.load(kernel, device)(x, w)
        error = float(np.abs(y - expected).max())
        print(f"{device}: largest error {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main()
