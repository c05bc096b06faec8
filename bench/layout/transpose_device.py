"""Square matrices transposed on a GPU, beside a copy in the same run.

    python -m bench.layout.transpose_device --out RESULTS.json            the default of every size
    python -m bench.layout.transpose_device --space --out RESULTS.json    and the whole space first
    python -m bench.layout.transpose_device --dry                         some, on the PTX emulator

Every kernel has the solver's layout of shared memory (`layout_transpose.py`). What is left after
each round is measured longer: all settings in two orders of blocks, then the best in all orders,
then the best of those and the default, in iterations with the copies. Results are compared with
NumPy's way to say it, on the GPU, before a setting counts.
"""

from __future__ import annotations

import json
import time
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from bench.harness import arguments, attempted, environment, save
from bench.layout.transpose import (
    ORDERS,
    Order,
    Setting,
    Transposition,
    built,
    default,
    settings,
    transposition,
)

from warploom.runtime.compile import compile_cuda
from warploom.search.workers.farm import Farm

SIZES = (16384, 8192)
KINDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
COARSE: tuple[Order, ...] = ((0, 1, 0), (16, 16, 0))
SECOND, THIRD = 10, 4  # settings that go on
COPIES = {
    "one vector": "  y[i] = x[i];\n",
    "past the cache": "  __stcs(y + i, __ldcs(x + i));\n",
}
COPY = (
    'extern "C" __global__ void copy(const uint4* x, uint4* y) {{\n'
    "  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n{}}}\n"
)


def dry(every: int = 40) -> int:
    """One in so many settings on the emulator, and the defaults."""
    from warploom.ptx import load

    bad = 0
    for size in KINDS:
        tried = [(each, ORDERS[n % 3]) for n, each in enumerate(settings(size)[::every])]
        tried.append(default(size))
        for setting, order in tried:
            made, n = transposition(setting), 512
            x = np.random.default_rng(size).integers(0, 255, (n, n * size), np.uint8)
            x = x.view(KINDS[size])
            y = np.zeros_like(x).ravel()
            few = (min(order[0], 2), min(order[1], 2), min(order[2], 2))
            given = [np.int32(each) for each in made.arguments(n, n, few)]
            kernel = load(compile_cuda(made.text).text).kernel("transpose")
            kernel.launch((made.grid(n, n), 1, 1), setting.threads, [x.ravel(), y, *given])
            right = bool((y.reshape(n, n) == x.T).all())
            bad += not right
            said = "right" if right else "WRONG"
            print(f"{setting.name} {order}, {made.wavefronts} wavefronts: {said}", flush=True)
    return bad


class Bench:
    """One matrix on the GPU and everything that is launched on it."""

    def __init__(self, size: int, n: int) -> None:
        import cupy as cp

        from warploom.runtime.measure import clock

        self.cp, self.size, self.n, self.timer = cp, size, n, clock("cupy")
        self.x = cp.random.randint(0, 255, (n, n * size), dtype=cp.uint8).view(KINDS[size])
        self.y = cp.zeros_like(self.x)
        self.wrong: dict[Setting, bool] = {}
        self.functions: dict[Setting, Any] = {}

    def launch(self, made: Transposition, code: bytes, order: Order) -> Any:
        from warploom.runtime.driver import open_driver
        from warploom.runtime.gpu import Loaded

        setting = made.setting
        if setting not in self.functions:
            self.functions[setting] = Loaded(open_driver().load(code, "transpose", 0))
        given = [np.int32(each) for each in made.arguments(self.n, self.n, order)]
        arguments = [self.x.data.ptr, self.y.data.ptr, *given]
        grid = made.grid(self.n, self.n), 1, 1
        return self.functions[setting].bind(grid, (setting.threads, 1, 1), arguments)

    def right(self, launch: Any) -> bool:
        self.y.fill(0)
        launch()
        return bool((self.y == self.x.T).all())

    def copies(self) -> dict[str, Any]:
        blocks, arguments = (self.x.nbytes // 16 // 256,), (self.x, self.y)
        found = {"memcpy": lambda: self.cp.copyto(self.y, self.x)}
        for name, body in COPIES.items():
            kernel = self.cp.RawKernel(COPY.format(body), "copy")
            found[name] = partial(kernel, blocks, (256,), arguments)
        return found

    def seconds(self, launch: Any, samples: int, warmup: int = 1) -> list[float]:
        from warploom.runtime.measure import measure

        taken = measure([launch], samples=samples, warmup=warmup, timer=self.timer)
        return list(taken.samples)


def explored(size: int, pool: Farm, arch: str, until: float) -> list[Setting]:
    """The settings that were best on the largest matrix, the best first."""
    kinds: dict[Setting, list[Setting]] = {}  # those of one layout are built together
    for each in settings(size):
        kinds.setdefault(each.placed, []).append(each)
    work = [pool.submit(built, each, arch) for each in kinds.values()]
    bench, found = Bench(size, SIZES[0]), []
    for future in work:
        for made, code in future.result() if time.monotonic() < until else []:
            for order in COARSE:
                launch = bench.launch(made, code, order)
                found.append((median(bench.seconds(launch, 3)), made.setting))
        future.cancel()
    ranked = [setting for _, setting in sorted(found)]
    print(f"{size} bytes: {len(found)} trials, best {sorted(found)[:1]}", flush=True)
    return list(dict.fromkeys(ranked))[:SECOND]


def one(size: int, n: int, candidates: list[Setting], pool: Farm, arch: str) -> dict[str, Any]:
    """The best of the candidates in all orders, and the default, beside the copies."""
    bench = Bench(size, n)
    rule = default(size)
    made = {s: pool.submit(built, [s], arch) for s in dict.fromkeys([*candidates, rule[0]])}
    ready = {setting: future.result()[0] for setting, future in made.items()}
    trials = {}
    for setting in candidates:
        launches = {order: bench.launch(*ready[setting], order) for order in ORDERS}
        if not bench.right(launches[ORDERS[-1]]):
            print(f"WRONG: {setting.name}", flush=True)
            continue
        for order, launch in launches.items():
            trials[setting, order] = median(bench.seconds(launch, 5))
    best = sorted(trials, key=lambda each: trials[each])[:THIRD]
    last: dict[Any, Any] = {each: bench.launch(*ready[each[0]], each[1]) for each in [*best, rule]}
    right = all(bench.right(launch) for launch in last.values())
    last |= bench.copies()
    taken: dict[Any, list[float]] = {each: [] for each in last}
    for _ in range(6):
        for each, launch in last.items():
            taken[each] += bench.seconds(launch, 4)
    times = {each: median(all_of) * 1e3 for each, all_of in taken.items()}
    copies = {name: times[name] for name in ("memcpy", *COPIES)}
    ceiling = min(copies.values())

    def row(each: tuple[Setting, Order]) -> dict[str, Any]:
        setting, order = each
        return {"setting": setting.name, "order": list(order), "ms": times[each],
                "fraction": round(ceiling / times[each], 4),
                "wavefronts": ready[setting][0].wavefronts}  # fmt: skip

    return {
        "bytes": size, "n": n, "right": right, "copy_ms": copies, "default": row(rule),
        "fraction": row(rule)["fraction"], "best": [row(each) for each in best],
    }  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, "layout_transpose.json", dry="the emulator instead of a GPU")
    parser.add_argument("--space", action="store_true", help="try the whole space")
    parser.add_argument("--seconds", type=float, default=25, help="for the space of each size")
    given = parser.parse_args()
    if given.dry:
        return 1 if dry() else 0
    from warploom.runtime.driver import open_driver

    started = time.monotonic()
    pool, rows, arch = Farm(), [], open_driver().architecture(0)
    for size in (4, 8, 2, 1):
        candidates: list[Any] | None = []
        if given.space:
            until = time.monotonic() + given.seconds
            candidates, failed = attempted(explored, size, pool, arch, until)
            if failed:  # the defaults are measured all the same
                print(f"{size} bytes: {failed[:300]}", flush=True)
        for n in SIZES:
            row, failed = attempted(one, size, n, candidates or [], pool, arch)
            rows.append(row or {"bytes": size, "n": n, "failed": failed})
            print(json.dumps(rows[-1]), flush=True)
            seconds = round(time.monotonic() - started)
            record = {"space": given.space, "rows": rows, "seconds": seconds}
            record |= environment("NVIDIA H200")
            save(given.out, record)
    pool.shutdown(cancel_futures=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
