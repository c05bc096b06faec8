"""Stores of boxes by tensor maps, inside, across every edge and outside: what a GPU does.

    python -m bench.ptx.tensor_store_device [OUT.json]       on an H200, with cupy
    python -m bench.ptx.tensor_store_device --dry            the emulator alone

A store that the machine refuses ends its context, so each has a process of its own. Beside it is
what the emulator does: what lies inside is written, or the store is refused.
"""

from __future__ import annotations

import argparse
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, attempted, child, command, save
from bench.ptx.hopper_kernels import STORES, store_at
from bench.ptx.launches import on_device, on_emulator

TRIALS = [*product(STORES, (0, 64))]
TOGETHER = 4  # processes, each with a context


def outcome(number: int, there: bool) -> str:
    """Inside written and nothing else, something else written, or the machine's error."""
    at, swizzle = TRIALS[number]
    job, want = store_at(at, swizzle)
    args, failed = attempted(lambda: on_device(job) if there else on_emulator(job)[2])
    if args is None:
        return failed[:200]
    array = args[0] if isinstance(args[0], np.ndarray) else args[0].array
    return "inside is written" if np.array_equal(array.view(np.uint16), want) else "other bytes"


def apart(number: int) -> str:
    done = subprocess.run(
        child("--one", str(number)), cwd=ROOT,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout.strip() or f"ended by {done.returncode}: {done.stderr.strip()[-200:]}"


def main() -> None:
    parser = arguments(__doc__, "tensor_store_device.json", dry="the emulator alone")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one is not None:
        print(outcome(asked.one, there=True))
        return
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = ["" for _ in TRIALS] if asked.dry else list(pool.map(apart, range(len(TRIALS))))
    rows: list[dict[str, Any]] = []
    for number, ((at, swizzle), there) in enumerate(zip(TRIALS, found, strict=True)):
        rows.append(
            {"at": at, "swizzle": swizzle, "gpu": there, "emulator": outcome(number, False)}
        )
        print(rows[-1], flush=True)
    if not asked.dry:
        save(asked.out, {"command": command(), "stores": rows})


if __name__ == "__main__":
    main()
