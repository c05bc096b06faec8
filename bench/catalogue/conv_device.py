"""Convolutions and polynomial products on a GPU, beside what people use today.

    python -m bench.catalogue.conv_device        with a GPU
    python -m bench.catalogue.conv_device --dry  tiny sizes, no GPU

One run measures the copy ceiling, 1-D convolution (torch beside), 2-D convolution with replicated
border (torch, NPP, Triton and shared memory beside) and products over GF(2) (shared memory and
register cache beside). All texts are compiled first, in parallel. Every kernel is checked against
a reference before it is timed: CUDA events, warm-up, medians. The record is written after every
row, and a run picks up where an earlier one stopped. `--only 1d 2d product` selects parts.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from bench.catalogue import conv_baselines as baselines
from bench.harness import arguments, attempted, command, earlier, save

from warploom import ptx, runtime
from warploom.catalogue import find
from warploom.catalogue.pieces import piece_sizes
from warploom.emit.cuda import cuda
from warploom.errors import WarploomError
from warploom.kernel.ir import Kernel
from warploom.runtime.compile import compile_cuda, parse_usage

TAPS_1D = (3, 9, 17)
TAPS_2D = (3, 5, 7, 9, 11)
DEGREES = tuple(range(32, 385, 32))
LINE = 1 << 26  # outputs of a 1-D convolution
SIDE = 8192
PRODUCT_BYTES = 1 << 28
FMA_RATE = 33.5e12
HAND_WRITTEN = ("shared_product", "cached_product")
QUICK, SAMPLES = 7, 25
REGISTERS, MULTIPROCESSORS = 65536, 132


# --- what is compiled -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A kernel of ours (entry and parameters) or a text of the baselines (name and arguments)."""

    section: str
    entry: str
    parameters: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.parameters)


@dataclass
class Built:
    job: Job
    kernel: Kernel | None
    name: str
    text: str
    code: bytes = b""
    registers: int = 0
    spills: bool = False
    failure: str = ""


def job(section: str, entry: str, **parameters: Any) -> Job:
    return Job(section, entry, tuple(parameters.items()))


def jobs_1d(taps: int) -> Iterator[Job]:
    for width, rows, block in (
        (4, 1, 128), (4, 2, 128), (4, 4, 128), (4, 8, 128), (4, 1, 256), (4, 2, 256), (4, 4, 256),
        (2, 4, 128), (2, 8, 128), (1, 4, 128), (1, 8, 256),
    ):  # fmt: skip
        yield job("1d", "convolution-1d", taps=taps, width=width, rows=rows, block=block)


def jobs_2d(taps: int) -> Iterator[Job]:
    for exchange in ("shuffle", "load"):
        for width, step in ((4, 1), (4, 2), (2, 1), (2, 2), *(((4, 4),) if taps <= 5 else ())):
            for waves in (1, 2, 4):
                yield job("2d", "convolution-2d", taps=taps, width=width, step=step,
                          exchange=exchange, block=128, waves=waves)  # fmt: skip
    for columns, threads, rows in baselines.TILES:
        yield job("2d", "shared_convolution", taps=taps, columns=columns, threads=threads,
                  rows=rows)  # fmt: skip


def jobs_product(degree: int) -> Iterator[Job]:
    for piece in piece_sizes(degree)[:3]:
        for operand in ("load", "shuffle"):
            for finish in ("store", "keep"):
                yield job("product", "product-pieces", degree=degree, piece=piece, operand=operand,
                          finish=finish, block=128)  # fmt: skip
    for form in ("registers", "shared"):
        for block in (64, 128, 256):
            if block * degree <= 256 * 192:  # what fits into shared memory
                yield job("product", f"product-{form}", degree=degree, block=block)
    for form in HAND_WRITTEN:
        for block in (64, 128):
            for unroll in (1, 32) if degree <= 64 else (1, 2):
                yield job("product", form, degree=degree, block=block, unroll=unroll)


def build(each: Job) -> Built:
    """Compiled in a process of its own."""
    parameters = dict(each.parameters)
    try:
        if each.entry == "shared_convolution":
            built = Built(each, None, each.entry, baselines.shared_convolution(**parameters))
        elif each.entry in HAND_WRITTEN:
            built = Built(each, None, each.entry, baselines.product(each.entry, **parameters))
        else:
            waves = parameters.pop("waves", 0)
            if waves:
                parameters["rows"] = strip_rows(each.entry, parameters, waves)
            kernel = find(each.entry).kernel(**parameters)
            labelled = Job(each.section, each.entry, tuple(parameters.items()))
            built = Built(labelled, kernel, kernel.name, cuda(kernel))
        assemble(built)
    except WarploomError as error:
        return Built(each, None, "", "", failure=str(error)[:500])
    return built


def assemble(built: Built) -> None:
    compiled = compile_cuda(built.text, ARCH, kind="cubin", options=("--ptxas-options=-v",))
    used = parse_usage(compiled.log).get(built.name)
    built.code = compiled.code
    if used is not None:
        built.registers, built.spills = used.registers, not used.stays_in_registers


def strip_rows(entry: str, parameters: dict[str, Any], waves: int) -> int:
    """So many rows a strip that all blocks of the image fill the GPU a whole number of times."""
    probe = find(entry).kernel(**parameters, rows=64)
    built = Built(job("", entry), probe, probe.name, cuda(probe))
    assemble(built)
    block, width = parameters["block"], parameters["width"]
    of_warp = math.ceil(max(built.registers, 1) * 32 / 256) * 256
    blocks = min(REGISTERS // (of_warp * (block // 32)), 2048 // block, 32)
    across = math.ceil(SIDE / (block * width))
    strips = max(1, blocks * MULTIPROCESSORS * waves // across)
    return min(1024, math.ceil(SIDE / strips))


ARCH = "sm_90"


def build_all(jobs: list[Job], processes: int) -> list[Built]:
    started = time.time()
    with ProcessPoolExecutor(processes) as pool:
        found = list(pool.map(build, jobs))
    failed = [each for each in found if each.failure]
    print(f"{len(found)} texts compiled in {time.time() - started:.0f} s", flush=True)
    for each in failed:
        print(f"  left out: {each.job.entry} {each.job.label}: {each.failure.splitlines()[0]}")
    return [each for each in found if not each.failure]


# --- the GPU --------------------------------------------------------------------------------------


class Gpu:
    """CuPy arrays, events of PyTorch, and functions from machine code."""

    def __init__(self) -> None:
        import cupy
        import torch

        from warploom.runtime import measure

        self.cupy, self.torch, self._measure = cupy, torch, measure
        self.clock = measure.clock("torch")
        self.properties = cupy.cuda.runtime.getDeviceProperties(0)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def function(self, built: Built) -> Any:
        module = self.cupy.cuda.function.Module()
        module.load(built.code)
        return module.get_function(built.name)

    def ours(self, built: Built, *arguments: Any, **scalars: int) -> Callable[[], object]:
        """A launch of one of our kernels, arguments checked as always."""
        assert built.kernel is not None
        called = runtime.load(built.kernel, "cuda")
        called.adopt(built.code)  # compiled by another process
        return called.prepare(*arguments, **scalars)

    def text(self, built: Built, grid: Any, block: Any, arguments: Any) -> Callable[[], object]:
        function = self.function(built)
        packed = tuple(
            each.data.ptr if isinstance(each, self.cupy.ndarray) else each for each in arguments
        )
        return lambda: function(grid, block, packed)

    def seconds(self, launch: Callable[[], object], samples: int = QUICK) -> float:
        return float(self._measure.measure([launch], samples=samples, timer=self.clock).median)

    def ceiling(self) -> float:
        return float(self._measure.copy_ceiling(1 << 29, library="torch", samples=SAMPLES)[0])

    def free(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()
        self.torch.cuda.empty_cache()


def structure(values: Any) -> Any:
    """Weights as an argument that is passed by value."""
    flat = np.ascontiguousarray(values, np.float32).reshape(-1)
    return flat.view(np.dtype([("at", np.float32, (flat.size,))]))[0:1].reshape(())


def compare(gpu: Gpu, out: Any, wanted: Any) -> float:
    """The largest difference relative to the largest number; NaN (never written) is infinite."""
    worst = float(gpu.cupy.abs(out.astype(wanted.dtype) - wanted).max())
    scale = float(gpu.cupy.abs(wanted).max())
    return worst / scale if math.isfinite(worst) else math.inf


class Contest:
    """Measures competitors on one problem: each is checked, timed quickly, the best timed again."""

    def __init__(self, gpu: Gpu, error: Callable[[], float], poison: Callable[[], None]) -> None:
        self.gpu, self.error, self.poison = gpu, error, poison
        self.rows: dict[str, dict[str, Any]] = {}
        self._best: dict[str, Callable[[], object]] = {}

    def enter(
        self,
        group: str,
        label: str,
        launch: Callable[[], object],
        deliver: Callable[[Any], object] = lambda made: made,
        **facts: Any,
    ) -> None:
        """`deliver` puts a result made elsewhere where it is checked; that is not timed."""
        self.poison()
        deliver(launch())
        error = self.error()
        row = {"setting": label, "error": error, **facts}
        group_row = self.rows.setdefault(group, {"seconds": math.inf, "tried": []})
        if not error <= 1e-5:
            group_row["tried"].append({**row, "wrong": True})
            print(f"  WRONG {group} {label}: {error}", flush=True)
            return
        row["seconds"] = self.gpu.seconds(launch)
        group_row["tried"].append(row)
        if row["seconds"] < group_row["seconds"]:
            group_row.update(row)
            self._best[group] = launch

    def attempt(self, group: str, make: Callable[[], tuple[Any, ...]]) -> None:
        """A competitor that may not be there at all; `make` gives what `enter` takes."""
        _, failed = attempted(lambda: self.enter(group, *make()))
        if failed:
            self.rows.setdefault(group, {"failure": failed[:300]})

    def finish(self) -> dict[str, Any]:
        for group, launch in self._best.items():
            self.rows[group]["seconds"] = self.gpu.seconds(launch, SAMPLES)
            self.rows[group]["again"] = self.gpu.seconds(launch, SAMPLES)
        self.rows.setdefault("ours", {"seconds": math.inf})
        return self.rows


# --- the three problems ---------------------------------------------------------------------------


def measure_1d(gpu: Gpu, taps: int, built: list[Built], ceiling: float) -> dict[str, Any]:
    cp, torch = gpu.cupy, gpu.torch
    x = cp.random.standard_normal(LINE + taps - 1, dtype=cp.float32)
    w = np.random.default_rng(taps).standard_normal(taps).astype(np.float32)
    y = cp.empty(LINE, cp.float32)
    wanted = cp.zeros(LINE, cp.float64)
    for j in range(taps):
        wanted += float(w[j]) * x[j : j + LINE]
    contest = Contest(gpu, lambda: compare(gpu, y, wanted), lambda: y.fill(cp.nan))
    for each in built:
        launch = gpu.ours(each, LINE, x, w, y)
        contest.enter("ours", each.job.label, launch, registers=each.registers)

    def by_torch() -> tuple[Any, ...]:
        line, weights = torch.from_dlpack(x)[None, None], torch.from_numpy(w).cuda()[None, None]
        into = torch.from_dlpack(y)
        return (
            "conv1d",
            lambda: torch.nn.functional.conv1d(line, weights),
            lambda made: into.copy_(made[0, 0]),
        )

    contest.attempt("torch", by_torch)
    rows = contest.finish()
    moved = 4 * (2 * LINE + taps - 1)
    floors = {"memory": moved / ceiling, "fma": taps * LINE / FMA_RATE}
    share = floors["memory"] / rows["ours"]["seconds"]
    return {
        "rows": rows,
        "floors": floors,
        "of_ceiling": share,
        "target": 0.85,
        "met": share >= 0.85,
    }


def measure_2d(gpu: Gpu, taps: int, built: list[Built], ceiling: float) -> dict[str, Any]:
    cp = gpu.cupy
    image = cp.random.standard_normal((SIDE, SIDE), dtype=cp.float32)
    w = np.random.default_rng(taps).standard_normal((taps, taps)).astype(np.float32)
    out = cp.empty_like(image)
    padded = cp.pad(image, taps // 2, mode="edge").astype(cp.float64)
    wanted = cp.zeros((SIDE, SIDE), cp.float64)
    for r in range(taps):
        for c in range(taps):
            wanted += float(w[r, c]) * padded[r : r + SIDE, c : c + SIDE]
    del padded
    contest = Contest(gpu, lambda: compare(gpu, out, wanted), lambda: out.fill(cp.nan))
    for each in built:
        if each.kernel is not None:
            launch = gpu.ours(each, SIDE, SIDE, image, w.reshape(-1), out)
            contest.enter("ours", each.job.label, launch, registers=each.registers)
            continue
        shape = dict(each.job.parameters)
        tall = shape["threads"] * shape["rows"]
        grid = (math.ceil(SIDE / shape["columns"]), math.ceil(SIDE / tall), 1)
        arguments = (np.int32(SIDE), np.int32(SIDE), image, structure(w), out)
        launch = gpu.text(each, grid, (shape["columns"], shape["threads"], 1), arguments)
        contest.enter("shared memory", each.job.label, launch, registers=each.registers)
    _others_2d(gpu, contest, taps, image, w, out)
    rows = contest.finish()
    floors = {"memory": 8 * SIDE * SIDE / ceiling, "fma": taps * taps * SIDE * SIDE / FMA_RATE}
    return {"rows": rows, "floors": floors, **_verdict_2d(taps, rows, max(floors.values()))}


def _others_2d(gpu: Gpu, contest: Contest, taps: int, image: Any, w: Any, out: Any) -> None:
    cp, torch = gpu.cupy, gpu.torch

    def by_npp(weights: Any, label: str) -> tuple[Any, ...]:
        library = baselines.npp_library()
        if library is None:
            raise RuntimeError("libnppif is not installed")
        held = cp.asarray(np.ascontiguousarray(weights))
        launch = baselines.npp_filter(library, image, out, held, taps, gpu.properties)
        return label, lambda: (launch(), held)[0]

    def by_torch() -> tuple[Any, ...]:
        half = taps // 2
        grown = torch.nn.functional.pad(
            torch.from_dlpack(image)[None, None], (half,) * 4, mode="replicate"
        )
        weights, into = torch.from_numpy(w).cuda()[None, None], torch.from_dlpack(out)
        return (
            "conv2d of an image that is already padded",
            lambda: torch.nn.functional.conv2d(grown, weights),
            lambda made: into.copy_(made[0, 0]),
        )

    def by_triton(tall: int, wide: int, warps: int) -> tuple[Any, ...]:
        held, into = torch.from_numpy(w).cuda(), torch.from_dlpack(out)
        source = torch.from_dlpack(image)
        grid = (math.ceil(SIDE / wide), math.ceil(SIDE / tall))
        kernel = baselines.direct_convolution
        return f"{tall} x {wide}, {warps} warps", lambda: kernel[grid](
            source, held, into, SIDE, SIDE, taps=taps, tall=tall, wide=wide, num_warps=warps
        )

    # NPP takes the coefficients in reverse; were it otherwise, the other one would be right.
    contest.attempt("npp", lambda: by_npp(w[::-1, ::-1], "reversed coefficients"))
    if "failure" not in contest.rows["npp"] and not math.isfinite(contest.rows["npp"]["seconds"]):
        contest.attempt("npp", lambda: by_npp(w, "coefficients in order"))
    contest.attempt("torch", by_torch)
    for tall, wide, warps in baselines.TRITON_BLOCKS:
        contest.attempt("triton", partial(by_triton, tall, wide, warps))


def _verdict_2d(taps: int, rows: dict[str, Any], floor: float) -> dict[str, Any]:
    """Every competitor that ran and was right is compared; one that failed has no figure."""
    ours = rows["ours"]["seconds"]
    wanted = 1.2 if taps <= 5 else 3.0
    over = {
        name: rows[name]["seconds"] / ours
        for name in ("npp", "triton", "shared memory", "torch")
        if math.isfinite(rows.get(name, {}).get("seconds", math.inf))
    }
    failed = sorted(rows.keys() - over.keys() - {"ours"})
    beaten = all(ratio > 1 for ratio in over.values())
    return {
        "over_npp": over.get("npp"), "target_over_npp": wanted, "over_floor": ours / floor,
        "faster_than_all": beaten, "failed": failed,
        "met": over.get("npp", 0.0) >= wanted and ours <= 2 * floor and beaten,
    }  # fmt: skip


def measure_product(gpu: Gpu, degree: int, built: list[Built], ceiling: float) -> dict[str, Any]:
    cp = gpu.cupy
    batch = PRODUCT_BYTES // (16 * degree) - 1  # not a multiple of anything
    random = np.random.default_rng(degree)
    a, b = (
        cp.asarray(random.integers(0, 1 << 32, (batch, degree), dtype=np.uint32)) for _ in range(2)
    )
    c = cp.empty((batch, 2 * degree), cp.uint32)
    wanted = cp.zeros_like(c)
    for i in range(degree):
        wanted[:, i : i + degree] ^= a[:, i : i + 1] & b
    contest = Contest(gpu, lambda: float(cp.any(c != wanted)), lambda: c.fill(0xABCDEF01))
    for each in built:
        if each.kernel is not None:
            launch = gpu.ours(each, batch, a, b, c)
            contest.enter("ours", f"{each.job.entry} {each.job.label}", launch,
                          registers=each.registers)  # fmt: skip
            continue
        block = dict(each.job.parameters)["block"]
        grid = (math.ceil(batch / (block // 32)), 1, 1)
        launch = gpu.text(each, grid, (block, 1, 1), (np.int32(batch), a, b, c))
        contest.enter(each.job.entry, each.job.label, launch, registers=each.registers)
    rows = contest.finish()
    hand = [rows.get(name, {}).get("seconds", math.inf) for name in HAND_WRITTEN]
    # Both must have run and been right: the better of one is not the better of two.
    speedup = min(hand) / rows["ours"]["seconds"] if all(map(math.isfinite, hand)) else None
    words = batch * degree * degree
    return {
        "rows": rows, "batch": batch, "speedup": speedup, "met": (speedup or 0.0) >= 1.0,
        "floors": {"memory": 16 * degree * batch / ceiling, "logic": words / (FMA_RATE / 2)},
    }  # fmt: skip


# --- the run --------------------------------------------------------------------------------------

PARTS: dict[str, Any] = {
    "1d": (TAPS_1D, jobs_1d, measure_1d),
    "2d": (TAPS_2D, jobs_2d, measure_2d),
    "product": (DEGREES, jobs_product, measure_product),
}


def run(options: argparse.Namespace) -> dict[str, Any]:
    record: dict[str, Any] = earlier(options.out)
    wanted = [
        (part, size) for part in options.only for size in PARTS[part][0]
        if options.again or str(size) not in record.get(part, {})
    ]  # fmt: skip
    if not wanted:
        return record
    jobs = [each for part, size in wanted for each in PARTS[part][1](size)]
    built = build_all(jobs, options.processes)
    gpu = Gpu()
    record["device"] = gpu.properties["name"].decode()
    record |= {"date": date.today().isoformat(), "command": command()}
    record["ceiling"] = ceiling = gpu.ceiling()
    for part, size in wanted:
        started = time.time()
        mine = [each for each in built if each.job.section == part and _size(each) == size]
        row = PARTS[part][2](gpu, size, mine, ceiling)
        record.setdefault(part, {})[str(size)] = row
        gpu.free()
        save(options.out, record)
        print(f"{part} {size}: {time.time() - started:.1f} s", flush=True)
    record["ceiling_after"] = gpu.ceiling()
    save(options.out, record)
    return record


def _size(built: Built) -> int:
    parameters = dict(built.job.parameters)
    return int(parameters["taps" if "taps" in parameters else "degree"])


def show(record: dict[str, Any]) -> None:
    print(f"\n{record.get('device')}, copy ceiling {record.get('ceiling', 0) / 1e12:.2f} TB/s")
    for part in PARTS:
        for size, row in record.get(part, {}).items():
            cells = [
                f"{name} {1e3 * each['seconds']:.3f}" if "seconds" in each else f"{name} none"
                for name, each in row["rows"].items()
            ]
            floors = " ".join(f"{n} {1e3 * s:.3f}" for n, s in row["floors"].items())
            facts = " ".join(
                f"{name}={row[name]:.2f}"
                for name in ("of_ceiling", "over_npp", "over_floor", "speedup")
                if row.get(name) is not None
            )  # fmt: skip
            mark = "met" if row["met"] else "MISSED"
            print(f"{part} {size:>3} ms: {', '.join(cells)} | floors {floors} | {facts} {mark}")
            print(f"        ours: {row['rows']['ours'].get('setting', 'none was right')}")
    rows = [r for d, r in record.get("product", {}).items() if int(d) >= 64]
    speedups = [r["speedup"] for r in rows if r["speedup"] is not None]
    if speedups:
        print(f"products from degree 64: {np.mean(speedups):.2f} on average (wanted 1.06)")


# --- without a GPU --------------------------------------------------------------------------------


def dry() -> None:
    """Every entry on a tiny size on the simulator, every text of the baselines on the emulator."""
    for name, parameters, size in (
        ("convolution-1d", {"taps": 9}, {"n": 700}),
        ("convolution-2d", {"taps": 5, "rows": 6}, {"height": 9, "columns": 140}),
        ("product-pieces", {"degree": 96}, {"batch": 5}),
        ("product-registers", {"degree": 64}, {"batch": 5}),
        ("product-shared", {"degree": 64}, {"batch": 5}),
    ):
        entry = find(name)
        kernel = entry.kernel(**parameters)
        case = entry.case(kernel, size, **parameters)
        arguments = case.fresh()
        runtime.load(kernel, "simulator")(*arguments)
        assert entry.agrees(kernel, case, arguments), name
        print(f"{name} {parameters}: agrees on the simulator")
    _dry_convolution()
    _dry_products()
    jobs = [each for sizes, make, _ in PARTS.values() for each in make(sizes[0])]
    print(f"{sum(len(list(make(s))) for ss, make, _ in PARTS.values() for s in ss)} texts in a run")
    probe = build_all([jobs[0], next(each for each in jobs if each.section == "2d")], 2)
    for each, size in zip(probe, ({"n": 300}, {"height": 3, "columns": 130}), strict=True):
        assert each.kernel is not None
        assert not each.spills, each
        entry, parameters = find(each.job.entry), dict(each.job.parameters)
        case = entry.case(each.kernel, size, **parameters)
        arguments = case.fresh()
        runtime.load(each.kernel, "simulator")(*arguments)
        assert entry.agrees(each.kernel, case, arguments), each.name
        print(f"{each.name} from another process: {each.registers} registers, agrees")


def _dry_convolution() -> None:
    entry, taps, height, columns = find("convolution-2d"), 5, 11, 70
    case = entry.case(entry.kernel(taps=taps), {"height": height, "columns": columns}, taps=taps)
    *_, image, w, out = case.fresh()
    for wide, threads, rows in baselines.TILES:
        text = baselines.shared_convolution(taps, wide, threads, rows)
        kernel = ptx.load(compile_cuda(text, ARCH).text).kernel("shared_convolution")
        grid = (math.ceil(columns / wide), math.ceil(height / (threads * rows)), 1)
        given = [np.int32(columns), np.int32(height), image, np.asarray(w).tobytes(), out]
        kernel.launch(grid, (wide, threads, 1), given)
        assert np.allclose(out, case.expected["out"], atol=1e-5), (wide, threads, rows)
    print("shared_convolution: agrees on the emulator")


def _dry_products() -> None:
    entry = find("product-registers")
    for form in HAND_WRITTEN:
        for degree in (32, 64, 160):
            case = entry.case(entry.kernel(degree=degree), {"batch": 5}, degree=degree)
            _, a, b, c = case.fresh()
            text = baselines.product(form, degree, 64, 1)
            kernel = ptx.load(compile_cuda(text, ARCH).text).kernel(form)
            kernel.launch((3, 1, 1), (64, 1, 1), [np.int32(5), a, b, c])
            assert np.array_equal(c, case.expected["c"]), (form, degree)
        print(f"{form}: agrees on the emulator")


def main() -> int:
    parser = arguments(__doc__, "conv_device.json", dry="tiny sizes, no GPU", resumes=True)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.dry:
        dry()
    else:
        show(run(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
