"""What the user's call finds without a GPU, measured afterwards beside what it finds with one.

    python -m bench.loopnest.without_gpu_device [--seconds 20] [--processes 16] [--only WORD]

Each row of `bench.loopnest.command_device` is `warploom.explore(..., model=True, seconds=…)` with
nothing fixed, in a process of its own that asks no GPU. Its answer is then compiled, checked
and timed. `of_the_best` is its time divided by that of the best that the measured search of that
row found (`command_device.json`); `off` how far its prediction was from its time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from bench.harness import RESULTS, arguments, environment, save
from bench.loopnest.command_device import RECORDS, ROWS

import warploom
from warploom.pipeline.drawn import made_again, made_of, packed
from warploom.pipeline.raced import quick_gpu
from warploom.pipeline.spaces import nest_by

ENOUGH = 1.3  # times the best


def found(name: str, seconds: float) -> dict[str, Any]:
    """The answer to one row, with what makes its space again."""
    given, since, used = ROWS[name].nest, time.monotonic(), time.process_time()
    asked = given if isinstance(given, tuple) else (given(), None)
    answer = warploom.explore(*asked, seconds=seconds, model=True, store=False)
    row = {
        "seconds": round(time.monotonic() - since, 1),
        "cpu_seconds": round(time.process_time() - used, 1),
        "looked_at": answer.evaluated,
    }
    if answer.candidate is None or answer.nest is None:
        return row
    return row | {
        "predicted_us": round(answer.nanoseconds / 1e3, 2),
        "by_the_time_model": answer.predicted,
        "strategy": answer.strategy,
        "schedule": answer.nest.schedule(answer.candidate),
        "recipe": answer.nest.recipe,
        "program": answer.program,
        "leaf": packed(answer.candidate, 0).hex(),
    }


def timed(row: dict[str, Any]) -> dict[str, Any]:
    """With its time on this machine's GPU."""
    recipe, leaf, program = row.pop("recipe"), row.pop("leaf"), row.pop("program")
    nest = nest_by(recipe)
    quick = quick_gpu(program)
    made = made_of(nest, made_again(nest, {"leaf": leaf}), 0, quick.arch, set())
    assert made is not None
    nanoseconds = quick.time(made, float("inf"))[0]
    return row | {"us": round(nanoseconds / 1e3, 2), "device": quick.device}


def compared(name: str, row: dict[str, Any]) -> dict[str, Any]:
    known = {each["name"]: each for each in json.loads((RESULTS / RECORDS).read_text())}
    if name not in known or "us" not in row:
        return row
    best = known[name]["best_us"]
    return row | {
        "best_us": round(best, 2),
        "of_the_best": round(row["us"] / best, 3),
        "off": round(row["predicted_us"] / row["us"] - 1, 3),
    }


def main() -> int:
    parser = arguments(__doc__, "without_gpu_device.json", only="rows with this word", dry="no GPU")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--processes", type=int, default=16)
    given: argparse.Namespace = parser.parse_args()
    names = [name for name in ROWS if given.only in name]
    with ProcessPoolExecutor(given.processes, max_tasks_per_child=1) as pool:
        answers = list(pool.map(found, names, [given.seconds] * len(names)))
    rows = {}
    for name, row in zip(names, answers, strict=True):
        if given.dry or "leaf" not in row:
            row = {
                key: value for key, value in row.items() if key not in ("recipe", "leaf", "program")
            }
        else:
            row = timed(row)
        rows[name] = compared(name, row)
        print(name, json.dumps(rows[name], ensure_ascii=False), flush=True)
    save(given.out, {"rows": rows, **environment()})
    return 1 if any(row.get("of_the_best", 9.0) > ENOUGH for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
