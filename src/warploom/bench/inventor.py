"""Tables 1 and 2 of the Swizzle Inventor paper, measured again, with its figures beside ours.

A row is synthesised at the size the published tool was run at, then taken to a warp of 32 lanes and
proved there. `rows` says what to measure, `measure` gives a record, `table` makes lines of records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from warploom.bench import inventor_sketches as sketches
from warploom.bench.synth import laid_out
from warploom.bench.weakened import HoleExprs, by_numbers, solve_naive
from warploom.index.show import show
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Outcome
from warploom.sketch.simt.function import SketchFunction
from warploom.sketch.simt.solve import Filled, reinstantiate, solve
from warploom.sketch.synth.result_json import Record

HEADER = (
    "benchmark",
    "space",
    "stmts",
    "CPU s",
    "wall s",
    "published s",
    "times",
    "verdict",
    "at 32 lanes",
)
ABLATION_HEADER = ("benchmark", "method", "answer", "CPU s", "published s")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of Table 1: `tts` is the published time to the first optimal solution, in seconds."""

    name: str
    sketch: SketchFunction
    tts: float
    sizes: Mapping[str, int] = field(default_factory=dict)
    large: Mapping[str, int] | None = None  # None: synthesised at 32 lanes already
    optimum: bool = False

    @property
    def limit(self) -> float:
        """A tenth of the published time, or a second where that is larger; never over a minute."""
        return min(60.0, max(1.0, self.tts / 10))


def _structures() -> Iterator[Row]:
    published = {
        "AoS-sum crc": (sketches.aos_sum, (1, 6, 1, 3, 4)),
        "AoS-store crc": (sketches.aos_crc, (1, 9, 1, 3, 10)),
        "AoS-store rcr": (sketches.aos_rcr, (1, 163, 6, 13, 23)),
    }
    for name, (sketch, seconds) in published.items():
        for size, tts in zip((1, 2, 3, 5, 7), seconds, strict=True):
            yield Row(f"{name} ({size})", sketch, tts, {"s": size})


def _all() -> tuple[Row, ...]:
    small, warp, wide = {"warp": 4}, {"warp": 32}, {"rows": 4, "warp": 8}
    return (
        Row("1D stencil reg", sketches.stencil_1d, 10),
        Row("1D conv reg", sketches.convolution_1d, 8),
        Row("2D conv reg 3x3", sketches.convolution_2d, 39, {"taps": 3}, {**wide, "taps": 3}),
        Row("2D conv reg 7x7", sketches.convolution_2d, 39, {"taps": 7}, {**wide, "taps": 7}),
        Row("Mult-32 shmem", sketches.multiplication_32_shared, 1, small, warp),
        Row("Mult-32 reg", sketches.multiplication_32, 1, small, warp),
        Row("Mult-64 shmem", sketches.multiplication_64_shared, 479, small, warp, optimum=True),
        Row("Mult-64 reg", sketches.multiplication_64, 985, small, warp, optimum=True),
        *_structures(),
    )


def rows(match: str = "") -> list[Row]:
    return [row for row in _all() if re.search(match, row.name)]


def measure(row: Row, seconds: float | None = 120.0) -> Record:
    """Synthesises a row, then re-instantiates it; times are to the first optimal fill."""
    wall, cpu = time.perf_counter(), time.process_time()
    traced = row.sketch.at(**row.sizes)
    recorded = time.process_time() - cpu
    outcome = solve(traced, optimum=row.optimum, budget=Budget(seconds))
    record: Record = {
        "name": row.name,
        "published": row.tts,
        "limit": row.limit,
        "outcome": type(outcome).__name__.lower(),
        "cpu_seconds": round(time.process_time() - cpu, 3),
    }
    if not isinstance(outcome, Found):
        return record | {"seconds": round(time.perf_counter() - wall, 3)}
    filled = outcome.answer
    return record | _described(filled, recorded) | _at_32(row, filled, seconds)


def _described(filled: Filled, recorded: float) -> Record:
    return {
        "seconds": round(recorded + filled.seconds, 3),
        "cpu_seconds": round(recorded + filled.cpu_seconds, 3),
        "space": filled.space,
        "statements": filled.statements,
        "optimal": filled.optimal,
        "verdict": filled.verification.verdict.value,
        "fill": {name: show(expr) for name, expr in filled.fill.items()},
    }


def _at_32(row: Row, filled: Filled, seconds: float | None) -> Record:
    if row.large is None:
        return {"verdict_32": filled.verification.verdict.value, "seconds_32": 0.0}
    started = time.perf_counter()
    outcome = reinstantiate(filled, row.sketch.at(**row.large), budget=Budget(seconds))
    spent = {"seconds_32": round(time.perf_counter() - started, 3)}
    if isinstance(outcome, Found):
        return {"verdict_32": outcome.answer.verification.verdict.value, **spent}
    return {"verdict_32": "no counterpart", **spent}


def table(records: Sequence[Record]) -> list[str]:
    lines = []
    for record in records:
        ours = record["cpu_seconds"]
        lines.append(
            (
                record["name"],
                str(record.get("space", "–")),
                str(record.get("statements", "–")),
                f"{ours:.2f}",
                f"{record['seconds']:.2f}",
                f"{record['published']:g}",
                f"{record['published'] / ours:.0f}" if ours else "–",
                str(record.get("verdict", record["outcome"])),
                str(record.get("verdict_32", "–")),
            )
        )
    return laid_out([HEADER, *lines])


# -- Table 2


@dataclass(frozen=True, slots=True)
class WeakenedRow:
    """A line of Table 2 for one weakened search; None is a published timeout (30 minutes)."""

    row: Row
    method: str
    published: str
    run: Callable[[Row, Budget], Outcome[HoleExprs]]


def ablations(match: str = "") -> list[WeakenedRow]:
    methods: dict[str, Callable[[Row, Budget], Outcome[HoleExprs]]] = {
        "naive 1": lambda row, budget: solve_naive(row.sketch.at(**row.sizes), 1, budget),
        "naive 2": lambda row, budget: solve_naive(row.sketch.at(**row.sizes), 2, budget),
        "no multisets": lambda row, budget: by_numbers(row.sketch.at(**row.sizes), 1, budget),
    }
    published = {
        "Mult-32 shmem": ("1", "11", "3"),
        "Mult-32 reg": ("2", "11", "3"),
        "AoS-sum crc (1)": ("1", "6", "1"),
        "AoS-sum crc (2)": ("(3)", "(680)", "18"),
        "AoS-sum crc (3)": ("(9)", "637", "–"),
        "AoS-sum crc (5)": ("(15)", "–", "749"),
        "AoS-sum crc (7)": ("(24)", "–", "–"),
    }
    return [
        WeakenedRow(row, method, seconds, methods[method])
        for row in rows(match)
        if row.name in published
        for method, seconds in zip(methods, published[row.name], strict=True)
    ]


def measure_ablation(ablation: WeakenedRow, seconds: float) -> Record:
    cpu = time.process_time()
    outcome = ablation.run(ablation.row, Budget(seconds))
    answer = {Found: "found", Impossible: "none exists"}.get(type(outcome), "undecided")
    return {
        "name": ablation.row.name,
        "method": ablation.method,
        "answer": answer,
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "published": ablation.published,
    }


def ablation_table(records: Sequence[Record]) -> list[str]:
    """Published times in parentheses are for showing that there is no fill."""
    names = ("name", "method", "answer", "cpu_seconds", "published")
    return laid_out([ABLATION_HEADER, *(tuple(str(r[n]) for n in names) for r in records)])
