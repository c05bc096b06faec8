"""Budgets of time and memory, and Ctrl-C, each run in a process of its own.

    python -m bench.cli.budgets [--part commands|interrupts|memory] [--only WORDS] [--moments 200]

Commands with little time may take S + max(1 s, 10 %) of CPU, with the start of the process. After
Ctrl-C at a random moment, once Python itself has begun, a command may take one second of CPU more,
ends with status 130 and leaves no half of a file. Searches with little memory may take
1.15 M + 50 MB. The records go to `bench/results/budgets.json`; the exit status is 1 if something
did not hold.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.cli.budget_cases import CASES, Case, written
from bench.common.cli.timed import Timed, timed
from bench.common.sketch.large import LARGE
from bench.common.sketch.measured import apart
from bench.harness import arguments, environment, save

MEGABYTES = (100, 400)
KEPT = ("stopped", "late", "silence", "peak", "count", "listed", "complete", "verdict", "cpu")
Record = dict[str, Any]

# CPU seconds. Before the first, Python itself begins, and a signal is its own; without a limit the
# commands take much longer than the last.
EARLIEST, LATEST = 0.1, 6.0
LONG = (
    "synth seven_holes.swflow --no-store",
    "synth bits.swflow --no-store --json found.json",
    "synth six_holes.swflow --store kept.sqlite",
    "synth own_tables.swflow --no-store --best",
    "synth long_goal.swflow --no-store",
    "synth more_bits.swflow --no-store --processes 2",
    "explore matmul --size m=1024,n=1024,k=1024 --model --evaluations 100000 --no-store",
    "explore axpy --size n=1048576 --model --engine exact --no-store",
    "map matmul --size m=1024,n=1024,k=1024 --among 10000000 --no-store",
    "ptx run endless.ptx --grid 4 --block 64 --arg u32[64]=zeros --seconds 600",
)


# -- commands with little time ---------------------------------------------------------------------


def commands(folder: Path, only: str) -> Iterator[Record]:
    for case in (case for case in CASES if only in case.words):
        found = timed(case.command, folder)
        yield _command(case, found)


def _command(case: Case, found: Timed) -> Record:
    head = (found.output.strip().splitlines() or [""])[-1][:120]
    fine = found.holds(case.seconds) and found.status in (0, 1, 2, 3)
    return {
        "part": "commands",
        "command": case.words,
        "seconds": case.seconds,
        "cpu": round(found.cpu, 2),
        "status": found.status,
        "said": head,
        "held": fine,
    }


# -- Ctrl-C ----------------------------------------------------------------------------------------


def interrupts(folder: Path, moments: int, only: str) -> Iterator[Record]:
    draw = random.Random(26)
    for number in range(moments):
        words, at = LONG[number % len(LONG)], draw.uniform(EARLIEST, LATEST)
        if only in words:
            yield _interrupted(words, at, folder)


def _interrupted(words: str, at: float, folder: Path) -> Record:
    found = timed(words.split(), folder, interrupt_at=at, processes="--processes" in words)
    whole = _is_whole(folder / "found.json")
    ended = found.after is None  # of itself, before that moment
    held = whole and (ended or (found.after is not None and found.after <= 1.0))
    right = ended or found.status == 130
    return {
        "part": "interrupts",
        "command": words,
        "at": round(at, 3),
        "after": None if found.after is None else round(found.after, 2),
        "status": found.status,
        "said": (found.output.strip().splitlines() or [""])[-1][:120],
        "held": held and right,
    }


def _is_whole(file: Path) -> bool:
    """A file that was written is a list of records; none is as good."""
    if file.exists():
        text = file.read_text()
        file.unlink()
        try:
            return isinstance(json.loads(text), list)
        except ValueError:
            return False
    return True


# -- searches with little memory -------------------------------------------------------------------


def memory() -> Iterator[Record]:
    for name, text in LARGE.items():
        for megabytes in MEGABYTES:
            found = apart(text=text, seconds=10.0, megabytes=megabytes)
            kept = {key: found[key] for key in KEPT if key in found}
            kept["proved"] = sum(found.get("proved", []))
            held = found["late"] <= 1.0 and found["peak"] <= 1.15 * megabytes + 50
            record = {"part": "memory", "sketch": name, "seconds": 10.0, "megabytes": megabytes}
            yield {**record, **kept, "held": held}


def _line(record: Record) -> str:
    failed = "" if record["held"] else "  NOT HELD"
    match record["part"]:
        case "commands":
            what = f"{record['cpu']:6.2f} of {record['seconds']:3g} s  {record['command'][:70]}"
        case "interrupts":
            what = f"{record['after']} s after {record['at']:5.2f}  {record['command'][:60]}"
        case _:
            what = f"{record['peak']:6.0f} of {record['megabytes']} MB  {record['sketch']}"
    return f"{what}{failed}"


def main() -> int:
    parser = arguments(__doc__, "budgets.json", only="Commands with these words.")
    parser.add_argument("--part", choices=("commands", "interrupts", "memory"))
    parser.add_argument("--moments", type=int, default=200)
    asked = parser.parse_args()
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder)
        timed(["synth", "sums", "--no-store"], folder)  # modules are compiled
        parts = {
            "commands": commands(folder, asked.only),
            "interrupts": interrupts(folder, asked.moments, asked.only),
            "memory": memory(),
        }
        for part, found in parts.items():
            for record in found if asked.part in (None, part) else ():
                records.append(record)
                print(_line(record), flush=True)
    kept = {**environment(), "held": sum(each["held"] for each in records), "of": len(records)}
    save(asked.out, {**kept, "runs": records})
    print(f"{kept['held']} of {kept['of']} held")
    return 0 if kept["held"] == kept["of"] else 1


if __name__ == "__main__":
    sys.exit(main())
