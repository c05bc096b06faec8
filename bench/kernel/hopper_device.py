"""Matmuls of Hopper that kernels describe (`bench/common/kernel/hopper_matmul.py`), on an H200.

    python -m bench.kernel.hopper_device --seconds 500     an H200, with PyTorch
    python -m bench.kernel.hopper_device --dry             the emulator: two settings, proved

Every setting is compiled first, in as many processes as there are cores. Then each shape: a setting
has to agree with PyTorch; all are timed in CUDA graphs by turns with PyTorch's own matmul, and the
best few and PyTorch once more, for longer. A row is the shape: medians in microseconds.

All of it runs in a process of its own. Where that ends, or says nothing for a minute, the setting
that it was at is broken, and another goes on without it.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench.common.kernel.hopper_matmul import MOST_SHARED, Setting
from bench.harness import arguments, attempted, child, earlier, environment, save

from warploom.emit.cuda import cuda
from warploom.kernel.descriptor import view_of
from warploom.kernel.dtype import DType, coded
from warploom.kernel.ir import Kernel
from warploom.runtime.callable import load
from warploom.runtime.compile import compile_cuda
from warploom.runtime.driver import open_driver
from warploom.runtime.emulated import EmulatedFunction
from warploom.runtime.gpu import Loaded
from warploom.runtime.tensor import encoder

RECORD = "kernel_hopper_device.json"
PROCESSORS = 132
MOST_STAGES = 7
BEST = 8  # settings that are timed for longer
SHORT, LONG = 3, 15  # turns
SAMPLE_S = 1e-3  # of one turn
NEAR = 1e-2  # of the largest number of a result
SILENT_S = 60.0  # after which a process does not go on
MOST_BROKEN = 5
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Work:
    """A product: sizes, the type of the factors, which axes are dense."""

    shape: Shape
    kind: str = "bf16"
    dense: str = "kk"

    @property
    def name(self) -> str:
        return f"{self.kind} {self.dense} {'x'.join(map(str, self.shape))}"


SIZES = ((512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3)
WORKS = (
    *(Work((n, n, n)) for (n, _, _) in SIZES),
    *(Work(each) for each in ((1000, 1000, 1000), (1536, 384, 4096), (8192, 8192, 512),
                              (128, 4096, 4096), (16, 4096, 4096))),
    *(Work((n, n, n), "bf16", "kn") for n in (1024, 4096, 8192)),
    *(Work((4096,) * 3, "bf16", each) for each in ("mk", "mn")),
    Work((4096,) * 3, "f16"),
    *(Work((n, n, n), "tf32") for n in (1024, 4096)),
    *(Work((n, n, n), "e4m3") for n in (1024, 4096, 8192)),
)  # fmt: skip

# Rows and columns of tiles, who consumes them, and whether each has tiles of its own.
TILES = (
    (128, 256, 2, False), (256, 128, 2, False), (128, 192, 2, False), (128, 128, 2, False),
    (128, 64, 2, False), (64, 256, 1, False), (64, 128, 1, False), (64, 256, 2, True),
    (128, 128, 2, True), (64, 192, 2, True), (64, 128, 2, True),
    (64, 64, 1, False), (128, 32, 2, False), (64, 32, 1, False),
)  # fmt: skip
DEPTH = {"bf16": 64, "f16": 64, "tf32": 32, "e4m3": 128}


def settings_of(kind: str, dense: str) -> Iterator[Setting]:
    """As many stages as there is room for, and one less."""
    full = (kind, dense) == ("bf16", "kk")
    outs = {"f16": DType.F16, "tf32": DType.F32}
    for (m, n, consumers, apart), cluster, staged, band in product(
        TILES, (1, 2), (0, 1, 2), (8, 16) if full else (8,)
    ):
        setting = Setting(
            (m, n, DEPTH[kind]), 1, consumers, band, cluster, staged, kind,  # type: ignore[arg-type]
            outs.get(kind, DType.BF16), tuple("k" if e == "k" else "mn" for e in dense),  # type: ignore[arg-type]
            apart,
        )  # fmt: skip
        narrow = n < 64 and (staged or dense[1] != "k")  # than a box
        if narrow or (staged and setting.out is DType.F32):
            continue
        each = replace(setting, stages=2).shared_bytes - setting.shared_bytes
        most = min(MOST_STAGES, 1 + (MOST_SHARED - setting.shared_bytes) // each)
        for stages in range(max(2, most - full), most + 1):
            yield replace(setting, stages=stages)


# -- what is compiled ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    setting: Setting
    kernel: Kernel
    code: bytes
    serial: bool  # whether ptxas lets products wait for each other


def ready(setting: Setting) -> Ready:
    kernel = setting.kernel()
    made = compile_cuda(
        cuda(kernel), "sm_90a", kind="cubin", contract=False, options=("--ptxas-options=-v",)
    )
    return Ready(setting, kernel, made.code, "wgmma" in made.log and "serialized" in made.log)


def _tried(setting: Setting) -> tuple[Ready | None, str]:
    return attempted(ready, setting)


def compiled(settings: Sequence[Setting], kept: Path) -> dict[Setting, Ready]:
    """What was compiled before this process is taken as it is."""
    if kept.exists():
        found: dict[Setting, Ready] = pickle.loads(kept.read_bytes())
        return found
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tried = list(pool.map(_tried, settings, chunksize=4))
    for setting, (_, failed) in zip(settings, tried, strict=True):
        if failed:
            print(f"{setting.name}: {failed[:300]}", flush=True)
    made = {each.setting: each for each, _ in tried if each is not None}
    kept.write_bytes(pickle.dumps(made))
    return made


# -- on a GPU --------------------------------------------------------------------------------------


class Bench:
    """The arrays of one product, and what it has to be."""

    def __init__(self, work: Work, torch: Any) -> None:
        self.work, self.torch = work, torch
        m, n, k = work.shape
        given = torch.Generator(device="cuda").manual_seed(1)

        def random(rows: int, columns: int) -> Any:
            made = torch.randn(rows, columns, device="cuda", generator=given)
            return made.to(self._type(work.kind))

        turned = [each != "k" for each in work.dense]
        self.a = random(k, m) if turned[0] else random(m, k)
        self.b = random(k, n) if turned[1] else random(n, k)
        out = {"tf32": torch.float32, "f16": torch.float16}.get(work.kind, torch.bfloat16)
        self.c = torch.empty(m, n, device="cuda", dtype=out)
        left = self.a.t() if turned[0] else self.a
        right = self.b if turned[1] else self.b.t()
        torch.backends.cuda.matmul.allow_tf32 = True
        if work.kind == "e4m3":
            one = torch.ones((), device="cuda")
            self.library = lambda: torch._scaled_mm(
                left,
                right,
                scale_a=one,
                scale_b=one,
                out_dtype=torch.bfloat16,
                use_fast_accum=True,  # sums as the tensor cores have them, as ours are
            )
        else:
            self.library = lambda: torch.mm(left, right, out=self.c)
        self.expected = self.library().float().clone()

    def _type(self, kind: str) -> Any:
        torch = self.torch
        types = {"bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32}
        return types.get(kind, torch.float8_e4m3fn)

    def launch(self, each: Ready, loaded: Loaded) -> Callable[[], object]:
        """On the stream that is current when it is called."""
        m, n, k = self.work.shape
        setting, kernel = each.setting, each.kernel
        arrays = {"a": self.a, "b": self.b, "c": self.c}
        clusters = PROCESSORS // setting.cluster
        sizes = {"m": m, "n": n, "k": k, "clusters": clusters}
        maps = []
        for map in kernel.maps:
            held = next(one for one in kernel.arrays if one.name == map.array)
            there = arrays[map.array]
            flat = np.broadcast_to(np.zeros(1, held.dtype.storage), there.numel())
            encoded = encoder(view_of(map, flat, sizes), map.box, map.swizzle)
            maps.append(np.frombuffer(encoded(there.data_ptr()), np.uint8))
        given = [*(np.int32(each) for each in sizes.values()),
                 *(each.data_ptr() for each in arrays.values()), *maps]  # fmt: skip
        grid = (setting.blocks(m, n, PROCESSORS), 1, 1)

        def run() -> None:
            stream = self.torch.cuda.current_stream().cuda_stream
            loaded.bind(grid, kernel.launched, given, stream)()

        return run

    def wrong(self) -> float:
        """How far the result is from PyTorch's, of the largest number there."""
        off = (self.c.float() - self.expected).abs().max() / self.expected.abs().max()
        return float(off)


class Timed:
    """Launches in CUDA graphs, by turns."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def graph(self, launch: Callable[[], object]) -> tuple[Any, int]:
        """A graph that takes about `SAMPLE_S`, and how many launches it has."""
        launch()
        one = self._took(lambda: [launch() for _ in range(5)]) / 5
        count = max(1, min(200, round(SAMPLE_S / max(one, 1e-6))))
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(count):
                launch()
        return graph, count

    def _took(self, work: Callable[[], object]) -> float:
        self.begin.record()
        work()
        self.end.record()
        self.end.synchronize()
        return float(self.begin.elapsed_time(self.end)) * 1e-3

    def turns(self, graphs: dict[str, tuple[Any, int]], turns: int) -> dict[str, float]:
        """Medians in microseconds, of launches in turn."""
        samples: dict[str, list[float]] = {name: [] for name in graphs}
        for graph, _ in graphs.values():
            graph.replay()
        for _ in range(turns):
            for name, (graph, count) in graphs.items():
                samples[name].append(self._took(graph.replay) / count * 1e6)
        return {name: round(median(each), 3) for name, each in samples.items()}


class Place:
    """A file that says at which setting a process is."""

    def __init__(self, record: Path) -> None:
        self.path = record.with_suffix(".now")

    def at(self, name: str) -> None:
        self.path.write_text(name)


def row(
    work: Work, prepared: Sequence[tuple[Ready, Loaded]], torch: Any, place: Place
) -> dict[str, Any]:
    bench, timed = Bench(work, torch), Timed(torch)
    graphs = {"library": timed.graph(bench.library)}
    wrong: dict[str, Any] = {}
    for each, loaded in prepared:
        name = each.setting.name
        place.at(name)
        off, failed = attempted(_off, bench, each, loaded)
        torch.cuda.synchronize()
        if off is None or not off < NEAR:
            wrong[name] = failed or off
            continue
        graphs[name] = timed.graph(bench.launch(each, loaded))
    place.at("")
    short = timed.turns(graphs, SHORT)
    best = sorted((each for each in short if each != "library"), key=short.__getitem__)[:BEST]
    long = timed.turns({name: graphs[name] for name in ("library", *best)}, LONG)
    first = min(best, key=long.__getitem__)
    m, n, k = work.shape
    return {
        "library_us": long["library"], "best": first, "best_us": long[first],
        "of_library": round(long["library"] / long[first], 3),
        "teraflops": round(2 * m * n * k / long[first] * 1e-6, 1), "long": long, "short": short,
        "wrong": wrong,
    }  # fmt: skip


def _off(bench: Bench, each: Ready, loaded: Loaded) -> float:
    bench.c.fill_(float("nan"))
    bench.launch(each, loaded)()
    bench.torch.cuda.synchronize()
    return bench.wrong()


def by_callable(torch: Any) -> dict[str, Any]:
    """One setting as users load it: maps are made of the arrays of each call."""
    kernel = Setting((128, 128, 64), 4, staged=1).kernel()
    m, n, k = 1000, 1016, 504
    a, b = (torch.randn(each, k, device="cuda").bfloat16() for each in (m, n))
    offs = []
    for _ in range(2):
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        load(kernel)(a.flatten(), b.flatten(), c.flatten(), m=m, n=n, k=k, clusters=PROCESSORS)
        expected = (a @ b.t()).float()
        offs.append(float((c.float() - expected).abs().max() / expected.abs().max()))
    return {"off": offs}


def on_device(given: argparse.Namespace, record: dict[str, Any]) -> None:
    import torch

    end = time.monotonic() + given.seconds
    works = [each for each in WORKS if given.only in each.name]
    asked = {
        (each.kind, each.dense): list(settings_of(each.kind, each.dense)) for each in works
    }  # fmt: skip
    begun = time.monotonic()
    every = [setting for each in asked.values() for setting in each]
    made = compiled(every, given.out.with_suffix(".built"))
    record["compiled"] = {
        "settings": len(made), "seconds": round(time.monotonic() - begun, 1),
        "serialised": [each.setting.name for each in made.values() if each.serial],
    }  # fmt: skip
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    driver = open_driver()
    record["device"] = torch.cuda.get_device_name(0)
    called, failed = attempted(by_callable, torch)
    record["callable"] = called or {"failed": failed}
    save(given.out, record)
    loaded = {
        setting: Loaded(driver.load(each.code, each.kernel.name, 0))
        for setting, each in made.items()
    }
    for work in works:
        if time.monotonic() > end:
            record["stopped"] = work.name
            break
        if work.name in record["rows"]:
            continue
        prepared = [
            (made[each], loaded[each])
            for each in asked[work.kind, work.dense]
            if each in made and each.name not in record["broken"]
        ]
        found, failed = attempted(row, work, prepared, torch, Place(given.out))
        torch.cuda.synchronize()  # where it cannot go on, neither can this process
        record["rows"][work.name] = found or {"failed": failed[:500]}
        said = f"{found['of_library']:.3f} by {found['best']}" if found else failed[:300]
        print(f"{work.name}: {said}", flush=True)
        save(given.out, record)


# -- without one -----------------------------------------------------------------------------------


def emulated(setting: Setting, shape: Shape) -> dict[str, Any]:
    """A launch on the emulator, with all orders of threads, and on the kernel's own meaning."""
    m, n, k = shape
    kernel, clusters = setting.kernel(), 1
    r = np.random.default_rng(1)
    a, b = (coded(r.standard_normal((each, k)), DType.BF16) for each in (m, n))
    c, held = (np.zeros((m, n), np.uint16) for _ in range(2))
    function = EmulatedFunction(kernel)
    packed = function.packed([m, n, k, clusters, a, b, c])
    report = function.launch(setting.blocks(m, n, setting.cluster), packed, races=True, prove=True)
    load(kernel, "simulator")(a, b, held, m=m, n=n, k=k, clusters=clusters)
    assert report.proof is not None
    return {"proof": report.proof.reach.name, "equal": bool(np.array_equal(c, held))}


def dry(record: dict[str, Any]) -> None:
    for setting, shape in (
        (Setting((64, 64, 64), 2, 1), (72, 72, 136)),
        (Setting((64, 64, 64), 2, 1, cluster=2), (136, 64, 72)),
    ):
        record["rows"][setting.name] = emulated(setting, shape)
        print(setting.name, record["rows"][setting.name])


def main() -> None:
    parser = arguments(
        __doc__, RECORD, dry="the emulator, not a GPU", only="products with this word in their name"
    )
    parser.add_argument("--seconds", type=float, default=500.0, help="begin no shape after these")
    parser.add_argument("--inside", action="store_true", help="in the process that measures")
    given = parser.parse_args()
    before = earlier(given.out)
    record = {
        "environment": environment(), "broken": before.get("broken", []),
        "rows": dict(before.get("rows", {})),
    }  # fmt: skip
    if given.dry:
        dry(record)
    elif given.inside:
        on_device(given, record)
    else:
        watched(given)
        return
    save(given.out, record)


def watched(given: argparse.Namespace) -> None:
    """The process that measures, and another one where it does not go on."""
    end = time.monotonic() + given.seconds
    for kind in (".built", ".now"):
        given.out.with_suffix(kind).unlink(missing_ok=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(MOST_BROKEN):
        left = str(max(1.0, end - time.monotonic()))
        only = ["--only", given.only] if given.only else []
        place = given.out.with_suffix(".now")
        process = subprocess.Popen(
            child("--inside", "--out", str(given.out), "--seconds", left, *only)
        )
        while process.poll() is None:
            time.sleep(1)
            if place.exists() and time.time() - place.stat().st_mtime > SILENT_S:
                process.kill()
        if not process.returncode:
            return
        name = place.read_text() if place.exists() else ""
        place.unlink(missing_ok=True)
        record = earlier(given.out, {"broken": [], "rows": {}})
        print(f"broken: {name or 'nothing was begun'}", flush=True)
        if not name:
            return
        record["broken"].append(name)
        save(given.out, record)


if __name__ == "__main__":
    main()
