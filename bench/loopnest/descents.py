"""Random implementations of loop nests of every kind: is each of them right?

    python -m bench.loopnest.descents [--descents 500] [--only matmul] [--again]
        [--processes 16] [--out FILE]

Each descent ends at a fully specified implementation or at a dead end. What it ends at is lowered,
passes the kernel check and runs on the simulator, as compiled PTX on the emulator, and as compiled
C; races are looked for on the first two. Inputs have both signs, and tiles divide no size; results
are compared with NumPy in double precision, and the bound with what the compiled kernel does. Equal
kernels of a batch are run once. Batches are shared out among processes and depend on their number
alone; each is kept as it ends, in bench/results/loopnest_descents.json: a run that was stopped
goes on. The exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from bench.harness import arguments, earlier, environment, save
from bench.loopnest.tasks import NAMES, checked_batch

from warploom.errors import WarploomError
from warploom.search.workers.farm import Farm

BATCH = 25
Rows = dict[str, dict[str, Any]]  # the batches of a kernel, by their numbers


def summed(name: str, batches: Rows) -> dict[str, Any]:
    seen: Counter[str] = Counter()
    for each in batches.values():
        seen.update(each["traits"])
    counted = ("descents", "arrived", "run", "seconds")
    total = {key: sum(each[key] for each in batches.values()) for key in counted}
    wrong = [text for each in batches.values() for text in each["wrong"]]
    return {"name": name, **total, "seconds": round(total["seconds"], 1), "wrong": wrong,
            "traits": dict(sorted(seen.items())), "batches": batches}  # fmt: skip


class Record:
    """What is kept, written after every batch."""

    def __init__(self, out: Path, without: set[str]) -> None:
        self.out = out
        rows = earlier(out).get("kernels", [])
        self.batches: dict[str, Rows] = {
            each["name"]: each["batches"] for each in rows if each["name"] not in without
        }

    def keep(self, name: str, number: int, batch: dict[str, Any]) -> dict[str, Any]:
        mine = self.batches.setdefault(name, {}) | {str(number): batch}
        self.batches[name] = {str(at): mine[str(at)] for at in sorted(map(int, mine))}
        rows = [summed(each, self.batches[each]) for each in NAMES if each in self.batches]
        said = {
            **environment(),
            "kernels": rows,
        }
        save(self.out, said)
        return summed(name, self.batches[name])


def batch_or_error(task: Any, count: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = task.result()
    except WarploomError as error:  # the process ended, or a space could not be made
        found = {"descents": count, "arrived": 0, "run": 0, "wrong": [error.message],
                 "traits": {}, "seconds": 0.0}  # fmt: skip
    return found


def main() -> int:
    parser = arguments(__doc__, "loopnest_descents.json", only="names with this word", resumes=True)
    parser.add_argument("--descents", type=int, default=500)
    parser.add_argument("--processes", type=int, default=None, help="one less than there are cores")
    given = parser.parse_args()
    names = [name for name in NAMES if given.only in name]
    record = Record(given.out, set(names) if given.again else set())
    farm = Farm(given.processes)
    tasks = {}
    for number, start in enumerate(range(0, given.descents, BATCH)):
        count = min(BATCH, given.descents - start)
        for name in names:  # a batch of each, so that a run which is stopped has some of all
            done = record.batches.get(name, {}).get(str(number), {}).get("descents", 0)
            if done < count:
                tasks[farm.submit(checked_batch, name, number, count)] = (name, number, count)
    try:
        for task in as_completed(tasks):
            name, number, count = tasks[task]
            print(line(record.keep(name, number, batch_or_error(task, count))), flush=True)
    finally:
        farm.shutdown(cancel_futures=True)
    found = [summed(name, record.batches[name]) for name in names]
    return int(any(each["wrong"] or not each["arrived"] for each in found))


def line(record: dict[str, Any]) -> str:
    return (
        f"{record['name']}: {record['descents']} descents, {record['arrived']} arrived, "
        f"{record['run']} kernels run, {len(record['wrong'])} wrong, {record['seconds']} s"
    )


if __name__ == "__main__":
    sys.exit(main())
