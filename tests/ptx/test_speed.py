"""The emulator is fast enough for real kernels: thread-instructions a second on one core."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warploom import ptx

TEXT = (Path(__file__).parent / "golden" / "nvcc" / "kernels.ptx").read_text()


def stencil_rate(side: int, **options: Any) -> float:
    """Thread-instructions a second, 1,024-thread blocks, best of three."""
    kernel = ptx.load(TEXT).kernel("stencil")
    a = np.random.default_rng(1).random((side, side), np.float32)
    args = [a, np.zeros_like(a), side, side, np.float32(0.5), np.float32(0.125)]
    rates = []
    for _ in range(3):
        started = time.process_time()  # of this process only: other work may share the core
        report = kernel.launch((side // 32, side // 32), (32, 32), args, **options)
        rates.append(report.thread_instructions / (time.process_time() - started))
    return max(rates)


@pytest.mark.slow
def test_stencil_rate() -> None:
    assert stencil_rate(1024) > 100e6


@pytest.mark.slow
def test_stencil_rate_with_race_detection() -> None:
    assert stencil_rate(1024, races=True) > 20e6
