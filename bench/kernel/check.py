"""How long it takes to build and check a tiled product of 128 x 128, of depth 4096 and any depth.

    python -m bench.kernel.check [--out FILE]

Each kernel is built and checked once, in a process that has done nothing before but import.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from bench.common.kernel.kernels import tiled_product
from bench.harness import arguments, environment, save

from warploom.kernel.check import check
from warploom.kernel.ir import Kernel

KERNELS: dict[str, Callable[[], Kernel]] = {
    "depth 256": lambda: tiled_product(256),
    "depth 4096": lambda: tiled_product(4096),
    "depth 4096, loop kept": lambda: tiled_product(4096, unroll=False),
    "any depth": lambda: tiled_product(None),
}


def seconds(name: str) -> tuple[float, float]:
    """By the clock, and of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    check(KERNELS[name]())
    return round(time.perf_counter() - wall, 3), round(time.process_time() - cpu, 3)


def main() -> int:
    parser = arguments(__doc__, "kernel_check.json")
    given = parser.parse_args()
    rows = {}
    for name in KERNELS:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            wall, cpu = pool.submit(seconds, name).result()
        rows[name] = {"seconds": wall, "processor seconds": cpu}
        print(f"{name:22} {wall:6.3f} s ({cpu:.3f} of processor time)")
    record = {
        **environment(),
        "kernels": rows,
    }
    save(given.out, record)
    return 0 if all(row["processor seconds"] < 1.0 for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
