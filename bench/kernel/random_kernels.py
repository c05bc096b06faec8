"""Random kernels on every target against the evaluator, and broken ones, which must be refused.

    python -m bench.kernel.random_kernels [c ptx opencl broken cuda] [--processes N]

2,000 kernels for each target and 500 with one index moved out of range; `cuda` needs a GPU and
CuPy and is run when asked for. Results go to bench/results/kernel_random.json, and piece by piece
beside it: a run that was stopped goes on. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

from bench.common.kernel.random_runs import TOGETHER, looked_at
from bench.harness import arguments, attempted, earlier, environment, save

from warploom.search.workers.farm import Farm

KERNELS = {"c": 2000, "ptx": 2000, "opencl": 2000, "broken": 500, "cuda": 2000}
UNASKED = ("c", "ptx", "opencl", "broken")
SAVE_EVERY = 5.0  # seconds
PIECE = {"broken": 5} | TOGETHER  # kernels of one piece of work


def summed(what: str, pieces: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The record of one target."""
    in_order = [pieces[first] for first in sorted(pieces, key=int)]
    record: dict[str, Any] = {"kernels": sum(each["kernels"] for each in in_order)}
    if what == "broken":
        fates = sum((Counter(each["fates"]) for each in in_order), Counter[str]())
        record["fates"] = dict(sorted(fates.items()))
    else:
        record["disagreements"] = [text for each in in_order for text in each["disagreements"]]
    return record | {
        "lost": [text for each in in_order for text in each.get("lost", [])],
        "processor_seconds": round(sum(each["seconds"] for each in in_order)),
        **environment("", what),
    }


def wrong(record: dict[str, Any]) -> bool:
    return bool(
        record["lost"] or record.get("disagreements") or "accepted" in record.get("fates", {})
    )


def piece_of(done: Future[dict[str, Any]], what: str, first: str) -> dict[str, Any]:
    """What a piece of work gave; one that fails must not end the run."""
    found, failed = attempted(done.result)
    lost = [f"{what}: seeds from {first}: {failed[:300]}"]
    return found or {"kernels": 0, "fates": {}, "disagreements": [], "seconds": 0, "lost": lost}


def work(asked: argparse.Namespace, kept: dict[str, dict[str, Any]], started: Path) -> None:
    """Runs what is not kept yet, and keeps it."""
    with Farm(asked.processes) as farm:
        waiting = {}
        for what in asked.what:
            count = asked.kernels or KERNELS[what]
            for first in range(0, count, PIECE[what]):
                if str(first) not in kept.setdefault(what, {}):
                    size = min(PIECE[what], count - first)
                    waiting[farm.submit(looked_at, what, first, size)] = (what, str(first))
        saved = time.perf_counter()
        for done in as_completed(waiting):
            what, at = waiting[done]
            kept[what][at] = piece_of(done, what, at)
            if time.perf_counter() - saved > SAVE_EVERY:
                started.write_text(json.dumps(kept))
                saved = time.perf_counter()


def main() -> int:
    parser = arguments(__doc__, "kernel_random.json", resumes=True)
    parser.add_argument("what", nargs="*", choices=[*KERNELS, []])
    parser.add_argument("--kernels", type=int, help="fewer than the acceptance asks for")
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    asked.what = asked.what or [*UNASKED]
    # One kernel on one core each: the farm has work for all of them.
    os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", "1")
    started = asked.out.with_suffix(".started.json")
    kept: dict[str, dict[str, Any]] = earlier(started, again=asked.again)
    work(asked, kept, started)
    record = earlier(asked.out)
    for what in asked.what:
        record[what] = summed(what, kept[what])
        shown = {k: v for k, v in record[what].items() if k not in ("machine", "command", "date")}
        print(f"{what}: {shown}")
    save(asked.out, record)
    started.unlink(missing_ok=True)
    return 1 if any(wrong(record[what]) for what in asked.what) else 0


if __name__ == "__main__":
    sys.exit(main())
