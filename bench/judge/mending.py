"""Seeded faults, mended by what the judge says: a fixed table of mends, and at most three rounds.

    python -m bench.judge.mending [--only WORD]

Each kernel of the list has one fault: a barrier that is missing, a bound, a grid, a factor, an
array that is not its own, a sum in bf16. A round judges it and takes the first mend that a message
asks for; a mend sees the message, the line that it names and the call. Needs nvcc. Results go to
bench/results/judge_mending.json. The exit status is 1 if fewer than 24 of 30 are mended, or if a
kernel without a fault is not equal.
"""

from __future__ import annotations

import sys
from typing import Any

from bench.common.verdict.mending import FAULTS, RIGHT, faulty, rounds
from bench.harness import arguments, environment, measured, save

ENOUGH = 24 / 30


def row(name: str) -> dict[str, Any]:
    said = []
    for _, found in rounds(RIGHT[name] if name in RIGHT else faulty(name)):
        reasons = [each.message for each in found.shapes[0].reasons]
        example = found.shapes[0].counterexample
        said.append(reasons[0] if reasons else example.text if example else found.verdict)
        verdict = found.verdict
    return {"rounds": len(said) - 1, "verdict": verdict, "said": said}


def main() -> int:
    parser = arguments(__doc__, "judge_mending.json", only="kernels with it")
    asked = parser.parse_args()
    rows: dict[str, Any] = {}
    record: dict[str, Any] = {"kernels": rows}

    def keep(_: str) -> None:
        faults = {name: each for name, each in rows.items() if name in FAULTS}
        record.update(
            environment(), faults=len(faults),
            mended=sum(each.get("verdict") == "equal" for each in faults.values()),
            left=[name for name, each in rows.items() if each.get("verdict") != "equal"],
        )  # fmt: skip
        save(asked.out, record)

    measured(rows, [*RIGHT, *FAULTS], row, keep, only=asked.only)
    print(f"{record['mended']} of {record['faults']} faults mended; left: {record['left']}")
    wrong = record["mended"] < ENOUGH * record["faults"]
    return 1 if wrong or any(name in RIGHT for name in record["left"]) else 0


if __name__ == "__main__":
    sys.exit(main())
