"""Kernels with one index changed: does the first run of the judge refute all that compute something
else?

    python -m bench.judge.mutants [--mutants 2000] [--processes N] [--only WORD] [--again]

What a mutant computes is known by plain launches on floats beside the kernel that it was made of.
One that writes the same in two of them is asked of the judge as well. Each kernel has as many as
the others, or all that there are. Results go to bench/results/judge_mutants.json by so many
mutants of a kernel; a run that was stopped goes on. The exit status is 1 if one that computes
something else was not refuted by the first run.
"""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import as_completed
from itertools import islice
from typing import Any

from bench.common.verdict.computations import COMPUTATIONS
from bench.common.verdict.mutants import changes, mutants, verdict
from bench.harness import arguments, attempted, earlier, environment, save

from warploom.search.workers.farm import Farm

PIECE = 20  # mutants that one process judges at a time


def row(name: str, first: int, count: int) -> dict[str, Any]:
    """What became of some mutants of one kernel."""
    counts: Counter[str] = Counter()
    missed = []
    for mutant in islice(mutants(name), first, first + count):
        did = changes(name, mutant)
        if did == "malformed":
            continue
        said, draws = verdict(name, mutant)
        effect = did if did in ("same", "other", "LimitError") else "fault"
        counts[f"{effect}: {said}"] += 1
        if effect in ("other", "fault") and (said != "different" or draws > 1):
            missed.append({"line": mutant.line, "was": mutant.was, "now": mutant.now, "said": said})
    return {"counts": dict(sorted(counts.items())), "missed": missed}


def shares(available: dict[str, int], count: int) -> dict[str, int]:
    """How many of each, so that there are `count` of all: as many of each, or all of a kind."""
    found: dict[str, int] = {}
    for name in sorted(available, key=lambda each: available[each]):
        even = -(-(count - sum(found.values())) // (len(available) - len(found)))
        found[name] = min(available[name], max(0, even))
    return found


def main() -> int:
    parser = arguments(__doc__, "judge_mutants.json", only="kernels with it", resumes=True)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    kernels = record.setdefault("kernels", {})
    wanted = shares({name: sum(1 for _ in mutants(name)) for name in COMPUTATIONS}, asked.mutants)
    pieces = {
        f"{name} {first}": (name, first, min(PIECE, count - first))
        for name, count in wanted.items() for first in range(0, count, PIECE)
        if asked.only in name
    }  # fmt: skip
    left = [each for each in pieces if "failed" in kernels.get(each, {"failed": ""})]
    with Farm(asked.processes) as farm:
        waiting = {farm.submit(row, *pieces[each]): each for each in left}
        for done in as_completed(waiting):
            found, failed = attempted(done.result)
            kernels[waiting[done]] = {"failed": failed[:500]} if failed else found
            total: Counter[str] = Counter()
            for each in kernels.values():
                total.update(each.get("counts", {}))
            missed = sum(len(each.get("missed", ())) for each in kernels.values())
            record.update(environment(), mutants=total.total(), total=total, missed=missed)
            save(asked.out, record)
    print(f"{record['mutants']} mutants, {record['missed']} missed: {dict(record['total'])}")
    return 1 if record["missed"] or any("failed" in each for each in kernels.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
