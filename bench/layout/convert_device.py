"""Twelve conversions between register layouts in a loop: each of our ways beside Triton's PTX.

    python -m bench.layout.convert_device --out RESULTS.json    a machine with a GPU, torch or cupy
    python -m bench.layout.convert_device --dry                 the PTX emulator: results only

`results/layout_triton.json` has Triton's kernels; where a triton is installed, those that it makes
are measured as well. Same registers in and out, same blocks, same clock, samples taken in
iterations. The tuner's choice is kept in a store, here a temporary one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench.harness import RESULTS, ROOT, arguments, environment, save
from bench.layout.cases import LOOPED

from warploom.catalogue.conversion import looped_text
from warploom.catalogue.conversion_tuning import (
    ITERATIONS,
    WARPS,
    GpuWayBench,
    address,
    compiled_way,
    loop_input,
    loop_result,
    tune_way,
    ways_of,
)
from warploom.errors import WarploomError
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.formats.fragment_text import read_fragment
from warploom.ptx import load
from warploom.runtime.compile import compile_cuda
from warploom.search.outcome import Found
from warploom.search.storage.store import Store
from warploom.search.workers.farm import Farm

RECORDED = RESULTS / "layout_triton.json"
ROUNDS, SAMPLES = 7, 3
LOADS = (WARPS, 32)  # warps on a multiprocessor: the one that counts, and a busy one


def conversion_of(source: str, target: str, size: int, shape: tuple[int, ...]) -> Conversion:
    return convert(read_fragment(source, shape), read_fragment(target, shape), size)


def triton_numbers(
    size: int, shape: tuple[int, ...], iterations: int, blocks: int
) -> tuple[np.ndarray, np.ndarray]:
    """What Triton's kernel is given, and what it must give."""
    x = np.random.default_rng(1).integers(0, 256, int(np.prod(shape)) * size, np.uint8)
    last = np.bitwise_xor.reduce(np.bitwise_xor.accumulate(np.arange(iterations) % 256))
    return x, np.tile(x * np.uint8(iterations % 2) ^ np.uint8(last), blocks)


def dry() -> int:
    """Every kernel on the emulator, three iterations of two blocks."""
    iterations, blocks, bad = 3, 2, 0
    recorded = json.loads(RECORDED.read_text())["kernels"]
    for name, source, target, size, shape, warps in LOOPED:
        found = conversion_of(source, target, size, shape)
        for way, (word, one) in ways_of(found).items():
            values, x = loop_input(one, blocks)
            wanted, known = loop_result(one, values, iterations)
            y = np.full_like(wanted, 0xA5)
            kernel = load(compile_cuda(looped_text(one, word)).text).kernel("convert")
            kernel.launch(blocks, 32 * warps, [np.int32(blocks), np.int32(iterations), x, y])
            right = bool(((y == wanted) | (known == 0)).all())
            bad += not right
            print(f"{name:36} {way:40} {'right' if right else 'WRONG'}", flush=True)
        x, wanted = triton_numbers(size, shape, iterations, blocks)
        y = np.zeros_like(wanted)
        nothing = np.uint64(0)
        kernel = load(recorded[name]["ptx"]).kernel("loop")
        kernel.launch(blocks, 32 * warps, [x, y, np.int32(iterations), nothing, nothing])
        bad += not (y == wanted).all()
        print(f"{name:36} {'Triton':40} {'right' if (y == wanted).all() else 'WRONG'}", flush=True)
    return bad


def triton_launch(bench: GpuWayBench, ptx: str, size: int, shape: tuple[int, ...]) -> Any:
    """Triton's kernel on as many blocks as ours, after it gave the right result."""
    from warploom.runtime.driver import open_driver
    from warploom.runtime.gpu import Loaded
    from warploom.runtime.rig import on_gpu, on_host

    numbers, wanted = triton_numbers(size, shape, ITERATIONS, bench.blocks)
    x, y = on_gpu(numbers, bench.gpu), on_gpu(np.zeros_like(wanted), bench.gpu)
    function = Loaded(open_driver().load(ptx.encode() + b"\0", "loop", bench.gpu))
    threads = 32 * bench.conversion.source.warps
    arguments = [address(x), address(y), np.int32(ITERATIONS), 0, 0]
    launch = function.bind((bench.blocks, 1, 1), (threads, 1, 1), arguments)
    launch()
    if (on_host(y) != wanted).any():
        raise AssertionError("Triton's kernel gives something else")
    return lambda: (launch(), x, y)  # the arrays stay where they are meanwhile


def interleaved(launches: dict[str, Any]) -> dict[str, float]:
    """Nanoseconds of one iteration, each the median of samples that are taken in iterations."""
    from warploom.runtime.measure import clock, measure

    timer = clock()
    taken: dict[str, list[float]] = {name: [] for name in launches}
    for _ in range(ROUNDS):
        for name, launch in launches.items():
            taken[name] += measure([launch], samples=SAMPLES, warmup=1, timer=timer).samples
    return {name: median(each) / ITERATIONS * 1e9 for name, each in taken.items()}


def one(case: Any, tritons: dict[str, Any], store: Store, pool: Farm) -> dict[str, Any]:
    name, source, target, size, shape, _ = case
    found = conversion_of(source, target, size, shape)
    ways = ways_of(found)
    texts = {way: looped_text(each, word) for way, (word, each) in ways.items()}
    row: dict[str, Any] = {"name": name, "rule": found.chosen, "estimates": found.costs
                           if found.renames is None else {}}  # fmt: skip
    for warps in LOADS:
        bench = GpuWayBench(found, warps=warps)
        if warps == WARPS:
            tuned = tune_way(found, bench, store=store, pool=pool)
            row["measured_choice"] = (
                tuned.answer.best.candidate if isinstance(tuned, Found) else str(tuned)
            )
        ready = {way: pool.submit(compiled_way, texts, bench.arch, way) for way in texts}
        launches = {way: bench.launch(each.result()) for way, each in ready.items()}
        for version, kernels in tritons.items():
            launches[f"triton {version}"] = triton_launch(bench, kernels[name]["ptx"], size, shape)
        row[f"ns_with_{warps}_warps"] = {
            each: round(ns, 2) for each, ns in interleaved(launches).items()
        }
    times = row[f"ns_with_{WARPS}_warps"]
    ours = {way: times[way] for way in ways}
    theirs = times[next(each for each in times if each.startswith("triton"))]
    chosen = ours[row["measured_choice"]]
    row |= {
        "of_triton": round(chosen / theirs, 3),
        "of_our_fastest": round(chosen / min(ours.values()), 3),
        "rule_of_our_fastest": round(ours[found.chosen] / min(ours.values()), 3),
    }
    return row


def tritons_here(folder: Path) -> dict[str, Any]:
    """Kernels of the recorded Triton, and of the one that is installed."""
    recorded = json.loads(RECORDED.read_text())
    found = {recorded["triton"]: recorded["kernels"]}
    if find_spec("triton") is not None:
        out = folder / "triton.json"
        command = [sys.executable, str(ROOT / "bench/layout/triton_kernels.py"), str(out)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if out.exists():
            here = json.loads(out.read_text())
            found.setdefault(here["triton"], here["kernels"])
        else:
            print(f"the installed triton made nothing: {ran.stderr[-300:]}", flush=True)
    return found


def main() -> int:
    parser = arguments(__doc__, "layout_convert.json", dry="the emulator instead of a GPU")
    given = parser.parse_args()
    if given.dry:
        return 1 if dry() else 0
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        tritons = tritons_here(Path(folder))
        pool, store = Farm(), Store(Path(folder, "store.sqlite"))
        for case in LOOPED:
            try:
                rows.append(one(case, tritons, store, pool))
            except (WarploomError, AssertionError, KeyError) as error:
                rows.append({"name": case[0], "failed": f"{type(error).__name__}: {error}"[:300]})
            print(json.dumps(rows[-1]), flush=True)
            record = {"iterations": ITERATIONS, "tritons": list(tritons), "rows": rows,
                      "seconds": round(time.monotonic() - started),
                      **environment("NVIDIA H200")}  # fmt: skip
            save(given.out, record)
        pool.shutdown(cancel_futures=True)
    told = [row for row in rows if "of_triton" in row]
    print(f"{sum(row['of_triton'] <= 1.03 for row in told)} of {len(rows)} not slower than Triton, "
          f"{sum(row['of_triton'] < 0.97 for row in told)} faster; the choice is within 3 % of the "
          f"fastest on {sum(row['of_our_fastest'] <= 1.03 for row in told)}, the rule on "
          f"{sum(row['rule_of_our_fastest'] <= 1.03 for row in told)}")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
