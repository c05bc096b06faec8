"""Launches and times on a GPU, and a convolution of ours checked and timed there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bench.catalogue.settings_compile import Built, Record

from warploom.index.evaluate import evaluate
from warploom.kernel.ir import Kernel

QUICK, SAMPLES = 7, 15

Launch = Callable[[], object]


class Gpu:
    def __init__(self) -> None:
        import torch

        from warploom.runtime import measure
        from warploom.runtime.driver import open_driver

        self.torch, self._measure, self.driver = torch, measure, open_driver()
        torch.zeros(1, device="cuda")
        self.clock = measure.clock("torch")
        self._ceilings: dict[int, float] = {}

    def launch(self, code: bytes, name: str, grid: Any, block: Any, arguments: list[Any]) -> Launch:
        from warploom.runtime.gpu import Loaded

        stream = self.torch.cuda.current_stream().cuda_stream
        return Loaded(self.driver.load(code, name, 0)).bind(grid, block, arguments, stream)

    def seconds(self, launch: Launch, samples: int) -> tuple[float, float]:
        timing = self._measure.measure([launch], samples=samples, timer=self.clock)
        return timing.median, round(timing.spread, 4)

    def ceiling(self, moved: int) -> float:
        """Of a copy that moves as many bytes; those of nearly the same size are measured once."""
        key = round(math.log(moved) * 200)
        if key not in self._ceilings:
            rate, _ = self._measure.copy_ceiling(moved, library="torch", samples=SAMPLES)
            self._ceilings[key] = float(rate)
        return self._ceilings[key]


def grid_of(kernel: Kernel, size: dict[str, int]) -> tuple[int, int, int]:
    x, y, z = (int(evaluate(side, size)) for side in kernel.grid)
    return x, y, z


def contest(
    gpu: Gpu, built: Built, arguments: Record, out: Any, wanted: Any, size: dict[str, int]
) -> Record:
    """One of our convolutions, checked and timed."""
    record: Record = {"settings": built.settings}
    if built.failure or built.kernel is None:
        return record | {"error": built.failure}
    kernel = built.kernel
    ordered = [arguments[param.name] for param in kernel.params]
    launch = gpu.launch(built.code, built.name, grid_of(kernel, size), kernel.block, ordered)
    samples = SAMPLES if built.job.label == "default" else QUICK
    record["registers"] = (built.registers or {}).get(built.name)
    return record | checked(gpu, launch, out, wanted, samples)


def checked(gpu: Gpu, launch: Launch, out: Any, wanted: Any, samples: int) -> Record:
    out.fill_(float("nan"))
    launch()
    error = float(((out.double() - wanted).abs().max() / wanted.abs().max()).item())
    if not error <= 1e-5:
        return {"error": f"wrong result: {error}"}
    seconds, spread = gpu.seconds(launch, samples)
    return {"seconds": seconds, "spread": spread, "difference": error}
