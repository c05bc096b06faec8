"""How many kernels the fast engine takes, and whether its bits are the evaluator's.

    python -m bench.ptx.engine [--only WORD] [--look] [--notes] [--processes N]
                                                [--out FILE]

Kernels of nvcc, CUB, Triton and Numba that the tests keep, of the catalogue, one for each
instruction that was run on a GPU, those of tensor cores, copies and clusters, and every form of
every pure instruction on edges and random bits (`--look` only asks which are taken and compiles
nothing; `--notes` compares counters and races, too). Needs NumPy and gcc. The exit status is 1 if
anything differs.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from bench.harness import arguments, attempted, environment, save
from bench.ptx.engine_tasks import looked_at, tasks

from warploom.search.workers.farm import Farm

COUNTED = ("in_pieces", "counters_taken", "races_taken")


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    left = {name: why for row in rows for name, why in row["left"].items()}
    return {
        "kernels": sum(row["of"] for row in rows), "taken": sum(row["taken"] for row in rows),
        "other_bits": [name for row in rows for name in row["other_bits"]], "left": left,
        **{word: sum(row.get(word, 0) for row in rows)
           for word in COUNTED if any(word in row for row in rows)},
    }  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, only="groups and kernels with this word")
    parser.add_argument("--look", action="store_true", help="compile nothing")
    parser.add_argument("--notes", action="store_true", help="with counters and races, too")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    started = time.monotonic()
    rows: dict[str, list[dict[str, Any]]] = {}
    with Farm(asked.processes) as farm:
        waiting = {
            farm.submit(looked_at, *task, asked.look, asked.notes): task
            for task in tasks(asked.only)
        }
        for done in as_completed(waiting):
            group, name = waiting[done]
            row, failed = attempted(done.result)
            if row is None:
                row = {"of": 1, "taken": 0, "left": {name: failed[:300]}, "other_bits": [name]}
            rows.setdefault(group, []).append(row)
            if row["other_bits"]:
                print("other bits:", row["other_bits"][:3], [*row["left"].values()][:1], flush=True)
    groups = {group: summed(some) for group, some in rows.items()}
    for group, found in groups.items():
        print(f"{group:13} {found['taken']} of {found['kernels']} taken, "
              f"{len(found['other_bits'])} with other bits",
              *(f"{word.removesuffix('_taken')} {found[word]}"
                for word in COUNTED if word in found),
              flush=True)  # fmt: skip
        for why, times in Counter(found["left"].values()).most_common(12):
            print(f"    {times:4} {why}")
    if asked.out is not None:
        whole = {
            **environment(), "seconds": round(time.monotonic() - started),
        }  # fmt: skip
        save(asked.out, whole | {"groups": groups})
    return 1 if any(found["other_bits"] for found in groups.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
