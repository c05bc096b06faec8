"""VGG-16's thirteen convolutions on a GPU: ours beside cuDNN, im2col + cuBLAS and a naive kernel.

    python bench/map_device.py --out bench/results/array_device.json   with a GPU and PyTorch
    python bench/map_device.py --dry                                   small, no GPU: all is right?

float32, batch 1, no tf32, no Winograd of ours; every time is that of a CUDA graph. Each distinct
layer shape is searched: blocks by the model (`array/recipe/choose.py`), compiled on all cores,
checked against PyTorch in float64, measured, the better half again. Bytes are operands, results and
workspace; beside the fastest of all there is the fastest with at most 1 MB of workspace, and the
fastest choice for all layers with 1 MB on average. The record is kept shape by shape, and a run
goes on where an earlier one stopped. Curves of searches are made by `map_curves.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

from map_prepare import Prepared, blocks_of, prepare, prepare_naive, text_of  # noqa: E402 - beside this script

from warploom.array.recipe.blocked import Blocks  # noqa: E402 - used without being installed
from warploom.array.recipe.choose import SLICES, candidates, seconds, temporary_bytes  # noqa: E402
from warploom.array.workload import VGG_16, Convolution  # noqa: E402
from warploom.errors import DeviceError, WarploomError  # noqa: E402
from warploom.kernel.evaluate import run  # noqa: E402
from warploom.machine.rates import H200 as RATES  # noqa: E402
from warploom.machine.record import H200  # noqa: E402
from warploom.search.budget import Budget  # noqa: E402
from warploom.search.farm import Farm  # noqa: E402
from warploom.search.outcome import Found  # noqa: E402
from warploom.search.tune import Task, tune  # noqa: E402

LITTLE = 1_000_000  # bytes over operands and results, of a layer or on average
SAMPLES = 25
CONTENDERS = 4  # with little memory, that are measured again
OF_ONE_TILE = 2  # candidates that differ in what a thread holds alone
TOLERANCE = 2e-4  # of the largest result, against float64
SMALL = {
    "small": (Convolution(6, 6, 8, 32), Blocks(32, 32, 8, 4, 8)),
    "in parts": (Convolution(5, 5, 16, 32), Blocks(32, 32, 8, 8, 4, 3)),
    "three": (Convolution(8, 8, 3, 32), Blocks(32, 32, 9, 4, 8, 1, 1)),
    "in slices": (Convolution(5, 5, 16, 32), Blocks(32, 32, 16, 8, 8, slices=4)),
}


def shapes() -> dict[Convolution, list[str]]:
    """The distinct shapes, with the layers that have them."""
    found: dict[Convolution, list[str]] = {}
    for name, layer in VGG_16.items():
        found.setdefault(layer, []).append(name)
    return found


def chosen(layer: Convolution, count: int, memory: int | None = None) -> list[Blocks]:
    """The most promising blocks, few of each tile, half of them with little memory between
    kernels; and some by chance, to see what the model is worth."""
    ranked = candidates(layer, H200, RATES, memory)
    small = [blocks for blocks in ranked if temporary_bytes(layer, blocks) <= LITTLE]
    found = _varied(ranked, count - count // 2)
    found += [blocks for blocks in _varied(small, count) if blocks not in found][: count // 2]
    others = [blocks for blocks in ranked if blocks not in found]
    return found + random.Random(1).sample(others, min(len(others), count // 6))


def _varied(ranked: list[Blocks], count: int) -> list[Blocks]:
    """One thread for a sum, two, four, eight in turn: the model knows little of what is best."""
    queues = [
        _few_of_a_tile([blocks for blocks in ranked if blocks.slices == slices])
        for slices in SLICES
    ]
    turns = zip_longest(*queues)
    return [blocks for turn in turns for blocks in turn if blocks is not None][:count]


def _few_of_a_tile(ranked: list[Blocks]) -> list[Blocks]:
    tiles: dict[tuple[int, ...], int] = {}
    found: list[Blocks] = []
    for blocks in ranked:
        tile = (blocks.bm, blocks.bn, blocks.bk, blocks.parts)
        tiles[tile] = tiles.get(tile, 0) + 1
        if tiles[tile] <= OF_ONE_TILE:
            found.append(blocks)
    return found


# -- on the device ---------------------------------------------------------------------------------


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
            found[f"cudnn, {name}"] = lambda a=a, b=b: f.conv2d(a, b, **step)
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


def bytes_of(layer: Convolution) -> dict[str, int]:
    pixels = layer.rows * layer.columns
    products = layer.kernel_height * layer.kernel_width * layer.channels
    operands = layer.height * layer.width * layer.channels + layer.kernels * products
    least = 4 * (operands + pixels * layer.kernels)
    return {"least": least, "im2col": least + 4 * pixels * products}


def search(
    device: Device, layer: Convolution, tried: list[Blocks], made: dict[str, Future[Prepared]],
    limit: float,
) -> dict[str, Any]:  # fmt: skip
    """The best blocks of a shape, and all that was measured."""
    arrays = device.arrays(layer)
    wanted = device.wanted(layer, arrays)
    graphs: dict[str, tuple[Callable[[], None], Any]] = {}
    spent = [0.0]

    def measure(prepared: Prepared, count: int) -> list[float]:
        start = time.perf_counter()
        if prepared.text not in graphs:
            launch = device.ours(prepared, arrays)
            device.check(launch, arrays["out"], wanted)
            # A graph does not keep the arrays and modules that its launches use.
            graphs[prepared.text] = launch, device.graph(launch, 10)
        found = device.samples(graphs[prepared.text][1], 10, count)
        spent[0] += time.perf_counter() - start
        return found

    task = Task(
        "convolution", str(layer), device.name, tried, text_of,
        lambda blocks: made[text_of(blocks)].result(), measure,
    )  # fmt: skip
    outcome = tune(task, Budget(seconds=limit), pool=ThreadPoolExecutor(1))
    if not isinstance(outcome, Found):
        raise DeviceError(f"no blocks were measured: {outcome}")
    order = {text_of(blocks): at for at, blocks in enumerate(tried)}
    trials = [
        {"blocks": each.text, "seconds": each.seconds if each.samples else None,
         "bytes": temporary_bytes(layer, each.candidate),
         "model": seconds(layer, each.candidate, RATES), "error": each.error}
        for each in sorted(outcome.answer.trials, key=lambda each: order[each.text])
    ]  # fmt: skip
    run_ = sorted((each for each in trials if each["seconds"]), key=lambda each: each["seconds"])
    small = [each for each in run_ if each["bytes"] <= LITTLE][:CONTENDERS]
    for each in small:  # those that were dropped early have few samples
        each["seconds"] = statistics.median(measure(made[each["blocks"]].result(), SAMPLES))
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


def measured(
    device: Device, layer: Convolution, tried: list[Blocks], made: dict[str, Future[Prepared]],
    naive: Prepared, limit: float,
) -> dict[str, Any]:  # fmt: skip
    row: dict[str, Any] = {"layer": str(layer), **bytes_of(layer)}
    row["ours"] = search(device, layer, tried, made, limit)
    arrays = device.arrays(layer)
    wanted = device.wanted(layer, arrays)
    launch = device.ours(naive, arrays)
    device.check(launch, arrays["out"], wanted)
    row["naive"] = device.time(launch, times=2, count=5)
    for name, other in device.cudnn(layer, arrays).items():
        row[name] = device.time(other)
    row["im2col + cublas"] = device.time(device.im2col(layer, arrays))
    return row


def all_layers(
    device: Device, rows: dict[str, Any], farm: Farm, chosen_: dict[str, dict[str, str]]
) -> dict[str, float]:
    """The thirteen layers one after another in one graph, each way; `chosen_` are blocks by shape
    for each of ours."""
    launches: dict[str, list[Callable[[], object]]] = {"cudnn": [], "im2col": []}
    shared = {
        (name, text): farm.submit(prepare, layer, blocks_of(layer, text))
        for layer, (name, *_) in shapes().items()
        for text in {each[name] for each in chosen_.values()}
    }
    for layer in VGG_16.values():
        name = shapes()[layer][0]
        row, arrays = rows[name], device.arrays(layer)
        for way, texts in chosen_.items():
            best = shared[name, texts[name]].result()
            launches.setdefault(way, []).append(device.ours(best, arrays))
        others = device.cudnn(layer, arrays)
        launches["cudnn"].append(min(others.items(), key=lambda pair: row[pair[0]])[1])
        launches["im2col"].append(device.im2col(layer, arrays))
    return {
        way: device.time(lambda each=each: [launch() for launch in each], times=1, count=25)
        for way, each in launches.items()
    }


def report(name: str, layers: list[str], row: dict[str, Any]) -> None:
    ours = row["ours"]["seconds"] * 1e6
    cudnn = min(row[each] for each in row if each.startswith("cudnn")) * 1e6
    column = row["im2col + cublas"] * 1e6
    small = row["ours"]["with_little_memory"]
    little = f"{small['seconds'] * 1e6:.1f} us [{small['blocks']}]" if small else "nothing"
    print(
        f"{name} x{len(layers)}: ours {ours:.1f} us [{row['ours']['blocks']}], "
        f"{row['ours']['temporary_bytes'] / 1e6:.1f} MB; with 1 MB {little}; cudnn {cudnn:.1f}, "
        f"im2col+cublas {column:.1f}, naive {row['naive'] * 1e6:.0f}; "
        f"{len(row['ours']['trials'])} tried, {row['ours']['device_seconds']:.1f} s of device",
        flush=True,
    )


def totals(rows: dict[str, Any]) -> dict[str, Any]:
    found = dict.fromkeys(("ours", "with little memory", "cudnn", "im2col", "naive"), 0.0)
    sizes = dict.fromkeys(("ours", "least", "im2col"), 0)
    for layers in shapes().values():
        row = rows[layers[0]]
        for _ in layers:
            found["ours"] += row["ours"]["seconds"]
            little = row["ours"]["with_little_memory"]
            found["with little memory"] += little["seconds"] if little else math.inf
            found["cudnn"] += min(row[each] for each in row if each.startswith("cudnn"))
            found["im2col"] += row["im2col + cublas"]
            found["naive"] += row["naive"]
            sizes["ours"] += row["least"] + row["ours"]["temporary_bytes"]
            sizes["least"] += row["least"]
            sizes["im2col"] += row["im2col"]
    over = (sizes["ours"] - sizes["least"]) / len(VGG_16)
    return {
        "seconds": found,
        "bytes": sizes,
        "bytes_over_least_on_average": over,
        "within_1_MB_on_average": within(rows, LITTLE * len(VGG_16)),
    }


def within(rows: dict[str, Any], limit: int) -> dict[str, Any]:
    """The fastest choice for all layers whose memory between kernels stays below a limit in all:
    seconds per byte are raised until it does."""
    found: dict[str, Any] = {}
    for price in [0.0, *np.geomspace(1e-15, 1e-9, 400)]:
        picked = {}
        for names in shapes().values():
            run_ = [each for each in rows[names[0]]["ours"]["trials"] if each["seconds"]]
            best = min(run_, key=lambda each: each["seconds"] + price * each["bytes"])
            picked[names[0]] = (best, len(names))
        total = sum(best["bytes"] * times for best, times in picked.values())
        if total <= limit:
            seconds_ = sum(best["seconds"] * times for best, times in picked.values())
            blocks = {name: best["blocks"] for name, (best, _) in picked.items()}
            found = {"seconds": seconds_, "bytes": total, "blocks": blocks}
            break
    return found


def run_all(out: Path, count: int, limit: float, memory: int | None) -> None:
    rows: dict[str, Any] = {}
    if out.exists():
        rows = json.loads(out.read_text()).get("shapes", {})
    farm = Farm()
    tried = {names[0]: chosen(layer, count, memory) for layer, names in shapes().items()}
    made = {
        names[0]: {
            text_of(blocks): farm.submit(prepare, layer, blocks) for blocks in tried[names[0]]
        }
        for layer, names in shapes().items()
        if names[0] not in rows
    }
    naive = {names[0]: farm.submit(prepare_naive, layer) for layer, names in shapes().items()}
    device = Device()
    for layer, names in shapes().items():
        name = names[0]
        if name not in rows:
            try:
                rows[name] = measured(
                    device, layer, tried[name], made[name], naive[name].result(), limit
                )
            except (WarploomError, RuntimeError) as error:
                print(f"{name}: {error}", flush=True)
                continue
            _keep(out, {"device": device.name, "shapes": rows})
        report(name, names, rows[name])
    if len(rows) == len(shapes()):
        record = {"device": device.name, "shapes": rows, "totals": totals(rows)}
        ways = {"ours": {name: row["ours"]["blocks"] for name, row in rows.items()}}
        if limited := record["totals"]["within_1_MB_on_average"]:
            ways["ours within 1 MB on average"] = limited["blocks"]
        record["one_graph"] = all_layers(device, rows, farm, ways)
        _keep(out, record)
        print(json.dumps({"totals": record["totals"], "one_graph": record["one_graph"]}, indent=1))
    farm.shutdown(cancel_futures=True)


def _keep(out: Path, record: dict[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")


# -- without a device ------------------------------------------------------------------------------


def dry() -> None:
    """Small layers: compiled to machine code, run by the kernel evaluator and on PTX."""
    from map_prepare import compiled_convolution, compiled_naive, on_ptx

    for name, (layer, blocks) in SMALL.items():
        rng = np.random.default_rng(3)
        image = rng.standard_normal((layer.height, layer.width, layer.channels), np.float32)
        size = (layer.kernels, layer.kernel_height, layer.kernel_width, layer.channels)
        kernels = rng.standard_normal(size, np.float32)
        around = ((layer.padding,) * 2, (layer.padding,) * 2, (0, 0))
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(image, around), size[1:3], axis=(0, 1)
        )
        wanted = np.einsum("yxcij,kijc->yxk", windows, kernels, optimize=True)
        for made in (compiled_convolution(layer, blocks), compiled_naive(layer)):
            for launch in (lambda kernel, given: run(kernel, given), on_ptx):
                found = made(launch, image, kernels)
                assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4), name
        usage = [each.registers for each in prepare(layer, blocks).kernels]
        print(f"{name}: {text_of(blocks)} is right; registers {usage}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/array_device.json")
    parser.add_argument("--candidates", type=int, default=24, help="by the model, for each shape")
    parser.add_argument("--seconds", type=float, default=60.0, help="most for each shape")
    parser.add_argument("--memory", type=int, default=None, help="bytes beside operands, at most")
    parser.add_argument("--dry", action="store_true", help="small layers, no GPU")
    given = parser.parse_args()
    if given.dry:
        dry()
    else:
        run_all(given.out, given.candidates, given.seconds, given.memory)


if __name__ == "__main__":
    main()
