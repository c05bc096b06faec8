"""What `explore_device.py` keeps of a row: every implementation measured, and the best of them.

Two files: `explore_device.json` has a record for each row, `explore_measured.json` the texts that
were measured (a hash, the bound, the time; nanoseconds) and the decisions of the best, so that a
later run measures only others and goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ELITE = 12
STORED = 2  # of these, with all their decisions
RECORDS, MEASURED = "explore_device.json", "explore_measured.json"


@dataclass
class Made:
    """An implementation, ready to be measured."""

    variant: int
    decisions: list[dict[str, Any]]
    bound: float
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    text: str
    code: bytes

    @property
    def key(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass
class Found:
    """What was measured of a row, now and in earlier runs; `good` are the best of this run, the
    fastest first."""

    reference: float
    times: dict[str, tuple[float, float]] = field(default_factory=dict)  # bound, measured
    wrong: int = 0
    violations: list[Any] = field(default_factory=list)
    good: list[tuple[float, Made]] = field(default_factory=list)
    curve: list[tuple[float, int, float]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    runs: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0
    stored: list[dict[str, Any]] = field(default_factory=list)  # of earlier runs

    @property
    def measured(self) -> int:
        return len(self.times)

    @property
    def best(self) -> float:
        return self.good[0][0] if self.good else math.inf

    @property
    def violated(self) -> int:
        return sum(bound > time for bound, time in self.times.values())

    @property
    def closest(self) -> float:
        """The least of measured time over bound."""
        return min((time / bound for bound, time in self.times.values()), default=math.inf)

    def note(self, made: Made, time: float, since: float) -> None:
        self.times[made.key] = made.bound, time
        if made.bound > time:
            self.violations.append({"bound": made.bound, "measured": time, "key": made.key,
                                    "decisions": made.decisions})  # fmt: skip
        if time < min(self.best, self.curve[-1][2] if self.curve else math.inf):
            self.curve.append((self.seconds + since, self.measured, time))
        self.good = sorted([*self.good, (time, made)], key=lambda each: each[0])[:ELITE]

    def kept(self, short: Callable[[Made], list[dict[str, Any]]]) -> dict[str, Any]:
        """What a later run has to know; `short` are the decisions from which the others follow."""
        good = [
            {"time": time, "variant": made.variant, "decisions": short(made)}
            for time, made in self.good[:STORED]
        ]
        return {
            "measured": {
                key: [round(each, 1) for each in both] for key, both in self.times.items()
            },
            "wrong": self.wrong,
            "violations": self.violations[:5],
            "curve": self.curve,
            "runs": self.runs,
            "seconds": self.seconds,
            "device_seconds": self.device_seconds,
            "good": sorted([*good, *self.stored], key=lambda each: each["time"])[:STORED],
        }


def resumed(row: dict[str, Any]) -> Found:
    """As `kept` left it."""
    times = {key: (float(bound), float(time)) for key, (bound, time) in row["measured"].items()}
    return Found(
        math.inf, times, row["wrong"], list(row["violations"]),
        curve=[tuple(each) for each in row["curve"]], seen=set(times), runs=row["runs"],
        seconds=row["seconds"], device_seconds=row["device_seconds"], stored=list(row["good"]),
    )  # fmt: skip


def read(folders: list[Path], name: str, empty: Any) -> Any:
    """The first that is there."""
    files = [folder / name for folder in folders if (folder / name).exists()]
    return json.loads(files[0].read_text()) if files else empty
