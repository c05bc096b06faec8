"""Runs a sketch with a budget in a process of its own, and says how far it went beyond it.

`python -m bench.common.sketch.measured` reads {"text", "seconds", "megabytes", "mode", "engine"} as
JSON from standard input and writes a record to standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bench.harness import ROOT

from warploom.search.budget import Budget, BudgetSpentError, peak_megabytes
from warploom.search.outcome import Impossible
from warploom.sketch.front import load_text
from warploom.sketch.synth.solve import synthesize


@dataclass
class Clock:
    """Wall and CPU time whenever the budget was asked.

    On a machine that does other things the wall runs on while we wait, so lateness is the smaller
    of both: what passed after the deadline, and what was computed since the last look before it.
    """

    started: float = field(default_factory=time.monotonic)
    looks: list[tuple[float, float]] = field(default_factory=list)

    def look(self, *_: object) -> None:
        self.looks.append((time.monotonic() - self.started, time.process_time()))

    def late(self, seconds: float) -> float:
        self.look()
        wall, cpu = self.looks[-1]
        before = [spent for at, spent in self.looks if at <= seconds]
        return min(wall - seconds, cpu - before[-1]) if before else wall - seconds

    def longest_silence(self) -> float:
        """CPU seconds between two looks."""
        times = [spent for _, spent in self.looks]
        return max((b - a for a, b in pairwise(times)), default=0.0)


def run(
    text: str,
    seconds: float | None,
    megabytes: float | None,
    mode: str = "all",
    engine: str = "default",
) -> dict[str, Any]:
    clock = Clock()
    clock.look()
    budget = Budget(seconds, megabytes, clock.look)
    try:
        with budget.governing():
            program = load_text(text)
    except BudgetSpentError as spent:
        stopped, late = spent.reason.name, clock.late(seconds or 1e9)
        return {"stopped": stopped, "late": late, "peak": peak_megabytes(), "count": 0}
    clock.look()
    result = synthesize(program, budget=budget, mode=mode, engine=engine, on_progress=clock.look)
    return {
        "stopped": result.stopped.name if result.stopped else None,
        "late": clock.late(seconds or 1e9),
        "silence": clock.longest_silence(),
        "peak": peak_megabytes(),
        "count": result.fills.count,
        "listed": len(result.fills),
        "complete": result.complete,
        "impossible": isinstance(result.outcome, Impossible),
        "proved": [bool(verdict) for verdict in result.verdicts],
        "verdict": result.verdict.value,
        "cpu": time.process_time(),
    }


def apart(**request: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.common.sketch.measured"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


if __name__ == "__main__":
    json.dump(run(**json.load(sys.stdin)), sys.stdout)
