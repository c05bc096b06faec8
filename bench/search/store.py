"""Two processes write one store for a minute: nothing is lost.

    python -m bench.search.store [--seconds 60] [--processes 2]

The record goes to bench/results/store.json; the exit status is 1 if a row is missing or changed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import arguments, environment, save

from warploom.search.storage.store import Key, Store
from warploom.search.workers.farm import Farm


def written(path: str, worker: int, seconds: float) -> int:
    """Puts rows for so long; every tenth is written twice, as a result that was found again is."""
    store, end, number = Store(path, ""), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(2 if number % 10 == 0 else 1):
            store.put(Key("row", [worker, number], "none"), [worker, number, "x" * (number % 997)])
        number += 1
    return number


def main() -> int:
    parser = arguments(__doc__, "store.json")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    # By its name as a module, so that it travels to the processes.
    from bench.search.store import written as write

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.sqlite")
        farm = Farm(asked.processes)
        workers = range(asked.processes)
        asked_for = [farm.submit(write, path, worker, asked.seconds) for worker in workers]
        counts = [each.result() for each in asked_for]
        farm.shutdown()
        found = {tuple(kept.value) for kept in Store(path, "").all()}
    wanted = {
        (worker, number, "x" * (number % 997))
        for worker, count in enumerate(counts)
        for number in range(count)
    }
    row = environment() | {"seconds": asked.seconds, "rows": counts, "missing": len(wanted - found)}
    row |= {"other": len(found - wanted)}
    print(json.dumps(row))
    save(asked.out, row)
    return 1 if found != wanted else 0


if __name__ == "__main__":
    sys.exit(main())
