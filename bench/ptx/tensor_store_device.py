"""Stores of boxes by tensor maps, inside, across every edge and outside: what a GPU does.

    python -m bench.ptx.tensor_store_device [OUT.json]       on an H200, with cupy
    python -m bench.ptx.tensor_store_device --dry            the emulator alone

A store that the machine refuses ends its context, so each has a process of its own. Beside it is
what the emulator does: what lies inside is written, or the store is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import RESULTS
from bench.ptx.hopper_kernels import STORES, store_at
from bench.ptx.launches import on_device, on_emulator

OUT = RESULTS / "tensor_store_device.json"
TRIALS = [*product(STORES, (0, 64))]
TOGETHER = 4  # processes, each with a context


def outcome(number: int, there: bool) -> str:
    """Inside written and nothing else, something else written, or the machine's error."""
    at, swizzle = TRIALS[number]
    job, want = store_at(at, swizzle)
    try:
        args = on_device(job) if there else on_emulator(job)[2]
    except Exception as error:  # noqa: BLE001 - which one is the answer
        return f"{type(error).__name__}: {error}"[:200]
    array = args[0] if isinstance(args[0], np.ndarray) else args[0].array
    return "inside is written" if np.array_equal(array.view(np.uint16), want) else "other bytes"


def apart(number: int) -> str:
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(number)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout.strip() or f"ended by {done.returncode}: {done.stderr.strip()[-200:]}"


def main() -> None:
    if "--one" in sys.argv:
        print(outcome(int(sys.argv[-1]), there=True))
        return
    dry = "--dry" in sys.argv
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = ["" for _ in TRIALS] if dry else list(pool.map(apart, range(len(TRIALS))))
    rows: list[dict[str, Any]] = []
    for number, ((at, swizzle), there) in enumerate(zip(TRIALS, found, strict=True)):
        rows.append(
            {"at": at, "swizzle": swizzle, "gpu": there, "emulator": outcome(number, False)}
        )
        print(rows[-1], flush=True)
    if not dry:
        named = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
        record = {"command": "python -m bench.ptx.tensor_store_device", "stores": rows}
        (named[0] if named else OUT).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
