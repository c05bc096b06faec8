"""Kernels with one index changed: does the first run of the judge refute all that compute something
else?

    python -m bench.judge.mutants [--mutants 2000] [--only WORD] [--again]

What a mutant computes is known by plain launches on floats beside the kernel that it was made of.
One that writes the same in two of them is asked of the judge as well. Results go to
bench/results/judge_mutants.json kernel by kernel; a run that was stopped goes on. The exit status
is 1 if one that computes something else was not refuted by the first run.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from bench.common.verdict.computations import COMPUTATIONS
from bench.common.verdict.mutants import changes, mutants, verdict
from bench.harness import arguments, earlier, environment, measured, save


def row(name: str, count: int) -> dict[str, Any]:
    """What became of the mutants of one kernel."""
    counts: Counter[str] = Counter()
    missed = []
    for mutant in mutants(name):
        did = changes(name, mutant)
        if did == "malformed":
            continue
        said, draws = verdict(name, mutant)
        effect = did if did in ("same", "other", "LimitError") else "fault"
        counts[f"{effect}: {said}"] += 1
        if effect in ("other", "fault") and (said != "different" or draws > 1):
            missed.append({"line": mutant.line, "was": mutant.was, "now": mutant.now, "said": said})
        if counts.total() == count:
            break
    return {"counts": dict(sorted(counts.items())), "missed": missed}


def main() -> int:
    parser = arguments(__doc__, "judge_mutants.json", only="kernels with it", resumes=True)
    parser.add_argument("--mutants", type=int, default=2000)
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    kernels = record.setdefault("kernels", {})

    def keep(_: str) -> None:
        total: Counter[str] = Counter()
        for each in kernels.values():
            total.update(each.get("counts", {}))
        missed = sum(len(each.get("missed", ())) for each in kernels.values())
        record.update(environment(), mutants=sum(total.values()), total=dict(total), missed=missed)
        save(asked.out, record)

    each = -(-asked.mutants // len(COMPUTATIONS))
    measured(kernels, COMPUTATIONS, lambda name: row(name, each), keep, only=asked.only)
    print(f"{record['mutants']} mutants, {record['missed']} missed: {record['total']}")
    return 1 if record["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
