"""Small kernels that were drawn, with traps among them: does the judge say what exact rationals do?

    python -m bench.judge.rationals [--kernels 500] [--seed 1]

Results go to bench/results/judge_rationals.json. The exit status is 1 if a verdict is wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from time import process_time

from bench.common.verdict.rationals import drawn_case, wrong
from bench.harness import arguments, environment, save


def main() -> int:
    parser = arguments(__doc__, "judge_rationals.json")
    parser.add_argument("--kernels", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    mistakes, seconds = [], []
    for number in range(asked.kernels):
        case = drawn_case(number)
        started = process_time()
        found = case.judged(asked.seed + number)
        seconds.append(process_time() - started)
        counts[f"{'same' if case.same else 'not the same'}: {found.verdict}"] += 1
        if found.verdict == "unknown":
            reasons.update(each.message.split(",")[0][:80] for each in found.shapes[0].reasons)
        if wrong(case, found):
            mistakes.append({"name": case.name, "text": case.text(), "verdict": str(found)})
    record = {
        **environment(), "kernels": asked.kernels, "wrong": len(mistakes), "counts": dict(counts),
        "unknown": dict(reasons.most_common(12)), "mistakes": mistakes,
        "processor_seconds": round(sum(seconds), 1), "longest": round(max(seconds), 2),
    }  # fmt: skip
    save(asked.out, record)
    print(f"{asked.kernels} kernels, {len(mistakes)} wrong verdicts: {dict(counts)}")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
