"""A convolution on a GPU: candidates checked and measured beside cuDNN, im2col + cuBLAS and a naive
kernel; `map_device.py` and `map_curves.py` are made of this. `measured` runs in a process of its
own (`Farm`), which has the device: a kernel that ruins the context takes nothing else with it, and
the answer says which it was.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

from bench.array.prepare import Prepared, text_of
from bench.common.array.blocked import Blocks
from bench.common.array.blocks import seconds, temporary_bytes

from warploom.array.workload import Convolution
from warploom.errors import DeviceError, WarploomError
from warploom.machine.record import H200
from warploom.search.budget import Budget
from warploom.search.outcome import Found
from warploom.search.storage.tune import Task, tune

LITTLE = 1_000_000  # bytes over operands and results, of a layer or on average
SAMPLES = 25
CONTENDERS = 4  # with little memory, that are measured again
TOLERANCE = 2e-4  # of the largest result, against float64


class LostError(Exception):
    """A candidate after which the device answers no more."""


class Device:
    """A layer's arrays, launches on them, and graphs of launches."""

    def __init__(self) -> None:
        import torch

        from warploom.runtime.driver import open_driver
        from warploom.runtime.gpu import Loaded

        self.torch, self.driver, self.loaded = torch, open_driver(), Loaded
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
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

    def check(self, launch: Callable[[], object], out: Any, wanted: Any) -> None:
        out.fill_(float("nan"))
        launch()
        self.torch.cuda.synchronize()
        error = (out.double() - wanted).abs().max() / wanted.abs().max()
        if not float(error) < TOLERANCE:
            raise DeviceError(f"wrong by {float(error):.2g} of the largest result")

    def is_lost(self) -> bool:
        """An illegal access ends a context: whatever comes after it fails, too."""
        try:
            self.torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False

    # -- the others

    def cudnn(self, layer: Convolution, arrays: dict[str, Any]) -> dict[str, Callable[[], object]]:
        f, torch = self.torch.nn.functional, self.torch
        x = arrays["image"].permute(2, 0, 1)[None]
        w = arrays["kernels"].permute(0, 3, 1, 2)
        step = {"stride": layer.stride, "padding": layer.padding}
        formats = {"rows": torch.contiguous_format, "channels last": torch.channels_last}
        found: dict[str, Callable[[], object]] = {}
        for name, memory in formats.items():
            a, b = x.contiguous(memory_format=memory), w.contiguous(memory_format=memory)
            found[f"cudnn, {name}"] = partial(f.conv2d, a, b, **step)
        return found

    def im2col(self, layer: Convolution, arrays: dict[str, Any]) -> Callable[[], object]:
        f = self.torch.nn.functional
        x = arrays["image"].permute(2, 0, 1)[None].contiguous()
        w = arrays["kernels"].permute(0, 3, 1, 2).reshape(layer.kernels, -1).contiguous()
        size = (layer.kernel_height, layer.kernel_width)

        def launch() -> object:
            columns = f.unfold(x, size, padding=layer.padding, stride=layer.stride)
            return w @ columns[0]

        return launch


@cache
def device_here() -> Device:
    return Device()


def search(
    device: Device, layer: Convolution, tried: list[Blocks], made: dict[str, Prepared], limit: float
) -> dict[str, Any]:
    """The best blocks of a shape, and all that was measured. `made` by text, without those that
    could not be compiled."""
    arrays = device.arrays(layer)
    wanted = device.wanted(layer, arrays)
    graphs: dict[str, tuple[Callable[[], None], Any]] = {}
    spent = [0.0]

    def sampled(prepared: Prepared, count: int) -> list[float]:
        if prepared.text not in graphs:
            launch = device.ours(prepared, arrays)
            device.check(launch, arrays["out"], wanted)
            # A graph does not keep the arrays and modules that its launches use.
            graphs[prepared.text] = launch, device.graph(launch, 10)
        return device.samples(graphs[prepared.text][1], 10, count)

    def measure(prepared: Prepared, count: int) -> list[float]:
        start = time.perf_counter()
        try:
            return sampled(prepared, count)
        except (WarploomError, RuntimeError) as error:
            if device.is_lost():
                raise LostError(prepared.text, str(error)[:300]) from error
            raise DeviceError(str(error)[:300]) from error
        finally:
            spent[0] += time.perf_counter() - start

    task = Task(
        "convolution", str(layer), device.name, tried, text_of,
        lambda blocks: made[text_of(blocks)], measure,
    )  # fmt: skip
    outcome = tune(task, Budget(seconds=limit), pool=ThreadPoolExecutor(1))
    if not isinstance(outcome, Found):
        raise DeviceError(f"no blocks were measured: {outcome}")
    order = {text_of(blocks): at for at, blocks in enumerate(tried)}
    trials: list[dict[str, Any]] = [
        {"blocks": each.text, "seconds": each.seconds if each.samples else None,
         "bytes": temporary_bytes(layer, each.candidate),
         "model": float(seconds(layer, [each.candidate], H200)[0]), "error": each.error}
        for each in sorted(outcome.answer.trials, key=lambda each: order[each.text])
    ]  # fmt: skip
    run_ = sorted((each for each in trials if each["seconds"]), key=lambda each: each["seconds"])
    small = [each for each in run_ if each["bytes"] <= LITTLE][:CONTENDERS]
    for each in small:  # those that were dropped early have few samples
        each["seconds"] = statistics.median(measure(made[each["blocks"]], SAMPLES))
    best = run_[0]
    return {
        "blocks": best["blocks"],
        "seconds": best["seconds"],
        "model": best["model"],
        "temporary_bytes": best["bytes"],
        "with_little_memory": min(small, key=lambda each: each["seconds"], default=None),
        "device_seconds": spent[0],
        "trials": trials,
    }


def bytes_of(layer: Convolution) -> dict[str, int]:
    pixels = layer.rows * layer.columns
    products = layer.kernel_height * layer.kernel_width * layer.channels
    operands = layer.height * layer.width * layer.channels + layer.kernels * products
    least = 4 * (operands + pixels * layer.kernels)
    return {"least": least, "im2col": least + 4 * pixels * products}


def measured(
    layer: Convolution, tried: list[Blocks], made: dict[str, Prepared], naive: Prepared,
    limit: float,
) -> dict[str, Any]:  # fmt: skip
    """Everything of one shape; only `lost` and `why` where a candidate ruined the device."""
    device = device_here()
    row: dict[str, Any] = {"device": device.name, "layer": str(layer), **bytes_of(layer)}
    try:
        row["ours"] = search(device, layer, tried, made, limit)
    except LostError as error:
        return {"lost": error.args[0], "why": error.args[1]}
    arrays = device.arrays(layer)
    row["naive"] = naive_seconds(layer, naive)
    for name, other in device.cudnn(layer, arrays).items():
        row[name] = device.time(other)
    row["im2col + cublas"] = device.time(device.im2col(layer, arrays))
    return row


def naive_seconds(layer: Convolution, naive: Prepared) -> float:
    """The kernel with one thread for each output, with channels as planes."""
    device = device_here()
    rows = device.arrays(layer)
    wanted = device.wanted(layer, rows).permute(2, 0, 1).contiguous()
    arrays = {
        "image": rows["image"].permute(2, 0, 1).contiguous(),
        "kernels": rows["kernels"].permute(0, 3, 1, 2).contiguous(),
        "out": device.torch.zeros_like(wanted, dtype=device.torch.float32),
    }
    launch = device.ours(naive, arrays)
    device.check(launch, arrays["out"], wanted)
    return device.time(launch, times=2, count=5)


def _all(launches: list[Callable[[], object]]) -> None:
    for launch in launches:
        launch()


def one_graph(
    layers: list[tuple[Convolution, str]], ours: dict[str, list[Prepared]]
) -> dict[str, float]:
    """Seconds of all layers one after another in one graph, each way. With each layer comes which
    of cuDNN's formats was the fastest; `ours` are candidates for each way of ours."""
    device = device_here()
    launches: dict[str, list[Callable[[], object]]] = {"cudnn": [], "im2col": []}
    for at, (layer, fastest) in enumerate(layers):
        arrays = device.arrays(layer)
        for way, prepared in ours.items():
            launches.setdefault(way, []).append(device.ours(prepared[at], arrays))
        launches["cudnn"].append(device.cudnn(layer, arrays)[fastest])
        launches["im2col"].append(device.im2col(layer, arrays))
    return {
        way: device.time(partial(_all, each), times=1, count=25) for way, each in launches.items()
    }
