"""Thread-instructions a second of the emulator: a stencil, a transposition, a matrix product and
the Mandelbrot set.

python bench/ptx_speed.py [SIDE] [--against CHECKOUT] [--repeats N] [--json FILE]

Beside the rate of each kernel as C is how many times NumPy's that is, and how long a first launch
takes, compiling included. With another checkout, both are run in turns, each time in a process of
its own, and their best times are compared: `ratio` is this one's processor time over the other's,
below 1 is faster.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT / "tests" / "ptx" / "golden" / "nvcc" / "kernels.ptx"
MANDELBROT = ROOT / "tests" / "ptx" / "golden" / "nvrtc" / "mandelbrot.ptx"
MODES: dict[str, dict[str, Any]] = {
    "bounds checked": {}, "races too": {"races": True}, "counters": {"counters": True},
    "as C": {"engine": "c"},
}  # fmt: skip
TRIES = 3
SLOW = ("races too", "counters")  # of a long loop without memory these say nothing new


def launches(side: int) -> dict[str, tuple[tuple[int, int], tuple[int, int], list[Any]]]:
    """Grid, block and arguments; the product has a quarter of the side, as it has a loop."""
    a = np.random.default_rng(1).random((side, side), np.float32)
    n = side // 4
    small = np.ascontiguousarray(a[:n, :n])
    tiles = (side // 32, side // 32)
    weights = [np.float32(0.5), np.float32(0.125)]
    return {
        "stencil": (tiles, (32, 32), [a, np.zeros_like(a), side, side, *weights]),
        "transpose": (tiles, (32, 8), [a, np.zeros_like(a), side, side]),
        "matmul": ((n // 16, n // 16), (16, 16), [small, small.T.copy(), np.zeros_like(small), n]),
        "mandelbrot": (
            (side // 32, side // 8),
            (32, 8),
            [np.zeros((side, side), np.int32), side, side, 100],
        ),
    }


def measure(checkout: Path, side: int) -> dict[str, dict[str, float]]:
    """Processor seconds and thread-instructions of each kernel and mode: the best of some tries."""
    sys.path.insert(0, str(checkout / "src"))
    from warploom import ptx  # the checkout is used without being installed

    module = ptx.load(TEXT.read_text(), TEXT.name)
    picture = ptx.load(MANDELBROT.read_text(), MANDELBROT.name).kernel("mandelbrot")
    known = "engine" in inspect.signature(picture.launch).parameters  # not in older checkouts
    plain = {"engine": "numpy"} if known else {}
    found: dict[str, dict[str, float]] = {}
    for name, (grid, block, args) in launches(side).items():
        kernel = picture if name == "mandelbrot" else module.kernel(name)
        for mode, options in MODES.items():
            if ("engine" in options and not known) or (name == "mandelbrot" and mode in SLOW):
                continue
            times = []
            first = time.monotonic()
            for number in range(TRIES):
                started = time.process_time()
                report = kernel.launch(grid, block, args, **{**plain, **options})
                times.append(time.process_time() - started)
                first = time.monotonic() - first if number == 0 else first
            found[f"{name}, {mode}"] = {
                "instructions": report.thread_instructions, "seconds": min(times), "first": first
            }  # fmt: skip
    return found


def apart(checkout: Path, side: int) -> dict[str, dict[str, float]]:
    """`measure` in another process."""
    command = [sys.executable, __file__, str(side), "--only", str(checkout)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def compare(other: Path, side: int, repeats: int) -> list[dict[str, Any]]:
    """Both checkouts in turns; the best time of each row, and their ratio."""
    best: dict[str, list[float]] = {}
    for _ in range(repeats):
        mine, theirs = apart(ROOT, side), apart(other, side)
        for row in mine.keys() & theirs.keys():
            seconds = [mine[row]["seconds"], theirs[row]["seconds"]]
            best[row] = [min(pair) for pair in zip(seconds, best.get(row, seconds), strict=True)]
    return [
        {
            "row": row, "ratio": round(now / before, 3), "seconds": round(now, 3),
            "seconds_other": round(before, 3),
            "millions_a_second": round(mine[row]["instructions"] / now / 1e6, 1),
        }
        for row, (now, before) in best.items()
    ]  # fmt: skip


def commit_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def alone(asked: argparse.Namespace) -> None:
    """This checkout, with nothing compiled beforehand."""
    os.environ["WARPLOOM_CACHE"] = ""
    found = measure(ROOT, asked.side)
    rows = []
    for row, got in found.items():
        kernel, _, mode = row.partition(", ")
        rate, base = (x["instructions"] / x["seconds"] / 1e6
                      for x in (got, found[f"{kernel}, bounds checked"]))  # fmt: skip
        each = {"row": row, "millions_a_second": round(rate, 1)}
        if mode == "as C":
            each |= {"of_numpy": round(rate / base, 2), "first_launch_s": round(got["first"], 2)}
        rows.append(each)
        print("  ".join(f"{name} {value}" for name, value in each.items()))
    if asked.json is not None:
        record = stamp() | {"command": "python bench/ptx_speed.py --json FILE", "rows": rows}
        asked.json.write_text(json.dumps(record, indent=1) + "\n")


def stamp() -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("side", nargs="?", type=int, default=1024)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only is not None:
        print(json.dumps(measure(asked.only, asked.side)))
        return
    if asked.against is None:
        alone(asked)
        return
    rows = compare(asked.against, asked.side, asked.repeats)
    for each in rows:
        print(f"{each['row']:26} {each['millions_a_second']:7.1f} million a second, "
              f"{each['ratio']:.3f} of the other's time")  # fmt: skip
    if asked.json is not None:
        record = stamp() | {
            "command": f"python bench/ptx_speed.py {asked.side} --against CHECKOUT "
            f"--repeats {asked.repeats} --json FILE",
            "commit": commit_of(ROOT), "against": commit_of(asked.against), "rows": rows,
        }  # fmt: skip
        asked.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
