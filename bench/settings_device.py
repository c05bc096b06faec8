"""Settings by rule on a GPU: defaults, no tuning, beside the plain kernels and what others have.

    python bench/settings_device.py --out RESULTS.json    with a GPU, PyTorch and CuPy (2-D: NPP)
    python bench/settings_device.py --dry                 small, no GPU: is everything right?

Structures to arrays, back, and summed (multiples of 4096 and odd numbers), 1-D and 2-D convolution.
Each row has the default, beside it the hand-written kernels of structures_baselines.cu and PyTorch
(or NPP), our other strategies, and for images some other settings, from which rules can learn; only
the default counts. All texts are compiled first, on all cores. Every kernel is checked on a
poisoned output before it is timed. The record is kept row by row, and a run picks up where an
earlier one stopped. `--only structures 1d 2d` selects.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

import conv_baselines as baselines  # noqa: E402 - beside this script

from warploom import ptx  # noqa: E402 - the checkout is used without being installed
from warploom.catalogue import find  # noqa: E402
from warploom.emit.cuda import cuda  # noqa: E402
from warploom.errors import WarploomError  # noqa: E402
from warploom.index.evaluate import evaluate  # noqa: E402
from warploom.kernel.dtype import DType  # noqa: E402
from warploom.kernel.ir import ArrayParam, Kernel  # noqa: E402
from warploom.machine.record import H200  # noqa: E402
from warploom.runtime.compile import compile_cuda, parse_usage  # noqa: E402

FIELDS = (*range(2, 17), 24, 32)
OTHER_TYPES = ("float16", "float64")
OTHER_FIELDS = (2, 3, 5, 8)
MOVES = {"aos-to-soa": "to_arrays", "soa-to-aos": "to_structures", "aos-sum": "sums"}
TAPS_1D = (3, 5, 7, 9, 13, 17, 21, 25, 31)
TAPS_2D = (3, 5, 7, 9, 11, 13, 15)
LINE, SIDE = 1 << 26, 8192
FMA_RATE = 33.5e12
SHARED = 48 << 10
ARCH = "sm_90"
INPUT_BYTES = 10**9
QUICK, SAMPLES = 7, 15
# Of the copy ceiling at multiples of 4096 and at odd numbers; of the best plain kernel.
WHOLE, ODD, OF_BEST, OF_LINE = 0.93, 0.88, 0.98, 0.93
OVER_NPP = {3: 1.2, 5: 1.5}
OVER_NPP_OTHERWISE, OVER_FLOOR = 5.0, 1.5

Record = dict[str, Any]
Launch = Callable[[], object]


# -- what is compiled ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A kernel of ours for a size, or all hand-written ones for a structure."""

    row: str  # the key of a record
    entry: str  # "" for hand-written ones
    label: str
    given: tuple[tuple[str, Any], ...]
    size: tuple[tuple[str, int], ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        return find(self.entry).settings(dict(self.given), dict(self.size), H200)


@dataclass
class Built:
    job: Job
    name: str = ""
    code: bytes = b""
    kernel: Kernel | None = None
    settings: Record | None = None
    registers: dict[str, int] | None = None
    failure: str = ""


def build(job: Job) -> Built:
    """In a process of its own."""
    try:
        if not job.entry:
            return assembled(Built(job), plain_text(**dict(job.given)))
        settings = job.settings
        kernel = find(job.entry).kernel(**settings)
        return assembled(Built(job, kernel.name, b"", kernel, settings), cuda(kernel))
    except WarploomError as error:
        return Built(job, failure=str(error)[:300])


def built_all(jobs: list[Job]) -> dict[str, list[Built]]:
    """By row; what is the same kernel for several jobs is compiled once."""
    groups: dict[Any, list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.entry, *same_for(job)), []).append(job)
    by_row: dict[str, list[Built]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(build, [group[0] for group in groups.values()], chunksize=2)
        for built, group in zip(made, groups.values(), strict=True):
            for job in group:
                by_row.setdefault(job.row, []).append(replace(built, job=job))
    return by_row


def same_for(job: Job) -> tuple[tuple[str, Any], ...]:
    try:
        return tuple(job.settings.items()) if job.entry else job.given
    except WarploomError:  # it will say so when it is built
        return job.given


def assembled(built: Built, text: str) -> Built:
    options = ("--ptxas-options=-v", "--fmad=false") if built.kernel else ("--ptxas-options=-v",)
    made = compile_cuda(text, ARCH, kind="cubin", options=options)
    built.code = made.code
    built.registers = {name: used.registers for name, used in parse_usage(made.log).items()}
    return built


def plain_text(fields: int, dtype: str, per: int) -> str:
    words = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
    added = {"float32": "float", "float64": "double", "float16": "__half"}[dtype]
    head = "#include <cuda_fp16.h>\n" if dtype == "float16" else ""
    values = {"S": fields, "T": words[np.dtype(dtype).itemsize], "F": added, "PER": per}
    head += "".join(f"#define {name} {value}\n" for name, value in values.items())
    return head + (ROOT / "bench" / "structures_baselines.cu").read_text()


# -- structures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Structures:
    """One row."""

    entry: str
    fields: int
    dtype: str
    n: int

    @property
    def key(self) -> str:
        return f"{self.entry}/{self.dtype}/{self.fields}/{self.n}"

    @property
    def moved(self) -> int:
        """Bytes."""
        outputs = 1 if self.entry == "aos-sum" else self.fields
        return self.n * (self.fields + outputs) * np.dtype(self.dtype).itemsize

    def jobs(self) -> Iterator[Job]:
        given, size = (("fields", self.fields), ("dtype", self.dtype)), (("n", self.n),)
        yield Job(self.key, self.entry, "default", given, size)
        for strategy in ("registers", "shared", "direct"):
            more = (*given, ("strategy", strategy))
            yield Job(self.key, self.entry, f"ours {strategy}", more, size)


def structure_rows(options: Any) -> list[Structures]:
    kinds = [("float32", fields) for fields in options.fields]
    known = {each.value for each in DType}
    kinds += [(d, f) for d in OTHER_TYPES if d in known for f in OTHER_FIELDS]
    rows = []
    for dtype, fields in kinds:
        even = options.bytes // (np.dtype(dtype).itemsize * fields) // 4096 * 4096
        rows += [Structures(e, fields, dtype, n) for n in (even, even - 4095) for e in MOVES]
    return rows


def plain_jobs(rows: list[Structures]) -> Iterator[Job]:
    for fields, dtype in sorted({(row.fields, row.dtype) for row in rows}):
        for per in (1, 4):
            if per * 256 * (fields | 1) * np.dtype(dtype).itemsize <= SHARED:
                given = (("fields", fields), ("dtype", dtype), ("per", per))
                yield Job("", "", f"per={per}", given)


class StructureCase:
    """Arrays of a row, and what they must become."""

    def __init__(self, gpu: Gpu, row: Structures) -> None:
        torch = gpu.torch
        self.gpu, self.row = gpu, row
        kind = getattr(torch, row.dtype)
        self.x = torch.rand(row.n * row.fields, device="cuda", dtype=torch.float32).to(kind)
        outputs = row.n if row.entry == "aos-sum" else row.n * row.fields
        self.y = torch.empty(outputs, device="cuda", dtype=kind)
        by_structure = row.entry != "soa-to-aos"
        shape = (row.n, row.fields) if by_structure else (row.fields, row.n)
        self.view = self.x.view(shape)
        self.wanted = self.view.double().sum(1) if row.entry == "aos-sum" else None

    def right(self) -> bool:
        torch = self.gpu.torch
        if self.wanted is None:
            return bool(torch.equal(self.y.view(self.view.t().shape), self.view.t()))
        tolerance = 2e-3 if self.row.dtype == "float16" else 1e-5
        return bool(((self.y.double() - self.wanted).abs() <= tolerance * self.wanted.abs()).all())

    def launch(self, code: bytes, name: str, grid: Any, block: Any) -> Launch:
        arguments = [np.int32(self.row.n), self.x.data_ptr(), self.y.data_ptr()]
        return self.gpu.launch(code, name, grid, block, arguments)

    def timed(self, launch: Launch, samples: int = QUICK) -> Record:
        self.y.fill_(float("nan"))
        launch()
        if not self.right():
            return {"error": "wrong result"}
        seconds, spread = self.gpu.seconds(launch, samples)
        return {"seconds": seconds, "spread": spread}

    def by_torch(self) -> Launch:
        if self.wanted is None:
            return lambda: self.view.t().contiguous()
        return lambda: self.gpu.torch.sum(self.view, dim=1, out=self.y)


def measure_structures(gpu: Gpu, row: Structures, ours: list[Built], plain: list[Built]) -> Record:
    case = StructureCase(gpu, row)
    ceiling = gpu.ceiling(row.moved)
    found: Record = {"n": row.n, "bytes": row.moved, "ceiling": ceiling, "ours": {}, "others": {}}
    for each in ours:
        record: Record = {"settings": each.settings}
        if each.failure or each.kernel is None:
            record["error"] = each.failure
        else:
            launch = case.launch(each.code, each.name, grid_of(each.kernel, {"n": row.n}),
                                 each.kernel.block)  # fmt: skip
            samples = SAMPLES if each.job.label == "default" else QUICK
            record |= case.timed(launch, samples)
            record["registers"] = (each.registers or {}).get(each.name)
        found["ours"][each.job.label] = record
    for each in plain:
        per = dict(each.job.given)["per"]
        for kind in ("direct", "shared"):
            label, name = f"{kind} {each.job.label}", f"{kind}_{MOVES[row.entry]}"
            if each.failure:
                found["others"][label] = {"error": each.failure}
                continue
            grid = (-(-row.n // (256 * per)), 1, 1)
            found["others"][label] = case.timed(case.launch(each.code, name, grid, (256, 1, 1)))
    seconds, spread = gpu.seconds(case.by_torch(), 5)
    found["others"]["torch"] = {"seconds": seconds, "spread": spread}
    return judged_structures(row, found, ceiling)


def judged_structures(row: Structures, found: Record, ceiling: float) -> Record:
    for each in (*found["ours"].values(), *found["others"].values()):
        if "seconds" in each:
            each["fraction"] = round(row.moved / each["seconds"] / ceiling, 4)
    default = found["ours"]["default"].get("fraction", 0.0)
    best = max(each.get("fraction", 0.0) for each in found["others"].values())
    goal = WHOLE if row.n % 4096 == 0 else ODD
    return found | {
        "fraction": default,
        "of_best": round(default / best, 4),
        "goal": goal,
        "met": default >= goal and default >= OF_BEST * best,
    }


# -- convolutions ----------------------------------------------------------------------------------


def jobs_1d(taps: int) -> Iterator[Job]:
    size = (("n", LINE),)
    yield Job(f"1d/{taps}", "convolution-1d", "default", (("taps", taps),), size)
    for rows, block in ((1, 128), (2, 128), (1, 256), (4, 128)):
        given = (("taps", taps), ("rows", rows), ("block", block))
        yield Job(f"1d/{taps}", "convolution-1d", f"rows={rows} block={block}", given, size)


def measure_1d(gpu: Gpu, taps: int, built: list[Built]) -> Record:
    torch = gpu.torch
    x = torch.randn(LINE + taps - 1, device="cuda")
    w = np.random.default_rng(taps).standard_normal(taps).astype(np.float32)
    y, wanted = torch.empty(LINE, device="cuda"), torch.zeros(LINE, device="cuda").double()
    for j in range(taps):
        wanted += float(w[j]) * x[j : j + LINE]
    moved = 4 * (2 * LINE + taps - 1)
    ceiling = gpu.ceiling(moved)
    found: Record = {"bytes": moved, "ceiling": ceiling, "ours": {}}
    for each in built:
        arguments = {"n": np.int32(LINE), "x": x.data_ptr(), "w": w, "y": y.data_ptr()}
        found["ours"][each.job.label] = contest(gpu, each, arguments, y, wanted, {"n": LINE})
    for each in found["ours"].values():
        if "seconds" in each:
            each["fraction"] = round(moved / each["seconds"] / ceiling, 4)
    fraction = found["ours"]["default"].get("fraction", 0.0)
    return found | {"fraction": fraction, "goal": OF_LINE, "met": fraction >= OF_LINE}


def jobs_2d(taps: int) -> Iterator[Job]:
    size = (("height", SIDE), ("columns", SIDE))
    yield Job(f"2d/{taps}", "convolution-2d", "default", (("taps", taps),), size)
    for step, rows, block, exchange in others_2d(taps):
        values = {"taps": taps, "step": step, "rows": rows, "block": block, "exchange": exchange}
        label = f"step={step} rows={rows} block={block} {exchange}"
        yield Job(f"2d/{taps}", "convolution-2d", label, tuple(values.items()), size)


def others_2d(taps: int) -> list[tuple[int, int, int, str]]:
    if taps == 3:
        ways = [(4, 8, 128), (4, 16, 256), (4, 32, 128), (2, 16, 128), (2, 32, 128), (8, 16, 128)]
    elif taps <= 7:
        ways = [(1, 96, 128), (2, 32, 128), (2, 48, 128), (2, 128, 128), (4, 64, 128), (2, 72, 64)]
    else:
        ways = [(1, 64, 128), (1, 128, 128), (1, 192, 128), (1, 96, 64), (2, 128, 128)]
    both = [(*way, exchange) for way in ways[:3] for exchange in ("shuffle", "load")]
    return both + [(*way, "shuffle" if taps < 9 else "load") for way in ways[3:]]


def measure_2d(gpu: Gpu, taps: int, built: list[Built]) -> Record:
    torch = gpu.torch
    image = torch.randn(SIDE, SIDE, device="cuda")
    w = np.random.default_rng(taps).standard_normal((taps, taps)).astype(np.float32)
    out = torch.empty_like(image)
    wanted = windows(torch, image, w)
    ceiling = gpu.ceiling(8 * SIDE * SIDE)
    floors = {"memory": 8 * SIDE * SIDE / ceiling, "fma": taps * taps * SIDE * SIDE / FMA_RATE}
    found: Record = {"ceiling": ceiling, "floors": floors, "ours": {}, "others": {}}
    size = {"height": SIDE, "columns": SIDE}
    for each in built:
        arguments = {name: np.int32(value) for name, value in size.items()}
        arguments |= {"image": image.data_ptr(), "w": w.reshape(-1), "out": out.data_ptr()}
        found["ours"][each.job.label] = contest(gpu, each, arguments, out, wanted, size)
    found["others"]["npp"] = by_npp(gpu, taps, image, w, out, wanted)
    ours = found["ours"]["default"].get("seconds", math.inf)
    over = found["others"]["npp"].get("seconds", 0.0) / ours
    goal, floor = OVER_NPP.get(taps, OVER_NPP_OTHERWISE), max(floors.values())
    return found | {
        "over_npp": round(over, 3),
        "goal": goal,
        "over_floor": round(ours / floor, 3),
        "met": over >= goal and ours <= OVER_FLOOR * floor,
    }


def windows(torch: Any, image: Any, w: Any) -> Any:
    """The specification, in float64."""
    taps = len(w)
    half = taps // 2
    padded = torch.nn.functional.pad(image[None, None], (half,) * 4, mode="replicate")[0, 0]
    padded, wanted = padded.double(), torch.zeros(SIDE, SIDE, device="cuda").double()
    for r in range(taps):
        for c in range(taps):
            wanted += float(w[r, c]) * padded[r : r + SIDE, c : c + SIDE]
    return wanted


def by_npp(gpu: Gpu, taps: int, image: Any, w: Any, out: Any, wanted: Any) -> Record:
    try:
        import cupy

        library = baselines.npp_library()
        if library is None:
            return {"error": "libnppif is not installed"}
        given, made = cupy.from_dlpack(image), cupy.from_dlpack(out)
        held = cupy.asarray(np.ascontiguousarray(w[::-1, ::-1]))  # NPP takes them in reverse
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        launch = baselines.npp_filter(library, given, made, held, taps, properties)
        return checked(gpu, launch, out, wanted, SAMPLES)
    except Exception as error:  # noqa: BLE001 - a competitor's failure is a result, too
        return {"error": f"{type(error).__name__}: {error}"[:300]}


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


# -- the GPU ---------------------------------------------------------------------------------------


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


# -- the run ---------------------------------------------------------------------------------------


def run(options: Any) -> int:
    started = time.monotonic()
    records: Record = {}
    if options.out.exists() and not options.again:
        records = json.loads(options.out.read_text())
    structures = structure_rows(options) if "structures" in options.only else []
    rows = [row for row in structures if row.key not in records]
    lines = [t for t in TAPS_1D if "1d" in options.only and f"1d/{t}" not in records]
    images = [t for t in TAPS_2D if "2d" in options.only and f"2d/{t}" not in records]
    jobs = [job for row in rows for job in row.jobs()]
    jobs += [job for taps in lines for job in jobs_1d(taps)]
    jobs += [job for taps in images for job in jobs_2d(taps)]
    jobs.sort(key=lambda job: job.row.startswith("2d"), reverse=True)  # the longest first
    jobs += plain_jobs(rows)
    by_row = built_all(jobs)
    print(f"{len(jobs)} kernels compiled in {time.monotonic() - started:.0f} s", flush=True)
    gpu = Gpu()
    work: list[tuple[str, Callable[[], Record]]] = [
        *((f"1d/{t}", lambda t=t: measure_1d(gpu, t, by_row[f"1d/{t}"])) for t in lines),
        *((f"2d/{t}", lambda t=t: measure_2d(gpu, t, by_row[f"2d/{t}"])) for t in images),
        *((r.key, lambda r=r: measure_structures(gpu, r, by_row[r.key], plain_of(by_row, r)))
          for r in rows),
    ]  # fmt: skip
    records["machine"] = machine(gpu, records.get("machine", {}))
    for key, measured in work:
        records[key] = measured()
        save(options.out, records)
        print(line_of(key, records[key]), flush=True)
        if time.monotonic() - started > options.seconds:
            print("out of time; run again to go on")
            return 3
    records["machine"]["wall_seconds"] = round(time.monotonic() - started, 1)
    save(options.out, records)
    return summary(records)


def plain_of(by_row: dict[str, list[Built]], row: Structures) -> list[Built]:
    wanted = {"fields": row.fields, "dtype": row.dtype}
    return [
        each
        for each in by_row.get("", [])
        if {k: v for k, v in each.job.given if k != "per"} == wanted
    ]


def machine(gpu: Gpu, before: Record) -> Record:
    return before | {
        "gpu": gpu.torch.cuda.get_device_name(),
        "torch": gpu.torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "command": "python bench/settings_device.py",
    }


def save(out: Path, records: Record) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part")
    part.write_text(json.dumps(records, indent=1) + "\n")
    part.replace(out)


def line_of(key: str, found: Record) -> str:
    words = [f"{key:<36}", "met " if found["met"] else "MISS"]
    if "over_npp" in found:
        words.append(f"{found['over_npp']:.2f} of NPP (goal {found['goal']})")
        words.append(f"{found['over_floor']:.2f} of the floor")
    else:
        words.append(f"{found['fraction']:.3f} (goal {found['goal']})")
    if "of_best" in found:
        words.append(f"{found['of_best']:.3f} of the best other")
        words.append(str((found["ours"]["default"]["settings"] or {}).get("strategy")))
    shown = {name: each.get("fraction", each.get("error", each.get("seconds")))
             for name, each in found["ours"].items()}  # fmt: skip
    best = min(
        (each["seconds"], name) for name, each in found["ours"].items() if "seconds" in each
    ) if any("seconds" in each for each in found["ours"].values()) else (0.0, "none")  # fmt: skip
    words.append(f"best of ours: {best[1]} {shown.get(best[1], '')}")
    return "  ".join(words)


def summary(records: Record) -> int:
    rows = {key: each for key, each in records.items() if key != "machine"}
    missed = [key for key, each in rows.items() if not each["met"]]
    print(f"{len(rows) - len(missed)} of {len(rows)} rows meet their goals")
    for key in missed:
        print(f"  {line_of(key, rows[key])}")
    return 1 if missed else 0


# -- without a GPU ---------------------------------------------------------------------------------


def dry(options: Any) -> int:
    """Small sizes on the emulator, both hand-written kernels and what the rule chooses."""
    failures = 0
    for row in structure_rows(options):
        for n in (256, 321):
            small = Structures(row.entry, row.fields, row.dtype, n)
            for job in (*small.jobs(), *plain_jobs([small])):
                wrong = dry_job(small, job)
                failures += bool(wrong)
                if wrong:
                    print(f"{small.key} {job.label}: {wrong}", flush=True)
    for job in (next(jobs_1d(3)), *list(jobs_2d(3))[:2]):
        built = build(job)
        failures += bool(built.failure)
        assert built.kernel is not None
        assert grid_of(built.kernel, dict(job.size))[0] >= 1
        assert {p.name for p in built.kernel.params} <= {
            "n", "x", "w", "y", "height", "columns", "image", "out"
        }  # fmt: skip
    print(f"{failures} failures")
    return 1 if failures else 0


def dry_job(row: Structures, job: Job) -> str:
    built = build(job)
    if built.failure:
        return built.failure
    x = np.random.default_rng(row.n).integers(0, 99, row.n * row.fields).astype(row.dtype)
    summed = row.entry == "aos-sum"
    shape = (row.fields, row.n) if row.entry == "soa-to-aos" else (row.n, row.fields)
    wanted = x.reshape(shape).sum(1) if summed else x.reshape(shape).T.reshape(-1)
    if built.kernel is not None:
        names, text = [built.name], cuda(built.kernel)
        grid, block = grid_of(built.kernel, {"n": row.n}), built.kernel.block
        assert [isinstance(p, ArrayParam) for p in built.kernel.params] == [False, True, True]
    else:
        names = [f"{kind}_{MOVES[row.entry]}" for kind in ("direct", "shared")]
        text, per = plain_text(**dict(job.given)), dict(job.given)["per"]
        grid, block = (-(-row.n // (256 * per)), 1, 1), (256, 1, 1)
    module = ptx.load(compile_cuda(text).text)
    for name in names:
        y = np.full(len(wanted), 7777, row.dtype)
        module.kernel(name).launch(grid, block, [np.int32(row.n), x, y])
        if not np.array_equal(y, wanted):
            return f"{name} is wrong"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="small, no GPU")
    parser.add_argument("--only", nargs="*", default=["structures", "1d", "2d"])
    parser.add_argument("--fields", type=int, nargs="*", default=list(FIELDS))
    parser.add_argument("--bytes", type=int, default=INPUT_BYTES, help="size of the input array")
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    default = ROOT / "bench" / "results" / "settings_device.json"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    return dry(options) if options.dry else run(options)


if __name__ == "__main__":
    raise SystemExit(main())
