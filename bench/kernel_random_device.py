"""Random kernels on a GPU against the evaluator; run from the repository's root.

    PYTHONPATH=src:. python bench/kernel_random_device.py --kernels 2000 --out bench/results/…

Writes one JSON record: how many kernels, on what, and every disagreement. Needs NumPy and CuPy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path

from tests.runtime.random_runs import TOGETHER, differences

from warploom.runtime.gpu import gpu_name


def one(first: int, count: int) -> list[str]:
    try:
        return differences(range(first, first + count), "cuda")
    except Exception as error:  # noqa: BLE001 - one failure must not end the run
        return [f"seeds {first} to {first + count - 1}: {error!r:.300}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("bench/results/kernel_random_device.json"))
    given = parser.parse_args()
    start, size = time.perf_counter(), TOGETHER["cuda"]
    firsts = range(0, given.kernels, size)
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        found = [
            each
            for result in pool.map(one, firsts, [min(size, given.kernels - f) for f in firsts])
            for each in result
        ]
    record = {
        "date": date.today().isoformat(),
        "command": " ".join(["python", *sys.argv]),
        "device": gpu_name(),
        "kernels": given.kernels,
        "disagreements": found,
        "seconds": round(time.perf_counter() - start, 1),
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
