"""A convolution on a GPU: its arrays, what it means, and launches of its kernels, timed."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from bench.array.prepare import Prepared

from warploom.array.workload import Convolution


class Device:
    """A layer's arrays, launches on them, and graphs of launches."""

    def __init__(self) -> None:
        import torch

        from warploom.runtime.driver import open_driver
        from warploom.runtime.gpu import Loaded

        self.torch, self.driver, self.loaded = torch, open_driver(), Loaded
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.name = torch.cuda.get_device_name(0)

    def arrays(self, layer: Convolution) -> dict[str, Any]:
        torch = self.torch
        generator = torch.Generator(device="cuda").manual_seed(7)
        sizes = {
            "image": (layer.height, layer.width, layer.channels),
            "kernels": (layer.kernels, layer.kernel_height, layer.kernel_width, layer.channels),
        }
        found = {
            name: torch.rand(size, generator=generator, device="cuda") - 0.5
            for name, size in sizes.items()
        }
        found["out"] = torch.zeros((layer.rows, layer.columns, layer.kernels), device="cuda")
        return found

    def wanted(self, layer: Convolution, arrays: dict[str, Any]) -> Any:
        f = self.torch.nn.functional
        x = arrays["image"].permute(2, 0, 1)[None].double()
        w = arrays["kernels"].permute(0, 3, 1, 2).double()
        made = f.conv2d(x, w, stride=layer.stride, padding=layer.padding)
        return made[0].permute(1, 2, 0).contiguous()

    def ours(self, prepared: Prepared, arrays: dict[str, Any]) -> Callable[[], None]:
        """Launches all kernels on the current stream."""
        torch = self.torch
        extra = {
            name: torch.zeros(size, device="cuda") for name, size in prepared.temporaries.items()
        }
        held = {**arrays, **extra}
        functions = [
            (self.loaded(self.driver.load(each.code, each.name, 0)), each)
            for each in prepared.kernels
        ]

        def launch() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for function, each in functions:
                addresses = [held[name].data_ptr() for name in each.params]
                function.bind(each.grid, each.block, addresses, stream)()

        return launch

    def graph(self, launch: Callable[[], object], times: int) -> Any:
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                launch()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                launch()
        return graph

    def samples(self, graph: Any, times: int, count: int) -> list[float]:
        torch = self.torch
        graph.replay()
        found = []
        for _ in range(count):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            stop.record()
            stop.synchronize()
            found.append(start.elapsed_time(stop) * 1e-3 / times)
        return found

    def time(self, launch: Callable[[], object], times: int = 10, count: int = 9) -> float:
        return statistics.median(self.samples(self.graph(launch, times), times, count))
