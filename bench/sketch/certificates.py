"""Certificates of fills as a forger would write them, many more than the tests try.

    python -m bench.sketch.certificates [--count 20000] [--seed 1]

Random steps of two operators with zeros among their items, signed, with the goal that holds if
zeros vanish: whatever the checker accepts must be true on numbers, by the evaluator of
`tests/trust/test_forged_fills.py`. And the certificates of the tests with one field changed: all
are refused. The record is `bench/results/certificates.json`.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from bench.common.trust.altered import with_another_field
from bench.common.trust.forged import accepted_record, drawn, is_true
from bench.common.trust.made import MADE, written
from bench.harness import arguments, environment, save

from warploom.errors import CheckError
from warploom.trust.fill import check_fill


def forged(count: int, random: Random) -> Counter[str]:
    """How many were accepted and refused, and whether they were true."""
    found: Counter[str] = Counter()
    for number in range(count):
        steps, wanted = drawn(random)
        record = accepted_record(steps, wanted, flatten=number % 2 == 0)
        said = "refused" if record is None else "accepted"
        true = is_true(record or {"steps": steps, "goal": {"values": wanted}}, random)
        found[f"{said}, {'true' if true else 'untrue'}"] += 1
    return found


def changed(count: int, random: Random) -> Counter[str]:
    """The same of true certificates in which one field is another."""
    found: Counter[str] = Counter()
    for name in MADE:
        for record in with_another_field(json.loads(written(name)), count, random):
            try:
                check_fill(record)
                found["accepted"] += 1
            except CheckError:
                found["refused"] += 1
    return found


def main() -> int:
    parser = arguments(__doc__, "certificates.json")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    started, random = time.process_time(), Random(asked.seed)
    forgeries, fields = forged(asked.count, random), changed(asked.count // 20, random)
    record: dict[str, Any] = {
        **environment(),
        "forged": dict(sorted(forgeries.items())),
        "one_field_changed": dict(fields),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    save(asked.out, record)
    print(json.dumps(record, indent=1))
    return 1 if forgeries["accepted, untrue"] or fields["accepted"] else 0


if __name__ == "__main__":
    sys.exit(main())
