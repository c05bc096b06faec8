"""Small programs of mbarriers and named barriers: is what a proof accepts of one run true of all?

    python -m bench.ptx.all_schedules [--programs 500000] [--processes N] [--again]

Programs of 2 to 4 threads are run once by chance. Where the conditions of a proof hold of that run,
every other schedule is explored. One in a hundred is run as PTX on the emulator, too. Results go to
bench/results/all_schedules.json piece by piece: a run that was stopped goes on. The exit status is
1 if anything was accepted that another schedule makes something else of.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import as_completed
from typing import Any

from bench.common.ptx.agreement import looked_at
from bench.harness import arguments, earlier, environment, save

from warploom.search.workers.farm import Farm

PIECE = 2500  # programs of one piece of work


def summed(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    counts: Counter[str] = Counter({"wrong": 0})
    for each in pieces:
        counts.update({k: v for k, v in each.items() if isinstance(v, int)})
    return {
        **dict(sorted(counts.items())),
        "wrong_programs": [each for piece in pieces for each in piece["wrong_programs"]][:10],
        "processor_seconds": round(sum(each["seconds"] for each in pieces)),
        **environment(),
    }


def main() -> int:
    parser = arguments(__doc__, "all_schedules.json", resumes=True)
    parser.add_argument("--programs", type=int, default=500_000)
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    started = asked.out.with_suffix(".started.json")
    kept: dict[str, dict[str, Any]] = earlier(started, again=asked.again)
    with Farm(asked.processes) as farm:
        waiting = {
            farm.submit(looked_at, first, min(PIECE, asked.programs - first)): str(first)
            for first in range(0, asked.programs, PIECE)
            if str(first) not in kept
        }
        for done in as_completed(waiting):
            kept[waiting[done]] = done.result()
            started.write_text(json.dumps(kept))
    record = summed(list(kept.values()))
    save(asked.out, record)
    print(
        f"{record['programs']} programs, {record['accepted']} accepted, {record['wrong']} wrongly"
    )
    started.unlink(missing_ok=True)
    return 1 if record["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
