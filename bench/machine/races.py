"""The race detector against one that looks at every pair of accesses, on generated traces.

    python -m bench.machine.races [--traces 100000] [--only ptx] [--processes N] [--again]

Traces of 2 to 5 threads on 1 to 3 words, with barriers of blocks, warps and some threads, are fed
directly, by the kernels' evaluator and by the PTX emulator. Results go to bench/results/races.json
piece by piece: a run that was stopped goes on. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import as_completed
from typing import Any

from bench.common.machine.agreement import FEEDS, looked_at
from bench.harness import arguments, earlier, environment, save

from warploom.search.workers.farm import Farm

PIECE = 500  # traces of one piece of work


def summed(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    different = sorted(seed for each in pieces for seed in each["different"])
    counts: dict[str, Counter[str]] = {"threads": Counter(), "words": Counter(), "meets": Counter()}
    for each in pieces:
        for name, counter in counts.items():
            counter.update(each[name])
    return {
        "traces": sum(each["traces"] for each in pieces),
        "racy": sum(each["racy"] for each in pieces),
        "differences": len(different), "first_different": different[:10],
        "processor_seconds": round(sum(each["seconds"] for each in pieces)),
        **{name: dict(sorted(counter.items())) for name, counter in counts.items()},
        **environment(),
    }  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, "races.json", resumes=True)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--only", choices=[*FEEDS])
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    started = asked.out.with_suffix(".started.json")
    kept: dict[str, dict[str, Any]] = earlier(started, again=asked.again)
    record = earlier(asked.out)
    feeds = [asked.only] if asked.only else [*FEEDS]
    with Farm(asked.processes) as farm:
        waiting = {
            farm.submit(looked_at, feed, first, min(PIECE, asked.traces - first)): (
                feed,
                str(first),
            )
            for first in range(0, asked.traces, PIECE)
            for feed in feeds
            if str(first) not in kept.get(feed, {})
        }
        for done in as_completed(waiting):
            feed, first = waiting[done]
            kept.setdefault(feed, {})[first] = done.result()
            started.write_text(json.dumps(kept))
    for feed in feeds:
        record[feed] = summed(list(kept[feed].values()))
        save(asked.out, record)
        print(f"{feed}: {record[feed]['traces']} traces, {record[feed]['racy']} racy, "
              f"{record[feed]['differences']} differences")  # fmt: skip
    started.unlink(missing_ok=True)
    return 1 if any(record[feed]["differences"] for feed in feeds) else 0


if __name__ == "__main__":
    sys.exit(main())
