"""Thread-instructions a second of the emulator: a stencil, a transposition, a matrix product and
the Mandelbrot set.

python -m bench.ptx.speed [SIDE] [--against CHECKOUT] [--repeats N] [--json FILE]
python -m bench.ptx.speed --flags=FLAGS [--text FOLDER]     as C alone, compiled with more flags
python -m bench.ptx.speed [SIDE] --cores N                  as C, on one core and on N in iterations

Beside the rate of each kernel as C is how many times NumPy's that is, and how long a first launch
takes, compiling included. With another checkout, each has a process and they take turns, launch by
launch, since machines change their speed every few seconds: `ratio` is the median, over all
iterations, of this one's processor time over the other's; below 1 is faster.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import ROOT, arguments, child, environment, save

from warploom import ptx

TEXT = ROOT / "tests" / "ptx" / "golden" / "nvcc" / "kernels.ptx"
MANDELBROT = ROOT / "tests" / "ptx" / "golden" / "nvrtc" / "mandelbrot.ptx"
MODES: dict[str, dict[str, Any]] = {
    "bounds checked": {}, "races too": {"races": True}, "counters": {"counters": True},
    "as C": {"engine": "c", "cores": 1},
    "races too, as C": {"engine": "c", "cores": 1, "races": True},
    "counters, as C": {"engine": "c", "cores": 1, "counters": True},
}  # fmt: skip
TRIES = 3
ITERATIONS = 4  # of each row, for each repeat
SLOW = (
    "races too",
    "counters",
    "races too, as C",
    "counters, as C",
)  # of a long loop without memory these say nothing new


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


class Launches:
    """The kernels in this process; a row is a kernel and a mode."""

    def __init__(self, side: int) -> None:
        module = ptx.load(TEXT.read_text(), TEXT.name)
        picture = ptx.load(MANDELBROT.read_text(), MANDELBROT.name).kernel("mandelbrot")
        self.known = set(inspect.signature(picture.launch).parameters)  # fewer in older checkouts
        self.given = launches(side)
        self.kernels = {
            name: picture if name == "mandelbrot" else module.kernel(name) for name in self.given
        }
        self.rows = [
            f"{name}, {mode}"
            for name in self.given
            for mode in MODES
            if "engine" in self.known or "engine" not in MODES[mode]
            if name != "mandelbrot" or mode not in SLOW
        ]

    def once(self, row: str) -> tuple[float, int]:
        """Processor seconds and thread-instructions of one launch."""
        name, _, mode = row.partition(", ")
        grid, block, args = self.given[name]
        options = {"engine": "numpy", **MODES[mode]}
        options = {name: value for name, value in options.items() if name in self.known}
        started = time.process_time()
        report = self.kernels[name].launch(grid, block, args, **options)
        return time.process_time() - started, report.thread_instructions

    def serve(self) -> None:
        """Rows come in, lines of JSON go out."""
        print(json.dumps(self.rows), flush=True)
        for line in sys.stdin:
            print(json.dumps(self.once(line.strip())), flush=True)


class Apart:
    """A checkout in a process of its own."""

    def __init__(self, checkout: Path, side: int) -> None:
        self._child = subprocess.Popen(
            child(str(side), "--serve"),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(checkout / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.rows: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(self._child.stdout.readline())

    def once(self, row: str) -> tuple[float, int]:
        assert self._child.stdin is not None
        print(row, file=self._child.stdin, flush=True)
        seconds, instructions = self._answer()
        return seconds, instructions

    def end(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


def compare(other: Path, side: int, repeats: int) -> list[dict[str, Any]]:
    """Both checkouts in iterations, who begins by turns, too; the first iteration of a row warms
    up."""
    mine, theirs = Apart(ROOT, side), Apart(other, side)
    found = []
    for row in (each for each in mine.rows if each in theirs.rows):
        mine.once(row), theirs.once(row)
        pairs = []
        for number in range(ITERATIONS * repeats):
            if number % 2:
                now, before = mine.once(row), theirs.once(row)
            else:
                before, now = theirs.once(row), mine.once(row)
            pairs.append((now[0], before[0]))
        ratios = sorted(ours / others for ours, others in pairs)
        seconds, seconds_other = (min(each) for each in zip(*pairs, strict=True))
        found.append({
            "row": row, "ratio": round(statistics.median(ratios), 3),
            "from": round(ratios[len(ratios) // 4], 3), "to": round(ratios[-len(ratios) // 4], 3),
            "seconds": round(seconds, 3), "seconds_other": round(seconds_other, 3),
            "millions_a_second": round(now[1] / seconds / 1e6, 1),
        })  # fmt: skip
    mine.end()
    theirs.end()
    return found


def measure(side: int) -> dict[str, dict[str, float]]:
    """Each kernel and mode of this checkout: the best of some tries, and the first."""
    here = Launches(side)
    found: dict[str, dict[str, float]] = {}
    for row in here.rows:
        started = time.monotonic()
        first = here.once(row)
        took = time.monotonic() - started
        tries = [first, *(here.once(row) for _ in range(TRIES - 1))]
        found[row] = {
            "instructions": first[1], "seconds": min(each for each, _ in tries), "first": took
        }  # fmt: skip
    return found


def commit_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def alone(asked: argparse.Namespace) -> None:
    """This checkout, with nothing compiled beforehand."""
    os.environ["WARPLOOM_CACHE"] = ""
    found = measure(asked.side)
    rows = []
    for row, got in found.items():
        kernel, _, mode = row.partition(", ")
        alike = mode.removesuffix("as C").removesuffix(", ") or "bounds checked"
        rate, base = (x["instructions"] / x["seconds"] / 1e6
                      for x in (got, found.get(f"{kernel}, {alike}", got)))  # fmt: skip
        each = {"row": row, "millions_a_second": round(rate, 1)}
        if mode.endswith("as C"):
            each |= {"of_numpy": round(rate / base, 2), "first_launch_s": round(got["first"], 2)}
        rows.append(each)
        print("  ".join(f"{name} {value}" for name, value in each.items()))
    if asked.json is not None:
        record = environment("", "--json", "FILE") | {"rows": rows}
        save(asked.json, record)


def compiled(asked: argparse.Namespace) -> None:
    """The kernels as C, with flags of a compiler beside the engine's own; their texts, if asked."""
    os.environ["WARPLOOM_CACHE"] = ""
    here = Launches(asked.side)
    from warploom.ptx.fast import engine  # which older checkouts do not have

    vars(engine)["FLAGS"] += tuple(asked.flags.split())
    for row in (each for each in here.rows if each.endswith(", as C") and each.count(",") == 1):
        tries = [here.once(row) for _ in range(2 * TRIES)]
        best = max(count / seconds / 1e6 for seconds, count in tries)
        print(f"{row:20} {best:7.0f} million a second with {asked.flags or 'no more'}", flush=True)
        if asked.text is not None:
            name = row.partition(",")[0]
            fast = here.kernels[name].fast.text
            (asked.text / f"{name}.c").write_text(fast.source if fast else "")


def shared_out(asked: argparse.Namespace) -> None:
    """The kernels as C on one core and on several, in iterations: by the clock, and processor
    time."""
    here = Launches(asked.side)
    for name, (grid, block, args) in here.given.items():
        kernel, took = here.kernels[name], []
        kernel.launch(grid, block, args, engine="c")
        for _ in range(ITERATIONS * asked.repeats):
            for cores in (1, asked.cores):
                before = time.monotonic(), time.process_time()
                report = kernel.launch(grid, block, args, engine="c", cores=cores)
                took.append((time.monotonic() - before[0], time.process_time() - before[1]))
        one, many = took[::2], took[1::2]
        wall, spent = (
            statistics.median(a[n] / b[n] for a, b in zip(one, many, strict=True)) for n in (0, 1)
        )
        print(f"{name:12} {report.cores} cores: {wall:.2f} times as fast, {1 / spent:.2f} of the "
              f"processor time; at best {min(many)[0]:.3f} s of {min(one)[0]:.3f} s")  # fmt: skip


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("side", nargs="?", type=int, default=1024)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flags", help="of the C compiler, beside the engine's own")
    parser.add_argument("--text", type=Path, help="a folder for the C texts")
    parser.add_argument("--cores", type=int, help="as C on one core and on so many")
    asked = parser.parse_args()
    if asked.cores is not None:
        shared_out(asked)
        return
    if asked.flags is not None:
        compiled(asked)
        return
    if asked.serve:
        Launches(asked.side).serve()
        return
    if asked.against is None:
        alone(asked)
        return
    rows = compare(asked.against, asked.side, asked.repeats)
    for each in rows:
        between = f"({each['from']:.2f} to {each['to']:.2f})"
        print(f"{each['row']:26} {each['millions_a_second']:7.1f} million a second, "
              f"{each['ratio']:.3f} of the other's time {between}")  # fmt: skip
    if asked.json is not None:
        said = f"{asked.side} --against CHECKOUT --repeats {asked.repeats} --json FILE"
        record = environment("", said) | {
            "commit": commit_of(ROOT), "against": commit_of(asked.against), "rows": rows,
        }  # fmt: skip
        save(asked.json, record)


if __name__ == "__main__":
    main()
