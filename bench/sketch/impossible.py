"""Certificates of impossibility: of random sketches, and the same altered.

    python -m bench.sketch.impossible [--count 500] [--altered 2000] [--seed 0]

Every certificate of a sketch without a fill has to verify; how many have none is counted. Every
alteration, and every claim that a sketch with fills has none, has to be refused unless the claim is
still true: that is decided by trying every fill in plain Python, which shares nothing with the
checker. The record is `bench/results/impossible.json`. The status is 1 if a certificate does not
verify, or if anything untrue is accepted.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from itertools import islice
from random import Random
from typing import Any

from bench.common.trust.impossible import altered, forged, impossible, proof, solvable
from bench.common.trust.tried import is_true
from bench.harness import arguments, environment, save

from warploom.errors import CheckError, SearchError
from warploom.trust.impossible import check_impossible

Record = dict[str, Any]


def certificates(count: int, seed: int, tally: Counter[str]) -> list[Record]:
    """Those of so many impossible sketches, as they come back from a file."""
    found: list[Record] = []
    for _, result in islice(impossible(seed), count):
        try:
            found.append(json.loads(json.dumps(proof(result))))
        except (CheckError, SearchError) as error:
            tally[f"none: {error.message[:60]}"] += 1
            continue
        said = verdict(found[-1])
        tally["verified" if said == "accepted" else f"not verified: {said}"] += 1
        tally["with a hole in the way"] += bool(found[-1]["blocked"])
        tally["all fills were run"] += "all fills" in check_impossible(found[-1]).shown[1]
    return found


def verdict(record: Record) -> str:
    try:
        return "open" if check_impossible(record).open else "accepted"
    except CheckError:
        return "refused"


def alterations(records: list[Record], count: int, random: Random) -> dict[str, Counter[str]]:
    """Until so many were refused; by the way in which they were altered."""
    found: dict[str, Counter[str]] = {}
    refused = 0
    while refused < count:
        way, record = altered(random.choice(records), random)
        said = verdict(record)
        if said == "accepted":
            said = "accepted, true" if is_true(record) else "accepted, untrue"
        refused += said == "refused"
        found.setdefault(way, Counter())[said] += 1
    return found


def main() -> int:
    parser = arguments(__doc__, "impossible.json")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--altered", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    started, random = time.process_time(), Random(asked.seed)
    tally: Counter[str] = Counter()
    records = certificates(asked.count, asked.seed, tally)
    changed = alterations(records, asked.altered, random)
    claims = Counter(verdict(forged(each)) for each in islice(solvable(asked.seed), asked.count))
    record = {
        **environment(),
        "impossible_sketches": asked.count,
        "certificates": dict(sorted(tally.items())),
        "altered": {way: dict(sorted(each.items())) for way, each in sorted(changed.items())},
        "refused": sum(each["refused"] for each in changed.values()),
        "claimed_of_sketches_with_fills": dict(claims),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    save(asked.out, record)
    print(json.dumps(record, indent=1))
    untrue = sum(each["accepted, untrue"] for each in changed.values()) + claims["accepted"]
    return 1 if untrue or any(key.startswith("not verified") for key in tally) else 0


if __name__ == "__main__":
    sys.exit(main())
