"""What the judge says holds ten bad kernels back, beside the same kernels with the remedy.

    python -m bench.judge.hindered [--only WORD]

Of each pair the slow kernel is counted and predicted, with its remedies, and so is the fast one. A
remedy lowers what is counted as said if the fast kernel has at most 15 % more. Where
`bench.judge.hindered_device` has measured both, the sign of the predicted gain is compared. Results
go to bench/results/judge_hindered.json. The exit status is 1 if a remedy is not the one that was
meant, does not lower the count as said, or has the wrong sign.
"""

from __future__ import annotations

import json
import sys
from math import prod
from typing import Any

from bench.common.verdict.slow import FAST, PAIRS, counts, figure, said
from bench.harness import RESULTS, arguments, environment, measured, save

from warploom.machine.record import H200
from warploom.machine.times import predicted
from warploom.verdict.hindered import filled

MEASURED = RESULTS / "judge_hindered_device.json"
MORE = 1.15


def row(name: str) -> dict[str, Any]:
    (slow, found), (fast, _) = counts(name), counts(name + FAST)
    first, after = said(found)
    blocks = prod(PAIRS[name].large[0])
    times = [float(predicted(filled(each, blocks), H200).nanoseconds) for each in (slow, fast)]
    made = {
        "remedy": first.what, "message": first.message, "how": first.how, "figure": first.figure,
        "before": first.before, "said": after, "counted": figure(fast, first.figure),
        "predicted_slow_ns": times[0], "predicted_fast_ns": times[1],
    }  # fmt: skip
    if MEASURED.exists():
        seen = json.loads(MEASURED.read_text())["pairs"][name]
        made |= {"slow_ns": seen["slow_ns"], "fast_ns": seen["fast_ns"]}
    return made


def bad(name: str, each: dict[str, Any]) -> bool:
    if (
        "failed" in each
        or each["remedy"] != PAIRS[name].remedy
        or each["counted"] > MORE * each["said"]
    ):
        return True
    gains = each["predicted_fast_ns"] < each["predicted_slow_ns"]
    return not gains or ("slow_ns" in each and not each["fast_ns"] < each["slow_ns"])


def main() -> int:
    parser = arguments(__doc__, "judge_hindered.json", only="kernels with it")
    asked = parser.parse_args()
    rows: dict[str, Any] = {}
    record: dict[str, Any] = {"kernels": rows}

    def keep(_: str) -> None:
        record.update(environment(), bad=[name for name, each in rows.items() if bad(name, each)])
        save(asked.out, record)

    measured(rows, list(PAIRS), row, keep, only=asked.only)
    for name, each in rows.items():
        times = [f"{each[k] / 1e3:.1f}" for k in ("predicted_slow_ns", "predicted_fast_ns")]
        seen = [f"{each[k] / 1e3:.1f}" for k in ("slow_ns", "fast_ns") if k in each]
        print(
            f"{name}: {each['remedy']}, {each['before']:.4g} {each['figure']}, said "
            f"{each['said']:.4g}, counted {each['counted']:.4g}; predicted {times}, "
            f"measured {seen} µs"
        )
    print(f"bad: {record['bad']}")
    return 1 if record["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
