"""VGG-16's thirteen convolutions by the user's call on a GPU, beside cuDNN and im2col + cuBLAS.

    python -m bench.loopnest.vgg_device --out FOLDER [--seconds 40] [--only conv1_1 …]
    python -m bench.loopnest.vgg_device --dry --seconds 20 --only conv5_1         no GPU

Each distinct shape is `warploom.explore("convolution", …)` from an empty store with nothing fixed;
where its best has more than 1 MB between kernels, a second search has `memory=1_000_000`. So is a
layer of 64 channels and 64 kernels on 8 images of 56². float32, no tf32. `vgg_device.json` has a
record of each, `vgg_texts` the texts of the best, from which all thirteen are timed in one CUDA
graph: the fastest, and the fastest with 1 MB on average. Rows that have a record are left out, so
that the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from bench.common.loopnest.pretended import PretendedQuick
from bench.harness import RESULTS, arguments, attempted, environment, save
from bench.loopnest.command_device import timed

import warploom
from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.index.evaluate import evaluate
from warploom.pipeline import exploring
from warploom.pipeline.nest import Explored
from warploom.runtime.compile import compile_cuda
from warploom.runtime.driver import open_driver
from warploom.runtime.gpu import Loaded
from warploom.search.storage.store import Store

RECORD, TEXTS = "vgg_device.json", "vgg_texts"
LITTLE = 1_000_000  # bytes between kernels, of a layer or on average
TOLERANCE = 2e-4  # of the largest result, against float64
# Height and width, channels, kernels, and the layers that have them.
SHAPES: Mapping[str, tuple[int, int, int, int]] = {
    "conv1_1": (224, 3, 64, 1), "conv1_2": (224, 64, 64, 1), "conv2_1": (112, 64, 128, 1),
    "conv2_2": (112, 128, 128, 1), "conv3_1": (56, 128, 256, 1), "conv3_2": (56, 256, 256, 2),
    "conv4_1": (28, 256, 512, 1), "conv4_2": (28, 512, 512, 2), "conv5_1": (14, 512, 512, 3),
}  # fmt: skip
BATCH = "batch-8"  # 64 channels and kernels on 56², eight images
Call = Callable[[], object]


def sizes_of(name: str) -> dict[str, int]:
    if name == BATCH:
        return {"height": 56, "width": 56, "channels": 64, "kernels": 64, "batch": 8}
    side, channels, kernels, _ = SHAPES[name]
    return {"height": side, "width": side, "channels": channels, "kernels": kernels}


# -- searched --------------------------------------------------------------------------------------


def search(name: str, memory: int | None, given: argparse.Namespace) -> dict[str, Any]:
    since = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = warploom.explore(
            "convolution", sizes_of(name), seconds=given.seconds, memory=memory,
            store=Store(Path(folder) / "store.sqlite"),
        )  # fmt: skip
    race = found.race
    record: dict[str, Any] = {
        "asked_seconds": given.seconds,
        "seconds": round(time.monotonic() - since, 2),
        "device_seconds": round(race.device_seconds, 2),
        "measured": len(race.measured),
        "timed_in_graphs": sum(each.is_sure for each in race.measured.values()),
        "drawn": race.drawn,
        "wrong": race.wrong,
        "failed": race.failed,
        "complaint": race.complaint,
        "violations": race.violations,
        "bound_us": found.bound / 1e3,
    }
    if found.candidate is None or found.nest is None:
        return record
    return record | {
        "us": found.nanoseconds / 1e3,
        "strategy": found.strategy,
        "schedule": found.nest.schedule(found.candidate),
        "trial": str(found.trial),
        "kernels": _written(name, memory, found, given.out / TEXTS),
        "between": (between := _between(found)),
        "between_bytes": 4 * sum(between.values()),
    }


def _between(found: Explored) -> dict[str, int]:
    """Elements of the arrays that its kernels have for themselves."""
    own = {each.name for each in found.program.arrays}
    return {
        each.name: int(evaluate(each.size, {}))
        for kernel in found.kernels for each in kernel.arrays if each.name not in own
    }  # fmt: skip


def _written(name: str, memory: int | None, found: Explored, folder: Path) -> list[dict[str, Any]]:
    """What is launched, with the file that its text is in."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for at, kernel in enumerate(found.kernels):
        file = f"{name}{'' if memory is None else '_little'}_{at + 1}.cu"
        (folder / file).write_text(cuda(kernel))
        made.append({
            "file": file,
            "function": function_name(kernel, "cuda"),
            "grid": [int(evaluate(each, {})) for each in kernel.grid],
            "block": list(kernel.block),
            "params": [each.name for each in kernel.params],
        })  # fmt: skip
    return made


# -- beside others ---------------------------------------------------------------------------------


class Layer:
    """Arrays of a layer on the GPU, and who computes it."""

    def __init__(self, name: str, torch: Any) -> None:
        self.torch, self.f = torch, torch.nn.functional
        sizes = sizes_of(name)
        side, c, k = sizes["height"], sizes["channels"], sizes["kernels"]
        images = sizes.get("batch", 1)
        rng = torch.Generator(device="cuda").manual_seed(7)
        self.x = torch.rand((images, side, side, c), generator=rng, device="cuda") - 0.5
        self.g = torch.rand((k, 3, 3, c), generator=rng, device="cuda") - 0.5
        self.y = torch.zeros((images, side, side, k), device="cuda")

    def ours(self, made: dict[str, Any], folder: Path) -> Call:
        """Launches all kernels on the current stream."""
        torch, driver = self.torch, open_driver()
        more = {n: torch.zeros(size, device="cuda") for n, size in made["between"].items()}
        held = {"x": self.x, "g": self.g, "y": self.y, **more}
        arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
        functions = []
        for each in made["kernels"]:
            text = (folder / each["file"]).read_text()
            code = compile_cuda(text, arch, kind="cubin", contract=False).code
            functions.append((Loaded(driver.load(code, each["function"], 0)), each))

        def launch() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for function, each in functions:
                places = [held[name].data_ptr() for name in each["params"]]
                function.bind(tuple(each["grid"]), tuple(each["block"]), places, stream)()

        self.check(launch)
        return launch

    def check(self, launch: Call) -> None:
        self.y.fill_(float("nan"))
        launch()
        self.torch.cuda.synchronize()
        x, g = self.x.permute(0, 3, 1, 2).double(), self.g.permute(0, 3, 1, 2).double()
        wanted = self.f.conv2d(x, g, padding=1).permute(0, 2, 3, 1)
        off = float((self.y.double() - wanted).abs().max() / wanted.abs().max())
        if not off < TOLERANCE:
            raise RuntimeError(f"wrong by {off:.2g} of the largest result")

    def cudnn(self) -> dict[str, Call]:
        found: dict[str, Call] = {}
        x, g = self.x.permute(0, 3, 1, 2), self.g.permute(0, 3, 1, 2)
        for name in ("contiguous_format", "channels_last"):
            a, b = (each.contiguous(memory_format=getattr(self.torch, name)) for each in (x, g))
            found[f"cudnn, {name}"] = partial(self.f.conv2d, a, b, padding=1)
        return found

    def im2col(self) -> Call:
        x = self.x.permute(0, 3, 1, 2).contiguous()
        g = self.g.permute(0, 3, 1, 2).reshape(len(self.g), -1).contiguous()
        return lambda: g @ self.f.unfold(x, (3, 3), padding=1)

    def named(self, call: Call) -> list[str]:
        """The kernels that a call launches, where a profiler says so."""
        profiler = self.torch.profiler
        try:
            with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as seen:
                call()
                self.torch.cuda.synchronize()
            return [each.key for each in seen.key_averages()]
        except RuntimeError as error:
            return [str(error)[:200]]


def others(name: str, torch: Any) -> dict[str, Any]:
    """Microseconds of the others, and what cuDNN launches."""
    layer = Layer(name, torch)
    calls = {**layer.cudnn(), "im2col + cublas": layer.im2col()}
    found: dict[str, Any] = {way: timed(call, torch) / 1e3 for way, call in calls.items()}
    best = min(layer.cudnn(), key=found.__getitem__)
    return found | {"cudnn_us": found[best], "cudnn_format": best,
                    "cudnn_kernels": layer.named(calls[best])}  # fmt: skip


# -- all of them -----------------------------------------------------------------------------------


def within(rows: Mapping[str, Any], limit: int) -> dict[str, str] | None:
    """Which search of each shape, so that all layers have at most so many bytes between kernels
    together and are the fastest; None where nothing is so small."""
    best: tuple[float, dict[str, str]] | None = None
    ways = [[way for way in ("ours", "little") if "us" in rows[name].get(way, {})]
            for name in SHAPES]  # fmt: skip
    for some in product(*ways):
        chosen = dict(zip(SHAPES, some, strict=True))
        size = sum(SHAPES[n][3] * rows[n][way]["between_bytes"] for n, way in chosen.items())
        took = sum(SHAPES[n][3] * rows[n][way]["us"] for n, way in chosen.items())
        if size <= limit and (best is None or took < best[0]):
            best = took, chosen
    return None if best is None else best[1]


def one_graph(rows: Mapping[str, Any], folder: Path, torch: Any) -> dict[str, float]:
    """Microseconds of all thirteen layers, one after another."""
    chosen = {"ours": dict.fromkeys(SHAPES, "ours")}
    small = within(rows, LITTLE * sum(each[3] for each in SHAPES.values()))
    if small is not None:
        chosen["ours, 1 MB on average"] = small
    calls: dict[str, list[Call]] = {way: [] for way in (*chosen, "cudnn", "im2col + cublas")}
    for name, (_, _, _, times) in SHAPES.items():
        for _ in range(times):
            layer = Layer(name, torch)
            for way, which in chosen.items():
                calls[way].append(layer.ours(rows[name][which[name]], folder))
            calls["cudnn"].append(layer.cudnn()[rows[name]["others"]["cudnn_format"]])
            calls["im2col + cublas"].append(layer.im2col())

    def every(some: list[Call]) -> None:
        for call in some:
            call()

    return {way: timed(partial(every, some), torch, 25) / 1e3 for way, some in calls.items()}


def main() -> None:
    parser = arguments(__doc__, dry="no GPU")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the record")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each search")
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    torch: Any = None
    if given.dry:
        exploring.quick_for = lambda *_: PretendedQuick()
    else:
        torch = import_module("torch")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
    file = given.out / RECORD
    record: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"rows": {}}
    rows = record["rows"]
    for name in given.only or (*SHAPES, BATCH):
        row = rows.setdefault(name, {"sizes": sizes_of(name)})
        if "others" not in row and torch is not None:
            _put(row, "others", attempted(others, name, torch), record, file)
        for way, memory in (("ours", None), ("little", LITTLE)):
            ours = row.get("ours", {})
            if memory is not None and ours.get("between_bytes", 0) <= memory and "us" in ours:
                row["little"] = ours
            elif way not in row:
                _put(row, way, attempted(search, name, memory, given), record, file)
        said = {way: row.get(way, {}).get("us") for way in ("ours", "little")}
        took = {key: value for key, value in row.get("others", {}).items() if key[-3:] == "_us"}
        print(json.dumps({"name": name, **said, **took, "strategy": row["ours"].get("strategy"),
                          "measured": row["ours"].get("measured")}), flush=True)  # fmt: skip
        save(file, record | environment(), indent=None)
    if torch is not None and all("us" in rows.get(name, {}).get("ours", {}) for name in SHAPES):
        record["one_graph_us"] = one_graph(rows, given.out / TEXTS, torch)
        save(file, record | environment(torch.cuda.get_device_name(0)), indent=None)
        print(json.dumps(record["one_graph_us"]), flush=True)


def _put(
    row: dict[str, Any], way: str, made: tuple[dict[str, Any] | None, str],
    record: dict[str, Any], file: Path,
) -> None:  # fmt: skip
    found, failed = made
    if found is None:
        print(f"{way}: {failed}", flush=True)
        return
    row[way] = found
    save(file, record, indent=None)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads that hand out tasks may wait for workers that were ended
