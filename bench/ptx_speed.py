"""Thread-instructions a second of the emulator on a stencil with 1,024-thread blocks.

python bench/ptx_speed.py [SIDE]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from warploom import ptx  # noqa: E402 - the checkout is used without being installed


def main(side: int) -> None:
    text = (ROOT / "tests" / "ptx" / "golden" / "nvcc" / "kernels.ptx").read_text()
    kernel = ptx.load(text, "kernels.ptx").kernel("stencil")
    a = np.random.default_rng(1).random((side, side), np.float32)
    args = [a, np.zeros_like(a), side, side, np.float32(0.5), np.float32(0.125)]
    modes: dict[str, dict[str, bool]] = {
        "bounds checked": {}, "races too": {"races": True}, "counters": {"counters": True},
    }  # fmt: skip
    for name, options in modes.items():
        wall, cpu = 0.0, 0.0
        for _ in range(3):
            started = time.process_time()
            report = kernel.launch((side // 32, side // 32), (32, 32), args, **options)
            cpu = max(cpu, report.thread_instructions / (time.process_time() - started))
            wall = max(wall, report.thread_instructions / report.seconds)
        print(f"{name:15} {wall / 1e6:7.1f} million a second ({cpu / 1e6:.1f} of processor time)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
