"""The rig that tries and times kernels, on a device that pretends: kernels run on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from bench.common.loopnest.running import implementations

from warploom.catalogue import find, timing
from warploom.catalogue.timing import GpuBench
from warploom.errors import DeviceError
from warploom.kernel.ir import Kernel
from warploom.loopnest.kernels import axpy
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.machine.record import CUDA
from warploom.pipeline import timed_nest
from warploom.pipeline.timed_nest import GpuNestBench
from warploom.runtime import rig
from warploom.runtime.callable import load
from warploom.runtime.measure import Timing
from warploom.runtime.rig import Built, on_host


class Driver:
    def architecture(self, gpu: int) -> str:
        return "sm_90"

    def name(self, gpu: int) -> str:
        return f"pretended {gpu}"


class There:
    """An array that is elsewhere, as CuPy has them."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def get(self) -> Any:
        return self.array


class Function:
    """A kernel that is launched on arrays which are elsewhere."""

    def __init__(self, kernel: Kernel, _device: str) -> None:
        self.function = load(kernel, "simulator")

    def __call__(self, *arguments: Any) -> None:
        self.function(*map(on_host, arguments))

    def prepare(self, *arguments: Any) -> Callable[[], object]:
        return partial(self, *arguments)


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many launches were measured each time."""
    counts: list[int] = []

    def measure(launches: Sequence[Callable[[], object]], *, samples: int, timer: None) -> Timing:
        for launch in launches:
            launch()
        counts.append(len(launches))
        return Timing((1e-6,) * samples)

    def there(value: Any, gpu: int = 0) -> Any:
        return There(value) if isinstance(value, np.ndarray) else value

    for name, value in (("open_driver", Driver), ("load", Function), ("measure", measure)):
        monkeypatch.setattr(rig, name, value)
    monkeypatch.setattr(rig, "clock", lambda: None)
    for module in (timing, timed_nest):
        monkeypatch.setattr(module, "on_gpu", there)
    monkeypatch.setattr(timing, "machine_of", lambda _: CUDA)
    return counts


def test_kernels_of_an_entry(device: list[int]) -> None:
    entry = find("aos-sum")
    given = {"fields": 3} if "fields" in entry.settings({}) else {}
    bench = GpuBench(entry, given, entry.sizes(**entry.settings(given))[-1])
    kernel = entry.kernel(**entry.settings(given))
    built = Built(kernel)
    assert bench.device == "pretended 0 sm_90"
    assert len(bench.measure(built, 3)) == 3
    last = bench._last
    assert len(bench.measure(built, 5)) == 5
    assert bench._last is last, "launches are made once"
    assert device[0] == device[1] > 1, "several sets of arrays, so that none stays in the cache"
    with pytest.raises(DeviceError, match="computes a wrong result"):
        bench.measure(Built(replace(kernel, body=())), 3)
    assert bench._last is None


def test_kernels_of_a_loop_nest(device: list[int]) -> None:
    program = axpy(64)
    bench = GpuNestBench(program)
    kernel = lower(next(implementations(NestSpace(program), 1)))
    assert len(bench.measure(Built(kernel), 4)) == 4
    assert device == [1]
    with pytest.raises(DeviceError, match="computes a wrong"):
        bench.measure(Built(replace(kernel, body=())), 1)
