"""Loop nests searched on a GPU: the best implementation of each computation beside cuBLAS.

    python -m bench.loopnest.device --out FOLDER [--seconds 25] [--only matmul-1024 axpy]
    python -m bench.loopnest.device --curves --out FOLDER   tree search against random with a bound
    python -m bench.loopnest.device --dry --only matvec     no GPU: they are tried, compiled

All cores draw implementations below the best time so far, lower, check and compile them; one
process checks and times them (inside a CUDA graph), so that the GPU is idle most of the time.
Structures that did well are drawn again with other sizes, sizes with other structures. A bound
that is above what was measured is noted as a violation. One record for each row, written when the
row is done. What was measured is kept: a later run measures only others and begins near the best;
`--enough 1000` ends a row as soon as so many were measured in all. Needs NumPy, PyTorch and NVRTC
or nvcc.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import RESULTS, arguments, attempted, save
from bench.loopnest.record import MEASURED, RECORDS, Found, Made, read, resumed
from bench.loopnest.rows import ROWS, Row

from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.errors import WarploomError
from warploom.index.ir import Const
from warploom.kernel.tensor import LEADING
from warploom.loopnest.decided import Implementation
from warploom.loopnest.evaluate import elements
from warploom.loopnest.lower import lower
from warploom.loopnest.target import everything, with_tensor_cores
from warploom.loopnest.trial import tried
from warploom.machine.record import H200
from warploom.pipeline.nest import Nest
from warploom.runtime.compile import compile_cuda
from warploom.search.branching.candidate import Candidates, Decision
from warploom.search.branching.decided import (
    decision_from,
    decision_record,
    decisions_of,
    independent,
)
from warploom.search.branching.descent import Descents, descents, weighted_descents
from warploom.search.branching.fix import fixed
from warploom.search.branching.problem import SpaceProblem

ARCH = "sm_90"
TARGETS = {
    None: everything(H200),
    "tf32": with_tensor_cores(H200),
    "bf16": with_tensor_cores(H200, "bf16"),
}
# What is drawn again in the neighbourhood of a good implementation.
AGAIN = (
    ("size",),
    ("size", "padding", "swizzle", "stages", "fill"),
    ("padding", "swizzle", "stages", "fill", "cache"),
    ("dim_kind", "thread_mapping", "order", "layout"),
    ("order",),
)
DRAWN = 6  # implementations of one task
NESTS: list[Nest] = []  # inherited by forked workers


# -- in workers ------------------------------------------------------------------------------------


def draw(variant: int, seed: int, cut: float, kept: list[dict[str, Any]] | None) -> list[Made]:
    """Random implementations, likely ones by the bound; near one, if its decisions are given."""
    nest, random = NESTS[variant], np.random.default_rng([variant, seed])
    decisions: tuple[Decision, ...] = nest.decisions
    if kept is not None:
        again = AGAIN[int(random.integers(len(AGAIN)))]
        taken = [decision_from(each) for each in kept if each["choice"] not in again]
        decisions = (*decisions, *taken)
    problem = SpaceProblem(nest.space.propagator, decisions, nest.space.branch)

    def weigh(candidates: Candidates) -> np.ndarray:
        bounds = nest.bound(candidates)
        if math.isinf(cut):
            return 1 / (bounds + 1)
        return np.maximum(cut - bounds, 0.0)

    return compiled_of(variant, weighted_descents(problem, DRAWN, random, weigh))


def drawn_before(good: dict[str, Any], seed: int) -> list[Made]:
    """What an earlier run found, as far as its record says; the rest of it is drawn."""
    nest, variant = NESTS[good["variant"]], good["variant"]
    decisions = list[Decision]()
    for each in good["decisions"]:
        try:
            decisions += (
                fixed(nest.space.propagator, [each])
                if isinstance(each, str)
                else [decision_from(each)]
            )
        except WarploomError:
            continue  # the space has changed
    problem = SpaceProblem(nest.space.propagator, (*nest.decisions, *decisions), nest.space.branch)
    found = descents(problem, DRAWN, np.random.default_rng([variant, seed]))
    return list({each.key: each for each in compiled_of(variant, found)}.values())


def compiled_of(variant: int, found: Descents) -> list[Made]:
    made = []
    for row in np.flatnonzero(found.arrived):
        try:
            made.append(compiled(variant, found.leaves, int(row)))
        except WarploomError as error:
            print("refused:", str(error)[:200], file=sys.stderr)
    return made


def compiled(variant: int, leaves: Candidates, row: int) -> Made:
    nest = NESTS[variant]
    kernel = lower(Implementation(nest.space, leaves, row))
    text = cuda(kernel)
    code = compile_cuda(text, ARCH, kind="cubin", contract=False).code
    grid = tuple(each.value for each in kernel.grid if isinstance(each, Const))
    follows = {choice.name for choice in nest.space.space.choices if choice.derived}
    taken = [
        decision_record(each)
        for each in decisions_of(nest.space.propagator, leaves, row)
        if each.choice not in follows
    ]
    bound = float(nest.bound(leaves.take(slice(row, row + 1)))[0])
    name = function_name(kernel, "cuda")
    return Made(variant, taken, bound, name, (grid[0], grid[1], grid[2]), kernel.block, text, code)


def compiled_leaf(leaf: Candidates) -> Made | None:
    try:
        return compiled(0, leaf, 0)
    except WarploomError:
        return None


# -- on the device ---------------------------------------------------------------------------------


class Bench:
    """Arrays on the device, the reference, and times in nanoseconds."""

    def __init__(self, row: Row, torch: Any) -> None:
        from warploom.runtime.driver import open_driver

        self.torch, self.driver = torch, open_driver()
        program = NESTS[0].program
        torch.manual_seed(1)
        sizes = elements(program, {})
        self.flat = {a.name: torch.randn(n, device="cuda") for a, n in sizes.items()}
        if row.tensor:
            for each in self.flat.values():
                each.view(torch.int32).bitwise_and_(int(LEADING[row.tensor].view(np.int32)))
        self.shaped = {
            a.name: torch.as_strided(self.flat[a.name], a.shape, a.strides) for a in program.arrays
        }
        self.numbers = {each.name: 0.5 + at for at, each in enumerate(program.parameters)}
        self.arguments = [self.flat[a.name].data_ptr() for a in program.arrays]
        self.arguments += [np.float32(each) for each in self.numbers.values()]
        self.output = row.output
        doubles = {name: each.double() for name, each in self.shaped.items()}
        self.wanted = row.meaning(torch, doubles, self.numbers)
        self.scale = float(self.wanted.abs().max())
        self.call = row.reference(torch, self.shaped, self.numbers)

    def loaded(self, made: Made) -> Callable[[], Callable[[], object]]:
        """A function that gives a launch on the stream of the moment."""
        from warploom.runtime.gpu import Loaded

        function = Loaded(self.driver.load(made.code, made.name, 0))

        def bound() -> Callable[[], object]:
            stream = self.torch.cuda.current_stream().cuda_stream
            return function.bind(made.grid, made.block, self.arguments, stream)

        return bound

    def is_right(self, launch: Callable[[], object]) -> bool:
        self.shaped[self.output].fill_(float("nan"))
        launch()
        self.torch.cuda.synchronize()
        off = (self.shaped[self.output].double() - self.wanted).abs().max()
        return bool(off <= 1e-4 * self.scale)

    def once(self, launch: Callable[[], object]) -> float:
        """A first look, launch included."""
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        launch()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) * 1e6

    def timed(self, make: Callable[[], Callable[[], object]], repeats: int = 3) -> float:
        """The median of some replays of a graph of many launches."""
        torch = self.torch
        once = self.once(make())
        count = max(1, min(50, int(5e5 / max(once - 2e4, 2e3))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch = make()
            for _ in range(count):
                launch()
        graph.replay()
        torch.cuda.synchronize()
        return float(np.median([self.once(graph.replay) for _ in range(repeats)])) / count


# -- one row ---------------------------------------------------------------------------------------


def search(
    row: Row, given: argparse.Namespace, torch: Any, found: Found, before: dict[str, Any]
) -> dict[str, Any]:
    """`found` is what earlier runs measured, `before` the record of the last one."""
    start = time.monotonic()
    target = TARGETS[row.tensor]
    NESTS[:] = [Nest(v.program(), H200.rates, target, v.fixes) for v in row.variants]
    print(f"{row.name}: spaces in {time.monotonic() - start:.1f} s", flush=True)
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(given.workers, mp_context=context)
    seed = (given.seed + found.runs) * 10**6
    random = np.random.default_rng(seed)
    pending: dict[Future[list[Made]], bool] = {}  # whether they were good before
    bench = None
    first = [*([before] if "variant" in before else []), *found.stored]

    def submit() -> None:
        nonlocal seed
        seed += 1
        cut = min(found.best, found.reference * SLOWER)
        if first:
            pending[pool.submit(drawn_before, first.pop(), seed)] = True
            return
        if found.good and random.random() < NEAR:
            made = found.good[int(random.integers(len(found.good)))][1]
            variant, kept = made.variant, made.decisions
        else:
            variant, kept = int(random.integers(len(NESTS))), None
        pending[pool.submit(draw, variant, seed, cut, kept)] = False

    try:
        for _ in range(2 * given.workers):
            submit()
        if torch is not None:
            bench = Bench(row, torch)
            found.reference = bench.timed(lambda: bench.call, 5)
        while (
            pending
            and time.monotonic() - start < given.seconds
            and (any(pending.values()) or not 0 < given.enough <= found.measured)
        ):  # what was good before is measured again before a row ends
            for future in wait(pending, timeout=1, return_when=FIRST_COMPLETED).done:
                submit()
                contends = pending.pop(future)
                for made in future.result():
                    if contends or made.key not in found.seen:
                        found.seen.add(made.key)
                        measure(bench, found, made, time.monotonic() - start)
    finally:
        close(pool)
    found.seconds, found.runs = found.seconds + time.monotonic() - start, found.runs + 1
    return concluded(row, bench, found, given)


NEAR = 0.6  # of what is drawn, near something good
SLOWER = 4.0  # times the reference: nothing slower is drawn


def measure(bench: Bench | None, found: Found, made: Made, since: float) -> float:
    """Nanoseconds, infinite if it is wrong; without a device the bound, after a trial."""
    if bench is None:
        nest = NESTS[made.variant]
        leaf = nest.again({"decisions": made.decisions})
        trial = tried(nest.implementation(leaf))
        print(f"  {made.key} bound {made.bound / 1e3:.1f} µs, {made.block[0]} threads: {trial}")
        found.note(made, made.bound, since)
        return made.bound
    start = time.monotonic()
    bound = bench.loaded(made)
    launch = bound()
    if not bench.is_right(launch):
        found.wrong += 1
        return math.inf
    time_ = bench.once(launch)
    if time_ < 3 * min(found.best, 10 * found.reference) + 3e4:
        time_ = bench.timed(bound)
    found.note(made, time_, since)
    found.device_seconds += time.monotonic() - start
    return time_


def short(made: Made) -> list[dict[str, Any]]:
    nest = NESTS[made.variant]
    every = [decision_from(each) for each in made.decisions]
    return [
        decision_record(each) for each in independent(nest.space.propagator, every, nest.decisions)
    ]


def concluded(
    row: Row, bench: Bench | None, found: Found, given: argparse.Namespace
) -> dict[str, Any]:
    """The contenders again, side by side with the reference."""
    finals: list[tuple[float, Made]] = []
    reference = found.reference
    if bench is not None:
        contenders = [made for _, made in found.good[:4]]
        calls = [lambda: bench.call, *(bench.loaded(made) for made in contenders)]
        times = np.array([[bench.timed(each) for each in calls] for _ in range(5)])
        reference, *own = np.median(times, axis=0).tolist()
        finals = list(zip(own, contenders, strict=True))
    best = min(finals or found.good, key=lambda each: each[0], default=None)
    record: dict[str, Any] = {
        "name": row.name,
        "date": date.today().isoformat(),
        "reference": row.what,
        "reference_us": reference / 1e3,
        "measured": found.measured,
        "different_texts": len(found.seen),
        "wrong": found.wrong,
        "violations": found.violated,
        "worst_violations": found.violations[:5],
        "least_measured_over_bound": found.closest,
        "wanted_times_faster": row.wanted,
        "curve": found.curve,
        "seconds": found.seconds,
        "runs": found.runs,
        "device_seconds": found.device_seconds,
    }
    if best is not None:
        time_, made = best
        record |= {
            "best_us": time_ / 1e3,
            "bound_us": made.bound / 1e3,
            "times_faster": reference / time_,
            "holds": None if bench is None else bool(reference / time_ >= row.wanted),
            "variant": made.variant,
            "decisions": [str(decision_from(each)) for each in made.decisions
                          if each["choice"] in TOLD],
        }  # fmt: skip
        (given.out / f"{row.name}.cu").write_text(made.text)
    return record


# -- tree search and random search, equal budgets --------------------------------------------------


def curves(row: Row, given: argparse.Namespace, torch: Any) -> list[dict[str, Any]]:
    variant = row.variants[0]
    NESTS[:] = [Nest(variant.program(), H200.rates, TARGETS[row.tensor], variant.fixes)]
    pool = ProcessPoolExecutor(given.workers, mp_context=multiprocessing.get_context("fork"))
    list(pool.map(abs, range(given.workers)))
    bench = Bench(row, torch)
    records = []
    for engine in ("tree", "random"):
        for seed in range(3):
            found = Found(bench.timed(lambda: bench.call, 5))
            start = time.monotonic()

            def times(leaves: Candidates, found: Found = found, start: float = start) -> np.ndarray:
                rows = [leaves.take(slice(at, at + 1)) for at in range(len(leaves))]
                costs = np.full(len(rows), math.inf)
                for at, made in enumerate(pool.map(compiled_leaf, rows)):
                    if made is not None:
                        costs[at] = measure(bench, found, made, time.monotonic() - start)
                return costs

            from warploom.search.budget import Budget

            NESTS[0].search(
                engine, 10**6, measure=times, budget=Budget(given.seconds), seed=100 + seed
            )
            records.append({"name": row.name, "date": date.today().isoformat(),
                            "engine": engine, "seed": seed,
                            "best_us": found.best / 1e3, "measured": found.measured,
                            "violations": found.violated, "curve": found.curve})  # fmt: skip
            print(records[-1], flush=True)
    close(pool)
    return records


def close(pool: ProcessPoolExecutor) -> None:
    """What is still being drawn is not waited for."""
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


# -- the whole -------------------------------------------------------------------------------------


def main() -> None:
    parser = arguments(__doc__, dry="no GPU")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=25.0, help="of each row")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--enough", type=int, default=0, help="measured, in all runs of a row")
    parser.add_argument("--resume", type=Path, default=RESULTS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--curves", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch: Any = None
    if not given.dry:
        torch = import_module("torch")
        torch.backends.cuda.matmul.allow_tf32 = False
    names: Sequence[str] = given.only or list(ROWS)
    folders = [given.out, given.resume]
    curves_file = given.out / "explore_curves.json"
    if given.curves:
        records = read([given.out], curves_file.name, [])
        for name in names:
            records += curves(ROWS[name], given, torch)
            save(curves_file, records, indent=None)
        return
    records, kept = read(folders, RECORDS, []), read(folders, MEASURED, {})
    for name in names:
        before: dict[str, Any] = next((each for each in records if each["name"] == name), {})
        found = resumed(kept[name]) if name in kept else Found(math.inf)
        if 0 < given.enough <= found.measured:
            continue
        record, failed = attempted(search, ROWS[name], given, torch, found, before)
        if record is None:
            print(f"{name}: {failed}", flush=True)
            continue
        records = [each for each in records if each["name"] != name] + [record]
        kept[name] = found.kept(short)
        save(given.out / RECORDS, records, indent=None)
        save(given.out / MEASURED, kept, indent=None)
        print(json.dumps({k: v for k, v in record.items() if k not in LONG}), flush=True)


# The order of loops, which is most of what is decided, is seen in the text of the kernel.
TOLD = ("size", "dim_kind", "stages", "fill", "padding", "swizzle", "layout", "cache")
LONG = ("decisions", "curve", "worst_violations")

if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads that hand out tasks may wait for ever for workers that were ended
