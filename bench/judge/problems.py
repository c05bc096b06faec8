"""Forty problem files in KernelBench's form, each with a right, a wrong and a gamed candidate: what
does the judge say, and how long does it take on one core?

    python -m bench.judge.problems [--only WORD] [--again]

Results go to bench/results/judge_problems.json candidate by candidate. The exit status is 1 if one
that is wrong or gamed was not told to be different, or one that is right was.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from bench.common.problems.forty import KINDS, PROBLEMS, write
from bench.harness import arguments, earlier, environment, measured, save

from warploom.problems.kernelbench import asked

LIMIT_S = 600.0  # a machine that is busy with others takes longer
NAMES = [f"{name} {kind}" for name in PROBLEMS for kind in KINDS.values()]


def row(name: str) -> dict[str, Any]:
    problem, kind = name.split(" ")
    with TemporaryDirectory() as folder:
        file, candidates = write(Path(folder), problem)
        started = process_time()
        found = asked(file, candidates[kind], {}, "sm_90a", LIMIT_S).judged(LIMIT_S, 7)
        seconds = round(process_time() - started, 2)
    reasons = [each.message for shape in found.shapes for each in shape.reasons]
    return {
        "kind": kind, "level": PROBLEMS[problem].level, "verdict": found.verdict,
        "reasons": reasons, "shown": found.counterexample is not None, "processor_seconds": seconds,
    }  # fmt: skip


def bad(each: dict[str, Any]) -> bool:
    if "verdict" not in each:
        return True
    wanted = ("equal", "unknown") if each["kind"] == "right" else ("different",)
    return each["verdict"] not in wanted


def main() -> int:
    parser = arguments(__doc__, "judge_problems.json", only="candidates with it", resumes=True)
    options = parser.parse_args()
    record = earlier(options.out, again=options.again)
    rows = record.setdefault("candidates", {})

    def keep(_: str) -> None:
        counts = Counter(f"{e['kind']}: {e['verdict']}" for e in rows.values() if "kind" in e)
        record.update(
            environment(), counts=dict(counts), bad=[name for name, e in rows.items() if bad(e)],
            processor_seconds=round(sum(e.get("processor_seconds", 0) for e in rows.values()), 1),
        )  # fmt: skip
        save(options.out, record)

    measured(rows, NAMES, row, keep, only=options.only)
    print(f"{len(rows)} candidates: {record['counts']}; bad: {record['bad']}")
    print(f"{record['processor_seconds']} s of one core")
    return 1 if record["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
