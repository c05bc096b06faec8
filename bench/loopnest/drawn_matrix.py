"""Kernels of warp groups, drawn from their spaces: right on the emulator, and in every schedule?

    python -m bench.loopnest.drawn_matrix [--families …] [--draws 200] [--processes N] [--dry]

Each draw has a program of random type, majors, sizes and epilogue, and a tiling of its space. Its
kernel is made for a few tiles, none of which divides its axis. It is evaluated beside what the
program means, compiled to PTX, and run on the emulator with races followed: the bits have to be the
same. Then the proof of pipelines is asked whether all schedules give these.
Rows go to bench/results/drawn_matrix.json as they are made: a run that was stopped goes on. The
exit status is 1 if a draw is wrong. --dry evaluates, and neither compiles nor runs.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from concurrent.futures import as_completed
from typing import Any

from bench.common.loopnest.drawn import FAMILIES, looked_at
from bench.harness import arguments, attempted, earlier, environment, save

from warploom.search.workers.farm import Farm

RECORD = "drawn_matrix.json"
DRAWS = 200
Row = dict[str, Any]


def summed(rows: dict[str, Row]) -> Row:
    """What is said of a family."""
    seconds = [row["seconds"] for row in rows.values() if "seconds" in row]
    return {
        "drawn": len(rows),
        "same bits": sum(row.get("same", False) for row in rows.values()),
        "reach": dict(Counter(row["reach"] for row in rows.values() if "reach" in row)),
        "seconds": round(sum(seconds)),
        "longest": max(seconds, default=0),
        "wrong": {name: wrong(row) for name, row in rows.items() if wrong(row)},
    }


def wrong(row: Row) -> str:
    return str(row.get("failed", "") or row.get("wrong", ""))


def left(rows: dict[str, Row], draws: int) -> list[int]:
    """Those that were not drawn yet, or were wrong."""
    return [each for each in range(draws) if wrong(rows.get(str(each), {"failed": "none yet"}))]


def main() -> int:
    parser = arguments(__doc__, RECORD, dry="nothing is compiled", resumes=True)
    parser.add_argument("--families", nargs="*", default=[*FAMILIES], choices=[*FAMILIES])
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    record: Row = earlier(asked.out, again=asked.again)
    kept: dict[str, dict[str, Row]] = record.setdefault("rows", {})
    with Farm(asked.processes) as farm:
        # All families have their first draws before any has its last.
        waiting = sorted(
            (each, family)
            for family in asked.families
            for each in left(kept.setdefault(family, {}), asked.draws)
        )
        tasks = {farm.submit(looked_at, f, n, asked.dry): (f, str(n)) for n, f in waiting}
        for done in as_completed(tasks):
            family, number = tasks[done]
            row, failed = attempted(done.result)
            kept[family][number] = row or {"failed": failed[:500]}
            print(family, number, kept[family][number], flush=True)
            record["families"] = {name: summed(rows) for name, rows in kept.items() if rows}
            save(asked.out, record | environment())
    return 1 if any(each["wrong"] for each in record.get("families", {}).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
