"""Damaged stores: no answer is given that differs from a fresh search, and no command fails.

    python -m bench.search.store_damage [--bytes 1000] [--rows 1000] [--malformed 1000]

A store with answers of synth, layout solve, layout convert, map and explore, samples of the tuner
and pieces of a search is copied; then one byte of the copy is changed, or one row by SQL, or a row
gets a value of another shape with a digest that matches. Every question is asked of the copy. The
record goes to bench/results/store_damage.json, where a part of which 0 are asked for stays as it
was; the exit status is 1 if an answer was wrong.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.common.cli.damaged import COMMANDS, Filled, run_one
from bench.harness import arguments, earlier, environment, save


def measured(filled: Filled, way: str, count: int, first: int) -> dict[str, Any]:
    began = time.process_time()
    given = searched = absent = told = 0
    wrong = []
    for seed in range(first, first + count):
        done, tally = run_one(filled, way, seed)
        given, searched = given + tally.given, searched + tally.searched
        absent, told = absent + tally.absent, told + bool(tally.told)
        wrong += [f"{way} {seed} ({done}): {each}" for each in tally.wrong]
    for each in wrong:
        print(each)
    return {
        **environment(),
        "bytes_of_a_store": filled.path.stat().st_size,
        "stores": count,
        "answers_given_by_the_store": given,
        "searched_again_and_compared": searched,
        "not_given_and_not_searched": absent,
        "stores_with_a_warning": told,
        "wrong": [each.splitlines()[0] for each in wrong],
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def main() -> int:
    parser = arguments(__doc__, "store_damage.json")
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--malformed", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    asked = parser.parse_args()
    counts = {"byte": asked.bytes, "row": asked.rows, "malformed": asked.malformed}
    record: dict[str, Any] = earlier(asked.out)
    record["questions"] = [*COMMANDS, "tune", "a search in pieces"]
    with tempfile.TemporaryDirectory() as folder:
        filled = Filled.of(Path(folder))
        for way in (way for way, count in counts.items() if count):
            record[way] = measured(filled, way, counts[way], asked.first)
            print(way, json.dumps(record[way]))
            save(asked.out, record)
    return 1 if any(record[way]["wrong"] for way in counts if way in record) else 0


if __name__ == "__main__":
    sys.exit(main())
