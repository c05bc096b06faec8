"""The precision contract: roundings beside a hand count, and sums in bf16 that are to be named.

    python -m bench.judge.precision [--only WORD]

Twelve kernels of which the roundings on the longest path were counted by hand, and ten of them with
sums that pass through bf16, by conversions, by instructions of the type, in shared memory, by
shuffles or between products of tensor cores. Results go to bench/results/judge_precision.json. The
exit status is 1 if a count is another, or if sums in bf16 are not named.
"""

from __future__ import annotations

import sys
from typing import Any

from bench.common.verdict.precise import COUNTED, NARROWED
from bench.harness import arguments, environment, measured, save


def row(name: str) -> dict[str, Any]:
    plain = name.removesuffix("_bf16")
    each = COUNTED[plain]
    found = each.judged(name, accumulate="float32", precision=True)
    (seen,) = found.shapes[0].precision
    made = {"verdict": found.verdict, **seen.record()}
    if name == plain:
        return {**made, "by_hand": each.roundings, "how": each.why}
    lines = [e.span.line for e in found.shapes[0].reasons if e.what == "accumulator" and e.span]
    return {**made, "named_at": lines}


def bad(each: dict[str, Any]) -> bool:
    if "named_at" in each:
        return not each["named_at"] or each["verdict"] != "different"
    return bool(each["roundings"] != each["by_hand"] or each["verdict"] != "equal")


def main() -> int:
    parser = arguments(__doc__, "judge_precision.json", only="kernels with it")
    asked = parser.parse_args()
    rows: dict[str, Any] = {}
    record: dict[str, Any] = {"kernels": rows}

    def keep(_: str) -> None:
        record.update(environment(), bad=[name for name, each in rows.items() if bad(each)])
        save(asked.out, record)

    measured(rows, [*COUNTED, *(f"{name}_bf16" for name in NARROWED)], row, keep, only=asked.only)
    same = sum(e.get("by_hand") == e["roundings"] for e in rows.values())
    named = sum(bool(e.get("named_at")) for e in rows.values())
    print(f"{same} counts as by hand; sums in bf16 named in {named}; bad: {record['bad']}")
    return 1 if record["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
