"""How long each usual pattern takes to solve: CPU seconds from its name to its answer.

    python -m bench.layout.speed [--only WORD] [--against CHECKOUT] [--repeats N]

All names are solved in the class that the command takes, in one process that has solved one pattern
before, and the least of a few repeats counts. With another checkout its times stand beside: both
processes take turns, name by name. `every-bits` is an open question of 252 accesses: it is asked
for 10 seconds, and stands apart.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.harness import ROOT, arguments, child, environment, save

from warploom.layout.patterns.named import FIFTY, pattern
from warploom.layout.solver.choose import best_way
from warploom.layout.solver.front import usual_class
from warploom.search.budget import Budget

MOST = 0.3  # CPU seconds of a pattern
HARD = "every-bits:32x32:f32"
NAMES = (
    *dict.fromkeys(FIFTY),
    "fft:1x4096:f32", "fft:1x4096:c64", "reduction:1x4096:f32", "bitonic:1x4096:f32",
    "but-two:4x32", "strides:64x64:f32", "blocks:64x64", "mma-b:64x64:f16", "mma-a:64x64:bf16",
    "transpose:128x128:f32", "transpose:256x256:f32", "columns:128x128:f32",
    "ldmatrix:128x128:f16", "ldmatrix-trans:128x64:f16", "ldmatrix-tma:64x80:f16",
    "stmatrix:64x64:f16", "blocked:64x64:f32", "stencil:34x34:f32:points=9", "stencil:66x66:f32",
    "halo:66x34:f32", "histogram:1x256:u32",
)  # fmt: skip


def solved(name: str, seconds: float | None = None) -> dict[str, Any]:
    """CPU seconds of one pattern, and what came out."""
    started = time.process_time()
    problem = pattern(name)
    budget = None if seconds is None else Budget(seconds=seconds)
    front = best_way(problem, (), usual_class(problem), budget=budget).best.front
    return {
        "cpu_seconds": round(time.process_time() - started, 3),
        "outcome": type(front.asked.outcome).__name__.lower(),
        "cost": None if front.best is None else float(front.best.cost),
    }


def serve() -> None:
    """Names come in, one a line; the time of each goes out."""
    solved(NAMES[0])
    for line in sys.stdin:
        print(solved(line.strip())["cpu_seconds"], flush=True)


class Other:
    """The same names in a process whose package is another checkout's."""

    def __init__(self, checkout: Path) -> None:
        self._process = subprocess.Popen(
            child("--serve"), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": f"{checkout / 'src'}:{ROOT}"},
        )  # fmt: skip

    def seconds(self, name: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = arguments(__doc__, "layout_speed.json", only="names with this word alone")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help="answer names from standard input")
    asked = parser.parse_args()
    if asked.serve:
        serve()
        return
    other = None if asked.against is None else Other(asked.against)
    solved(NAMES[0])
    rows: dict[str, Any] = {}
    for name in (each for each in NAMES if asked.only in each):
        turns, before = [], []
        for _ in range(asked.repeats):
            turns.append(solved(name))
            before += [] if other is None else [other.seconds(name)]
        rows[name] = min(turns, key=lambda row: float(row["cpu_seconds"]))
        rows[name] |= {"before": min(before)} if before else {}
        print(f"{name:34} {rows[name]['cpu_seconds']:6.3f} {rows[name].get('before', '')}")
    if other is not None:
        other.end()
    slowest = max(rows, key=lambda name: float(rows[name]["cpu_seconds"]))
    print(f"slowest: {slowest}, {rows[slowest]['cpu_seconds']} CPU s")
    if asked.only:
        return
    found = {"most": MOST, "slowest": slowest, "rows": rows, HARD: solved(HARD, 10.0)}
    save(asked.out, environment() | found)
    assert rows[slowest]["cpu_seconds"] <= MOST, slowest


if __name__ == "__main__":
    main()
