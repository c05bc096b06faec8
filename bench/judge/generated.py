"""Forty computations as people have programs write them, in CUDA and for Triton, each right, subtly
wrong, and gamed: what does the judge say?

    python -m bench.judge.generated [--only WORD] [--again]

Results go to bench/results/judge_generated.json kernel by kernel. The exit status is 1 if one that
is wrong or gamed was not shown to be, or if one that is right was said to be different.
"""

from __future__ import annotations

import sys
from collections import Counter
from time import process_time
from typing import Any

from bench.common.verdict.replay import shows
from bench.common.verdict.triton_computations import ALL, written
from bench.harness import arguments, earlier, environment, measured, save

KINDS = {"": "right", "_wrong": "wrong", "_gamed": "gamed"}
LANGUAGES = ("cuda", "triton")
NAMES = [f"{each} {name}{kind}" for each in LANGUAGES for name in ALL for kind in KINDS]


def row(full: str) -> dict[str, Any]:
    language, name = full.split()
    kind = next(each for each in reversed(KINDS) if name.endswith(each))
    chosen = written(name) if language == "triton" else ALL[name.removesuffix(kind)]
    started = process_time()
    found = chosen.judged(name)
    seconds = round(process_time() - started, 2)
    shape = found.shapes[0]
    made = {
        "kind": KINDS[kind], "verdict": found.verdict, "error_log2": shape.error,
        "reasons": [each.message for each in shape.reasons], "processor_seconds": seconds,
    }  # fmt: skip
    if found.verdict == "different":
        made["replays"] = shows(chosen, name, found)
    return made


def bad(each: dict[str, Any]) -> bool:
    if each.get("kind") == "right":
        return each["verdict"] == "different"
    return not each.get("replays")


def main() -> int:
    parser = arguments(__doc__, "judge_generated.json", only="kernels with it", resumes=True)
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    rows = record.setdefault("kernels", {})

    def keep(_: str) -> None:
        counts = Counter(
            f"{name.split()[0]}, {each['kind']}: {each['verdict']}"
            for name, each in rows.items()
            if "kind" in each
        )
        record.update(
            environment(), counts=dict(counts), bad=[name for name, e in rows.items() if bad(e)],
            longest=max(e.get("processor_seconds", 0) for e in rows.values()),
        )  # fmt: skip
        save(asked.out, record)

    measured(rows, NAMES, row, keep, only=asked.only)
    print(f"{len(rows)} kernels: {record['counts']}; bad: {record['bad']}")
    return 1 if record["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
