"""How the C of the fast engine is compiled."""

from __future__ import annotations

import platform

# No reordering and no contraction of floats: the evaluator's meaning, bit for bit.
FLAGS = (
    "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native", "-std=gnu11",
    "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fno-strict-aliasing", "-fPIC", "-shared", "-w",
    *(["-mprefer-vector-width=512"] if platform.machine() in ("x86_64", "AMD64") else []),
)  # fmt: skip
